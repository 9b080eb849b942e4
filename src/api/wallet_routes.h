#ifndef CROUPIER_API_WALLET_ROUTES_H
#define CROUPIER_API_WALLET_ROUTES_H

#include "base/mailbox.h"
#include "games/games.h"
#include "http/http.h"
#include "wallet/ledger.h"
#include "wallet/request.h"

/*
 * POST /api/v1/casino/wallet and POST /provider/v1/wallet (docs/wallet.md): from a request to a
 * job of the ledger and from its answer to a reply. One handler a serving thread; everything
 * runs on that thread.
 *
 * A request waits for its batch at most WALLET_QUEUE_MS (then 503 ledger_unavailable, and it is
 * surely not applied) and for an answer at most WALLET_ANSWER_MS (then 500 internal_error: the
 * outcome is unknown). A submitted request is done in any case.
 */
#define WALLET_QUEUE_MS 2000U
#define WALLET_ANSWER_MS 10000U

struct wallet_handler;

/* The ledger is borrowed, and so is the mailbox, which must be the thread's own. */
struct wallet_handler *wallet_handler_create(struct ledger *ledger, struct mailbox *mailbox);

/* When no request is left; answers that are still under way find their way through the mailbox. The
 * loop must run once more. */
void wallet_handler_destroy(struct wallet_handler **handler);

/* Of an admitted customer that may use the casino, or of an admitted provider, by its id. Replies
 * at once or later. The games are asked for the game that a DEBIT names. */
void wallet_route(struct wallet_handler *handler, struct games_pages *games,
                  struct http_request *request, enum wallet_client client, const char *id);

#endif
