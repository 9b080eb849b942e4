/*
 * One connection to a Redis or Valkey server, or to a Sentinel; see wire.h.
 *
 * The socket does not block; libuv watches it, and OpenSSL does TLS on it. When a connection ends,
 * the bytes that have come are read first: they may say why it ends.
 *
 * A wire that is destroyed inside of one of its callbacks is freed when libuv has closed its
 * handle. Code that calls back checks is_alive afterwards.
 */
#include "stores/odds/redis/wire.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/memory.h"
#include "stores/odds.h"

#define READ_SIZE ((size_t)16 * 1024) /* at a time; a TLS record has no more */
#define READS_A_TURN 64               /* before others have their turn */
#define SLICE ((size_t)256 * 1024)    /* written at a time; a larger buffer is freed afterwards */
#define LARGE ((size_t)16 * 1024)     /* not worth a copy, or waiting for what else comes */
/* Of a reply. Lists have no values in them; the longest are the keys that one command changed. */
#define REPLY_MAX (ODDS_VALUE_MAX + (size_t)1024 * 1024)

struct redis_expected {
    struct redis_expected *next;
    unsigned replies;
    unsigned came;
    redis_answered *answered;
    void *context;
};

struct redis_wire {
    uv_poll_t poll;
    struct redis_wire_events events;
    int socket;
    bool destroyed;
    bool connected;
    bool lost;
    int watched;
    SSL *ssl;             /* NULL: there is no TLS */
    bool read_must_write; /* TLS: the socket has to take something before more can be read, */
    bool write_must_read; /* or something has to come before more can be written */
    struct redis_parser *parser;
    struct buffer out;
    size_t written; /* of out */
    struct redis_expected *first, *last;
    char in[READ_SIZE];
};

/* ---- TLS ------------------------------------------------------------------------------------- */

enum status redis_tls_create(SSL_CTX **trust, const char *ca, struct error *error)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    CHECK(context != NULL);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    (void)SSL_CTX_set_mode(context,
                           SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    bool trusted = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
    if (ca != NULL)
        trusted = trusted && SSL_CTX_load_verify_locations(context, ca, NULL) == 1;
    else
        trusted = trusted && SSL_CTX_set_default_verify_paths(context) == 1;
    if (!trusted) {
        ERR_clear_error();
        SSL_CTX_free(context);
        return error_set(error, STATUS_INVALID, "the certificates to trust cannot be read: %s",
                         ca != NULL ? ca : "the system's");
    }
    *trust = context;
    return STATUS_OK;
}

static SSL *secure(SSL_CTX *trust, int socket, const char *host)
{
    SSL *ssl = SSL_new(trust);
    CHECK(ssl != NULL && SSL_set_fd(ssl, socket) == 1);
    /* An address is compared with the certificate's addresses, a name with its names. */
    bool address = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    if (!address) {
        /* OpenSSL's macro takes a char * and only reads it. */
        char *name = (char *)(uintptr_t)host;
        CHECK(SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1);
    }
    SSL_set_connect_state(ssl);
    return ssl;
}

/* ---- the socket ------------------------------------------------------------------------------ */

/* The size of the address, 0: it is none. */
static socklen_t address_of(const struct redis_target *target, struct sockaddr_storage *address)
{
    struct sockaddr_un *local = (struct sockaddr_un *)(void *)address;
    memset(address, 0, sizeof *address);
    if (target->local) {
        if (strlen(target->name) >= sizeof local->sun_path)
            return 0;
        local->sun_family = AF_UNIX;
        memcpy(local->sun_path, target->name, strlen(target->name));
        return sizeof *local;
    }
    if (uv_ip4_addr(target->name, target->port, (struct sockaddr_in *)(void *)address) == 0)
        return sizeof(struct sockaddr_in);
    if (uv_ip6_addr(target->name, target->port, (struct sockaddr_in6 *)(void *)address) == 0)
        return sizeof(struct sockaddr_in6);
    return 0;
}

/* The descriptor of a socket that is being connected, or -1 with errno. */
static int connect_to(const struct redis_target *target)
{
    struct sockaddr_storage address;
    socklen_t size = address_of(target, &address);
    int yes = 1;
    if (size == 0) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    int descriptor = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (descriptor < 0)
        return -1;
    if (!target->local)
        (void)setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    if (connect(descriptor, (struct sockaddr *)&address, size) == 0 || errno == EINPROGRESS)
        return descriptor;
    int problem = errno;
    (void)close(descriptor);
    errno = problem;
    return -1;
}

