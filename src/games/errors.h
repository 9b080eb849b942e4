#pragma once

#include "base/strict_json.h"
#include "http/http.h"

#define LEDGER_UNAVAILABLE \
    503, "ledger_unavailable", "The ledger is unavailable. Nothing was applied."

/* Errors that all routes of the casino share: lists of games, launches, the wallet. */
#define GAMES_ERRORS(ROW, CAUSE)                                                     \
    ROW(invalid_request, 400, "The request is not valid.")                           \
    ROW(unknown_field, 400, "The request has an unknown field.")                     \
    ROW(casino_access_disabled, 403, "Casino access is disabled for this customer.") \
    ROW(player_blocked, 403, "The player is blocked.")                               \
    ROW(game_not_found, 404, "Game not found")                                       \
    CAUSE(ledger_unreachable, LEDGER_UNAVAILABLE)                                    \
    CAUSE(ledger_late, LEDGER_UNAVAILABLE)                                           \
    CAUSE(ledger_disk_full, LEDGER_UNAVAILABLE)                                      \
    CAUSE(ledger_read_only, LEDGER_UNAVAILABLE)                                      \
    CAUSE(ledger_contended, LEDGER_UNAVAILABLE)                                      \
    CAUSE(ledger_queue_full, LEDGER_UNAVAILABLE)                                     \
    CAUSE(ledger_queued_too_long, LEDGER_UNAVAILABLE)

GAMES_ERRORS(HTTP_ERROR_DECLARE, HTTP_ERROR_DECLARE)
extern const struct http_error *const games_errors[]; /* all of them, then NULL */

/* The answer when the ledger's store fails with this status. */
const struct http_error *games_ledger_error(enum status status);

/* Refuses a request that could not be read: unknown_field or invalid_request, in these words. */
void games_reply_fault(struct http_request *request, enum strict_json fault, const char *message);
