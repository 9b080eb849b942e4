/*
 * Reading all of the SQLite ledger, or all of a player or a day, for audits, exports and copies; in
 * constant memory. A malformed row is an error and never skipped.
 */
#include <string.h>

#include "base/memory.h"
#include "stores/platform/sqlite/rows.h"

/* A walk through the entries of players, one after the other. */
#define BLOCK 256 /* of a player's entries: an index leads to the first of each */
struct walk {
    struct sqlite_store *store;
    ledger_entry_visitor *visit;
    void *context;
    struct ledger_account account; /* of the player */
    int64_t last_number;           /* of that account */
    uint64_t from, before;         /* of what is visited, by sequence; 0: all */
    uint64_t last;                 /* sequence of the last entry visited of the player, 0 before */
    bool stopped;
    struct ledger_transaction block[BLOCK];
};

static void visit_entry(struct walk *walk, const struct ledger_transaction *entry)
{
    walk->last = entry->sequence;
    if (walk->before > 0 && entry->sequence >= walk->before)
        walk->stopped = true;
    else if (entry->sequence >= walk->from)
        walk->stopped = !walk->visit(walk->context, entry, &walk->account);
}

/* An entry by its number, and the number of the one before. False in `found`: what is there is not
 * that entry. */
static enum status load_entry(struct walk *walk, int64_t player, uint64_t sequence, int64_t *number,
                              struct ledger_transaction *entry, bool *found, struct error *error)
{
    sqlite3_stmt *statement;
    enum status status =
        sqlite_find(walk->store,
                    "SELECT " TRANSACTION_COLUMNS_ALONE ", ledger_transaction.player_number,"
                    " ledger_transaction.previous FROM ledger_transaction"
                    " WHERE ledger_transaction.number = ?1",
                    number, &statement, found, error);
    if (status != STATUS_OK || !*found) {
        (void)sqlite3_reset(statement);
        return status;
    }
    bool sound = sqlite_read_transaction(statement, &walk->account.player, entry);
    *found = sqlite3_column_int64(statement, TRANSACTION_COLUMN_COUNT) == player &&
             ledger_is_entry(entry) && entry->sequence == sequence;
    *number = sqlite3_column_int64(statement, TRANSACTION_COLUMN_COUNT + 1);
    (void)sqlite3_reset(statement);
    return sound
               ? STATUS_OK
               : platform_damaged(&walk->store->base, "an entry of the ledger is malformed", error);
}

/* The number of the last entry of a block that begins at `first`: the one before the next block's
 * first. 0: there is no such block. */
static enum status end_of_block(const struct walk *walk, int64_t player, uint64_t first,
                                int64_t *number, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    *number = walk->last_number;
    if (walk->account.sequence - first < BLOCK)
        return STATUS_OK;
    enum status status =
        sqlite_find(walk->store,
                    "SELECT previous FROM ledger_transaction WHERE player_number = ?1"
                    " AND sequence = ?2 AND sequence % 256 = 1",
                    (const int64_t[]){player, (int64_t)first + BLOCK}, &statement, &found, error);
    if (status != STATUS_OK)
        return status;
    *number = found ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement);
    return STATUS_OK;
}

/* Backwards from the block's last, each leads to the one before; then forwards. False in `whole`:
 * one does not, and nothing was visited. */
static enum status visit_block(struct walk *walk, int64_t player, uint64_t first, bool *whole,
                               struct error *error)
{
    uint64_t left = walk->account.sequence - first + 1;
    size_t count = left < BLOCK ? (size_t)left : BLOCK;
    int64_t number = 0;
    enum status status = end_of_block(walk, player, first, &number, error);
    *whole = true;
    for (size_t at = count; at-- > 0 && status == STATUS_OK && *whole;)
        status = load_entry(walk, player, first + at, &number, &walk->block[at], whole, error);
    for (size_t at = 0; at < count && status == STATUS_OK && *whole && !walk->stopped; at++)
        visit_entry(walk, &walk->block[at]);
    return status;
}

/* Those that cannot be followed, because one was removed or altered: looks at the whole
 * ledger, for some of them at a time. `walk->last` stays when there are none. */
#define CUT_OFF_AT_ONCE 10000
static enum status take_cut_off(void *context, sqlite3_stmt *row, bool *wanted, struct error *error)
{
    struct walk *walk = context;
    struct ledger_transaction entry;
    if (!sqlite_read_transaction(row, &walk->account.player, &entry) || !ledger_is_entry(&entry))
        return platform_damaged(&walk->store->base, "an entry of the ledger is malformed", error);
    visit_entry(walk, &entry);
    *wanted = !walk->stopped;
    return STATUS_OK;
}

