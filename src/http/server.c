/*
 * The server of one thread: accepting, limits, the sweep of deadlines, draining.
 *
 * Connections have no timers. A sweep checks every deadline four times a second, which costs less
 * than setting and clearing a timer twice a request. It runs only while there are connections or
 * accepting is paused.
 */
#include <linux/filter.h>

#include "base/base62.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "http/internal.h"

#define ACCEPTS_AT_ONCE 64      /* then the open connections get their turn */
#define ACCEPTS_AT_THE_END 8192 /* more than a queue holds, so the loop ends */
#define ACCEPT_LOG_MS 10000U    /* between two log lines about failed accepts */

/* ---- connections ----------------------------------------------------------------------------- */

static void on_sweep(uv_timer_t *timer);
static void on_listener(uv_poll_t *poll, int status, int events);
static void refuse_new_connections(struct http_server *server);
static void stop_listening(struct http_server *server);

static void start_sweeping(struct http_server *server)
{
    if (uv_is_active((uv_handle_t *)&server->sweep))
        return;
    server->swept_ms = clock_loop_ms(server->options.loop);
    CHECK(uv_timer_start(&server->sweep, on_sweep, HTTP_SWEEP_MS, HTTP_SWEEP_MS) == 0);
}

static void stop_sweeping(struct http_server *server)
{
    if (server->connection_count > 0 || server->accept_paused)
        return;
    CHECK(uv_timer_stop(&server->sweep) == 0);
}

static void accept_again(struct http_server *server)
{
    if (!server->accept_paused)
        return;
    server->accept_paused = false;
    if (server->reserve < 0)
        server->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (server->descriptor >= 0)
        CHECK(uv_poll_start(&server->listener, UV_READABLE, on_listener) == 0);
    stop_sweeping(server);
}

static void on_sweep(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    uint64_t now = clock_loop_ms(server->options.loop);
    /* If the thread was delayed, skip this sweep, so that the loop first reads the input that
     * arrived: it may be what a deadline waits for. Never skip two in a row, or an overloaded
     * server would enforce no deadlines. */
    bool late = now - server->swept_ms > 2 * HTTP_SWEEP_MS && !server->swept_late;
    server->swept_ms = now;
    server->swept_late = late;
    accept_again(server);
    if (late)
        return;
    if (server->draining && server->descriptor >= 0 && now >= server->drain_accept_ms) {
        /* Turn new connections away first; handshakes under way have until the next sweep to
         * finish. */
        if (server->turning_away)
            stop_listening(server);
        else
            refuse_new_connections(server);
    }
    /* libuv closes handles after this callback, so the list does not change during the loop. */
    struct http_connection *at;
    LIST_FOREACH (at, &server->connections, link)
        http_connection_sweep(at, now);
}

static void on_sweep_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;
    server->drained(server->options.context);
}

static void finish_drain_when_empty(struct http_server *server)
{
    if (server->draining && server->connection_count == 0 && server->descriptor >= 0)
        stop_listening(server);
    /* The sweep timer is the last handle to close. After it, libuv holds nothing of the server. */
    if (server->draining && server->listener_closed && server->connection_count == 0)
        uv_close((uv_handle_t *)&server->sweep, on_sweep_closed);
}

/* Called when libuv has closed a connection's handle. */
static void on_connection_closed(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    LIST_REMOVE(connection, link);
    connection->magic = 0;
    if (server->options.closed != NULL)
        server->options.closed(server->options.context, &connection->peer, connection + 1);
    /* The data may hold a client's key. */
    explicit_bzero(connection + 1, server->options.connection_user_size);
    memory_free(connection);
    server->connection_count--;
    stop_sweeping(server);
    http_report_event(server, HTTP_EVENT_CLOSED);
    finish_drain_when_empty(server);
}

static struct http_connection *make_connection(struct http_server *server,
                                               const struct address *peer)
{
    struct http_connection *connection =
        memory_alloc_zeroed(1, sizeof *connection + server->options.connection_user_size);
    connection->magic = CONNECTION_MAGIC;
    connection->server = server;
    connection->closed = on_connection_closed;
    connection->peer = *peer;
    LIST_INSERT_HEAD(&server->connections, connection, link);
    server->connection_count++;
    start_sweeping(server);
    http_report_event(server, HTTP_EVENT_OPENED);
    return connection;
}

/* Zeros if the address is unknown. */
static struct address find_peer(int descriptor)
{
    struct sockaddr_storage from = {0};
    socklen_t size = sizeof from;
    struct address peer;
    if (getpeername(descriptor, (struct sockaddr *)&from, &size) != 0 ||
        address_from_sockaddr((struct sockaddr *)&from, &peer) != STATUS_OK)
        memset(&peer, 0, sizeof peer);
    return peer;
}

