/* Tails; see tail.h. Rows are written by the functions that write them in lists and exports. */
#include "operator/tail.h"

#include <inttypes.h>
#include <string.h>

#include "operator/documents.h"
#include "operator/trail.h"

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
    tail->more = tail->ledger.more;
    tail->whole = tail->ledger.whole;
    return status;
}

static bool write_change(void *context, const void *record)
{
    struct tail *tail = context;
    struct json_writer line;
    struct json_writer *json = begin_row(tail, &line);
    fields_write(trail_resource.fields, record, json);
    end_row(tail, json);
    return true;
}

/* The trail has no gap, so a page ends a fixed number of rows behind its start, whatever it
 * shows. */
static enum status read_trail(struct tail *tail, struct platform_store *store, struct error *error)
{
    uint64_t last = 0;
    tail->trail.limit = LEDGER_PAGE;
    enum status status =
        platform_trail_after(store, tail->place, &tail->trail, &last, write_change, tail, error);
    if (status == STATUS_OK && last < tail->place)
        status = error_set(error, STATUS_MALFORMED,
                           "%s: the audit trail ends with row %" PRIu64 ", before row %" PRIu64
                           ": this is another store, or it has lost its newest rows",
                           store->location, last, tail->place);
    if (status != STATUS_OK)
        return status;
    tail->more = last - tail->place > LEDGER_PAGE;
    tail->place = tail->more ? tail->place + LEDGER_PAGE : last;
    tail->whole = !tail->more;
    return STATUS_OK;
}

enum status tail_read(struct tail *tail, struct platform_store *store, struct error *error)
{
    return tail->of == TAIL_LEDGER ? read_ledger(tail, store, error)
                                   : read_trail(tail, store, error);
}