static enum status visit_cut_off(struct walk *walk, int64_t player, struct error *error)
{
    return sqlite_visit(walk->store,
                        "SELECT " TRANSACTION_COLUMNS_ALONE " FROM ledger_transaction"
                        " WHERE ledger_transaction.player_number = ?1"
                        " AND ledger_transaction.sequence > ?2"
                        " ORDER BY ledger_transaction.sequence LIMIT ?3",
                        (const int64_t[]){player, (int64_t)walk->last, CUT_OFF_AT_ONCE},
                        take_cut_off, walk, error);
}

static enum status walk_player(struct walk *walk, int64_t player, struct error *error)
{
    enum status status = STATUS_OK;
    bool whole = true;
    /* Blocks begin where the index leads to. */
    walk->last = walk->from > 0 ? (walk->from - 1) / BLOCK * BLOCK : 0;
    while (status == STATUS_OK && whole && !walk->stopped && walk->last < walk->account.sequence)
        status = visit_block(walk, player, walk->last + 1, &whole, error);
    for (uint64_t before = UINT64_MAX;
         status == STATUS_OK && !whole && !walk->stopped && walk->last != before;) {
        before = walk->last;
        status = visit_cut_off(walk, player, error);
    }
    return status;
}

#define PLAYERS_WITH_ACCOUNTS                                                            \
    "SELECT " ACCOUNT_COLUMNS ", player.number, coalesce(ledger_account.last_number, 0)" \
    " FROM player" ACCOUNT_JOINS
#define OF_PLAYER PLAYERS_WITH_ACCOUNTS " WHERE player.id = ?1"
#define OF_CUSTOMER PLAYERS_WITH_ACCOUNTS " WHERE player.customer_id = ?1 ORDER BY player.number"
#define OF_ALL PLAYERS_WITH_ACCOUNTS " ORDER BY player.number"

static enum status take_player(void *context, sqlite3_stmt *row, bool *wanted, struct error *error)
{
    struct walk *walk = context;
    walk->last_number = sqlite3_column_int64(row, ACCOUNT_COLUMN_COUNT + 1);
    if (!sqlite_read_account(row, 0, &walk->account))
        return platform_damaged(&walk->store->base, "an account is malformed", error);
    enum status status = walk_player(walk, sqlite3_column_int64(row, ACCOUNT_COLUMN_COUNT), error);
    *wanted = !walk->stopped;
    return status;
}

enum status sqlite_ledger_entries(struct platform_store *base, struct ledger_whose whose,
                                  ledger_entry_visitor *visit, void *context, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *players;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store,
                                  whose.player_id != NULL     ? OF_PLAYER
                                  : whose.customer_id != NULL ? OF_CUSTOMER
                                                              : OF_ALL,
                                  &players, error);
    if (status != STATUS_OK)
        return status;
    struct walk *walk = memory_alloc_zeroed(1, sizeof *walk);
    walk->store = store;
    walk->visit = visit;
    walk->context = context;
    walk->from = whose.player_id != NULL ? whose.from : 0;
    walk->before = whose.player_id != NULL ? whose.before : 0;
    if (whose.player_id != NULL || whose.customer_id != NULL)
        bind_string(players, 1, whose.player_id != NULL ? whose.player_id : whose.customer_id);
    status = sqlite_each(store, players, take_player, walk, error);
    memory_free(walk);
    return status;
}

/* ---- rows of other kinds --------------------------------------------------------------------- */

/* Who visits the rows of a statement: one of them. */
struct rows {
    struct sqlite_store *store;
    ledger_recent_visitor *recent;
    int64_t first_number; /* of the recent ones */
    ledger_entry_visitor *decline;
    ledger_transaction_visitor *transaction;
    ledger_clearing_visitor *clearing;
    void *context;
};

static enum status visit_rows(struct rows *rows, const char *sql, sqlite_row_reader *read,
                              struct error *error)
{
    enum status status = sqlite_ready(rows->store, error);
    return status == STATUS_OK ? sqlite_visit(rows->store, sql, NULL, read, rows, error) : status;
}

static bool read_decline(sqlite3_stmt *row, struct ledger_transaction *decline,
                         struct ledger_account *account)
{
    int declined = TRANSACTION_COLUMN_COUNT + ACCOUNT_COLUMN_COUNT;
    bool sound = sqlite_read_transaction(row, NULL, decline) && !ledger_is_entry(decline) &&
                 sqlite_read_account(row, TRANSACTION_COLUMN_COUNT, account) &&
                 sqlite_read_declined(row, declined, account);
    decline->decline = (uint64_t)sqlite3_column_int64(row, declined + 2);
    return sound && decline->decline > 0 && sqlite_read_hash(row, declined + 3, decline->hash);
}

