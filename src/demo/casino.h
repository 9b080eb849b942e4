#ifndef CROUPIER_DEMO_CASINO_H
#define CROUPIER_DEMO_CASINO_H

#include "http/http.h"
#include "sealing/secrets.h"
#include "stores/platform.h"

/*
 * The casino of `croupier demo`: a provider with some dozens of invented games, and the provider's
 * own side in small (docs/providers.md): the page where launches lead to, and the rounds that are
 * played there, on a wheel of ten sectors. It knows of a player what the token says and nothing
 * else; the money is moved, and the balance is read, by signed calls of POST /provider/v1/wallet,
 * as from any other machine.
 *
 *   GET  DEMO_PAGE?token=…   the page, wheel.html as it is; wheel.js asks for the rest.
 *   POST DEMO_PAGE?token=…   without a body: the session. The token's signature, audience and time
 *                            are checked; the answer is its claims, and croupier's of BALANCE.
 *                            {"stake_minor": 100}: one round, with croupier's answer to its CREDIT.
 *
 * Answers are JSON; a refusal is {"error", "message"}, croupier's own word for word.
 *
 * A round is a DEBIT, then the draw, then a CREDIT that settles it, of 0 when nothing was won. A
 * call without an answer is sent again with its id; a DEBIT that still has none is rolled back.
 * A CREDIT that still has none is only said to the player; a real provider keeps it, and goes on.
 * The token, once the page is open, is the player's session: croupier says how long after a launch
 * stakes are taken. With mode demo nothing is called and no money moves.
 */
#define DEMO_PROVIDER "dune-studio"
#define DEMO_GAME \
    "anubis-falls" /* for the commands on the screen; can be played for EUR, and in demo */
#define DEMO_PAGE "/demo/play"
#define DEMO_STAKE_MAX 100000 /* in the currency's minor unit */

/* Unchanged from demo_casino_open to demo_casino_clear, so that any thread may read it. */
struct demo_casino {
    struct secrets *secrets;                /* seals those of the provider; owned */
    struct platform_store_options platform; /* `uri` is borrowed */
    char *wallet_url;                       /* of POST /provider/v1/wallet; owned */
};

/* Adds the provider (with a secret of its own) and its games when there is no such provider; else
 * leaves all as an operator may have changed it. `secrets` is set. Blocks. */
MUST_CHECK enum status demo_casino_prepare(struct demo_casino *casino, struct platform_store *store,
                                           int64_t now_ms, struct error *error);

/* Opens it: launches lead to this page from now on ("http://127.0.0.1:9090/demo/play"), whose games
 * move money at this URL. Blocks. */
MUST_CHECK enum status demo_casino_open(struct demo_casino *casino,
                                        const struct platform_store_options *platform,
                                        const char *page_url, const char *wallet_url,
                                        struct error *error);

void demo_casino_clear(struct demo_casino *casino);

/* Answers requests for DEMO_PAGE and the files that its page has; false, and nothing done: another
 * path. `casino` is a struct demo_casino that is open, until the loop has ended. While croupier is
 * asked, which takes 8 seconds at most for each call, a thread of libuv's pool waits; the loop, on
 * whose thread this is called, goes on. */
bool demo_casino_handle(void *casino, uv_loop_t *loop, struct http_request *request);

#endif
