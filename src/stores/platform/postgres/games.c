/*
 * Providers, games and customers' lists of games in PostgreSQL: the statements, and rows to
 * records.
 *
 * Every change takes the next revision of games_revision and holds its row until the commit, as
 * platform_postgres_records.c does with the other counter. A row that makes no sense is
 * `usable = false` and hidden, while its neighbours go on working.
 */
#include <string.h>

#include "base/memory.h"
#include "stores/platform/postgres/columns.h"
#include "stores/platform/postgres/postgres.h"

#define NEXT_REVISION "(SELECT revision FROM games_revision)"
#define FLIGHT_MAX 128U /* games of one round trip */

static const char take_revision[] = "UPDATE games_revision SET revision = revision + 1";

static enum status no_revision(struct postgres_store *store, struct error *error)
{
    return postgres_damaged(store, "it has no revision of games", error);
}

static enum status absent(struct postgres_store *store, const char *what, struct error *error)
{
    return error_set(error, STATUS_NOT_FOUND, "%s: there is no such %s", store->place, what);
}

/* ---- providers ------------------------------------------------------------------------------- */

#define PROVIDER_COLUMNS                                                                     \
    "id, name, launch_url, return_url, audience, secret, enabled, launch_call, created_ms, " \
    "revision"

static void read_provider(const struct postgres_row *row, struct provider_record *record)
{
    *record = (struct provider_record){.usable = true};
    record->usable &= row_string(row, 0, record->id, sizeof record->id);
    record->usable &= row_string(row, 1, record->name, sizeof record->name);
    record->usable &= row_string(row, 2, record->launch_url, sizeof record->launch_url);
    record->usable &= row_optional(row, 3, record->return_url, sizeof record->return_url);
    record->usable &= row_string(row, 4, record->audience, sizeof record->audience);
    struct text secret = row_text(row, 5);
    if (secret.size > 0 && secret.size <= sizeof record->secret) {
        memcpy(record->secret, secret.at, secret.size);
        record->secret_size = secret.size;
    }
    record->enabled = row_flag(row, 6);
    record->launch_call = row_flag(row, 7);
    record->created_ms = row_integer(row, 8);
    record->revision = (uint64_t)row_integer(row, 9);
    record->usable = record->usable && provider_record_check(record, NULL) == STATUS_OK;
}

/* Parameters 1 to 8, in the order of PROVIDER_COLUMNS. */
static void set_provider(struct postgres_parameters *parameters,
                         const struct provider_record *record)
{
    set_string(parameters, 1, record->id);
    set_string(parameters, 2, record->name);
    set_string(parameters, 3, record->launch_url);
    set_optional(parameters, 4, record->return_url);
    set_string(parameters, 5, record->audience);
    set_blob(parameters, 6, record->secret, record->secret_size);
    set_flag(parameters, 7, record->enabled);
    set_flag(parameters, 8, record->launch_call);
}

static enum status add_provider(struct postgres_store *store, void *context, struct error *error)
{
    const struct postgres_query *insert = context;
    struct postgres_query queries[] = {
        {.sql = postgres_begin}, {.sql = take_revision}, *insert, {.sql = postgres_commit}};
    enum status status = postgres_run(store, queries, 4, error);
    if (status == STATUS_OK && queries[1].affected != 1)
        status = no_revision(store, error);
    postgres_clear(queries, 4);
    return status;
}

enum status postgres_provider_add(struct platform_store *base, const struct provider_record *record,
                                  struct error *error)
{
    struct postgres_parameters parameters = {0};
    struct postgres_query insert = {
        .sql = "INSERT INTO provider (" PROVIDER_COLUMNS ")"
               " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, " NEXT_REVISION ")",
        .parameters = &parameters};
    set_provider(&parameters, record);
    set_integer(&parameters, 9, record->created_ms);
    return postgres_transact(postgres_store_of(base), add_provider, &insert, error);
}

static const char find_provider[] = "SELECT " PROVIDER_COLUMNS " FROM provider WHERE id = $1";

static enum status update_provider(struct postgres_store *store, void *context, struct error *error)
{
    const struct postgres_query *update = context;
    struct postgres_parameters id = {0};
    struct postgres_query queries[] = {{.sql = postgres_begin},
                                       {.sql = take_revision},
                                       *update,
                                       {.sql = find_provider, .parameters = &id}};
    set_text(&id, 1,
             (struct text){update->parameters->values[0], (size_t)update->parameters->lengths[0]});
    enum status status = postgres_run(store, queries, 4, error);
    if (status != STATUS_OK)
        return status;
    if (queries[1].affected != 1)
        status = no_revision(store, error);
    else if (row_count(&queries[3]) == 0)
        status = absent(store, "provider", error);
    else if (queries[2].affected == 0)
        status = error_set(error, STATUS_EXISTS,
                           "%s: the provider was changed meanwhile; try again", store->place);
    postgres_clear(queries, 4);
    return status;
}

