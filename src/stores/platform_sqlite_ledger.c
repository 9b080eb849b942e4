/*
 * The ledger in SQLite. A batch is BEGIN IMMEDIATE … COMMIT in WAL with synchronous=FULL, so a commit
 * that returned is on the disk. Cost an operation is a handful of look-ups by key and as many inserts,
 * however long the ledger is.
 *
 * A row that makes no sense is an error here and never skipped: it is money.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "stores/platform_sqlite.h"
#include "stores/platform_sqlite_columns.h"

#define CUSTOMER_NUMBER(parameter) "(SELECT number FROM customer WHERE id = " parameter ")"
#define PLAYER_NUMBER(parameter) "(SELECT number FROM player WHERE id = " parameter ")"

static enum status damaged(struct sqlite_store *store, const char *what, struct error *error)
{
    return error_set(error, STATUS_MALFORMED,
                     "%s: is damaged (%s); stop croupier and restore a backup", store->path, what);
}

/* ---- accounts ---------------------------------------------------------------------------------- */

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

static enum status load_account(struct sqlite_store *store, const char *player_id,
                                struct ledger_account *account, bool *found, struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        store, "SELECT " ACCOUNT_COLUMNS " FROM player" ACCOUNT_JOINS " WHERE player.id = ?1",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, player_id);
    status = sqlite_first(store, statement, found, error);
    if (status != STATUS_OK)
        return status;
    if (*found && !read_account(statement, 0, account))
        status = damaged(store, "an account makes no sense", error);
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
    enum status status = sqlite_statement(
        store,
        "SELECT balance_minor FROM ledger_clearing WHERE customer_number = " CUSTOMER_NUMBER(
            "?1") " AND currency = ?2",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, clearing->customer_id);
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

/* ---- transactions and ids ---------------------------------------------------------------------- */

#define TRANSACTION_COLUMNS                                                                   \
    "player.customer_id, player.id, ledger_transaction.transaction_id,"                       \
    " coalesce(ledger_transaction.reference, ''), coalesce(ledger_transaction.game_id, ''),"  \
    " coalesce(ledger_transaction.round_id, ''), player.currency, currency.exponent,"         \
    " ledger_transaction.operation, ledger_transaction.outcome,"                              \
    " ledger_transaction.amount_minor, ledger_transaction.created_ms, ledger_entry.sequence," \
    " ledger_entry.movement_minor, ledger_entry.balance_minor, ledger_entry.hash"
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

static enum status load_transaction(struct sqlite_store *store, struct ledger_fact *fact,
                                    struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        store,
        "SELECT " TRANSACTION_COLUMNS " FROM ledger_transaction"
        " JOIN player ON player.number = ledger_transaction.player_number"
        " JOIN currency ON currency.code = player.currency"
        " LEFT JOIN ledger_entry ON ledger_entry.player_number = ledger_transaction.player_number"
        "  AND ledger_entry.sequence = ledger_transaction.sequence"
        " WHERE ledger_transaction.customer_number = " CUSTOMER_NUMBER(
            "?1") " AND ledger_transaction.transaction_id = ?2",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, fact->customer_id);
    bind_string(statement, 2, fact->transaction_id);
    status = sqlite_first(store, statement, &fact->id.known, error);
    if (status != STATUS_OK)
        return status;
    if (fact->id.known && !read_transaction(statement, &fact->id.transaction))
        status = damaged(store, "a transaction makes no sense", error);
    (void)sqlite3_reset(statement);
    return status;
}

static enum status load_rollback(struct sqlite_store *store, struct ledger_fact *fact,
                                 struct error *error)
{
    sqlite3_stmt *statement;
    enum status status =
        sqlite_statement(store,
                         "SELECT player.id FROM ledger_rollback"
                         " JOIN player ON player.number = ledger_rollback.player_number"
                         " WHERE ledger_rollback.customer_number = " CUSTOMER_NUMBER(
                             "?1") " AND ledger_rollback.target_id = ?2",
                         &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, fact->customer_id);
    bind_string(statement, 2, fact->transaction_id);
    status = sqlite_first(store, statement, &fact->id.rolled_back, error);
    if (status != STATUS_OK)
        return status;
    if (fact->id.rolled_back &&
        !read_string(statement, 0, fact->id.rolled_back_player, sizeof fact->id.rolled_back_player))
        status = damaged(store, "a rollback makes no sense", error);
    (void)sqlite3_reset(statement);
    return status;
}

