/* Starting the new server, and hearing of it; see handover.h. */
#include "app/handover.h"

#include "app/reload_socket.h"
#include "base/memory.h"

#define LIMIT_MS 60000 /* for the new server to be ready */
#define THREADS_MAX 1024U
#define REPORT_MAX 4096

size_t handover_count(const struct handover_sockets *sockets)
{
    return sockets->threads * (sockets->providers ? 2 : 1) + 1;
}

/* ---- the old server -------------------------------------------------------------------------- */

/* Returns our arguments with the option, which a server that was itself handed over to has
 * already. */
static char **arguments_of_new(char *const *ours)
{
    static char option[] = "--" HANDOVER_OPTION;
    size_t count = 0;
    bool there = false;
    for (; ours[count] != NULL; count++)
        there = there || strcmp(ours[count], option) == 0;
    char **arguments = memory_alloc_zeroed(count + 2, sizeof *arguments);
    memcpy(arguments, ours, count * sizeof *arguments);
    if (!there)
        arguments[count] = option;
    return arguments;
}

struct handover {
    uv_process_t process;
    uv_poll_t poll;
    uv_timer_t limit;
    int control;
    int open_handles;
    bool over;
    bool ended; /* the new process was reaped, so its number may be another's; or never began */
    handover_done *done;
    void *context;
    char report[REPORT_MAX];
    size_t report_size;
};

static void on_closed(uv_handle_t *handle)
{
    struct handover *handover = handle->data;
    if (--handover->open_handles > 0)
        return;
    (void)close(handover->control);
    memory_free(handover);
}

/* One that has not reported must not begin to serve later, beside us. */
static void kill_new(struct handover *handover)
{
    if (!handover->over && !handover->ended)
        (void)uv_process_kill(&handover->process, SIGKILL);
}

void handover_destroy(struct handover **handover_at)
{
    struct handover *handover = memory_take(handover_at);
    if (handover == NULL)
        return;
    kill_new(handover);
    uv_close((uv_handle_t *)&handover->poll, on_closed);
    uv_close((uv_handle_t *)&handover->limit, on_closed);
    uv_close((uv_handle_t *)&handover->process, on_closed);
}

static void finish(struct handover *handover, int process, const char *reason)
{
    if (handover->over)
        return;
    if (process == 0)
        kill_new(handover);
    handover->over = true;
    (void)uv_poll_stop(&handover->poll);
    (void)uv_timer_stop(&handover->limit);
    handover->done(handover->context, process, reason);
}

/* The whole report, up to its end: it is read when the new server has closed it, or serves. */
static void on_report(uv_poll_t *poll, int status, int events)
{
    struct handover *handover = poll->data;
    (void)events;
    size_t room = sizeof handover->report - 1 - handover->report_size;
    ssize_t got = status != 0 || room == 0
                      ? 0
                      : recv(handover->control, handover->report + handover->report_size, room, 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got > 0)
        handover->report_size += (size_t)got;
    handover->report[handover->report_size] = '\0';
    if (handover->report[0] == ANSWER_DONE)
        finish(handover, handover->process.pid, "");
    else if (got <= 0)
        finish(handover, 0,
               handover->report[0] == ANSWER_REFUSED
                   ? handover->report + 1
                   : "the new process ended before it could serve");
}

static void on_limit(uv_timer_t *timer)
{
    finish(timer->data, 0, "the new process was not ready in time");
}

/* The child is reaped; its report came by the stream, which is closed by then. */
static void on_exit_of_new(uv_process_t *process, int64_t status, int signal)
{
    struct handover *handover = process->data;
    handover->ended = true;
    (void)status;
    (void)signal;
}

