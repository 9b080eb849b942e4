#pragma once

#include "http/http.h"
#include "sealing/secrets.h"
#include "stores/platform.h"

/*
 * The casino of `croupier demo`: a provider with some dozens of invented games, and a small version
 * of the provider's own side (docs/providers.md): the page that launches lead to, and rounds on a
 * wheel of ten sectors. It knows only what the token says about a player. It moves money and reads
 * the balance by signed calls of POST /provider/v1/wallet, as a provider on another machine does.
 *
 *   GET  DEMO_PAGE?token=…   the page, wheel.html as it is; wheel.js asks for the rest.
 *   POST DEMO_PAGE?token=…   without a body: the session. The token's signature, audience and time
 *                            are checked; the answer is its claims, and croupier's of BALANCE.
 *                            {"stake_minor": 100}: one round, with croupier's answer to its CREDIT.
 *
 * Answers are JSON; a refusal is {"error", "message"}, croupier's own word for word.
 *
 * A round is a DEBIT, then the draw, then a CREDIT that settles it, of 0 after a loss. A call
 * without an answer is sent again with its id. A DEBIT that still has no answer is rolled back. A
 * CREDIT that still has no answer is only reported to the player; a real provider keeps it and
 * retries. The token is the player's session once the page is open; croupier decides how long after
 * a launch it takes stakes. In mode demo there are no calls and no money moves.
 */
#define DEMO_PROVIDER "dune-studio"
#define DEMO_GAME \
    "anubis-falls" /* for the commands on the screen; playable for EUR and in mode demo */
#define DEMO_PAGE "/demo/play"
#define DEMO_STAKE_MAX 100000 /* in the currency's minor unit */

/* Unchanged from demo_casino_open to demo_casino_clear, so that any thread may read it. */
struct demo_casino {
    struct secrets *secrets;                /* seals the provider's secrets; owned */
    struct platform_store_options platform; /* `uri` is borrowed */
    char *wallet_url;                       /* of POST /provider/v1/wallet; owned */
};

/* Adds the provider (with a new secret) and its games if the provider does not exist; else keeps an
 * operator's changes. Sets `secrets`. Blocks. */
MUST_CHECK enum status demo_casino_prepare(struct demo_casino *casino, struct platform_store *store,
                                           int64_t now_ms, struct error *error);

/* Opens the casino: launches lead to `page_url` from now on ("http://127.0.0.1:9090/demo/play"),
 * and rounds call `wallet_url`. Blocks. */
MUST_CHECK enum status demo_casino_open(struct demo_casino *casino,
                                        const struct platform_store_options *platform,
                                        const char *page_url, const char *wallet_url,
                                        struct error *error);

void demo_casino_clear(struct demo_casino *casino);

/* Answers requests for DEMO_PAGE and the files of its page. False: another path, and nothing was
 * done. `casino` is a struct demo_casino that stays open until the loop has ended. Call it on the
 * loop's thread. A thread of libuv's pool makes the calls to croupier, each of at most 8 seconds,
 * so that the loop does not wait. */
bool demo_casino_handle(void *casino, uv_loop_t *loop, struct http_request *request);
