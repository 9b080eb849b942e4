#pragma once

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

/* Checks each of an array of records. */
MUST_CHECK enum status records_check(const struct record_table *table, const void *records,
                                     size_t count, struct error *error);

/* Finds one, by the parameters of `form`. */
MUST_CHECK enum status record_find(struct platform_store *store, const struct record_table *table,
                                   enum statement_form form, struct sql_parameters *parameters,
                                   void *record, struct error *error);

/* Finds those of the table's own condition, whose parameters bound their number: into an array of
 * records. */
MUST_CHECK enum status record_find_several(struct platform_store *store,
                                           const struct record_table *table,
                                           struct sql_parameters *parameters, void *records,
                                           size_t *count, struct error *error);

/* In a transaction: takes the next number of the table's counter. */
MUST_CHECK enum status record_take_revision(struct sql_flight *flight,
                                            const struct record_table *table, struct error *error);

/* The number that the table's counter has come to. */
MUST_CHECK enum status record_revision(struct platform_store *store,
                                       const struct record_table *table, uint64_t *revision,
                                       struct error *error);

/* Rows by the table's own condition, and its parameters (STATEMENT_SEARCH). */
MUST_CHECK enum status record_search(struct platform_store *store, const struct record_table *table,
                                     struct sql_parameters *parameters, record_function *see,
                                     void *context, struct error *error);

/* The `limit` rows that follow one (STATEMENT_AFTER), and the number that the table's counter has
 * come to. */
MUST_CHECK enum status record_page(struct platform_store *store, const struct record_table *table,
                                   uint64_t after, size_t limit, uint64_t *revision,
                                   record_function *see, void *context, struct error *error);

/* A change of one row, in a transaction of its own: takes a revision, where the table has a
 * counter, and writes the row of the audit trail. Its first parameter is the key. */
struct record_change {
    const struct record_table *table;
    const char *sql;
    struct sql_parameters parameters; /* freed afterwards */
    const void *added;                /* the record, where it adds one; else NULL */
    bool idempotent;  /* if the row is there and needs no change, the call succeeds */
    bool more;        /* another change follows in its transaction */
    sql_flights *may; /* looks first, in its transaction, whether it may be made; NULL: it may */
    void *context;    /* of that */
};
MUST_CHECK enum status record_change(struct platform_store *store, struct record_change *change,
                                     struct error *error);
/* Checks a record, and changes its row by an ADD, UPDATE or PUT. */
MUST_CHECK enum status record_write(struct platform_store *store, const struct record_table *table,
                                    enum statement_form form, const void *record, sql_flights *may,
                                    void *context, struct error *error);
