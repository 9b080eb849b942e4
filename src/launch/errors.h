#pragma once

#include "http/http.h"

/* Errors of a launch beside those of games/errors.h. */
#define LAUNCH_ERRORS(ROW)                                                      \
    ROW(mode_not_supported, 422, "The game cannot be played in this mode.")     \
    ROW(currency_not_supported, 422, "The game does not offer this currency.")  \
    ROW(language_not_supported, 422, "The game does not offer this language.")  \
    ROW(device_not_supported, 422, "The game does not support this device.")    \
    ROW(country_not_supported, 422, "The game is not offered in this country.") \
    ROW(provider_unavailable, 503, "The provider is unavailable. Try again later.")

LAUNCH_ERRORS(HTTP_ERROR_DECLARE)
extern const struct http_error *const launch_errors[]; /* all of them, then NULL */
