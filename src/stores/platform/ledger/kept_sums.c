/*
 * Keeps sums of entries by day (ledger_sum), so that a question about days reads few entries.
 *
 * The writer of usage adds the entries that have come, and so does an operator who asks. A batch
 * does nothing for it. The entries up to the number in ledger_summed are kept, and none is still to
 * come there: where entries become visible in another order than that of their numbers, the
 * engine's horizon says up to which number all are (ledger_horizon). So an entry of an earlier day
 * that commits late is summed like any other, and no day has to be closed.
 *
 * Sums may be lost and made again. `croupier wallet verify` compares them with the entries: in
 * PostgreSQL each, in SQLite by day, customer, operation and direction, because to compare each
 * takes longer there than all the rest.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "stores/platform/ledger/reads.h"
#include "stores/platform_sums.h"

#define AT_ONCE ((int64_t)1 << 15) /* numbers: a loaded server sums so many within the timeout */
#define PIECE 256                  /* numbers: less than a millisecond of a processor */
#define LOOKS_MAX 50               /* at batches that are open */
#define LOOK_EVERY_NS ((uint64_t)10 * 1000 * 1000)

enum { TEXTS = 6 };
enum { TRANSFER, RAISED, ENTRIES, MOVEMENT, INTEGERS };

/* A row of ledger_sum. */
struct kept_row {
    int64_t day;
    char texts[TEXTS - 1][GAME_REFERENCE_SIZE]; /* customer, currency, provider, game, operation */
    char kind[16];
    int64_t integers[INTEGERS];
};
#define KEY_SIZE offsetof(struct kept_row, integers[ENTRIES]) /* the sums come after it */

struct keeping {
    int64_t from, until; /* numbers */
    struct buffer rows;
};

static int compare_keys(const void *one, const void *other)
{
    return memcmp(one, other, KEY_SIZE);
}

/* SQLite gives a row for each entry: to group them there takes as long as all the rest. */
static void group(struct buffer *rows)
{
    struct kept_row *all = (struct kept_row *)(void *)rows->data;
    size_t count = rows->size / sizeof *all;
    size_t kept = 0;
    if (count > 0)
        qsort(all, count, sizeof *all, compare_keys);
    for (size_t i = 1; i < count; i++)
        if (compare_keys(&all[kept], &all[i]) == 0) {
            all[kept].integers[ENTRIES] += all[i].integers[ENTRIES];
            all[kept].integers[MOVEMENT] += all[i].integers[MOVEMENT];
        } else {
            all[++kept] = all[i];
        }
    rows->size = count > 0 ? (kept + 1) * sizeof *all : 0;
}

static enum status take_row(void *context, const struct sql_row *row, struct error *error)
{
    struct keeping *keeping = context;
    struct kept_row kept;
    memset(&kept, 0, sizeof kept); /* the padding too, which is compared */
    kept.day = sql_integer(row, 0);
    bool sound = ledger_read_string(row, TEXTS, kept.kind, sizeof kept.kind);
    for (int i = 0; i < TEXTS - 1; i++)
        sound &= ledger_read_string(row, 1 + i, kept.texts[i], sizeof kept.texts[i]);
    for (int i = 0; i < INTEGERS; i++)
        kept.integers[i] = sql_integer(row, 1 + TEXTS + i);
    if (!sound)
        return error_set(error, STATUS_MALFORMED, "a sum of the ledger is malformed");
    buffer_append(&keeping->rows, &kept, sizeof kept);
    return STATUS_OK;
}

/* Up to which number all entries are there. While batches are open that took earlier numbers, it
 * waits for them, for a bounded time. */
static enum status find_complete(struct platform_store *store, int64_t *number, struct error *error)
{
    struct ledger_horizon *horizon = memory_alloc_zeroed(1, sizeof *horizon);
    enum status status = STATUS_OK;
    for (int look = 0; look < LOOKS_MAX && status == STATUS_OK && horizon->complete == 0; look++) {
        if (look > 0)
            clock_pause_ns(LOOK_EVERY_NS);
        status = store->ledger->advance(store, horizon, error);
    }
    *number = horizon->complete;
    memory_free(horizon);
    return status;
}