enum status postgres_provider_update(struct platform_store *base,
                                     const struct provider_record *record, struct error *error)
{
    struct postgres_parameters parameters = {0};
    struct postgres_query update = {
        .sql = "UPDATE provider SET name = $2, launch_url = $3, return_url = $4, audience = $5,"
               " secret = $6, enabled = $7, launch_call = $8, revision = " NEXT_REVISION
               " WHERE id = $1 AND ($9::bigint = 0 OR revision = $9::bigint)",
        .parameters = &parameters};
    set_provider(&parameters, record);
    set_integer(&parameters, 9, (int64_t)record->revision);
    return postgres_transact(postgres_store_of(base), update_provider, &update, error);
}

enum status postgres_provider_get(struct platform_store *base, const char *id,
                                  struct provider_record *record, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_parameters parameters = {0};
    struct postgres_query query = {.sql = find_provider, .parameters = &parameters};
    set_string(&parameters, 1, id);
    enum status status = postgres_read(store, &query, 1, error);
    if (status != STATUS_OK)
        return status;
    if (row_count(&query) > 0) {
        const struct postgres_row row = row_at(&query, 0);
        read_provider(&row, record);
    } else {
        status = absent(store, "provider", error);
    }
    postgres_clear(&query, 1);
    return status;
}

/* ---- games ----------------------------------------------------------------------------------- */

#define GAME_COLUMNS                                                                        \
    "id, provider_id, name, category, features, rtp_bps, volatility, thumbnail_url, demo, " \
    "currencies, languages, devices, enabled, updated_ms, revision"

/* A list's items are separated by LF, which row_string would refuse; game_record_check looks at the
 * items. PostgreSQL has no NUL in a text. */
static bool read_list(const struct postgres_row *row, int column, char *out, size_t room)
{
    struct text text = row_text(row, column);
    out[0] = '\0';
    if (text.at == NULL || text.size >= room)
        return false;
    memcpy(out, text.at, text.size);
    out[text.size] = '\0';
    return true;
}

static bool read_volatility(const struct postgres_row *row, int column,
                            enum game_volatility *volatility)
{
    struct text text = row_text(row, column);
    *volatility = GAME_VOLATILITY_NONE;
    if (text.at == NULL)
        return true;
    for (int i = GAME_LOW; i <= GAME_HIGH; i++)
        if (text_equals(text, text_of(game_volatility_name((enum game_volatility)i))))
            *volatility = (enum game_volatility)i;
    return *volatility != GAME_VOLATILITY_NONE;
}

static void read_game(const struct postgres_row *row, struct game_record *record)
{
    *record = (struct game_record){.usable = true, .rtp_bps = -1};
    record->usable &= row_string(row, 0, record->id, sizeof record->id);
    record->usable &= row_string(row, 1, record->provider_id, sizeof record->provider_id);
    record->usable &= row_string(row, 2, record->name, sizeof record->name);
    record->usable &= row_string(row, 3, record->category, sizeof record->category);
    record->usable &= read_list(row, 4, record->features, sizeof record->features);
    if (!row_is_null(row, 5))
        record->rtp_bps = (int32_t)row_integer(row, 5);
    record->usable &= read_volatility(row, 6, &record->volatility);
    record->usable &= row_optional(row, 7, record->thumbnail_url, sizeof record->thumbnail_url);
    record->demo = row_flag(row, 8);
    record->usable &= read_list(row, 9, record->currencies, sizeof record->currencies);
    record->usable &= read_list(row, 10, record->languages, sizeof record->languages);
    record->usable &= read_list(row, 11, record->devices, sizeof record->devices);
    record->enabled = row_flag(row, 12);
    record->updated_ms = row_integer(row, 13);
    record->revision = (uint64_t)row_integer(row, 14);
    record->usable = record->usable && game_record_check(record, NULL) == STATUS_OK;
}

