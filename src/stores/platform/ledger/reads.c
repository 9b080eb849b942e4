/*
 * Reading the ledger: statements, exports, copies and checks, the same for both engines. The SQL is
 * the engine's (texts.h).
 */
#include "stores/platform/ledger/reads.h"
#include "stores/platform_sums.h"

/* ---- rows of a text -------------------------------------------------------------------------- */

struct reading {
    ledger_row_taker *take;
    void *context;
    enum status status;
    struct error *error;
};

static bool on_row(void *context, const struct sql_row *row)
{
    struct reading *reading = context;
    reading->status = reading->take(reading->context, row, reading->error);
    return reading->status == STATUS_OK;
}

static enum status run_query(struct platform_store *store, const char *sql,
                             struct sql_parameters *parameters, bool stream, ledger_row_taker *take,
                             void *context, struct error *error)
{
    struct reading reading = {take, context, STATUS_OK, error};
    struct sql_query query = {sql, parameters, on_row, &reading, .stream = stream};
    enum status status = store->engine->sql->read(store, &query, 1, error);
    return status == STATUS_OK && reading.status != LEDGER_ENOUGH ? reading.status : status;
}

enum status ledger_read(struct platform_store *store, const char *sql,
                        struct sql_parameters *parameters, ledger_row_taker *take, void *context,
                        struct error *error)
{
    return run_query(store, sql, parameters, true, take, context, error);
}

enum status ledger_read_page(struct platform_store *store, const char *sql,
                             struct sql_parameters *parameters, ledger_row_taker *take,
                             void *context, struct error *error)
{
    return run_query(store, sql, parameters, false, take, context, error);
}

/* Into a number of 64 bits. */
static enum status take_number(void *context, const struct sql_row *row, struct error *error)
{
    (void)error;
    *(int64_t *)context = sql_integer(row, 0);
    return STATUS_OK;
}

bool ledger_read_row(struct platform_store *store, const struct sql_row *row,
                     struct ledger_transaction *transaction)
{
    const struct player_record *player = NULL;
    if (store->engine->player_of != NULL) {
        player = store->engine->player_of(store, sql_integer(row, 0));
        if (player == NULL)
            return false;
    }
    return ledger_read_transaction(row, 0, player, transaction);
}

/* The receiver of rows. */
struct visit {
    struct platform_store *store;
    ledger_transaction_visitor *transaction;
    ledger_clearing_visitor *clearing;
    ledger_decline_visitor *decline;
    void *context;
};

static enum status take_transaction(void *context, const struct sql_row *row, struct error *error)
{
    const struct visit *visit = context;
    struct ledger_transaction transaction;
    if (!ledger_read_row(visit->store, row, &transaction))
        return platform_damaged(visit->store, "a transaction is malformed", error);
    return ledger_more(visit->transaction(visit->context, &transaction));
}

enum status platform_ledger_transactions(struct platform_store *store,
                                         ledger_transaction_visitor *visit, void *context,
                                         struct error *error)
{
    struct visit visits = {.store = store, .transaction = visit, .context = context};
    return ledger_read(store, store->engine->texts->transactions, NULL, take_transaction, &visits,
                       error);
}

static struct text or_empty(const char *given)
{
    return text_of(given != NULL ? given : "");
}

enum status platform_ledger_entered(struct platform_store *store, const struct ledger_scope *scope,
                                    ledger_transaction_visitor *visit, void *context,
                                    struct error *error)
{
    const struct sql_texts *texts = store->engine->texts;
    struct visit visits = {.store = store, .transaction = visit, .context = context};
    struct sql_parameters parameters =
        SQL_PARAMETERS(SQL_INTEGER(scope->from_ms), SQL_INTEGER(scope->to_ms),
                       SQL_TEXT(or_empty(scope->customer_id)));
    if (scope->provider_id == NULL && scope->game_id == NULL && scope->figure == NULL)
        return ledger_read(store, texts->entered, &parameters, take_transaction, &visits, error);
    SQL_ADD(&parameters, SQL_INTEGER(scope->provider_id == NULL),
            SQL_TEXT(or_empty(scope->provider_id)), SQL_INTEGER(scope->game_id == NULL),
            SQL_TEXT(or_empty(scope->game_id)), SQL_TEXT(or_empty(scope->figure)),
            SQL_INTEGER(scope->figure != NULL));
    return ledger_read(store, texts->entered_of_report, &parameters, take_transaction, &visits,
                       error);
}

/* ---- entries in the order of players --------------------------------------------------------- */

/* Entries on their way to the visitor. */
struct walk {
    struct platform_store *store;
    ledger_transaction_visitor *visit;
    void *context;
    uint64_t next; /* sequence of the next entry */
    bool cut_off;  /* another came: the chain is broken, and the rest is to be searched for */
    bool checked;  /* whether entries may be missed: not where they are those of a provider */
    bool stopped;
};

