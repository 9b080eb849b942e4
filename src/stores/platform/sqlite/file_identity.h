#pragma once

#include <sys/stat.h>
#include <time.h>

#include "base/status.h"

/*
 * Whether a database, its log (-wal) and the log's index (-shm) are still the files that this
 * process opened, under their names, and hold what SQLite left in them. SQLite itself keeps using
 * files that have lost their names, and the next start would find other files in their place.
 *
 * All handles of a process share one record of the files of a database. While it has handles, or a
 * file was found to be wrong, no handle is opened into other files. Only another process, which a
 * person starts, opens the files that are there then. A handle with `any_file` is an exception: it
 * only reads, and its caller looks whether it goes on in the same ledger.
 *
 * Three things are not covered: a change between the check after a commit and the answer, which the
 * next batch finds; a copy over the database that begins and ends while one checkpoint writes; and
 * an exchange of files between the moment when SQLite opens the first handle and the moment when
 * sqlite_files_attach records it.
 *
 * Threads: any; a handle by one at a time.
 */
struct sqlite_store;
struct open_files;

/* Call it before SQLite opens the files for another handle. */
MUST_CHECK enum status sqlite_files_expect(const struct sqlite_store *store, struct error *error);

/* Call it once the handle has read in WAL mode, and so has all three files open. */
MUST_CHECK enum status sqlite_files_attach(struct sqlite_store *store, struct error *error);

/* Call it before the handle is closed. Where another file has taken a name, or a file is damaged,
 * the log stays as it is; otherwise the last handle brings it into the database, as ever, even when
 * its name is gone. */
void sqlite_files_detach(struct sqlite_store *store);

/* The names lead to the files that are open. `facts` are the database's. */
MUST_CHECK enum status sqlite_files_named(const struct sqlite_store *store, struct stat *facts,
                                          struct error *error);

/* The log ends with the frame that its index says is the last, and nothing but a checkpoint has
 * written into the database. */
MUST_CHECK enum status sqlite_files_content(const struct sqlite_store *store, struct error *error);

/* Is nothing wrong but the database's time of change? Then it is doubted until its contents were
 * judged, those that it has since it was `written`. For this process it stays unsound. */
bool sqlite_files_are_doubted(const struct sqlite_store *store, struct timespec *written);
void sqlite_files_judge(const struct sqlite_store *store, const struct timespec *written,
                        bool sound);
