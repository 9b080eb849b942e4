#pragma once

/*
 * A real server and real clients over loopback, in one thread: every wait of a client turns the
 * server's loop, so that a test is a plain sequence and nothing depends on scheduling. Time stands
 * still but for what a test adds, so a deadline passes when the test says so, and no other.
 *
 * The handler answers by path: "/later" is deferred for the test to answer, "/wait" is parked for it
 * (or, when that is refused, told back), "/large" is LARGE_SIZE bytes, "/count" says how many
 * requests its connection has seen; anything else is told back.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "http/internal.h"
#include "http/tls.h"
#include "test_clock.h"
#include "tests.h"

#define LARGE_SIZE (8U * 1024 * 1024)
#define PATIENCE_MS 60000 /* far beyond anything that is waited for: then a test has failed */
#define DEADLINE_MS 1500  /* every deadline is a second, which is noticed within half a one */
#define HOST "Host: a\r\n"
#define GET(path) "GET " path " HTTP/1.1\r\n" HOST "\r\n"

struct loopback {
    uv_loop_t loop;
    struct http_server *server;
    struct http_message *large;
    struct http_request *waiting;
    struct http_parked parked;
    unsigned gone, ended; /* of those that were parked */
    uint16_t port;
    unsigned handled, abandoned, outcomes, incomplete, refused;
    bool repeated; /* the last request that was handled */
    uint64_t last_waited_ns;
    unsigned events[HTTP_EVENT_TLS_FAILED + 1];
    int last_status;
    bool drained;
};

struct client {
    struct loopback *loopback;
    int descriptor;
    struct buffer received;
    bool ended, reset;
};

static inline void on_abandoned(struct http_request *request)
{
    struct loopback *loopback = *(struct loopback **)request->user;
    loopback->abandoned++;
    if (loopback->waiting == request)
        loopback->waiting = NULL;
}

static inline void reply_in_full(struct http_request *request)
{
    struct buffer body = {0};
    buffer_append_format(&body, "<%s %.*s ? %.*s # %.*s>", http_method_name(request->method),
                         (int)request->path.size, request->path.at, (int)request->query.size,
                         request->query.size > 0 ? request->query.at : "", (int)request->body.size,
                         request->body.at);
    http_reply_json(request, 200, buffer_text(&body));
    buffer_free(&body);
}

static inline struct loopback *loopback_of(struct http_parked *parked)
{
    return (struct loopback *)(void *)((char *)parked - offsetof(struct loopback, parked));
}

static inline void on_parked_gone(struct http_parked *parked)
{
    loopback_of(parked)->gone++;
}

static inline void on_parked_ended(struct http_parked *parked)
{
    loopback_of(parked)->ended++;
}

static inline void on_request(void *context, struct http_request *request)
{
    struct loopback *loopback = context;
    loopback->handled++;
    loopback->repeated = request->repeated;
    ++*(unsigned *)request->connection_user;
    assert_null(*(void **)request->user);
    *(struct loopback **)request->user = loopback;
    if (text_equals(request->path, TEXT("/later"))) {
        assert_null(loopback->waiting);
        request->abandoned = on_abandoned;
        loopback->waiting = request;
    } else if (text_equals(request->path, TEXT("/wait"))) {
        loopback->parked = (struct http_parked){.gone = on_parked_gone, .ended = on_parked_ended};
        http_request_add_field(request, TEXT("X-Added"), TEXT("once"));
        if (text_equals(request->query, TEXT("much"))) {
            char filling[HTTP_MEMO_ADDED_MAX];
            memset(filling, 'x', sizeof filling);
            http_request_add_field(request, TEXT("X-Much"), (struct text){filling, sizeof filling});
        }
        if (!http_park(&loopback->parked, request))
            reply_in_full(request);
    } else if (text_equals(request->path, TEXT("/large"))) {
        http_reply_message(request, loopback->large);
    } else if (text_equals(request->path, TEXT("/count"))) {
        struct buffer body = {0};
        buffer_append_format(&body, "<%u>", *(unsigned *)request->connection_user);
        http_request_add_field(request, TEXT("X-Added"), TEXT("yes"));
        http_reply_json(request, 200, buffer_text(&body));
        buffer_free(&body);
    } else {
        reply_in_full(request);
    }
}

static inline void on_finished(void *context, const struct http_outcome *outcome)
{
    struct loopback *loopback = context;
    loopback->outcomes++;
    loopback->incomplete += outcome->complete ? 0 : 1;
    loopback->refused += outcome->refused ? 1 : 0;
    loopback->last_status = outcome->status;
    loopback->last_waited_ns = outcome->waited_ns;
}

static inline void on_event(void *context, enum http_event event)
{
    ((struct loopback *)context)->events[event]++;
}

static inline void on_drained(void *context)
{
    ((struct loopback *)context)->drained = true;
}

