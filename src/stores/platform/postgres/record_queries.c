/*
 * The statements of records, which every engine shares (stores/platform/sql.h), in PostgreSQL: all
 * of a run in one flight, with BEGIN in front of the first and COMMIT behind the last. So an
 * addition costs one round trip. The lock on the counter's row, which every change takes first,
 * keeps revisions in their order.
 */
#include "base/memory.h"
#include "stores/platform/postgres/columns.h"

static void set_parameter(struct postgres_parameters *parameters, int at,
                          const struct column_value *value)
{
    if (value->null)
        set_null(parameters, at);
    else if (value->kind == COLUMN_INTEGER)
        set_integer(parameters, at, value->integer);
    else if (value->kind == COLUMN_FLAG)
        set_flag(parameters, at, value->integer != 0);
    else
        set_text(parameters, at, value->bytes);
}

static struct column_value row_value(const struct sql_row *row, int column, enum column_kind kind)
{
    const struct postgres_row from = {row->result, row->at};
    struct column_value value = {.kind = kind, .null = row_is_null(&from, column)};
    if (kind == COLUMN_INTEGER)
        value.integer = row_integer(&from, column);
    else if (kind == COLUMN_FLAG)
        value.integer = row_flag(&from, column) ? 1 : 0;
    else
        value.bytes = row_text(&from, column);
    return value;
}

struct sql_row postgres_sql_row(const struct postgres_row *row)
{
    return (struct sql_row){row_value, row->result, row->at};
}

static bool on_row(void *context, const struct postgres_row *row)
{
    const struct sql_query *query = context;
    const struct sql_row handed = postgres_sql_row(row);
    return query->row(query->context, &handed);
}

/* The queries as the connection takes them, with room for one before and one behind. */
struct conversation {
    struct postgres_query *sent;
    struct postgres_parameters *parameters;
};

static struct conversation translate(struct sql_query *queries, size_t count)
{
    struct conversation made = {memory_alloc_zeroed(count + 2, sizeof *made.sent),
                                memory_alloc_zeroed(count + 1, sizeof *made.parameters)};
    for (size_t i = 0; i < count; i++) {
        const struct sql_parameters *given = queries[i].parameters;
        queries[i].affected = queries[i].rows = 0;
        queries[i].failed = false;
        for (int j = 0; given != NULL && j < given->count; j++)
            set_parameter(&made.parameters[i], j + 1, &given->at[j]);
        made.sent[i + 1] =
            (struct postgres_query){.sql = queries[i].sql,
                                    .parameters = &made.parameters[i],
                                    .row = queries[i].stream ? on_row : NULL,
                                    .context = queries[i].stream ? &queries[i] : NULL};
    }
    return made;
}

/* Hands on the rows of queries that are not streams, and ends the conversation. */
static void deliver(struct conversation *made, struct sql_query *queries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct postgres_query *sent = &made->sent[i + 1];
        bool wanted = queries[i].row != NULL && !queries[i].stream;
        queries[i].affected = sent->affected; /* also of queries before a failure */
        queries[i].rows = (uint64_t)row_count(sent);
        for (int j = 0; j < row_count(sent) && wanted; j++) {
            const struct postgres_row row = row_at(sent, j);
            wanted = on_row(&queries[i], &row);
        }
    }
    postgres_clear(made->sent, count + 2);
    memory_free(made->sent);
    memory_free(made->parameters);
}

static enum status postgres_read_queries(struct platform_store *base, struct sql_query *queries,
                                         size_t count, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct conversation made = translate(queries, count);
    bool single = count == 1 && !queries[0].stream;
    enum status status = single ? postgres_read(store, made.sent + 1, count, error)
                                : postgres_read_snapshot(store, made.sent + 1, count, error);
    deliver(&made, queries, count);
    return status;
}

static enum status postgres_run_queries(struct platform_store *base, struct sql_query *queries,
                                        size_t count, bool last, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    bool first = PQtransactionStatus(store->connection) == PQTRANS_IDLE;
    struct conversation made = translate(queries, count);
    made.sent[0] = (struct postgres_query){.sql = postgres_begin};
    made.sent[count + 1] = (struct postgres_query){.sql = postgres_commit};
    struct postgres_query *sent = first ? made.sent : made.sent + 1;
    size_t sent_count = count + (first ? 1 : 0) + (last ? 1 : 0);
    enum status status = postgres_run(store, sent, sent_count, error);
    size_t failed = store->failed_query - (first ? 1 : 0);
    if (status != STATUS_OK && failed < count)
        queries[failed].failed = true;
    deliver(&made, queries, count);
    return status;
}

struct change {
    sql_body *body;
    void *context;
};

static enum status run_body(struct postgres_store *store, void *context, struct error *error)
{
    const struct change *change = context;
    return change->body(&store->base, change->context, error);
}

static enum status postgres_transact_queries(struct platform_store *base, sql_body *body,
                                             void *context, struct error *error)
{
    struct change change = {body, context};
    return postgres_transact(postgres_store_of(base), run_body, &change, error);
}

const struct sql_verbs postgres_sql = {.read = postgres_read_queries,
                                       .transact = postgres_transact_queries,
                                       .run = postgres_run_queries};
