/*
 * How a batch begins in PostgreSQL (ledger.c has the whole): in one round trip its players are
 * locked and all that it decides on is read.
 *
 * One statement locks and reads a player's account: FOR NO KEY UPDATE returns the row as the last
 * commit left it. A player without an account is locked by the player's own row; the batch that
 * makes the account locks that row first. Both are locked in order of the players' numbers, players
 * before accounts, so that two batches do not wait for each other. Later statements, whose
 * snapshots are taken when the locks are held, read the rest.
 *
 * A connection asks once for the numbers of players and owners and for the facts of a player that
 * never change (known.h). A batch with a new one takes one more round trip.
 *
 * Look-ups are LATERAL with LIMIT, as in ledger_read.c.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "stores/platform/postgres/ledger.h"

#define QUERIES_MAX 9 /* queries of one flight */

/* ---- players and owners of ids --------------------------------------------------------------- */

static const char find_players[] =
    "SELECT account.* FROM unnest($1::text[]) AS asked (id)"
    " CROSS JOIN LATERAL (SELECT " LEDGER_ACCOUNT_COLUMNS ", player.number,"
    "   customer.number AS customer_number FROM player"
    "  JOIN customer ON customer.id = player.customer_id"
    "  JOIN currency ON currency.code = player.currency"
    "  LEFT JOIN ledger_account ON ledger_account.player_number = player.number"
    "  WHERE player.id = asked.id LIMIT 1) AS account";

static const char find_owners[] =
    "SELECT owner.id, owner.number FROM unnest($1::text[]) AS asked (id)"
    " CROSS JOIN LATERAL (SELECT id, number FROM customer WHERE customer.id = asked.id"
    "  UNION ALL SELECT id, -number FROM provider WHERE provider.id = asked.id LIMIT 1) AS owner";

static bool add_known(struct known *known, const struct postgres_query *players,
                      const struct postgres_query *owners)
{
    for (int i = 0; i < row_count(players); i++) {
        const struct sql_row row = sql_row_at(players, i);
        struct ledger_account account;
        if (!ledger_read_account(&row, 0, &account))
            return false;
        known_add_player(
            known,
            &(struct known_player){
                .record = account.player,
                .number = ledger_read_integer(&row, LEDGER_ACCOUNT_COLUMN_COUNT),
                .customer_number = ledger_read_integer(&row, LEDGER_ACCOUNT_COLUMN_COUNT + 1),
                .has_account = account.sequence > 0,
            });
    }
    for (int i = 0; i < row_count(owners); i++) {
        const struct sql_row row = sql_row_at(owners, i);
        struct known_owner owner = {.number = ledger_read_integer(&row, 1)};
        if (!ledger_read_string(&row, 0, owner.id, sizeof owner.id))
            return false;
        known_add_owner(known, &owner);
    }
    return true;
}

/* Begins the transaction, and asks for those in the two arrays. */
static enum status ask_for(struct postgres_store *store, struct postgres_array *players,
                           struct postgres_array *owners, struct error *error)
{
    struct postgres_parameters of_players = {0};
    struct postgres_parameters of_owners = {0};
    set_array(&of_players, 1, players);
    set_array(&of_owners, 1, owners);
    struct postgres_query queries[] = {{.sql = postgres_begin},
                                       {.sql = find_players, .parameters = &of_players},
                                       {.sql = find_owners, .parameters = &of_owners}};
    enum status status = postgres_run(store, queries, 3, error);
    if (status != STATUS_OK)
        return postgres_ledger_give_up(store, status, error);
    bool sound = add_known(postgres_ledger_of(store)->known, &queries[1], &queries[2]);
    postgres_clear(queries, 3);
    if (sound)
        return STATUS_OK;
    status = platform_damaged(&store->base, "a player is malformed", error);
    return postgres_end(store, status, error);
}

/* Loads the numbers of the batch's players and owners that are not known yet. `begun`: some were
 * asked for, and so the transaction is open. */
static enum status load_unknown_ids(struct postgres_store *store, const struct ledger_batch *batch,
                                    bool *begun, struct error *error)
{
    struct postgres_ledger *ledger = postgres_ledger_of(store);
    struct postgres_array players = {.kind = ARRAY_TEXT};
    struct postgres_array owners = {.kind = ARRAY_TEXT};
    enum status status = STATUS_OK;
    if (ledger->connects != store->connects ||
        !known_has_room(ledger->known, batch->player_count + batch->fact_count))
        known_forget(ledger->known);
    ledger->connects = store->connects;
    for (size_t i = 0; i < batch->player_count; i++)
        if (known_player(ledger->known, batch->players[i].player_id) == NULL)
            array_add_string(&players, batch->players[i].player_id);
    for (size_t i = 0; i < batch->fact_count; i++)
        if (known_owner(ledger->known, batch->facts[i].owner_id) == NULL)
            array_add_string(&owners, batch->facts[i].owner_id);
    *begun = players.count > 0 || owners.count > 0;
    if (*begun)
        status = ask_for(store, &players, &owners, error);
    array_free(&players);
    array_free(&owners);
    return status;
}

