/*
 * Checks the ids of all rows: each owner uses an id once, and each id is rolled back once; and the
 * runs of the index hold exactly the ids of the rows that they cover.
 *
 * One pass over the rows, in order of their numbers, makes their keys. Those of rows that a run
 * covers are only added up, as hashes under a random seed: the sum is the one over the runs'
 * contents only if these are the same ids. The other keys, which are few beside a server, go into a
 * temporary table. SQLite sorts it and keeps it in a file if it is large. Then runs and table are
 * read side by side in order of keys, so that rows that may have the same id follow each other.
 *
 * The audit reads the files as they are, even while other handles have them open, and neither
 * writes nor deletes any.
 */
#include "base/hash.h"
#include "base/memory.h"
#include "stores/platform/ledger/reads.h"
#include "stores/platform/sqlite/ids.h"
#include "stores/platform/sqlite/ids/id_directory.h"
#include "stores/platform/sqlite/ids/id_run_write.h"

#define LISTINGS_MAX 10
#define SORTED_AT_ONCE 1024
#define SAME_MAX 64 /* ids of one key: more than there ever are */
#define SIGN_BIT ((uint64_t)1 << 63)

/* A row, as far as its ids go. */
struct audited {
    int64_t number, customer_number;
    struct ledger_transaction transaction;
};

struct ids_audit {
    struct sqlite_store *store;
    int64_t last;         /* the newest row of the snapshot */
    int64_t covered;      /* rows up to this one are in the runs */
    struct id_run **runs; /* in order of their rows */
    size_t run_count;
    struct id_stream *streams; /* of the runs, and then of the table */
    uint8_t seed[HASH_KEY_SIZE];
    uint64_t of_rows, of_runs; /* the sums */
    struct audited row;        /* where the pass is */
    sqlite3_stmt *sorted;      /* the table, in order; NULL: it is at its end */
    struct id_entry sorted_ids[SORTED_AT_ONCE];
    struct error *error;
    enum status status;     /* of the pass */
    struct id_entry before; /* the id before this one; number 0: there is none */
    bool same_begun;        /* `before` is among: */
    struct audited same[SAME_MAX];
    size_t same_count;
};

static enum status broken_index(struct error *error, const char *what)
{
    char text[160];
    (void)snprintf(text, sizeof text,
                   "%s; stop croupier and delete the files of the index, which are made again",
                   what);
    return ledger_broken_row(error, TEXT("the index of ids"), text);
}

static uint64_t hash_of(const struct ids_audit *audit, const struct id_entry *id)
{
    return hash_keyed(audit->seed, id, sizeof *id);
}

/* ---- the runs -------------------------------------------------------------------------------- */

static void close_runs(struct ids_audit *audit)
{
    for (size_t i = 0; i < audit->run_count; i++)
        id_run_close(&audit->runs[i]);
    memory_free(audit->runs);
    audit->runs = NULL;
    audit->run_count = 0;
    audit->covered = 0;
}

/* Takes a run of this ledger as it is now. Any other is made again before its next use, so the
 * audit skips it. STATUS_NOT_FOUND: another process has just merged it into another. */
static enum status take_run(struct ids_audit *audit, const struct id_directory *directory,
                            const struct id_file *file, struct error *error)
{
    struct id_run *run = NULL;
    struct ledger_row row;
    enum status status =
        id_run_open(&run, directory->descriptor, file->name, audit->store->ledger, true, error);
    if (status != STATUS_OK)
        return status == STATUS_MALFORMED ? STATUS_OK : status;
    memory_free(run->filter); /* was verified, and takes memory */
    run->filter = NULL;
    status = sqlite_row_load(audit->store, file->last, &row, error);
    if (status == STATUS_OK && run->header.first == file->first && run->header.last == file->last &&
        memcmp(row.hash, run->header.row_hash, ID_ROW_HASH_SIZE) == 0) {
        audit->covered = file->last;
        audit->runs[audit->run_count++] = run;
        return STATUS_OK;
    }
    id_run_close(&run);
    return status == STATUS_NOT_FOUND || status == STATUS_MALFORMED ? STATUS_OK : status;
}

static enum status list_runs(struct ids_audit *audit, const struct id_directory *directory,
                             struct error *error)
{
    struct id_file *files = NULL;
    size_t count = 0;
    enum status status = id_directory_list(directory, &files, &count, error);
    close_runs(audit);
    audit->runs = memory_alloc_zeroed(count + 1, sizeof(struct id_run *));
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        if (files[i].first == audit->covered + 1 && files[i].last <= audit->last)
            status = take_run(audit, directory, &files[i], error);
    memory_free(files);
    return status;
}

