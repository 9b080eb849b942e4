/*
 * What is read of the ledger in PostgreSQL: balances, ids, and walks over all of it, which are
 * streamed and in one snapshot.
 *
 * Look-ups are LATERAL subqueries with LIMIT, so that they are an index look-up for each thing
 * asked for. A plan that the planner would rather have for a table that was small a moment ago is
 * kept by the connection, and would read all of one that has grown since.
 */
#include <string.h>

#include "stores/platform/postgres/ledger.h"

/* ---- rows ------------------------------------------------------------------------------------ */

bool ledger_read_balance(const struct postgres_row *row, int first, struct ledger_account *account)
{
    int64_t sequence = row_integer(row, first + 1);
    account->balance_minor = row_integer(row, first);
    account->sequence = (uint64_t)sequence;
    return account->balance_minor >= 0 && account->balance_minor <= LEDGER_BALANCE_MAX &&
           (row_is_null(row, first + 2)
                ? sequence == 0
                : row_blob(row, first + 2, account->head, sizeof account->head) && sequence >= 1);
}

bool ledger_read_account(const struct postgres_row *row, int first, struct ledger_account *account)
{
    struct ledger_account read = {0};
    struct player_record *player = &read.player;
    bool sound = row_string(row, first, player->id, sizeof player->id);
    sound &= row_string(row, first + 1, player->customer_id, sizeof player->customer_id);
    sound &= row_string(row, first + 2, player->reference, sizeof player->reference);
    sound &= row_string(row, first + 3, player->currency, sizeof player->currency);
    int64_t exponent = row_integer(row, first + 4);
    player->currency_exponent = (uint8_t)exponent;
    player->created_ms = row_integer(row, first + 5);
    sound &= ledger_read_balance(row, first + 6, &read);
    sound &= exponent >= 0 && exponent <= CURRENCY_EXPONENT_MAX;
    if (sound)
        *account = read;
    return sound;
}

bool ledger_read_declined(const struct postgres_row *row, int first, struct ledger_account *account)
{
    if (row_is_null(row, first))
        return true; /* there are none, and the account is zeroed */
    account->declines = (uint64_t)row_integer(row, first);
    return account->declines >= 1 &&
           row_blob(row, first + 1, account->declines_head, sizeof account->declines_head);
}

bool ledger_read_transaction(const struct postgres_row *row, int first,
                             struct ledger_transaction *transaction)
{
    struct ledger_transaction read = {0};
    bool sound = row_string(row, first, read.customer_id, sizeof read.customer_id);
    sound &= row_string(row, first + 1, read.player_id, sizeof read.player_id);
    sound &= row_string(row, first + 2, read.transaction_id, sizeof read.transaction_id);
    sound &= row_optional(row, first + 3, read.reference, sizeof read.reference);
    sound &= row_optional(row, first + 4, read.game_id, sizeof read.game_id);
    sound &= row_optional(row, first + 5, read.round_id, sizeof read.round_id);
    sound &= row_string(row, first + 6, read.currency, sizeof read.currency);
    int64_t exponent = row_integer(row, first + 7);
    sound &= exponent >= 0 && exponent <= CURRENCY_EXPONENT_MAX;
    read.currency_exponent = (uint8_t)exponent;
    sound &= ledger_operation_parse(row_text(row, first + 8), &read.operation);
    sound &= ledger_outcome_parse(row_text(row, first + 9), &read.outcome);
    sound &= row_optional(row, first + 16, read.provider_id, sizeof read.provider_id);
    sound &= row_optional(row, first + 17, read.launch_id, sizeof read.launch_id);
    read.amount_minor = row_integer(row, first + 10);
    read.created_ms = row_integer(row, first + 11);
    if (sound && ledger_is_entry(&read)) {
        int64_t sequence = row_integer(row, first + 12);
        read.sequence = (uint64_t)sequence;
        read.movement_minor = row_integer(row, first + 13);
        read.balance_minor = row_integer(row, first + 14);
        sound = sequence >= 1 && row_blob(row, first + 15, read.hash, sizeof read.hash);
    }
    if (sound)
        *transaction = read;
    return sound;
}

bool ledger_read_ordinal(const struct postgres_row *row, size_t count, size_t *at)
{
    int64_t ordinal = row_integer(row, 0);
    *at = (size_t)(ordinal - 1);
    return ordinal >= 1 && (uint64_t)ordinal <= count;
}