/* ---- the questions --------------------------------------------------------------------------- */

static const char lock_players[] =
    "SELECT count(*) FROM unnest($1::bigint[]) AS bare (number)"
    " CROSS JOIN LATERAL (SELECT player.number FROM player WHERE player.number = bare.number"
    "  LIMIT 1 FOR NO KEY UPDATE) AS locked";

static const char lock_accounts[] =
    "SELECT asked.at, account.* FROM (SELECT unnest($1::bigint[]) AS number,"
    "  generate_subscripts($1::bigint[], 1) AS at) AS asked"
    " CROSS JOIN LATERAL (SELECT balance_minor, sequence, head FROM ledger_account"
    "  WHERE player_number = asked.number LIMIT 1 FOR NO KEY UPDATE) AS account";

static const char lock_clearings[] =
    "SELECT count(*) FROM (SELECT FROM ledger_clearing WHERE (customer_number, currency) IN"
    "  (SELECT * FROM unnest($1::bigint[], $2::text[]))"
    "  ORDER BY customer_number, currency FOR NO KEY UPDATE) AS locked";

static const char find_declines[] =
    "SELECT asked.at, declined.* FROM (SELECT unnest($1::bigint[]) AS number,"
    "  generate_subscripts($1::bigint[], 1) AS at) AS asked"
    " CROSS JOIN LATERAL (SELECT declines, head FROM ledger_declined"
    "  WHERE player_number = asked.number LIMIT 1) AS declined";

static const char find_blocks[] =
    "SELECT asked.at, block.blocked_ms FROM (SELECT unnest($1::bigint[]) AS number,"
    "  generate_subscripts($1::bigint[], 1) AS at) AS asked"
    " CROSS JOIN LATERAL (SELECT blocked_ms FROM player_block"
    "  WHERE player_number = asked.number LIMIT 1) AS block";

static const char find_clearings[] =
    "SELECT asked.at, clearing.balance_minor"
    " FROM unnest($1::bigint[], $2::text[]) WITH ORDINALITY AS asked (customer, code, at)"
    " CROSS JOIN LATERAL (SELECT balance_minor FROM ledger_clearing"
    "  WHERE customer_number = asked.customer AND currency = asked.code LIMIT 1) AS clearing";

/* After everything that is decided on: see sql/postgresql/0005_release_0_1_0.sql. */
static const char take_numbers[] =
    "SELECT nextval('ledger_number'), pg_current_xact_id()::text::bigint";

struct loading {
    size_t order[LEDGER_BATCH_MAX]; /* those of the batch's players that are there, by number */
    size_t count;
    struct ledger_fact *asked[2 * LEDGER_BATCH_MAX]; /* facts whose owners are there */
    size_t asked_count;
    struct postgres_array numbers, bare; /* players', in that order; of those without account */
    struct postgres_array customers, currencies;             /* the clearing accounts' */
    struct postgres_array id_owners, ids, id_counts_credits; /* the facts' */
};

static struct loading *make_loading(void)
{
    struct loading *loading = memory_alloc_zeroed(1, sizeof *loading);
    loading->numbers.kind = loading->bare.kind = loading->customers.kind = ARRAY_BIGINT;
    loading->id_owners.kind = loading->id_counts_credits.kind = ARRAY_BIGINT;
    loading->currencies.kind = loading->ids.kind = ARRAY_TEXT;
    return loading;
}

static void free_loading(struct loading *loading)
{
    array_free(&loading->numbers);
    array_free(&loading->bare);
    array_free(&loading->customers);
    array_free(&loading->currencies);
    array_free(&loading->id_owners);
    array_free(&loading->ids);
    array_free(&loading->id_counts_credits);
    memory_free(loading);
}

/* The clearing account of a player, among the batch's. */
static void set_clearing(struct ledger_batch *batch, struct ledger_batch_player *player,
                         int64_t customer_number)
{
    const struct player_record *record = &player->account.player;
    size_t at = 0;
    while (at < batch->clearing_count &&
           (batch->loaded.clearings[at].customer_number != customer_number ||
            strcmp(batch->clearings[at].currency, record->currency) != 0))
        at++;
    player->clearing = at;
    if (at < batch->clearing_count)
        return;
    struct ledger_clearing *clearing = &batch->clearings[batch->clearing_count++];
    *clearing = (struct ledger_clearing){0};
    memcpy(clearing->customer_id, record->customer_id, sizeof clearing->customer_id);
    memcpy(clearing->currency, record->currency, sizeof clearing->currency);
    batch->loaded.clearings[at] =
        (struct ledger_stored_clearing){.customer_number = customer_number};
}

