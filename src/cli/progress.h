#ifndef CROUPIER_CLI_PROGRESS_H
#define CROUPIER_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A line on stderr that is rewritten about once a second while something long is done, for whoever
 * waits at a terminal. Where stderr is no terminal (a script, the log of a nightly job), nothing is
 * written.
 * Starts as zeros. Nothing is shown of what takes less than a second.
 */
struct progress {
    uint64_t started_ms;
    uint64_t shown_ms;
    bool shown;
};

/* "12000 of 50000 entries", or without a total (0) "12000 entries". Cheap: to be called often. */
void progress_show(struct progress *progress, uint64_t done, uint64_t total, const char *what);

/* The same of what cannot be counted. */
void progress_say(struct progress *progress, const char *what);

/* Names the current step where nothing can be counted; shown at once if a line is there already. */
void progress_turn_to(struct progress *progress, const char *what);

/* Leaves the line; the next thing that is done starts as zeros. */
void progress_end(struct progress *progress);

#endif
