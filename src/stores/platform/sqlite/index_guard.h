#pragma once

#include <stdbool.h>

/*
 * SQLite maps the index of its log (-shm). If another process shortens that file, the next access
 * to the lost part is a SIGBUS, in the middle of SQLite. Then the guard maps a page of zeros there,
 * so that SQLite continues, and notes it. Pages that SQLite reads from then on may be wrong, so
 * this process uses no result of SQLite any more and commits nothing.
 *
 * Threads: any.
 */
void index_guard_install(void);
bool index_guard_was_needed(void);
