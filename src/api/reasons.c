/* See reasons.h. The lists of the domains, one after the other. */
#include "api/reasons.h"

#include "admission/errors.h"
#include "base/status.h"
#include "games/errors.h"
#include "launch/errors.h"
#include "sports/errors.h"
#include "wallet/errors.h"

static const struct http_error *const *const lists[] = {
    http_errors, admission_errors, sports_errors, games_errors, launch_errors, wallet_errors};

/* The number of the error; of NULL, how many there are. */
static size_t find(const struct http_error *error, const struct http_error **at, size_t number)
{
    size_t count = 0;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (size_t j = 0; lists[i][j] != NULL; j++, count++) {
            if (lists[i][j] == error)
                return count;
            if (at != NULL && count == number)
                *at = lists[i][j];
        }
    return count;
}

size_t reason_count(void)
{
    return find(NULL, NULL, 0);
}

const struct http_error *reason_at(size_t number)
{
    const struct http_error *found = NULL;
    (void)find(NULL, &found, number);
    CHECK(found != NULL);
    return found;
}

size_t reason_number(const struct http_error *error)
{
    size_t number = find(error, NULL, 0);
    CHECK(number < reason_count() && number < REASONS_MAX);
    return number;
}
