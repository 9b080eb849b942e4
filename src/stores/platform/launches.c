/*
 * Launches in any engine; see platform_players.h. Rows are only ever added, many in one
 * transaction: the cost of launches is their commits, so all that wait for one share it.
 */

#include "base/memory.h"
#include "stores/platform/records.h"
#include "stores/platform/texts.h"
#include "stores/platform_players.h"

static enum status add_launches(struct sql_flight *flight, void *context, struct error *error)
{
    const struct sql_records *adding = context;
    const struct launch_record *records = adding->at;
    for (size_t i = 0; i < adding->count; i++)
        (void)sql_flight_of(flight, &launch_table, STATEMENT_ADD, &records[i]);
    return sql_flight_run(flight, true, error);
}

enum status platform_launches_add(struct platform_store *store, const struct launch_record *records,
                                  size_t count, struct error *error)
{
    struct sql_records adding = {records, count};
    enum status status = records_check(&launch_table, records, count, error);
    return status != STATUS_OK || count == 0 ? status
                                             : sql_transact(store, add_launches, &adding, error);
}

/* ---- looking up ------------------------------------------------------------------------------ */

enum status platform_launches_newest(struct platform_store *store, const char *player_id,
                                     struct launch_record *launches, size_t most, size_t *count,
                                     struct error *error)
{
    struct sql_parameters parameters = SQL_PARAMETERS(SQL_STRING(player_id), SQL_INTEGER(most));
    return record_find_several(store, &launch_table, &parameters, launches, count, error);
}

static bool on_player(void *context, const struct sql_row *row)
{
    struct launch_look_up *look_up = context;
    struct column_value created = row->value(row, 2, COLUMN_INTEGER);
    look_up->known =
        text_copy_plain(sql_text(row, 0), look_up->player_id, sizeof look_up->player_id);
    look_up->launched = !created.null && text_copy_plain(sql_text(row, 1), look_up->game_id,
                                                         sizeof look_up->game_id);
    look_up->launched_ms = look_up->launched ? created.integer : 0;
    return false;
}

enum status platform_launches_find(struct platform_store *store, struct launch_look_up *look_ups,
                                   size_t count, struct error *error)
{
    struct sql_parameters *parameters = memory_alloc_zeroed(count, sizeof *parameters);
    struct sql_query *queries = memory_alloc_zeroed(count, sizeof *queries);
    CHECK(count <= LAUNCH_LOOK_UPS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct launch_look_up *look_up = &look_ups[i];
        look_up->known = look_up->launched = false;
        queries[i] = (struct sql_query){.sql = store->engine->texts->launched,
                                        .parameters = &parameters[i],
                                        .row = on_player,
                                        .context = look_up};
        SQL_ADD(&parameters[i], SQL_STRING(look_up->provider_id), SQL_STRING(look_up->subject),
                SQL_STRING(look_up->launch_id));
    }
    enum status status =
        count == 0 ? STATUS_OK : store->engine->sql->read(store, queries, count, error);
    memory_free(queries);
    memory_free(parameters);
    return status;
}
