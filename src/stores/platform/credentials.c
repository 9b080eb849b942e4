/*
 * Credentials of operators, beyond what every record has: listing the sessions that are live,
 * and deleting what ended long ago. An index by the end serves both.
 */
#include "stores/platform/engine.h"
#include "stores/platform/records.h"
#include "stores/platform_records.h"

enum status platform_sessions_list(struct platform_store *store, int64_t now_ms,
                                   record_function *see, void *context, struct error *error)
{
    struct sql_parameters parameters = {0};
    sql_add_integer(&parameters, now_ms);
    return record_search(store, &credential_table, &parameters, see, context, error);
}

static enum status delete_ended(struct sql_flight *flight, void *context, struct error *error)
{
    struct sql_query *query =
        sql_flight_add(flight, "DELETE FROM operator_credential WHERE expires_ms < $1");
    sql_add_integer(query->parameters, *(const int64_t *)context);
    return sql_flight_run(flight, true, error);
}

enum status platform_credentials_delete(struct platform_store *store, int64_t before_ms,
                                        struct error *error)
{
    return sql_transact(store, delete_ended, &before_ms, error);
}
