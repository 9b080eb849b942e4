/*
 * Players and currencies in SQLite. Rows are only ever added, so finding one needs no transaction,
 * and two who open the same player at once end with the same row: the second finds it inside its
 * own BEGIN IMMEDIATE.
 */
#include <string.h>

#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/sqlite.h"

#define PLAYER_ROWS                                                     \
    "player.id, player.customer_id, player.reference, player.currency," \
    " currency.exponent, player.created_ms FROM player"                 \
    " JOIN currency ON currency.code = player.currency"

/* Money is at stake: a row that makes no sense is an error, not a player. */
static enum status read_player(struct sqlite_store *store, sqlite3_stmt *row,
                               struct player_record *player, struct error *error)
{
    struct player_record read = {0};
    bool sound = read_string(row, 0, read.id, sizeof read.id);
    sound &= read_string(row, 1, read.customer_id, sizeof read.customer_id);
    sound &= read_string(row, 2, read.reference, sizeof read.reference);
    sound &= read_string(row, 3, read.currency, sizeof read.currency);
    int64_t exponent = sqlite3_column_int64(row, 4);
    read.created_ms = sqlite3_column_int64(row, 5);
    if (!sound || exponent < 0 || exponent > CURRENCY_EXPONENT_MAX)
        return error_set(error, STATUS_MALFORMED, "%s: is damaged (a player makes no sense)",
                         store->path);
    read.currency_exponent = (uint8_t)exponent;
    *player = read;
    return STATUS_OK;
}

/* Runs a look-up whose parameters are bound: STATUS_NOT_FOUND when there is no row. */
static enum status first_player(struct sqlite_store *store, sqlite3_stmt *statement,
                                struct player_record *player, struct error *error)
{
    bool found = false;
    enum status status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    if (found)
        status = read_player(store, statement, player, error);
    else
        status = error_set(error, STATUS_NOT_FOUND, "%s: there is no such player", store->path);
    (void)sqlite3_reset(statement);
    return status;
}

static enum status find_player(struct sqlite_store *store, const struct player_record *wanted,
                               struct player_record *player, struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(store,
                                          "SELECT " PLAYER_ROWS " WHERE customer_id = ?1"
                                          " AND reference = ?2 AND currency = ?3",
                                          &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, wanted->customer_id);
    bind_string(statement, 2, wanted->reference);
    bind_string(statement, 3, wanted->currency);
    return first_player(store, statement, player, error);
}

static enum status insert_currency(struct sqlite_store *store, const struct player_record *wanted,
                                   struct error *error)
{
    sqlite3_stmt *statement;
    enum status status =
        sqlite_statement(store,
                         "INSERT INTO currency (code, exponent, created_ms) VALUES (?1, ?2, ?3)"
                         " ON CONFLICT (code) DO NOTHING",
                         &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, wanted->currency);
    bind_integer(statement, 2, wanted->currency_exponent);
    bind_integer(statement, 3, wanted->created_ms);
    return sqlite_run(store, statement, error);
}

static enum status insert_player(struct sqlite_store *store, const struct player_record *wanted,
                                 struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = insert_currency(store, wanted, error);
    if (status == STATUS_OK)
        status =
            sqlite_statement(store,
                             "INSERT INTO player (id, customer_id, reference, currency, created_ms)"
                             " VALUES (?1, ?2, ?3, ?4, ?5)",
                             &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, wanted->id);
    bind_string(statement, 2, wanted->customer_id);
    bind_string(statement, 3, wanted->reference);
    bind_string(statement, 4, wanted->currency);
    bind_integer(statement, 5, wanted->created_ms);
    return sqlite_run(store, statement, error);
}

enum status sqlite_player_open(struct platform_store *base, const struct player_record *wanted,
                               struct player_record *player, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct player_record opened = {0};
    enum status status = sqlite_ready(store, error);
    if (status != STATUS_OK)
        return status;
    status = find_player(store, wanted, player, error); /* nearly always there already */
    if (status != STATUS_NOT_FOUND)
        return status;
    status = sqlite_execute(store, "BEGIN IMMEDIATE", error);
    if (status != STATUS_OK)
        return status;
    status = find_player(store, wanted, &opened, error);
    if (status == STATUS_NOT_FOUND) {
        status = insert_player(store, wanted, error);
        if (status == STATUS_OK) /* with the exponent that was frozen */
            status = find_player(store, wanted, &opened, error);
    }
    status = sqlite_end(store, status, error);
    if (status == STATUS_OK)
        *player = opened;
    return status;
}

enum status sqlite_player_get(struct platform_store *base, const char *player_id,
                              struct player_record *player, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store, "SELECT " PLAYER_ROWS " WHERE player.id = ?1", &statement,
                                  error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, player_id);
    return first_player(store, statement, player, error);
}

/* ---- copying --------------------------------------------------------------------------------- */

enum status sqlite_player_list(struct platform_store *base, player_visitor *visit, void *context,
                               struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store, "SELECT " PLAYER_ROWS " ORDER BY player.number",
                                  &statement, error);
    if (status != STATUS_OK)
        return status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        struct player_record player;
        status = read_player(store, statement, &player, error);
        if (status != STATUS_OK || !visit(context, &player))
            break;
    }
    (void)sqlite3_reset(statement);
    return status;
}

/* With its own id; the currency may be there already, with the same exponent. */
static enum status put_player(struct sqlite_store *store, const struct player_record *record,
                              struct error *error)
{
    struct player_record stored = {0};
    enum status status = insert_player(store, record, error);
    if (status == STATUS_OK)
        status = find_player(store, record, &stored, error);
    if (status == STATUS_OK && stored.currency_exponent != record->currency_exponent)
        status = error_set(error, STATUS_INVALID,
                           "%s: %s has another exponent here; it was frozen when first used",
                           store->path, record->currency);
    return status;
}

enum status sqlite_player_put(struct platform_store *base, const struct player_record *records,
                              size_t count, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_execute(store, "BEGIN IMMEDIATE", error);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = put_player(store, &records[i], error);
    return sqlite_end(store, status, error);
}
