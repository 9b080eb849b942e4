/* Which error answers what; see errors.h. */
#include "games/errors.h"

void games_reply_fault(struct http_request *request, enum strict_json fault, const char *message)
{
    http_reply_error_as(
        request, fault == STRICT_JSON_UNKNOWN_FIELD ? &error_unknown_field : &error_invalid_request,
        message);
}

const struct http_error *games_ledger_error(enum status status)
{
    return status == STATUS_TIMEOUT     ? &error_ledger_late
           : status == STATUS_FULL      ? &error_ledger_disk_full
           : status == STATUS_READ_ONLY ? &error_ledger_read_only
           : status == STATUS_CONFLICT  ? &error_ledger_contended
                                        : &error_ledger_unreachable;
}
