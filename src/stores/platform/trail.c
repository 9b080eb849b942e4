/*
 * The audit trail in any engine; see trail.h. A transaction that adds a row takes the row's number
 * from the trail's counter and holds the counter until the commit, so rows are numbered in the
 * order of commits. Every change locks the counter of its own records first and the trail's counter
 * second, so that no two wait for each other.
 */
#include "stores/platform/trail.h"

#include "base/clock.h"
#include "stores/platform/records.h"

const char trail_lock[] = "UPDATE audit_revision SET revision = revision";

/* ---- reading a record ------------------------------------------------------------------------ */

void trail_read(struct trail_reading *reading, struct sql_query *query)
{
    trail_image_clear(reading->image);
    query->row = trail_on_row;
    query->context = reading;
}

bool trail_on_row(void *context, const struct sql_row *row)
{
    const struct trail_reading *reading = context;
    const struct record_table *table = reading->table;
    trail_image_begin(reading->image, table);
    for (size_t i = 0; i < table->column_count; i++) {
        struct column_value value = row->value(row, (int)i, table->columns[i].type->kind);
        trail_image_add(reading->image, i, &value);
    }
    return false; /* there is at most one row */
}

/* ---- writing --------------------------------------------------------------------------------- */

static void copy_string(char *out, size_t room, const char *from)
{
    size_t size = strlen(from);
    CHECK(size < room);
    memcpy(out, from, size + 1);
}

static void sign(struct trail_row *row, const struct platform_store *store, const char *kind,
                 const char *object)
{
    struct trail_record *record = &row->record;
    *record = (struct trail_record){.at_ms = clock_wall_ms(),
                                    .before = buffer_text(&row->before),
                                    .after = buffer_text(&row->after)};
    copy_string(record->who, sizeof record->who, store->author.who);
    copy_string(record->command, sizeof record->command, store->author.command);
    copy_string(record->kind, sizeof record->kind, kind);
    copy_string(record->object, sizeof record->object, object);
}

bool trail_row_make(struct trail_row *row, const struct platform_store *store,
                    const struct trail_image *before, const struct trail_image *after)
{
    if (store->copying || after->table->unaudited || !trail_images_differ(before, after))
        return false;
    buffer_clear(&row->before);
    buffer_clear(&row->after);
    trail_images_write(before, after, &row->before, &row->after);
    sign(row, store, after->table->what, after->object);
    return true;
}

void trail_row_free(struct trail_row *row)
{
    buffer_free(&row->before);
    buffer_free(&row->after);
}

void trail_row_add(const struct trail_row *row, struct sql_flight *flight)
{
    (void)sql_flight_of(flight, &trail_table, STATEMENT_TAKE_REVISION, NULL);
    (void)sql_flight_of(flight, &trail_table, STATEMENT_ADD, &row->record);
}

enum status trail_write(struct sql_flight *flight, const struct trail_image *before,
                        const struct trail_image *after, bool last, struct error *error)
{
    struct trail_row row = {0};
    if (trail_row_make(&row, flight->store, before, after))
        trail_row_add(&row, flight);
    enum status status = sql_flight_run(flight, last, error);
    trail_row_free(&row);
    return status;
}

enum status trail_event(struct sql_flight *flight, struct trail_row *row, const char *kind,
                        const char *object, struct error *error)
{
    sign(row, flight->store, kind, object);
    trail_row_add(row, flight);
    enum status status = sql_flight_run(flight, true, error);
    trail_row_free(row);
    return status;
}