/* A connection with a higher rank is closed first to make room; 0: never. */
static unsigned dispensability(const struct http_connection *connection)
{
    const struct http_server *server = connection->server;
    uint64_t write_ms = server->options.deadlines.write_seconds * UINT64_C(1000);
    switch (connection->state) {
    case CONNECTION_WRITING: /* a sweep renews the deadline while the client reads */
        return connection->deadline_ms < server->swept_ms + write_ms ? 4 : 1;
    case CONNECTION_IDLE:
        return 3;
    case CONNECTION_OPENING:
    case CONNECTION_RECEIVING:
    case CONNECTION_LINGERING:
        return 2;
    default:
        return 0;
    }
}

/* Among the connections with the highest rank, the one with the earliest deadline. NULL: all
 * requests are with the handler. */
static struct http_connection *find_dispensable(const struct http_server *server)
{
    struct http_connection *found = NULL;
    unsigned most = 1;
    struct http_connection *at;
    LIST_FOREACH (at, &server->connections, link) {
        unsigned rank = dispensability(at);
        if (rank < most || (rank == most && found != NULL && at->deadline_ms > found->deadline_ms))
            continue;
        found = at;
        most = rank;
    }
    return found;
}

/* A closed connection counts until libuv has closed its handle, which bounds how many are closed at
 * once. */
static bool make_room(struct http_server *server)
{
    struct http_connection *found = NULL;
    if (server->options.makes_room &&
        server->connection_count < server->options.connection_limit + HTTP_REFUSAL_RESERVE)
        found = find_dispensable(server);
    if (found != NULL)
        http_connection_close(found);
    return found != NULL;
}

/* A client over a limit gets a 503, unless HTTP_REFUSAL_RESERVE connections are over it already or
 * the answer needs a TLS handshake; then the socket is closed. */
void http_server_adopt(struct http_server *server, int descriptor)
{
    const struct http_server_options *options = &server->options;
    struct address peer = find_peer(descriptor);
    size_t most = options->connection_limit;
    size_t over = server->connection_count < most || make_room(server)
                      ? 0
                      : server->connection_count - most + 1;
    if (over > 0)
        http_report_event(server, HTTP_EVENT_REFUSED);
    size_t over_its_own = options->opened != NULL ? options->opened(options->context, &peer) : 0;
    const struct http_error *refusal =
        over > 0 ? &error_too_many_connections : &error_connections_of_address;
    over = over_its_own > over ? over_its_own : over;
    if (over > HTTP_REFUSAL_RESERVE || (over > 0 && server->options.tls != NULL)) {
        (void)close(descriptor);
        if (options->closed != NULL)
            options->closed(options->context, &peer, NULL);
        return;
    }
    struct http_connection *connection = make_connection(server, &peer);
    CHECK(uv_tcp_init(server->options.loop, &connection->tcp) == 0);
    connection->tcp.data = connection;
    if (uv_tcp_open(&connection->tcp, descriptor) != 0) {
        (void)close(descriptor);
        http_connection_close(connection);
        return;
    }
    (void)uv_tcp_nodelay(&connection->tcp, 1);
    http_connection_start(connection);
    if (over > 0 && connection->state == CONNECTION_IDLE)
        http_connection_refuse(connection, refusal);
}

/* ---- accepting ------------------------------------------------------------------------------- */

static void log_accept_failure(struct http_server *server, int error)
{
    uint64_t now = clock_loop_ms(server->options.loop);
    if (server->accept_failed_ms != 0 && now - server->accept_failed_ms < ACCEPT_LOG_MS)
        return;
    server->accept_failed_ms = now;
    log_event(server->options.log, LOG_ERROR, "connections cannot be accepted",
              LOG_STRING("reason", strerror(error)));
}

/* No descriptor is left to accept the connection at the head of the queue, and leaving it there
 * would wake the loop for ever. So close the reserve, accept and close the connection, and open the
 * reserve again. */
static bool refuse_one_connection(struct http_server *server)
{
    if (server->reserve < 0)
        return false;
    (void)close(server->reserve);
    int descriptor = accept4(server->descriptor, NULL, NULL, SOCK_CLOEXEC);
    if (descriptor >= 0) {
        (void)close(descriptor);
        http_report_event(server, HTTP_EVENT_REFUSED);
    }
    server->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return descriptor >= 0; /* accept4 needs a descriptor even when the queue is empty */
}

/* Stops polling, because the queued connections would wake the loop continuously. The next sweep
 * tries again. */
static void pause_accepting(struct http_server *server)
{
    server->accept_paused = true;
    CHECK(uv_poll_stop(&server->listener) == 0);
    start_sweeping(server);
}

