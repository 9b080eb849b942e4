#ifndef CROUPIER_DEMO_CASINO_H
#define CROUPIER_DEMO_CASINO_H

#include "http/http.h"
#include "records/secrets.h"
#include "stores/platform.h"

/*
 * The casino of `croupier demo`: a provider with some dozens of invented games, and the provider's
 * side of a launch, which is a page on the operator listener that shows what the provider learns
 * from the token, and the balance of a player who plays for money.
 */
#define DEMO_PROVIDER "dune-studio"
#define DEMO_GAME \
    "anubis-falls" /* for the commands on the screen; can be played for EUR, and in demo */
#define DEMO_PAGE_PATH "/demo/play"

/* What the page needs: made by demo_casino_prepare, wiped by demo_casino_clear. */
struct demo_casino {
    struct buffer secret; /* the provider's */
    uint8_t subject_key[SECRETS_KEY_SIZE];
    char *platform_uri; /* set by demo_casino_set_url */
    uint32_t platform_timeout_ms;
};

/* Adds the provider (with a secret of its own) and its games when there is no such provider; else
 * leaves all as an operator may have changed it, and reads its secret. `added` says which it was.
 * Blocks. */
MUST_CHECK enum status demo_casino_prepare(struct demo_casino *casino, struct platform_store *store,
                                           const struct secrets *secrets, int64_t now_ms,
                                           bool *added, struct error *error);

/* Lets launches lead to this page: "http://127.0.0.1:9090/demo/play". */
MUST_CHECK enum status demo_casino_set_url(struct demo_casino *casino, const char *platform_uri,
                                           uint32_t timeout_ms, const char *url,
                                           struct error *error);

/* Answers GET DEMO_PAGE_PATH?token=…; false, and nothing done: another path. Blocks while it looks
 * for the player's balance in the platform store, which a real provider has no need to and cannot:
 * it would ask the customer. */
bool demo_casino_page(void *casino, struct http_request *request);

void demo_casino_clear(struct demo_casino *casino);

#endif
