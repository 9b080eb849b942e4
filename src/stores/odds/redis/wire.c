/*
 * One connection to a Redis or Valkey server, or to a Sentinel; see wire.h.
 *
 * libuv reads and writes the bytes. With TLS, OpenSSL turns them into others, from memory to
 * memory. Send errors are ignored; the next read reports them, after the bytes that have come,
 * which may say why the connection ends.
 *
 * A wire that is destroyed inside of one of its callbacks is freed when libuv has closed its
 * handles. Code that calls back checks is_alive afterwards.
 */
#include "stores/odds/redis/wire.h"

#include <sys/queue.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/memory.h"
#include "stores/odds.h"

#define READ_SIZE ((size_t)16 * 1024) /* at a time; a TLS record has no more */
#define SLICE ((size_t)256 * 1024)    /* encrypted at a time; a larger buffer is freed afterwards */
#define LARGE ((size_t)16 * 1024)     /* not worth a copy, or waiting for what else comes */
/* The most bytes of a reply. Lists have no values in them; the longest are the keys that one
 * command changed. */
#define REPLY_MAX (ODDS_VALUE_MAX + (size_t)1024 * 1024)

struct redis_expected {
    STAILQ_ENTRY(redis_expected) others;
    unsigned replies;
    unsigned came;
    redis_answered *answered; /* NULL: the caller no longer waits */
    void *context;
};

struct redis_wire {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    };
    uv_connect_t connecting;
    uv_prepare_t flush; /* before the loop waits, while there is something to send */
    unsigned open;      /* of these two handles */
    struct redis_wire_events events;
    bool destroyed;
    bool connected;
    bool lost;
    SSL *ssl; /* NULL: there is no TLS */
    struct redis_parser *parser;
    struct buffer out; /* to be sent */
    STAILQ_HEAD(, redis_expected) expected;
    char in[READ_SIZE];
    char plain[READ_SIZE]; /* `in` decrypted, with TLS */
};

/* The rest of what the socket did not take at once. */
struct sending {
    uv_write_t request;
    char bytes[];
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
        return error_invalid(error, "the certificates to trust cannot be read: %s",
                             ca != NULL ? ca : "the system's");
    }
    *trust = context;
    return STATUS_OK;
}

static SSL *secure(SSL_CTX *trust, const char *host)
{
    SSL *ssl = SSL_new(trust);
    BIO *in = BIO_new(BIO_s_mem());
    BIO *out = BIO_new(BIO_s_mem());
    CHECK(ssl != NULL && in != NULL && out != NULL);
    SSL_set_bio(ssl, in, out);
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

/* ---- life ------------------------------------------------------------------------------------ */

static void on_connected(uv_connect_t *connecting, int status);

/* libuv's errors are negative; 0: the connection is being made. */
static int connect_to(struct redis_wire *wire, uv_loop_t *loop, const struct redis_target *target)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } address;
    if (target->local) {
        CHECK(uv_pipe_init(loop, &wire->pipe, 0) == 0);
        uv_pipe_connect(&wire->connecting, &wire->pipe, target->name, on_connected);
        return 0;
    }
    CHECK(uv_tcp_init(loop, &wire->tcp) == 0);
    (void)uv_tcp_nodelay(&wire->tcp, 1);
    if (uv_ip4_addr(target->name, target->port, &address.v4) != 0 &&
        uv_ip6_addr(target->name, target->port, &address.v6) != 0)
        return UV_EADDRNOTAVAIL;
    return uv_tcp_connect(&wire->connecting, &wire->tcp, &address.any, on_connected);
}