/* The error of the socket; 0: none. */
static int problem_of(const struct redis_wire *wire)
{
    int problem = 0;
    socklen_t size = sizeof problem;
    return getsockopt(wire->socket, SOL_SOCKET, SO_ERROR, &problem, &size) == 0 ? problem : errno;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void on_ready(uv_poll_t *poll, int status, int events);

static void watch(struct redis_wire *wire)
{
    bool more = wire->written < wire->out.size && !wire->write_must_read;
    bool writable = !wire->connected || more || wire->read_must_write;
    int events = UV_READABLE | (writable ? UV_WRITABLE : 0);
    if (events == wire->watched)
        return;
    wire->watched = events;
    CHECK(uv_poll_start(&wire->poll, events, on_ready) == 0);
}

enum status redis_wire_open(struct redis_wire **wire, uv_loop_t *loop,
                            const struct redis_target *target, SSL_CTX *trust,
                            const struct redis_wire_events *events, struct error *error)
{
    int descriptor = connect_to(target);
    if (descriptor < 0)
        return error_set(error, STATUS_UNAVAILABLE, "%s", strerror(errno));
    struct redis_wire *made = memory_alloc_zeroed(1, sizeof *made);
    made->socket = descriptor;
    made->events = *events;
    made->parser = redis_parser_create(ODDS_VALUE_MAX, REPLY_MAX);
    if (trust != NULL)
        made->ssl = secure(trust, descriptor, target->host);
    CHECK(uv_poll_init(loop, &made->poll, descriptor) == 0);
    made->poll.data = made;
    watch(made);
    *wire = made;
    return STATUS_OK;
}

static void on_closed(uv_handle_t *handle)
{
    struct redis_wire *wire = handle->data;
    redis_parser_destroy(&wire->parser); /* it may have been inside of it */
    memory_free(wire);
}

void redis_wire_destroy(struct redis_wire **wire)
{
    struct redis_wire *mine = *wire;
    *wire = NULL;
    if (mine == NULL)
        return;
    mine->destroyed = true;
    uv_close((uv_handle_t *)&mine->poll, on_closed); /* before the descriptor is */
    SSL_free(mine->ssl);
    mine->ssl = NULL;
    (void)close(mine->socket);
    while (mine->first != NULL) {
        struct redis_expected *expected = mine->first;
        mine->first = expected->next;
        memory_free(expected);
    }
    buffer_free(&mine->out);
}

static bool is_alive(const struct redis_wire *wire)
{
    return !wire->destroyed && !wire->lost;
}

static void lose(struct redis_wire *wire, const char *why)
{
    if (!is_alive(wire))
        return;
    wire->lost = true;
    wire->events.lost(wire->events.owner, wire, STATUS_UNAVAILABLE, why);
}

/* ---- bytes in and out ------------------------------------------------------------------------ */

enum moved { MOVED, NOT_NOW, ENDED };

static const char closed[] = "the server has closed the connection";

/* Judges a call of OpenSSL that moved no bytes. Sets `why` when the connection has ENDED. */
static enum moved judge_tls(struct redis_wire *wire, int result, bool *other_way, int other,
                            const char **why)
{
    int error = SSL_get_error(wire->ssl, result);
    *other_way = error == other;
    if (error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE)
        return NOT_NOW;
    unsigned long code = ERR_peek_last_error();
    const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
    if (error == SSL_ERROR_SYSCALL && errno != 0)
        reason = strerror(errno);
    *why = error == SSL_ERROR_ZERO_RETURN || reason == NULL ? closed : reason;
    ERR_clear_error();
    return ENDED;
}

static enum moved judge_socket(ssize_t result, const char **why)
{
    if (result < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return NOT_NOW;
    *why = result == 0 ? closed : strerror(errno);
    return ENDED;
}

static enum moved receive(struct redis_wire *wire, size_t *size, const char **why)
{
    errno = 0;
    if (wire->ssl == NULL) {
        ssize_t came = recv(wire->socket, wire->in, sizeof wire->in, 0);
        if (came <= 0)
            return judge_socket(came, why);
        *size = (size_t)came;
        return MOVED;
    }
    int result = SSL_read_ex(wire->ssl, wire->in, sizeof wire->in, size);
    wire->read_must_write = false;
    return result == 1 ? MOVED
                       : judge_tls(wire, result, &wire->read_must_write, SSL_ERROR_WANT_WRITE, why);
}

/* Writes large commands without a copy, as far as the socket takes them now. Returns how much that
 * was. Send errors are ignored; the next read reports them. */
static size_t send_at_once(const struct redis_wire *wire, struct text commands)
{
    size_t sent = 0;
    if (wire->ssl != NULL || !wire->connected || wire->lost || wire->out.size > 0 ||
        commands.size < LARGE)
        return 0;
    while (sent < commands.size) {
        size_t left = commands.size - sent;
        ssize_t took =
            send(wire->socket, commands.at + sent, left < SLICE ? left : SLICE, MSG_NOSIGNAL);
        if (took <= 0)
            break;
        sent += (size_t)took;
    }
    return sent;
}

static enum moved send_some(struct redis_wire *wire, size_t *size)
{
    const char *at = wire->out.data + wire->written;
    size_t left = wire->out.size - wire->written;
    size_t slice = left < SLICE ? left : SLICE;
    const char *why;
    errno = 0;
    if (wire->ssl == NULL) {
        ssize_t sent = send(wire->socket, at, slice, MSG_NOSIGNAL);
        if (sent < 0)
            return judge_socket(sent, &why);
        *size = (size_t)sent;
        return MOVED;
    }
    /* In a handshake the socket takes more at any time, and to watch for that would be a spin. */
    int result = SSL_write_ex(wire->ssl, at, slice, size);
    wire->write_must_read = false;
    return result == 1 ? MOVED
                       : judge_tls(wire, result, &wire->write_must_read, SSL_ERROR_WANT_READ, &why);
}

/* Send errors are ignored; the next read reports them. */
static void write_out(struct redis_wire *wire)
{
    size_t size = 0;
    while (wire->written < wire->out.size && send_some(wire, &size) == MOVED)
        wire->written += size;
    if (wire->written < wire->out.size)
        return;
    wire->written = 0;
    buffer_clear(&wire->out);
    if (wire->out.capacity > SLICE)
        buffer_free(&wire->out);
}

struct redis_expected *redis_wire_send(struct redis_wire *wire, struct text commands,
                                       unsigned replies, redis_answered *answered, void *context)
{
    struct redis_expected *expected = memory_alloc_zeroed(1, sizeof *expected);
    expected->replies = replies;
    expected->answered = answered;
    expected->context = context;
    if (wire->first == NULL)
        wire->first = expected;
    else
        wire->last->next = expected;
    wire->last = expected;
    size_t sent = send_at_once(wire, commands);
    buffer_append(&wire->out, commands.at + sent, commands.size - sent);
    watch(wire); /* written by the loop, with what else comes this turn */
    return expected;
}

static void pass_over(void *context, unsigned index, const struct redis_reply *reply)
{
    (void)context;
    (void)index;
    (void)reply;
}

void redis_wire_ignore(struct redis_expected *expected)
{
    expected->answered = pass_over;
}

/* ---- replies --------------------------------------------------------------------------------- */

static void answer(struct redis_wire *wire, const struct redis_reply *reply)
{
    struct redis_expected *expected = wire->first;
    if (expected == NULL) {
        /* As "-ERR max number of clients reached", before anything was asked. */
        lose(wire, reply->type == REDIS_ERROR ? "the server refuses connections"
                                              : "the server answers what was not asked");
        return;
    }
    unsigned index = expected->came++;
    redis_answered *answered = expected->answered;
    void *context = expected->context;
    if (expected->came == expected->replies) {
        wire->first = expected->next;
        memory_free(expected);
    }
    answered(context, index, reply);
}

static void take(struct redis_wire *wire, const struct redis_reply *reply)
{
    if (reply->type == REDIS_PUSH && wire->events.message != NULL)
        wire->events.message(wire->events.owner, reply);
    else
        answer(wire, reply);
}

static void take_bytes(struct redis_wire *wire, struct text bytes)
{
    while (is_alive(wire) && bytes.size > 0) {
        const struct redis_reply *reply;
        switch (redis_parser_take(wire->parser, &bytes, &reply)) {
        case STATUS_OK:
            take(wire, reply);
            break;
        case STATUS_PENDING:
            break;
        case STATUS_FULL:
            lose(wire, "a reply is larger than any that was asked for");
            break;
        default:
            lose(wire, "what answers does not speak Redis' protocol");
        }
    }
}

/* True: there may be more, after others have had their turn. */
static bool take_in(struct redis_wire *wire)
{
    for (int i = 0; i < READS_A_TURN && is_alive(wire); i++) {
        size_t size = 0;
        const char *why = NULL;
        switch (receive(wire, &size, &why)) {
        case MOVED:
            take_bytes(wire, (struct text){wire->in, size});
            break;
        case NOT_NOW:
            return false;
        case ENDED:
            lose(wire, why);
            return false;
        }
    }
    return is_alive(wire);
}

/* The connection was refused or reset, and libuv does not say why. Reading gives the reason, after
 * all bytes that came before. */
static void end(struct redis_wire *wire)
{
    int problem = wire->connected ? 0 : problem_of(wire);
    while (problem == 0 && take_in(wire))
        ;
    if (is_alive(wire))
        lose(wire, problem != 0 ? strerror(problem) : "the connection is broken");
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct redis_wire *wire = poll->data;
    if (status != 0) {
        end(wire);
        return;
    }
    if (!wire->connected) {
        int problem = problem_of(wire);
        if (problem != 0) {
            lose(wire, strerror(problem));
            return;
        }
        wire->connected = (events & UV_WRITABLE) != 0;
    }
    if ((events & (UV_READABLE | UV_DISCONNECT)) != 0 || wire->read_must_write)
        (void)take_in(wire);
    if (!is_alive(wire))
        return;
    if (wire->connected)
        write_out(wire);
    watch(wire);
}
