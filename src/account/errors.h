#pragma once

#include "http/errors.h"

#define ACCOUNT_UNAVAILABLE \
    503, "account_unavailable", "The account cannot be read or changed now. Try again later."
#define ACCOUNT_BUSY 429, "rate_limited", "Too many requests of this account are under way."

/* Errors of /api/v1/account alone (docs/account.md). */
#define ACCOUNT_ERRORS(ROW, CAUSE)                                          \
    ROW(area_not_allowed, 403, "The key may not use this part of the API.") \
    CAUSE(account_busy, ACCOUNT_BUSY)                                       \
    CAUSE(account_queue_full, HTTP_OVERLOADED)                              \
    CAUSE(account_store_unavailable, ACCOUNT_UNAVAILABLE)

ACCOUNT_ERRORS(HTTP_ERROR_DECLARE, HTTP_ERROR_DECLARE)
extern const struct http_error *const account_errors[]; /* all of them, then NULL */