/* False when nothing (more) can be accepted now. */
static bool accept_one(struct http_server *server)
{
    int descriptor = accept4(server->descriptor, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor >= 0) {
        http_server_adopt(server, descriptor);
        return true;
    }
    if (errno == EINTR || errno == ECONNABORTED)
        return true;
    if (errno == EAGAIN)
        return false;
    int error = errno;
    log_accept_failure(server, error);
    if ((error == EMFILE || error == ENFILE) && refuse_one_connection(server))
        return true;
    pause_accepting(server);
    return false;
}

static void on_listener(uv_poll_t *poll, int status, int events)
{
    struct http_server *server = poll->data;
    (void)events;
    if (status != 0) {
        log_accept_failure(server, -status);
        return;
    }
    for (int i = 0; i < ACCEPTS_AT_ONCE && accept_one(server); i++) {
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

struct http_server *http_server_create(const struct http_server_options *options, int descriptor)
{
    struct http_server *server = memory_alloc_zeroed(1, sizeof *server);
    server->options = *options;
    server->descriptor = descriptor;
    server->reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
    server->read_buffer = memory_alloc(HTTP_READ_SIZE);
    memcpy(server->next_id, "          -0000000000", sizeof server->next_id);
    base62_random(server->next_id, HTTP_ID_START_SIZE);
    if (options->tls != NULL) /* room to read into, then a record to write from */
        server->plain_buffer = memory_alloc(HTTP_READ_SIZE + HTTP_RECORD_SIZE);
    clock_make_timer(options->loop, &server->sweep, server);
    server->listener_closed = descriptor < 0;
    if (descriptor >= 0) {
        CHECK(uv_poll_init(options->loop, &server->listener, descriptor) == 0);
        server->listener.data = server;
        CHECK(uv_poll_start(&server->listener, UV_READABLE, on_listener) == 0);
    }
    return server;
}

void http_server_set_deadlines(struct http_server *server, const struct http_deadlines *deadlines)
{
    server->options.deadlines = *deadlines;
}

/* ---- the end of accepting -------------------------------------------------------------------- */

/*
 * Makes the kernel drop the first packet of each new connection, while TCP handshakes that are
 * under way finish. A connection that finishes is in the queue before stop_listening empties it; a
 * client whose packet was dropped is refused once the socket is closed. Without the filter, a
 * client that connects between the last accept and the close would be reset after sending its
 * request. If the kernel forbids the filter, that gap remains.
 */
static void refuse_new_connections(struct http_server *server)
{
    static struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13), /* the flags of the TCP header */
        BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1), /* SYN without ACK */
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
    };
    const struct sock_fprog program = {sizeof steps / sizeof steps[0], steps};
    (void)setsockopt(server->descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
    server->turning_away = true;
}

static void on_listener_closed(uv_handle_t *handle)
{
    struct http_server *server = handle->data;
    server->listener_closed = true;
    finish_drain_when_empty(server);
}

static void close_listener(struct http_server *server)
{
    uv_close((uv_handle_t *)&server->listener, on_listener_closed);
    (void)close(server->descriptor); /* after uv_close, which still asks epoll about this number */
    server->descriptor = -1;
}

static void stop_listening(struct http_server *server)
{
    refuse_new_connections(server);
    /* Closing the socket resets the connections that are still in its queue. */
    for (int i = 0; i < ACCEPTS_AT_THE_END && accept_one(server); i++) {
    }
    close_listener(server);
}

void http_server_hand_over(struct http_server *server)
{
    CHECK(!server->draining && server->descriptor >= 0);
    close_listener(server); /* the other process keeps its copy of the socket */
}

void http_server_drain(struct http_server *server, uint32_t idle_ms, void (*drained)(void *context))
{
    CHECK(!server->draining && drained != NULL);
    server->drained = drained;
    server->draining = true;
    server->drain_idle_ms = idle_ms;
    server->drain_accept_ms = clock_loop_ms(server->options.loop) + idle_ms;
    struct http_connection *at;
    LIST_FOREACH (at, &server->connections, link)
        http_connection_drain(at);
    if (server->descriptor >= 0 && idle_ms == 0)
        stop_listening(server);
    finish_drain_when_empty(server);
}

void http_server_abort(struct http_server *server)
{
    CHECK(server->draining);
    if (server->descriptor >= 0)
        close_listener(server);
    struct http_connection *at;
    LIST_FOREACH (at, &server->connections, link)
        http_connection_close(at);
}

void http_server_destroy(struct http_server **server)
{
    struct http_server *gone = memory_take(server);
    CHECK(uv_is_closing((uv_handle_t *)&gone->sweep) && gone->connection_count == 0);
    memory_free(gone->spare_exchange);
    file_close(&gone->reserve);
    buffer_free(&gone->cipher);
    memory_free(gone->plain_buffer);
    memory_free(gone->read_buffer);
    memory_free(gone);
}
