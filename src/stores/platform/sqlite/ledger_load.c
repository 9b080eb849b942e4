/*
 * The ledger in SQLite. A batch is BEGIN IMMEDIATE … COMMIT in WAL with synchronous=FULL, so a
 * commit that returned is on the disk. Accounts of active players are cached (cache.h), and an
 * index in memory and in files finds ids (ids.h). Before anything is decided, and with the write
 * lock held, begin reads in ledger_last whether another process has written since the last batch.
 * When an account is written, SQLite compares the cached one with the stored one (ledger.c).
 *
 * A malformed row is an error here and never skipped: it is money.
 */

#include "stores/platform/ledger/reads.h"
#include "stores/platform/sqlite/file_identity.h"
#include "stores/platform/sqlite/ids.h"

/* ---- accounts -------------------------------------------------------------------------------- */

/* The column says whether the account agrees with its last entry; the number of that follows. */
#define FITS_COLUMN (LEDGER_ACCOUNT_COLUMN_COUNT + LEDGER_DECLINED_COLUMN_COUNT)

/* Balances are answered and decided from it, so nothing of it is taken that nothing else
 * confirms. */
static bool read_sound_account(const struct sql_row *row, const char *player_id,
                               struct ledger_account *account)
{
    return ledger_read_account(row, 0, account) &&
           ledger_read_declined(row, LEDGER_ACCOUNT_COLUMN_COUNT, account) &&
           sql_integer(row, FITS_COLUMN) == 1 && strcmp(account->player.id, player_id) == 0;
}

/* Fills in all of `to` but the customer's number. `player_number` is 0 when there is no such
 * player. */
static enum status load_account(struct sqlite_store *store, const char *player_id,
                                struct ledger_stored *to, struct error *error)
{
    sqlite3_stmt *statement;
    int64_t number = 0;
    bool found = false;
    *to = (struct ledger_stored){0};
    enum status status = sqlite_player_number(store, player_id, &number, error);
    if (status != STATUS_OK || number == 0)
        return status;
    status = sqlite_find(store, sqlite_texts.account_of_number, &SQL_INTEGER(number), &statement,
                         &found, error);
    if (status != STATUS_OK)
        return status;
    const struct sql_row row = sqlite_sql_row(&statement);
    if (!found || !read_sound_account(&row, player_id, &to->account))
        status = platform_damaged(&store->base, "an account is malformed", error);
    to->player_number = number;
    to->last_number = sqlite3_column_int64(statement, FITS_COLUMN + 1);
    (void)sqlite3_reset(statement);
    return status;
}

enum status sqlite_ledger_balances(struct platform_store *base, struct ledger_batch_player *players,
                                   size_t count, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_check_content(store, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct ledger_stored read;
        status = load_account(store, players[i].player_id, &read, error);
        players[i].found = status == STATUS_OK && read.player_number != 0;
        if (players[i].found)
            players[i].account = read.account;
    }
    return status;
}

/* ---- clearing accounts ----------------------------------------------------------------------- */

static enum status load_clearing(struct sqlite_store *store, struct ledger_clearing *clearing,
                                 struct ledger_stored_clearing *loaded, struct error *error)
{
    enum status status =
        sqlite_customer_number(store, clearing->customer_id, &loaded->customer_number, error);
    if (status != STATUS_OK)
        return status;
    if (loaded->customer_number == 0)
        return platform_damaged(&store->base, "the customer of a player is not there", error);
    const struct column_value key[] = {SQL_INTEGER(loaded->customer_number),
                                       SQL_STRING(clearing->currency)};
    status = sqlite_look_up(store, sqlite_texts.clearing_of_customer, key, &loaded->found,
                            &clearing->balance_minor, error);
    loaded->balance_minor = clearing->balance_minor;
    return status;
}

/* ---- a batch --------------------------------------------------------------------------------- */

/* Takes it from the cache, or reads it into the cache. */
static enum status load_player(struct sqlite_store *store, struct ledger_batch_player *player,
                               struct ledger_stored *loaded, struct error *error)
{
    const struct ledger_stored *cached =
        ledger_cache_account(sqlite_cache(store), player->player_id);
    enum status status = STATUS_OK;
    player->changed = player->declined = player->found = false;
    if (cached != NULL) {
        *loaded = *cached;
    } else {
        status = load_account(store, player->player_id, loaded, error);
        if (status == STATUS_OK && loaded->player_number != 0)
            status = sqlite_customer_number(store, loaded->account.player.customer_id,
                                            &loaded->customer_number, error);
        if (status == STATUS_OK && loaded->player_number != 0)
            ledger_cache_put_account(sqlite_cache(store), loaded);
    }
    if (status != STATUS_OK || loaded->player_number == 0)
        return status;
    player->found = true;
    player->account = loaded->account;
    return STATUS_OK;
}

/* Reads which of the batch's players are blocked, in each batch, as the cache does not hold that.
 * Nearly always none is. */
