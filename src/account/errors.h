#pragma once

#include "http/errors.h"

#define ACCOUNT_UNAVAILABLE \
    503, "account_unavailable", "The account cannot be read or changed now. Try again later."
#define ACCOUNT_BUSY 429, "rate_limited", "Too many requests of this account are under way."

/* Errors of /api/v1/account alone (docs/account.md). */
#define ACCOUNT_ERRORS(ROW, CAUSE)                                                             \
    ROW(area_not_allowed, 403, "The key may not use this part of the API.")                    \
    ROW(key_not_found, 404, "No live key of this account begins so.")                          \
    ROW(block_conflict, 409, "A block ends by itself, not earlier; or by early and a reason.") \
    ROW(blocked_by_operator, 409, "The operator blocks this player, and alone unblocks it.")   \
    ROW(key_ambiguous, 409, "Several live keys of this account begin so.")                     \
    ROW(too_many_keys, 409, "The key has made as many live keys as it may.")                   \
    CAUSE(account_busy, ACCOUNT_BUSY)                                                          \
    CAUSE(account_queue_full, HTTP_OVERLOADED)                                                 \
    CAUSE(account_store_unavailable, ACCOUNT_UNAVAILABLE)

ACCOUNT_ERRORS(HTTP_ERROR_DECLARE, HTTP_ERROR_DECLARE)
extern const struct http_error *const account_errors[]; /* all of them, then NULL */