/* ---- ids ------------------------------------------------------------------------------------- */

/* An id that is rolled back has a row of ledger_transaction: a transaction's, or one that holds its
 * key. So one look-up is enough for an id that no one has used. One more standing credit than a
 * batch could take away is as good as any number (LEDGER_BATCH_MAX + 1). */
const char ledger_find_facts[] =
    "SELECT asked.at, " LEDGER_TRANSACTION_COLUMNS ", rollback.player_id,"
    " (SELECT count(*) FROM (SELECT FROM ledger_transaction AS credit"
    "  WHERE asked.counts = 1 AND ledger_transaction.operation = 'DEBIT'"
    "  AND ledger_transaction.outcome = 'applied'"
    "  AND credit.owner_number = asked.owner_number AND credit.reference = asked.id"
    "  AND credit.operation = 'CREDIT' AND credit.outcome = 'applied'"
    "  AND credit.reference IS NOT NULL"
    "  AND NOT EXISTS (SELECT FROM ledger_rollback AS undone"
    "   WHERE undone.owner_number = credit.owner_number"
    "   AND undone.target_id = credit.transaction_id OFFSET 0) LIMIT 257) AS standing)"
    " FROM (SELECT unnest($1::bigint[]) AS owner_number, unnest($2::text[]) AS id,"
    "  unnest($3::bigint[]) AS counts, generate_subscripts($2::text[], 1) AS at) AS asked"
    " CROSS JOIN LATERAL (SELECT * FROM ledger_transaction AS kept"
    "  WHERE kept.owner_number = asked.owner_number AND kept.transaction_id = asked.id"
    "  LIMIT 2) AS ledger_transaction"
    " LEFT JOIN LATERAL (SELECT * FROM player"
    "  WHERE player.number = ledger_transaction.player_number LIMIT 1) AS player ON true"
    " LEFT JOIN LATERAL (SELECT * FROM currency"
    "  WHERE currency.code = player.currency LIMIT 1) AS currency ON true"
    " LEFT JOIN LATERAL (SELECT id FROM provider"
    "  WHERE provider.number = -ledger_transaction.owner_number LIMIT 1) AS provider ON true"
    " LEFT JOIN LATERAL (SELECT player.id AS player_id FROM ledger_rollback"
    "  JOIN player ON player.number = ledger_rollback.player_number"
    "  WHERE ledger_rollback.owner_number = asked.owner_number"
    "  AND ledger_rollback.target_id = asked.id LIMIT 1) AS rollback ON true";

#define OPERATION_COLUMN 9 /* of the columns above */

bool ledger_read_fact(const struct postgres_row *row, struct ledger_fact *const *asked,
                      size_t count)
{
    const int after = 1 + LEDGER_TRANSACTION_COLUMN_COUNT;
    struct ledger_id read = {.known = !row_is_null(row, OPERATION_COLUMN),
                             .rolled_back = !row_is_null(row, after)};
    size_t at = 0;
    bool sound = ledger_read_ordinal(row, count, &at) && (read.known || read.rolled_back);
    if (read.known)
        sound &= ledger_read_transaction(row, 1, &read.transaction);
    if (read.rolled_back)
        sound &= row_string(row, after, read.rolled_back_player, sizeof read.rolled_back_player);
    read.standing_credits = (uint32_t)row_integer(row, after + 1);
    /* Of an id that was held and then used there are two rows, and the transaction's says more. */
    if (sound && (read.known || !asked[at]->id.known))
        asked[at]->id = read;
    return sound;
}

static enum status find_owner(struct postgres_store *store, const char *owner_id, int64_t *number,
                              struct error *error)
{
    struct postgres_parameters parameters = {0};
    struct postgres_query query = {.sql = "SELECT number FROM customer WHERE id = $1"
                                          " UNION ALL SELECT -number FROM provider WHERE id = $1",
                                   .parameters = &parameters};
    set_string(&parameters, 1, owner_id);
    enum status status = postgres_read(store, &query, 1, error);
    if (status != STATUS_OK)
        return status;
    if (row_count(&query) > 0) {
        const struct postgres_row row = row_at(&query, 0);
        *number = row_integer(&row, 0);
    }
    postgres_clear(&query, 1);
    return STATUS_OK;
}

