/*
 * Balances and ids of the ledger in PostgreSQL, and how far it is complete.
 *
 * Look-ups are LATERAL subqueries with LIMIT, so that they are an index look-up for each thing
 * asked for. A plan that the planner would rather have for a table that was small a moment ago is
 * kept by the connection, and would read all of one that has grown since.
 */

#include "stores/platform/ledger/reads.h"
#include "stores/platform/postgres/ledger.h"

bool ledger_read_ordinal(const struct sql_row *row, size_t count, size_t *at)
{
    int64_t ordinal = sql_integer(row, 0);
    *at = (size_t)(ordinal - 1);
    return ordinal >= 1 && (uint64_t)ordinal <= count;
}

/* ---- ids ------------------------------------------------------------------------------------- */

bool ledger_read_fact(const struct sql_row *row, struct ledger_fact *const *asked, size_t count)
{
    const int after = 1 + LEDGER_TRANSACTION_COLUMN_COUNT;
    struct ledger_id read = {.known = !ledger_read_null(row, 1 + LEDGER_OPERATION_COLUMN),
                             .rolled_back = !ledger_read_null(row, after)};
    size_t at = 0;
    bool sound = ledger_read_ordinal(row, count, &at) && (read.known || read.rolled_back);
    if (read.known)
        sound &= ledger_read_transaction(row, 1, NULL, &read.transaction);
    if (read.rolled_back)
        sound &=
            ledger_read_string(row, after, read.rolled_back_player,
                               sizeof read.rolled_back_player) &&
            ledger_read_string(row, after + 3, read.rolled_back_by, sizeof read.rolled_back_by);
    read.standing_credits = (uint32_t)sql_integer(row, after + 1);
    sound &= ledger_read_string(row, after + 4, read.settled_by, sizeof read.settled_by);
    read.number = sql_integer(row, after + 2);
    /* Of an id that was held and then used there are two rows, and the transaction's says more. */
    if (sound && (read.known || !asked[at]->id.known))
        asked[at]->id = read;
    return sound;
}

/* The places for the answers about a batch. */
struct answers {
    struct platform_store *store;
    struct ledger_fact *fact;
    struct ledger_batch_player *players;
    size_t count;
};

static enum status take_fact(void *context, const struct sql_row *row, struct error *error)
{
    struct answers *answers = context;
    return ledger_read_fact(row, &answers->fact, 1)
               ? STATUS_OK
               : platform_damaged(answers->store, "a transaction is malformed", error);
}

enum status postgres_ledger_id(struct platform_store *base, struct ledger_fact *fact,
                               struct error *error)
{
    struct ledger_fact found = {0};
    struct answers answers = {.store = base, .fact = &found};
    struct sql_parameters parameters =
        SQL_PARAMETERS(SQL_STRING(fact->owner_id), SQL_STRING(fact->transaction_id));
    enum status status =
        ledger_read_page(base, postgres_texts.fact, &parameters, take_fact, &answers, error);
    if (status == STATUS_OK)
        fact->id = found.id;
    return status;
}

/* ---- balances -------------------------------------------------------------------------------- */

static enum status take_account(void *context, const struct sql_row *row, struct error *error)
{
    struct answers *answers = context;
    size_t at = 0;
    if (!ledger_read_ordinal(row, answers->count, &at) ||
        !ledger_read_account(row, 1, &answers->players[at].account))
        return platform_damaged(answers->store, "an account is malformed", error);
    answers->players[at].found = true;
    return STATUS_OK;
}

enum status postgres_ledger_balances(struct platform_store *base,
                                     struct ledger_batch_player *players, size_t count,
                                     struct error *error)
{
    struct answers answers = {.store = base, .players = players, .count = count};
    struct row_arrays ids = {0};
    for (size_t i = 0; i < count; i++) {
        ARRAYS_ADD(&ids, SQL_STRING(players[i].player_id));
        players[i].found = false;
    }
    enum status status = ledger_read_page(base, postgres_texts.accounts_of_ids,
                                          arrays_bind(&ids, 1), take_account, &answers, error);
    arrays_free(&ids);
    return status;
}

/* ---- the horizon of a tail ------------------------------------------------------------------- */

/*
 * A batch takes its numbers while it holds ROW SHARE on ledger_account, and keeps that lock until
 * its commit is visible. So once every transaction has ended that had the lock after the sequence
 * stood at some number, no entry can come with that number or a lower one. Only batches take this
 * lock: pg_dump, reports and open sessions of people do not hold a tail up.
 */
#define NUMBERS_OF_A_BATCH 512 /* INCREMENT of ledger_number */

struct open_batches {
    char names[LEDGER_OPEN_SIZE];
    bool sound;
};

static bool on_open(void *context, const struct sql_row *row)
{
    struct open_batches *open = context;
    open->sound = ledger_read_string(row, 0, open->names, sizeof open->names);
    return false;
}

/* Where the names do not fit, or no number was taken yet, the horizon stays where it is. */
static void move_on(struct ledger_horizon *horizon, int64_t last, const struct open_batches *open)
{
    if (!open->sound || last < 0)
        return;
    if (horizon->awaited == 0)
        horizon->awaited = last + NUMBERS_OF_A_BATCH - 1;
    memcpy(horizon->open, open->names, sizeof horizon->open);
    if (open->names[0] != '\0')
        return;
    horizon->complete = horizon->awaited;
    horizon->awaited = 0;
}

/* The statements run one after the other, each with a snapshot of its own: the number is read
 * before the locks. The caller reads the entries after both. */
enum status postgres_ledger_advance(struct platform_store *base, struct ledger_horizon *horizon,
                                    struct error *error)
{
    struct open_batches open = {.sound = false};
    struct sql_parameters parameters = SQL_PARAMETERS(SQL_STRING(horizon->open));
    int64_t last = -1;
    struct sql_query queries[] = {
        {.sql = postgres_texts.last_number, .row = sql_take_integer, .context = &last},
        {.sql = postgres_texts.open_batches,
         .parameters = &parameters,
         .row = on_open,
         .context = &open}};
    enum status status = postgres_read(postgres_store_of(base), queries, 2, error);
    if (status == STATUS_OK)
        move_on(horizon, last, &open);
    return status;
}

/* ---- after opening --------------------------------------------------------------------------- */

/* Every batch makes sure that the rows it answers from are safe. So this only checks the newest
 * entries, and whether a batch could be committed. */
enum status postgres_ledger_recover(struct platform_store *base, struct error *error)
{
    enum status status = ledger_check_newest(base, error);
    return status == STATUS_OK ? postgres_may_commit(postgres_store_of(base), error) : status;
}
