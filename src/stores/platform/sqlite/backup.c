/*
 * A backup beside the database, for what is about to be changed for good: SQLite's own copying,
 * page by page, in one step. In WAL mode that is a reader like any other, so a server that runs
 * goes on writing; what it writes from then on is not in the copy.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "stores/platform/sqlite/sqlite.h"

/* "platform.db.schema-6.20261122T101530123Z.backup", with milliseconds */
static char *name_of(const struct sqlite_store *store, uint32_t version)
{
    struct buffer name = {0};
    char at[32];
    struct tm utc;
    int64_t now_ms = clock_wall_ms();
    time_t now = (time_t)(now_ms / 1000);
    CHECK(gmtime_r(&now, &utc) != NULL);
    CHECK(strftime(at, sizeof at, "%Y%m%dT%H%M%S", &utc) > 0);
    buffer_append_format(&name, "%s.schema-%u.%s%03dZ.backup", store->path, version, at,
                         (int)(now_ms % 1000));
    char *path = memory_copy_string(buffer_string(&name));
    buffer_free(&name);
    return path;
}

/* Everything was written and synced by SQLite; this makes the name last. Returns 0 or an errno. */
static int sync_directory(const char *path)
{
    struct buffer directory = {0};
    const char *slash = strrchr(path, '/');
    buffer_append(&directory, path, slash == NULL ? 0 : (size_t)(slash - path) + 1);
    buffer_append_char(&directory, '.');
    int descriptor = open(buffer_string(&directory), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int reason = descriptor < 0 || fsync(descriptor) != 0 ? errno : 0;
    if (descriptor >= 0)
        (void)close(descriptor);
    buffer_free(&directory);
    return reason;
}

static enum status copy_into(struct sqlite_store *store, sqlite3 *to, const char *path,
                             struct error *error)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", store->database, "main");
    if (backup != NULL) {
        (void)sqlite3_backup_step(backup, -1); /* finish tells */
        (void)sqlite3_backup_finish(backup);
    }
    int result = sqlite3_errcode(to);
    if (result == SQLITE_OK)
        return STATUS_OK;
    return error_set(error, result == SQLITE_FULL ? STATUS_FULL : STATUS_UNAVAILABLE,
                     "%s: the backup cannot be written (%s)", path, sqlite3_errmsg(to));
}

enum status sqlite_copy_beside(struct sqlite_store *store, uint32_t version, char **path,
                               struct error *error)
{
    char *name = name_of(store, version);
    sqlite3 *to = NULL;
    /* Nobody but this user may read it: it holds what the store holds. Never over another file. */
    int descriptor = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0) {
        enum status status =
            error_set(error, STATUS_UNAVAILABLE, "%s: cannot be made (%s)", name, strerror(errno));
        memory_free(name);
        return status;
    }
    (void)close(descriptor);
    enum status status = STATUS_OK;
    if (sqlite3_open_v2(name, &to, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        status = error_set(error, STATUS_UNAVAILABLE, "%s: cannot be opened (%s)", name,
                           to != NULL ? sqlite3_errmsg(to) : "no memory");
    if (status == STATUS_OK)
        status = copy_into(store, to, name, error);
    if (sqlite3_close(to) != SQLITE_OK && status == STATUS_OK)
        status = error_set(error, STATUS_UNAVAILABLE, "%s: cannot be closed", name);
    int reason = status == STATUS_OK ? sync_directory(name) : 0;
    if (reason != 0)
        status = error_set(error, STATUS_UNAVAILABLE, "%s: cannot be written (%s)", name,
                           strerror(reason));
    if (status != STATUS_OK) {
        (void)unlink(name); /* half a backup is none */
        memory_free(name);
        return status;
    }
    *path = name;
    return STATUS_OK;
}
