/*
 * The write-ahead log of the SQLite file, as far as the ledger is concerned: who brings it into the
 * file, and when.
 *
 * SQLite does that by itself after a commit, in whose thread everybody then waits for two more syncs and
 * some megabytes. Here a handle of its own does it beside the batches. While batches go on it can never
 * get to the end, and only a log that was copied to its end is begun anew; so the writer's handle copies
 * the rest, which is short when it comes right after. Should nobody do any of this, the writer's handle
 * does all of it, before the log grows without bound.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "stores/platform_sqlite.h"

/* Pages, mostly of 4 KiB. */
#define LOG_IS_LONG 4000  /* time for upkeep */
#define LOG_AT_MOST 24000 /* then the commit itself sees to it */
#define PASS_IS_SHORT 500 /* another one would gain nothing */
#define PASSES_MAX 4
#define CACHE_KIBIBYTES \
    "65536" /* the inner pages of a large ledger's indexes, and the players of an hour */

/* A process that was killed between writing its commit and syncing it has left a log that reads as
 * committed and may not survive a power cut. SQLite holds no lock on this file, so that opening and
 * closing it here lets go of none. */
enum status sqlite_log_sync(struct sqlite_store *store, struct error *error)
{
    struct buffer path = {0};
    buffer_append_format(&path, "%s-wal", store->path);
    int descriptor = open(buffer_string(&path), O_RDONLY | O_CLOEXEC);
    bool synced = descriptor >= 0 ? fdatasync(descriptor) == 0 : errno == ENOENT;
    int reason = errno;
    if (descriptor >= 0)
        (void)close(descriptor);
    buffer_free(&path);
    if (synced)
        return STATUS_OK;
    return error_set(error, STATUS_UNAVAILABLE, "%s: its log cannot be synced (%s)", store->path,
                     strerror(reason));
}

/* Since upkeep was attempted last, which may have come to nothing: what somebody may still read of the
 * log stays. An attempt costs more the longer it is, so the next one is not before it has grown by an eighth. */
static bool has_grown_by(const struct sqlite_store *store, int pages)
{
    int eighth = store->log_attempted / 8;
    return store->log_pages - store->log_attempted >= (eighth > pages ? eighth : pages);
}

/* After each commit of the writer's handle. */
static int on_commit(void *context, sqlite3 *database, const char *name, int pages)
{
    struct sqlite_store *store = context;
    store->log_pages = pages;
    if (pages < store->log_attempted)
        store->log_attempted = 0;
    if (has_grown_by(store, LOG_AT_MOST)) {
        (void)sqlite3_wal_checkpoint_v2(database, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        store->log_attempted = pages;
    }
    return SQLITE_OK; /* the commit has happened, whatever became of the rest */
}

enum status sqlite_log_take_over(struct sqlite_store *store, struct error *error)
{
    (void)sqlite3_wal_hook(store->database, on_commit, store);
    return sqlite_execute(store, "PRAGMA cache_size = -" CACHE_KIBIBYTES, error);
}

bool sqlite_ledger_wants_upkeep(struct platform_store *base)
{
    return has_grown_by(sqlite_store_of(base), LOG_IS_LONG);
}

enum status sqlite_ledger_upkeep(struct platform_store *base, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_ready(store, error);
    int before = 0;
    for (int pass = 0; pass < PASSES_MAX && status == STATUS_OK; pass++) {
        int pages;
        int copied = 0;
        int code = sqlite3_wal_checkpoint_v2(store->database, "main", SQLITE_CHECKPOINT_PASSIVE,
                                             &pages, &copied);
        if (code == SQLITE_BUSY) /* another process is at it */
            break;
        if (code != SQLITE_OK)
            status = sqlite_failure(store, error);
        if (copied - before < PASS_IS_SHORT)
            break;
        before = copied;
    }
    store->log_attempted = store->log_pages;
    return status;
}
