#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * Shows a person at a terminal how far long work is: a line on stderr that is rewritten about once
 * a second. If stderr is no terminal (a script, the log of a nightly job), it writes nothing. Work
 * of less than a second shows nothing. Starts as zeros.
 */
struct progress {
    uint64_t started_ms;
    uint64_t shown_ms;
    bool shown;
};

/* The function of a struct progress_watch (base/progress.h), whose context is the struct progress.
 * It shows "12000 of 50000 entries", without a total "copying players: 12000", and only `what`
 * where nothing is counted or all is done. It is cheap, so callers may call it often. */
void progress_show(void *progress, const char *what, uint64_t done, uint64_t total);

/* Leaves the line; the next thing that is done starts as zeros. */
void progress_end(struct progress *progress);
