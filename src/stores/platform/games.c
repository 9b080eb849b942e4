/*
 * Importing games, switching them on and off, and customers' lists of games, in any engine; see
 * platform_games.h. An import holds the counter's row until its commit (records.c), so rows that it
 * reads are still the same when it writes.
 */
#include "base/memory.h"
#include "stores/platform/records.h"
#include "stores/platform/texts.h"
#include "stores/platform/trail.h"
#include "stores/platform_games.h"

/* ---- importing ------------------------------------------------------------------------------- */

/* One game on its way. */
struct import_game {
    struct game_record stored;   /* then the record to store */
    struct record_look_up found; /* into `stored` */
    struct trail_image before, after;
    struct trail_reading reading; /* into `before` */
    struct trail_row row;
    const struct sql_query *put; /* NULL: it is not written */
};

struct import {
    const struct game_record *records;
    const bool *set_enabled; /* NULL: all do */
    size_t count;
    int64_t now_ms;
    struct import_game *games; /* FLIGHT_MAX of them: those that are looked at together */
    bool moved;                /* a game went to another provider */
    char full[GAME_ID_SIZE];   /* a game that moved too often; "": none */
    struct games_put_result result;
};

static bool on_stored(void *context, const struct sql_row *row)
{
    struct import_game *game = context;
    (void)record_on_row(&game->found, row);
    return trail_on_row(&game->reading, row);
}

/* Reads the stored games with the ids of `count` records. */
static enum status find_games(struct import *import, struct sql_flight *flight, size_t first,
                              size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        struct import_game *game = &import->games[i];
        struct sql_query *query = sql_flight_of(flight, &game_table, STATEMENT_GET, NULL);
        game->found = (struct record_look_up){.table = &game_table, .record = &game->stored};
        game->reading = (struct trail_reading){&game_table, &game->before};
        trail_read(&game->reading, query);
        query->row = on_stored;
        query->context = game;
        SQL_ADD(query->parameters, SQL_STRING(import->records[first + i].id));
    }
    return sql_flight_run(flight, false, error);
}

/* Keeps when the stored game came to its provider, or notes that it moves to another one. False: it
 * has moved too often, and `full` names it. */
static bool set_origin(struct import *import, const struct game_record *stored,
                       struct game_record *next)
{
    size_t size = strlen(stored->moved);
    next->since_ms = stored->since_ms;
    memcpy(next->moved, stored->moved, sizeof next->moved);
    if (strcmp(stored->provider_id, next->provider_id) == 0)
        return true;
    CHECK(size >= 2); /* "[]", or with moves in it */
    int added = snprintf(next->moved + size - 1, sizeof next->moved - size + 1, "%s[%lld,\"%s\"]]",
                         size > 2 ? "," : "", (long long)import->now_ms, stored->provider_id);
    next->since_ms = import->now_ms;
    import->moved = true;
    if ((size_t)added < sizeof next->moved - size + 1)
        return true;
    memcpy(import->full, next->id, sizeof import->full);
    return false;
}

/* Decides whether a game is to be written, and makes it ready. */
static bool prepare_game(struct import *import, size_t at, struct import_game *game)
{
    struct game_record next = import->records[at];
    bool there = game->found.found;
    if (there && import->set_enabled != NULL && !import->set_enabled[at])
        next.enabled = game->stored.enabled;
    if (there && next.keeps_countries)
        memcpy(next.blocked_countries, game->stored.blocked_countries,
               sizeof next.blocked_countries);
    if (there && !set_origin(import, &game->stored, &next))
        return false;
    if (next.since_ms == GAME_SINCE_NOW)
        next.since_ms = import->now_ms;
    if (next.moved[0] == '\0')
        memcpy(next.moved, "[]", sizeof "[]");
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
static enum status write_games(struct import *import, struct sql_flight *flight, size_t first,
                               size_t count, struct error *error)
{
    struct import_game *games = import->games;
    for (size_t i = 0; i < count; i++)
        games[i].put = prepare_game(import, first + i, &games[i])
                           ? sql_flight_of(flight, &game_table, STATEMENT_PUT, &games[i].stored)
                           : NULL;
    enum status status = sql_flight_run(flight, false, error);
    for (size_t i = 0; i < count && status == STATUS_NOT_FOUND; i++)
        if (games[i].put != NULL && games[i].put->failed)
            return error_not_found(error, "game %s: there is no provider '%s'", games[i].stored.id,
                                   games[i].stored.provider_id);
    return status;
}

/* The rows of the audit trail for those that were written. */
static enum status write_trail(struct import *import, struct sql_flight *flight, size_t count,
                               struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        struct import_game *game = &import->games[i];
        if (game->put != NULL &&
            trail_row_make(&game->row, flight->store, &game->before, &game->after))
            trail_row_add(&game->row, flight);
    }
    return sql_flight_run(flight, false, error);
}

