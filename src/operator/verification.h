#pragma once

#include "records/trail.h"
#include "stores/ledger_audit.h"
#include "stores/platform_verifications.h"

/*
 * `wallet_verify` beside other work: on a thread of its own with two handles of the store, one run
 * at a time. It costs the ledger as much as the command `croupier wallet verify`. The result is
 * kept in the store and is a row of the audit trail; a run that was interrupted leaves neither.
 *
 * Threads: any.
 */
struct verification;

enum verification_stage {
    VERIFICATION_NONE,    /* since this was made */
    VERIFICATION_RUNNING, /* `done` of `total` entries */
    VERIFICATION_SOUND,
    VERIFICATION_BROKEN, /* `message` and `result.broken` say where */
    VERIFICATION_FAILED, /* it came to no end, as `message` says */
};
extern const struct enum_names verification_stages;

struct verification_state {
    enum verification_stage stage;
    char who[TRAIL_WHO_SIZE];
    int64_t started_ms, ended_ms; /* wall clock; 0: not yet */
    uint64_t done, total;
    struct audit_result result; /* when it has ended */
    char message[ERROR_TEXT_SIZE];
};

/* `store` is borrowed, with what it points to. */
struct verification *verification_create(const struct platform_store_options *store);
/* Stops what runs, and waits for that: a second or so. */
void verification_destroy(struct verification **verification);

/* `who`: as for platform_store_act_as. STATUS_CONFLICT: one is under way. */
MUST_CHECK enum status verification_start(struct verification *verification, const char *who,
                                          const char *command, int64_t now_ms, struct error *error);
void verification_look(struct verification *verification, struct verification_state *state);

/* ---- the last ones --------------------------------------------------------------------------- */

/*
 * The time and outcome of the ledger's last verifications, for the metrics. A refresher
 * (stores/refresher.h), whose table is a struct verifications, reads them from the store every few
 * seconds, and logs where the store does.
 */
struct refresher *last_verifications_create(const struct platform_store_options *store);
extern const struct metric verification_metrics[]; /* of a struct verifications */
