/* One connection, one reload, one answer; see reload_socket.h. */
#include "app/reload_socket.h"

#include <sys/un.h>

#include "base/file.h"
#include "base/memory.h"

#define BACKLOG 16
#define ACCEPTS_AT_ONCE 4
#define ANSWER_MAX 4096

static const struct {
    const char *name;
    int seconds; /* for the answer: reading files, and a server that is still starting */
} questions[] = {
    [RELOAD_CONFIGURATION] = {"reload", 30},
    [RELOAD_PROGRAM] = {"upgrade", 90},
};

struct reload_socket {
    enum reload_question question;
    reload_asked *asked;
    void *context;
    uv_poll_t poll;
    int directory, descriptor;
};

/* ---- where it is ----------------------------------------------------------------------------- */

#define PLACES 4

/* Where servers of `user` may have their sockets, the preferred one first. */
static void list_places(uid_t user, char places[PLACES][PATH_MAX])
{
    const char *given = getenv("RUNTIME_DIRECTORY"); /* systemd's; separated by colons */
    const char *session = getenv("XDG_RUNTIME_DIR");
    (void)snprintf(places[0], PATH_MAX, "%.*s", given == NULL ? 0 : (int)strcspn(given, ":"),
                   given == NULL ? "" : given);
    (void)snprintf(places[1], PATH_MAX, "/run/croupier");
    places[2][0] = '\0';
    if (session != NULL && session[0] == '/')
        (void)snprintf(places[2], PATH_MAX, "%s/croupier", session);
    (void)snprintf(places[3], PATH_MAX, "/run/user/%lu/croupier", (unsigned long)user);
}

/* Through the descriptor: the name of a socket must be short, and a path need not be. */
static struct sockaddr_un name_socket(int directory, long process, enum reload_question question)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    (void)snprintf(address.sun_path, sizeof address.sun_path, "/proc/self/fd/%d/%ld.%s", directory,
                   process, questions[question].name);
    return address;
}

