/*
 * Players and currencies in any engine; see platform.h. Rows are only ever added. If two calls open
 * the same player at once, both end with the same row: each adds the row unless it is there, then
 * reads it.
 *
 * With PostgreSQL, a player that is found may not be on a synchronous standby yet
 * (postgres/ledger.c). The launch that opened it makes sure (launches.c): its commit waits for all
 * commits before it.
 */
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stores/platform/records.h"

static const char add_currency[] = "INSERT INTO currency (code, exponent, created_ms)"
                                   " VALUES ($1, $2, $3) ON CONFLICT (code) DO NOTHING";

static const char add_block[] = "INSERT INTO player_block (player_number, blocked_ms)"
                                " SELECT number, CAST($2 AS bigint) FROM player WHERE id = $1"
                                " ON CONFLICT (player_number) DO NOTHING";

static void bind_currency(struct sql_parameters *parameters, const struct player_record *player)
{
    sql_add_text(parameters, text_of(player->currency));
    sql_add_integer(parameters, player->currency_exponent);
    sql_add_integer(parameters, player->created_ms);
}

static void bind_names(struct sql_parameters *parameters, const struct player_record *player)
{
    sql_add_text(parameters, text_of(player->customer_id));
    sql_add_text(parameters, text_of(player->reference));
    sql_add_text(parameters, text_of(player->currency));
}

/* ---- opening --------------------------------------------------------------------------------- */

struct opening {
    const struct player_record *wanted;
    struct player_record opened;
};

static enum status add_player(struct platform_store *store, void *context, struct error *error)
{
    struct opening *opening = context;
    struct sql_parameters currency = {0};
    struct sql_parameters player = {0};
    struct sql_parameters names = {0};
    struct record_look_up look_up = {.table = &player_table, .record = &opening->opened};
    struct sql_query queries[] = {
        {.sql = add_currency, .parameters = &currency},
        {.sql = statement_of(store, &player_table, STATEMENT_ADD_ONCE), .parameters = &player},
        {.sql = statement_of(store, &player_table, STATEMENT_NAMED), /* the frozen exponent */
         .parameters = &names,
         .row = record_on_row,
         .context = &look_up}};
    bind_currency(&currency, opening->wanted);
    statement_bind(&player_table, STATEMENT_ADD_ONCE, opening->wanted, &player);
    bind_names(&names, opening->wanted);
    enum status status = store->engine->sql->run(store, queries, 3, true, error);
    return status == STATUS_OK ? record_looked_up(store, &look_up, error) : status;
}

static bool copy_field(char *field, size_t room, const char *value)
{
    size_t size = strlen(value);
    if (size >= room)
        return false;
    memcpy(field, value, size + 1);
    return true;
}

enum status platform_player_open(struct platform_store *store, const char *customer_id,
                                 const char *reference, const char *currency, uint8_t exponent,
                                 struct player_record *player, struct error *error)
{
    struct player_record wanted = {.currency_exponent = exponent, .created_ms = clock_wall_ms()};
    struct opening opening = {.wanted = &wanted};
    struct sql_parameters names = {0};
    if (!copy_field(wanted.customer_id, sizeof wanted.customer_id, customer_id) ||
        !copy_field(wanted.reference, sizeof wanted.reference, reference) ||
        !copy_field(wanted.currency, sizeof wanted.currency, currency))
        return error_set(error, STATUS_INVALID, "player: a field is too long");
    player_id_generate(wanted.id);
    enum status status = player_table.check(&wanted, error);
    if (status != STATUS_OK)
        return status;
    bind_names(&names, &wanted); /* nearly always there already */
    status = record_find(store, &player_table, STATEMENT_NAMED, &names, player, error);
    if (status != STATUS_NOT_FOUND)
        return status;
    status = store->engine->sql->transact(store, add_player, &opening, error);
    if (status == STATUS_OK)
        *player = opening.opened;
    return status;
}

/* ---- blocking -------------------------------------------------------------------------------- */