static void add_row(struct sql_flight *flight, const struct kept_row *row)
{
    struct sql_parameters *parameters =
        sql_flight_add(flight, flight->store->engine->texts->keep_sum)->parameters;
    SQL_ADD(parameters, SQL_INTEGER(row->day));
    for (int i = 0; i < TEXTS - 1; i++)
        SQL_ADD(parameters, SQL_STRING(row->texts[i]));
    SQL_ADD(parameters, SQL_STRING(row->kind));
    for (int i = 0; i < INTEGERS; i++)
        SQL_ADD(parameters, SQL_INTEGER(row->integers[i]));
}

/* If another caller has kept the same entries in between, the number is another. */
static enum status keep_rows(struct sql_flight *flight, void *context, struct error *error)
{
    const struct keeping *keeping = context;
    const struct kept_row *rows = (const struct kept_row *)(const void *)keeping->rows.data;
    struct sql_query *count_on =
        sql_flight_add(flight, "UPDATE ledger_summed SET number = $2 WHERE number = $1");
    SQL_ADD(count_on->parameters, SQL_INTEGER(keeping->from), SQL_INTEGER(keeping->until));
    enum status status = sql_flight_run(flight, false, error);
    if (status == STATUS_OK && count_on->affected != 1)
        return error_conflict(error, "somebody else has kept these sums");
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < keeping->rows.size / sizeof *rows; i++)
        add_row(flight, &rows[i]);
    return sql_flight_run(flight, true, error);
}

/* SQLite restarts its log only while no reader holds it. Beside busy threads a read takes thirty
 * times as long. So a read of SQLite is short, and a pause follows. */
static enum status read_entries(struct platform_store *store, struct keeping *keeping,
                                struct error *error)
{
    const int64_t piece = store->ledger->advance != NULL ? AT_ONCE : PIECE;
    enum status status = STATUS_OK;
    size_t enough = 0; /* bytes, to be grouped: all rows at once would take a thread some ticks */
    keeping->rows.size = 0;
    for (int64_t from = keeping->from; from < keeping->until && status == STATUS_OK;
         from += piece) {
        const int64_t until = from + piece < keeping->until ? from + piece : keeping->until;
        struct sql_parameters parameters = SQL_PARAMETERS(SQL_INTEGER(from), SQL_INTEGER(until));
        const uint64_t began_ns = clock_monotonic_ns();
        status =
            ledger_read(store, store->engine->texts->summed, &parameters, take_row, keeping, error);
        if (keeping->rows.size >= enough) {
            group(&keeping->rows);
            enough = 2 * keeping->rows.size;
        }
        clock_pause_ns((clock_monotonic_ns() - began_ns) / 4);
    }
    group(&keeping->rows);
    return status;
}

/* A failure costs time and nothing else: then the entries are read, and the next caller tries
 * again. */
bool platform_ledger_keep_sums(struct platform_store *store, int64_t least)
{
    struct keeping keeping = {0};
    struct error error = {.text = ""};
    int64_t complete = 0;
    enum status status =
        sql_read_integer(store, "SELECT number FROM ledger_summed", &keeping.from, &error);
    if (store->ledger->advance != NULL && least > 1 && least < LEDGER_SUMS_WORTH_KEEPING)
        least = LEDGER_SUMS_WORTH_KEEPING; /* each batch takes hundreds of numbers */
    if (status == STATUS_OK)
        status = sql_read_integer(store, "SELECT coalesce(max(number), 0) FROM ledger_transaction",
                                  &complete, &error);
    if (status == STATUS_OK && store->ledger->advance != NULL && complete - keeping.from >= least)
        status = find_complete(store, &complete, &error);
    while (status == STATUS_OK && complete - keeping.from >= least) {
        keeping.until = complete - keeping.from > AT_ONCE ? keeping.from + AT_ONCE : complete;
        status = read_entries(store, &keeping, &error);
        if (status == STATUS_OK)
            status = sql_transact(store, keep_rows, &keeping, &error);
        keeping.from = keeping.until;
    }
    buffer_free(&keeping.rows);
    return status == STATUS_OK;
}