enum status postgres_ledger_id(struct platform_store *base, struct ledger_fact *fact,
                               struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_array owner = {.kind = ARRAY_BIGINT};
    struct postgres_array id = {.kind = ARRAY_TEXT};
    struct postgres_array counts = {.kind = ARRAY_BIGINT};
    struct postgres_parameters parameters = {0};
    struct postgres_query query = {.sql = ledger_find_facts, .parameters = &parameters};
    struct ledger_fact found = {0};
    struct ledger_fact *const asked = &found;
    int64_t owner_number = 0; /* no one's */
    enum status status = find_owner(store, fact->owner_id, &owner_number, error);
    if (status != STATUS_OK)
        return status;
    array_add_integer(&owner, owner_number);
    array_add_string(&id, fact->transaction_id);
    array_add_integer(&counts, fact->counts_credits);
    set_array(&parameters, 1, &owner);
    set_array(&parameters, 2, &id);
    set_array(&parameters, 3, &counts);
    status = postgres_read(store, &query, 1, error);
    array_free(&owner);
    array_free(&id);
    array_free(&counts);
    for (int i = 0; i < row_count(&query) && status == STATUS_OK; i++) {
        const struct postgres_row row = row_at(&query, i);
        if (!ledger_read_fact(&row, &asked, 1))
            status = platform_damaged(&store->base, "a transaction is malformed", error);
    }
    postgres_clear(&query, 1);
    if (status == STATUS_OK)
        fact->id = found.id;
    return status;
}

/* ---- balances -------------------------------------------------------------------------------- */

static const char find_accounts[] =
    "SELECT asked.at, account.* FROM unnest($1::text[]) WITH ORDINALITY AS asked (id, at)"
    " CROSS JOIN LATERAL (SELECT " LEDGER_ACCOUNT_COLUMNS " FROM player"
    "  JOIN currency ON currency.code = player.currency"
    "  LEFT JOIN ledger_account ON ledger_account.player_number = player.number"
    "  WHERE player.id = asked.id LIMIT 1) AS account";

enum status postgres_ledger_balances(struct platform_store *base,
                                     struct ledger_batch_player *players, size_t count,
                                     struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_array ids = {.kind = ARRAY_TEXT};
    struct postgres_parameters parameters = {0};
    struct postgres_query query = {.sql = find_accounts, .parameters = &parameters};
    for (size_t i = 0; i < count; i++) {
        array_add_string(&ids, players[i].player_id);
        players[i].found = false;
    }
    set_array(&parameters, 1, &ids);
    enum status status = postgres_read(store, &query, 1, error);
    array_free(&ids);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < row_count(&query) && status == STATUS_OK; i++) {
        const struct postgres_row row = row_at(&query, i);
        size_t at = 0;
        if (!ledger_read_ordinal(&row, count, &at) ||
            !ledger_read_account(&row, 1, &players[at].account))
            status = platform_damaged(&store->base, "an account is malformed", error);
        else
            players[at].found = true;
    }
    postgres_clear(&query, 1);
    return status;
}

/* ---- after opening --------------------------------------------------------------------------- */

/* Every batch makes sure that what it answers from is safe, so that only the newest entries are
 * left to look at, and whether a batch could be committed. */
static const char read_newest[] =
    "SELECT " LEDGER_TRANSACTION_COLUMNS ", " LEDGER_ACCOUNT_COLUMNS ", previous.hash,"
    " ledger_transaction.number"
    " FROM (SELECT * FROM ledger_transaction ORDER BY number DESC LIMIT 512) AS ledger_transaction"
    " CROSS JOIN LATERAL (SELECT * FROM player"
    "  WHERE player.number = ledger_transaction.player_number LIMIT 1) AS player"
    " JOIN currency ON currency.code = player.currency" LEDGER_PROVIDER_JOIN
    " LEFT JOIN LATERAL (SELECT * FROM ledger_account"
    "  WHERE ledger_account.player_number = ledger_transaction.player_number LIMIT 1)"
    "  AS ledger_account ON true"
    " LEFT JOIN LATERAL (SELECT entry.hash FROM ledger_transaction AS entry"
    "  WHERE entry.player_number = ledger_transaction.player_number"
    "  AND entry.sequence = ledger_transaction.sequence - 1 LIMIT 1) AS previous ON true"
    " WHERE ledger_transaction.sequence IS NOT NULL";