static enum status load_blocks(struct sqlite_store *store, struct ledger_batch *batch,
                               struct error *error)
{
    int64_t any = 0;
    enum status status =
        sqlite_number(store, "SELECT EXISTS (SELECT 1 FROM player_block)", &any, error);
    for (size_t i = 0; i < batch->player_count && status == STATUS_OK; i++) {
        struct ledger_batch_player *player = &batch->players[i];
        bool found = false;
        player->account.player.blocked_until_ms = 0;
        if (any != 0 && player->found)
            status = sqlite_look_up(
                store, "SELECT (" PLAYER_BLOCKED_UNTIL ") FROM player WHERE number = ?1",
                &SQL_INTEGER(batch->loaded.players[i].player_number), &found,
                &player->account.player.blocked_until_ms, error);
    }
    return status;
}

static enum status load_batch(struct sqlite_store *store, struct ledger_batch *batch,
                              struct error *error)
{
    enum status status = sqlite_ids_ready(store, true, error);
    batch->loaded.first_number = store->last_number + 1;
    batch->loaded.last_day = store->last_day;
    batch->clearing_count = 0;
    for (size_t i = 0; i < batch->player_count && status == STATUS_OK; i++) {
        struct ledger_batch_player *player = &batch->players[i];
        status = load_player(store, player, &batch->loaded.players[i], error);
        if (status == STATUS_OK && player->found && ledger_find_clearing(batch, player))
            status = load_clearing(store, &batch->clearings[player->clearing],
                                   &batch->loaded.clearings[player->clearing], error);
    }
    if (status == STATUS_OK)
        status = load_blocks(store, batch, error);
    for (size_t i = 0; i < batch->fact_count && status == STATUS_OK; i++)
        status = sqlite_load_fact(store, &batch->facts[i], error);
    return status;
}

/* An index that has to be made from its rows takes long, so that is not done under the write
 * lock. */
enum status sqlite_ledger_begin(struct platform_store *base, struct ledger_batch *batch,
                                struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = store->index == NULL ? sqlite_ledger_prepare(base, error) : STATUS_OK;
    if (status == STATUS_OK)
        status = sqlite_begin(store, error);
    if (status == STATUS_OK && sqlite_files_content(store, error) != STATUS_OK) {
        status = sqlite_execute(store, "ROLLBACK", error);
        if (status == STATUS_OK)
            status = sqlite_check_content(store, error);
        if (status == STATUS_OK)
            status = sqlite_begin(store, error);
    }
    if (status != STATUS_OK)
        return status;
    status = sqlite_mark_begin(store, error);
    if (status == STATUS_OK)
        status = load_batch(store, batch, error);
    return status == STATUS_OK ? STATUS_OK : sqlite_end(store, status, error);
}

/* ---- ids outside of batches ------------------------------------------------------------------ */

#define ROWS_FEW 1024 /* new since the last question: the index takes them in within some ms */

/* A fact about one id, or (NULL) an index of ids that is ready, as of one moment. A handle that
 * seldom asks looks at the runs, and at those rows after them that concern the id. The whole index
 * is opened, which mends it, or brought up to the newest row, where a run is damaged and where a
 * handle asks again soon. */
static enum status ask_ids(struct sqlite_store *store, struct ledger_fact *fact,
                           struct error *error)
{
    enum status status = sqlite_ready(store, error);
    if (status != STATUS_OK)
        return status;
    bool alone = sqlite3_get_autocommit(store->database) != 0;
    int64_t last = 0;
    if (alone)
        status = sqlite_execute(store, "BEGIN", error);
    if (status == STATUS_OK)
        status = sqlite_ids_last(store, &last, error);
    bool seldom = store->asked_number == 0 || last - store->asked_number > ROWS_FEW;
    if (status == STATUS_OK && fact != NULL && seldom &&
        sqlite_load_fact_once(store, fact, error) == STATUS_OK)
        fact = NULL;
    else if (status == STATUS_OK)
        status = sqlite_ids_ready(store, fact == NULL, error);
    if (status == STATUS_OK && fact != NULL)
        status = sqlite_load_fact(store, fact, error);
    store->asked_number = last;
    return alone ? sqlite_end(store, status, error) : status;
}

enum status sqlite_ledger_id(struct platform_store *base, struct ledger_fact *fact,
                             struct error *error)
{
    fact->counts_credits = true;
    return ask_ids(sqlite_store_of(base), fact, error);
}

enum status sqlite_ledger_prepare(struct platform_store *base, struct error *error)
{
    return ask_ids(sqlite_store_of(base), NULL, error);
}

/* ---- after opening --------------------------------------------------------------------------- */

enum status sqlite_ledger_recover(struct platform_store *base, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct ledger_end end;
    enum status status = sqlite_ready(store, error);
    if (status == STATUS_OK)
        status = sqlite_check_content(store, error);
    if (status == STATUS_OK)
        status = sqlite_log_renew(store, error);
    if (status == STATUS_OK)
        status = sqlite_log_adopt(store, error);
    /* Rows of a batch refer to rows that begin loaded; the audit checks all references. */
    if (status == STATUS_OK)
        status = sqlite_execute(store, "PRAGMA foreign_keys = OFF", error);
    if (status == STATUS_OK)
        status = sqlite_ledger_check_end(base, &end, error);
    return status == STATUS_OK ? ledger_check_newest(base, error) : status;
}