static enum status take_decline(void *context, sqlite3_stmt *row, bool *wanted, struct error *error)
{
    const struct rows *rows = context;
    struct ledger_transaction decline;
    struct ledger_account account;
    if (!read_decline(row, &decline, &account))
        return platform_damaged(&rows->store->base, "a decline is malformed", error);
    *wanted = rows->decline(rows->context, &decline, &account);
    return STATUS_OK;
}

enum status sqlite_ledger_declines(struct platform_store *base, ledger_entry_visitor *visit,
                                   void *context, struct error *error)
{
    struct rows rows = {.store = sqlite_store_of(base), .decline = visit, .context = context};
    return visit_rows(
        &rows,
        "SELECT " TRANSACTION_COLUMNS ", " ACCOUNT_COLUMNS DECLINED_COLUMNS
        ", ledger_decline.position, ledger_decline.hash FROM ledger_decline"
        " CROSS JOIN ledger_transaction"
        "  ON ledger_transaction.number = ledger_decline.transaction_number"
        " CROSS JOIN player ON player.number = ledger_decline.player_number" ACCOUNT_JOINS
            DECLINED_JOIN " ORDER BY ledger_decline.player_number, ledger_decline.position",
        take_decline, error);
}

#define TRANSACTION_ROWS "SELECT " LEDGER_ROW_COLUMNS " FROM ledger_transaction"

static enum status take_transaction(void *context, sqlite3_stmt *row, bool *wanted,
                                    struct error *error)
{
    const struct rows *rows = context;
    struct ledger_row read;
    enum status status = sqlite_row_read(rows->store, row, &read, error);
    if (status == STATUS_OK)
        *wanted = rows->transaction(rows->context, &read.transaction);
    return status;
}

enum status sqlite_ledger_transactions(struct platform_store *base,
                                       ledger_transaction_visitor *visit, void *context,
                                       struct error *error)
{
    struct rows rows = {.store = sqlite_store_of(base), .transaction = visit, .context = context};
    return visit_rows(&rows, TRANSACTION_ROWS " ORDER BY ledger_transaction.number",
                      take_transaction, error);
}

static enum status visit_before(const struct rows *rows, int64_t number, bool *wanted,
                                struct error *error)
{
    struct ledger_row before;
    sqlite3_stmt *row;
    bool found = false;
    enum status status = sqlite_find(rows->store, TRANSACTION_ROWS " WHERE number = ?1", &number,
                                     &row, &found, error);
    if (status != STATUS_OK)
        return status;
    if (found) /* else the entry says so that follows it */
        status = sqlite_row_read(rows->store, row, &before, error);
    (void)sqlite3_reset(row);
    if (status == STATUS_OK && found)
        *wanted = rows->recent(rows->context, &before.transaction, true);
    return status;
}

static enum status take_recent(void *context, sqlite3_stmt *row, bool *wanted, struct error *error)
{
    const struct rows *rows = context;
    struct ledger_row read;
    enum status status = sqlite_row_read(rows->store, row, &read, error);
    if (status == STATUS_OK && read.previous != 0 && read.previous < rows->first_number)
        status = visit_before(rows, read.previous, wanted, error);
    if (status == STATUS_OK && *wanted)
        *wanted = rows->recent(rows->context, &read.transaction, false);
    return status;
}

enum status sqlite_ledger_recent(struct platform_store *base, int64_t since_ms,
                                 ledger_recent_visitor *visit, void *context, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct rows rows = {.store = store, .recent = visit, .context = context};
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_find(store,
                             "SELECT coalesce(min(first_number), 9223372036854775807)"
                             " FROM ledger_day WHERE day >= ?1 / 86400000",
                             &since_ms, &statement, &found, error);
    if (status != STATUS_OK)
        return status;
    rows.first_number = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return sqlite_visit(store, TRANSACTION_ROWS " WHERE number >= ?1 ORDER BY number",
                        &rows.first_number, take_recent, &rows, error);
}

/* Numbers of a time, in order of time and decision. Only they are sorted, and not the rows: what
 * does not fit into memory goes to a file. */
