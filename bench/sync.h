#pragma once

#include <stdint.h>

/*
 * Stands before libc's fsync and fdatasync, in a bench's own program or by LD_PRELOAD before
 * another's, and does what CROUPIER_BENCH_SYNC says when the process starts:
 *
 *   (not set)  they sync, and are counted
 *   off        they do nothing: to see what the disk costs. No one may have that in production
 *   2000       they sync, and then wait until 2000 microseconds are over since they were called: a
 *   disk
 *              that is slower than this machine's
 *
 * An engine that syncs in another process is not touched by it. Threads: any.
 */

/* Calls so far, and the nanoseconds in them. */
void sync_counted(uint64_t *calls, uint64_t *nanoseconds);
