/*
 * Credentials of operators, beyond what every record has: listing the sessions that are live, and
 * deleting what ended long ago. An index by the end serves both. The last use of a token is here as
 * well.
 */
#include "stores/platform/engine.h"
#include "stores/platform/records.h"
#include "stores/platform_records.h"

enum status platform_sessions_list(struct platform_store *store, int64_t now_ms,
                                   record_function *see, void *context, struct error *error)
{
    struct sql_parameters parameters = {0};
    SQL_ADD(&parameters, SQL_INTEGER(now_ms));
    return record_search(store, &credential_table, &parameters, see, context, error);
}

static enum status delete_ended(struct sql_flight *flight, void *context, struct error *error)
{
    struct sql_query *query =
        sql_flight_add(flight, "DELETE FROM operator_credential WHERE expires_ms < $1");
    SQL_ADD(query->parameters, SQL_INTEGER(*(const int64_t *)context));
    return sql_flight_run(flight, true, error);
}

enum status platform_credentials_delete(struct platform_store *store, int64_t before_ms,
                                        struct error *error)
{
    return sql_transact(store, delete_ended, &before_ms, error);
}

struct token_use {
    const char *id;
    int64_t now_ms;
};

static enum status note_use(struct sql_flight *flight, void *context, struct error *error)
{
    const struct token_use *use = context;
    struct sql_query *query =
        sql_flight_add(flight, "UPDATE operator_token SET last_used_ms = $2 WHERE id = $1"
                               " AND coalesce(last_used_ms, 0) < $2");
    SQL_ADD(query->parameters, SQL_STRING(use->id), SQL_INTEGER(use->now_ms));
    return sql_flight_run(flight, true, error);
}

enum status platform_token_used(struct platform_store *store, const char *id, int64_t now_ms,
                                struct error *error)
{
    struct token_use use = {id, now_ms};
    return sql_transact(store, note_use, &use, error);
}
