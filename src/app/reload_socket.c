/* One connection, one reload, one answer; see reload_socket.h. */
#include "app/reload_socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/memory.h"

#define BACKLOG 16
#define ACCEPTS_AT_ONCE 4
#define ANSWER_MAX 4096
/* The first byte of an answer. */
#define DONE '+'
#define REFUSED '-'

static const struct {
    const char *name;
    int seconds; /* for the answer: reading files, and a server that is still starting */
} questions[] = {
    [RELOAD_CONFIGURATION] = {"reload", 30},
    [RELOAD_PROGRAM] = {"upgrade", 90},
};

struct reload_socket {
    reload_asked *asked;
    void *context;
    uv_poll_t poll;
    int descriptor;
};

/* A name that begins with NUL is no file, and goes with the socket. */
static socklen_t make_name(long process, enum reload_question question, struct sockaddr_un *address)
{
    memset(address, 0, sizeof *address);
    address->sun_family = AF_UNIX;
    int size = snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "croupier/%ld/%s",
                        process, questions[question].name);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)size);
}

/* ---- the server ------------------------------------------------------------------------------ */

struct reload_socket *reload_socket_create(uv_loop_t *loop, enum reload_question question,
                                           reload_asked *asked, void *context, struct log *log)
{
    struct sockaddr_un name;
    socklen_t size = make_name((long)getpid(), question, &name);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&name, size) != 0 ||
        listen(descriptor, BACKLOG) != 0) {
        log_event(log, LOG_WARNING, "a command cannot ask this server",
                  LOG_STRING("command", questions[question].name),
                  LOG_STRING("reason", strerror(errno)));
        if (descriptor >= 0)
            (void)close(descriptor);
        return NULL;
    }
    struct reload_socket *socket = memory_alloc_zeroed(1, sizeof *socket);
    socket->asked = asked;
    socket->context = context;
    socket->descriptor = descriptor;
    CHECK(uv_poll_init(loop, &socket->poll, descriptor) == 0);
    socket->poll.data = socket;
    return socket;
}

static bool may_ask(int descriptor)
{
    struct ucred peer;
    socklen_t size = sizeof peer;
    return getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           (peer.uid == geteuid() || peer.uid == 0);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    struct reload_socket *socket = poll->data;
    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_AT_ONCE; i++) {
        int descriptor = accept4(socket->descriptor, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (descriptor < 0)
            return;
        if (may_ask(descriptor))
            socket->asked(socket->context, descriptor);
        else
            (void)close(descriptor);
    }
}

void reload_socket_accept(struct reload_socket *socket)
{
    if (socket != NULL)
        CHECK(uv_poll_start(&socket->poll, UV_READABLE, on_readable) == 0);
}

static void on_closed(uv_handle_t *handle)
{
    memory_free(handle->data);
}

void reload_socket_destroy(struct reload_socket **socket)
{
    struct reload_socket *gone = *socket;
    if (gone == NULL)
        return;
    *socket = NULL;
    (void)uv_poll_stop(&gone->poll);
    (void)close(gone->descriptor);
    uv_close((uv_handle_t *)&gone->poll, on_closed);
}

void reload_answer(int asker, bool done, const char *text)
{
    if (asker < 0)
        return;
    struct buffer answer = {0};
    buffer_append_char(&answer, done ? DONE : REFUSED);
    buffer_append_string(&answer, text);
    size_t size = answer.size < ANSWER_MAX ? answer.size : ANSWER_MAX;
    /* A new socket's buffer holds it. A command that does not wait any more has missed it. */
    (void)send(asker, answer.data, size, MSG_NOSIGNAL);
    (void)close(asker);
    buffer_free(&answer);
}

/* ---- the command ----------------------------------------------------------------------------- */

static enum status connect_to(int descriptor, long process, enum reload_question question,
                              struct error *error)
{
    struct sockaddr_un name;
    socklen_t size = make_name(process, question, &name);
    const struct timeval limit = {.tv_sec = questions[question].seconds};
    (void)setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* of connect */
    (void)setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (connect(descriptor, (struct sockaddr *)&name, size) != 0) {
        if (errno == ECONNREFUSED)
            return error_set(error, STATUS_NOT_FOUND, "no croupier serves as process %ld", process);
        return error_set(error, STATUS_UNAVAILABLE, "cannot ask process %ld: %s", process,
                         strerror(errno));
    }
    /* Any process may take a name that is free; the kernel says whose it is. */
    struct ucred peer;
    socklen_t peer_size = sizeof peer;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0 ||
        peer.pid != (pid_t)process)
        return error_set(error, STATUS_UNAVAILABLE,
                         "another process answers in place of process %ld", process);
    return STATUS_OK;
}

static enum status hear(int descriptor, enum reload_question question, struct buffer *out,
                        struct error *error)
{
    char answer[ANSWER_MAX];
    size_t size = 0;
    ssize_t got = 1;
    while (size < sizeof answer && got > 0) {
        got = recv(descriptor, answer + size, sizeof answer - size, 0);
        if (got > 0)
            size += (size_t)got;
        else if (got < 0 && errno == EINTR)
            got = 1;
    }
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return error_set(error, STATUS_TIMEOUT, "the server has not answered for %d s",
                         questions[question].seconds);
    if (size == 0)
        return error_set(error, STATUS_UNAVAILABLE,
                         "the server gave no answer: it is ending, or is another user's");
    struct text text = {answer + 1, size - 1};
    if (answer[0] != DONE)
        return error_set(error, STATUS_INVALID, "%.*s", (int)text.size, text.at);
    buffer_append_text(out, text);
    return STATUS_OK;
}

enum status reload_ask(long process, enum reload_question question, struct buffer *text,
                       struct error *error)
{
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return error_set(error, STATUS_UNAVAILABLE, "no socket: %s", strerror(errno));
    enum status status = connect_to(descriptor, process, question, error);
    if (status == STATUS_OK)
        status = hear(descriptor, question, text, error);
    (void)close(descriptor);
    return status;
}
