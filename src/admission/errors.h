#pragma once

#include "http/http.h"

/* Refusals by admission and the rate limit. */
#define ADMISSION_ERRORS(ROW)                                                      \
    ROW(ip_not_allowed, 403, "Client address is not allowed.")                     \
    ROW(not_admitted, 403, "Not admitted.")                                        \
    ROW(rate_limited, 429, "The request budget of the current window is used up.") \
    ROW(security_config_unavailable, 503, "The access policy could not be read.")

ADMISSION_ERRORS(HTTP_ERROR_DECLARE)
extern const struct http_error *const admission_errors[]; /* all of them, then NULL */
