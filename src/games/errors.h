#pragma once

#include "base/strict_json.h"
#include "http/http.h"

/* Errors that all routes of the casino share: lists of games, launches, the wallet. */
#define GAMES_ERRORS(ROW)                                                            \
    ROW(invalid_request, 400, "The request is not valid.")                           \
    ROW(unknown_field, 400, "The request has an unknown field.")                     \
    ROW(casino_access_disabled, 403, "Casino access is disabled for this customer.") \
    ROW(player_blocked, 403, "The player is blocked.")                               \
    ROW(game_not_found, 404, "Game not found")                                       \
    ROW(ledger_unavailable, 503, "The ledger is unavailable. Nothing was applied.")

GAMES_ERRORS(HTTP_ERROR_DECLARE)
extern const struct http_error *const games_errors[]; /* all of them, then NULL */

/* Refuses a request that could not be read: unknown_field or invalid_request, in these words. */
void games_reply_fault(struct http_request *request, enum strict_json fault, const char *message);
