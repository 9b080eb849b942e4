/*
 * One connection to a Redis or Valkey server, or to a Sentinel. See odds_redis.h.
 *
 * hiredis formats nothing here and waits for nothing: a redisContext that does not block is the
 * socket, its reader the parser, and libuv says when to read and to write. Its own asynchronous
 * interface is not used: it resolves names while everything waits, and ends the process (assert)
 * when a server says something unexpected.
 *
 * A document that is larger than any that may be served must not be taken in, and must not cost the
 * connection either. So the length of a bulk reply is looked at before the reader sees it; what is
 * too long is skipped, and stands as an error reply in its place.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>

#ifdef CROUPIER_HIREDIS_TLS
#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#endif

#include "base/memory.h"
#include "stores/odds/redis/redis.h"

#define SLICE ((size_t)256 * 1024) /* handed to hiredis at a time, which moves what is left */
#define READS_A_TURN 64            /* of 16 KiB each, before others have their turn */
#define REPLY_MAX (ODDS_VALUE_MAX + (size_t)1024 * 1024) /* of one reply that is not skipped */
/* Of one that is a list. None has values in it; the longest are the keys that one command has
 * changed, and the reader needs up to 16 times as much memory. */
#define LIST_MAX ((size_t)8 * 1024 * 1024)
#define LENGTH_DIGITS 20

struct slot {
    struct slot *next;
    unsigned replies;
    unsigned came;
    redis_answered *answered;
    void *context;
};

struct redis_wire {
    uv_poll_t poll;
    struct redis_wire_events events;
    redisContext *context; /* NULL: destroyed */
    bool writable;         /* it has been seen to be: connected */
    bool lost;
    bool subscribed;
    bool inside;   /* a reply: part of it has come */
    bool list;     /* it is one */
    size_t parsed; /* bytes of it that the reader has let go of */
    uint64_t skip; /* bytes of a reply that is not taken in */
    int watched;
    struct ssl_st *ssl; /* of the context, which frees it; NULL: there is no TLS */
    struct buffer out;
    size_t handed; /* of out, to hiredis */
    bool held;     /* hiredis has some of that still */
    bool stuck;    /* it cannot be written before something has come */
    struct slot *first, *last;
};

static char too_large_text[] = "TOOLARGE";
static const redisReply too_large = {
    .type = REDIS_REPLY_ERROR, .str = too_large_text, .len = sizeof too_large_text - 1};

bool redis_reply_is_too_large(const redisReply *reply)
{
    return reply == &too_large;
}

/* ---- TLS ------------------------------------------------------------------------------------- */

#ifdef CROUPIER_HIREDIS_TLS
struct redis_tls {
    SSL_CTX *context;
};

enum status redis_tls_create(struct redis_tls **tls, const char *ca, struct error *error)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    CHECK(context != NULL);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
    bool trusted = SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1;
    if (ca != NULL)
        trusted = trusted && SSL_CTX_load_verify_locations(context, ca, NULL) == 1;
    else
        trusted = trusted && SSL_CTX_set_default_verify_paths(context) == 1;
    if (!trusted) {
        SSL_CTX_free(context);
        return error_set(error, STATUS_INVALID, "the certificates to trust cannot be read: %s",
                         ca != NULL ? ca : "the system's");
    }
    *tls = memory_alloc(sizeof **tls);
    (*tls)->context = context;
    return STATUS_OK;
}

void redis_tls_destroy(struct redis_tls **tls)
{
    if (*tls == NULL)
        return;
    SSL_CTX_free((*tls)->context);
    memory_free(*tls);
    *tls = NULL;
}

/* NULL: it cannot be begun. */
static struct ssl_st *secure(redisContext *context, const struct redis_tls *tls, const char *host)
{
    SSL *ssl = SSL_new(tls->context);
    CHECK(ssl != NULL);
    /* An address is compared with the certificate's addresses, a name with its names. */
    bool address = X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    bool ready =
        address || (SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1);
    if (ready && redisInitiateSSL(context, ssl) == REDIS_OK)
        return ssl; /* the context's from here */
    SSL_free(ssl);
    return NULL;
}

