/*
 * The ledger in SQLite. A batch is BEGIN IMMEDIATE … COMMIT in WAL with synchronous=FULL, so a
 * commit that returned is on the disk. Cost an operation is a handful of look-ups by key and as
 * many inserts, however long the ledger is.
 *
 * A row that makes no sense is an error here and never skipped: it is money.
 */
#include <string.h>

#include "base/hash.h"
#include "stores/platform/sqlite/columns.h"
#include "stores/platform/sqlite/ids.h"
#include "stores/platform/sqlite/sqlite.h"

/* ---- numbers --------------------------------------------------------------------------------- */

/* The number of a customer or player, by `sql`; 0: there is none. */
static enum status find_number(struct sqlite_store *store, const char *sql, const char *id,
                               int64_t *number, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    size_t place = hash_string(0, id) % SQLITE_NUMBERS;
    if (strcmp(store->numbers[place].id, id) == 0) {
        *number = store->numbers[place].number;
        return STATUS_OK;
    }
    enum status status = sqlite_statement(store, sql, &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, id);
    status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    *number = found ? sqlite3_column_int64(statement, 0) : 0;
    (void)sqlite3_reset(statement);
    if (found && strlen(id) < sizeof store->numbers[place].id) {
        memcpy(store->numbers[place].id, id, strlen(id) + 1);
        store->numbers[place].number = *number;
    }
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

/* ---- accounts -------------------------------------------------------------------------------- */

#define ACCOUNT_COLUMNS                                                                    \
    "player.id, player.customer_id, player.reference, player.currency, currency.exponent," \
    " player.created_ms, coalesce(ledger_account.balance_minor, 0),"                       \
    " coalesce(ledger_account.sequence, 0), coalesce(ledger_account.head, zeroblob(32))"
#define ACCOUNT_COLUMN_COUNT 9
#define ACCOUNT_JOINS                                   \
    " JOIN currency ON currency.code = player.currency" \
    " LEFT JOIN ledger_account ON ledger_account.player_number = player.number"

static bool read_hash(sqlite3_stmt *row, int column, uint8_t hash[LEDGER_HASH_SIZE])
{
    const void *bytes = sqlite3_column_blob(row, column);
    if (bytes == NULL || sqlite3_column_bytes(row, column) != LEDGER_HASH_SIZE)
        return false;
    memcpy(hash, bytes, LEDGER_HASH_SIZE);
    return true;
}

static bool read_account(sqlite3_stmt *row, int first, struct ledger_account *account)
{
    struct ledger_account read = {0};
    struct player_record *player = &read.player;
    bool sound = read_string(row, first, player->id, sizeof player->id);
    sound &= read_string(row, first + 1, player->customer_id, sizeof player->customer_id);
    sound &= read_string(row, first + 2, player->reference, sizeof player->reference);
    sound &= read_string(row, first + 3, player->currency, sizeof player->currency);
    int64_t exponent = sqlite3_column_int64(row, first + 4);
    player->currency_exponent = (uint8_t)exponent;
    player->created_ms = sqlite3_column_int64(row, first + 5);
    read.balance_minor = sqlite3_column_int64(row, first + 6);
    int64_t sequence = sqlite3_column_int64(row, first + 7);
    read.sequence = (uint64_t)sequence;
    sound &= read_hash(row, first + 8, read.head);
    sound &= exponent >= 0 && exponent <= CURRENCY_EXPONENT_MAX && sequence >= 0;
    sound &= read.balance_minor >= 0 && read.balance_minor <= LEDGER_BALANCE_MAX;
    if (sound)
        *account = read;
    return sound;
}

/* What the account says of its declines: after the columns of the account, where it is asked
 * for. */
#define DECLINED_COLUMNS \
    ", coalesce(ledger_declined.declines, 0), coalesce(ledger_declined.head, zeroblob(32))"
#define DECLINED_JOIN " LEFT JOIN ledger_declined ON ledger_declined.player_number = player.number"

static bool read_declined(sqlite3_stmt *row, int first, struct ledger_account *account)
{
    int64_t declines = sqlite3_column_int64(row, first);
    account->declines = (uint64_t)declines;
    return declines >= 0 && read_hash(row, first + 1, account->declines_head);
}

/* Whether an account is what its last entry says; and, where there is none, that there is no
 * entry. */
#define ACCOUNT_FITS                                                                          \
    ", CASE WHEN ledger_account.player_number IS NULL"                                        \
    " THEN NOT EXISTS (SELECT 1 FROM ledger_transaction AS entry"                             \
    "  WHERE entry.player_number = player.number AND entry.sequence = 1"                      \
    "  AND entry.sequence % 256 = 1)"                                                         \
    " ELSE EXISTS (SELECT 1 FROM ledger_transaction AS last"                                  \
    "  WHERE last.number = ledger_account.last_number AND last.player_number = player.number" \
    "  AND last.sequence = ledger_account.sequence AND last.hash = ledger_account.head"       \
    "  AND last.balance_minor = ledger_account.balance_minor) END"

/* Balances are answered and decided from it, so nothing of it is taken that nothing else
 * confirms. */
static bool read_sound_account(sqlite3_stmt *row, const char *player_id,
                               struct ledger_account *account)
{
    return read_account(row, 0, account) && read_declined(row, ACCOUNT_COLUMN_COUNT, account) &&
           sqlite3_column_int64(row, ACCOUNT_COLUMN_COUNT + 2) == 1 &&
           strcmp(account->player.id, player_id) == 0;
}

static enum status load_account(struct sqlite_store *store, const char *player_id,
                                struct ledger_account *account, bool *found, struct error *error)
{
    sqlite3_stmt *statement;
    int64_t number = 0;
    enum status status = sqlite_player_number(store, player_id, &number, error);
    *found = false;
    if (status != STATUS_OK || number == 0)
        return status;
    status =
        sqlite_statement(store,
                         "SELECT " ACCOUNT_COLUMNS DECLINED_COLUMNS ACCOUNT_FITS
                         " FROM player" ACCOUNT_JOINS DECLINED_JOIN " WHERE player.number = ?1",
                         &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, number);
    status = sqlite_first(store, statement, found, error);
    if (status != STATUS_OK)
        return status;
    if (!*found || !read_sound_account(statement, player_id, account))
        status = platform_damaged(&store->base, "an account makes no sense", error);
    (void)sqlite3_reset(statement);
    return status;
}

enum status sqlite_ledger_balances(struct platform_store *base, struct ledger_place *places,
                                   size_t count, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_ready(store, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status =
            load_account(store, places[i].player_id, &places[i].account, &places[i].found, error);
    return status;
}

static enum status load_clearing(struct sqlite_store *store, struct ledger_clearing *clearing,
                                 struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    int64_t number = 0;
    enum status status = sqlite_customer_number(store, clearing->customer_id, &number, error);
    if (status == STATUS_OK)
        status = sqlite_statement(store,
                                  "SELECT balance_minor FROM ledger_clearing"
                                  " WHERE customer_number = ?1 AND currency = ?2",
                                  &statement, error);
    if (status != STATUS_OK)
        return status;
    if (number == 0)
        return platform_damaged(&store->base, "the customer of a player is not there", error);
    bind_integer(statement, 1, number);
    bind_string(statement, 2, clearing->currency);
    status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    if (found)
        clearing->balance_minor = sqlite3_column_int64(statement, 0);
    (void)sqlite3_reset(statement);
    return STATUS_OK;
}

/* Finds the clearing account of a place among those of the batch, or loads it. */
static enum status find_clearing(struct sqlite_store *store, struct ledger_batch *batch,
                                 struct ledger_place *place, struct error *error)
{
    const struct player_record *player = &place->account.player;
    for (size_t i = 0; i < batch->clearing_count; i++) {
        if (strcmp(batch->clearings[i].customer_id, player->customer_id) == 0 &&
            strcmp(batch->clearings[i].currency, player->currency) == 0) {
            place->clearing = i;
            return STATUS_OK;
        }
    }
    struct ledger_clearing *clearing = &batch->clearings[batch->clearing_count];
    *clearing = (struct ledger_clearing){0};
    memcpy(clearing->customer_id, player->customer_id, sizeof clearing->customer_id);
    memcpy(clearing->currency, player->currency, sizeof clearing->currency);
    place->clearing = batch->clearing_count++;
    return load_clearing(store, clearing, error);
}

/* ---- transactions and ids -------------------------------------------------------------------- */

#define TRANSACTION_COLUMNS                                                               \
    "player.customer_id, player.id, ledger_transaction.transaction_id,"                   \
    " coalesce(ledger_transaction.reference, ''), coalesce(ledger_transaction.game, '')," \
    " coalesce(ledger_transaction.round_id, ''), player.currency, currency.exponent,"     \
    " ledger_transaction.operation, ledger_transaction.outcome,"                          \
    " ledger_transaction.amount_minor, ledger_transaction.created_ms,"                    \
    " ledger_transaction.sequence, ledger_transaction.movement_minor,"                    \
    " ledger_transaction.balance_minor, ledger_transaction.hash"
#define TRANSACTION_COLUMN_COUNT 16

static bool read_entry_columns(sqlite3_stmt *row, struct ledger_transaction *entry)
{
    int64_t sequence = sqlite3_column_int64(row, 12);
    entry->sequence = (uint64_t)sequence;
    entry->movement_minor = sqlite3_column_int64(row, 13);
    entry->balance_minor = sqlite3_column_int64(row, 14);
    return sequence >= 1 && read_hash(row, 15, entry->hash);
}

static bool read_transaction(sqlite3_stmt *row, struct ledger_transaction *transaction)
{
    struct ledger_transaction read = {0};
    bool sound = read_string(row, 0, read.customer_id, sizeof read.customer_id);
    sound &= read_string(row, 1, read.player_id, sizeof read.player_id);
    sound &= read_string(row, 2, read.transaction_id, sizeof read.transaction_id);
    sound &= read_string(row, 3, read.reference, sizeof read.reference);
    sound &= read_string(row, 4, read.game_id, sizeof read.game_id);
    sound &= read_string(row, 5, read.round_id, sizeof read.round_id);
    sound &= read_string(row, 6, read.currency, sizeof read.currency);
    int64_t exponent = sqlite3_column_int64(row, 7);
    sound &= exponent >= 0 && exponent <= CURRENCY_EXPONENT_MAX;
    read.currency_exponent = (uint8_t)exponent;
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

/* A transaction that the index of ids leads to, with what its hash is chained to. */
#define TRANSACTION_FOUND                                                                    \
    "SELECT " TRANSACTION_COLUMNS ", ledger_transaction.customer_number,"                    \
    " ledger_transaction.previous, coalesce(before.hash, declined.hash, zeroblob(32)),"      \
    " chained.position, chained.hash, ledger_transaction.player_number"                      \
    " FROM ledger_transaction"                                                               \
    " JOIN player ON player.number = ledger_transaction.player_number"                       \
    " JOIN currency ON currency.code = player.currency"                                      \
    " LEFT JOIN ledger_transaction AS before ON before.number = ledger_transaction.previous" \
    " LEFT JOIN ledger_decline AS chained ON ledger_transaction.sequence IS NULL"            \
    "  AND chained.transaction_number = ledger_transaction.number"                           \
    " LEFT JOIN ledger_decline AS declined"                                                  \
    "  ON declined.player_number = chained.player_number"                                    \
    "  AND declined.position = chained.position - 1"                                         \
    " WHERE ledger_transaction.number = ?1"

struct found_transaction {
    int64_t number, customer_number, player_number;
    struct ledger_transaction transaction;
};

/* Whether it hashes to what is stored: then it is, word for word, what was answered. */
static bool hash_fits(sqlite3_stmt *row, const struct ledger_transaction *transaction)
{
    const int after = TRANSACTION_COLUMN_COUNT;
    struct ledger_transaction chained = *transaction;
    uint8_t previous[LEDGER_HASH_SIZE];
    uint8_t stored[LEDGER_HASH_SIZE];
    uint8_t hash[LEDGER_HASH_SIZE];
    if (!read_hash(row, after + 2, previous))
        return false;
    if (ledger_is_entry(transaction)) {
        if ((transaction->sequence > 1) != (sqlite3_column_int64(row, after + 1) != 0))
            return false;
        ledger_entry_hash(transaction, previous, hash);
        return memcmp(hash, transaction->hash, sizeof hash) == 0;
    }
    chained.decline = (uint64_t)sqlite3_column_int64(row, after + 3);
    if (chained.decline == 0 || !read_hash(row, after + 4, stored))
        return false;
    ledger_decline_hash(&chained, previous, hash);
    return memcmp(hash, stored, sizeof hash) == 0;
}

static enum status load_found(struct sqlite_store *store, int64_t number,
                              struct found_transaction *to, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    *to = (struct found_transaction){.number = number};
    enum status status = sqlite_statement(store, TRANSACTION_FOUND, &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, number);
    status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    if (!found || !read_transaction(statement, &to->transaction) ||
        !hash_fits(statement, &to->transaction))
        status = platform_damaged(&store->base, "a transaction makes no sense", error);
    to->customer_number = sqlite3_column_int64(statement, TRANSACTION_COLUMN_COUNT);
    to->player_number = sqlite3_column_int64(statement, TRANSACTION_COLUMN_COUNT + 5);
    (void)sqlite3_reset(statement);
    return status;
}

/* What one transaction under the id's key says of it. False: it cannot stand there. */
static bool take_found(const struct found_transaction *found, int64_t customer_number, int64_t key,
                       struct ledger_fact *fact, const struct found_transaction **undo)
{
    const struct ledger_transaction *transaction = &found->transaction;
    bool undoes = transaction->operation == LEDGER_ROLLBACK && ledger_is_entry(transaction);
    bool customers = found->customer_number == customer_number;
    bool is_it = customers && strcmp(transaction->transaction_id, fact->transaction_id) == 0;
    bool undid_it =
        customers && undoes && strcmp(transaction->reference, fact->transaction_id) == 0;
    if ((is_it || undid_it) && strcmp(transaction->customer_id, fact->customer_id) != 0)
        return false;
    if (is_it) {
        if (fact->id.known)
            return false;
        fact->id.known = true;
        fact->id.number = found->number;
        fact->id.transaction = *transaction;
    } else if (undid_it) {
        if (*undo != NULL)
            return false;
        fact->id.rolled_back = true;
        memcpy(fact->id.rolled_back_player, transaction->player_id,
               sizeof fact->id.rolled_back_player);
        *undo = found;
    } else { /* another id, of the same key */
        return sqlite_id_key(found->customer_number, text_of(transaction->transaction_id)) == key ||
               (undoes &&
                sqlite_id_key(found->customer_number, text_of(transaction->reference)) == key);
    }
    return true;
}

/* Whether the table of rollbacks says the same of the id: `undo`, or NULL. */
static enum status compare_rollback(struct sqlite_store *store, int64_t customer_number,
                                    const struct ledger_fact *fact,
                                    const struct found_transaction *undo, struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status =
        sqlite_statement(store,
                         "SELECT player_number, transaction_number FROM ledger_rollback"
                         " WHERE customer_number = ?1 AND target_id = ?2",
                         &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, customer_number);
    bind_string(statement, 2, fact->transaction_id);
    status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    if (found != (undo != NULL) ||
        (found && (sqlite3_column_int64(statement, 0) != undo->player_number ||
                   sqlite3_column_int64(statement, 1) != undo->number)))
        status = platform_damaged(&store->base, "a rollback makes no sense", error);
    (void)sqlite3_reset(statement);
    return status;
}

enum status sqlite_load_id(struct sqlite_store *store, struct ledger_fact *fact,
                           struct error *error)
{
    struct found_transaction found[IDS_FOUND_MAX];
    const struct found_transaction *undo = NULL;
    int64_t numbers[IDS_FOUND_MAX];
    size_t count = 0;
    int64_t customer = 0;
    enum status status = sqlite_customer_number(store, fact->customer_id, &customer, error);
    if (status != STATUS_OK || customer == 0)
        return status;
    int64_t key = sqlite_id_key(customer, text_of(fact->transaction_id));
    status = sqlite_ids_find(store, key, numbers, &count, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        status = load_found(store, numbers[i], &found[i], error);
        if (status == STATUS_OK && !take_found(&found[i], customer, key, fact, &undo))
            status = platform_damaged(&store->base, "its index of transaction ids", error);
    }
    return status == STATUS_OK ? compare_rollback(store, customer, fact, undo, error) : status;
}

/* One more than a batch could take away is as good as any number (LEDGER_BATCH_MAX + 1). */
static enum status load_standing_credits(struct sqlite_store *store, struct ledger_fact *fact,
                                         struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status =
        sqlite_statement(store,
                         "SELECT count(*) FROM (SELECT 1 FROM ledger_transaction AS credit"
                         " WHERE credit.settles = ?1"
                         " AND NOT EXISTS (SELECT 1 FROM ledger_rollback"
                         "  WHERE ledger_rollback.customer_number = credit.customer_number"
                         "  AND ledger_rollback.target_id = credit.transaction_id) LIMIT 257)",
                         &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, fact->id.number);
    status = sqlite_first(store, statement, &found, error);
    if (status != STATUS_OK)
        return status;
    fact->id.standing_credits = (uint32_t)sqlite3_column_int(statement, 0);
    (void)sqlite3_reset(statement);
    return STATUS_OK;
}

static enum status load_fact(struct sqlite_store *store, struct ledger_fact *fact,
                             struct error *error)
{
    fact->id = (struct ledger_id){0};
    enum status status = sqlite_load_id(store, fact, error);
    if (status == STATUS_OK && fact->counts_credits && fact->id.known &&
        fact->id.transaction.operation == LEDGER_DEBIT &&
        fact->id.transaction.outcome == LEDGER_APPLIED)
        status = load_standing_credits(store, fact, error);
    return status;
}

enum status sqlite_ledger_id(struct platform_store *base, struct ledger_fact *fact,
                             struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_ready(store, error);
    fact->counts_credits = true;
    return status == STATUS_OK ? load_fact(store, fact, error) : status;
}

/* ---- a batch --------------------------------------------------------------------------------- */

static enum status load_batch(struct sqlite_store *store, struct ledger_batch *batch,
                              struct error *error)
{
    enum status status = STATUS_OK;
    batch->clearing_count = 0;
    for (size_t i = 0; i < batch->place_count && status == STATUS_OK; i++) {
        struct ledger_place *place = &batch->places[i];
        place->changed = place->declined = false;
        status = load_account(store, place->player_id, &place->account, &place->found, error);
        if (status == STATUS_OK && place->found)
            status = find_clearing(store, batch, place, error);
    }
    for (size_t i = 0; i < batch->fact_count && status == STATUS_OK; i++)
        status = load_fact(store, &batch->facts[i], error);
    return status;
}

enum status sqlite_ledger_begin(struct platform_store *base, struct ledger_batch *batch,
                                struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_execute(store, "BEGIN IMMEDIATE", error);
    if (status != STATUS_OK)
        return status;
    status = load_batch(store, batch, error);
    return status == STATUS_OK ? STATUS_OK : sqlite_end(store, status, error);
}

/* ---- after opening --------------------------------------------------------------------------- */

static enum status check_newest(struct sqlite_store *store, sqlite3_stmt *statement,
                                struct error *error)
{
    static const uint8_t zeros[LEDGER_HASH_SIZE];
    bool found = false;
    enum status status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        struct ledger_transaction entry;
        struct ledger_account account;
        uint8_t previous[LEDGER_HASH_SIZE];
        uint8_t hash[LEDGER_HASH_SIZE];
        int after = TRANSACTION_COLUMN_COUNT + ACCOUNT_COLUMN_COUNT;
        if (!read_transaction(statement, &entry) || !ledger_is_entry(&entry) ||
            !read_account(statement, TRANSACTION_COLUMN_COUNT, &account))
            return platform_damaged(&store->base, "an entry of the ledger makes no sense", error);
        if (entry.sequence == 1)
            memcpy(previous, zeros, sizeof previous);
        else if (!read_hash(statement, after, previous))
            return platform_damaged(&store->base, "the ledger has a gap", error);
        ledger_entry_hash(&entry, previous, hash);
        bool last = account.sequence == entry.sequence;
        if (memcmp(hash, entry.hash, sizeof hash) != 0 || account.sequence < entry.sequence ||
            (last && (memcmp(hash, account.head, sizeof hash) != 0 ||
                      account.balance_minor != entry.balance_minor)))
            return platform_damaged(&store->base, "the ledger does not fit its chain", error);
    }
    return status;
}

enum status sqlite_ledger_recover(struct platform_store *base, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    enum status status = sqlite_ready(store, error);
    if (status != STATUS_OK)
        return status;
    status = sqlite_log_renew(store, error);
    if (status == STATUS_OK)
        status = sqlite_log_take_over(store, error);
    if (status != STATUS_OK)
        return status;
    status = sqlite_statement(
        store,
        "SELECT " TRANSACTION_COLUMNS ", " ACCOUNT_COLUMNS ", previous.hash"
        " FROM (SELECT * FROM ledger_transaction ORDER BY number DESC LIMIT 512)"
        "  AS ledger_transaction"
        " JOIN player ON player.number = ledger_transaction.player_number" ACCOUNT_JOINS
        " LEFT JOIN ledger_transaction AS previous"
        "  ON previous.number = ledger_transaction.previous"
        " WHERE ledger_transaction.sequence IS NOT NULL",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    status = check_newest(store, statement, error);
    (void)sqlite3_reset(statement);
    return status;
}

/* ---- reading all of it ----------------------------------------------------------------------- */

/* A walk through the entries of players, one after the other. */
struct walk {
    struct sqlite_store *store;
    ledger_entry_visitor *visit;
    void *context;
    uint64_t last; /* sequence of the last entry visited of the player, 0 before */
    bool stopped;
};

static enum status visit_entries(struct walk *walk, sqlite3_stmt *statement, struct error *error)
{
    bool found = false;
    enum status status;
    while ((status = sqlite_first(walk->store, statement, &found, error)) == STATUS_OK && found) {
        struct ledger_transaction entry;
        struct ledger_account account;
        if (!read_transaction(statement, &entry) || !ledger_is_entry(&entry) ||
            !read_account(statement, TRANSACTION_COLUMN_COUNT, &account)) {
            status = platform_damaged(&walk->store->base, "an entry of the ledger makes no sense",
                                      error);
            break;
        }
        walk->last = entry.sequence;
        walk->stopped = !walk->visit(walk->context, &entry, &account);
        if (walk->stopped)
            break;
    }
    (void)sqlite3_reset(statement);
    return status;
}

#define ENTRY_COLUMNS "SELECT " TRANSACTION_COLUMNS ", " ACCOUNT_COLUMNS
#define ENTRY_JOINS \
    " CROSS JOIN player ON player.number = ledger_transaction.player_number" ACCOUNT_JOINS

/* From the first, each leads to the next. */
#define ENTRIES_IN_ORDER                                                           \
    "WITH RECURSIVE followed (number) AS ("                                        \
    " SELECT number FROM ledger_transaction"                                       \
    "  WHERE player_number = ?1 AND sequence = 1 AND sequence % 256 = 1"           \
    " UNION ALL SELECT (SELECT next.number FROM ledger_transaction AS next"        \
    "   WHERE next.previous = followed.number AND next.previous <> 0) AS follower" \
    "  FROM followed WHERE follower IS NOT NULL) " ENTRY_COLUMNS " FROM followed"  \
    " CROSS JOIN ledger_transaction ON ledger_transaction.number = followed.number" ENTRY_JOINS

/* Those that no other leads to, because somebody has removed one: looks at the whole ledger, for
 * some of them at a time. */
#define CUT_OFF_AT_ONCE 10000
#define ENTRIES_CUT_OFF                                                                   \
    ENTRY_COLUMNS                                                                         \
    " FROM ledger_transaction" ENTRY_JOINS " WHERE ledger_transaction.player_number = ?1" \
    " AND ledger_transaction.sequence > ?2 ORDER BY ledger_transaction.sequence LIMIT ?3"

/* The next of those that are cut off; `walk->last` stays when there are none. */
static enum status visit_cut_off(struct walk *walk, int64_t player, struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(walk->store, ENTRIES_CUT_OFF, &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, player);
    bind_integer(statement, 2, (int64_t)walk->last);
    bind_integer(statement, 3, CUT_OFF_AT_ONCE);
    return visit_entries(walk, statement, error);
}

/* `sequence` is the account's. */
static enum status walk_player(struct walk *walk, int64_t player, uint64_t sequence,
                               struct error *error)
{
    sqlite3_stmt *statement;
    walk->last = 0;
    enum status status = sqlite_statement(walk->store, ENTRIES_IN_ORDER, &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, player);
    status = visit_entries(walk, statement, error);
    for (uint64_t before = UINT64_MAX;
         status == STATUS_OK && !walk->stopped && walk->last < sequence && walk->last != before;) {
        before = walk->last;
        status = visit_cut_off(walk, player, error);
    }
    return status;
}

#define PLAYERS_WITH_ACCOUNTS                                                \
    "SELECT player.number, coalesce(ledger_account.sequence, 0) FROM player" \
    " LEFT JOIN ledger_account ON ledger_account.player_number = player.number"

enum status sqlite_ledger_entries(struct platform_store *base, const char *player_id,
                                  ledger_entry_visitor *visit, void *context, struct error *error)
{
    struct walk walk = {.store = sqlite_store_of(base), .visit = visit, .context = context};
    sqlite3_stmt *players;
    bool found = false;
    enum status status = sqlite_ready(walk.store, error);
    if (status == STATUS_OK)
        status =
            sqlite_statement(walk.store,
                             player_id == NULL ? PLAYERS_WITH_ACCOUNTS " ORDER BY player.number"
                                               : PLAYERS_WITH_ACCOUNTS " WHERE player.id = ?1",
                             &players, error);
    if (status != STATUS_OK)
        return status;
    if (player_id != NULL)
        bind_string(players, 1, player_id);
    while (!walk.stopped &&
           (status = sqlite_first(walk.store, players, &found, error)) == STATUS_OK && found) {
        status = walk_player(&walk, sqlite3_column_int64(players, 0),
                             (uint64_t)sqlite3_column_int64(players, 1), error);
        if (status != STATUS_OK)
            break;
    }
    (void)sqlite3_reset(players);
    return status;
}

static bool read_decline(sqlite3_stmt *row, struct ledger_transaction *decline,
                         struct ledger_account *account)
{
    int declined = TRANSACTION_COLUMN_COUNT + ACCOUNT_COLUMN_COUNT;
    bool sound = read_transaction(row, decline) && !ledger_is_entry(decline) &&
                 read_account(row, TRANSACTION_COLUMN_COUNT, account) &&
                 read_declined(row, declined, account);
    decline->decline = (uint64_t)sqlite3_column_int64(row, declined + 2);
    return sound && decline->decline > 0 && read_hash(row, declined + 3, decline->hash);
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
        if (!read_transaction(statement, &transaction)) {
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

enum status sqlite_ledger_entered(struct platform_store *base, int64_t from_ms, int64_t to_ms,
                                  ledger_transaction_visitor *visit, void *context,
                                  struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(
            store,
            TRANSACTION_ROWS
            " WHERE ledger_transaction.sequence IS NOT NULL"
            " AND ledger_transaction.created_ms >= ?1 AND ledger_transaction.created_ms < ?2"
            " ORDER BY ledger_transaction.created_ms, ledger_transaction.number",
            &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_integer(statement, 1, from_ms);
    bind_integer(statement, 2, to_ms);
    return visit_transactions(store, statement, visit, context, error);
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
    return status == STATUS_OK ? sqlite_execute(store, "BEGIN", error) : status;
}

void sqlite_snapshot_end(struct platform_store *base)
{
    struct sqlite_store *store = sqlite_store_of(base);
    if (store->database != NULL && sqlite3_get_autocommit(store->database) == 0)
        (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
}