static enum status open_runs(struct ids_audit *audit, struct error *error)
{
    struct id_directory directory = {.descriptor = -1};
    enum status status = id_directory_open(&directory, audit->store->path, false, error);
    if (status == STATUS_NOT_FOUND)
        return STATUS_OK;
    if (status == STATUS_OK)
        status = STATUS_NOT_FOUND;
    for (int listing = 0; listing < LISTINGS_MAX && status == STATUS_NOT_FOUND; listing++)
        status = list_runs(audit, &directory, error);
    id_directory_close(&directory);
    return status == STATUS_NOT_FOUND ? STATUS_CONFLICT : status;
}

/* ---- the rows -------------------------------------------------------------------------------- */

static bool read_row(const struct sql_row *row, struct audited *to)
{
    struct ledger_transaction *transaction = &to->transaction;
    to->number = sql_integer(row, 0);
    to->customer_number = sql_integer(row, 1);
    transaction->sequence = (uint64_t)sql_integer(row, 2);
    bool sound =
        ledger_read_string(row, 3, transaction->transaction_id, sizeof transaction->transaction_id);
    sound &= ledger_read_string(row, 4, transaction->reference, sizeof transaction->reference);
    sound &= ledger_read_string(row, 5, transaction->provider_id, sizeof transaction->provider_id);
    sound &= ledger_operation_parse(sql_text(row, 6), &transaction->operation);
    sound &= enum_read(&ledger_outcomes, sql_text(row, 7), &transaction->outcome);
    return sound && ledger_is_entry(transaction) == (transaction->sequence != 0);
}

static enum status sort_later(struct ids_audit *audit, uint64_t key, int64_t number,
                              struct error *error)
{
    sqlite3_stmt *statement;
    const struct column_value values[] = {
        SQL_INTEGER(key ^ SIGN_BIT), SQL_INTEGER(number)}; /* in order as signed numbers, too */
    enum status status =
        sqlite_bind(audit->store, sqlite_texts.add_audited, values, &statement, error);
    return status == STATUS_OK ? sqlite_run(audit->store, statement, error) : status;
}

static bool take_row(void *context, const struct sql_row *row)
{
    struct ids_audit *audit = context;
    uint64_t keys[ROW_KEYS_MAX];
    const int64_t number = audit->row.number + 1;
    if (!read_row(row, &audit->row) || audit->row.number != number) {
        char name[48];
        (void)snprintf(name, sizeof name, "transaction number %" PRId64, number);
        audit->status =
            ledger_broken_row(audit->error, text_of(name), "it is not there, or malformed");
        return false;
    }
    size_t count = sqlite_row_keys(audit->store->ledger, audit->row.customer_number,
                                   &audit->row.transaction, keys);
    for (size_t i = 0; i < count && audit->status == STATUS_OK; i++)
        if (number <= audit->covered)
            audit->of_rows += hash_of(audit, &(struct id_entry){keys[i], number});
        else
            audit->status = sort_later(audit, keys[i], number, audit->error);
    return audit->status == STATUS_OK;
}

/* ---- all ids in order ------------------------------------------------------------------------ */

static enum status read_sorted(void *context, struct id_stream *stream)
{
    struct ids_audit *audit = context;
    bool found = true;
    stream->at = stream->count = 0;
    while (audit->sorted != NULL && stream->count < SORTED_AT_ONCE) {
        enum status status = sqlite_first(audit->store, audit->sorted, &found, audit->error);
        if (status != STATUS_OK)
            return status;
        if (found) {
            audit->sorted_ids[stream->count++] =
                (struct id_entry){(uint64_t)sqlite3_column_int64(audit->sorted, 0) ^ SIGN_BIT,
                                  sqlite3_column_int64(audit->sorted, 1)};
        } else {
            (void)sqlite3_reset(audit->sorted);
            audit->sorted = NULL;
        }
    }
    return STATUS_OK;
}

static enum status begin_streams(struct ids_audit *audit, struct error *error)
{
    audit->streams = memory_alloc_zeroed(audit->run_count + 1, sizeof *audit->streams);
    for (size_t i = 0; i < audit->run_count; i++)
        id_stream_of_run(&audit->streams[i], audit->runs[i]);
    audit->streams[audit->run_count] =
        (struct id_stream){.ids = audit->sorted_ids, .refill = read_sorted, .context = audit};
    return sqlite_statement(audit->store, sqlite_texts.audited, &audit->sorted, error);
}

/* ---- rows of one key ------------------------------------------------------------------------- */

