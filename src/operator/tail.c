/* Tails; see tail.h. Rows are written by the functions that write them in lists and exports. */
#include "operator/tail.h"

#include "operator/documents.h"
#include "operator/tables.h"

/* The object of a row, open in a line of its own or in the array. */
static struct json_writer *begin_row(struct tail *tail, struct json_writer *line)
{
    *line = (struct json_writer){.out = tail->lines};
    struct json_writer *json = tail->array != NULL ? tail->array : line;
    json_object(json, NULL);
    return json;
}

static void end_row(struct tail *tail, struct json_writer *json)
{
    json_end(json);
    if (tail->array == NULL)
        buffer_append_char(tail->lines, '\n');
    tail->rows++;
}

static bool write_entry(void *context, int64_t number, const struct ledger_transaction *entry)
{
    struct tail *tail = context;
    struct json_writer line;
    if (tail->customer_id[0] != '\0' && strcmp(tail->customer_id, entry->customer_id) != 0)
        return true;
    struct json_writer *json = begin_row(tail, &line);
    json_integer(json, "number", number);
    wallet_write_transaction(json, entry);
    end_row(tail, json);
    return true;
}

/* The customer is there; and the place is where to begin. */
static enum status begin_ledger(struct tail *tail, struct platform_store *store,
                                struct error *error)
{
    struct customer_record customer;
    enum status status =
        tail->customer_id[0] == '\0'
            ? STATUS_OK
            : platform_get(store, &customer_table, tail->customer_id, &customer, error);
    tail->begun = status == STATUS_OK;
    tail->ledger.place = (int64_t)tail->place;
    return status;
}

static enum status read_ledger(struct tail *tail, struct platform_store *store, struct error *error)
{
    enum status status = tail->begun ? STATUS_OK : begin_ledger(tail, store, error);
    if (status != STATUS_OK)
        return status;
    status = platform_ledger_tail(store, &tail->ledger, write_entry, tail, error);
    tail->place = (uint64_t)tail->ledger.place;
    return status;
}

/* SHA-256 over the hash of the row before (32 zero bytes for the first one) and the row's values,
 * each ended by LF (docs/decisions/tails.md). */
static void chain_row(struct tail *tail, const struct trail_record *row)
{
    struct buffer text = {0};
    memcpy(tail->chained_before, tail->chained, sizeof tail->chained);
    buffer_append(&text, tail->chained, sizeof tail->chained);
    buffer_append_format(&text, "%" PRIu64 "\n%" PRId64 "\n%s\n%s\n%s\n%s\n", row->number,
                         row->at_ms, row->who, row->command, row->kind, row->object);
    buffer_append_text(&text, row->before);
    buffer_append_char(&text, '\n');
    buffer_append_text(&text, row->after);
    buffer_append_char(&text, '\n');
    digest_sha256(text.data, text.size, tail->chained);
    tail->chained_to = row->number;
    buffer_free(&text);
}

/* Shows what is behind the place; at the place it looks whether the row is the one that is
 * known. */
static bool take_change(void *context, const void *record)
{
    struct tail *tail = context;
    const struct trail_record *row = record;
    struct json_writer line;
    const bool is_place = row->number == tail->place;
    chain_row(tail, row);
    if (row->number < tail->place)
        return true;
    if (is_place && tail->ledger.known &&
        memcmp(tail->ledger.hash, tail->chained, sizeof tail->ledger.hash) != 0)
        return false;
    tail->place = row->number;
    tail->ledger.known = true;
    memcpy(tail->ledger.hash, tail->chained, sizeof tail->ledger.hash);
    if (is_place || !platform_trail_wants(&tail->trail, row))
        return true;
    struct json_writer *json = begin_row(tail, &line);
    fields_write(trail_resource.fields, row, json);
    json_hex(json, "hash", tail->chained, sizeof tail->chained);
    end_row(tail, json);
    return true;
}

/* Each page begins with the row at the place, and the first one with the first row of the trail,
 * because each hash is of all rows before it. */
static enum status read_trail(struct tail *tail, struct platform_store *store, struct error *error)
{
    const uint64_t place = tail->place;
    uint64_t last = 0;
    uint64_t from = 0;
    enum status status = STATUS_OK;
    if (tail->chained_to == place && place > 0) {
        tail->chained_to = place - 1;
        memcpy(tail->chained, tail->chained_before, sizeof tail->chained);
    }
    do {
        from = tail->chained_to;
        status = platform_trail_after(store, from, LEDGER_PAGE, &last, take_change, tail, error);
    } while (status == STATUS_OK && tail->chained_to > from && tail->chained_to < place);
    const bool is_there = place == 0 || tail->chained_to > place ||
                          (tail->chained_to == place &&
                           memcmp(tail->ledger.hash, tail->chained, sizeof tail->ledger.hash) == 0);
    if (status == STATUS_OK && !is_there)
        status = error_set(error, STATUS_MALFORMED,
                           "%s: row %" PRIu64 " of the audit trail, which ends with row %" PRIu64
                           ", is not the one that was read before: this is another store, or it "
                           "has lost its newest rows",
                           store->location, place, last);
    if (status != STATUS_OK)
        return status;
    tail->ledger.more = last > tail->place;
    tail->ledger.whole = !tail->ledger.more;
    return STATUS_OK;
}

enum status tail_read(struct tail *tail, struct platform_store *store, struct error *error)
{
    return tail->of == TAIL_LEDGER ? read_ledger(tail, store, error)
                                   : read_trail(tail, store, error);
}