static bool waits_for_peer(const struct ssl_st *ssl)
{
    return ssl != NULL && SSL_want_read(ssl);
}
#else
struct redis_tls {
    char unused;
};

enum status redis_tls_create(struct redis_tls **tls, const char *ca, struct error *error)
{
    (void)tls;
    (void)ca;
    return error_set(error, STATUS_INVALID,
                     "rediss:// needs hiredis with TLS (1.0 or later, libhiredis_ssl), which this "
                     "croupier was built without; use redis:// or unix:, or a TLS tunnel");
}

void redis_tls_destroy(struct redis_tls **tls)
{
    *tls = NULL;
}

static struct ssl_st *secure(redisContext *context, const struct redis_tls *tls, const char *host)
{
    (void)context;
    (void)tls;
    (void)host;
    return NULL;
}

static bool waits_for_peer(const struct ssl_st *ssl)
{
    (void)ssl;
    return false;
}
#endif

/* ---- life ------------------------------------------------------------------------------------ */

static void on_ready(uv_poll_t *poll, int status, int events);

static void watch(struct redis_wire *wire)
{
    bool more = (wire->held || wire->handed < wire->out.size) && !wire->stuck;
    int events = UV_READABLE | (more || !wire->writable ? UV_WRITABLE : 0);
    if (events == wire->watched)
        return;
    wire->watched = events;
    CHECK(uv_poll_start(&wire->poll, events, on_ready) == 0);
}

/* Of one list. What comes in fewer bytes than LIST_MAX has fewer. */
static void bound(redisReader *reader)
{
#ifdef REDIS_READER_MAX_ARRAY_ELEMENTS
    reader->maxelements = LIST_MAX / 4;
#else
    (void)reader; /* hiredis before 1.0.1 */
#endif
}

static redisContext *connect_to(const struct redis_target *target)
{
    return target->local ? redisConnectUnixNonBlock(target->name)
                         : redisConnectNonBlock(target->name, target->port);
}

enum status redis_wire_open(struct redis_wire **wire, uv_loop_t *loop,
                            const struct redis_target *target, struct redis_tls *tls,
                            const struct redis_wire_events *events, struct error *error)
{
    redisContext *context = connect_to(target);
    CHECK(context != NULL);
    bool sound = context->err == 0;
    struct ssl_st *ssl = sound && tls != NULL ? secure(context, tls, target->host) : NULL;
    if (!sound)
        (void)error_set(error, STATUS_UNAVAILABLE, "%s", context->errstr);
    else if (tls != NULL && ssl == NULL)
        (void)error_set(error, STATUS_UNAVAILABLE, "TLS cannot be begun");
    else
        goto opened;
    redisFree(context);
    return STATUS_UNAVAILABLE;
opened:
    (void)fcntl(context->fd, F_SETFD, FD_CLOEXEC);
    *wire = memory_alloc_zeroed(1, sizeof **wire);
    (*wire)->context = context;
    (*wire)->ssl = ssl;
    bound(context->reader);
    (*wire)->events = *events;
    CHECK(uv_poll_init(loop, &(*wire)->poll, context->fd) == 0);
    (*wire)->poll.data = *wire;
    watch(*wire);
    return STATUS_OK;
}

static void on_closed(uv_handle_t *handle)
{
    memory_free(handle->data);
}

