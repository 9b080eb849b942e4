#pragma once

#include "http/http.h"

/* Errors of the sports routes. */
#define SPORTS_ERRORS(ROW, CAUSE)                                         \
    ROW(invalid_sport, 400,                                               \
        "Unsupported sport. Supported sports: cricket, football, "        \
        "tennis, horse-racing, greyhound-racing")                         \
    ROW(invalid_event_id, 400, "Event id must be a positive integer.")    \
    ROW(sport_not_allowed, 403, "This sport is not enabled for your IP.") \
    ROW(event_not_found, 404, "Event not found")                          \
    ROW(odds_not_found, 404, "Odds not found")                            \
    ROW(malformed_upstream_data, 502, "The stored data cannot be read.")  \
    ROW(catalog_unavailable, 503, "Event data is not published yet.")     \
    ROW(cache_unavailable, 503, "The data store is unavailable.")         \
    ROW(cache_timeout, 504, "The data store timed out.")                  \
    CAUSE(reads_full, HTTP_OVERLOADED)                                    \
    CAUSE(odds_queue_full, HTTP_OVERLOADED)                               \
    CAUSE(odds_keep_changing, HTTP_OVERLOADED)                            \
    CAUSE(too_many_waits, HTTP_ANSWERED_AT_ONCE)                          \
    CAUSE(waits_of_customer, HTTP_ANSWERED_AT_ONCE)

SPORTS_ERRORS(HTTP_ERROR_DECLARE, HTTP_ERROR_DECLARE)
extern const struct http_error *const sports_errors[]; /* all of them, then NULL */

/* The error that a client gets for a store's status; `not_found` is the caller's. Not for OK and
 * PENDING. */
const struct http_error *sports_error_of(enum status status, const struct http_error *not_found);
