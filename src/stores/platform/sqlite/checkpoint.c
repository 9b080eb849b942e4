/*
 * Checkpoints: the ledger's write-ahead log is copied into the SQLite file.
 *
 * SQLite can do that after a commit, on the commit's thread; then all requests wait for two more
 * syncs and some megabytes. Here a separate handle does it beside the batches. While batches go on,
 * that handle can never reach the end of the log, and only a log that was copied to its end is
 * restarted. So the writer's handle copies the rest, which is short if it comes right after. If
 * neither happens, the writer's handle copies all of it before the log grows without bound.
 */
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/memory.h"
#include "stores/platform/sqlite/sqlite.h"

#define PAGE_BYTES 4096U
/* Pages, mostly of that size. */
#define LOG_AT_MOST 24000 /* then the commit itself copies the log */
#define PASS_IS_SHORT 500 /* another pass would gain nothing */
#define PASSES_MAX 4
#define REWRITTEN_AT_ONCE (1U << 20) /* bytes */
#define CACHE_KIBIBYTES "32768"      /* the players of an hour, and the newest rows */

/* Writes the file's bytes into it once more, and syncs it; 0, or the reason why not. */
static int rewrite(int descriptor)
{
    char *bytes = memory_alloc_zeroed(1, REWRITTEN_AT_ONCE);
    off_t at = 0;
    int reason = 0;
    for (;;) {
        ssize_t got = pread(descriptor, bytes, REWRITTEN_AT_ONCE, at);
        if (got > 0)
            got = pwrite(descriptor, bytes, (size_t)got, at);
        if (got > 0) {
            at += got;
            continue;
        }
        reason = got < 0 ? errno : 0;
        break;
    }
    memory_free(bytes);
    return reason != 0 ? reason : fdatasync(descriptor) == 0 ? 0 : errno;
}

/* The log, and its name in the directory. SQLite holds no lock on these files, so opening and
 * closing them here drops none. */
static int renew_files(const struct sqlite_store *store)
{
    char *path = file_beside(store->path, "-wal");
    int log = open(path, O_RDWR | O_CLOEXEC);
    int reason = log < 0 ? errno : rewrite(log);
    file_close(&log);
    if (reason == 0)
        reason = file_sync_directory(store->path);
    memory_free(path);
    return reason;
}

/*
 * A process that was killed, or whose sync failed, between writing its commit and syncing it has
 * left a log that reads as committed and may not survive a power cut. Syncing the log now is not
 * enough: after a failed sync the kernel may hold pages as written that are on no disk, and has
 * nothing to sync. So this writes the log once more, byte for byte, and then syncs it. Under the
 * write lock no process can add to the log, and readers find the same bytes.
 */
enum status sqlite_log_renew(struct sqlite_store *store, struct error *error)
{
    enum status status = sqlite_execute(store, "BEGIN IMMEDIATE", error);
    if (status != STATUS_OK)
        return status;
    int reason = renew_files(store);
    (void)sqlite3_exec(store->database, "ROLLBACK", NULL, NULL, NULL);
    if (reason == 0)
        return STATUS_OK;
    return error_set(error, sqlite_is_full(reason) ? STATUS_FULL : STATUS_UNAVAILABLE,
                     "%s: its log cannot be written and synced (%s)", store->path,
                     strerror(reason));
}

/* SQLite calls it after each commit of the writer's handle. */
static int on_commit(void *context, sqlite3 *database, const char *name, int pages)
{
    struct sqlite_store *store = context;
    store->log_pages = pages;
    if (pages < store->log_attempted)
        store->log_attempted = 0;
    if (sqlite_log_has_grown_by(store, LOG_AT_MOST)) {
        (void)sqlite3_wal_checkpoint_v2(database, name, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        store->log_attempted = pages;
    }
    return SQLITE_OK; /* the commit has happened, even if the checkpoint failed */
}

enum status sqlite_log_adopt(struct sqlite_store *store, struct error *error)
{
    (void)sqlite3_wal_hook(store->database, on_commit, store);
    return sqlite_execute(store, "PRAGMA cache_size = -" CACHE_KIBIBYTES, error);
}

bool sqlite_ledger_wants_upkeep(struct platform_store *base)
{
    return sqlite_log_has_grown_by(sqlite_store_of(base), SQLITE_LOG_IS_LONG);
}

enum status sqlite_ledger_upkeep(struct platform_store *base, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    enum status status = sqlite_ready(store, error);
    int before = 0;
    int left = 0; /* pages that a reader held back, and new ones */
    for (int pass = 0; pass < PASSES_MAX && status == STATUS_OK; pass++) {
        int pages;
        int copied = 0;
        int code = sqlite3_wal_checkpoint_v2(store->database, "main", SQLITE_CHECKPOINT_PASSIVE,
                                             &pages, &copied);
        if (code == SQLITE_BUSY) /* another process is at it */
            break;
        if (code != SQLITE_OK)
            status = sqlite_failure(store, error);
        left = pages - copied;
        if (copied - before < PASS_IS_SHORT)
            break;
        before = copied;
    }
    /* A log that is not copied to its end cannot restart, so the writer soon tries again. */
    store->log_attempted = store->log_pages - (left > 0 ? SQLITE_LOG_IS_LONG - PASS_IS_SHORT : 0);
    if (status == STATUS_OK && store->facts != NULL) /* few pages are of new batches */
        atomic_store(&store->facts->log_held_bytes,
                     left > PASS_IS_SHORT ? (uint64_t)left * PAGE_BYTES : 0);
    struct stat facts;
    if (status == STATUS_OK && stat(store->path, &facts) == 0) {
        store->size = facts.st_size; /* this checkpoint has written into it */
        store->written = facts.st_mtim;
    }
    return status;
}