void redis_wire_destroy(struct redis_wire **wire)
{
    struct redis_wire *mine = *wire;
    *wire = NULL;
    if (mine == NULL)
        return;
    uv_close((uv_handle_t *)&mine->poll, on_closed); /* before the descriptor is */
    redisFree(mine->context);
    mine->context = NULL;
    mine->ssl = NULL;
    while (mine->first != NULL) {
        struct slot *slot = mine->first;
        mine->first = slot->next;
        memory_free(slot);
    }
    buffer_free(&mine->out);
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

static void lose(struct redis_wire *wire, const char *why)
{
    if (wire->lost)
        return;
    wire->lost = true;
    wire->events.lost(wire->events.owner, wire, STATUS_UNAVAILABLE, why);
}

static void lose_by_context(struct redis_wire *wire)
{
    const redisContext *context = wire->context;
    if (context->err == REDIS_ERR_EOF)
        lose(wire, "the server has closed the connection");
    else if (context->err == REDIS_ERR_PROTOCOL)
        lose(wire, "what answers does not speak Redis' protocol");
    else
        lose(wire, context->errstr);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* False: the wire is lost. */
static bool write_out(struct redis_wire *wire)
{
    int done = 1;
    while (done) {
        size_t left = wire->out.size - wire->handed;
        size_t slice = left < SLICE ? left : SLICE;
        if (redisBufferWrite(wire->context, &done) != REDIS_OK) {
            lose_by_context(wire);
            return false;
        }
        wire->held = !done;
        /* In a handshake: the socket takes more at any time, and to watch for that would be a
         * spin. */
        wire->stuck = !done && waits_for_peer(wire->ssl);
        if (!done || slice == 0)
            break;
        CHECK(redisAppendFormattedCommand(wire->context, wire->out.data + wire->handed, slice) ==
              REDIS_OK);
        wire->handed += slice;
    }
    if (wire->handed == wire->out.size) {
        bool large = wire->out.capacity > SLICE;
        wire->handed = 0;
        buffer_clear(&wire->out);
        if (large)
            buffer_free(&wire->out);
    }
    return true;
}

void redis_wire_send(struct redis_wire *wire, struct text commands, unsigned replies,
                     redis_answered *answered, void *context)
{
    struct slot *slot = memory_alloc_zeroed(1, sizeof *slot);
    slot->replies = replies;
    slot->answered = answered;
    slot->context = context;
    if (wire->first == NULL)
        wire->first = slot;
    else
        wire->last->next = slot;
    wire->last = slot;
    buffer_append_text(&wire->out, commands);
    watch(wire); /* written by the loop, with what else comes this turn */
}

/* ---- reading --------------------------------------------------------------------------------- */

static void answer(struct redis_wire *wire, const redisReply *reply)
{
    struct slot *slot = wire->first;
    if (slot == NULL) {
        /* As "-ERR max number of clients reached", before anything was asked. */
        lose(wire, reply->type == REDIS_REPLY_ERROR ? "the server refuses connections"
                                                    : "the server answers what was not asked");
        return;
    }
    unsigned index = slot->came++;
    redis_answered *answered = slot->answered;
    void *context = slot->context;
    if (slot->came == slot->replies) {
        wire->first = slot->next;
        memory_free(slot);
    }
    answered(context, index, reply);
}

static bool is_word(const redisReply *reply, const char *word)
{
    return reply->type == REDIS_REPLY_STRING && reply->len == strlen(word) &&
           memcmp(reply->str, word, reply->len) == 0;
}

static void take(struct redis_wire *wire, const redisReply *reply)
{
    bool array = reply->type == REDIS_REPLY_ARRAY && reply->elements >= 2;
    if (array && reply->elements == 3 && is_word(reply->element[0], "subscribe"))
        wire->subscribed = true;
    if (wire->subscribed && array && is_word(reply->element[0], "message"))
        wire->events.message(wire->events.owner, reply);
    else
        answer(wire, reply);
}

/* Bytes that have come, and are not parsed. */
static size_t waiting(const struct redis_wire *wire)
{
    return wire->context->reader->len - wire->context->reader->pos;
}

/* Puts a reader that holds only `rest` in place of the one that there is. */
static void renew_reader(redisContext *context, size_t consumed)
{
    redisReader *old = context->reader;
    redisReader *reader = redisReaderCreate();
    CHECK(reader != NULL);
    bound(reader);
    CHECK(redisReaderFeed(reader, old->buf + old->pos + consumed, old->len - old->pos - consumed) ==
          REDIS_OK);
    context->reader = reader;
    redisReaderFree(old);
}

/* Lets go of what belongs to a reply that is skipped. True: all of it has come. */
static bool skip(struct redis_wire *wire)
{
    size_t part = waiting(wire) < wire->skip ? waiting(wire) : (size_t)wire->skip;
    wire->skip -= part;
    renew_reader(wire->context, part);
    return wire->skip == 0;
}

/* Between two replies: does a bulk that is too large begin here? It is skipped then. False: its
 * length has not come as a whole. */
static bool look_at_length(struct redis_wire *wire)
{
    const redisReader *reader = wire->context->reader;
    const char *at = reader->buf + reader->pos;
    size_t size = reader->len - reader->pos;
    if (size == 0 || at[0] != '$')
        return size > 0;
    const char *end = memchr(at, '\r', size < LENGTH_DIGITS + 2 ? size : LENGTH_DIGITS + 2);
    if (end == NULL)
        return size >= LENGTH_DIGITS + 2; /* nonsense, which the reader will find */
    uint64_t length = 0;
    struct text digits = {at + 1, (size_t)(end - at) - 1};
    if (text_to_u64(digits, INT64_MAX, &length) == STATUS_OK && length > ODDS_VALUE_MAX)
        wire->skip = digits.size + 3 + length + 2;
    return true;
}

/* Has it the reader parse what has come. NULL: that is not all of it, or the wire is lost. */
static redisReply *parse(struct redis_wire *wire)
{
    void *reply = NULL;
    size_t before = waiting(wire);
    if (!wire->inside) {
        wire->list = before > 0 && wire->context->reader->buf[wire->context->reader->pos] == '*';
        wire->parsed = 0;
    }
    if (redisReaderGetReply(wire->context->reader, &reply) != REDIS_OK) {
        lose(wire, "what answers does not speak Redis' protocol");
        return NULL;
    }
    wire->inside = reply == NULL;
    wire->parsed += before - waiting(wire);
    if (reply == NULL && wire->parsed + waiting(wire) > (wire->list ? LIST_MAX : REPLY_MAX))
        lose(wire, "a reply is larger than any that was asked for");
    return reply;
}

/* Takes one reply. False: there is no more to do now. */
static bool take_one(struct redis_wire *wire)
{
    if (wire->skip == 0 && !wire->inside && !look_at_length(wire))
        return false;
    if (wire->skip > 0) {
        if (!skip(wire))
            return false;
        take(wire, &too_large);
        return true;
    }
    redisReply *reply = parse(wire);
    if (reply == NULL)
        return false;
    take(wire, reply);
    freeReplyObject(reply);
    return true;
}

static bool is_alive(const struct redis_wire *wire)
{
    return wire->context != NULL && !wire->lost;
}

/* True: there may be more, after others have had their turn. */
static bool take_in(struct redis_wire *wire)
{
    for (int i = 0; i < READS_A_TURN && is_alive(wire); i++) {
        size_t before = wire->context->reader->len;
        bool read = redisBufferRead(wire->context) == REDIS_OK;
        bool more = read && wire->context->reader->len != before;
        /* What came before the end is still to be heard: it may say why. */
        while (is_alive(wire) && take_one(wire))
            ;
        if (!is_alive(wire))
            return false;
        if (!read)
            lose_by_context(wire);
        if (!more)
            return false;
    }
    return is_alive(wire);
}

/* Refused, or reset: libuv has ceased to watch, and does not know why. Reading comes upon the
 * reason, after all that came before, which is no more than the system holds of one connection. */
static void end(struct redis_wire *wire)
{
    while (take_in(wire))
        ;
    if (!is_alive(wire))
        return;
    int problem = 0;
    socklen_t size = sizeof problem;
    if (getsockopt(wire->context->fd, SOL_SOCKET, SO_ERROR, &problem, &size) != 0)
        problem = errno;
    lose(wire, problem != 0 ? strerror(problem) : "the connection is broken");
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct redis_wire *wire = poll->data;
    if (status != 0) {
        end(wire);
        return;
    }
    wire->writable = wire->writable || (events & UV_WRITABLE) != 0;
    if ((events & (UV_READABLE | UV_DISCONNECT)) != 0)
        (void)take_in(wire);
    if (is_alive(wire) && write_out(wire))
        watch(wire);
}

/* ---- commands -------------------------------------------------------------------------------- */

void redis_command_begin(struct buffer *out, size_t words)
{
    buffer_append_char(out, '*');
    buffer_append_u64(out, words);
    buffer_append(out, "\r\n", 2);
}

void redis_command_word(struct buffer *out, struct text word)
{
    buffer_append_char(out, '$');
    buffer_append_u64(out, word.size);
    buffer_append(out, "\r\n", 2);
    buffer_append_text(out, word);
    buffer_append(out, "\r\n", 2);
}

void redis_command(struct buffer *out, const char *first, ...)
{
    va_list words;
    size_t count = 0;
    va_start(words, first);
    for (const char *word = first; word != NULL; word = va_arg(words, const char *))
        count++;
    va_end(words);
    redis_command_begin(out, count);
    va_start(words, first);
    for (const char *word = first; word != NULL; word = va_arg(words, const char *))
        redis_command_word(out, text_of(word));
    va_end(words);
}

/* ---- errors ---------------------------------------------------------------------------------- */

static const struct {
    const char *code;
    enum status status;
    const char *text;
} meanings[] = {
    {"NOAUTH ", STATUS_UNAVAILABLE, "the server wants a password"},
    {"WRONGPASS ", STATUS_UNAVAILABLE, "the server does not accept this user and password"},
    {"LOADING ", STATUS_UNAVAILABLE, "the server is still loading its data"},
    {"MASTERDOWN ", STATUS_UNAVAILABLE, "the server is a replica that has lost its master"},
    {"READONLY ", STATUS_UNAVAILABLE, "the server is a replica and takes no writes"},
    {"MOVED ", STATUS_UNAVAILABLE,
     "the server is a node of a Redis Cluster, which is not supported"},
    {"ASK ", STATUS_UNAVAILABLE, "the server is a node of a Redis Cluster, which is not supported"},
    {"CLUSTERDOWN ", STATUS_UNAVAILABLE,
     "the server is a node of a Redis Cluster, which is not supported"},
    {"BUSY ", STATUS_UNAVAILABLE, "the server is busy with a script"},
    {"OOM ", STATUS_FULL, "the server has no memory left (maxmemory)"},
    {"MISCONF ", STATUS_FULL, "the server takes no writes because it cannot save its data"},
    {"NOREPLICAS ", STATUS_UNAVAILABLE, "the server takes no writes while replicas are missing"},
    {"WRONGTYPE ", STATUS_MALFORMED, "the key holds something else than a string"},
    {"TOOLARGE", STATUS_MALFORMED, "the value is larger than 32 MiB"},
    {"ERR Client sent AUTH, but no password is set", STATUS_UNAVAILABLE,
     "the server has no password, but one is configured"},
    {"ERR AUTH ", STATUS_UNAVAILABLE, "the server has no password, but one is configured"},
    {"ERR DB index", STATUS_UNAVAILABLE, "the server has no database of that number"},
    {"ERR max number of clients", STATUS_UNAVAILABLE, "the server has its maximum of clients"},
    {"ERR invalid DB index", STATUS_UNAVAILABLE, "the server has no database of that number"},
};

/* In "EXECABORT Transaction discarded because of: NOPERM …" as well. */
bool redis_reply_is_refusal(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ERROR && strstr(reply->str, "NOPERM ") != NULL;
}

enum status redis_error_of_reply(const redisReply *reply, const char *what, struct error *error)
{
    const char *text = reply->type == REDIS_REPLY_ERROR ? reply->str : "";
    for (size_t i = 0; i < sizeof meanings / sizeof meanings[0]; i++)
        if (strncmp(text, meanings[i].code, strlen(meanings[i].code)) == 0)
            return error_set(error, meanings[i].status, "%s: %s", what, meanings[i].text);
    if (redis_reply_is_refusal(reply))
        return error_set(error, STATUS_UNAVAILABLE, "%s: the user may not do that", what);
    /* The rest of an error may repeat what was sent. Its first word does not. */
    int size = (int)strcspn(text, " ");
    return error_set(error, STATUS_UNAVAILABLE, "%s: unexpected answer %.*s", what,
                     size < 32 ? size : 32, text);
}
