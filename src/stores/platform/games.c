/*
 * Importing games, switching them on and off, and customers' lists of games, in any engine; see
 * platform.h. Each change holds the counter's row until its commit (records.c), so rows read in the
 * same transaction are still the same when it writes.
 */
#include "base/memory.h"
#include "stores/platform/records.h"
#include "stores/platform/trail.h"

/* ---- importing ------------------------------------------------------------------------------- */

/* One game on its way. */
struct import_game {
    struct game_record stored;   /* then the record to store */
    struct record_look_up found; /* into `stored` */
    struct trail_image before, after;
    struct trail_reading reading; /* into `before` */
    struct trail_row row;
    bool written;
};

struct import {
    const struct game_record *records;
    const bool *set_enabled;
    size_t count;
    int64_t now_ms;
    struct import_game *games; /* FLIGHT_MAX of them: those that are looked at together */
    struct sql_flight *flight;
    struct games_put_result result;
};

static bool on_stored(void *context, const struct sql_row *row)
{
    struct import_game *game = context;
    (void)record_on_row(&game->found, row);
    return trail_on_row(&game->reading, row);
}

/* Reads the stored games with the ids of `count` records. */
static enum status find_games(struct import *import, size_t first, size_t count,
                              struct error *error)
{
    struct platform_store *store = import->flight->store;
    for (size_t i = 0; i < count; i++) {
        struct import_game *game = &import->games[i];
        struct sql_query *query =
            sql_flight_add(import->flight, statement_of(store, &game_table, STATEMENT_GET));
        game->found = (struct record_look_up){.table = &game_table, .record = &game->stored};
        game->reading = (struct trail_reading){&game_table, &game->before};
        trail_read(&game->reading, query);
        query->row = on_stored;
        query->context = game;
        sql_add_text(query->parameters, text_of(import->records[first + i].id));
    }
    enum status status = sql_flight_run(import->flight, false, error);
    sql_flight_clear(import->flight);
    return status;
}

/* Decides whether a game is to be written, and makes it ready. */
static bool prepare_game(struct import *import, size_t at, struct import_game *game)
{
    struct game_record next = import->records[at];
    bool there = game->found.found;
    if (there && !import->set_enabled[at])
        next.enabled = game->stored.enabled;
    next.updated_ms = import->now_ms;
    next.revision = 0; /* matches any stored revision */
    trail_image_of(&game->after, &game_table, &next);
    if (!trail_images_differ(&game->before, &game->after)) {
        import->result.unchanged++;
        return false;
    }
    size_t *counted = there ? &import->result.changed : &import->result.added;
    (*counted)++;
    game->stored = next; /* the parameters borrow from it */
    return true;
}

/* Writes new games and those that differ from the stored ones. */
static enum status write_games(struct import *import, size_t first, size_t count,
                               struct error *error)
{
    struct sql_flight *flight = import->flight;
    const struct import_game *written[FLIGHT_MAX] = {0};
    for (size_t i = 0; i < count; i++) {
        struct import_game *game = &import->games[i];
        game->written = prepare_game(import, first + i, game);
        if (!game->written)
            continue;
        written[flight->count] = game;
        struct sql_query *query =
            sql_flight_add(flight, statement_of(flight->store, &game_table, STATEMENT_PUT));
        statement_bind(&game_table, STATEMENT_PUT, &game->stored, query->parameters);
    }
    enum status status = flight->count > 0 ? sql_flight_run(flight, false, error) : STATUS_OK;
    for (size_t i = 0; i < flight->count && status == STATUS_NOT_FOUND; i++)
        if (flight->queries[i].failed)
            status = error_set(error, STATUS_NOT_FOUND, "game %s: there is no provider '%s'",
                               written[i]->stored.id, written[i]->stored.provider_id);
    sql_flight_clear(flight);
    return status;
}

/* The rows of the audit trail for those that were written. */
static enum status write_trail(struct import *import, size_t count, struct error *error)
{
    struct sql_flight *flight = import->flight;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct import_game *game = &import->games[i];
        if (game->written && trail_row_make(&game->row, flight->store, &game->before, &game->after))
            trail_row_add(&game->row, flight);
        if (flight->count + TRAIL_QUERIES > FLIGHT_MAX || (i + 1 == count && flight->count > 0)) {
            status = sql_flight_run(flight, false, error);
            sql_flight_clear(flight);
        }
    }
    return status;
}

static bool on_total(void *context, const struct sql_row *row)
{
    *(int64_t *)context = row->value(row, 0, COLUMN_INTEGER).integer;
    return false;
}

static enum status import_games(struct platform_store *store, void *context, struct error *error)
{
    struct import *import = context;
    int64_t total = 0;
    struct sql_query end = {.sql = "SELECT count(*) FROM game", .row = on_total, .context = &total};
    import->result = (struct games_put_result){0};
    enum status status = record_take_revision(store, &game_table, error);
    for (size_t at = 0; status == STATUS_OK && at < import->count; at += FLIGHT_MAX) {
        size_t left = import->count - at;
        size_t count = left < FLIGHT_MAX ? left : FLIGHT_MAX;
        status = find_games(import, at, count, error);
        if (status == STATUS_OK)
            status = write_games(import, at, count, error);
        if (status == STATUS_OK)
            status = write_trail(import, count, error);
    }
    if (status == STATUS_OK)
        status = store->engine->sql->run(store, &end, 1, false, error);
    if (status == STATUS_OK && total > (int64_t)GAMES_MAX)
        status = error_set(error, STATUS_FULL, "there would be more than %u games", GAMES_MAX);
    return status;
}