#define ENTERED                                                                                  \
    "SELECT entered.number FROM ledger_day AS span CROSS JOIN ledger_transaction AS entered"     \
    " ON entered.number >= span.first_number AND entered.number < coalesce("                     \
    "(SELECT min(first_number) FROM ledger_day AS next"                                          \
    " WHERE next.first_number > span.first_number), 9223372036854775807)"                        \
    " WHERE span.day BETWEEN ?1 / 86400000 AND (?2 - 1) / 86400000"                              \
    " AND entered.sequence IS NOT NULL AND entered.created_ms >= ?1 AND entered.created_ms < ?2" \
    " ORDER BY entered.created_ms, entered.number"

/* Cannot be changed within a transaction: then whoever began that has done it. */
static enum status sort_in_files(struct sqlite_store *store, struct error *error)
{
    return sqlite3_get_autocommit(store->database) == 0
               ? STATUS_OK
               : sqlite_execute(store, "PRAGMA temp_store = FILE", error);
}

/* A row of ENTERED leads to one of TRANSACTION_ROWS. */
static enum status take_number(void *context, sqlite3_stmt *row, bool *wanted, struct error *error)
{
    const struct rows *rows = context;
    const int64_t number = sqlite3_column_int64(row, 0);
    sqlite3_stmt *statement;
    bool found = false;
    enum status status =
        sqlite_find(rows->store, TRANSACTION_ROWS " WHERE ledger_transaction.number = ?1", &number,
                    &statement, &found, error);
    if (status != STATUS_OK)
        return status;
    status = found ? take_transaction(context, statement, wanted, error)
                   : platform_damaged_row(&rows->store->base, number, "it is not there", error);
    (void)sqlite3_reset(statement);
    return status;
}

enum status sqlite_ledger_entered(struct platform_store *base, int64_t from_ms, int64_t to_ms,
                                  ledger_transaction_visitor *visit, void *context,
                                  struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct rows rows = {.store = store, .transaction = visit, .context = context};
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sort_in_files(store, error);
    return status == STATUS_OK ? sqlite_visit(store, ENTERED, (const int64_t[]){from_ms, to_ms},
                                              take_number, &rows, error)
                               : status;
}

static enum status take_clearing(void *context, sqlite3_stmt *row, bool *wanted,
                                 struct error *error)
{
    const struct rows *rows = context;
    struct ledger_clearing clearing = {0};
    bool sound = read_string(row, 0, clearing.customer_id, sizeof clearing.customer_id);
    sound &= read_string(row, 1, clearing.currency, sizeof clearing.currency);
    clearing.balance_minor = sqlite3_column_int64(row, 2);
    if (!sound)
        return platform_damaged(&rows->store->base, "a clearing account is malformed", error);
    *wanted = rows->clearing(rows->context, &clearing, sqlite3_column_int64(row, 3));
    return STATUS_OK;
}

enum status sqlite_ledger_clearings(struct platform_store *base, ledger_clearing_visitor *visit,
                                    void *context, struct error *error)
{
    struct rows rows = {.store = sqlite_store_of(base), .clearing = visit, .context = context};
    return visit_rows(&rows,
                      "SELECT customer.id, coalesce(ledger_clearing.currency, held.currency),"
                      " coalesce(ledger_clearing.balance_minor, 0), coalesce(held.balance_minor, 0)"
                      " FROM ledger_clearing FULL JOIN"
                      " (SELECT customer.number, player.currency,"
                      "  sum(ledger_account.balance_minor) AS balance_minor FROM ledger_account"
                      "  JOIN player ON player.number = ledger_account.player_number"
                      "  JOIN customer ON customer.id = player.customer_id"
                      "  GROUP BY customer.number, player.currency) AS held"
                      " ON held.number = ledger_clearing.customer_number"
                      " AND held.currency = ledger_clearing.currency"
                      " LEFT JOIN customer"
                      " ON customer.number = coalesce(ledger_clearing.customer_number, held.number)"
                      " WHERE ledger_clearing.currency IS NOT NULL OR held.balance_minor <> 0",
                      take_clearing, error);
}

enum status sqlite_ledger_count(struct platform_store *base, uint64_t *count, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int64_t counted = 0;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_number(store,
                               "SELECT count(*) FROM ledger_transaction WHERE sequence IS NOT NULL",
                               &counted, error);
    if (status == STATUS_OK)
        *count = (uint64_t)counted;
    return status;
}

enum status sqlite_snapshot_begin(struct platform_store *base, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sort_in_files(store, error);
    return status == STATUS_OK ? sqlite_execute(store, "BEGIN", error) : status;
}

void sqlite_snapshot_end(struct platform_store *base)
{
    struct sqlite_store *store = sqlite_store_of(base);
    if (store->database != NULL && sqlite3_get_autocommit(store->database) == 0)
        (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
}