struct numbered {
    int64_t number;
    size_t player;
    bool has_account;
};

static int compare_numbered(const void *a, const void *b)
{
    const struct numbered *left = a;
    const struct numbered *right = b;
    return left->number < right->number ? -1 : left->number > right->number;
}

static void list_players(struct postgres_ledger *ledger, struct ledger_batch *batch,
                         struct loading *loading)
{
    struct numbered found[LEDGER_BATCH_MAX];
    batch->clearing_count = 0;
    for (size_t i = 0; i < batch->player_count; i++) {
        struct ledger_batch_player *player = &batch->players[i];
        const struct known_player *known = known_player(ledger->known, player->player_id);
        player->changed = player->declined = false;
        player->found = known != NULL;
        if (known == NULL)
            continue;
        player->account = (struct ledger_account){.player = known->record};
        batch->loaded.players[i].player_number = known->number;
        set_clearing(batch, player, known->customer_number);
        found[loading->count++] = (struct numbered){known->number, i, known->has_account};
    }
    qsort(found, loading->count, sizeof found[0], compare_numbered);
    for (size_t i = 0; i < loading->count; i++) {
        loading->order[i] = found[i].player;
        array_add_integer(&loading->numbers, found[i].number);
        if (!found[i].has_account)
            array_add_integer(&loading->bare, found[i].number);
    }
    for (size_t i = 0; i < batch->clearing_count; i++) {
        array_add_integer(&loading->customers, batch->loaded.clearings[i].customer_number);
        array_add_string(&loading->currencies, batch->clearings[i].currency);
    }
}

static void list_facts(const struct postgres_ledger *ledger, struct ledger_batch *batch,
                       struct loading *loading)
{
    for (size_t i = 0; i < batch->fact_count; i++) {
        struct ledger_fact *fact = &batch->facts[i];
        const struct known_owner *owner = known_owner(ledger->known, fact->owner_id);
        fact->id = (struct ledger_id){0};
        if (owner == NULL)
            continue;
        loading->asked[loading->asked_count++] = fact;
        array_add_integer(&loading->id_owners, owner->number);
        array_add_string(&loading->ids, fact->transaction_id);
        array_add_integer(&loading->id_counts_credits, fact->counts_credits);
    }
}

/* ---- the answers ----------------------------------------------------------------------------- */

static struct ledger_batch_player *
player_of_row(struct ledger_batch *batch, const struct loading *loading, const struct sql_row *row)
{
    size_t at = 0;
    return ledger_read_ordinal(row, loading->count, &at) ? &batch->players[loading->order[at]]
                                                         : NULL;
}

/* Not among the known facts of a player (known.h). */
static bool read_block(const struct sql_row *row, int first, struct ledger_account *account)
{
    account->player.blocked_ms = ledger_read_integer(row, first);
    return true;
}

/* Each row is of the player that its first column names; `read` puts the rest into the account. */
typedef bool account_reader(const struct sql_row *row, int first, struct ledger_account *account);
static bool read_accounts(struct ledger_batch *batch, const struct loading *loading,
                          const struct postgres_query *query, account_reader *read)
{
    for (int i = 0; i < row_count(query); i++) {
        const struct sql_row row = sql_row_at(query, i);
        struct ledger_batch_player *player = player_of_row(batch, loading, &row);
        if (player == NULL || !read(&row, 1, &player->account))
            return false;
    }
    return true;
}

static bool read_clearings(struct ledger_batch *batch, const struct postgres_query *clearings)
{
    for (int i = 0; i < row_count(clearings); i++) {
        const struct sql_row row = sql_row_at(clearings, i);
        size_t at = 0;
        if (!ledger_read_ordinal(&row, batch->clearing_count, &at))
            return false;
        batch->clearings[at].balance_minor = ledger_read_integer(&row, 1);
        batch->loaded.clearings[at].found = true;
    }
    return true;
}

static bool read_facts(const struct loading *loading, const struct postgres_query *facts)
{
    for (int i = 0; i < row_count(facts); i++) {
        const struct sql_row row = sql_row_at(facts, i);
        if (!ledger_read_fact(&row, loading->asked, loading->asked_count))
            return false;
    }
    return true;
}

/* Accounts are never deleted, so if a known one is missing, this is another database. A player with
 * an account is from now on locked by the account's row, not by the player's. */
