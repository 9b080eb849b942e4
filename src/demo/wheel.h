#ifndef CROUPIER_DEMO_WHEEL_H
#define CROUPIER_DEMO_WHEEL_H

#include "demo/casino.h"
#include "http/http.h"

/*
 * What a provider does, in small (docs/providers.md): a page where launches lead to, and a wheel of
 * ten sectors that is played there. It knows of a player what the token says and nothing else; the
 * money is moved, and the balance is read, by signed calls of POST /provider/v1/wallet, as from any
 * other machine.
 *
 *   GET  WHEEL_PATH?token=…   the page. The token's signature, audience and time are checked.
 *   POST WHEEL_PATH?token=…   {"stake_minor": 100}: one round. What it says is answered as JSON,
 *                             a refusal as {"error", "message"}, croupier's own word for word.
 *
 * A round is a DEBIT, then the draw, then a CREDIT that settles it, of 0 when nothing was won. A
 * call without an answer is sent again with its id; a DEBIT that still has none is rolled back.
 * A CREDIT that still has none is only said to who plays; a real provider keeps it, and goes on.
 * The token, once the page is open, is the session of who plays: croupier says how long after a
 * launch stakes are taken. With mode demo nothing is called and no money moves.
 */
#define WHEEL_PATH "/demo/play"
#define WHEEL_STAKE_MAX 100000 /* in the currency's minor unit */

/* Answers requests for WHEEL_PATH and the files that its page has; false, and nothing done: another
 * path. `casino` is a struct demo_casino that is open, until the loop has ended. While croupier is
 * asked, which takes 8 seconds at most for each call, a thread of libuv's pool waits; the loop, on
 * whose thread this is called, goes on. */
bool wheel_handle(void *casino, uv_loop_t *loop, struct http_request *request);

#endif