/* Parameters 1 to 14, in the order of GAME_COLUMNS, and 15: whether `enabled` is to be set. */
static void set_game(struct postgres_parameters *parameters, const struct game_record *record,
                     bool set_enabled, int64_t now_ms)
{
    set_string(parameters, 1, record->id);
    set_string(parameters, 2, record->provider_id);
    set_string(parameters, 3, record->name);
    set_string(parameters, 4, record->category);
    set_string(parameters, 5, record->features);
    if (record->rtp_bps >= 0)
        set_integer(parameters, 6, record->rtp_bps);
    else
        set_null(parameters, 6);
    if (record->volatility != GAME_VOLATILITY_NONE)
        set_string(parameters, 7, game_volatility_name(record->volatility));
    else
        set_null(parameters, 7);
    set_optional(parameters, 8, record->thumbnail_url);
    set_flag(parameters, 9, record->demo);
    set_string(parameters, 10, record->currencies);
    set_string(parameters, 11, record->languages);
    set_string(parameters, 12, record->devices);
    set_flag(parameters, 13, record->enabled);
    set_integer(parameters, 14, now_ms);
    set_flag(parameters, 15, set_enabled);
}

/* Brings a row when something was written: true for a new game. (A row that an upsert has changed
 * carries the mark of the lock that it took first, a new one carries none.) */
static const char put_game[] =
    "INSERT INTO game (" GAME_COLUMNS ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,"
    " $13, $14, " NEXT_REVISION ")"
    " ON CONFLICT (id) DO UPDATE SET provider_id = excluded.provider_id, name = excluded.name,"
    " category = excluded.category, features = excluded.features, rtp_bps = excluded.rtp_bps,"
    " volatility = excluded.volatility, thumbnail_url = excluded.thumbnail_url,"
    " demo = excluded.demo, currencies = excluded.currencies, languages = excluded.languages,"
    " devices = excluded.devices,"
    " enabled = CASE WHEN $15::boolean THEN excluded.enabled ELSE game.enabled END,"
    " updated_ms = excluded.updated_ms, revision = excluded.revision"
    " WHERE (game.provider_id, game.name, game.category, game.features, game.rtp_bps,"
    "  game.volatility, game.thumbnail_url, game.demo, game.currencies, game.languages,"
    "  game.devices) IS DISTINCT FROM (excluded.provider_id, excluded.name, excluded.category,"
    "  excluded.features, excluded.rtp_bps, excluded.volatility, excluded.thumbnail_url,"
    "  excluded.demo, excluded.currencies, excluded.languages, excluded.devices)"
    " OR ($15::boolean AND game.enabled <> excluded.enabled)"
    " RETURNING xmax = 0";

struct import {
    const struct game_record *records;
    const bool *set_enabled;
    size_t count;
    int64_t now_ms;
    struct games_put_result result;
};

/* Some of the games, in one flight. */
static enum status put_games(struct postgres_store *store, struct import *import, size_t first,
                             size_t count, struct error *error)
{
    struct postgres_parameters *parameters = memory_alloc_zeroed(count, sizeof *parameters);
    struct postgres_query queries[FLIGHT_MAX];
    CHECK(count <= FLIGHT_MAX);
    for (size_t i = 0; i < count; i++) {
        queries[i] = (struct postgres_query){.sql = put_game, .parameters = &parameters[i]};
        set_game(&parameters[i], &import->records[first + i], import->set_enabled[first + i],
                 import->now_ms);
    }
    enum status status = postgres_run(store, queries, count, error);
    memory_free(parameters);
    if (status == STATUS_NOT_FOUND) {
        const struct game_record *record = &import->records[first + store->failed_query];
        return error_set(error, STATUS_NOT_FOUND, "game %s: there is no provider '%s'", record->id,
                         record->provider_id);
    }
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++) {
        if (row_count(&queries[i]) == 0) {
            import->result.unchanged++;
            continue;
        }
        const struct postgres_row row = row_at(&queries[i], 0);
        size_t *counted = row_flag(&row, 0) ? &import->result.added : &import->result.changed;
        (*counted)++;
    }
    postgres_clear(queries, count);
    return STATUS_OK;
}