static enum status take_entry(void *context, const struct sql_row *row, struct error *error)
{
    struct walk *walk = context;
    struct ledger_transaction entry;
    if (!ledger_read_row(walk->store, row, &entry) || !ledger_is_entry(&entry))
        return platform_damaged(walk->store, "an entry of the ledger is malformed", error);
    walk->cut_off = walk->checked && entry.sequence != walk->next;
    if (walk->cut_off)
        return LEDGER_ENOUGH;
    walk->next = entry.sequence + 1;
    walk->stopped = !walk->visit(walk->context, &entry);
    return ledger_more(!walk->stopped);
}

/* The entries of one player from `walk->next` on, until before another. */
static enum status read_player(struct walk *walk, const char *sql, const char *player_id,
                               uint64_t before, const char *provider_id, struct error *error)
{
    struct sql_parameters parameters =
        SQL_PARAMETERS(SQL_STRING(player_id), SQL_INTEGER(walk->next), SQL_INTEGER(before));
    if (provider_id != NULL)
        SQL_ADD(&parameters, SQL_STRING(provider_id));
    return ledger_read(walk->store, sql, &parameters, take_entry, walk, error);
}

/* Where a statement follows the player's chain, the account says how far that has to lead. */
static enum status walk_player(struct walk *walk, struct ledger_whose whose, struct error *error)
{
    const struct sql_texts *texts = walk->store->engine->texts;
    const uint64_t before = whose.before > 0 ? whose.before : INT64_MAX;
    struct sql_parameters player = {0};
    int64_t last = 0;
    walk->next = whose.from > 0 ? whose.from : 1;
    if (whose.provider_id != NULL)
        return read_player(walk, texts->entries_of_player_and_provider, whose.player_id, before,
                           whose.provider_id, error);
    walk->checked = texts->cut_off != NULL;
    SQL_ADD(&player, SQL_STRING(whose.player_id));
    enum status status = walk->checked ? ledger_read(walk->store, texts->last_sequence, &player,
                                                     take_number, &last, error)
                                       : STATUS_OK;
    if (status == STATUS_OK)
        status = read_player(walk, texts->entries_of_player, whose.player_id, before, NULL, error);
    bool whole = walk->stopped || walk->next > (uint64_t)last || walk->next >= before;
    if (status != STATUS_OK || !walk->checked || (whole && !walk->cut_off))
        return status;
    walk->checked = walk->cut_off = false;
    return read_player(walk, texts->cut_off, whose.player_id, before, NULL, error);
}

enum status platform_ledger_entries(struct platform_store *store, struct ledger_whose whose,
                                    ledger_transaction_visitor *visit, void *context,
                                    struct error *error)
{
    const struct sql_texts *texts = store->engine->texts;
    struct walk walk = {.store = store, .visit = visit, .context = context};
    struct sql_parameters parameters = {0};
    CHECK(whose.player_id != NULL || (whose.from == 0 && whose.before == 0));
    if (whose.player_id != NULL)
        return walk_player(&walk, whose, error);
    SQL_ADD(&parameters, SQL_STRING(whose.customer_id != NULL ? whose.customer_id : ""));
    if (whose.provider_id != NULL)
        SQL_ADD(&parameters, SQL_STRING(whose.provider_id));
    return ledger_read(store,
                       whose.provider_id != NULL ? texts->entries_of_provider : texts->entries,
                       &parameters, take_entry, &walk, error);
}

static bool note_time(void *context, const struct ledger_transaction *entry)
{
    *(int64_t *)context = entry->created_ms;
    return false;
}

enum status platform_ledger_entry_made(struct platform_store *store, const char *player_id,
                                       uint64_t sequence, int64_t *made_ms, struct error *error)
{
    const struct ledger_whose whose = {
        .player_id = player_id, .from = sequence, .before = sequence + 1};
    return platform_ledger_entries(store, whose, note_time, made_ms, error);
}

/* ---- declines -------------------------------------------------------------------------------- */

static enum status take_decline(void *context, const struct sql_row *row, struct error *error)
{
    const int after = LEDGER_TRANSACTION_COLUMN_COUNT;
    const struct visit *visit = context;
    struct ledger_transaction decline;
    uint8_t before[LEDGER_HASH_SIZE];
    bool sound = ledger_read_row(visit->store, row, &decline) && !ledger_is_entry(&decline);
    if (sound) {
        decline.decline = (uint64_t)sql_integer(row, after);
        sound = decline.decline > 0 && ledger_read_hash(row, after + 1, decline.hash);
    }
    if (!sound)
        return platform_damaged(visit->store, "a decline is malformed", error);
    bool follows = ledger_read_hash(row, after + 2, before);
    return ledger_more(visit->decline(visit->context, &decline, follows ? before : NULL));
}

