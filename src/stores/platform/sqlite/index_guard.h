#ifndef CROUPIER_STORES_PLATFORM_SQLITE_INDEX_GUARD_H
#define CROUPIER_STORES_PLATFORM_SQLITE_INDEX_GUARD_H

#include <stdbool.h>

/*
 * SQLite maps the index of its log (-shm). When somebody makes that file shorter, the next touch of
 * what was lost is a SIGBUS, in the middle of SQLite. Then the guard puts a page of zeros there, so
 * that SQLite goes on, and notes it. Pages that SQLite reads from then on may be wrong, so this
 * process uses no result of SQLite any more and commits nothing.
 *
 * Threads: any.
 */
void index_guard_install(void);
bool index_guard_was_needed(void);

#endif