/* One more than a batch could take away is as good as any number (LEDGER_BATCH_MAX + 1). */
static enum status load_standing_credits(struct sqlite_store *store, struct ledger_fact *fact,
                                         struct error *error)
{
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_statement(
        store,
        "SELECT count(*) FROM (SELECT 1 FROM ledger_transaction AS credit"
        " WHERE credit.customer_number = " CUSTOMER_NUMBER(
            "?1") " AND credit.reference = ?2"
                  " AND credit.operation = 'CREDIT' AND credit.outcome = 'applied'"
                  " AND NOT EXISTS (SELECT 1 FROM ledger_rollback"
                  "  WHERE ledger_rollback.customer_number = credit.customer_number"
                  "  AND ledger_rollback.target_id = credit.transaction_id) LIMIT 257)",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, fact->customer_id);
    bind_string(statement, 2, fact->transaction_id);
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
    enum status status = load_transaction(store, fact, error);
    if (status == STATUS_OK)
        status = load_rollback(store, fact, error);
    if (status == STATUS_OK && fact->id.known && fact->id.transaction.operation == LEDGER_DEBIT &&
        fact->id.transaction.outcome == LEDGER_APPLIED)
        status = load_standing_credits(store, fact, error);
    return status;
}

enum status sqlite_ledger_id(struct platform_store *base, struct ledger_fact *fact,
                             struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_ready(store, error);
    return status == STATUS_OK ? load_fact(store, fact, error) : status;
}

/* ---- a batch ----------------------------------------------------------------------------------- */

static enum status load_batch(struct sqlite_store *store, struct ledger_batch *batch,
                              struct error *error)
{
    enum status status = STATUS_OK;
    batch->clearing_count = 0;
    for (size_t i = 0; i < batch->place_count && status == STATUS_OK; i++) {
        struct ledger_place *place = &batch->places[i];
        place->changed = false;
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

static void bind_if_given(sqlite3_stmt *statement, int at, const char *string)
{
    if (string[0] != '\0') /* else NULL */
        bind_string(statement, at, string);
}

static enum status insert_transaction(struct sqlite_store *store,
                                      const struct ledger_transaction *kept, struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        store,
        "INSERT INTO ledger_transaction (customer_number, transaction_id, player_number,"
        " operation, outcome, amount_minor, reference, game_id, round_id, sequence, created_ms)"
        " VALUES (" CUSTOMER_NUMBER("?1") ", ?2, " PLAYER_NUMBER(
            "?3") ", ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, kept->customer_id);
    bind_string(statement, 2, kept->transaction_id);
    bind_string(statement, 3, kept->player_id);
    bind_string(statement, 4, ledger_operation_name(kept->operation));
    bind_string(statement, 5, ledger_outcome_name(kept->outcome));
    bind_integer(statement, 6, kept->amount_minor);
    bind_if_given(statement, 7, kept->reference);
    bind_if_given(statement, 8, kept->game_id);
    bind_if_given(statement, 9, kept->round_id);
    if (ledger_is_entry(kept))
        bind_integer(statement, 10, (int64_t)kept->sequence);
    bind_integer(statement, 11, kept->created_ms);
    return sqlite_run(store, statement, error);
}

static enum status insert_entry(struct sqlite_store *store, const struct ledger_transaction *entry,
                                int64_t transaction_number, struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        store,
        "INSERT INTO ledger_entry (player_number, sequence, transaction_number, movement_minor,"
        " balance_minor, hash) VALUES (" PLAYER_NUMBER("?1") ", ?2, ?3, ?4, ?5, ?6)",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, entry->player_id);
    bind_integer(statement, 2, (int64_t)entry->sequence);
    bind_integer(statement, 3, transaction_number);
    bind_integer(statement, 4, entry->movement_minor);
    bind_integer(statement, 5, entry->balance_minor);
    bind_blob(statement, 6, entry->hash, LEDGER_HASH_SIZE);
    return sqlite_run(store, statement, error);
}

static enum status insert_rollback(struct sqlite_store *store,
                                   const struct ledger_transaction *rollback,
                                   int64_t transaction_number, struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        store,
        "INSERT INTO ledger_rollback (customer_number, target_id, player_number,"
        " transaction_number) VALUES (" CUSTOMER_NUMBER("?1") ", ?2, " PLAYER_NUMBER("?3") ", ?4)",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, rollback->customer_id);
    bind_string(statement, 2, rollback->reference);
    bind_string(statement, 3, rollback->player_id);
    bind_integer(statement, 4, transaction_number);
    return sqlite_run(store, statement, error);
}

