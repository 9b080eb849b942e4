#pragma once

#include "http/http.h"

#define PROVIDER_UNAVAILABLE \
    503, "provider_unavailable", "The provider is unavailable. Try again later."

/* Errors of a launch beside those of games/errors.h. */
#define LAUNCH_ERRORS(ROW, CAUSE)                                               \
    ROW(mode_not_supported, 422, "The game cannot be played in this mode.")     \
    ROW(currency_not_supported, 422, "The game does not offer this currency.")  \
    ROW(language_not_supported, 422, "The game does not offer this language.")  \
    ROW(device_not_supported, 422, "The game does not support this device.")    \
    ROW(country_not_supported, 422, "The game is not offered in this country.") \
    CAUSE(launches_full, HTTP_OVERLOADED)                                       \
    CAUSE(provider_without_secret, PROVIDER_UNAVAILABLE)                        \
    CAUSE(provider_refused, PROVIDER_UNAVAILABLE)                               \
    CAUSE(provider_malformed, PROVIDER_UNAVAILABLE)                             \
    CAUSE(provider_timeout, PROVIDER_UNAVAILABLE)                               \
    CAUSE(provider_unreachable, PROVIDER_UNAVAILABLE)                           \
    CAUSE(provider_untrusted, PROVIDER_UNAVAILABLE)                             \
    CAUSE(provider_broken, PROVIDER_UNAVAILABLE)                                \
    CAUSE(provider_calls_full, PROVIDER_UNAVAILABLE)                            \
    CAUSE(provider_cancelled, PROVIDER_UNAVAILABLE)

LAUNCH_ERRORS(HTTP_ERROR_DECLARE, HTTP_ERROR_DECLARE)
extern const struct http_error *const launch_errors[]; /* all of them, then NULL */
