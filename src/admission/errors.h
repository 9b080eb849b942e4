#pragma once

#include "http/http.h"

#define IP_NOT_ALLOWED 403, "ip_not_allowed", "Client address is not allowed."
#define NOT_ADMITTED 403, "not_admitted", "Not admitted."
#define SECURITY_CONFIG_UNAVAILABLE \
    503, "security_config_unavailable", "The access policy could not be read."

/* Refusals by admission and the rate limit. The first ones are in the order of enum
 * admission_denial, each its reason. */
#define ADMISSION_ERRORS(ROW, CAUSE)                                               \
    CAUSE(no_policy, IP_NOT_ALLOWED)                                               \
    CAUSE(unusable_key, IP_NOT_ALLOWED)                                            \
    CAUSE(unknown_key, IP_NOT_ALLOWED)                                             \
    CAUSE(revoked_key, IP_NOT_ALLOWED)                                             \
    CAUSE(expired_key, IP_NOT_ALLOWED)                                             \
    CAUSE(customer_disabled, IP_NOT_ALLOWED)                                       \
    CAUSE(address_not_listed, IP_NOT_ALLOWED)                                      \
    CAUSE(unknown_address, IP_NOT_ALLOWED)                                         \
    CAUSE(policies_unconfirmed, SECURITY_CONFIG_UNAVAILABLE)                       \
    CAUSE(no_key, IP_NOT_ALLOWED)                                                  \
    CAUSE(unknown_provider, NOT_ADMITTED)                                          \
    CAUSE(timestamp, NOT_ADMITTED)                                                 \
    CAUSE(signature, NOT_ADMITTED)                                                 \
    CAUSE(provider_address_not_listed, NOT_ADMITTED)                               \
    CAUSE(provider_unknown_address, NOT_ADMITTED)                                  \
    CAUSE(connections_of_customer, HTTP_OVERLOADED)                                \
    ROW(rate_limited, 429, "The request budget of the current window is used up.") \
    CAUSE(games_unconfirmed, SECURITY_CONFIG_UNAVAILABLE)

ADMISSION_ERRORS(HTTP_ERROR_DECLARE, HTTP_ERROR_DECLARE)
extern const struct http_error *const admission_errors[]; /* all of them, then NULL */