static enum status check_newest(struct postgres_store *store, const struct postgres_row *row,
                                struct error *error)
{
    const int after = LEDGER_TRANSACTION_COLUMN_COUNT + LEDGER_ACCOUNT_COLUMN_COUNT;
    struct ledger_transaction entry;
    struct ledger_account account;
    uint8_t previous[LEDGER_HASH_SIZE];
    const char *flaw = "it is malformed";
    if (ledger_read_transaction(row, 0, &entry) && ledger_is_entry(&entry) &&
        ledger_read_account(row, LEDGER_TRANSACTION_COLUMN_COUNT, &account))
        flaw = ledger_entry_flaw(&entry, &account,
                                 row_blob(row, after, previous, sizeof previous) ? previous : NULL);
    return flaw == NULL
               ? STATUS_OK
               : platform_damaged_row(&store->base, row_integer(row, after + 1), flaw, error);
}

enum status postgres_ledger_recover(struct platform_store *base, struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    struct postgres_query query = {.sql = read_newest};
    enum status status = postgres_read(store, &query, 1, error);
    if (status != STATUS_OK)
        return status;
    for (int i = 0; i < row_count(&query) && status == STATUS_OK; i++) {
        const struct postgres_row row = row_at(&query, i);
        status = check_newest(store, &row, error);
    }
    postgres_clear(&query, 1);
    return status == STATUS_OK ? postgres_may_commit(store, error) : status;
}

/* ---- reading all of it ----------------------------------------------------------------------- */

struct walk {
    struct postgres_store *store;
    ledger_entry_visitor *entry; /* one of them */
    ledger_recent_visitor *recent;
    ledger_transaction_visitor *transaction;
    ledger_clearing_visitor *clearing;
    void *context;
    enum status status;
    struct error *error;
};

static bool refuse(struct walk *walk, const char *what)
{
    walk->status = platform_damaged(&walk->store->base, what, walk->error);
    return false;
}

static bool on_entry(void *context, const struct postgres_row *row)
{
    struct walk *walk = context;
    struct ledger_transaction entry;
    struct ledger_account account;
    if (ledger_read_transaction(row, 0, &entry) && ledger_is_entry(&entry) &&
        ledger_read_account(row, LEDGER_TRANSACTION_COLUMN_COUNT, &account))
        return walk->entry(walk->context, &entry, &account);
    return refuse(walk, "an entry of the ledger is malformed");
}

static bool on_decline(void *context, const struct postgres_row *row)
{
    const int declined = LEDGER_TRANSACTION_COLUMN_COUNT + LEDGER_ACCOUNT_COLUMN_COUNT;
    const int chained = declined + LEDGER_DECLINED_COLUMN_COUNT;
    struct walk *walk = context;
    struct ledger_transaction decline;
    struct ledger_account account;
    if (ledger_read_transaction(row, 0, &decline) && !ledger_is_entry(&decline) &&
        ledger_read_account(row, LEDGER_TRANSACTION_COLUMN_COUNT, &account) &&
        ledger_read_declined(row, declined, &account) &&
        row_blob(row, chained + 1, decline.hash, sizeof decline.hash)) {
        decline.decline = (uint64_t)row_integer(row, chained);
        if (decline.decline > 0)
            return walk->entry(walk->context, &decline, &account);
    }
    return refuse(walk, "a decline is malformed");
}

static bool on_transaction(void *context, const struct postgres_row *row)
{
    struct walk *walk = context;
    struct ledger_transaction transaction;
    if (ledger_read_transaction(row, 0, &transaction))
        return walk->transaction(walk->context, &transaction);
    return refuse(walk, "a transaction is malformed");
}

static bool on_recent(void *context, const struct postgres_row *row)
{
    struct walk *walk = context;
    struct ledger_transaction transaction;
    if (ledger_read_transaction(row, 0, &transaction))
        return walk->recent(walk->context, &transaction,
                            row_integer(row, LEDGER_TRANSACTION_COLUMN_COUNT) != 0);
    return refuse(walk, "a transaction is malformed");
}

static bool on_clearing(void *context, const struct postgres_row *row)
{
    struct walk *walk = context;
    struct ledger_clearing clearing = {0};
    bool sound = row_string(row, 0, clearing.customer_id, sizeof clearing.customer_id);
    sound &= row_string(row, 1, clearing.currency, sizeof clearing.currency);
    clearing.balance_minor = row_integer(row, 2);
    if (sound)
        return walk->clearing(walk->context, &clearing, row_integer(row, 3));
    return refuse(walk, "a clearing account is malformed");
}

