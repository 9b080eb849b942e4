#pragma once

#include <sys/stat.h>

#include "base/status.h"

/*
 * A lock says that a process has a database open. The kernel holds it by inode: across names,
 * containers and namespaces of process ids. It is an open-file-description lock on a byte of the
 * database that SQLite does not use.
 *
 * All handles of a process share one descriptor a file. Closing any descriptor of a file drops the
 * locks that SQLite holds on it, so this one is closed after SQLite's last handle.
 *
 * Each process that has the database open holds the lock shared, and has the log (-wal) and its
 * index (-shm) open, too. If these have lost their names, that process still brings its log into
 * the database when it ends. So a process that finds them missing must have the lock alone before
 * it makes new ones.
 *
 * Threads: any; a handle by one at a time.
 */
struct sqlite_store;

/* Is there a file of the database's name with this ending? */
bool sqlite_is_beside(const struct sqlite_store *store, const char *ending, struct stat *facts);

/* Call it before SQLite opens the file. Refuses a file that keeps its log elsewhere: one that is a
 * mount of its own, or has a second name. Waits for a process that begins or ends, up to the
 * store's timeout; STATUS_UNAVAILABLE: another process has the database open without its log. */
MUST_CHECK enum status sqlite_use_begin(struct sqlite_store *store, struct error *error);

/* Call it once the log is there: others may open the database as well. */
void sqlite_use_share(struct sqlite_store *store);

/* Call it after SQLite has closed the handle's files. */
void sqlite_use_end(struct sqlite_store *store);
