/*
 * Rows of the ledger are read here and believed when they hash to what is stored: an entry with the
 * hash of the player's entry before it, a decline with that of the decline before it. The player
 * that a row is of is a part of what is hashed; its customer's number is compared with the
 * player's.
 */
#include "stores/platform/sqlite/rows.h"

#include "base/memory.h"

struct ledger_cache *sqlite_cache(struct sqlite_store *store)
{
    if (store->cache == NULL)
        store->cache = ledger_cache_create();
    return store->cache;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static enum status find_number(struct sqlite_store *store, const char *sql, const char *id,
                               int64_t *number, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    struct ledger_cache *cache = sqlite_cache(store);
    *number = ledger_cache_number(cache, id);
    if (*number != 0)
        return STATUS_OK;
    enum status status = sqlite_statement(store, sql, &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, id);
    status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    *number = found ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement);
    if (*number != 0)
        ledger_cache_put_number(cache, id, *number);
    return STATUS_OK;
}

enum status sqlite_customer_number(struct sqlite_store *store, const char *id, int64_t *number,
                                   struct error *error)
{
    /* Of the row itself: an index that leads to another customer must not name that one. */
    return find_number(store,
                       "SELECT number FROM customer WHERE +id = ?1"
                       " AND number = (SELECT number FROM customer WHERE id = ?1)",
                       id, number, error);
}

enum status sqlite_player_number(struct sqlite_store *store, const char *id, int64_t *number,
                                 struct error *error)
{
    return find_number(store, "SELECT number FROM player WHERE id = ?1", id, number, error);
}

enum status sqlite_player(struct sqlite_store *store, int64_t number,
                          const struct cached_player **player, struct error *error)
{
    struct cached_player read = {.number = number};
    struct ledger_cache *cache = sqlite_cache(store);
    sqlite3_stmt *statement;
    bool found = false;
    *player = ledger_cache_player(cache, number);
    if (*player != NULL)
        return STATUS_OK;
    enum status status =
        sqlite_find(store,
                    "SELECT " LEDGER_PLAYER_COLUMNS " FROM player"
                    " JOIN currency ON currency.code = player.currency WHERE player.number = ?1",
                    &number, &statement, &found, error);
    if (status != STATUS_OK)
        return status;
    const struct sql_row row = sqlite_sql_row(&statement);
    bool sound = found && ledger_read_player(&row, 0, &read.record);
    (void)sqlite3_reset(statement);
    if (sound)
        status =
            sqlite_customer_number(store, read.record.customer_id, &read.customer_number, error);
    if (status != STATUS_OK)
        return status;
    if (!sound || read.customer_number == 0)
        return platform_damaged(&store->base, "the player of a transaction is not there", error);
    ledger_cache_put_player(cache, &read);
    *player = ledger_cache_player(cache, number);
    return STATUS_OK;
}

/* ---- proof ----------------------------------------------------------------------------------- */

/* Hashes of entries that were visited last, by number: most entries follow one of these. */
#define VISITED 32768
struct visited {
    struct {
        int64_t number;
        uint8_t hash[LEDGER_HASH_SIZE];
    } at[VISITED];
};

static enum status refuse_row(const struct sqlite_store *store, const struct ledger_row *row,
                              struct error *error)
{
    enum status status =
        platform_damaged_row(&store->base, row->number, "it is not what was written", error);
    CHECK(status != STATUS_OK); /* said to the analyser */
    return status;
}

/* The hash that a row follows, by the numbers of `sql`. */
static enum status load_hash(struct sqlite_store *store, const struct ledger_row *row,
                             const char *sql, const int64_t *numbers,
                             uint8_t hash[LEDGER_HASH_SIZE], struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_find(store, sql, numbers, &statement, &found, error);
    if (status != STATUS_OK)
        return status;
    const struct sql_row hashed = sqlite_sql_row(&statement);
    if (!found || !ledger_read_hash(&hashed, 0, hash))
        status =
            platform_damaged_row(&store->base, row->number, "what it follows is not there", error);
    (void)sqlite3_reset(statement);
    return status;
}

static enum status prove_entry(struct sqlite_store *store, const struct visited *visited,
                               struct ledger_row *row, struct error *error)
{
    const int64_t previous = row->previous;
    uint8_t before[LEDGER_HASH_SIZE] = {0};
    enum status status = STATUS_OK;
    if ((row->transaction.sequence > 1) != (previous != 0))
        return refuse_row(store, row, error);
    size_t slot = (uint64_t)previous % VISITED;
    if (previous != 0 && visited != NULL && visited->at[slot].number == previous)
        memcpy(before, visited->at[slot].hash, sizeof before);
    else if (previous != 0)
        status = load_hash(store, row, "SELECT hash FROM ledger_transaction WHERE number = ?1",
                           &previous, before, error);
    if (status != STATUS_OK)
        return status;
    ledger_entry_hash(&row->transaction, before, row->hash);
    return memcmp(row->hash, row->transaction.hash, sizeof row->hash) == 0
               ? STATUS_OK
               : refuse_row(store, row, error);
}