static enum status write_kept(struct sqlite_store *store, const struct ledger_transaction *kept,
                              struct error *error)
{
    enum status status = insert_transaction(store, kept, error);
    if (status != STATUS_OK || !ledger_is_entry(kept))
        return status;
    int64_t number = sqlite3_last_insert_rowid(store->database);
    status = insert_entry(store, kept, number, error);
    if (status == STATUS_OK && kept->operation == LEDGER_ROLLBACK)
        status = insert_rollback(store, kept, number, error);
    return status;
}

static enum status write_account(struct sqlite_store *store, const struct ledger_account *account,
                                 struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        store,
        "INSERT INTO ledger_account (player_number, balance_minor, sequence, head)"
        " VALUES (" PLAYER_NUMBER("?1") ", ?2, ?3, ?4)"
                                        " ON CONFLICT (player_number) DO UPDATE SET balance_minor "
                                        "= excluded.balance_minor,"
                                        " sequence = excluded.sequence, head = excluded.head",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, account->player.id);
    bind_integer(statement, 2, account->balance_minor);
    bind_integer(statement, 3, (int64_t)account->sequence);
    bind_blob(statement, 4, account->head, LEDGER_HASH_SIZE);
    return sqlite_run(store, statement, error);
}

static enum status write_clearing(struct sqlite_store *store,
                                  const struct ledger_clearing *clearing, struct error *error)
{
    sqlite3_stmt *statement;
    enum status status = sqlite_statement(
        store,
        "INSERT INTO ledger_clearing (customer_number, currency, balance_minor)"
        " VALUES (" CUSTOMER_NUMBER("?1") ", ?2, ?3)"
                                          " ON CONFLICT (customer_number, currency)"
                                          " DO UPDATE SET balance_minor = excluded.balance_minor",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    bind_string(statement, 1, clearing->customer_id);
    bind_string(statement, 2, clearing->currency);
    bind_integer(statement, 3, clearing->balance_minor);
    return sqlite_run(store, statement, error);
}

static enum status write_batch(struct sqlite_store *store, const struct ledger_batch *batch,
                               struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < batch->kept_count && status == STATUS_OK; i++)
        status = write_kept(store, &batch->kept[i], error);
    for (size_t i = 0; i < batch->place_count && status == STATUS_OK; i++)
        if (batch->places[i].changed)
            status = write_account(store, &batch->places[i].account, error);
    for (size_t i = 0; i < batch->clearing_count && status == STATUS_OK; i++)
        if (batch->clearings[i].changed)
            status = write_clearing(store, &batch->clearings[i], error);
    return status;
}

enum status sqlite_ledger_commit(struct platform_store *base, const struct ledger_batch *batch,
                                 bool *unknown, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    *unknown = false;
    CHECK(sqlite3_get_autocommit(store->database) == 0);
    enum status status = write_batch(store, batch, error);
    if (status != STATUS_OK)
        return sqlite_end(store, status, error);
    if (batch->kept_count == 0) {
        (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
        return STATUS_OK;
    }
    status = sqlite_end(store, STATUS_OK, error);
    if (status != STATUS_OK) {
        *unknown = true;
        store->failed = true;
    }
    return status;
}

/* ---- after opening ----------------------------------------------------------------------------- */

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
            return damaged(store, "an entry of the ledger makes no sense", error);
        if (entry.sequence == 1)
            memcpy(previous, zeros, sizeof previous);
        else if (!read_hash(statement, after, previous))
            return damaged(store, "the ledger has a gap", error);
        ledger_entry_hash(&entry, previous, hash);
        bool last = account.sequence == entry.sequence;
        if (memcmp(hash, entry.hash, sizeof hash) != 0 || account.sequence < entry.sequence ||
            (last && (memcmp(hash, account.head, sizeof hash) != 0 ||
                      account.balance_minor != entry.balance_minor)))
            return damaged(store, "the ledger does not fit its chain", error);
    }
    return status;
}

