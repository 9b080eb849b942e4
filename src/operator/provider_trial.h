#pragma once

#include "base/json_writer.h"
#include "launch/provider_calls.h"
#include "sealing/secrets.h"
#include "stores/platform.h"

/*
 * One signed call of a provider's launch endpoint, as the server makes it, for an operator who
 * connects a provider: a demo launch of one of its games for a player who does not exist. It is not
 * kept. If the provider has a launch URL instead, this makes the player's address, if `urls` is
 * set. Blocks, at most `timeout_ms`. One thread, with curl_global_init done.
 */
struct provider_trial_options {
    const struct secrets *secrets;
    const char *provider_id;
    const char *game_id; /* NULL: its first one that has a demo, or else its first */
    const char *ca_file; /* "": the system's certificates */
    uint32_t timeout_ms;
    bool urls; /* of a provider that is not called, make the address: it is not called */
};

struct provider_trial {
    char game_id[GAME_ID_SIZE];
    char endpoint[GAME_URL_SIZE];
    enum provider_outcome outcome;
    long status; /* of HTTP; 0: nothing was answered */
    uint64_t took_ms;
    char reason[CURL_ERROR_SIZE]; /* of the failure, for people; "" when it was launched */
    struct launch_answer answer;  /* when it was launched */
};

/* STATUS_OK: it was called, even if the launch failed. STATUS_NOT_FOUND: there is no such provider,
 * or no such game of it. STATUS_CONFLICT: it has no launch endpoint, and no address was wanted.
 * STATUS_MALFORMED: its secret does not open. */
MUST_CHECK enum status provider_trial_run(struct platform_store *store,
                                          const struct provider_trial_options *options,
                                          struct provider_trial *trial, struct error *error);

/* The call and its outcome, as members of a JSON object. */
void provider_trial_write(struct json_writer *json, const char *provider_id,
                          const struct provider_trial *trial);