static enum status prove_decline(struct sqlite_store *store, struct ledger_row *row,
                                 struct error *error)
{
    struct ledger_transaction chained = row->transaction;
    uint8_t before[LEDGER_HASH_SIZE] = {0};
    uint8_t stored[LEDGER_HASH_SIZE];
    sqlite3_stmt *statement;
    bool found = false;
    enum status status =
        sqlite_find(store,
                    "SELECT position, hash FROM ledger_decline"
                    " WHERE transaction_number = ?1 AND player_number = ?2",
                    (const int64_t[]){row->number, row->player_number}, &statement, &found, error);
    if (status != STATUS_OK)
        return status;
    int64_t position = found ? sqlite3_column_int64(statement, 0) : 0;
    const struct sql_row chain = sqlite_sql_row(&statement);
    bool sound = position > 0 && ledger_read_hash(&chain, 1, stored);
    (void)sqlite3_reset(statement);
    if (sound && position > 1)
        status =
            load_hash(store, row,
                      "SELECT hash FROM ledger_decline WHERE player_number = ?1 AND position = ?2",
                      (const int64_t[]){row->player_number, position - 1}, before, error);
    if (status != STATUS_OK)
        return status;
    if (sound) {
        chained.decline = (uint64_t)position;
        ledger_decline_hash(&chained, before, row->hash);
        sound = memcmp(row->hash, stored, sizeof stored) == 0;
    }
    return sound ? STATUS_OK : refuse_row(store, row, error);
}

#define ROW_COLUMNS                                                                   \
    LEDGER_TRANSACTION_OF("NULL, NULL, NULL, NULL", "ledger_transaction.game",        \
                          "ledger_transaction.provider", "ledger_transaction.launch") \
    ", ledger_transaction.number, ledger_transaction.customer_number,"                \
    " ledger_transaction.player_number, ledger_transaction.previous"

/* From ROW_COLUMNS, with its player from the cache; not proved. May run other statements. */
static enum status read_row(struct sqlite_store *store, sqlite3_stmt *statement,
                            struct ledger_row *row, struct error *error)
{
    const struct cached_player *player = NULL;
    const struct sql_row columns = sqlite_sql_row(&statement);
    row->number = sqlite3_column_int64(statement, LEDGER_TRANSACTION_COLUMN_COUNT);
    row->customer_number = sqlite3_column_int64(statement, LEDGER_TRANSACTION_COLUMN_COUNT + 1);
    row->player_number = sqlite3_column_int64(statement, LEDGER_TRANSACTION_COLUMN_COUNT + 2);
    row->previous = sqlite3_column_int64(statement, LEDGER_TRANSACTION_COLUMN_COUNT + 3);
    enum status status = sqlite_player(store, row->player_number, &player, error);
    if (status != STATUS_OK)
        return status;
    return player->customer_number == row->customer_number &&
                   ledger_read_transaction(&columns, 0, &player->record, &row->transaction)
               ? STATUS_OK
               : refuse_row(store, row, error);
}

static enum status read_proved(struct sqlite_store *store, sqlite3_stmt *statement,
                               const struct visited *visited, struct ledger_row *row,
                               struct error *error)
{
    enum status status = read_row(store, statement, row, error);
    if (status != STATUS_OK)
        return status;
    return ledger_is_entry(&row->transaction) ? prove_entry(store, visited, row, error)
                                              : prove_decline(store, row, error);
}

enum status sqlite_row_load(struct sqlite_store *store, int64_t number, struct ledger_row *row,
                            struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_find(
        store,
        "SELECT " ROW_COLUMNS " FROM ledger_transaction WHERE ledger_transaction.number = ?1",
        &number, &statement, &found, error);
    if (status != STATUS_OK)
        return status;
    status =
        found ? read_proved(store, statement, NULL, row, error)
              : error_set(error, STATUS_NOT_FOUND, "%s: a transaction is not there", store->path);
    (void)sqlite3_reset(statement);
    if (status == STATUS_OK && row->number != number)
        status = refuse_row(store, row, error);
    return status;
}

enum status sqlite_rows_visit(struct sqlite_store *store, int64_t first, int64_t last,
                              ledger_row_visitor *visit, void *context, struct error *error)
{
    sqlite3_stmt *statement;
    struct ledger_row row;
    bool found = false;
    bool wanted = true;
    int64_t next = first;
    enum status status = sqlite_statement(store,
                                          "SELECT " ROW_COLUMNS " FROM ledger_transaction"
                                          " WHERE ledger_transaction.number BETWEEN ?1 AND ?2"
                                          " ORDER BY ledger_transaction.number",
                                          &statement, error);
    if (status != STATUS_OK)
        return status;
    struct visited *visited = memory_alloc_zeroed(1, sizeof *visited);
    bind_integer(statement, 1, first);
    bind_integer(statement, 2, last);
    for (; wanted && next <= last; next++) {
        status = sqlite_first(store, statement, &found, error);
        if (status == STATUS_OK && found)
            status = read_proved(store, statement, visited, &row, error);
        if (status == STATUS_OK && (!found || row.number != next))
            status = platform_damaged_row(&store->base, next, "it is not there", error);
        if (status != STATUS_OK)
            break;
        size_t slot = (uint64_t)next % VISITED;
        visited->at[slot].number = ledger_is_entry(&row.transaction) ? next : 0;
        memcpy(visited->at[slot].hash, row.hash, sizeof row.hash);
        wanted = visit(context, &row);
    }
    (void)sqlite3_reset(statement);
    memory_free(visited);
    return status;
}
