/*
 * Launches in any engine; see platform.h. Rows are only ever added, many in one transaction: the
 * cost of launches is their commits, so all that wait for one share it.
 */
#include <string.h>

#include "base/memory.h"
#include "stores/platform/records.h"

struct adding {
    const struct launch_record *records;
    size_t count;
    struct sql_flight *flight;
};

static enum status add_launches(struct platform_store *store, void *context, struct error *error)
{
    const struct adding *adding = context;
    const char *sql = statement_of(store, &launch_table, STATEMENT_ADD);
    enum status status = STATUS_OK;
    sql_flight_clear(adding->flight); /* of an attempt before */
    for (size_t i = 0; i < adding->count && status == STATUS_OK; i++) {
        statement_bind(&launch_table, STATEMENT_ADD, &adding->records[i],
                       sql_flight_add(adding->flight, sql)->parameters);
        bool last = i + 1 == adding->count;
        if (last || adding->flight->count == FLIGHT_MAX) {
            status = sql_flight_run(adding->flight, last, error);
            sql_flight_clear(adding->flight);
        }
    }
    return status;
}

enum status platform_launches_add(struct platform_store *store, const struct launch_record *records,
                                  size_t count, struct error *error)
{
    struct adding adding = {records, count, NULL};
    for (size_t i = 0; i < count; i++) {
        enum status status = launch_table.check(&records[i], error);
        if (status != STATUS_OK)
            return status;
    }
    if (count == 0)
        return STATUS_OK;
    adding.flight = sql_flight_create(store);
    enum status status = store->engine->sql->transact(store, add_launches, &adding, error);
    sql_flight_destroy(&adding.flight);
    return status;
}

/* ---- looking up ------------------------------------------------------------------------------ */

enum status platform_launches_newest(struct platform_store *store, const char *player_id,
                                     struct launch_record *launches, size_t most, size_t *count,
                                     struct error *error)
{
    struct sql_parameters parameters = {0};
    CHECK(most <= RECORD_FIND_MAX);
    sql_add_text(&parameters, text_of(player_id));
    sql_add_integer(&parameters, (int64_t)most);
    return record_find_several(store, &launch_table,
                               "SELECT id FROM launch WHERE player_id = $1"
                               " ORDER BY number DESC LIMIT $2",
                               &parameters, launches, count, error);
}

static const char find_player[] =
    "SELECT known.player_id, launch.game_id, launch.created_ms"
    " FROM (SELECT player_id FROM launch WHERE provider_id = $1 AND subject = $2"
    "  AND player_id IS NOT NULL LIMIT 1) AS known"
    " LEFT JOIN launch ON launch.id = $3 AND launch.provider_id = $1"
    "  AND launch.player_id = known.player_id";

static bool copy_value(char *field, size_t room, const struct sql_row *row, int column)
{
    struct column_value value = row->value(row, column, COLUMN_TEXT);
    if (value.null || value.bytes.size >= room)
        return false;
    memcpy(field, value.bytes.at, value.bytes.size);
    field[value.bytes.size] = '\0';
    return true;
}

static bool on_player(void *context, const struct sql_row *row)
{
    struct launch_look_up *look_up = context;
    struct column_value created = row->value(row, 2, COLUMN_INTEGER);
    look_up->known = copy_value(look_up->player_id, sizeof look_up->player_id, row, 0);
    look_up->launched =
        !created.null && copy_value(look_up->game_id, sizeof look_up->game_id, row, 1);
    look_up->launched_ms = look_up->launched ? created.integer : 0;
    return false;
}

enum status platform_launches_find(struct platform_store *store, struct launch_look_up *look_ups,
                                   size_t count, struct error *error)
{
    struct sql_flight *flight = sql_flight_create(store);
    CHECK(count <= LAUNCH_LOOK_UPS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct launch_look_up *look_up = &look_ups[i];
        struct sql_query *query = sql_flight_add(flight, find_player);
        look_up->known = look_up->launched = false;
        query->row = on_player;
        query->context = look_up;
        sql_add_text(query->parameters, text_of(look_up->provider_id));
        sql_add_text(query->parameters, text_of(look_up->subject));
        sql_add_text(query->parameters, text_of(look_up->launch_id));
    }
    enum status status =
        count == 0 ? STATUS_OK
                   : store->engine->sql->read(store, flight->queries, flight->count, error);
    sql_flight_destroy(&flight);
    return status;
}
