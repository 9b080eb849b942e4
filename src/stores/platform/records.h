#ifndef CROUPIER_STORES_PLATFORM_RECORDS_H
#define CROUPIER_STORES_PLATFORM_RECORDS_H

#include "records/records.h"
#include "stores/platform/engine.h"

/* Records found and changed by the statements of their tables; for the files in
 * stores/platform/. */

/* A look-up of one record in a query: record_on_row is its reader, record_looked_up what came of
 * it. */
struct record_look_up {
    const struct record_table *table;
    void *record; /* of the table's size */
    bool found;
    bool sound;
};
bool record_on_row(void *context, const struct sql_row *row);
MUST_CHECK enum status record_looked_up(struct platform_store *store,
                                        const struct record_look_up *look_up, struct error *error);

/* Finds one, by the parameters of `form`. */
MUST_CHECK enum status record_find(struct platform_store *store, const struct record_table *table,
                                   enum statement_form form, struct sql_parameters *parameters,
                                   void *record, struct error *error);

/* In a transaction: takes the next number of the table's counter. */
MUST_CHECK enum status record_take_revision(struct platform_store *store,
                                            const struct record_table *table, struct error *error);

/* A change of one row that takes a revision, in a transaction of its own. Its first parameter is
 * the key. */
struct record_change {
    const struct record_table *table;
    const char *sql;
    struct sql_parameters parameters; /* freed afterwards */
    bool adds;                        /* nothing has to be looked up afterwards */
    bool idempotent; /* there, but nothing to do: that is fine, and nothing has changed */
};
MUST_CHECK enum status record_change(struct platform_store *store, struct record_change *change,
                                     struct error *error);

#endif
