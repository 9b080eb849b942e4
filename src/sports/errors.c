/* Which error answers what; see errors.h. */
#include "sports/errors.h"

const struct http_error *sports_error_of(enum status status, const struct http_error *not_found)
{
    CHECK(status != STATUS_OK && status != STATUS_PENDING);
    static const struct http_error *const errors[] = {
        [STATUS_MALFORMED] = &error_malformed_upstream_data,
        [STATUS_UNAVAILABLE] = &error_cache_unavailable,
        [STATUS_TIMEOUT] = &error_cache_timeout,
        [STATUS_FULL] = &error_odds_queue_full,
    };
    const struct http_error *error =
        status < sizeof errors / sizeof errors[0] ? errors[status] : NULL;
    if (status == STATUS_NOT_FOUND)
        error = not_found;
    return error != NULL ? error : &error_bug;
}
