/*
 * Providers, games and customers' lists of games in SQLite: the statements, and rows to records.
 *
 * Every change is one transaction that takes the next revision of games_revision; SQLite has one
 * writer at a time, so a reader that saw revision R has seen all that was changed up to R. As with
 * customers, a row that makes no sense is `usable = false` and hidden, while its neighbours go on
 * working.
 */
#include <string.h>

#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/sqlite.h"

#define NEXT_REVISION "UPDATE games_revision SET revision = revision + 1 RETURNING revision"

/* "" is NULL in the table. */
static void bind_optional(sqlite3_stmt *statement, int at, const char *string)
{
    if (string[0] != '\0')
        bind_string(statement, at, string);
}

static bool read_optional(sqlite3_stmt *row, int column, char *out, size_t room)
{
    out[0] = '\0';
    return sqlite3_column_type(row, column) == SQLITE_NULL || read_string(row, column, out, room);
}

/* ---- providers ------------------------------------------------------------------------------- */

#define PROVIDER_COLUMNS                                                                  \
    "id, name, launch_url, return_url, audience, secret, enabled, created_ms, revision, " \
    "launch_call"

static void read_provider(sqlite3_stmt *row, struct provider_record *record)
{
    *record = (struct provider_record){.usable = true};
    record->usable &= read_string(row, 0, record->id, sizeof record->id);
    record->usable &= read_string(row, 1, record->name, sizeof record->name);
    record->usable &= read_string(row, 2, record->launch_url, sizeof record->launch_url);
    record->usable &= read_optional(row, 3, record->return_url, sizeof record->return_url);
    record->usable &= read_string(row, 4, record->audience, sizeof record->audience);
    const void *secret = sqlite3_column_blob(row, 5);
    int size = sqlite3_column_bytes(row, 5);
    if (secret != NULL && size > 0 && (size_t)size <= sizeof record->secret) {
        memcpy(record->secret, secret, (size_t)size);
        record->secret_size = (size_t)size;
    }
    record->usable &= read_flag(row, 6, &record->enabled);
    record->created_ms = sqlite3_column_int64(row, 7);
    record->revision = (uint64_t)sqlite3_column_int64(row, 8);
    record->usable &= read_flag(row, 9, &record->launch_call);
    record->usable = record->usable && provider_record_check(record, NULL) == STATUS_OK;
}

/* Parameters 1 to 7, 9 and 10, in the order of PROVIDER_COLUMNS less created_ms. */
static void bind_provider(sqlite3_stmt *statement, const struct provider_record *record,
                          int64_t revision)
{
    bind_string(statement, 1, record->id);
    bind_string(statement, 2, record->name);
    bind_string(statement, 3, record->launch_url);
    bind_optional(statement, 4, record->return_url);
    bind_string(statement, 5, record->audience);
    bind_blob(statement, 6, record->secret, (int)record->secret_size);
    bind_integer(statement, 7, record->enabled);
    bind_integer(statement, 9, revision);
    bind_integer(statement, 10, record->launch_call);
}

