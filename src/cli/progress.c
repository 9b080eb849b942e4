/* See command_line.h. */
#include "cli/command_line.h"

#include "base/clock.h"

#define PROGRESS_MS 1000

/* Must the line be written now? Begins it. The last step is shown at once if a line is there
 * already, because nothing follows it for a while. */
static bool is_due(struct progress *progress, bool last)
{
    uint64_t now_ms = clock_monotonic_ms();
    if (progress->started_ms == 0)
        progress->started_ms = progress->shown_ms = now_ms;
    if (now_ms < progress->shown_ms + PROGRESS_MS && !(last && progress->shown))
        return false;
    progress->shown_ms = now_ms;
    if (isatty(STDERR_FILENO) != 1)
        return false;
    progress->shown = true;
    (void)fputc('\r', stderr);
    return true;
}

void progress_show(void *context, const char *what, uint64_t done, uint64_t total)
{
    if (!is_due(context, total > 0 && done == total))
        return;
    if (done == 0 || done == total)
        (void)fputs(what, stderr);
    else if (total > 0)
        (void)fprintf(stderr, "%" PRIu64 " of %" PRIu64 " %s", done, total, what);
    else
        (void)fprintf(stderr, "%s: %" PRIu64, what, done);
    (void)fputs("\033[K", stderr); /* the rest of a longer line */
}

void progress_end(struct progress *progress)
{
    if (progress->shown)
        (void)fputc('\n', stderr);
    *progress = (struct progress){0};
}
