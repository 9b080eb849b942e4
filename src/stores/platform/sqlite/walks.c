/*
 * Reading all of the SQLite ledger, or all of a player or a day, for audits, exports and copies; in
 * constant memory. A row that makes no sense is an error and never skipped.
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
    uint64_t last;                 /* sequence of the last entry visited of the player, 0 before */
    bool stopped;
    struct ledger_transaction block[BLOCK];
};

static void visit_entry(struct walk *walk, const struct ledger_transaction *entry)
{
    walk->last = entry->sequence;
    walk->stopped = !walk->visit(walk->context, entry, &walk->account);
}

/* An entry by its number, and the number of the one before. False in `found`: what is there is not
 * that entry. */
static enum status load_entry(struct walk *walk, int64_t player, uint64_t sequence, int64_t *number,
                              struct ledger_transaction *entry, bool *found, struct error *error)
{
    sqlite3_stmt *statement;
    enum status status =
        sqlite_statement(walk->store,
                         "SELECT " TRANSACTION_COLUMNS_ALONE ", ledger_transaction.player_number,"
                         " ledger_transaction.previous FROM ledger_transaction"
                         " WHERE ledger_transaction.number = ?1",
                         &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, *number);
    status = sqlite_first(walk->store, statement, found, error);
    if (status != STATUS_OK || !*found) {
        (void)sqlite3_reset(statement);
        return status;
    }
    bool sound = sqlite_read_transaction(statement, &walk->account.player, entry);
    *found = sqlite3_column_int64(statement, TRANSACTION_COLUMN_COUNT) == player &&
             ledger_is_entry(entry) && entry->sequence == sequence;
    *number = sqlite3_column_int64(statement, TRANSACTION_COLUMN_COUNT + 1);
    (void)sqlite3_reset(statement);
    return sound ? STATUS_OK
                 : platform_damaged(&walk->store->base, "an entry of the ledger makes no sense",
                                    error);
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
    enum status status = sqlite_statement(walk->store,
                                          "SELECT previous FROM ledger_transaction"
                                          " WHERE player_number = ?1 AND sequence = ?2"
                                          " AND sequence % 256 = 1",
                                          &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, player);
    bind_integer(statement, 2, (int64_t)first + BLOCK);
    status = sqlite_first(walk->store, statement, &found, error);
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

/* Those that cannot be followed, because somebody has removed or altered one: looks at the whole
 * ledger, for some of them at a time. `walk->last` stays when there are none. */
#define CUT_OFF_AT_ONCE 10000
static enum status visit_cut_off(struct walk *walk, int64_t player, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status =
        sqlite_statement(walk->store,
                         "SELECT " TRANSACTION_COLUMNS_ALONE " FROM ledger_transaction"
                         " WHERE ledger_transaction.player_number = ?1"
                         " AND ledger_transaction.sequence > ?2"
                         " ORDER BY ledger_transaction.sequence LIMIT ?3",
                         &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, player);
    bind_integer(statement, 2, (int64_t)walk->last);
    bind_integer(statement, 3, CUT_OFF_AT_ONCE);
    while (!walk->stopped &&
           (status = sqlite_first(walk->store, statement, &found, error)) == STATUS_OK && found) {
        struct ledger_transaction entry;
        if (!sqlite_read_transaction(statement, &walk->account.player, &entry) ||
            !ledger_is_entry(&entry)) {
            status = platform_damaged(&walk->store->base, "an entry of the ledger makes no sense",
                                      error);
            break;
        }
        visit_entry(walk, &entry);
    }
    (void)sqlite3_reset(statement);
    return status;
}

static enum status walk_player(struct walk *walk, int64_t player, struct error *error)
{
    enum status status = STATUS_OK;
    bool whole = true;
    walk->last = 0;
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

enum status sqlite_ledger_entries(struct platform_store *base, const char *player_id,
                                  ledger_entry_visitor *visit, void *context, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *players;
    bool found = false;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status =
            sqlite_statement(store,
                             player_id == NULL ? PLAYERS_WITH_ACCOUNTS " ORDER BY player.number"
                                               : PLAYERS_WITH_ACCOUNTS " WHERE player.id = ?1",
                             &players, error);
    if (status != STATUS_OK)
        return status;
    struct walk *walk = memory_alloc_zeroed(1, sizeof *walk);
    walk->store = store;
    walk->visit = visit;
    walk->context = context;
    if (player_id != NULL)
        bind_string(players, 1, player_id);
    while (!walk->stopped && (status = sqlite_first(store, players, &found, error)) == STATUS_OK &&
           found) {
        walk->last_number = sqlite3_column_int64(players, ACCOUNT_COLUMN_COUNT + 1);
        if (!sqlite_read_account(players, 0, &walk->account))
            status = platform_damaged(base, "an account makes no sense", error);
        if (status == STATUS_OK)
            status = walk_player(walk, sqlite3_column_int64(players, ACCOUNT_COLUMN_COUNT), error);
        if (status != STATUS_OK)
            break;
    }
    (void)sqlite3_reset(players);
    memory_free(walk);
    return status;
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

enum status sqlite_ledger_declines(struct platform_store *base, ledger_entry_visitor *visit,
                                   void *context, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(
            store,
            "SELECT " TRANSACTION_COLUMNS ", " ACCOUNT_COLUMNS DECLINED_COLUMNS
            ", ledger_decline.position, ledger_decline.hash FROM ledger_decline"
            " CROSS JOIN ledger_transaction"
            "  ON ledger_transaction.number = ledger_decline.transaction_number"
            " CROSS JOIN player ON player.number = ledger_decline.player_number" ACCOUNT_JOINS
                DECLINED_JOIN " ORDER BY ledger_decline.player_number, ledger_decline.position",
            &statement, error);
    if (status != STATUS_OK)
        return status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        struct ledger_transaction decline;
        struct ledger_account account;
        if (!read_decline(statement, &decline, &account)) {
            status = platform_damaged(&store->base, "a decline makes no sense", error);
            break;
        }
        if (!visit(context, &decline, &account))
            break;
    }
    (void)sqlite3_reset(statement);
    return status;
}

#define TRANSACTION_ROWS                                                     \
    "SELECT " TRANSACTION_COLUMNS " FROM ledger_transaction"                 \
    " CROSS JOIN player ON player.number = ledger_transaction.player_number" \
    " JOIN currency ON currency.code = player.currency"

static enum status visit_transactions(struct sqlite_store *store, sqlite3_stmt *statement,
                                      ledger_transaction_visitor *visit, void *context,
                                      struct error *error)
{
    bool found = false;
    enum status status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        struct ledger_transaction transaction;
        if (!sqlite_read_transaction(statement, NULL, &transaction)) {
            status = platform_damaged(&store->base, "a transaction makes no sense", error);
            break;
        }
        if (!visit(context, &transaction))
            break;
    }
    (void)sqlite3_reset(statement);
    return status;
}

enum status sqlite_ledger_transactions(struct platform_store *base,
                                       ledger_transaction_visitor *visit, void *context,
                                       struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store, TRANSACTION_ROWS " ORDER BY ledger_transaction.number",
                                  &statement, error);
    if (status != STATUS_OK)
        return status;
    return visit_transactions(store, statement, visit, context, error);
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

static enum status visit_number(struct sqlite_store *store, int64_t number,
                                ledger_transaction_visitor *visit, void *context, bool *wanted,
                                struct error *error)
{
    sqlite3_stmt *statement;
    struct ledger_transaction transaction;
    bool found = false;
    enum status status = sqlite_statement(
        store, TRANSACTION_ROWS " WHERE ledger_transaction.number = ?1", &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, number);
    status = sqlite_first(store, statement, &found, error);
    if (status == STATUS_OK && (!found || !sqlite_read_transaction(statement, NULL, &transaction)))
        status = platform_damaged(&store->base, "a transaction makes no sense", error);
    (void)sqlite3_reset(statement);
    if (status == STATUS_OK)
        *wanted = visit(context, &transaction);
    return status;
}

enum status sqlite_ledger_entered(struct platform_store *base, int64_t from_ms, int64_t to_ms,
                                  ledger_transaction_visitor *visit, void *context,
                                  struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    bool found = false;
    bool wanted = true;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sort_in_files(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store, ENTERED, &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, from_ms);
    bind_integer(statement, 2, to_ms);
    while (wanted && status == STATUS_OK &&
           (status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found)
        status =
            visit_number(store, sqlite3_column_int64(statement, 0), visit, context, &wanted, error);
    (void)sqlite3_reset(statement);
    return status;
}

enum status sqlite_ledger_clearings(struct platform_store *base, ledger_clearing_visitor *visit,
                                    void *context, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(
            store,
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
            &statement, error);
    if (status != STATUS_OK)
        return status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        struct ledger_clearing clearing = {0};
        bool sound = read_string(statement, 0, clearing.customer_id, sizeof clearing.customer_id);
        sound &= read_string(statement, 1, clearing.currency, sizeof clearing.currency);
        clearing.balance_minor = sqlite3_column_int64(statement, 2);
        if (!sound) {
            status = platform_damaged(&store->base, "a clearing account makes no sense", error);
            break;
        }
        if (!visit(context, &clearing, sqlite3_column_int64(statement, 3)))
            break;
    }
    (void)sqlite3_reset(statement);
    return status;
}

static enum status query_count(struct platform_store *base, const char *sql, uint64_t *count,
                               struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store, sql, &statement, error);
    if (status == STATUS_OK)
        status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    *count = (uint64_t)sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return STATUS_OK;
}

enum status sqlite_ledger_count(struct platform_store *base, uint64_t *count, struct error *error)
{
    return query_count(base, "SELECT count(*) FROM ledger_transaction WHERE sequence IS NOT NULL",
                       count, error);
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
