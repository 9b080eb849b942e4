/*
 * A tail of the ledger; see platform_ledger_tail. A page begins with the last entry that was
 * visited: if it is not there, or has another hash, the entries that follow are not those of the
 * same ledger.
 */

#include "stores/platform/ledger/reads.h"
#include "stores/platform_entries.h"

struct page {
    struct platform_store *store;
    struct ledger_tail *tail;
    ledger_numbered_visitor *visit;
    void *context;
    bool expects_place; /* the next row has to be the entry at the place */
    size_t count;
};

static enum status lost_place(const struct page *page, struct error *error)
{
    page->tail->lost = true;
    return error_set(error, STATUS_MALFORMED,
                     "%s: entry %lld is not the one that was read before: this is another ledger, "
                     "or it has lost its newest entries",
                     page->store->location, (long long)page->tail->place);
}

static enum status take_numbered(void *context, const struct sql_row *row, struct error *error)
{
    struct page *page = context;
    struct ledger_tail *tail = page->tail;
    struct ledger_transaction entry;
    const int64_t number = sql_integer(row, LEDGER_TRANSACTION_COLUMN_COUNT);
    if (!ledger_read_row(page->store, row, &entry) || !ledger_is_entry(&entry))
        return platform_damaged_row(page->store, number, "it is malformed", error);
    bool is_place = page->expects_place;
    page->expects_place = false;
    if (is_place && (number != tail->place ||
                     (tail->known && memcmp(tail->hash, entry.hash, sizeof tail->hash) != 0)))
        return lost_place(page, error);
    tail->place = number;
    tail->known = true;
    memcpy(tail->hash, entry.hash, sizeof tail->hash);
    if (is_place)
        return STATUS_OK;
    bool of_one = tail->customer_id != NULL;
    tail->more = of_one && sql_integer(row, LEDGER_TRANSACTION_COLUMN_COUNT + 1) != 0;
    if (of_one && strcmp(tail->customer_id, entry.customer_id) != 0)
        return STATUS_OK;
    bool full = ++page->count == (of_one ? tail->limit : LEDGER_PAGE);
    tail->more = tail->more || full;
    return ledger_more(page->visit(page->context, number, &entry) && !full);
}

/* Returns how far the next page may go. */
static enum status find_horizon(struct platform_store *store, struct ledger_tail *tail,
                                struct error *error)
{
    struct ledger_horizon *horizon = &tail->horizon;
    horizon->complete = store->ledger->advance == NULL ? INT64_MAX : horizon->complete;
    enum status status =
        store->ledger->advance == NULL ? STATUS_OK : store->ledger->advance(store, horizon, error);
    if (status == STATUS_OK && tail->until == 0)
        tail->until = horizon->awaited > 0 ? horizon->awaited : horizon->complete;
    return status;
}

static enum status read_page(struct page *page, struct error *error)
{
    const struct ledger_tail *tail = page->tail;
    const struct sql_texts *texts = page->store->engine->texts;
    const int64_t complete = tail->horizon.complete;
    struct sql_parameters parameters = SQL_PARAMETERS(
        SQL_INTEGER(tail->place), SQL_INTEGER(complete > tail->place ? complete : tail->place));
    if (tail->customer_id != NULL)
        SQL_ADD(&parameters, SQL_STRING(tail->customer_id), SQL_INTEGER(tail->limit + 1));
    enum status status = ledger_read_page(
        page->store, tail->customer_id != NULL ? texts->tail_of_customer : texts->tail, &parameters,
        take_numbered, page, error);
    return status == STATUS_OK && page->expects_place ? lost_place(page, error) : status;
}

enum status platform_ledger_tail(struct platform_store *store, struct ledger_tail *tail,
                                 ledger_numbered_visitor *visit, void *context, struct error *error)
{
    struct page page = {.store = store,
                        .tail = tail,
                        .visit = visit,
                        .context = context,
                        .expects_place = tail->place > 0};
    tail->more = false;
    enum status status = find_horizon(store, tail, error);
    bool moved = tail->horizon.complete != tail->looked || store->ledger->advance == NULL ||
                 (tail->looked == 0 && tail->place > 0); /* is it there? */
    if (status == STATUS_OK && moved)
        status = read_page(&page, error);
    if (status != STATUS_OK) {
        tail->horizon = (struct ledger_horizon){0};
        tail->looked = 0;
    } else if (!tail->more) {
        tail->looked = tail->horizon.complete;
    }
    tail->whole = status == STATUS_OK && !tail->more && tail->horizon.complete >= tail->until;
    return status;
}
