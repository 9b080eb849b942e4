/* See reasons.h. The lists of the domains, one after the other. */
#include "api/reasons.h"

#include "account/error_rows.h"
#include "admission/error_rows.h"
#include "api/error_rows.h"
#include "base/status.h"
#include "games/errors.h"
#include "launch/error_rows.h"
#include "sports/errors.h"
#include "wallet/error_rows.h"

static const struct http_error *const *const lists[] = {
    http_errors,   admission_errors, sports_errors,  games_errors,
    launch_errors, wallet_errors,    account_errors, api_errors};

const struct http_error *reason_at(size_t number)
{
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (size_t j = 0; lists[i][j] != NULL; j++)
            if (number-- == 0)
                return lists[i][j];
    return NULL;
}

size_t reason_number(const struct http_error *error)
{
    size_t number = 0;
    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
        for (size_t j = 0; lists[i][j] != NULL; j++, number++)
            if (lists[i][j] == error)
                return number;
    check_failed("the error is in a list", __FILE__, __LINE__, __func__);
}