static enum status import_games(struct postgres_store *store, void *context, struct error *error)
{
    struct import *import = context;
    struct postgres_query begin[] = {{.sql = postgres_begin}, {.sql = take_revision}};
    struct postgres_query total = {.sql = "SELECT count(*) FROM game"};
    import->result = (struct games_put_result){0};
    enum status status = postgres_run(store, begin, 2, error);
    if (status == STATUS_OK && begin[1].affected != 1)
        status = no_revision(store, error);
    postgres_clear(begin, 2);
    for (size_t at = 0; status == STATUS_OK && at < import->count; at += FLIGHT_MAX) {
        size_t left = import->count - at;
        status = put_games(store, import, at, left < FLIGHT_MAX ? left : FLIGHT_MAX, error);
    }
    if (status == STATUS_OK)
        status = postgres_run(store, &total, 1, error);
    if (status != STATUS_OK)
        return status;
    const struct postgres_row row = row_at(&total, 0);
    if (row_integer(&row, 0) > (int64_t)GAMES_MAX)
        status = error_set(error, STATUS_FULL, "there would be more than %u games", GAMES_MAX);
    postgres_clear(&total, 1);
    return status;
}

enum status postgres_games_put(struct platform_store *base, const struct game_record *records,
                               const bool *set_enabled, size_t count, int64_t now_ms,
                               struct games_put_result *result, struct error *error)
{
    struct import import = {
        .records = records, .set_enabled = set_enabled, .count = count, .now_ms = now_ms};
    enum status status = postgres_transact(postgres_store_of(base), import_games, &import, error);
    if (status == STATUS_OK)
        *result = import.result;
    return status;
}

enum status postgres_game_get(struct platform_store *base, const char *id,
                              struct game_record *record, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_parameters parameters = {0};
    struct postgres_query query = {.sql = "SELECT " GAME_COLUMNS " FROM game WHERE id = $1",
                                   .parameters = &parameters};
    set_string(&parameters, 1, id);
    enum status status = postgres_read(store, &query, 1, error);
    if (status != STATUS_OK)
        return status;
    if (row_count(&query) > 0) {
        const struct postgres_row row = row_at(&query, 0);
        read_game(&row, record);
    } else {
        status = absent(store, "game", error);
    }
    postgres_clear(&query, 1);
    return status;
}

static enum status enable_game(struct postgres_store *store, void *context, struct error *error)
{
    const struct postgres_parameters *parameters = context;
    struct postgres_parameters id = {0};
    struct postgres_query queries[] = {
        {.sql = postgres_begin},
        {.sql = take_revision},
        {.sql = "UPDATE game SET enabled = $2, updated_ms = $3, revision = " NEXT_REVISION
                " WHERE id = $1 AND enabled <> $2",
         .parameters = parameters},
        {.sql = "SELECT 1 FROM game WHERE id = $1", .parameters = &id}};
    set_text(&id, 1, (struct text){parameters->values[0], (size_t)parameters->lengths[0]});
    enum status status = postgres_run(store, queries, 4, error);
    if (status != STATUS_OK)
        return status;
    if (queries[1].affected != 1)
        status = no_revision(store, error);
    else if (row_count(&queries[3]) == 0)
        status = absent(store, "game", error);
    postgres_clear(queries, 4);
    return status;
}

enum status postgres_game_enable(struct platform_store *base, const char *id, bool enabled,
                                 int64_t now_ms, struct error *error)
{
    struct postgres_parameters parameters = {0};
    set_string(&parameters, 1, id);
    set_flag(&parameters, 2, enabled);
    set_integer(&parameters, 3, now_ms);
    return postgres_transact(postgres_store_of(base), enable_game, &parameters, error);
}

/* ---- which games a customer may use ---------------------------------------------------------- */

struct policy_writing {
    const struct game_policy_record *record;
    struct postgres_parameters row;
    struct postgres_parameters list;
};

/* The list may only name games that are there; the first that is not is named. */
static enum status put_policy(struct postgres_store *store, void *context, struct error *error)
{
    const struct policy_writing *writing = context;
    struct postgres_query queries[] = {
        {.sql = postgres_begin},
        {.sql = take_revision},
        {.sql = "SELECT id FROM unnest($1::text[]) WITH ORDINALITY AS listed (id, place)"
                " WHERE NOT EXISTS (SELECT 1 FROM game WHERE game.id = listed.id)"
                " ORDER BY place LIMIT 1",
         .parameters = &writing->list},
        {.sql = "INSERT INTO customer_games (customer_id, every_game, games, revision)"
                " SELECT id, $2::boolean, $3::text, " NEXT_REVISION " FROM customer WHERE id = $1"
                " ON CONFLICT (customer_id) DO UPDATE SET every_game = excluded.every_game,"
                " games = excluded.games, revision = excluded.revision",
         .parameters = &writing->row}};
    enum status status = postgres_run(store, queries, 4, error);
    if (status != STATUS_OK)
        return status;
    if (queries[1].affected != 1) {
        status = no_revision(store, error);
    } else if (queries[3].affected == 0) {
        status = error_set(error, STATUS_NOT_FOUND, "there is no customer '%s'",
                           writing->record->customer_id);
    } else if (row_count(&queries[2]) > 0) {
        const struct postgres_row row = row_at(&queries[2], 0);
        struct text id = row_text(&row, 0);
        status = error_set(error, STATUS_NOT_FOUND, "there is no game '%.*s'", (int)id.size, id.at);
    }
    postgres_clear(queries, 4);
    return status;
}

