#pragma once

#include "http/http.h"
#include "sports/error_rows.h"

/* The error that a client gets for a store's status; `not_found` is the caller's. Not for OK and
 * PENDING. */
const struct http_error *sports_error_of(enum status status, const struct http_error *not_found);
