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

/* ---- columns --------------------------------------------------------------------------------- */

bool sqlite_read_hash(sqlite3_stmt *row, int column, uint8_t hash[LEDGER_HASH_SIZE])
{
    const void *bytes = sqlite3_column_blob(row, column);
    if (bytes == NULL || sqlite3_column_bytes(row, column) != LEDGER_HASH_SIZE)
        return false;
    memcpy(hash, bytes, LEDGER_HASH_SIZE);
    return true;
}

/* From ACCOUNT_COLUMNS: the first six are the player's. */
static bool read_player(sqlite3_stmt *row, int first, struct player_record *player)
{
    bool sound = read_string(row, first, player->id, sizeof player->id);
    sound &= read_string(row, first + 1, player->customer_id, sizeof player->customer_id);
    sound &= read_string(row, first + 2, player->reference, sizeof player->reference);
    sound &= read_string(row, first + 3, player->currency, sizeof player->currency);
    int64_t exponent = sqlite3_column_int64(row, first + 4);
    player->currency_exponent = (uint8_t)exponent;
    player->created_ms = sqlite3_column_int64(row, first + 5);
    return sound && exponent >= 0 && exponent <= CURRENCY_EXPONENT_MAX;
}

bool sqlite_read_account(sqlite3_stmt *row, int first, struct ledger_account *account)
{
    struct ledger_account read = {0};
    bool sound = read_player(row, first, &read.player);
    read.balance_minor = sqlite3_column_int64(row, first + 6);
    int64_t sequence = sqlite3_column_int64(row, first + 7);
    read.sequence = (uint64_t)sequence;
    sound &= sqlite_read_hash(row, first + 8, read.head) && sequence >= 0;
    sound &= read.balance_minor >= 0 && read.balance_minor <= LEDGER_BALANCE_MAX;
    if (sound)
        *account = read;
    return sound;
}

bool sqlite_read_declined(sqlite3_stmt *row, int first, struct ledger_account *account)
{
    int64_t declines = sqlite3_column_int64(row, first);
    account->declines = (uint64_t)declines;
    return declines >= 0 && sqlite_read_hash(row, first + 1, account->declines_head);
}

static bool read_entry_columns(sqlite3_stmt *row, struct ledger_transaction *entry)
{
    int64_t sequence = sqlite3_column_int64(row, 12);
    entry->sequence = (uint64_t)sequence;
    entry->movement_minor = sqlite3_column_int64(row, 13);
    entry->balance_minor = sqlite3_column_int64(row, 14);
    return sequence >= 1 && sqlite_read_hash(row, 15, entry->hash);
}

/* Whose it is: from the columns of the join, or as it is known. */
static bool read_whose(sqlite3_stmt *row, const struct player_record *player,
                       struct ledger_transaction *read)
{
    if (player != NULL) {
        memcpy(read->customer_id, player->customer_id, sizeof read->customer_id);
        memcpy(read->player_id, player->id, sizeof read->player_id);
        memcpy(read->currency, player->currency, sizeof read->currency);
        read->currency_exponent = player->currency_exponent;
        return true;
    }
    bool sound = read_string(row, 0, read->customer_id, sizeof read->customer_id);
    sound &= read_string(row, 1, read->player_id, sizeof read->player_id);
    sound &= read_string(row, 6, read->currency, sizeof read->currency);
    int64_t exponent = sqlite3_column_int64(row, 7);
    read->currency_exponent = (uint8_t)exponent;
    return sound && exponent >= 0 && exponent <= CURRENCY_EXPONENT_MAX;
}

bool sqlite_read_transaction(sqlite3_stmt *row, const struct player_record *player,
                             struct ledger_transaction *transaction)
{
    struct ledger_transaction read = {0};
    bool sound = read_whose(row, player, &read);
    sound &= read_string(row, 2, read.transaction_id, sizeof read.transaction_id);
    sound &= read_string(row, 3, read.reference, sizeof read.reference);
    sound &= read_string(row, 4, read.game_id, sizeof read.game_id);
    sound &= read_string(row, 5, read.round_id, sizeof read.round_id);
    sound &= read_string(row, 16, read.provider_id, sizeof read.provider_id);
    sound &= read_string(row, 17, read.launch_id, sizeof read.launch_id);
    sound &= ledger_operation_parse(read_text(row, 8), &read.operation);
    sound &= ledger_outcome_parse(read_text(row, 9), &read.outcome);
    read.amount_minor = sqlite3_column_int64(row, 10);
    read.created_ms = sqlite3_column_int64(row, 11);
    if (sound && ledger_is_entry(&read))
        sound = read_entry_columns(row, &read);
    if (sound)
        *transaction = read;
    return sound;
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
                    "SELECT player.id, player.customer_id, player.reference, player.currency,"
                    " currency.exponent, player.created_ms FROM player"
                    " JOIN currency ON currency.code = player.currency WHERE player.number = ?1",
                    &number, &statement, &found, error);
    if (status != STATUS_OK)
        return status;
    bool sound = found && read_player(statement, 0, &read.record);
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
    if (!found || !sqlite_read_hash(statement, 0, hash))
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
    bool sound = position > 0 && sqlite_read_hash(statement, 1, stored);
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

enum status sqlite_row_read(struct sqlite_store *store, sqlite3_stmt *statement,
                            struct ledger_row *row, struct error *error)
{
    const struct cached_player *player = NULL;
    row->number = sqlite3_column_int64(statement, TRANSACTION_COLUMN_COUNT);
    row->customer_number = sqlite3_column_int64(statement, TRANSACTION_COLUMN_COUNT + 1);
    row->player_number = sqlite3_column_int64(statement, TRANSACTION_COLUMN_COUNT + 2);
    row->previous = sqlite3_column_int64(statement, TRANSACTION_COLUMN_COUNT + 3);
    enum status status = sqlite_player(store, row->player_number, &player, error);
    if (status != STATUS_OK)
        return status;
    return player->customer_number == row->customer_number &&
                   sqlite_read_transaction(statement, &player->record, &row->transaction)
               ? STATUS_OK
               : refuse_row(store, row, error);
}

static enum status read_proved(struct sqlite_store *store, sqlite3_stmt *statement,
                               const struct visited *visited, struct ledger_row *row,
                               struct error *error)
{
    enum status status = sqlite_row_read(store, statement, row, error);
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
    enum status status =
        sqlite_find(store,
                    "SELECT " LEDGER_ROW_COLUMNS
                    " FROM ledger_transaction WHERE ledger_transaction.number = ?1",
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
                                          "SELECT " LEDGER_ROW_COLUMNS " FROM ledger_transaction"
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
