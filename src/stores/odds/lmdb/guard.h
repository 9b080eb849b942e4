#pragma once

#include <stdbool.h>

/*
 * Reading mapped files without dying of them.
 *
 * LMDB reads its file through a memory map. When the file is truncated, the next touch of a
 * lost page is a SIGBUS; when garbage is written into it, LMDB may follow a wild pointer.
 * Either would end the whole server for the sake of one damaged file. Code that touches the map
 * therefore runs inside odds_guard_run, which turns such a fault into `false`.
 *
 * A fault does not undo the work of `body`: it holds nothing that it would have to give back, or
 * keeps it in *context for the caller to clean up. After a fault the map is not to be trusted any
 * more. Costs about ten nanoseconds and no system call.
 *
 * Outside such a region a fault does what it did before (a core dump, a sanitizer's report).
 * Threads: any, each for itself. Regions do not nest.
 */
bool odds_guard_run(void (*body)(void *context), void *context) __attribute__((warn_unused_result));

/* Leaves the region that this thread is in, as a fault would: for a library's assertion that is
 * about to abort. Returns when the thread is in none. */
void odds_guard_escape(void);