static inline void loopback_open(struct loopback *loopback, struct http_tls *tls,
                                 uint32_t connection_limit)
{
    struct error error;
    int descriptor = -1;
    test_clock_stop();
    memset(loopback, 0, sizeof *loopback);
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(uv_loop_init(&loopback->loop), 0);
    char *body = memory_alloc_zeroed(1, LARGE_SIZE);
    memset(body, 'x', LARGE_SIZE);
    loopback->large =
        http_message_create(200, TEXT("HTTP/1.1 200 OK\r\nContent-Length: 8388608\r\n"),
                            (struct text){body, LARGE_SIZE});
    memory_free(body);
    if (http_listen("127.0.0.1", 0, false, &descriptor, &loopback->port, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    struct http_server_options options = {
        .loop = &loopback->loop,
        .tls = tls,
        .request_user_size = sizeof(void *),
        .connection_user_size = sizeof(unsigned),
        .connection_limit = connection_limit,
        .deadlines.header_seconds = 1,
        .deadlines.body_seconds = 1,
        .deadlines.write_seconds = 1,
        .deadlines.idle_seconds = 1,
        .handle = on_request,
        .finished = on_finished,
        .event = on_event,
        .context = loopback,
    };
    loopback->server = http_server_create(&options, descriptor);
}

/* Turns the loop a little; `descriptor` may be -1. */
static inline void loopback_turn(struct loopback *loopback, int descriptor)
{
    struct pollfd wait[2] = {{.fd = uv_backend_fd(&loopback->loop), .events = POLLIN},
                             {.fd = descriptor, .events = POLLIN}};
    (void)poll(wait, descriptor >= 0 ? 2 : 1, 5);
    (void)uv_run(&loopback->loop, UV_RUN_NOWAIT);
}

/* So much later, everything that is due then having been done. */
static inline void loopback_advance(struct loopback *loopback, uint64_t ms)
{
    /* In steps, as time goes: a sweep that finds two deadlines passed would hide their order. */
    for (uint64_t step_ms; ms > 0; ms -= step_ms) {
        step_ms = ms < 50 ? ms : 50;
        test_clock_advance_ms(step_ms);
        (void)uv_run(&loopback->loop, UV_RUN_NOWAIT);
    }
}

#define WAIT_UNTIL(loopback, condition)                                            \
    for (uint64_t wait_end_ = test_clock_real_ms() + PATIENCE_MS; !(condition);) { \
        if (test_clock_real_ms() > wait_end_)                                      \
            fail_msg("waited in vain: %s", #condition);                            \
        loopback_turn((loopback), -1);                                             \
    }

static inline void loopback_close(struct loopback *loopback)
{
    if (!loopback->drained) {
        http_server_drain(loopback->server, 0, on_drained);
        http_server_abort(loopback->server);
        WAIT_UNTIL(loopback, loopback->drained);
    }
    assert_int_equal(loopback->events[HTTP_EVENT_OPENED], loopback->events[HTTP_EVENT_CLOSED]);
    http_server_destroy(&loopback->server);
    assert_int_equal(uv_loop_close(&loopback->loop), 0);
    http_message_release(&loopback->large);
}

static inline struct client client_open(struct loopback *loopback)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(loopback->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct client client = {.loopback = loopback};
    client.descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(client.descriptor, (struct sockaddr *)&address, sizeof address), 0);
    loopback_turn(loopback, -1);
    return client;
}

/* May be called again. */
static inline void client_close(struct client *client)
{
    if (client->descriptor >= 0)
        (void)close(client->descriptor);
    client->descriptor = -1;
    buffer_free(&client->received);
}

/* As much as the server takes. */
static inline void client_send(struct client *client, struct text bytes)
{
    uint64_t end = test_clock_real_ms() + PATIENCE_MS;
    while (bytes.size > 0 && test_clock_real_ms() < end) {
        ssize_t sent = send(client->descriptor, bytes.at, bytes.size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            return;
        bytes.at += sent > 0 ? sent : 0;
        bytes.size -= sent > 0 ? (size_t)sent : 0;
        loopback_turn(client->loopback, -1);
    }
}

#define SEND(client, literal) client_send((client), TEXT(literal))

static inline void client_read(struct client *client)
{
    char bytes[65536];
    loopback_turn(client->loopback, client->descriptor);
    ssize_t size = recv(client->descriptor, bytes, sizeof bytes, MSG_DONTWAIT);
    if (size > 0)
        buffer_append(&client->received, bytes, (size_t)size);
    else if (size == 0)
        client->ended = true;
    else if (errno != EAGAIN)
        client->ended = client->reset = true;
}

static inline bool client_has(struct client *client, const char *wanted)
{
    return strstr(buffer_string(&client->received), wanted) != NULL;
}

/* Not by strstr, which takes the length of all that follows each time under a sanitizer. */
static inline unsigned client_count(struct client *client, const char *wanted)
{
    unsigned count = 0;
    size_t size = strlen(wanted);
    for (size_t i = 0; i + size <= client->received.size; i++)
        count += client->received.data[i] == wanted[0] &&
                 memcmp(client->received.data + i, wanted, size) == 0;
    return count;
}

/* Reads until `wanted` has come, and fails when it does not. */
static inline void client_expect(struct client *client, const char *wanted)
{
    uint64_t end = test_clock_real_ms() + PATIENCE_MS;
    while (!client_has(client, wanted)) {
        if (client->ended || test_clock_real_ms() > end)
            fail_msg("'%s' did not come, but:\n%.*s", wanted, (int)client->received.size,
                     buffer_string(&client->received));
        client_read(client);
    }
}

/* Reads until the server closes, which must be in good order. */
static inline void client_expect_end(struct client *client)
{
    uint64_t end = test_clock_real_ms() + PATIENCE_MS;
    while (!client->ended) {
        if (test_clock_real_ms() > end)
            fail_msg("the connection stays open:\n%s", buffer_string(&client->received));
        client_read(client);
    }
    assert_false(client->reset);
}
