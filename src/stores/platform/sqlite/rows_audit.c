/*
 * One pass over all rows of the ledger, in order of their numbers, that compares each with the
 * others that say the same: its player, the entry before it, the debit that it settles, its place
 * in the chain of declines, and its day. A row mostly refers to one
 * shortly before it, so the latest rows are kept in memory. The keys of its ids go to ids_audit.h.
 *
 * Chains are not followed here. But since each entry follows one of the same player with the
 * sequence before its own, it is enough to look for the account at a player's first entry.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/memory.h"
#include "stores/platform/sqlite/ids_audit.h"

#define RECENT 131072
#define DAY_MS 86400000

/* A row that later rows may refer to. */
struct referred {
    int64_t number;
    int64_t player_number;
    int64_t sequence; /* 0: declined */
    uint64_t key;     /* of its id */
    bool is_debit;    /* that was applied */
};

/* The day that rows are of, as ledger_day has it. */
struct span {
    bool found; /* there is one for the row */
    int64_t day;
    int64_t next_number; /* of the first row of the next span */
};

struct rows_audit {
    struct sqlite_store *store;
    struct ids_audit *ids;
    struct span span;
    int64_t number; /* of the row that is looked at */
    int64_t customer_number, player_number, sequence, previous, settles;
    bool has_settles;
    struct ledger_transaction transaction; /* as far as this needs it */
    struct referred recent[RECENT];
};

static enum status broken(const struct rows_audit *audit, const char *what, struct error *error)
{
    char row[TRANSACTION_ID_SIZE + 16];
    (void)snprintf(row, sizeof row, "transaction %s", audit->transaction.transaction_id);
    return ledger_broken_row(error, text_of(row), what);
}

/* ---- references of a row --------------------------------------------------------------------- */

static enum status load_referred(struct rows_audit *audit, int64_t number,
                                 struct referred *referred, struct error *error)
{
    sqlite3_stmt *row;
    bool found = false;
    enum status status = sqlite_find(
        audit->store,
        "SELECT player_number, coalesce(sequence, 0), operation = 'DEBIT' AND outcome = 'applied',"
        " customer_number, transaction_id, coalesce(provider, '')"
        " FROM ledger_transaction WHERE number = ?1",
        &number, &row, &found, error);
    if (status != STATUS_OK)
        return status;
    *referred = (struct referred){.number = found ? number : 0};
    struct text id = read_text(row, 4);
    char provider[PROVIDER_ID_SIZE];
    if (found && id.size < TRANSACTION_ID_SIZE && read_string(row, 5, provider, sizeof provider)) {
        referred->player_number = sqlite3_column_int64(row, 0);
        referred->sequence = sqlite3_column_int64(row, 1);
        referred->is_debit = sqlite3_column_int(row, 2) != 0;
        referred->key =
            sqlite_id_key(audit->store->ledger, sqlite3_column_int64(row, 3), provider, id);
    }
    (void)sqlite3_reset(row);
    return STATUS_OK;
}

/* From memory, or from the table. Its number is 0 when there is none. */
static enum status find_referred(struct rows_audit *audit, int64_t number,
                                 struct referred *referred, struct error *error)
{
    *referred = audit->recent[(uint64_t)number % RECENT];
    return referred->number == number ? STATUS_OK : load_referred(audit, number, referred, error);
}

static enum status check_exists(struct rows_audit *audit, const char *sql, const char *what,
                                struct error *error)
{
    sqlite3_stmt *row;
    bool found = false;
    const int64_t numbers[] = {audit->player_number, audit->number};
    enum status status = sqlite_find(audit->store, sql, numbers, &row, &found, error);
    if (status != STATUS_OK)
        return status;
    (void)sqlite3_reset(row);
    return found ? STATUS_OK : broken(audit, what, error);
}

static enum status check_player(struct rows_audit *audit, struct error *error)
{
    const struct cached_player *player = NULL;
    enum status status = sqlite_player(audit->store, audit->player_number, &player, error);
    if (status == STATUS_MALFORMED ||
        (status == STATUS_OK && player->customer_number != audit->customer_number))
        return broken(audit, "it is not of its customer's player", error);
    return status;
}

static enum status check_chained(struct rows_audit *audit, struct error *error)
{
    struct referred before;
    if (audit->sequence == 0)
        return check_exists(audit,
                            "SELECT 1 FROM ledger_decline"
                            " WHERE player_number = ?1 AND transaction_number = ?2",
                            "it is declined and not chained", error);
    if (audit->sequence == 1) {
        if (audit->previous != 0)
            return broken(audit, "it does not follow the entry before it", error);
        return check_exists(audit, "SELECT 1 FROM ledger_account WHERE player_number = ?1",
                            "its player has no account", error);
    }
    enum status status = find_referred(audit, audit->previous, &before, error);
    if (status == STATUS_OK &&
        (before.number == 0 || before.number >= audit->number ||
         before.player_number != audit->player_number || before.sequence != audit->sequence - 1))
        return broken(audit, "it does not follow the entry before it", error);
    return status;
}

static enum status check_settled(struct rows_audit *audit, struct error *error)
{
    const struct ledger_transaction *credit = &audit->transaction;
    struct referred debit;
    bool settles = credit->operation == LEDGER_CREDIT && credit->outcome == LEDGER_APPLIED &&
                   credit->reference[0] != '\0';
    if (settles != audit->has_settles)
        return broken(audit, "it does not settle its debit", error);
    if (!settles)
        return STATUS_OK;
    enum status status = find_referred(audit, audit->settles, &debit, error);
    if (status == STATUS_OK &&
        (debit.number == 0 || debit.player_number != audit->player_number || !debit.is_debit ||
         debit.key != sqlite_id_key(audit->store->ledger, audit->customer_number,
                                    credit->provider_id, text_of(credit->reference))))
        return broken(audit, "it does not settle its debit", error);
    return status;
}

