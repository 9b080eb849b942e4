/* The rows of errors.h as objects. */
#include "sports/errors.h"

HTTP_ERROR_TABLE(sports, SPORTS_ERRORS);

const struct http_error *sports_error_of(enum status status, const struct http_error *not_found)
{
    CHECK(status != STATUS_OK && status != STATUS_PENDING);
    switch (status) {
    case STATUS_NOT_FOUND:
        CHECK(not_found != NULL);
        return not_found;
    case STATUS_MALFORMED:
        return &error_malformed_upstream_data;
    case STATUS_UNAVAILABLE:
        return &error_cache_unavailable;
    case STATUS_TIMEOUT:
        return &error_cache_timeout;
    case STATUS_FULL:
        return &error_overloaded;
    default:
        return &error_internal_error;
    }
}