enum status platform_ledger_declines(struct platform_store *store, ledger_decline_visitor *visit,
                                     void *context, struct error *error)
{
    struct visit visits = {.store = store, .decline = visit, .context = context};
    return ledger_read(store, store->engine->texts->declines, NULL, take_decline, &visits, error);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static enum status take_clearing(void *context, const struct sql_row *row, struct error *error)
{
    const struct visit *visit = context;
    struct ledger_clearing clearing = {.balance_minor = sql_integer(row, 2)};
    bool sound = ledger_read_string(row, 0, clearing.customer_id, sizeof clearing.customer_id);
    sound &= ledger_read_string(row, 1, clearing.currency, sizeof clearing.currency);
    if (!sound)
        return platform_damaged(visit->store, "a clearing account is malformed", error);
    return ledger_more(visit->clearing(visit->context, &clearing, sql_integer(row, 3)));
}

enum status platform_ledger_clearings(struct platform_store *store, ledger_clearing_visitor *visit,
                                      void *context, struct error *error)
{
    struct visit visits = {.store = store, .clearing = visit, .context = context};
    return ledger_read(store, store->engine->texts->clearings, NULL, take_clearing, &visits, error);
}

static const char text_count[] =
    "SELECT count(*) FROM ledger_transaction WHERE sequence IS NOT NULL";

enum status platform_ledger_count(struct platform_store *store, uint64_t *count,
                                  struct error *error)
{
    return ledger_read(store, text_count, NULL, take_number, count, error);
}

enum status platform_ledger_balance(struct platform_store *store, const char *player_id,
                                    struct ledger_account *account, struct error *error)
{
    struct ledger_batch_player player = {.found = false};
    if (strlen(player_id) >= sizeof player.player_id)
        return error_not_found(error, "there is no such player");
    memcpy(player.player_id, player_id, strlen(player_id) + 1);
    enum status status = store->ledger->balances(store, &player, 1, error);
    if (status == STATUS_OK && !player.found)
        return error_not_found(error, "there is no such player");
    if (status == STATUS_OK)
        *account = player.account;
    return status;
}

/* ---- checks ---------------------------------------------------------------------------------- */

#define PREVIOUS_COLUMN (LEDGER_TRANSACTION_COLUMN_COUNT + LEDGER_ACCOUNT_COLUMN_COUNT)

/* A transaction, its player's account, the hash before it, its number. */
static enum status take_newest(void *context, const struct sql_row *row, struct error *error)
{
    struct ledger_transaction entry;
    struct ledger_account account;
    uint8_t previous[LEDGER_HASH_SIZE];
    const char *flaw = "it is malformed";
    if (ledger_read_row(context, row, &entry) && ledger_is_entry(&entry) &&
        ledger_read_account(row, LEDGER_TRANSACTION_COLUMN_COUNT, &account))
        flaw = ledger_entry_flaw(
            &entry, &account, ledger_read_hash(row, PREVIOUS_COLUMN, previous) ? previous : NULL);
    return flaw == NULL
               ? STATUS_OK
               : platform_damaged_row(context, sql_integer(row, PREVIOUS_COLUMN + 1), flaw, error);
}

enum status ledger_check_newest(struct platform_store *store, struct error *error)
{
    /* No stream, for which a server is given more time than a start has. */
    return ledger_read_page(store, store->engine->texts->newest, NULL, take_newest, store, error);
}

enum status ledger_broken_row(struct error *error, struct text row, const char *what)
{
    if (!text_is_plain(row))
        row = TEXT("a row");
    return error_set(error, STATUS_MALFORMED,
                     "the ledger is broken: rows are without their counterpart: %.*s: %s",
                     (int)row.size, row.at, what);
}

static enum status take_broken(void *context, const struct sql_row *row, struct error *error)
{
    const struct ledger_check_text *check = context;
    char name[TRANSACTION_ID_SIZE + 64];
    char what[64];
    (void)ledger_read_string(row, 0, name, sizeof name);
    if (check->what == NULL)
        (void)ledger_read_string(row, 1, what, sizeof what);
    return ledger_broken_row(error, name[0] != '\0' ? text_of(name) : TEXT("a row"),
                             check->what != NULL ? check->what : what);
}

enum status ledger_run_checks(struct platform_store *store, struct error *error)
{
    const struct sql_texts *texts = store->engine->texts;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < texts->check_count && status == STATUS_OK; i++) {
        struct ledger_check_text check = texts->checks[i];
        status = ledger_read(store, check.sql, NULL, take_broken, &check, error);
    }
    return status;
}