enum status postgres_game_policy_put(struct platform_store *base,
                                     const struct game_policy_record *record, struct error *error)
{
    struct policy_writing writing = {.record = record};
    struct postgres_array ids = {.kind = ARRAY_TEXT};
    struct text rest = record->games;
    while (rest.size > 0) {
        struct text id = text_cut(&rest, '\n');
        array_add_bytes(&ids, id.at, id.size);
    }
    set_string(&writing.row, 1, record->customer_id);
    set_flag(&writing.row, 2, record->every_game);
    set_text(&writing.row, 3, record->games);
    set_array(&writing.list, 1, &ids);
    enum status status = postgres_transact(postgres_store_of(base), put_policy, &writing, error);
    array_free(&ids);
    return status;
}

/* A row that makes no sense allows nothing. */
static void read_policy(const struct postgres_row *row, struct game_policy_record *record)
{
    *record = (struct game_policy_record){.revision = (uint64_t)row_integer(row, 3)};
    bool usable = row_string(row, 0, record->customer_id, sizeof record->customer_id);
    record->every_game = usable && row_flag(row, 1);
    record->games = record->every_game ? TEXT("") : row_text(row, 2);
}

/* ---- reading all of it ----------------------------------------------------------------------- */

static const char read_revision[] = "SELECT revision FROM games_revision";

/* The revision that a query brought; clears it. */
static enum status take_answer(struct postgres_store *store, struct postgres_query *query,
                               uint64_t *revision, struct error *error)
{
    enum status status = STATUS_OK;
    if (row_count(query) == 1) {
        const struct postgres_row row = row_at(query, 0);
        *revision = (uint64_t)row_integer(&row, 0);
    } else {
        status = no_revision(store, error);
    }
    postgres_clear(query, 1);
    return status;
}

enum status postgres_games_revision(struct platform_store *base, uint64_t *revision,
                                    struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_query query = {.sql = read_revision};
    enum status status = postgres_read(store, &query, 1, error);
    return status == STATUS_OK ? take_answer(store, &query, revision, error) : status;
}

static bool visit_provider(void *context, const struct postgres_row *row)
{
    const struct platform_games_visit *visit = context;
    struct provider_record record;
    read_provider(row, &record);
    visit->provider(visit->context, &record);
    return true;
}

static bool visit_game(void *context, const struct postgres_row *row)
{
    const struct platform_games_visit *visit = context;
    struct game_record record;
    read_game(row, &record);
    visit->game(visit->context, &record);
    return true;
}

static bool visit_policy(void *context, const struct postgres_row *row)
{
    const struct platform_games_visit *visit = context;
    struct game_policy_record record;
    read_policy(row, &record);
    visit->policy(visit->context, &record);
    return true;
}

enum status postgres_games_read(struct platform_store *base,
                                const struct platform_games_visit *visit, uint64_t *revision,
                                struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct platform_games_visit copy = *visit;
    struct postgres_query queries[4] = {{.sql = read_revision}};
    size_t count = 1;
    if (visit->provider != NULL)
        queries[count++] =
            (struct postgres_query){.sql = "SELECT " PROVIDER_COLUMNS " FROM provider ORDER BY id",
                                    .row = visit_provider,
                                    .context = &copy};
    if (visit->game != NULL)
        queries[count++] =
            (struct postgres_query){.sql = "SELECT " GAME_COLUMNS " FROM game ORDER BY id",
                                    .row = visit_game,
                                    .context = &copy};
    if (visit->policy != NULL)
        queries[count++] = (struct postgres_query){
            .sql = "SELECT customer_id, every_game, games, revision FROM customer_games"
                   " ORDER BY customer_id",
            .row = visit_policy,
            .context = &copy};
    enum status status = postgres_read_snapshot(store, queries, count, error);
    if (status == STATUS_OK)
        status = take_answer(store, &queries[0], revision, error);
    return status;
}