static int open_directory(const char *path)
{
    return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* ---- the server ------------------------------------------------------------------------------ */

/* A directory that only this user may enter, so no other user can take a name in it or ask; -1:
 * there is none. */
static int open_own_directory(void)
{
    char places[PLACES][PATH_MAX];
    list_places(geteuid(), places);
    size_t count = places[0][0] != '\0' ? 1 : PLACES; /* one that was given is the only one */
    for (size_t i = 0; i < count; i++) {
        struct stat status;
        if (mkdir(places[i], 0700) != 0 && errno != EEXIST)
            continue;
        int directory = open_directory(places[i]);
        if (directory < 0)
            continue;
        if (fstat(directory, &status) == 0 && status.st_uid == geteuid() &&
            (status.st_mode & 0077) == 0)
            return directory;
        (void)close(directory);
    }
    return -1;
}

/* Replaces the name that an earlier server with this process id may have left behind. */
static int listen_in(int directory, enum reload_question question)
{
    struct sockaddr_un name = name_socket(directory, (long)getpid(), question);
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    (void)unlink(name.sun_path);
    if (descriptor >= 0 && (bind(descriptor, (struct sockaddr *)&name, sizeof name) != 0 ||
                            listen(descriptor, BACKLOG) != 0))
        file_close(&descriptor);
    return descriptor;
}

struct reload_socket *reload_socket_create(uv_loop_t *loop, enum reload_question question,
                                           reload_asked *asked, void *context, struct log *log)
{
    int directory = open_own_directory();
    int descriptor = directory < 0 ? -1 : listen_in(directory, question);
    if (descriptor < 0) {
        log_event(log, LOG_WARNING, "a command cannot ask this server",
                  LOG_STRING("command", questions[question].name),
                  LOG_STRING("reason", directory < 0 ? "no directory is this user's alone"
                                                     : strerror(errno)));
        file_close(&directory);
        return NULL;
    }
    struct reload_socket *socket = memory_alloc_zeroed(1, sizeof *socket);
    socket->question = question;
    socket->asked = asked;
    socket->context = context;
    socket->directory = directory;
    socket->descriptor = descriptor;
    CHECK(uv_poll_init(loop, &socket->poll, descriptor) == 0);
    socket->poll.data = socket;
    return socket;
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
        socket->asked(socket->context, descriptor);
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
    struct reload_socket *gone = memory_take(socket);
    if (gone == NULL)
        return;
    struct sockaddr_un name = name_socket(gone->directory, (long)getpid(), gone->question);
    uv_close((uv_handle_t *)&gone->poll, on_closed); /* first: it asks epoll about the descriptor */
    (void)unlink(name.sun_path);
    (void)close(gone->descriptor);
    (void)close(gone->directory);
}

void reload_answer(int asker, bool done, const char *text)
{
    if (asker < 0)
        return;
    struct buffer answer = {0};
    buffer_append_char(&answer, done ? ANSWER_DONE : ANSWER_REFUSED);
    buffer_append_string(&answer, text);
    size_t size = answer.size < ANSWER_MAX ? answer.size : ANSWER_MAX;
    /* A new socket's buffer holds it. A command that does not wait any more has missed it. */
    (void)send(asker, answer.data, size, MSG_NOSIGNAL);
    (void)close(asker);
    buffer_free(&answer);
}

/* ---- the command ----------------------------------------------------------------------------- */

#define REMEDY                                                                                \
    ": ask as its user or root, with its RUNTIME_DIRECTORY or XDG_RUNTIME_DIR. If its log "   \
    "says that a command cannot ask it, kill -HUP reloads it, and one of these at its start " \
    "gives it a socket"

/* Connects to the first of the places that has a socket of that process. */
static enum status connect_anywhere(int descriptor, long process, enum reload_question question,
                                    struct error *error)
{
    char places[PLACES][PATH_MAX];
    char path[32];
    struct stat status;
    int failure = ENOENT;
    (void)snprintf(path, sizeof path, "/proc/%ld", process);
    list_places(stat(path, &status) == 0 ? status.st_uid : geteuid(), places);
    for (size_t i = 0; i < PLACES; i++) {
        int directory = open_directory(places[i]);
        struct sockaddr_un name = name_socket(directory, process, question);
        bool connected =
            directory >= 0 && connect(descriptor, (struct sockaddr *)&name, sizeof name) == 0;
        if (!connected && errno != ENOENT && errno != ENOTDIR && errno != ECONNREFUSED)
            failure = errno;
        file_close(&directory);
        if (connected)
            return STATUS_OK;
    }
    if (failure == ENOENT)
        return error_not_found(
            error, "no croupier serves as process %ld, or its socket is not found" REMEDY, process);
    return error_unavailable(error, "cannot ask process %ld (%s)" REMEDY, process,
                             strerror(failure));
}

static enum status connect_to(int descriptor, long process, enum reload_question question,
                              struct error *error)
{
    const struct timeval limit = {.tv_sec = questions[question].seconds};
    (void)setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* of connect */
    (void)setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    enum status status = connect_anywhere(descriptor, process, question, error);
    if (status != STATUS_OK)
        return status;
    /* A process in another namespace may have the same id. */
    struct ucred peer;
    socklen_t peer_size = sizeof peer;
    if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &peer_size) != 0 ||
        peer.pid != (pid_t)process)
        return error_unavailable(error, "another process answers in place of process %ld", process);
    return STATUS_OK;
}

static enum status read_answer(int descriptor, enum reload_question question, struct buffer *out,
                               struct error *error)
{
    char answer[ANSWER_MAX];
    ssize_t got = TEMP_FAILURE_RETRY(recv(descriptor, answer, sizeof answer, MSG_WAITALL));
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return error_set(error, STATUS_TIMEOUT, "the server has not answered for %d s",
                         questions[question].seconds);
    if (got <= 0)
        return error_unavailable(error, "the server gave no answer: it is ending");
    struct text text = {answer + 1, (size_t)got - 1};
    if (answer[0] != ANSWER_DONE)
        return error_invalid(error, "%.*s", (int)text.size, text.at);
    buffer_append_text(out, text);
    return STATUS_OK;
}

enum status reload_ask(long process, enum reload_question question, struct buffer *text,
                       struct error *error)
{
    int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return error_unavailable(error, "no socket: %s", strerror(errno));
    enum status status = connect_to(descriptor, process, question, error);
    if (status == STATUS_OK)
        status = read_answer(descriptor, question, text, error);
    (void)close(descriptor);
    return status;
}
