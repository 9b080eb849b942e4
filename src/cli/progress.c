/* See progress.h. */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"

#define PROGRESS_MS 1000

/* Whether the line is to be written now; begins it. */
static bool is_due(struct progress *progress)
{
    uint64_t now_ms = clock_monotonic_ms();
    if (progress->started_ms == 0)
        progress->started_ms = progress->shown_ms = now_ms;
    if (now_ms < progress->shown_ms + PROGRESS_MS)
        return false;
    progress->shown_ms = now_ms;
    if (isatty(STDERR_FILENO) != 1)
        return false;
    progress->shown = true;
    (void)fputc('\r', stderr);
    return true;
}

void progress_show(struct progress *progress, uint64_t done, uint64_t total, const char *what)
{
    if (!is_due(progress))
        return;
    if (total > 0)
        (void)fprintf(stderr, "%" PRIu64 " of %" PRIu64 " %s", done, total, what);
    else
        (void)fprintf(stderr, "%" PRIu64 " %s", done, what);
    (void)fputs("\033[K", stderr); /* the rest of a longer line */
}

void progress_say(struct progress *progress, const char *what)
{
    if (is_due(progress))
        (void)fprintf(stderr, "%s\033[K", what);
}

void progress_turn_to(struct progress *progress, const char *what)
{
    if (progress->shown)
        (void)fprintf(stderr, "\r%s\033[K", what);
}

void progress_end(struct progress *progress)
{
    if (progress->shown)
        (void)fputc('\n', stderr);
    *progress = (struct progress){0};
}