enum status sqlite_provider_add(struct platform_store *base, const struct provider_record *record,
                                struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    int64_t revision = 0;
    enum status status = sqlite_change_begin(store, NEXT_REVISION, &revision, error);
    if (status != STATUS_OK)
        return status;
    status = sqlite_statement(store,
                              "INSERT INTO provider (" PROVIDER_COLUMNS ")"
                              " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                              &statement, error);
    if (status == STATUS_OK) {
        bind_provider(statement, record, revision);
        bind_integer(statement, 8, record->created_ms);
        status = sqlite_run(store, statement, error);
    }
    return sqlite_end(store, status, error);
}

static enum status update_provider(struct sqlite_store *store, const struct provider_record *record,
                                   int64_t revision, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_statement(
        store,
        "UPDATE provider SET name = ?2, launch_url = ?3, return_url = ?4, audience = ?5,"
        " secret = ?6, enabled = ?7, launch_call = ?10, revision = ?9 WHERE id = ?1 AND (?8 = 0 OR "
        "revision = ?8)",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_provider(statement, record, revision);
    bind_integer(statement, 8, (int64_t)record->revision);
    status = sqlite_run(store, statement, error);
    if (status != STATUS_OK || sqlite3_changes(store->database) > 0)
        return status;
    status = sqlite_exists(store, "SELECT 1 FROM provider WHERE id = ?1", text_of(record->id),
                           &found, error);
    if (status != STATUS_OK)
        return status;
    return sqlite_no_change(store, found, "provider", error);
}

enum status sqlite_provider_update(struct platform_store *base,
                                   const struct provider_record *record, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int64_t revision = 0;
    enum status status = sqlite_change_begin(store, NEXT_REVISION, &revision, error);
    if (status != STATUS_OK)
        return status;
    return sqlite_end(store, update_provider(store, record, revision, error), error);
}

enum status sqlite_provider_get(struct platform_store *base, const char *id,
                                struct provider_record *record, struct error *error)
{
    sqlite3_stmt *row;
    enum status status = sqlite_find(sqlite_store_of(base),
                                     "SELECT " PROVIDER_COLUMNS " FROM provider WHERE id = ?1", id,
                                     "provider", &row, error);
    if (status != STATUS_OK)
        return status;
    read_provider(row, record);
    (void)sqlite3_reset(row);
    return STATUS_OK;
}

/* ---- games ----------------------------------------------------------------------------------- */

#define GAME_COLUMNS                                                                        \
    "id, provider_id, name, category, features, rtp_bps, volatility, thumbnail_url, demo, " \
    "currencies, languages, devices, enabled, updated_ms, revision"

/* A list's items are separated by LF, which read_string would refuse; game_record_check looks at
 * the items. */
static bool read_list(sqlite3_stmt *row, int column, char *out, size_t room)
{
    struct text text = read_text(row, column);
    out[0] = '\0';
    if (text.at == NULL || text.size >= room || memchr(text.at, '\0', text.size) != NULL)
        return false;
    memcpy(out, text.at, text.size);
    out[text.size] = '\0';
    return true;
}

static bool read_volatility(sqlite3_stmt *row, int column, enum game_volatility *volatility)
{
    struct text text = read_text(row, column);
    *volatility = GAME_VOLATILITY_NONE;
    if (text.at == NULL)
        return true;
    for (int i = GAME_LOW; i <= GAME_HIGH; i++)
        if (text_equals(text, text_of(game_volatility_name((enum game_volatility)i))))
            *volatility = (enum game_volatility)i;
    return *volatility != GAME_VOLATILITY_NONE;
}

static void read_game(sqlite3_stmt *row, struct game_record *record)
{
    *record = (struct game_record){.usable = true, .rtp_bps = -1};
    record->usable &= read_string(row, 0, record->id, sizeof record->id);
    record->usable &= read_string(row, 1, record->provider_id, sizeof record->provider_id);
    record->usable &= read_string(row, 2, record->name, sizeof record->name);
    record->usable &= read_string(row, 3, record->category, sizeof record->category);
    record->usable &= read_list(row, 4, record->features, sizeof record->features);
    if (sqlite3_column_type(row, 5) != SQLITE_NULL)
        record->rtp_bps = sqlite3_column_int(row, 5);
    record->usable &= read_volatility(row, 6, &record->volatility);
    record->usable &= read_optional(row, 7, record->thumbnail_url, sizeof record->thumbnail_url);
    record->usable &= read_flag(row, 8, &record->demo);
    record->usable &= read_list(row, 9, record->currencies, sizeof record->currencies);
    record->usable &= read_list(row, 10, record->languages, sizeof record->languages);
    record->usable &= read_list(row, 11, record->devices, sizeof record->devices);
    record->usable &= read_flag(row, 12, &record->enabled);
    record->updated_ms = sqlite3_column_int64(row, 13);
    record->revision = (uint64_t)sqlite3_column_int64(row, 14);
    record->usable = record->usable && game_record_check(record, NULL) == STATUS_OK;
}

/* Parameters 1 to 15, in the order of GAME_COLUMNS, and 16: whether `enabled` is to be set. */
static void bind_game(sqlite3_stmt *statement, const struct game_record *record, bool set_enabled,
                      int64_t now_ms, int64_t revision)
{
    bind_string(statement, 1, record->id);
    bind_string(statement, 2, record->provider_id);
    bind_string(statement, 3, record->name);
    bind_string(statement, 4, record->category);
    bind_string(statement, 5, record->features);
    if (record->rtp_bps >= 0)
        bind_integer(statement, 6, record->rtp_bps);
    if (record->volatility != GAME_VOLATILITY_NONE)
        bind_string(statement, 7, game_volatility_name(record->volatility));
    bind_optional(statement, 8, record->thumbnail_url);
    bind_integer(statement, 9, record->demo);
    bind_string(statement, 10, record->currencies);
    bind_string(statement, 11, record->languages);
    bind_string(statement, 12, record->devices);
    bind_integer(statement, 13, record->enabled);
    bind_integer(statement, 14, now_ms);
    bind_integer(statement, 15, revision);
    bind_integer(statement, 16, set_enabled);
}

static enum status put_game(struct sqlite_store *store, const struct game_record *record,
                            bool set_enabled, int64_t now_ms, int64_t revision,
                            struct games_put_result *result, struct error *error)
{
    sqlite3_stmt *statement;
    bool there = false;
    enum status status = sqlite_exists(store, "SELECT 1 FROM game WHERE id = ?1",
                                       text_of(record->id), &there, error);
    if (status == STATUS_OK)
        status = sqlite_statement(
            store,
            "INSERT INTO game (" GAME_COLUMNS ") VALUES"
            " (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)"
            " ON CONFLICT (id) DO UPDATE SET provider_id = ?2, name = ?3, category = ?4,"
            " features = ?5, rtp_bps = ?6, volatility = ?7, thumbnail_url = ?8, demo = ?9,"
            " currencies = ?10, languages = ?11, devices = ?12,"
            " enabled = CASE ?16 WHEN 1 THEN ?13 ELSE enabled END, updated_ms = ?14,"
            " revision = ?15"
            " WHERE provider_id IS NOT ?2 OR name IS NOT ?3 OR category IS NOT ?4"
            " OR features IS NOT ?5 OR rtp_bps IS NOT ?6 OR volatility IS NOT ?7"
            " OR thumbnail_url IS NOT ?8 OR demo IS NOT ?9 OR currencies IS NOT ?10"
            " OR languages IS NOT ?11 OR devices IS NOT ?12 OR (?16 = 1 AND enabled IS NOT ?13)",
            &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_game(statement, record, set_enabled, now_ms, revision);
    status = sqlite_run(store, statement, error);
    if (status == STATUS_NOT_FOUND)
        return error_set(error, STATUS_NOT_FOUND, "game %s: there is no provider '%s'", record->id,
                         record->provider_id);
    if (status != STATUS_OK)
        return status;
    size_t *counted = !there                                 ? &result->added
                      : sqlite3_changes(store->database) > 0 ? &result->changed
                                                             : &result->unchanged;
    (*counted)++;
    return STATUS_OK;
}

enum status sqlite_games_put(struct platform_store *base, const struct game_record *records,
                             const bool *set_enabled, size_t count, int64_t now_ms,
                             struct games_put_result *result, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct games_put_result counts = {0};
    int64_t revision = 0;
    int64_t total = 0;
    enum status status = sqlite_change_begin(store, NEXT_REVISION, &revision, error);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; status == STATUS_OK && i < count; i++)
        status = put_game(store, &records[i], set_enabled[i], now_ms, revision, &counts, error);
    if (status == STATUS_OK)
        status = sqlite_number(store, "SELECT count(*) FROM game", &total, error);
    if (status == STATUS_OK && total > GAMES_MAX)
        status = error_set(error, STATUS_FULL, "there would be more than %u games", GAMES_MAX);
    status = sqlite_end(store, status, error);
    if (status == STATUS_OK)
        *result = counts;
    return status;
}

enum status sqlite_game_get(struct platform_store *base, const char *id, struct game_record *record,
                            struct error *error)
{
    sqlite3_stmt *row;
    enum status status =
        sqlite_find(sqlite_store_of(base), "SELECT " GAME_COLUMNS " FROM game WHERE id = ?1", id,
                    "game", &row, error);
    if (status != STATUS_OK)
        return status;
    read_game(row, record);
    (void)sqlite3_reset(row);
    return STATUS_OK;
}

static enum status enable_game(struct sqlite_store *store, const char *id, bool enabled,
                               int64_t now_ms, int64_t revision, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status =
        sqlite_exists(store, "SELECT 1 FROM game WHERE id = ?1", text_of(id), &found, error);
    if (status == STATUS_OK && !found)
        return sqlite_no_change(store, false, "game", error);
    if (status == STATUS_OK)
        status = sqlite_statement(store,
                                  "UPDATE game SET enabled = ?2, updated_ms = ?3, revision = ?4"
                                  " WHERE id = ?1 AND enabled IS NOT ?2",
                                  &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, id);
    bind_integer(statement, 2, enabled);
    bind_integer(statement, 3, now_ms);
    bind_integer(statement, 4, revision);
    return sqlite_run(store, statement, error);
}

enum status sqlite_game_enable(struct platform_store *base, const char *id, bool enabled,
                               int64_t now_ms, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int64_t revision = 0;
    enum status status = sqlite_change_begin(store, NEXT_REVISION, &revision, error);
    if (status != STATUS_OK)
        return status;
    return sqlite_end(store, enable_game(store, id, enabled, now_ms, revision, error), error);
}

/* ---- which games a customer may use ---------------------------------------------------------- */

/* The games of the list are there. */
static enum status check_listed(struct sqlite_store *store, struct text games, struct error *error)
{
    struct text rest = games;
    while (rest.size > 0) {
        struct text id = text_cut(&rest, '\n');
        bool found = false;
        enum status status =
            sqlite_exists(store, "SELECT 1 FROM game WHERE id = ?1", id, &found, error);
        if (status != STATUS_OK)
            return status;
        if (!found)
            return error_set(error, STATUS_NOT_FOUND, "there is no game '%.*s'", (int)id.size,
                             id.at);
    }
    return STATUS_OK;
}

static enum status put_policy(struct sqlite_store *store, const struct game_policy_record *record,
                              int64_t revision, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_exists(store, "SELECT 1 FROM customer WHERE id = ?1",
                                       text_of(record->customer_id), &found, error);
    if (status == STATUS_OK && !found)
        return error_set(error, STATUS_NOT_FOUND, "there is no customer '%s'", record->customer_id);
    if (status == STATUS_OK)
        status = check_listed(store, record->games, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store,
                                  "INSERT INTO customer_games"
                                  " (customer_id, every_game, games, revision)"
                                  " VALUES (?1, ?2, ?3, ?4) ON CONFLICT (customer_id)"
                                  " DO UPDATE SET every_game = ?2, games = ?3, revision = ?4",
                                  &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, record->customer_id);
    bind_integer(statement, 2, record->every_game);
    CHECK(sqlite3_bind_text(statement, 3, record->games.size > 0 ? record->games.at : "",
                            (int)record->games.size, SQLITE_STATIC) == SQLITE_OK);
    bind_integer(statement, 4, revision);
    return sqlite_run(store, statement, error);
}

enum status sqlite_game_policy_put(struct platform_store *base,
                                   const struct game_policy_record *record, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int64_t revision = 0;
    enum status status = sqlite_change_begin(store, NEXT_REVISION, &revision, error);
    if (status != STATUS_OK)
        return status;
    return sqlite_end(store, put_policy(store, record, revision, error), error);
}

/* A row that makes no sense allows nothing. */
static void read_policy(sqlite3_stmt *row, struct game_policy_record *record)
{
    bool every = false;
    *record = (struct game_policy_record){.revision = (uint64_t)sqlite3_column_int64(row, 3)};
    bool usable = read_string(row, 0, record->customer_id, sizeof record->customer_id);
    usable &= read_flag(row, 1, &every);
    record->every_game = usable && every;
    record->games = record->every_game ? TEXT("") : read_text(row, 2);
}

/* ---- reading all of it ----------------------------------------------------------------------- */

enum status sqlite_games_revision(struct platform_store *base, uint64_t *revision,
                                  struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int64_t now;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_number(store, "SELECT revision FROM games_revision", &now, error);
    if (status == STATUS_OK)
        *revision = (uint64_t)now;
    return status;
}

/* Calls `each` for every row of a query. */
static enum status each_row(struct sqlite_store *store, const char *sql,
                            const struct platform_games_visit *visit,
                            void each(sqlite3_stmt *row, const struct platform_games_visit *visit),
                            struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_statement(store, sql, &statement, error);
    if (status != STATUS_OK)
        return status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found)
        each(statement, visit);
    (void)sqlite3_reset(statement);
    return status;
}

static void visit_provider(sqlite3_stmt *row, const struct platform_games_visit *visit)
{
    struct provider_record record;
    read_provider(row, &record);
    visit->provider(visit->context, &record);
}

static void visit_game(sqlite3_stmt *row, const struct platform_games_visit *visit)
{
    struct game_record record;
    read_game(row, &record);
    visit->game(visit->context, &record);
}

static void visit_policy(sqlite3_stmt *row, const struct platform_games_visit *visit)
{
    struct game_policy_record record;
    read_policy(row, &record);
    visit->policy(visit->context, &record);
}

enum status sqlite_games_read(struct platform_store *base, const struct platform_games_visit *visit,
                              uint64_t *revision, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int64_t now = 0;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_execute(store, "BEGIN", error); /* its first read takes the snapshot */
    if (status != STATUS_OK)
        return status;
    status = sqlite_number(store, "SELECT revision FROM games_revision", &now, error);
    if (status == STATUS_OK && visit->provider != NULL)
        status = each_row(store, "SELECT " PROVIDER_COLUMNS " FROM provider ORDER BY id", visit,
                          visit_provider, error);
    if (status == STATUS_OK && visit->game != NULL)
        status = each_row(store, "SELECT " GAME_COLUMNS " FROM game ORDER BY id", visit, visit_game,
                          error);
    if (status == STATUS_OK && visit->policy != NULL)
        status = each_row(store,
                          "SELECT customer_id, every_game, games, revision FROM customer_games"
                          " ORDER BY customer_id",
                          visit, visit_policy, error);
    status = sqlite_end(store, status, error);
    if (status == STATUS_OK)
        *revision = (uint64_t)now;
    return status;
}