/* A process that was killed between writing its commit and syncing it has left a log that reads as
 * committed and may not survive a power cut. SQLite holds no lock on this file, so that opening and
 * closing it here lets go of none. */
static enum status sync_log(struct sqlite_store *store, struct error *error)
{
    struct buffer path = {0};
    buffer_append_format(&path, "%s-wal", store->path);
    int descriptor = open(buffer_string(&path), O_RDONLY | O_CLOEXEC);
    bool synced = descriptor >= 0 ? fdatasync(descriptor) == 0 : errno == ENOENT;
    int reason = errno;
    if (descriptor >= 0)
        (void)close(descriptor);
    buffer_free(&path);
    if (synced)
        return STATUS_OK;
    return error_set(error, STATUS_UNAVAILABLE, "%s: its log cannot be synced (%s)", store->path,
                     strerror(reason));
}

enum status sqlite_ledger_recover(struct platform_store *base, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    enum status status = sqlite_ready(store, error);
    if (status != STATUS_OK)
        return status;
    status = sync_log(store, error);
    if (status != STATUS_OK)
        return status;
    status = sqlite_statement(
        store,
        "SELECT " TRANSACTION_COLUMNS ", " ACCOUNT_COLUMNS ", previous.hash"
        " FROM (SELECT * FROM ledger_transaction ORDER BY number DESC LIMIT 512)"
        "  AS ledger_transaction"
        " JOIN player ON player.number = ledger_transaction.player_number" ACCOUNT_JOINS
        " LEFT JOIN ledger_entry ON ledger_entry.player_number = ledger_transaction.player_number"
        "  AND ledger_entry.sequence = ledger_transaction.sequence"
        " LEFT JOIN ledger_entry AS previous"
        "  ON previous.player_number = ledger_transaction.player_number"
        "  AND previous.sequence = ledger_transaction.sequence - 1"
        " WHERE ledger_transaction.sequence IS NOT NULL",
        &statement, error);
    if (status != STATUS_OK)
        return status;
    status = check_newest(store, statement, error);
    (void)sqlite3_reset(statement);
    return status;
}

/* ---- reading all of it ------------------------------------------------------------------------- */

static enum status visit_entries(struct sqlite_store *store, sqlite3_stmt *statement,
                                 ledger_entry_visitor *visit, void *context, struct error *error)
{
    bool found = false;
    enum status status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        struct ledger_transaction entry;
        struct ledger_account account;
        if (!read_transaction(statement, &entry) || !ledger_is_entry(&entry) ||
            !read_account(statement, TRANSACTION_COLUMN_COUNT, &account)) {
            status = damaged(store, "an entry of the ledger makes no sense", error);
            break;
        }
        if (!visit(context, &entry, &account))
            break;
    }
    (void)sqlite3_reset(statement);
    return status;
}

#define ENTRY_ROWS                                                     \
    "SELECT " TRANSACTION_COLUMNS ", " ACCOUNT_COLUMNS                 \
    " FROM ledger_entry CROSS JOIN ledger_transaction"                 \
    "  ON ledger_transaction.number = ledger_entry.transaction_number" \
    " CROSS JOIN player ON player.number = ledger_entry.player_number" ACCOUNT_JOINS
#define ENTRY_ORDER " ORDER BY ledger_entry.player_number, ledger_entry.sequence"

enum status sqlite_ledger_entries(struct platform_store *base, const char *player_id,
                                  ledger_entry_visitor *visit, void *context, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK && player_id == NULL)
        status = sqlite_statement(store, ENTRY_ROWS ENTRY_ORDER, &statement, error);
    else if (status == STATUS_OK)
        status = sqlite_statement(
            store,
            ENTRY_ROWS " WHERE ledger_entry.player_number = " PLAYER_NUMBER("?1") ENTRY_ORDER,
            &statement, error);
    if (status != STATUS_OK)
        return status;
    if (player_id != NULL)
        bind_string(statement, 1, player_id);
    return visit_entries(store, statement, visit, context, error);
}

