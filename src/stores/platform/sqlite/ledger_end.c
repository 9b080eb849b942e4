/*
 * Compares the end of the ledger with the newest row that is known to have been acknowledged. Two
 * sources name that row: the mark beside the database (watermark.h), and the runs of the index of
 * ids, which are written after the commits of their rows. If the ledger ends before it, its newest
 * rows are lost, and a person decides: a backup, or `croupier wallet accept-loss`.
 */
#include <string.h>

#include "base/clock.h"
#include "stores/ledger_audit.h"
#include "stores/platform/sqlite/file_identity.h"
#include "stores/platform/sqlite/ids.h"
#include "stores/platform/sqlite/watermark.h"

#define GO_ON                                                                                \
    "; stop croupier and restore a backup, or go on without what was lost: croupier wallet " \
    "accept-loss"

/* The hash of a transaction; of number 0, before the first, zeros. */
static enum status hash_of(struct sqlite_store *store, int64_t number,
                           uint8_t hash[LEDGER_HASH_SIZE], struct error *error)
{
    struct ledger_row row = {.number = 0};
    enum status status = number == 0 ? STATUS_OK : sqlite_row_load(store, number, &row, error);
    if (status == STATUS_NOT_FOUND)
        return platform_damaged_row(&store->base, number, "it is not there", error);
    if (status == STATUS_OK)
        memcpy(hash, row.hash, LEDGER_HASH_SIZE);
    return status;
}

static enum status compare_mark(struct sqlite_store *store, const struct watermark *mark,
                                struct ledger_end *end, struct error *error)
{
    uint8_t hash[LEDGER_HASH_SIZE];
    if (memcmp(mark->ledger, store->ledger, sizeof mark->ledger) != 0)
        return error_set(error, STATUS_MALFORMED, "%s-last: is of another ledger" GO_ON,
                         store->path);
    if (mark->number > end->acknowledged)
        end->acknowledged = mark->number;
    if (mark->number > end->last)
        return STATUS_OK;
    enum status status = hash_of(store, mark->number, hash, error);
    if (status == STATUS_OK && memcmp(hash, mark->hash, sizeof hash) != 0)
        status = error_set(error, STATUS_MALFORMED,
                           "%s: transaction %lld is not the one that was acknowledged" GO_ON,
                           store->path, (long long)mark->number);
    return status;
}

/* Reads the mark before the ledger: the mark never runs ahead of the ledger. */
enum status sqlite_ledger_check_end(struct platform_store *base, struct ledger_end *end,
                                    struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct watermark mark = {.number = 0};
    enum status found = STATUS_NOT_FOUND;
    enum status status = sqlite_ready(store, error);
    *end = (struct ledger_end){0};
    if (status == STATUS_OK)
        found = watermark_read(store->path, &mark, error);
    if (found == STATUS_UNAVAILABLE)
        status = found;
    if (status == STATUS_OK)
        status = sqlite_ids_last(store, &end->last, error);
    end->acknowledged = end->last;
    if (status == STATUS_OK && found == STATUS_MALFORMED)
        status = error_set(error, found, "%s-last: is damaged" GO_ON, store->path);
    if (status == STATUS_OK && found == STATUS_OK)
        status = compare_mark(store, &mark, end, error);
    if (status == STATUS_OK)
        status = id_index_beyond(store->path, store->ledger, end->last, false, &end->acknowledged,
                                 error);
    if (status == STATUS_OK && end->acknowledged > end->last) /* or rows were added since */
        status = sqlite_ids_last(store, &end->last, error);
    if (status != STATUS_OK || end->acknowledged <= end->last)
        return status;
    return error_set(error, STATUS_MALFORMED,
                     "%s: the ledger has lost its newest rows: it ends with transaction %lld, and"
                     " transaction %lld was acknowledged" GO_ON,
                     store->path, (long long)end->last, (long long)end->acknowledged);
}

enum status sqlite_check_content(struct sqlite_store *store, struct error *error)
{
    const struct audit_options whole = {.watch = NULL};
    struct audit_result result;
    struct timespec written;
    struct ledger_end end;
    enum status status = sqlite_files_content(store, error);
    if (status == STATUS_OK || !sqlite_files_are_doubted(store, &written))
        return status;
    (void)sqlite3_db_release_memory(store->database); /* pages from before */
    status = sqlite_ledger_check_end(&store->base, &end, error);
    if (status == STATUS_OK)
        status = wallet_audit(&store->base, &whole, &result, error);
    if (status == STATUS_OK || status == STATUS_MALFORMED)
        sqlite_files_judge(store, &written, status == STATUS_OK);
    if (status == STATUS_OK)
        log_event(store->log, LOG_WARNING,
                  "another program wrote the platform store, or set its time; all of it fits",
                  LOG_STRING("path", store->path));
    return status;
}

static enum status set_mark(struct sqlite_store *store, int64_t last, struct error *error)
{
    struct watermark mark = {.number = last};
    enum status status = hash_of(store, last, mark.hash, error);
    memcpy(mark.ledger, store->ledger, sizeof mark.ledger);
    store->marked_ms = clock_monotonic_ms();
    return status == STATUS_OK ? watermark_set(store->path, &mark, &store->mark, error) : status;
}

enum status sqlite_ledger_accept_end(struct platform_store *base, int64_t last, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    int64_t now = -1;
    int64_t beyond = 0;
    enum status status = sqlite_begin(store, error);
    if (status != STATUS_OK)
        return status;
    status = sqlite_ids_last(store, &now, error);
    if (status == STATUS_OK && now != last)
        status = error_set(error, STATUS_CONFLICT, "the ledger ends with transaction %lld now",
                           (long long)now);
    if (status == STATUS_OK)
        status = id_index_beyond(store->path, store->ledger, last, true, &beyond, error);
    if (status == STATUS_OK)
        status = set_mark(store, last, error);
    if (status == STATUS_OK) /* they may have the entries that are lost */
        status = sqlite_execute(
            store, "DELETE FROM ledger_sum; UPDATE ledger_summed SET number = 0", error);
    return sqlite_end(store, status, error);
}

enum status sqlite_mark_begin(struct sqlite_store *store, struct error *error)
{
    struct ledger_end end;
    if (store->mark >= 0)
        return STATUS_OK;
    enum status status = sqlite_ledger_check_end(&store->base, &end, error);
    return status == STATUS_OK ? set_mark(store, end.last, error) : status;
}

enum status sqlite_mark(struct sqlite_store *store, int64_t number,
                        const uint8_t hash[LEDGER_HASH_SIZE], struct error *error)
{
    struct watermark mark = {.number = number};
    memcpy(mark.ledger, store->ledger, sizeof mark.ledger);
    memcpy(mark.hash, hash, sizeof mark.hash);
    int reason = watermark_write(store->path, &mark, store->mark, &store->marked_ms);
    return reason == 0 ? STATUS_OK
                       : error_set(error, STATUS_UNAVAILABLE, "%s-last: cannot be written (%s)",
                                   store->path, strerror(reason));
}
