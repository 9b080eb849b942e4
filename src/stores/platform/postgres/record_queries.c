/*
 * The statements of records, which every engine shares (stores/platform/sql.h), in PostgreSQL: all
 * of a run in one flight, with BEGIN in front of the first and COMMIT behind the last. So an
 * addition costs one round trip. The lock on the counter's row, which every change takes first,
 * keeps revisions in their order.
 */

#include "stores/platform/postgres/postgres.h"

static enum status postgres_read_queries(struct platform_store *base, struct sql_query *queries,
                                         size_t count, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    bool single = count == 1 && !queries[0].stream;
    return single ? postgres_read(store, queries, count, error)
                  : postgres_read_snapshot(store, queries, count, error);
}

static enum status postgres_run_queries(struct platform_store *base, struct sql_query *queries,
                                        size_t count, bool last, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct sql_query sent[FLIGHT_MAX + 2] = {{.sql = postgres_begin}};
    size_t before = PQtransactionStatus(store->connection) == PQTRANS_IDLE ? 1 : 0;
    CHECK(count <= FLIGHT_MAX);
    memcpy(sent + before, queries, count * sizeof queries[0]);
    sent[before + count] = (struct sql_query){.sql = postgres_commit};
    enum status status = postgres_run(store, sent, before + count + (last ? 1 : 0), error);
    memcpy(queries, sent + before, count * sizeof queries[0]);
    return status;
}

const struct sql_verbs postgres_sql = {
    .read = postgres_read_queries, .transact = postgres_transact, .run = postgres_run_queries};
