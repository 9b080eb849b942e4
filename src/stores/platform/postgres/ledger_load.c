/*
 * A batch begins here in PostgreSQL (ledger.c has the whole): in one round trip its players are
 * locked and all that it decides on is read.
 *
 * One statement locks and reads a player's account: FOR NO KEY UPDATE returns the row as the last
 * commit left it. A player without an account is locked by the player's own row; the batch that
 * makes the account locks that row first. Both are locked in order of the players' numbers, players
 * before accounts, so that two batches do not wait for each other. Later statements, whose
 * snapshots are taken when the locks are held, read the rest.
 *
 * A connection asks once for the numbers of players and owners and for the facts of a player that
 * never change (fact_cache.h). A batch with a new one takes one more round trip.
 *
 * Look-ups are LATERAL with LIMIT, as in ledger_read.c.
 */
#include "base/memory.h"
#include "stores/platform/postgres/ledger.h"
#include "stores/platform/texts.h"

/* A batch on its way. */
struct numbered {
    struct cached_player *cached;
    struct ledger_batch_player *player;
};

struct loading {
    struct postgres_store *store;
    struct ledger_batch *batch;
    const char *flaw;                          /* of the first malformed row; NULL: none */
    struct row_arrays new_players, new_owners; /* ids that are not known yet */
    struct numbered players[LEDGER_BATCH_MAX]; /* those that are there, by number */
    size_t count;
    struct ledger_fact *asked[2 * LEDGER_BATCH_MAX]; /* facts whose owners are there */
    size_t asked_count;
    struct row_arrays numbers, names; /* players', in that order; ids, customers, references */
    struct row_arrays bare;           /* numbers of those without account */
    struct row_arrays clearings;      /* customer, currency */
    struct row_arrays ids;            /* the facts': owner, id, whether it counts credits */
};

static void free_loading(struct loading *loading)
{
    arrays_free(&loading->new_players);
    arrays_free(&loading->new_owners);
    arrays_free(&loading->numbers);
    arrays_free(&loading->names);
    arrays_free(&loading->bare);
    arrays_free(&loading->clearings);
    arrays_free(&loading->ids);
    memory_free(loading);
}

/* A reader of a row returns this: whether the row is sound. */
static bool note_row(struct loading *loading, bool sound, const char *flaw)
{
    if (!sound)
        loading->flaw = flaw;
    return sound;
}

/* Sends the queries, whose readers put the rows into the batch. The transaction is ended where this
 * fails. */
static enum status run(struct loading *loading, struct sql_query *queries, size_t count,
                       struct error *error)
{
    struct postgres_store *store = loading->store;
    enum status status = postgres_run(store, queries, count, error);
    if (status != STATUS_OK)
        return postgres_ledger_fail(store, status, error);
    if (loading->flaw == NULL)
        return STATUS_OK;
    return postgres_end(store, platform_damaged(&store->base, loading->flaw, error), error);
}

/* ---- players and owners of ids --------------------------------------------------------------- */

static bool on_player(void *context, const struct sql_row *row)
{
    struct loading *loading = context;
    struct ledger_account account = {.sequence = 0};
    if (!ledger_read_account(row, 0, &account))
        return note_row(loading, false, "a player is malformed");
    const struct cached_player cached = {.record = account.player,
                                         .number = sql_integer(row, LEDGER_ACCOUNT_COLUMN_COUNT),
                                         .customer_number =
                                             sql_integer(row, LEDGER_ACCOUNT_COLUMN_COUNT + 1),
                                         .has_account = account.sequence > 0};
    fact_cache_add(&loading->store->ledger.players, &cached, sizeof cached);
    return true;
}

static bool on_owner(void *context, const struct sql_row *row)
{
    struct loading *loading = context;
    struct cached_owner owner = {.number = sql_integer(row, 1)};
    if (!ledger_read_string(row, 0, owner.id, sizeof owner.id))
        return note_row(loading, false, "a player is malformed");
    fact_cache_add(&loading->store->ledger.owners, &owner, sizeof owner);
    return true;
}

/* Loads the numbers of the batch's players and owners that are not known yet. `begun`: some were
 * asked for, and so the transaction is open. */
