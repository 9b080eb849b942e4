#pragma once

#include "games/games.h"
#include "wallet/ledger.h"
#include "wallet/request.h"

/*
 * POST /api/v1/casino/wallet and POST /provider/v1/wallet (docs/wallet.md): turns a request into a
 * job of the ledger, and the job's result into a reply. Each serving thread has one handler;
 * everything runs on that thread.
 *
 * A request waits at most WALLET_QUEUE_MS for its batch; then it is not applied, and the answer is
 * 503 ledger_unavailable. It waits at most WALLET_ANSWER_MS for the ledger's answer; then the
 * outcome is unknown, and the answer is 500 internal_error. The ledger processes every request that
 * was not taken back, even if its client has closed.
 */
#define WALLET_QUEUE_MS 2000U
#define WALLET_ANSWER_MS 10000U

struct wallet_handler;

/* Borrows the ledger and the mailbox, which must be this thread's. */
struct wallet_handler *wallet_handler_create(struct ledger *ledger, struct mailbox *mailbox);

/* Call it when no request is left. The ledger's remaining answers still arrive through the mailbox.
 * The loop must run once more. */
void wallet_handler_destroy(struct wallet_handler **handler);

/* Handles a wallet request of an admitted customer with casino access, or of an admitted provider;
 * `id` is the caller's. Replies at once or later. `games` looks up the game that a DEBIT names. */
void wallet_route(struct wallet_handler *handler, struct games_pages *games,
                  struct http_request *request, enum wallet_client client, const char *id,
                  bool sandbox);
