/*
 * A backup of the database: SQLite's own copying, page by page, within one read transaction. In WAL
 * mode that is a reader like any other, so a running server goes on writing. Later writes are not
 * in the copy, and stay in the log until the copy is made.
 */

#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "stores/platform/sqlite/sqlite.h"

#define PAGES_AT_ONCE 1024 /* 4 MiB */

/* "platform.db.schema-6.20261122T101530123Z.backup", with milliseconds */
static char *name_of(const struct sqlite_store *store, uint32_t version)
{
    char at[CLOCK_TEXT_SIZE];
    size_t size = 0;
    clock_format_rfc3339(clock_wall_ms(), at);
    for (const char *from = at; *from != '\0'; from++)
        if (strchr("-:.", *from) == NULL)
            at[size++] = *from;
    return memory_format("%s.schema-%u.%.*s.backup", store->path, version, (int)size, at);
}

static enum status copy_pages(struct sqlite_store *store, sqlite3 *to, const char *path,
                              struct error *error)
{
    sqlite3_backup *backup = sqlite3_backup_init(to, "main", store->database, "main");
    if (backup != NULL) {
        while (sqlite3_backup_step(backup, PAGES_AT_ONCE) == SQLITE_OK) {
            uint64_t pages = (uint64_t)sqlite3_backup_pagecount(backup);
            progress_tell(store->base.watch, "pages of the database copied",
                          pages - (uint64_t)sqlite3_backup_remaining(backup), pages);
        }
        (void)sqlite3_backup_finish(backup); /* the connection keeps what went wrong */
    }
    int result = sqlite3_errcode(to);
    if (result == SQLITE_OK)
        return STATUS_OK;
    return error_set(error, result == SQLITE_FULL ? STATUS_FULL : STATUS_UNAVAILABLE,
                     "%s: the backup cannot be written (%s)", path, sqlite3_errmsg(to));
}

/* The transaction is what makes it one moment: a step by itself would read what is there by
 * then. */
static enum status copy_into(struct sqlite_store *store, sqlite3 *to, const char *path,
                             struct error *error)
{
    int64_t version = 0;
    enum status status = sqlite_execute(store, "BEGIN", error);
    if (status != STATUS_OK)
        return status;
    status = sqlite_number(store, "PRAGMA schema_version", &version, error); /* it begins here */
    if (status == STATUS_OK)
        status = copy_pages(store, to, path, error);
    return sqlite_end(store, status, error);
}

enum status sqlite_copy_to(struct sqlite_store *store, const char *path, struct error *error)
{
    sqlite3 *to = NULL;
    /* Only this user may read it, as it holds the whole store. It never replaces another file. */
    int descriptor = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return error_unavailable(error, "%s: cannot be made (%s)", path, strerror(errno));
    (void)close(descriptor);
    enum status status = STATUS_OK;
    if (sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        status = error_unavailable(error, "%s: cannot be opened (%s)", path,
                                   to != NULL ? sqlite3_errmsg(to) : "no memory");
    if (status == STATUS_OK)
        status = copy_into(store, to, path, error);
    if (sqlite3_close(to) != SQLITE_OK && status == STATUS_OK)
        status = error_unavailable(error, "%s: cannot be closed", path);
    /* Everything was written and synced by SQLite; this makes the name last. */
    int reason = status == STATUS_OK ? file_sync_directory(path) : 0;
    if (reason != 0)
        status = error_unavailable(error, "%s: cannot be written (%s)", path, strerror(reason));
    if (status != STATUS_OK)
        (void)unlink(path); /* half a backup is none */
    return status;
}

enum status sqlite_copy_beside(struct sqlite_store *store, uint32_t version, char **path,
                               struct error *error)
{
    char *name = name_of(store, version);
    enum status status = sqlite_copy_to(store, name, error);
    if (status == STATUS_OK)
        *path = name;
    else
        memory_free(name);
    return status;
}
