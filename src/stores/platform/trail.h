#pragma once

#include "records/trail.h"
#include "stores/platform/engine.h"

/*
 * Writing the audit trail, in the transaction of the change itself; for the files in
 * stores/platform/. record_change (records.h) writes its own row. Other code takes an image of the
 * record before and after, and calls trail_write, or makes the rows of many records and writes them
 * together.
 */

/* A query for all columns of a record (STATEMENT_GET), into an image, which is cleared first. The
 * image has no table afterwards when there is no such row. */
struct trail_reading {
    const struct record_table *table;
    struct trail_image *image;
};
void trail_read(struct trail_reading *reading, struct sql_query *query);
sql_row_reader trail_on_row; /* its context is a struct trail_reading */

/* A row of the trail. Zeroed at first. */
struct trail_row {
    struct trail_record record; /* borrows the texts: */
    struct buffer before, after;
};

/* Makes the row for a record that was `before` (which may be none) and is `after`. False: no row is
 * needed, since nothing differs, or the handle writes a copy. */
MUST_CHECK bool trail_row_make(struct trail_row *row, const struct platform_store *store,
                               const struct trail_image *before, const struct trail_image *after);
/* Adds the queries that write it; the row stays as it is until they have run. */
void trail_row_add(const struct trail_row *row, struct sql_flight *flight);
void trail_row_free(struct trail_row *row);

/* Adds the row of a change to the flight, and runs that; `last`: it ends its transaction. */
MUST_CHECK enum status trail_write(struct sql_flight *flight, const struct trail_image *before,
                                   const struct trail_image *after, bool last, struct error *error);

/* The same for an event that is no change of a record, which ends its transaction. The row has its
 * `before` and `after`, and is freed. */
MUST_CHECK enum status trail_event(struct sql_flight *flight, struct trail_row *row,
                                   const char *kind, const char *object, struct error *error);

/* Locks the trail until the commit and changes nothing, for a table without a counter. */
extern const char trail_lock[];