static enum status import_games(struct sql_flight *flight, void *context, struct error *error)
{
    struct import *import = context;
    int64_t total = 0;
    import->result = (struct games_put_result){0};
    import->moved = false;
    enum status status = record_take_revision(flight, &game_table, error);
    for (size_t at = 0; status == STATUS_OK && at < import->count; at += FLIGHT_MAX) {
        size_t left = import->count - at;
        size_t count = left < FLIGHT_MAX ? left : FLIGHT_MAX;
        status = find_games(import, flight, at, count, error);
        if (status == STATUS_OK)
            status = write_games(import, flight, at, count, error);
        if (status == STATUS_OK)
            status = write_trail(import, flight, count, error);
    }
    if (status != STATUS_OK)
        return status;
    if (import->full[0] != '\0')
        return error_set(error, STATUS_FULL, "game %s: has changed its provider too often",
                         import->full);
    if (import->moved) { /* entries of now may be kept by another clock: all is summed again */
        (void)sql_flight_add(flight, "DELETE FROM ledger_sum");
        (void)sql_flight_add(flight, "UPDATE ledger_summed SET number = 0");
    }
    struct sql_query *end = sql_flight_add(flight, "SELECT count(*) FROM game");
    end->row = sql_take_integer;
    end->context = &total;
    status = sql_flight_run(flight, false, error);
    if (status == STATUS_OK && total > (int64_t)GAMES_MAX)
        status = error_set(error, STATUS_FULL, "there would be more than %u games", GAMES_MAX);
    return status;
}

enum status platform_games_put(struct platform_store *store, const struct game_record *records,
                               const bool *set_enabled, size_t count, int64_t now_ms,
                               struct games_put_result *result, struct error *error)
{
    enum status status = records_check(&game_table, records, count, error);
    if (status != STATUS_OK)
        return status;
    struct import import = {
        .records = records, .set_enabled = set_enabled, .count = count, .now_ms = now_ms};
    import.games = memory_alloc_zeroed(FLIGHT_MAX, sizeof *import.games);
    status = sql_transact(store, import_games, &import, error);
    if (status == STATUS_OK)
        *result = import.result;
    for (size_t i = 0; i < FLIGHT_MAX; i++) {
        trail_image_free(&import.games[i].before);
        trail_image_free(&import.games[i].after);
        trail_row_free(&import.games[i].row);
    }
    memory_free(import.games);
    return status;
}

/* ---- settings beside the import -------------------------------------------------------------- */

enum status platform_game_set(struct platform_store *store, const struct game_record *game,
                              int64_t now_ms, struct error *error)
{
    struct record_change change = {.table = &game_table, .sql = store->engine->texts->set_game};
    SQL_ADD(&change.parameters, SQL_STRING(game->id), SQL_FLAG(game->enabled),
            SQL_STRING(game->blocked_countries), SQL_INTEGER(now_ms), SQL_INTEGER(game->revision));
    return record_change(store, &change, error);
}

/* ---- which games a customer may use ---------------------------------------------------------- */

/* The games of the list are there; the first that is not is named. */
static enum status check_listed(struct sql_flight *flight, struct text games, struct error *error)
{
    struct text rest = games;
    enum status status = STATUS_OK;
    while (rest.size > 0 && status == STATUS_OK) {
        for (size_t i = 0; rest.size > 0 && i < FLIGHT_MAX; i++)
            SQL_ADD(sql_flight_of(flight, &game_table, STATEMENT_GET, NULL)->parameters,
                    SQL_TEXT(text_cut(&rest, '\n')));
        status = sql_flight_run(flight, false, error);
        for (size_t i = 0; i < flight->count && status == STATUS_OK; i++) {
            struct text id = flight->parameters[i].at[0].bytes;
            if (flight->queries[i].rows == 0)
                status = error_not_found(error, "there is no game '%.*s'", (int)id.size, id.at);
        }
    }
    return status;
}

/* The customer is there, and all that is listed: neither customers nor games are ever deleted. */
static enum status may_put_policy(struct sql_flight *flight, void *context, struct error *error)
{
    const struct game_policy_record *record = context;
    struct sql_query *customer = sql_flight_of(flight, &customer_table, STATEMENT_GET, NULL);
    SQL_ADD(customer->parameters, SQL_STRING(record->customer_id));
    enum status status = sql_flight_run(flight, false, error);
    if (status == STATUS_OK && customer->rows == 0)
        return error_not_found(error, "there is no customer '%s'", record->customer_id);
    return status == STATUS_OK ? check_listed(flight, record->games, error) : status;
}

enum status platform_game_policy_put(struct platform_store *store,
                                     const struct game_policy_record *record, struct error *error)
{
    struct game_policy_record put = *record;
    put.revision = 0; /* matches any stored revision */
    return record_write(store, &game_policy_table, STATEMENT_PUT, &put, may_put_policy, &put,
                        error);
}
