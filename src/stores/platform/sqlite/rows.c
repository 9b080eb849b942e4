/*
 * Rows of the ledger are read here and believed when they hash to what is stored: an entry with the
 * hash of the player's entry before it, a decline with that of the decline before it. The player
 * that a row is of is a part of what is hashed; its customer's number is compared with the
 * player's.
 */
#include "stores/platform/sqlite/rows.h"

#include "stores/platform/texts.h"

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
    bool found = false;
    struct ledger_cache *cache = sqlite_cache(store);
    *number = ledger_cache_number(cache, id);
    if (*number != 0)
        return STATUS_OK;
    enum status status = sqlite_look_up(store, sql, &SQL_STRING(id), &found, number, error);
    if (status == STATUS_OK && *number != 0)
        ledger_cache_put_number(cache, id, *number);
    return status;
}

enum status sqlite_customer_number(struct sqlite_store *store, const char *id, int64_t *number,
                                   struct error *error)
{
    /* Reads the names of the row itself: an index that leads to another customer must not name that
     * one. */
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

/* The player of a row, with its customer's number; the pointer is valid until the next call.
 * STATUS_MALFORMED: it is not there, or its customer is not. */
static enum status find_player(struct sqlite_store *store, int64_t number,
                               const struct cached_player **player, struct error *error)
{
    struct cached_player read = {.number = number};
    struct ledger_cache *cache = sqlite_cache(store);
    sqlite3_stmt *statement;
    bool found = false;
    *player = ledger_cache_player(cache, number);
    if (*player != NULL)
        return STATUS_OK;
    enum status status = sqlite_find(store, sqlite_texts.player_of_number, &SQL_INTEGER(number),
                                     &statement, &found, error);
    if (status != STATUS_OK)
        return status;
    const struct sql_row row = sqlite_sql_row(&statement);
    bool sound = found && ledger_read_player(&row, 0, &read.record);
    read.record.sandbox = found && sql_integer(&row, 6) != 0;
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

const struct player_record *sqlite_player_of(struct platform_store *store, int64_t number)
{
    const struct cached_player *player = NULL;
    struct error error;
    return find_player(sqlite_store_of(store), number, &player, &error) == STATUS_OK
               ? &player->record
               : NULL;
}

/* ---- hashes ---------------------------------------------------------------------------------- */

/* The columns after those of a transaction. */
enum {
    NUMBER = LEDGER_TRANSACTION_COLUMN_COUNT,
    CUSTOMER_NUMBER,
    PLAYER_NUMBER,
    PREVIOUS,
    ENTRY_HASH,
    POSITION,
    DECLINE_HASH,
    BEFORE_HASH,
};

static bool is_verified_entry(const struct sql_row *columns, struct ledger_row *row)
{
    bool follows = row->transaction.sequence > 1;
    uint8_t before[LEDGER_HASH_SIZE];
    if (follows != (row->previous != 0) || follows != ledger_read_hash(columns, ENTRY_HASH, before))
        return false;
    ledger_entry_hash(&row->transaction, before, row->hash);
    return memcmp(row->hash, row->transaction.hash, sizeof row->hash) == 0;
}

static bool is_verified_decline(const struct sql_row *columns, struct ledger_row *row)
{
    struct ledger_transaction chained = row->transaction;
    const int64_t position = sql_integer(columns, POSITION);
    uint8_t before[LEDGER_HASH_SIZE];
    uint8_t stored[LEDGER_HASH_SIZE];
    if (position < 1 || !ledger_read_hash(columns, DECLINE_HASH, stored) ||
        (position > 1) != ledger_read_hash(columns, BEFORE_HASH, before))
        return false;
    chained.decline = (uint64_t)position;
    ledger_decline_hash(&chained, before, row->hash);
    return memcmp(row->hash, stored, sizeof stored) == 0;
}

/* A row, with its player from the cache. May run other statements. */
static enum status read_verified(struct sqlite_store *store, const struct sql_row *columns,
                                 struct ledger_row *row, struct error *error)
{
    const struct cached_player *player = NULL;
    row->number = sql_integer(columns, NUMBER);
    row->customer_number = sql_integer(columns, CUSTOMER_NUMBER);
    row->player_number = sql_integer(columns, PLAYER_NUMBER);
    row->previous = sql_integer(columns, PREVIOUS);
    enum status status = find_player(store, row->player_number, &player, error);
    if (status != STATUS_OK)
        return status;
    bool verified = player->customer_number == row->customer_number &&
                    ledger_read_transaction(columns, 0, &player->record, &row->transaction) &&
                    (ledger_is_entry(&row->transaction) ? is_verified_entry(columns, row)
                                                        : is_verified_decline(columns, row));
    return verified ? STATUS_OK
                    : platform_damaged_row(&store->base, row->number, "it is not what was written",
                                           error);
}

enum status sqlite_row_load(struct sqlite_store *store, int64_t number, struct ledger_row *row,
                            struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_find(store, sqlite_texts.verified_row, &SQL_INTEGER(number),
                                     &statement, &found, error);
    if (status != STATUS_OK)
        return status;
    const struct sql_row columns = sqlite_sql_row(&statement);
    status = found ? read_verified(store, &columns, row, error)
                   : error_not_found(error, "%s: a transaction is not there", store->path);
    (void)sqlite3_reset(statement);
    return status;
}

struct visiting {
    struct sqlite_store *store;
    int64_t next; /* -1: some are left out */
    ledger_row_visitor *visit;
    void *context;
    bool ended; /* by the visitor */
    enum status status;
    struct error *error;
};

static bool visit_row(void *context, const struct sql_row *columns)
{
    struct visiting *visiting = context;
    struct ledger_row row;
    visiting->status = read_verified(visiting->store, columns, &row, visiting->error);
    if (visiting->status != STATUS_OK || (visiting->next >= 0 && row.number != visiting->next))
        return false;
    visiting->next += visiting->next >= 0;
    visiting->ended = !visiting->visit(visiting->context, &row);
    return !visiting->ended;
}

enum status sqlite_rows_visit(struct sqlite_store *store, int64_t first, int64_t last,
                              const char *id, ledger_row_visitor *visit, void *context,
                              struct error *error)
{
    const struct sql_texts *texts = &sqlite_texts;
    struct visiting visiting = {store, id == NULL ? first : -1, visit, context, false, STATUS_OK,
                                error};
    struct sql_parameters parameters = SQL_PARAMETERS(SQL_INTEGER(first), SQL_INTEGER(last));
    struct sql_query query = {.sql = id == NULL ? texts->verified_rows : texts->verified_rows_of_id,
                              .parameters = &parameters,
                              .row = visit_row,
                              .context = &visiting};
    if (id != NULL)
        SQL_ADD(&parameters, SQL_STRING(id));
    enum status status = sqlite_sql.run(&store->base, &query, 1, false, error);
    if (status == STATUS_OK)
        status = visiting.status;
    if (status == STATUS_OK && id == NULL && !visiting.ended && visiting.next <= last)
        status = platform_damaged_row(&store->base, visiting.next, "it is not there", error);
    return status;
}
