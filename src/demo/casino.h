#ifndef CROUPIER_DEMO_CASINO_H
#define CROUPIER_DEMO_CASINO_H

#include "base/text.h"
#include "records/provider.h"
#include "records/secrets.h"
#include "stores/platform.h"

/*
 * The casino of `croupier demo`: a provider with some dozens of invented games, and the provider's
 * own side (demo/wheel.h), which all of them lead to.
 */
#define DEMO_PROVIDER "dune-studio"
#define DEMO_GAME \
    "anubis-falls" /* for the commands on the screen; can be played for EUR, and in demo */

/* Zeros before demo_casino_prepare; unchanged from demo_casino_open to demo_casino_clear, so that
 * any thread may read it. */
struct demo_casino {
    struct secrets *secrets;                /* seals those of the provider */
    struct platform_store_options platform; /* `uri` is borrowed */
    char *wallet_url;                       /* of POST /provider/v1/wallet */
};

/* Adds the provider (with a secret of its own) and its games when there is no such provider; else
 * leaves all as an operator may have changed it. `added` says which it was. `secrets` becomes the
 * casino's, whatever the status. Blocks. */
MUST_CHECK enum status demo_casino_prepare(struct demo_casino *casino, struct platform_store *store,
                                           struct secrets *secrets, int64_t now_ms, bool *added,
                                           struct error *error);

/* Opens it: launches lead to this page from now on ("http://127.0.0.1:9090/demo/play"), whose games
 * move money at this URL. Blocks. */
MUST_CHECK enum status demo_casino_open(struct demo_casino *casino,
                                        const struct platform_store_options *platform,
                                        const char *page_url, const char *wallet_url,
                                        struct error *error);

void demo_casino_clear(struct demo_casino *casino);

/* The provider's secrets as they are now, the newest first, which signs. The caller wipes them,
 * whatever the status. Blocks. */
struct demo_secrets {
    struct demo_secret {
        char kid[PROVIDER_KID_SIZE]; /* "": none */
        struct buffer plain;
    } each[PROVIDER_SECRETS_MAX];
    size_t count;
};
MUST_CHECK enum status demo_secrets_read(const struct demo_casino *casino,
                                         struct demo_secrets *secrets, struct error *error);
void demo_secrets_wipe(struct demo_secrets *secrets);

#endif
