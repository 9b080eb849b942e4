#pragma once

#include "http/http.h"

/* Errors of the wallet beside those of games/errors.h. */
#define WALLET_ERRORS(ROW, CAUSE)                                                    \
    ROW(player_not_found, 404, "Player not found")                                   \
    ROW(reference_not_found, 404, "Referenced transaction not found")                \
    ROW(transaction_conflict, 409, "The transaction id belongs to another request.") \
    ROW(transaction_rolled_back, 409, "The transaction was rolled back.")            \
    ROW(already_rolled_back, 409, "The transaction is rolled back already.")         \
    ROW(already_settled, 409, "The transaction is settled already.")                 \
    ROW(not_rollbackable, 409, "A rollback cannot be rolled back.")                  \
    ROW(session_expired, 422, "The launch does not allow a stake any more.")         \
    ROW(currency_mismatch, 422, "The currency is not the player's.")                 \
    ROW(insufficient_funds, 422, "The balance is too low.")                          \
    ROW(balance_limit_exceeded, 422, "The balance would exceed its limit.")          \
    CAUSE(wallet_outcome_unknown, HTTP_INTERNAL_ERROR)                               \
    CAUSE(wallet_unanswered, HTTP_INTERNAL_ERROR)

WALLET_ERRORS(HTTP_ERROR_DECLARE, HTTP_ERROR_DECLARE)
extern const struct http_error *const wallet_errors[]; /* all of them, then NULL */