/* The conflict between two rows that share a key; NULL: there is none. */
static const char *compare_rows(const struct audited *one, const struct audited *other)
{
    const struct ledger_transaction *a = &one->transaction;
    const struct ledger_transaction *b = &other->transaction;
    if (one->number == other->number || strcmp(a->provider_id, b->provider_id) != 0 ||
        (a->provider_id[0] == '\0' && one->customer_number != other->customer_number))
        return NULL;
    if (strcmp(a->transaction_id, b->transaction_id) == 0)
        return "two transactions have this id";
    return ledger_rolls_back(a) && ledger_rolls_back(b) && strcmp(a->reference, b->reference) == 0
               ? "what it rolls back, another does"
               : NULL;
}

/* Compares a row with those of the same key. A DEBIT may have many CREDITs under the key by which
 * they settle it, so these are not among them. */
static enum status take_same(struct ids_audit *audit, const struct id_entry *id,
                             struct error *error)
{
    struct audited row = {.number = 0};
    sqlite3_stmt *statement;
    bool found = false;
    enum status status = sqlite_find(audit->store, sqlite_texts.ids_of_number,
                                     &SQL_INTEGER(id->number), &statement, &found, error);
    if (status != STATUS_OK)
        return status;
    const struct sql_row columns = sqlite_sql_row(&statement);
    bool sound = found && read_row(&columns, &row);
    (void)sqlite3_reset(statement);
    if (!sound)
        return broken_index(error, "it leads to more than the rows have");
    const struct ledger_transaction *transaction = &row.transaction;
    if (transaction->operation == LEDGER_CREDIT &&
        sqlite_id_key(audit->store->ledger, row.customer_number, transaction->provider_id,
                      text_of(transaction->transaction_id), false) != id->key)
        return STATUS_OK;
    for (size_t i = 0; i < audit->same_count; i++) {
        const char *what = compare_rows(&audit->same[i], &row);
        if (what != NULL)
            return ledger_broken_row(error, text_of(transaction->transaction_id), what);
    }
    if (audit->same_count < SAME_MAX)
        audit->same[audit->same_count++] = row;
    return STATUS_OK;
}

static enum status take_id(struct ids_audit *audit, const struct id_entry *id, struct error *error)
{
    const struct id_entry before = audit->before;
    enum status status = STATUS_OK;
    bool follows = before.number != 0 && before.key == id->key;
    if (id->number <= audit->covered)
        audit->of_runs += hash_of(audit, id);
    if (!follows)
        audit->same_count = 0;
    else if (!audit->same_begun)
        status = take_same(audit, &before, error);
    audit->same_begun = follows;
    audit->before = *id;
    return status == STATUS_OK && follows ? take_same(audit, id, error) : status;
}

static enum status compare_ids(struct ids_audit *audit, struct error *error)
{
    struct id_entry id;
    enum status status = begin_streams(audit, error);
    while (status == STATUS_OK &&
           (status = id_streams_next(audit->streams, audit->run_count + 1, &id)) == STATUS_OK)
        status = take_id(audit, &id, error);
    if (status == STATUS_NOT_FOUND)
        return audit->of_rows == audit->of_runs ? STATUS_OK
                                                : broken_index(error, "it is not that of the rows");
    for (size_t i = 0; i < audit->run_count; i++)
        if (audit->runs[i]->damaged)
            return broken_index(error, "a file of it is damaged");
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static enum status audit_ids(struct ids_audit *audit, struct error *error)
{
    struct sql_query rows = {.sql = sqlite_texts.ids, .row = take_row, .context = audit};
    enum status status = sqlite_ids_last(audit->store, &audit->last, error);
    if (status == STATUS_OK)
        status = open_runs(audit, error);
    if (status == STATUS_OK)
        status = sqlite_execute(audit->store, sqlite_texts.make_audited, error);
    if (status == STATUS_OK)
        status = sqlite_sql.run(&audit->store->base, &rows, 1, false, error);
    if (status == STATUS_OK)
        status = audit->status;
    return status == STATUS_OK ? compare_ids(audit, error) : status;
}

enum status sqlite_ids_audit(struct sqlite_store *store, struct error *error)
{
    struct ids_audit *audit = memory_alloc_zeroed(1, sizeof *audit);
    const uint64_t seed[] = {hash_random_seed(), hash_random_seed()};
    audit->store = store;
    audit->error = error;
    memcpy(audit->seed, seed, sizeof audit->seed);
    enum status status = audit_ids(audit, error);
    if (audit->sorted != NULL)
        (void)sqlite3_reset(audit->sorted);
    for (size_t i = 0; i < audit->run_count && audit->streams != NULL; i++)
        id_stream_end(&audit->streams[i]);
    close_runs(audit);
    memory_free(audit->streams);
    memory_free(audit);
    return status;
}