/* `walk` says who visits; the rest of it is set here. */
static enum status run_walk(struct platform_store *base, struct walk *walk, const char *sql,
                            const struct postgres_parameters *parameters, postgres_row_reader *row,
                            struct error *error)
{
    struct postgres_query query = {
        .sql = sql, .parameters = parameters, .row = row, .context = walk};
    walk->store = postgres_store_of(base);
    walk->status = STATUS_OK;
    walk->error = error;
    enum status status = postgres_read_snapshot(walk->store, &query, 1, error);
    postgres_clear(&query, 1);
    return status == STATUS_OK ? walk->status : status;
}

#define ENTRY_ROWS                                                                              \
    "SELECT " LEDGER_TRANSACTION_COLUMNS ", " LEDGER_ACCOUNT_COLUMNS " FROM ledger_transaction" \
    " JOIN player ON player.number = ledger_transaction.player_number"                          \
    " JOIN currency ON currency.code = player.currency"                                         \
    " LEFT JOIN ledger_account ON ledger_account.player_number = "                              \
    "player.number" LEDGER_PROVIDER_JOIN " WHERE ledger_transaction.sequence IS NOT NULL"
#define ENTRY_ORDER " ORDER BY ledger_transaction.player_number, ledger_transaction.sequence"

enum status postgres_ledger_entries(struct platform_store *base, struct ledger_whose whose,
                                    ledger_entry_visitor *visit, void *context, struct error *error)
{
    static const char of_all[] = ENTRY_ROWS ENTRY_ORDER;
    static const char of_player[] = ENTRY_ROWS " AND ledger_transaction.player_number ="
                                               " (SELECT number FROM player WHERE player.id = $1)"
                                               " AND ledger_transaction.sequence >= $2"
                                               " AND ledger_transaction.sequence < $3" ENTRY_ORDER;
    static const char of_customer[] = ENTRY_ROWS " AND player.customer_id = $1" ENTRY_ORDER;
    struct walk walk = {.entry = visit, .context = context};
    struct postgres_parameters parameters = {0};
    if (whose.player_id == NULL && whose.customer_id == NULL)
        return run_walk(base, &walk, of_all, NULL, on_entry, error);
    set_string(&parameters, 1, whose.player_id != NULL ? whose.player_id : whose.customer_id);
    if (whose.player_id != NULL) {
        set_integer(&parameters, 2, (int64_t)whose.from);
        set_integer(&parameters, 3, whose.before > 0 ? (int64_t)whose.before : INT64_MAX);
    }
    return run_walk(base, &walk, whose.player_id != NULL ? of_player : of_customer, &parameters,
                    on_entry, error);
}

enum status postgres_ledger_declines(struct platform_store *base, ledger_entry_visitor *visit,
                                     void *context, struct error *error)
{
    static const char read_all[] =
        "SELECT " LEDGER_TRANSACTION_COLUMNS ", " LEDGER_ACCOUNT_COLUMNS LEDGER_DECLINED_COLUMNS
        ", ledger_decline.position, ledger_decline.hash FROM ledger_decline"
        " JOIN ledger_transaction ON ledger_transaction.number = ledger_decline.transaction_number"
        " AND ledger_transaction.operation IS NOT NULL"
        " JOIN player ON player.number = ledger_decline.player_number"
        " JOIN currency ON currency.code = player.currency"
        " LEFT JOIN ledger_account ON ledger_account.player_number = player.number"
        " LEFT JOIN ledger_declined ON ledger_declined.player_number = "
        "player.number" LEDGER_PROVIDER_JOIN
        " ORDER BY ledger_decline.player_number, ledger_decline.position";
    struct walk walk = {.entry = visit, .context = context};
    return run_walk(base, &walk, read_all, NULL, on_decline, error);
}

enum status postgres_ledger_transactions(struct platform_store *base,
                                         ledger_transaction_visitor *visit, void *context,
                                         struct error *error)
{
    static const char read_all[] =
        "SELECT " LEDGER_TRANSACTION_COLUMNS " FROM ledger_transaction"
        " JOIN player ON player.number = ledger_transaction.player_number"
        " JOIN currency ON currency.code = player.currency" LEDGER_PROVIDER_JOIN
        " WHERE ledger_transaction.operation IS NOT NULL ORDER BY ledger_transaction.number";
    struct walk walk = {.transaction = visit, .context = context};
    return run_walk(base, &walk, read_all, NULL, on_transaction, error);
}

