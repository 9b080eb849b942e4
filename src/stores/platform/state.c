/* Finds out whether a store was written to, in any engine; see platform.h. */
#include "stores/platform/engine.h"

static const struct {
    const char *what;
    const char *sql;
} counted[PLATFORM_STATE_COUNT] = {
    {"customers, keys, addresses, operators or tokens", "SELECT revision FROM store_revision"},
    {"providers or games", "SELECT revision FROM games_revision"},
    {"the audit trail", "SELECT revision FROM audit_revision"},
    {"players", "SELECT count(*) FROM player"},
    {"launches", "SELECT count(*) FROM launch"},
    {"the ledger", "SELECT count(*) FROM ledger_transaction"},
    {"usage", "SELECT CAST(coalesce(sum(answers_2xx + answers_3xx + answers_4xx + answers_5xx), 0)"
              " AS bigint) FROM usage_requests"},
};

enum status platform_state(struct platform_store *store, struct platform_state *state,
                           struct error *error)
{
    struct platform_state read = {{0}};
    struct sql_query queries[PLATFORM_STATE_COUNT];
    for (size_t i = 0; i < PLATFORM_STATE_COUNT; i++)
        queries[i] = (struct sql_query){
            .sql = counted[i].sql, .row = sql_take_integer, .context = &read.counts[i]};
    enum status status = store->engine->sql->read(store, queries, PLATFORM_STATE_COUNT, error);
    if (status == STATUS_OK)
        *state = read;
    return status;
}

const char *platform_state_difference(const struct platform_state *one,
                                      const struct platform_state *other)
{
    for (size_t i = 0; i < PLATFORM_STATE_COUNT; i++)
        if (one->counts[i] != other->counts[i])
            return counted[i].what;
    return NULL;
}
