/*
 * Reading the audit trail in any engine, newest first and from a row on; see platform_trail_search.
 * It is apart from trail.c, which the changes of records call, because it calls records.c.
 */

#include "records/operator.h"
#include "stores/platform/records.h"
#include "stores/platform/trail.h"
#include "stores/platform_records.h"

/* One query reads so many rows, so that it stays short for any search and any length of the
 * trail. */
#define ROWS_AT_ONCE 10000U

struct searching {
    bool operators;
    record_function *see;
    void *context;
    size_t left; /* rows that may still be shown */
    bool done;
};

static bool is_of_operators(const struct trail_record *row)
{
    return strcmp(row->kind, operator_table.what) == 0 ||
           strcmp(row->kind, credential_table.what) == 0 ||
           strcmp(row->kind, token_table.what) == 0;
}

static bool see_found(void *context, const void *record)
{
    struct searching *searching = context;
    if (!searching->operators && is_of_operators(record))
        return true;
    searching->left--;
    searching->done = !searching->see(searching->context, record) || searching->left == 0;
    return !searching->done;
}

enum status platform_trail_search(struct platform_store *store, const struct trail_search *search,
                                  record_function *see, void *context, struct error *error)
{
    struct searching searching = {search->operators, see, context, search->limit, false};
    uint64_t last = 0;
    CHECK(search->limit > 0);
    enum status status = record_revision(store, &trail_table, &last, error);
    uint64_t end = search->before == 0 || search->before > last ? last + 1 : search->before;
    while (status == STATUS_OK && end > 1 && !searching.done) {
        uint64_t start = end > ROWS_AT_ONCE ? end - ROWS_AT_ONCE : 1;
        struct sql_parameters parameters =
            SQL_PARAMETERS(SQL_INTEGER(start), SQL_INTEGER(end), SQL_INTEGER(search->since_ms),
                           SQL_STRING(search->object), SQL_STRING(search->who),
                           SQL_STRING(search->kind != NULL ? search->kind : ""),
                           SQL_INTEGER(search->until_ms > 0 ? search->until_ms : INT64_MAX));
        status = record_search(store, &trail_table, &parameters, see_found, &searching, error);
        end = start;
    }
    return status;
}

bool platform_trail_wants(const struct trail_search *search, const struct trail_record *row)
{
    return (search->operators || !is_of_operators(row)) &&
           (search->object[0] == '\0' || strcmp(search->object, row->object) == 0) &&
           (search->who[0] == '\0' || strcmp(search->who, row->who) == 0);
}

enum status platform_trail_after(struct platform_store *store, uint64_t after, size_t limit,
                                 uint64_t *last, record_function *see, void *context,
                                 struct error *error)
{
    return record_page(store, &trail_table, after, limit, last, see, context, error);
}
