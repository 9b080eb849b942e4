/*
 * croupier wallet tail | audit tail. Both read a page, close its query, and then print it: a reader
 * that does not read holds no snapshot of the store. A store that is away is opened again, so that
 * one that was restored in its place is found, and the place is checked in it.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/stores.h"
#include "operator/tail.h"

#define PAUSE_LEAST_MS 20U
#define PAUSE_MOST_MS 1000U
#define PAUSE_MOST_FILE_MS 200U /* of a file, where a look costs next to nothing */
#define STUCK_MS 10000U         /* a batch takes milliseconds */

struct following {
    const struct command_line *line;
    struct platform_store *store; /* NULL: to be opened */
    struct tail tail;
    bool follows;
    bool away;         /* and said so */
    bool stuck;        /* likewise */
    uint32_t pause_ms; /* before the next look */
    uint32_t pause_most_ms;
    int64_t awaited; /* of the ledger's horizon, */
    uint64_t awaited_since_ms;
};

static void release(void *resource)
{
    struct following *following = resource;
    platform_store_close(&following->store);
    memory_free(following);
}

/* The line owns it. */
static struct following *begin(const struct command_line *line, enum tail_of of)
{
    struct following *following = memory_alloc_zeroed(1, sizeof *following);
    command_keep(line, release, following);
    following->line = line;
    following->tail.of = of;
    following->tail.lines = command_buffer(line);
    following->tail.place = command_number(line, "after", 0, INT64_MAX, 0);
    following->follows = command_option(line, "follow") != NULL;
    following->pause_most_ms =
        config_platform_file(command_config(line)) != NULL ? PAUSE_MOST_FILE_MS : PAUSE_MOST_MS;
    following->pause_ms = PAUSE_LEAST_MS;
    return following;
}

/* ---- output ---------------------------------------------------------------------------------- */

/* The reader has gone: there is nothing left to do. */
static bool reader_is_gone(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};
    return poll(&output, 1, 0) > 0 && (output.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0;
}

static void print_page(const struct command_line *line, struct buffer *lines)
{
    size_t written = 0;
    while (written < lines->size) {
        ssize_t size = write(STDOUT_FILENO, lines->data + written, lines->size - written);
        if (size < 0 && errno == EPIPE)
            command_quit(line, EXIT_DONE);
        if (size < 0 && errno != EINTR)
            command_refuse(line, "cannot write the output: %s", strerror(errno));
        written += size > 0 ? (size_t)size : 0;
    }
    buffer_clear(lines);
}

/* ---- the walk -------------------------------------------------------------------------------- */

static bool is_away(enum status status)
{
    return status == STATUS_UNAVAILABLE || status == STATUS_TIMEOUT;
}

static enum status read_page(struct following *following, struct error *error)
{
    enum status status = STATUS_OK;
    if (following->store == NULL)
        status = command_open_platform(following->line, &following->store, error);
    return status == STATUS_OK ? tail_read(&following->tail, following->store, error) : status;
}

/* A store that is away is waited for, and opened again. All else is a refusal. */
static void judge(struct following *following, enum status status, const struct error *error)
{
    if (!following->follows || !is_away(status)) {
        if (following->away && status == STATUS_OK)
            command_complain(following->line, "the store is there again");
        following->away = false;
        command_require(following->line, status);
        return;
    }
    if (!following->away)
        command_complain(following->line, "waiting for the store: %s", error->text);
    following->away = true;
    platform_store_close(&following->store);
}

/* A batch of a server whose commit does not end keeps back all that was numbered after it. */
static void look_for_stuck(struct following *following)
{
    static const char text[] = "a transaction of the ledger has been open for more than 10 s, and "
                               "entries that were numbered after it are held back";
    const int64_t awaited = following->tail.ledger.horizon.awaited;
    const uint64_t now_ms = clock_monotonic_ms();
    if (awaited == 0 || awaited != following->awaited) {
        following->awaited = awaited;
        following->awaited_since_ms = now_ms;
        following->stuck = false;
    }
    if (following->stuck || now_ms - following->awaited_since_ms < STUCK_MS || awaited == 0)
        return;
    if (!following->follows)
        command_refuse(following->line, "%s", text);
    following->stuck = true;
    command_complain(following->line, "%s", text);
}

/* Soon after rows came, later and later while none do. */
static void pause_before_next(struct following *following, bool found)
{
    uint32_t most_ms = following->follows ? following->pause_most_ms : PAUSE_LEAST_MS;
    following->pause_ms = found ? PAUSE_LEAST_MS : following->pause_ms * 2;
    if (following->pause_ms > most_ms)
        following->pause_ms = most_ms;
    clock_pause_ns(following->pause_ms * UINT64_C(1000000));
}

static void run(struct following *following)
{
    const struct command_line *line = following->line;
    struct error *error = command_error(line);
    struct tail *tail = &following->tail;
    (void)signal(SIGPIPE, SIG_IGN);
    do {
        enum status status = read_page(following, error);
        bool found = tail->lines->size > 0;
        print_page(line, tail->lines);
        judge(following, status, error);
        look_for_stuck(following);
        if (!following->follows && tail->whole)
            return;
        if (!tail->more || following->away)
            pause_before_next(following, found);
    } while (!reader_is_gone());
}

/* ---- the commands ---------------------------------------------------------------------------- */

static const char *option_or_none(const struct command_line *line, const char *name)
{
    const char *given = command_option(line, name);
    return given == NULL ? "" : given;
}

void run_wallet_tail(const struct command_line *line)
{
    struct following *following = begin(line, TAIL_LEDGER);
    following->tail.customer_id = option_or_none(line, "customer");
    run(following);
}

void run_audit_tail(const struct command_line *line)
{
    struct following *following = begin(line, TAIL_AUDIT);
    following->tail.trail = (struct trail_search){.object = option_or_none(line, "object"),
                                                  .who = option_or_none(line, "who"),
                                                  .operators = true};
    run(following);
}

#define AFTER                                                                                  \
    {                                                                                          \
        "after", "NUMBER", "only what follows this one, the number of the last line (0: all)", \
            false                                                                              \
    }
#define FOLLOW                                                             \
    {                                                                      \
        "follow", NULL, "go on, and print what comes when it comes", false \
    }

const struct command_option wallet_tail_options[] = {
    AFTER,
    FOLLOW,
    {"customer", "CUSTOMER", "only this customer's entries", false},
    {0},
};

const struct command_option audit_tail_options[] = {
    AFTER,
    FOLLOW,
    {"object", "ID", "only changes of this customer, key, player and so on", false},
    {"who", "NAME", "only changes that NAME made", false},
    {0},
};