static enum status load_unknown_ids(struct loading *loading, bool *begun, struct error *error)
{
    const struct ledger_batch *batch = loading->batch;
    const struct sql_texts *texts = &postgres_texts;
    struct postgres_store *store = loading->store;
    if (store->ledger.connects != store->connects ||
        !fact_cache_has_room(&store->ledger.players, batch->player_count) ||
        !fact_cache_has_room(&store->ledger.owners, batch->fact_count))
        postgres_ledger_forget(store);
    store->ledger.connects = store->connects;
    for (size_t i = 0; i < batch->player_count; i++)
        if (fact_cache_find(&store->ledger.players, batch->players[i].player_id) == NULL)
            ARRAYS_ADD(&loading->new_players, SQL_STRING(batch->players[i].player_id));
    for (size_t i = 0; i < batch->fact_count; i++)
        if (fact_cache_find(&store->ledger.owners, batch->facts[i].owner_id) == NULL)
            ARRAYS_ADD(&loading->new_owners, SQL_STRING(batch->facts[i].owner_id));
    *begun = arrays_count(&loading->new_players) > 0 || arrays_count(&loading->new_owners) > 0;
    if (!*begun)
        return STATUS_OK;
    struct sql_query queries[] = {{.sql = postgres_begin},
                                  {.sql = texts->use_indexes},
                                  {.sql = texts->players_of_ids,
                                   .parameters = arrays_bind(&loading->new_players, 1),
                                   .row = on_player,
                                   .context = loading},
                                  {.sql = texts->owners_of_ids,
                                   .parameters = arrays_bind(&loading->new_owners, 1),
                                   .row = on_owner,
                                   .context = loading}};
    return run(loading, queries, 4, error);
}

/* ---- the questions --------------------------------------------------------------------------- */

static int compare_numbered(const void *a, const void *b)
{
    const struct numbered *left = a;
    const struct numbered *right = b;
    const int64_t a_number = left->cached->number;
    const int64_t b_number = right->cached->number;
    return a_number < b_number ? -1 : a_number > b_number;
}

static void list_players(struct loading *loading)
{
    struct ledger_batch *batch = loading->batch;
    batch->clearing_count = 0;
    for (size_t i = 0; i < batch->player_count; i++) {
        struct ledger_batch_player *player = &batch->players[i];
        struct cached_player *cached =
            fact_cache_find(&loading->store->ledger.players, player->player_id);
        player->changed = player->declined = false;
        player->found = cached != NULL;
        if (cached == NULL)
            continue;
        player->account = (struct ledger_account){.player = cached->record};
        batch->loaded.players[i].player_number = cached->number;
        if (ledger_find_clearing(batch, player))
            batch->loaded.clearings[player->clearing] =
                (struct ledger_stored_clearing){.customer_number = cached->customer_number};
        loading->players[loading->count++] = (struct numbered){cached, player};
    }
    qsort(loading->players, loading->count, sizeof loading->players[0], compare_numbered);
    for (size_t i = 0; i < loading->count; i++) {
        const struct player_record *player = &loading->players[i].player->account.player;
        ARRAYS_ADD(&loading->numbers, SQL_INTEGER(loading->players[i].cached->number));
        ARRAYS_ADD(&loading->names, SQL_STRING(player->id), SQL_STRING(player->customer_id),
                   SQL_STRING(player->reference));
        if (!loading->players[i].cached->has_account)
            ARRAYS_ADD(&loading->bare, SQL_INTEGER(loading->players[i].cached->number));
    }
    for (size_t i = 0; i < batch->clearing_count; i++)
        ARRAYS_ADD(&loading->clearings, SQL_INTEGER(batch->loaded.clearings[i].customer_number),
                   SQL_STRING(batch->clearings[i].currency));
}

static void list_facts(struct loading *loading)
{
    for (size_t i = 0; i < loading->batch->fact_count; i++) {
        struct ledger_fact *fact = &loading->batch->facts[i];
        const struct cached_owner *owner =
            fact_cache_find(&loading->store->ledger.owners, fact->owner_id);
        fact->id = (struct ledger_id){0};
        if (owner == NULL || (loading->batch->assumes_new && !fact->is_reference))
            continue;
        loading->asked[loading->asked_count++] = fact;
        ARRAYS_ADD(&loading->ids, SQL_INTEGER(owner->number), SQL_STRING(fact->transaction_id),
                   SQL_INTEGER(fact->counts_credits));
    }
}

/* ---- the answers ----------------------------------------------------------------------------- */

/* The account of the player that the first column names; the next columns are to go into it. */
static struct ledger_account *account_of(struct loading *loading, const struct sql_row *row)
{
    size_t at = 0;
    return ledger_read_ordinal(row, loading->count, &at) ? &loading->players[at].player->account
                                                         : NULL;
}

static const char bad_account[] = "an account is malformed";