enum status redis_wire_open(struct redis_wire **wire, uv_loop_t *loop,
                            const struct redis_target *target, SSL_CTX *trust,
                            const struct redis_wire_events *events, struct error *error)
{
    struct redis_wire *made = memory_alloc_zeroed(1, sizeof *made);
    STAILQ_INIT(&made->expected);
    made->events = *events;
    made->parser = redis_parser_create(ODDS_VALUE_MAX, REPLY_MAX);
    if (trust != NULL)
        made->ssl = secure(trust, target->host);
    CHECK(uv_prepare_init(loop, &made->flush) == 0);
    int problem = connect_to(made, loop, target);
    made->handle.data = made;
    made->flush.data = made;
    made->open = 2;
    if (problem != 0) {
        redis_wire_destroy(&made);
        return error_unavailable(error, "%s", strerror(-problem));
    }
    *wire = made;
    return STATUS_OK;
}

static void on_closed(uv_handle_t *handle)
{
    struct redis_wire *wire = handle->data;
    if (--wire->open > 0)
        return;
    redis_parser_destroy(&wire->parser); /* it may have been inside of it */
    memory_free(wire);
}

void redis_wire_destroy(struct redis_wire **wire)
{
    struct redis_wire *mine = memory_take(wire);
    if (mine == NULL)
        return;
    mine->destroyed = true;
    uv_close(&mine->handle, on_closed);
    uv_close((uv_handle_t *)&mine->flush, on_closed);
    SSL_free(mine->ssl);
    mine->ssl = NULL;
    struct redis_expected *expected;
    while ((expected = STAILQ_FIRST(&mine->expected)) != NULL) {
        STAILQ_REMOVE_HEAD(&mine->expected, others);
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
    wire->events.lost(wire->events.owner, why);
}

/* ---- bytes out ------------------------------------------------------------------------------- */

static void on_written(uv_write_t *request, int status)
{
    (void)status;
    memory_free(request);
}

/* Writes as much as the socket takes now without a copy, and leaves a copy of the rest to libuv. */
static void write_bytes(struct redis_wire *wire, struct text bytes)
{
    uv_buf_t all = uv_buf_init((char *)(uintptr_t)bytes.at, (unsigned)bytes.size);
    int took = bytes.size == 0 ? 0 : uv_try_write(&wire->stream, &all, 1);
    size_t sent = took > 0 ? (size_t)took : 0;
    if (sent == bytes.size)
        return;
    struct sending *sending = memory_alloc(sizeof *sending + bytes.size - sent);
    memcpy(sending->bytes, bytes.at + sent, bytes.size - sent);
    uv_buf_t rest = uv_buf_init(sending->bytes, (unsigned)(bytes.size - sent));
    if (uv_write(&sending->request, &wire->stream, &rest, 1, on_written) != 0)
        memory_free(sending);
}

static void write_encrypted(struct redis_wire *wire)
{
    char *bytes;
    long size = BIO_get_mem_data(SSL_get_wbio(wire->ssl), &bytes);
    write_bytes(wire, (struct text){bytes, (size_t)size});
    (void)BIO_reset(SSL_get_wbio(wire->ssl));
}

/* Returns how much of the bytes was encrypted. In a handshake that means nothing. */
static size_t encrypt(struct redis_wire *wire, struct text bytes)
{
    size_t done = 0;
    int result = 1;
    while (done < bytes.size && result == 1) {
        size_t left = bytes.size - done;
        size_t size = 0;
        result = SSL_write_ex(wire->ssl, bytes.at + done, left < SLICE ? left : SLICE, &size);
        done += size;
        write_encrypted(wire);
    }
    ERR_clear_error(); /* the next read reports it */
    return done;
}

static void write_out(struct redis_wire *wire)
{
    struct text out = buffer_text(&wire->out);
    size_t done = out.size;
    if (wire->ssl == NULL)
        write_bytes(wire, out);
    else
        done = encrypt(wire, out);
    if (done < out.size)
        memmove(wire->out.data, wire->out.data + done, out.size - done);
    wire->out.size -= done;
    if (wire->out.size == 0 && wire->out.capacity > SLICE)
        buffer_free(&wire->out);
}

static void on_flush(uv_prepare_t *flush)
{
    CHECK(uv_prepare_stop(flush) == 0);
    write_out(flush->data);
}

struct redis_expected *redis_wire_send(struct redis_wire *wire, struct text commands,
                                       unsigned replies, redis_answered *answered, void *context)
{
    struct redis_expected *expected = memory_alloc_zeroed(1, sizeof *expected);
    expected->replies = replies;
    expected->answered = answered;
    expected->context = context;
    STAILQ_INSERT_TAIL(&wire->expected, expected, others);
    if (wire->connected && wire->ssl == NULL && commands.size >= LARGE) {
        write_out(wire);
        write_bytes(wire, commands);
        return expected;
    }
    buffer_append_text(&wire->out, commands);
    if (wire->connected) /* written with what else comes this turn */
        CHECK(uv_prepare_start(&wire->flush, on_flush) == 0);
    return expected;
}

void redis_wire_ignore(struct redis_expected *expected)
{
    expected->answered = NULL;
}

/* ---- replies --------------------------------------------------------------------------------- */

static void answer(struct redis_wire *wire, const struct redis_reply *reply)
{
    struct redis_expected *expected = STAILQ_FIRST(&wire->expected);
    if (expected == NULL) {
        /* The server says so before it was asked: "-ERR max number of clients reached". */
        lose(wire, reply->type == REDIS_ERROR ? "the server refuses connections"
                                              : "the server answers what was not asked");
        return;
    }
    unsigned index = expected->came++;
    redis_answered *answered = expected->answered;
    void *context = expected->context;
    if (expected->came == expected->replies) {
        STAILQ_REMOVE_HEAD(&wire->expected, others);
        memory_free(expected);
    }
    if (answered != NULL)
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

/* ---- bytes in -------------------------------------------------------------------------------- */

static const char closed[] = "the server has closed the connection";

static void take_encrypted(struct redis_wire *wire, struct text bytes)
{
    size_t size = 0;
    CHECK(BIO_write(SSL_get_rbio(wire->ssl), bytes.at, (int)bytes.size) == (int)bytes.size);
    int result = 1;
    while (is_alive(wire) && (result = SSL_read_ex(wire->ssl, wire->plain, READ_SIZE, &size)) == 1)
        take_bytes(wire, (struct text){wire->plain, size});
    if (!is_alive(wire))
        return;
    int error = SSL_get_error(wire->ssl, result);
    unsigned long code = ERR_peek_last_error();
    const char *reason = code == 0 ? NULL : ERR_reason_error_string(code);
    ERR_clear_error();
    write_encrypted(wire); /* of the handshake, or an alert */
    if (error == SSL_ERROR_WANT_READ)
        write_out(wire);
    else
        lose(wire, error == SSL_ERROR_ZERO_RETURN || reason == NULL ? closed : reason);
}

static void on_room(uv_handle_t *handle, size_t wanted, uv_buf_t *room)
{
    struct redis_wire *wire = handle->data;
    (void)wanted;
    *room = uv_buf_init(wire->in, sizeof wire->in);
}

static void on_read(uv_stream_t *stream, ssize_t size, const uv_buf_t *room)
{
    struct redis_wire *wire = stream->data;
    struct text bytes = {room->base, size > 0 ? (size_t)size : 0};
    if (!is_alive(wire))
        return;
    if (size < 0)
        lose(wire, size == UV_EOF ? closed : strerror((int)-size));
    else if (wire->ssl != NULL)
        take_encrypted(wire, bytes);
    else
        take_bytes(wire, bytes);
}

static void on_connected(uv_connect_t *connecting, int status)
{
    struct redis_wire *wire = connecting->handle->data;
    if (!is_alive(wire))
        return;
    if (status != 0) {
        lose(wire, strerror(-status));
        return;
    }
    wire->connected = true;
    CHECK(uv_read_start(&wire->stream, on_room, on_read) == 0);
    write_out(wire);
}