enum status platform_games_put(struct platform_store *store, const struct game_record *records,
                               const bool *set_enabled, size_t count, int64_t now_ms,
                               struct games_put_result *result, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        enum status status = game_table.check(&records[i], error);
        if (status != STATUS_OK)
            return status;
    }
    struct import import = {
        .records = records, .set_enabled = set_enabled, .count = count, .now_ms = now_ms};
    import.games = memory_alloc_zeroed(FLIGHT_MAX, sizeof *import.games);
    import.flight = sql_flight_create(store);
    enum status status = store->engine->sql->transact(store, import_games, &import, error);
    if (status == STATUS_OK)
        *result = import.result;
    sql_flight_destroy(&import.flight);
    for (size_t i = 0; i < FLIGHT_MAX; i++) {
        trail_image_free(&import.games[i].before);
        trail_image_free(&import.games[i].after);
        trail_row_free(&import.games[i].row);
    }
    memory_free(import.games);
    return status;
}

/* ---- on and off ------------------------------------------------------------------------------ */

enum status platform_game_enable(struct platform_store *store, const char *id, bool enabled,
                                 int64_t now_ms, struct error *error)
{
    struct record_change change = {
        .table = &game_table,
        .sql = "UPDATE game SET enabled = $2, updated_ms = $3, revision = " GAMES_REVISION
               " WHERE id = $1 AND enabled <> $2",
        .idempotent = true};
    sql_add_text(&change.parameters, text_of(id));
    sql_add_flag(&change.parameters, enabled);
    sql_add_integer(&change.parameters, now_ms);
    return record_change(store, &change, error);
}

/* ---- which games a customer may use ---------------------------------------------------------- */

/* The games of the list are there; the first that is not is named. */
static enum status check_listed(struct sql_flight *flight, struct text games, struct error *error)
{
    struct platform_store *store = flight->store;
    struct text rest = games;
    enum status status = STATUS_OK;
    while (rest.size > 0 && status == STATUS_OK) {
        while (rest.size > 0 && flight->count < FLIGHT_MAX) {
            struct sql_query *query =
                sql_flight_add(flight, statement_of(store, &game_table, STATEMENT_EXISTS));
            sql_add_text(query->parameters, text_cut(&rest, '\n'));
        }
        status = sql_flight_run(flight, false, error);
        for (size_t i = 0; i < flight->count && status == STATUS_OK; i++) {
            struct text id = flight->parameters[i].at[0].bytes;
            if (flight->queries[i].rows == 0)
                status = error_set(error, STATUS_NOT_FOUND, "there is no game '%.*s'", (int)id.size,
                                   id.at);
        }
        sql_flight_clear(flight);
    }
    return status;
}

struct policy_writing {
    const struct game_policy_record *record;
    struct sql_flight *flight;
};

/* Does the customer exist, and what is its list now? */
static enum status find_policy(struct sql_flight *flight, const char *customer_id,
                               struct trail_image *before, struct error *error)
{
    struct platform_store *store = flight->store;
    struct trail_reading reading = {&game_policy_table, before};
    struct sql_query *customer =
        sql_flight_add(flight, statement_of(store, &customer_table, STATEMENT_EXISTS));
    sql_add_text(customer->parameters, text_of(customer_id));
    struct sql_query *policy =
        sql_flight_add(flight, statement_of(store, &game_policy_table, STATEMENT_GET));
    sql_add_text(policy->parameters, text_of(customer_id));
    trail_read(&reading, policy);
    enum status status = sql_flight_run(flight, false, error);
    if (status == STATUS_OK && customer->rows == 0)
        status = error_set(error, STATUS_NOT_FOUND, "there is no customer '%s'", customer_id);
    sql_flight_clear(flight);
    return status;
}

static enum status write_policy(struct sql_flight *flight, const struct game_policy_record *record,
                                const struct trail_image *before, struct error *error)
{
    struct trail_image after = {0};
    struct trail_row row = {0};
    struct sql_query *put =
        sql_flight_add(flight, statement_of(flight->store, &game_policy_table, STATEMENT_PUT));
    statement_bind(&game_policy_table, STATEMENT_PUT, record, put->parameters);
    trail_image_of(&after, &game_policy_table, record);
    if (trail_row_make(&row, flight->store, before, &after))
        trail_row_add(&row, flight);
    enum status status = sql_flight_run(flight, true, error);
    sql_flight_clear(flight);
    trail_row_free(&row);
    trail_image_free(&after);
    return status;
}

static enum status put_policy(struct platform_store *store, void *context, struct error *error)
{
    const struct policy_writing *writing = context;
    struct game_policy_record record = *writing->record;
    struct trail_image before = {0};
    record.revision = 0;
    enum status status = record_take_revision(store, &game_table, error);
    sql_flight_clear(writing->flight);
    if (status == STATUS_OK)
        status = find_policy(writing->flight, record.customer_id, &before, error);
    if (status == STATUS_OK)
        status = check_listed(writing->flight, record.games, error);
    if (status == STATUS_OK)
        status = write_policy(writing->flight, &record, &before, error);
    trail_image_free(&before);
    return status;
}

enum status platform_game_policy_put(struct platform_store *store,
                                     const struct game_policy_record *record, struct error *error)
{
    enum status status = game_policy_table.check(record, error);
    if (status != STATUS_OK)
        return status;
    struct policy_writing writing = {record, sql_flight_create(store)};
    status = store->engine->sql->transact(store, put_policy, &writing, error);
    sql_flight_destroy(&writing.flight);
    return status;
}