/* Of a player, all from the first that is of the time on: clocks of instances differ, and go back,
 * so an entry may seem older than one that it follows. */
enum status postgres_ledger_recent(struct platform_store *base, int64_t since_ms,
                                   ledger_recent_visitor *visit, void *context, struct error *error)
{
    static const char read_recent[] =
        "SELECT " LEDGER_TRANSACTION_COLUMNS
        ", (ledger_transaction.sequence < first.sequence)::int::bigint FROM"
        " (SELECT since.player_number, min(since.sequence) AS sequence"
        "   FROM ledger_transaction AS since"
        "   WHERE since.created_ms >= $1 AND since.sequence IS NOT NULL"
        "   GROUP BY since.player_number) AS first"
        " JOIN ledger_transaction ON ledger_transaction.player_number = first.player_number"
        "  AND ledger_transaction.sequence >= first.sequence - 1"
        " JOIN player ON player.number = ledger_transaction.player_number"
        " JOIN currency ON currency.code = player.currency" LEDGER_PROVIDER_JOIN
        " ORDER BY ledger_transaction.number";
    struct walk walk = {.recent = visit, .context = context};
    struct postgres_parameters parameters = {0};
    set_integer(&parameters, 1, since_ms);
    return run_walk(base, &walk, read_recent, &parameters, on_recent, error);
}

enum status postgres_ledger_entered(struct platform_store *base, int64_t from_ms, int64_t to_ms,
                                    ledger_transaction_visitor *visit, void *context,
                                    struct error *error)
{
    static const char read_time[] =
        "SELECT " LEDGER_TRANSACTION_COLUMNS " FROM ledger_transaction"
        " JOIN player ON player.number = ledger_transaction.player_number"
        " JOIN currency ON currency.code = player.currency" LEDGER_PROVIDER_JOIN
        " WHERE ledger_transaction.sequence IS NOT NULL"
        " AND ledger_transaction.created_ms >= $1 AND ledger_transaction.created_ms < $2"
        " ORDER BY ledger_transaction.created_ms, ledger_transaction.number";
    struct walk walk = {.transaction = visit, .context = context};
    struct postgres_parameters parameters = {0};
    set_integer(&parameters, 1, from_ms);
    set_integer(&parameters, 2, to_ms);
    return run_walk(base, &walk, read_time, &parameters, on_transaction, error);
}

/* Also what players hold without a clearing account, which must be nothing. */
enum status postgres_ledger_clearings(struct platform_store *base, ledger_clearing_visitor *visit,
                                      void *context, struct error *error)
{
    static const char read_all[] =
        "SELECT customer.id, coalesce(ledger_clearing.currency, held.currency),"
        " coalesce(ledger_clearing.balance_minor, 0), coalesce(held.balance_minor, 0)"
        " FROM ledger_clearing FULL JOIN"
        " (SELECT customer.number, player.currency,"
        "  sum(ledger_account.balance_minor)::bigint AS balance_minor FROM ledger_account"
        "  JOIN player ON player.number = ledger_account.player_number"
        "  JOIN customer ON customer.id = player.customer_id"
        "  GROUP BY customer.number, player.currency) AS held"
        " ON held.number = ledger_clearing.customer_number"
        " AND held.currency = ledger_clearing.currency"
        " LEFT JOIN customer"
        " ON customer.number = coalesce(ledger_clearing.customer_number, held.number)"
        " WHERE ledger_clearing.currency IS NOT NULL OR held.balance_minor <> 0"
        " ORDER BY customer.number, 2";
    struct walk walk = {.clearing = visit, .context = context};
    return run_walk(base, &walk, read_all, NULL, on_clearing, error);
}

enum status postgres_ledger_count(struct platform_store *base, uint64_t *count, struct error *error)
{
    struct postgres_query query = {
        .sql = "SELECT count(*) FROM ledger_transaction WHERE sequence IS NOT NULL"};
    enum status status = postgres_read_snapshot(postgres_store_of(base), &query, 1, error);
    if (status != STATUS_OK)
        return status;
    const struct postgres_row row = row_at(&query, 0);
    *count = (uint64_t)row_integer(&row, 0);
    postgres_clear(&query, 1);
    return STATUS_OK;
}
