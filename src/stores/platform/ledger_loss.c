/* Going on without rows that the ledger has lost: an operator says so, and the audit trail keeps
 * it. */
#include "stores/platform/trail.h"

static enum status note(struct sql_flight *flight, void *context, struct error *error)
{
    const struct ledger_end *end = context;
    struct trail_row row = {0};
    buffer_append_format(&row.before, "{\"last\":%" PRId64 "}", end->acknowledged);
    buffer_append_format(&row.after, "{\"last\":%" PRId64 "}", end->last);
    return trail_event(flight, &row, "ledger", "last transaction", error);
}

enum status platform_ledger_check_end(struct platform_store *store, struct ledger_end *end,
                                      struct error *error)
{
    return store->ledger->check_end != NULL ? store->ledger->check_end(store, end, error)
                                            : STATUS_OK;
}

enum status platform_ledger_accept_loss(struct platform_store *store, int64_t last,
                                        struct ledger_end *end, struct error *error)
{
    enum status status = platform_ledger_check_end(store, end, error);
    if (status == STATUS_OK)
        return error_conflict(error, "the ledger has lost nothing that is known of");
    if (status != STATUS_MALFORMED || end->last != last)
        return status;
    /* The row first: it may tell of an attempt that failed, but no loss goes without one. */
    status = sql_transact(store, note, end, error);
    return status == STATUS_OK ? store->ledger->accept_end(store, last, error) : status;
}
