/* The tables of all kinds; see records.h. */
#include "records/records.h"

const struct record_table *const record_tables[RECORD_KIND_COUNT] = {
    [RECORD_CUSTOMER] = &customer_table, [RECORD_KEY] = &key_table,
    [RECORD_ADDRESS] = &legacy_table,    [RECORD_PLAYER] = &player_table,
    [RECORD_BLOCK] = &block_table,       [RECORD_PROVIDER] = &provider_table,
    [RECORD_GAME] = &game_table,         [RECORD_GAME_POLICY] = &game_policy_table,
    [RECORD_LAUNCH] = &launch_table,     [RECORD_TRAIL] = &trail_table,
    [RECORD_OPERATOR] = &operator_table, [RECORD_CREDENTIAL] = &credential_table,
    [RECORD_TOKEN] = &token_table,
};