static int spawn(struct handover *handover, uv_loop_t *loop, int control,
                 const struct handover_sockets *sockets, char *const *arguments)
{
    size_t count = handover_count(sockets);
    uv_stdio_container_t *given = memory_alloc_zeroed(HANDOVER_CONTROL + 1 + count, sizeof *given);
    /* Standard input, output and error as ours; the stream; the sockets in handover.h's order. */
    for (size_t i = 0; i < HANDOVER_CONTROL + 1 + count; i++) {
        given[i].flags = UV_INHERIT_FD;
        given[i].data.fd = i < HANDOVER_CONTROL    ? (int)i
                           : i == HANDOVER_CONTROL ? control
                                                   : sockets->descriptors[i - HANDOVER_CONTROL - 1];
    }
    char **words = arguments_of_new(arguments);
    const uv_process_options_t options = {
        .exit_cb = on_exit_of_new,
        .file = words[0],
        .args = words,
        .stdio = given,
        .stdio_count = (int)(HANDOVER_CONTROL + 1 + count),
    };
    /* Libraries open some without this flag (LMDB's data file, libcurl's sockets), which the new
     * process would keep for good. Linux before 5.11 does not know the call. */
    (void)close_range(HANDOVER_CONTROL, ~0U, CLOSE_RANGE_CLOEXEC);
    int result = uv_spawn(loop, &handover->process, &options);
    memory_free(words);
    memory_free(given);
    return result;
}

enum status handover_start(struct handover **handover_at, uv_loop_t *loop, char *const *arguments,
                           const struct handover_sockets *sockets, handover_done *done,
                           void *context, struct error *error)
{
    int ends[2]; /* of which the second is the new process's */
    char head[64];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return error_unavailable(error, "no stream: %s", strerror(errno));
    struct handover *handover = memory_alloc_zeroed(1, sizeof *handover);
    handover->done = done;
    handover->context = context;
    handover->control = ends[0];
    int size = snprintf(head, sizeof head, "%zu %d\n", sockets->threads, (int)sockets->providers);
    /* This is sent before the new process begins, which reads it without waiting. A new socket's
     * buffer holds it. */
    (void)send(handover->control, head, (size_t)size, MSG_NOSIGNAL);
    int result = spawn(handover, loop, ends[1], sockets, arguments);
    (void)close(ends[1]); /* so that the end of the new process is the end of the stream */
    handover->ended = result != 0;
    CHECK(uv_poll_init(loop, &handover->poll, handover->control) == 0);
    CHECK(uv_timer_init(loop, &handover->limit) == 0);
    handover->process.data = handover->poll.data = handover->limit.data = handover;
    handover->open_handles = 3;
    if (result != 0) {
        handover_destroy(&handover);
        return error_unavailable(error, "%s cannot be started: %s", arguments[0],
                                 uv_strerror(result));
    }
    CHECK(uv_poll_start(&handover->poll, UV_READABLE, on_report) == 0);
    CHECK(uv_timer_start(&handover->limit, on_limit, LIMIT_MS, 0) == 0);
    *handover_at = handover;
    return STATUS_OK;
}

/* ---- the new server -------------------------------------------------------------------------- */

static enum status no_old_server(struct error *error)
{
    return error_invalid(
        error, "--" HANDOVER_OPTION
               " is what a running server starts a new one with; run: croupier upgrade PID");
}

enum status handover_receive(struct handover_sockets *sockets, struct error *error)
{
    char head[64];
    struct handover_sockets received = {0};
    uint64_t threads;
    ssize_t size = recv(HANDOVER_CONTROL, head, sizeof head, MSG_DONTWAIT);
    if (size < 4 || head[size - 1] != '\n')
        return no_old_server(error);
    struct text rest = {head, (size_t)size - 1};
    if (text_to_u64(text_cut(&rest, ' '), THREADS_MAX, &threads) != STATUS_OK || threads == 0 ||
        rest.size != 1)
        return no_old_server(error);
    received.threads = (size_t)threads;
    received.providers = rest.at[0] == '1';
    size_t count = handover_count(&received);
    received.descriptors = memory_alloc(count * sizeof *received.descriptors);
    /* Other processes that this one starts must not inherit the sockets; the next handover passes
     * them explicitly. */
    (void)fcntl(HANDOVER_CONTROL, F_SETFD, FD_CLOEXEC);
    for (size_t i = 0; i < count; i++) {
        received.descriptors[i] = HANDOVER_CONTROL + 1 + (int)i;
        (void)fcntl(received.descriptors[i], F_SETFD, FD_CLOEXEC);
    }
    *sockets = received;
    return STATUS_OK;
}

void handover_report(const char *reason)
{
    char head[64];
    /* Unread bytes would reset the stream on close and lose the report. */
    (void)recv(HANDOVER_CONTROL, head, sizeof head, MSG_DONTWAIT);
    reload_answer(HANDOVER_CONTROL, reason[0] == '\0', reason);
}
