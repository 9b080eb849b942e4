/*
 * Credentials of operators, beyond what every record has: listing the sessions that are live, and
 * deleting what ended long ago. An index by the end serves both. The last use of a token is here as
 * well.
 */
#include "stores/platform/records.h"
#include "stores/platform_records.h"

enum status platform_sessions_list(struct platform_store *store, int64_t now_ms,
                                   record_function *see, void *context, struct error *error)
{
    struct sql_parameters parameters = SQL_PARAMETERS(SQL_INTEGER(now_ms));
    return record_search(store, &credential_table, &parameters, see, context, error);
}

enum status platform_credentials_delete(struct platform_store *store, int64_t before_ms,
                                        struct error *error)
{
    return sql_execute(store, "DELETE FROM operator_credential WHERE expires_ms < $1",
                       &SQL_PARAMETERS(SQL_INTEGER(before_ms)), error);
}

enum status platform_token_used(struct platform_store *store, const char *id, int64_t now_ms,
                                struct error *error)
{
    return sql_execute(store,
                       "UPDATE operator_token SET last_used_ms = $2 WHERE id = $1"
                       " AND coalesce(last_used_ms, 0) < $2",
                       &SQL_PARAMETERS(SQL_STRING(id), SQL_INTEGER(now_ms)), error);
}
