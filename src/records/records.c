/* All tables, and handing a record to the function for its kind; see records.h. */
#include "records/records.h"

const struct record_table *const record_tables[RECORD_KIND_COUNT] = {
    [RECORD_CUSTOMER] = &customer_table,       [RECORD_KEY] = &key_table,
    [RECORD_ADDRESS] = &legacy_table,          [RECORD_PLAYER] = &player_table,
    [RECORD_PROVIDER] = &provider_table,       [RECORD_GAME] = &game_table,
    [RECORD_GAME_POLICY] = &game_policy_table,
};

bool record_visitor_wants(const struct record_visitor *visitor, enum record_kind kind)
{
    if (visitor->any != NULL)
        return (visitor->kinds & 1U << kind) != 0;
    switch (kind) {
    case RECORD_CUSTOMER:
        return visitor->customer != NULL;
    case RECORD_KEY:
        return visitor->key != NULL;
    case RECORD_ADDRESS:
        return visitor->legacy != NULL;
    case RECORD_PLAYER:
        return visitor->player != NULL;
    case RECORD_PROVIDER:
        return visitor->provider != NULL;
    case RECORD_GAME:
        return visitor->game != NULL;
    case RECORD_GAME_POLICY:
        return visitor->policy != NULL;
    }
    return false;
}

bool record_visit(const struct record_visitor *visitor, enum record_kind kind, const void *record)
{
    if (visitor->any != NULL)
        return visitor->any(visitor->context, record_tables[kind], record);
    switch (kind) {
    case RECORD_CUSTOMER:
        return visitor->customer(visitor->context, record);
    case RECORD_KEY:
        return visitor->key(visitor->context, record);
    case RECORD_ADDRESS:
        return visitor->legacy(visitor->context, record);
    case RECORD_PLAYER:
        return visitor->player(visitor->context, record);
    case RECORD_PROVIDER:
        return visitor->provider(visitor->context, record);
    case RECORD_GAME:
        return visitor->game(visitor->context, record);
    case RECORD_GAME_POLICY:
        return visitor->policy(visitor->context, record);
    }
    return false;
}