enum status platform_player_block(struct platform_store *store, const char *player_id, bool blocked,
                                  int64_t now_ms, struct player_record *player, struct error *error)
{
    struct record_change change = {
        .table = &player_table,
        .sql = blocked ? add_block
                       : "DELETE FROM player_block"
                         " WHERE player_number = (SELECT number FROM player WHERE id = $1)",
        .idempotent = true};
    sql_add_text(&change.parameters, text_of(player_id));
    if (blocked)
        sql_add_integer(&change.parameters, now_ms);
    enum status status = record_change(store, &change, error);
    return status == STATUS_OK ? platform_get(store, &player_table, player_id, player, error)
                               : status;
}

enum status platform_players_named(struct platform_store *store, const char *customer_id,
                                   const char *reference, struct player_record *players,
                                   size_t most, size_t *count, struct error *error)
{
    struct sql_parameters parameters = {0};
    CHECK(most <= RECORD_FIND_MAX);
    sql_add_text(&parameters, text_of(customer_id));
    sql_add_text(&parameters, text_of(reference));
    sql_add_integer(&parameters, (int64_t)most);
    return record_find_several(store, &player_table,
                               "SELECT id FROM player WHERE customer_id = $1 AND reference = $2"
                               " ORDER BY number LIMIT $3",
                               &parameters, players, count, error);
}

/* ---- copying --------------------------------------------------------------------------------- */

struct putting {
    const struct player_record *records;
    size_t count;
    struct sql_flight *flight;
};

/* Currencies go first: a player's own is there, and has the exponent that the record has. */
static enum status put_currencies(const struct putting *putting, size_t first, size_t count,
                                  struct error *error)
{
    struct sql_flight *flight = putting->flight;
    for (size_t i = first; i < first + count; i++) {
        const struct player_record *record = &putting->records[i];
        if (i > first && strcmp(record->currency, putting->records[i - 1].currency) == 0 &&
            record->currency_exponent == putting->records[i - 1].currency_exponent)
            continue;
        bind_currency(sql_flight_add(flight, add_currency)->parameters, record);
        struct sql_parameters *other =
            sql_flight_add(flight, "SELECT 1 FROM currency WHERE code = $1 AND exponent <> $2")
                ->parameters;
        sql_add_text(other, text_of(record->currency));
        sql_add_integer(other, record->currency_exponent);
    }
    enum status status = sql_flight_run(flight, false, error);
    for (size_t i = 1; i < flight->count && status == STATUS_OK; i += 2)
        if (flight->queries[i].rows > 0)
            status = error_set(error, STATUS_INVALID,
                               "%s: %s has another exponent here; it was frozen when first used",
                               flight->store->location, flight->parameters[i].at[0].bytes.at);
    sql_flight_clear(flight);
    return status;
}

static void put_player(struct sql_flight *flight, const struct player_record *record)
{
    const char *sql = statement_of(flight->store, &player_table, STATEMENT_ADD);
    statement_bind(&player_table, STATEMENT_ADD, record, sql_flight_add(flight, sql)->parameters);
    if (record->blocked_ms == 0)
        return;
    struct sql_parameters *block = sql_flight_add(flight, add_block)->parameters;
    sql_add_text(block, text_of(record->id));
    sql_add_integer(block, record->blocked_ms);
}

static enum status put_players(struct platform_store *store, void *context, struct error *error)
{
    const struct putting *putting = context;
    struct sql_flight *flight = putting->flight;
    enum status status = STATUS_OK;
    (void)store; /* the flight's */
    sql_flight_clear(flight);
    for (size_t at = 0; at < putting->count && status == STATUS_OK; at += FLIGHT_MAX / 2) {
        size_t left = putting->count - at;
        size_t count = left < FLIGHT_MAX / 2 ? left : FLIGHT_MAX / 2;
        status = put_currencies(putting, at, count, error);
        for (size_t i = at; i < at + count && status == STATUS_OK; i++)
            put_player(flight, &putting->records[i]);
        if (status == STATUS_OK)
            status = sql_flight_run(flight, false, error);
        sql_flight_clear(flight);
    }
    return status;
}

enum status platform_player_put(struct platform_store *store, const struct player_record *records,
                                size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        enum status status = player_table.check(&records[i], error);
        if (status != STATUS_OK)
            return status;
    }
    struct putting putting = {records, count, NULL};
    if (count == 0)
        return STATUS_OK;
    putting.flight = sql_flight_create(store);
    enum status status = store->engine->sql->transact(store, put_players, &putting, error);
    sql_flight_destroy(&putting.flight);
    return status;
}