/* ---- its day --------------------------------------------------------------------------------- */

/* Finds the span that the row is in. */
static enum status find_span(struct rows_audit *audit, struct error *error)
{
    sqlite3_stmt *row;
    enum status status = sqlite_find(
        audit->store,
        "SELECT day, coalesce((SELECT min(first_number) FROM ledger_day WHERE first_number > ?1),"
        " 9223372036854775807) FROM ledger_day WHERE first_number <= ?1"
        " ORDER BY first_number DESC LIMIT 1",
        &audit->number, &row, &audit->span.found, error);
    if (status != STATUS_OK)
        return status;
    audit->span.day = sqlite3_column_int64(row, 0);
    audit->span.next_number = sqlite3_column_int64(row, 1);
    (void)sqlite3_reset(row);
    return STATUS_OK;
}

static enum status check_day(struct rows_audit *audit, struct error *error)
{
    struct span *span = &audit->span;
    enum status status = STATUS_OK;
    if (!span->found || audit->number >= span->next_number)
        status = find_span(audit, error);
    if (status != STATUS_OK)
        return status;
    if (!span->found)
        return broken(audit, "nothing says of what day it is", error);
    return span->day == audit->transaction.created_ms / DAY_MS
               ? STATUS_OK
               : broken(audit, "it is not of the day that is said", error);
}

/* ---- the pass -------------------------------------------------------------------------------- */

#define READ_ROWS                                                                              \
    "SELECT number, customer_number, player_number, coalesce(sequence, 0), previous, settles," \
    " created_ms, transaction_id, coalesce(reference, ''), operation, outcome,"                \
    " coalesce(provider, '')"                                                                  \
    " FROM ledger_transaction ORDER BY number"

static bool read_row(struct rows_audit *audit, sqlite3_stmt *row)
{
    struct ledger_transaction *transaction = &audit->transaction;
    audit->customer_number = sqlite3_column_int64(row, 1);
    audit->player_number = sqlite3_column_int64(row, 2);
    audit->sequence = sqlite3_column_int64(row, 3);
    audit->previous = sqlite3_column_int64(row, 4);
    audit->has_settles = sqlite3_column_type(row, 5) != SQLITE_NULL;
    audit->settles = sqlite3_column_int64(row, 5);
    transaction->created_ms = sqlite3_column_int64(row, 6);
    bool sound =
        read_string(row, 7, transaction->transaction_id, sizeof transaction->transaction_id);
    sound &= read_string(row, 8, transaction->reference, sizeof transaction->reference);
    sound &= read_string(row, 11, transaction->provider_id, sizeof transaction->provider_id);
    sound &= ledger_operation_parse(read_text(row, 9), &transaction->operation);
    sound &= ledger_outcome_parse(read_text(row, 10), &transaction->outcome);
    return sound && ledger_is_entry(transaction) == (audit->sequence != 0);
}

/* The row may be referred to from now on, and its ids are given on. */
static enum status keep_row(struct rows_audit *audit, struct error *error)
{
    const struct ledger_transaction *transaction = &audit->transaction;
    uint64_t keys[ROW_KEYS_MAX];
    size_t count = sqlite_row_keys(audit->store->ledger, audit->customer_number, transaction, keys);
    enum status status = STATUS_OK;
    audit->recent[(uint64_t)audit->number % RECENT] =
        (struct referred){.number = audit->number,
                          .player_number = audit->player_number,
                          .sequence = audit->sequence,
                          .key = keys[0],
                          .is_debit = transaction->operation == LEDGER_DEBIT &&
                                      transaction->outcome == LEDGER_APPLIED};
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = ids_audit_add(audit->ids, keys[i], audit->number,
                               i > 0 && transaction->operation == LEDGER_CREDIT, error);
    return status;
}

static enum status take_row(void *context, sqlite3_stmt *row, bool *wanted, struct error *error)
{
    struct rows_audit *audit = context;
    (void)wanted;
    audit->number++;
    if (sqlite3_column_int64(row, 0) != audit->number || !read_row(audit, row)) {
        char name[48];
        (void)snprintf(name, sizeof name, "transaction number %" PRId64, audit->number);
        return ledger_broken_row(error, text_of(name), "it is not there, or malformed");
    }
    enum status status = check_player(audit, error);
    if (status == STATUS_OK)
        status = check_chained(audit, error);
    if (status == STATUS_OK)
        status = check_settled(audit, error);
    if (status == STATUS_OK)
        status = check_day(audit, error);
    return status == STATUS_OK ? keep_row(audit, error) : status;
}

enum status sqlite_rows_audit(struct sqlite_store *store, struct error *error)
{
    struct ids_audit *ids = NULL;
    enum status status = ids_audit_begin(&ids, store, error);
    if (status != STATUS_OK)
        return status;
    struct rows_audit *audit = memory_alloc_zeroed(1, sizeof *audit);
    audit->store = store;
    audit->ids = ids;
    status = sqlite_visit(store, READ_ROWS, NULL, take_row, audit, error);
    memory_free(audit);
    if (status == STATUS_OK)
        status = ids_audit_finish(ids, error);
    ids_audit_end(&ids);
    return status;
}
