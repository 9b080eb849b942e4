/*
 * Importing games, switching them on and off, and customers' lists of games, in any engine; see
 * platform.h. Whoever changes one of them holds the counter's row (records.c), so what was read in
 * the same transaction is still so when it is written.
 */
#include "base/memory.h"
#include "stores/platform/records.h"

/* ---- importing ------------------------------------------------------------------------------- */

struct import {
    const struct game_record *records;
    const bool *set_enabled;
    size_t count;
    int64_t now_ms;
    struct game_record *stored; /* FLIGHT_MAX of them */
    struct record_look_up *found;
    struct sql_flight *flight;
    struct games_put_result result;
};

/* What is stored under the ids of `count` games. */
static enum status find_games(struct import *import, size_t first, size_t count,
                              struct error *error)
{
    struct platform_store *store = import->flight->store;
    for (size_t i = 0; i < count; i++) {
        struct sql_query *query =
            sql_flight_add(import->flight, statement_of(store, &game_table, STATEMENT_GET));
        import->found[i] =
            (struct record_look_up){.table = &game_table, .record = &import->stored[i]};
        query->row = record_on_row;
        query->context = &import->found[i];
        sql_add_text(query->parameters, text_of(import->records[first + i].id));
    }
    enum status status = sql_flight_run(import->flight, false, error);
    sql_flight_clear(import->flight);
    return status;
}

/* Writes those that are not there or differ from what is. */
static enum status write_games(struct import *import, size_t first, size_t count,
                               struct error *error)
{
    struct sql_flight *flight = import->flight;
    size_t written[FLIGHT_MAX] = {0};
    for (size_t i = 0; i < count; i++) {
        const struct game_record *given = &import->records[first + i];
        struct game_record *stored = &import->stored[i];
        struct game_record next = *given;
        bool there = import->found[i].found;
        if (there && !import->set_enabled[first + i])
            next.enabled = stored->enabled;
        if (there && stored->usable && records_are_same(&game_table, &next, stored, "updated_ms")) {
            import->result.unchanged++;
            continue;
        }
        size_t *counted = there ? &import->result.changed : &import->result.added;
        (*counted)++;
        next.updated_ms = import->now_ms;
        next.revision = 0; /* whatever is there */
        *stored = next;    /* which the parameters borrow */
        written[flight->count] = first + i;
        struct sql_query *query =
            sql_flight_add(flight, statement_of(flight->store, &game_table, STATEMENT_PUT));
        statement_bind(&game_table, STATEMENT_PUT, stored, query->parameters);
    }
    enum status status = flight->count > 0 ? sql_flight_run(flight, false, error) : STATUS_OK;
    for (size_t i = 0; i < flight->count && status == STATUS_NOT_FOUND; i++) {
        const struct game_record *given = &import->records[written[i]];
        if (flight->queries[i].failed)
            status = error_set(error, STATUS_NOT_FOUND, "game %s: there is no provider '%s'",
                               given->id, given->provider_id);
    }
    sql_flight_clear(flight);
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
    import.stored = memory_alloc_zeroed(FLIGHT_MAX, sizeof *import.stored);
    import.found = memory_alloc_zeroed(FLIGHT_MAX, sizeof *import.found);
    import.flight = sql_flight_create(store);
    enum status status = store->engine->sql->transact(store, import_games, &import, error);
    if (status == STATUS_OK)
        *result = import.result;
    sql_flight_destroy(&import.flight);
    memory_free(import.found);
    memory_free(import.stored);
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

static enum status put_policy(struct platform_store *store, void *context, struct error *error)
{
    const struct policy_writing *writing = context;
    struct game_policy_record record = *writing->record;
    record.revision = 0;
    enum status status = record_take_revision(store, &game_table, error);
    if (status != STATUS_OK)
        return status;
    sql_flight_clear(writing->flight);
    struct sql_query *customer =
        sql_flight_add(writing->flight, statement_of(store, &customer_table, STATEMENT_EXISTS));
    sql_add_text(customer->parameters, text_of(record.customer_id));
    status = sql_flight_run(writing->flight, false, error);
    if (status == STATUS_OK && customer->rows == 0)
        status =
            error_set(error, STATUS_NOT_FOUND, "there is no customer '%s'", record.customer_id);
    sql_flight_clear(writing->flight);
    if (status == STATUS_OK)
        status = check_listed(writing->flight, record.games, error);
    if (status != STATUS_OK)
        return status;
    struct sql_query *put =
        sql_flight_add(writing->flight, statement_of(store, &game_policy_table, STATEMENT_PUT));
    statement_bind(&game_policy_table, STATEMENT_PUT, &record, put->parameters);
    return sql_flight_run(writing->flight, true, error);
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