static bool note_accounts(struct postgres_ledger *ledger, const struct ledger_batch *batch)
{
    for (size_t i = 0; i < batch->player_count; i++) {
        const struct ledger_batch_player *player = &batch->players[i];
        struct known_player *known =
            player->found ? known_player(ledger->known, player->player_id) : NULL;
        if (known == NULL)
            continue;
        if (known->has_account && player->account.sequence == 0)
            return false;
        known->has_account = player->account.sequence > 0;
    }
    return true;
}

/* ---- the flight ------------------------------------------------------------------------------ */

/* Which queries of the flight are which. */
struct flight_plan {
    struct postgres_query queries[QUERIES_MAX];
    size_t count;
    struct postgres_parameters bare, numbers, clearings, ids;
    size_t accounts, declines, blocks, found_clearings, facts, taken;
};

static size_t add_query(struct flight_plan *plan, const char *sql,
                        const struct postgres_parameters *parameters)
{
    CHECK(plan->count < QUERIES_MAX);
    plan->queries[plan->count] = (struct postgres_query){.sql = sql, .parameters = parameters};
    return plan->count++;
}

static void make_plan(struct flight_plan *plan, struct loading *loading, bool begun,
                      bool locks_clearings)
{
    set_array(&plan->bare, 1, &loading->bare);
    set_array(&plan->numbers, 1, &loading->numbers);
    set_array(&plan->clearings, 1, &loading->customers);
    set_array(&plan->clearings, 2, &loading->currencies);
    set_array(&plan->ids, 1, &loading->id_owners);
    set_array(&plan->ids, 2, &loading->ids);
    set_array(&plan->ids, 3, &loading->id_counts_credits);
    if (!begun)
        (void)add_query(plan, postgres_begin, NULL);
    if (loading->bare.count > 0)
        (void)add_query(plan, lock_players, &plan->bare);
    plan->accounts = add_query(plan, lock_accounts, &plan->numbers);
    if (locks_clearings)
        (void)add_query(plan, lock_clearings, &plan->clearings);
    plan->declines = add_query(plan, find_declines, &plan->numbers);
    plan->blocks = add_query(plan, find_blocks, &plan->numbers);
    plan->found_clearings = add_query(plan, find_clearings, &plan->clearings);
    plan->facts = add_query(plan, ledger_find_facts, &plan->ids);
    plan->taken = add_query(plan, take_numbers, NULL);
}

static enum status read_answers(struct postgres_store *store, struct ledger_batch *batch,
                                const struct loading *loading, const struct flight_plan *plan,
                                struct error *error)
{
    struct postgres_ledger *ledger = postgres_ledger_of(store);
    const struct sql_row taken = sql_row_at(&plan->queries[plan->taken], 0);
    batch->loaded.first_number = ledger_read_integer(&taken, 0);
    batch->loaded.transaction = ledger_read_integer(&taken, 1);
    if (!read_accounts(batch, loading, &plan->queries[plan->accounts], ledger_read_balance) ||
        !read_accounts(batch, loading, &plan->queries[plan->declines], ledger_read_declined) ||
        !read_accounts(batch, loading, &plan->queries[plan->blocks], read_block) ||
        !read_clearings(batch, &plan->queries[plan->found_clearings]))
        return platform_damaged(&store->base, "an account is malformed", error);
    if (!read_facts(loading, &plan->queries[plan->facts]))
        return platform_damaged(&store->base, "a transaction is malformed", error);
    if (!note_accounts(ledger, batch))
        return platform_damaged(&store->base, "an account is gone", error);
    return STATUS_OK;
}

static enum status load(struct postgres_store *store, struct ledger_batch *batch, bool begun,
                        struct error *error)
{
    struct postgres_ledger *ledger = postgres_ledger_of(store);
    struct loading *loading = make_loading();
    struct flight_plan plan = {0};
    list_players(ledger, batch, loading);
    list_facts(ledger, batch, loading);
    make_plan(&plan, loading, begun, ledger->lock_clearings);
    enum status status = postgres_run(store, plan.queries, plan.count, error);
    if (status == STATUS_OK) {
        status = read_answers(store, batch, loading, &plan, error);
        postgres_clear(plan.queries, plan.count);
        status = status == STATUS_OK ? STATUS_OK : postgres_end(store, status, error);
    } else {
        status = postgres_ledger_give_up(store, status, error);
    }
    free_loading(loading);
    return status;
}

enum status postgres_ledger_begin(struct platform_store *base, struct ledger_batch *batch,
                                  struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    bool begun = false;
    CHECK(!store->snapshot);
    enum status status = postgres_ready(store, error);
    if (status == STATUS_OK)
        status = load_unknown_ids(store, batch, &begun, error);
    return status == STATUS_OK ? load(store, batch, begun, error) : status;
}