static bool on_account(void *context, const struct sql_row *row)
{
    struct ledger_account *account = account_of(context, row);
    return note_row(context, account != NULL && ledger_read_balance(row, 1, account), bad_account);
}

static bool on_declined(void *context, const struct sql_row *row)
{
    struct ledger_account *account = account_of(context, row);
    return note_row(context, account != NULL && ledger_read_declined(row, 1, account), bad_account);
}

/* The cached facts of a player (fact_cache.h) do not have it. */
static bool on_block(void *context, const struct sql_row *row)
{
    struct ledger_account *account = account_of(context, row);
    if (account != NULL)
        account->player.blocked_until_ms = sql_integer(row, 1);
    return note_row(context, account != NULL, bad_account);
}

static bool on_clearing(void *context, const struct sql_row *row)
{
    struct ledger_batch *batch = ((struct loading *)context)->batch;
    size_t at = 0;
    if (!ledger_read_ordinal(row, batch->clearing_count, &at))
        return note_row(context, false, bad_account);
    batch->clearings[at].balance_minor = sql_integer(row, 1);
    batch->loaded.clearings[at].balance_minor = batch->clearings[at].balance_minor;
    batch->loaded.clearings[at].found = true;
    return true;
}

static bool on_fact(void *context, const struct sql_row *row)
{
    const struct loading *loading = context;
    return note_row(context, ledger_read_fact(row, loading->asked, loading->asked_count),
                    "a transaction is malformed");
}

/* Accounts are never deleted, so if a cached one is missing, this is another database. A player
 * with an account is from now on locked by the account's row, not by the player's. */
static bool note_accounts(struct loading *loading)
{
    struct ledger_batch *batch = loading->batch;
    for (size_t i = 0; i < loading->count; i++) {
        const struct numbered *one = &loading->players[i];
        const uint64_t sequence = one->player->account.sequence;
        if (one->cached->has_account && sequence == 0)
            return false;
        one->cached->has_account = sequence > 0;
        batch->loaded.players[one->player - batch->players].account.sequence = sequence;
    }
    return true;
}

/* The last query's row. */
static bool on_numbers(void *context, const struct sql_row *row)
{
    struct loading *loading = context;
    loading->batch->loaded.first_number = sql_integer(row, 0);
    loading->batch->loaded.transaction = sql_integer(row, 1);
    return loading->flaw == NULL && note_row(loading, note_accounts(loading), "an account is gone");
}

/* ---- the flight ------------------------------------------------------------------------------ */

static enum status load(struct loading *loading, bool begun, struct error *error)
{
    const struct sql_texts *texts = &postgres_texts;
    struct sql_query queries[9];
    size_t count = 0;
    list_players(loading);
    list_facts(loading);
    struct sql_parameters *numbers = arrays_bind(&loading->numbers, 1);
    struct sql_parameters *clearings = arrays_bind(&loading->clearings, 2);
    const struct {
        const char *sql;
        struct sql_parameters *parameters;
        sql_row_reader *row;
        bool left_out;
    } steps[] = {
        {postgres_begin, NULL, NULL, begun},
        {texts->lock_players, arrays_bind(&loading->bare, 1), NULL,
         arrays_count(&loading->bare) == 0},
        {texts->lock_accounts, numbers, on_account, false},
        {texts->lock_clearings, clearings, NULL, !loading->store->ledger.lock_clearings},
        {texts->declines_of_players, numbers, on_declined, false},
        {texts->blocks_of_players, arrays_bind(&loading->names, 3), on_block, false},
        {texts->clearings_of_customers, clearings, on_clearing, false},
        {texts->facts, arrays_bind(&loading->ids, 3), on_fact, loading->asked_count == 0},
        {texts->take_numbers, NULL, on_numbers, false},
    };
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
        if (!steps[i].left_out)
            queries[count++] = (struct sql_query){.sql = steps[i].sql,
                                                  .parameters = steps[i].parameters,
                                                  .row = steps[i].row,
                                                  .context = loading};
    return run(loading, queries, count, error);
}

enum status postgres_ledger_begin(struct platform_store *base, struct ledger_batch *batch,
                                  struct error *error)
{
    struct postgres_store *store = postgres_store_of(base);
    bool begun = false;
    CHECK(!store->snapshot);
    enum status status = postgres_ready(store, error);
    if (status != STATUS_OK)
        return status;
    struct loading *loading = memory_alloc_zeroed(1, sizeof *loading);
    loading->store = store;
    loading->batch = batch;
    status = load_unknown_ids(loading, &begun, error);
    if (status == STATUS_OK)
        status = load(loading, begun, error);
    free_loading(loading);
    return status;
}