enum status sqlite_ledger_transactions(struct platform_store *base,
                                       ledger_transaction_visitor *visit, void *context,
                                       struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_statement(
            store,
            "SELECT " TRANSACTION_COLUMNS " FROM ledger_transaction"
            " CROSS JOIN player ON player.number = ledger_transaction.player_number"
            " JOIN currency ON currency.code = player.currency"
            " LEFT JOIN ledger_entry ON ledger_entry.player_number = "
            "ledger_transaction.player_number"
            "  AND ledger_entry.sequence = ledger_transaction.sequence"
            " ORDER BY ledger_transaction.number",
            &statement, error);
    if (status != STATUS_OK)
        return status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        struct ledger_transaction transaction;
        if (!read_transaction(statement, &transaction)) {
            status = damaged(store, "a transaction makes no sense", error);
            break;
        }
        if (!visit(context, &transaction))
            break;
    }
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
            "SELECT customer.id, ledger_clearing.currency, ledger_clearing.balance_minor,"
            " (SELECT coalesce(sum(ledger_account.balance_minor), 0) FROM player"
            "  JOIN ledger_account ON ledger_account.player_number = player.number"
            "  WHERE player.customer_id = customer.id"
            "  AND player.currency = ledger_clearing.currency)"
            " FROM ledger_clearing JOIN customer"
            " ON customer.number = ledger_clearing.customer_number",
            &statement, error);
    if (status != STATUS_OK)
        return status;
    while ((status = sqlite_first(store, statement, &found, error)) == STATUS_OK && found) {
        struct ledger_clearing clearing = {0};
        bool sound = read_string(statement, 0, clearing.customer_id, sizeof clearing.customer_id);
        sound &= read_string(statement, 1, clearing.currency, sizeof clearing.currency);
        clearing.balance_minor = sqlite3_column_int64(statement, 2);
        if (!sound) {
            status = damaged(store, "a clearing account makes no sense", error);
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
    return query_count(base, "SELECT count(*) FROM ledger_entry", count, error);
}

enum status sqlite_ledger_strays(struct platform_store *base, uint64_t *count, struct error *error)
{
    return query_count(
        base,
        "SELECT (SELECT count(*) FROM ledger_entry AS e WHERE NOT EXISTS (SELECT 1"
        "  FROM ledger_transaction AS t WHERE t.number = e.transaction_number"
        "  AND t.player_number = e.player_number AND t.sequence = e.sequence)"
        "  OR NOT EXISTS (SELECT 1 FROM ledger_account AS a"
        "  WHERE a.player_number = e.player_number))"
        " + (SELECT count(*) FROM ledger_transaction AS t WHERE t.sequence IS NOT NULL"
        "  AND NOT EXISTS (SELECT 1 FROM ledger_entry AS e WHERE e.player_number = t.player_number"
        "  AND e.sequence = t.sequence AND e.transaction_number = t.number))"
        " + (SELECT count(*) FROM ledger_transaction AS t WHERE t.operation = 'ROLLBACK'"
        "  AND t.sequence IS NOT NULL AND NOT EXISTS (SELECT 1 FROM ledger_rollback AS r"
        "  WHERE r.customer_number = t.customer_number AND r.target_id = t.reference"
        "  AND r.transaction_number = t.number))"
        " + (SELECT count(*) FROM ledger_rollback AS r WHERE NOT EXISTS (SELECT 1"
        "  FROM ledger_transaction AS t WHERE t.number = r.transaction_number"
        "  AND t.operation = 'ROLLBACK' AND t.sequence IS NOT NULL AND t.reference = r.target_id))"
        " + (SELECT count(*) FROM ledger_account AS a WHERE NOT EXISTS (SELECT 1"
        "  FROM ledger_entry AS e WHERE e.player_number = a.player_number"
        "  AND e.sequence = a.sequence))",
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
