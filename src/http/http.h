#pragma once

#include <uv.h>

#include "base/address.h"
#include "base/log.h"
#include "base/relaxed.h"
#include "http/errors.h"

/*
 * HTTP/1.1 for one thread: a listening socket, its connections, requests in, replies out.
 *
 * llhttp finds the parts of a request. This layer decides whether they form a valid request,
 * enforces bounds and deadlines, and sends replies in the order of their requests. When the framing
 * is in doubt, it answers with a JSON error document and closes the connection; it never repairs
 * (RFC 9112 section 11.2). It knows no routes, and no JSON except its own errors. Everything runs
 * on the loop's thread. Threads share only `struct http_message`, which is immutable and
 * reference-counted.
 *
 * The handler gets a request when its head and whole body have arrived. It replies exactly once, at
 * once or later, with one of the http_reply_* calls. Until then all texts of the request stay valid
 * and in place; the request must not be used after that call. If the connection closes first,
 * `abandoned` is called once and no reply may follow. A request that was replied to is never
 * abandoned. A client that has sent FIN may still be reading, so it gets its answer: on the wire it
 * looks the same as a client that has closed.
 */

/* ---- bounds (docs/configuration.md, "Fixed limits") ------------------------------------------ */
#define HTTP_TARGET_MAX 8192U    /* 414 uri_too_long */
#define HTTP_HEAD_MAX 16384U     /* field lines in all: 431 headers_too_large */
#define HTTP_FIELDS_MAX 100U     /* 431 */
#define HTTP_BODY_MAX 16384U     /* 413 payload_too_large */
#define HTTP_PIPELINE_MAX 65536U /* bytes read ahead of the request being answered */

/* ---- ready-made messages --------------------------------------------------------------------- */

/*
 * A prepared reply: the status line and constant header fields as bytes (each line ends in CRLF,
 * without the empty line at the end), and the body. Immutable, shared by all threads,
 * reference-counted. The head must contain Content-Length unless the status is 304.
 */
struct http_message {
    atomic_uint references;
    uint16_t status;
    uint32_t head_size;
    size_t body_size;
    const char *head; /* both live in the message's own allocation */
    const char *body;
};

/* Starts with one reference. Copies head and body. */
struct http_message *http_message_create(uint16_t status, struct text head, struct text body);
struct http_message *http_message_hold(struct http_message *message);
void http_message_release(struct http_message **message);

/* ---- requests -------------------------------------------------------------------------------- */

/* The methods that the server knows. Any other is refused with 501 before a handler sees it. A row
 * GET is METHOD_GET. */
#define HTTP_METHODS(ROW) \
    ROW(GET)              \
    ROW(HEAD)             \
    ROW(POST)             \
    ROW(PUT)              \
    ROW(DELETE)           \
    ROW(PATCH)            \
    ROW(OPTIONS)          \
    ROW(TRACE)            \
    ROW(CONNECT)
#define HTTP_METHOD_DECLARE(name_) METHOD_##name_,
enum http_method { HTTP_METHODS(HTTP_METHOD_DECLARE) };
const char *http_method_name(enum http_method method);

/* The header fields that handlers read, with their names in small letters. Others are checked and
 * dropped. */
#define HTTP_FIELDS(ROW)                                    \
    ROW(HOST, "host")                                       \
    ROW(AUTHORIZATION, "authorization")                     \
    ROW(X_API_KEY, "x-api-key")                             \
    ROW(X_FORWARDED_FOR, "x-forwarded-for")                 \
    ROW(ACCEPT_ENCODING, "accept-encoding")                 \
    ROW(IF_NONE_MATCH, "if-none-match")                     \
    ROW(AVAILABLE_DICTIONARY, "available-dictionary")       \
    ROW(CONTENT_TYPE, "content-type")                       \
    ROW(CONTENT_ENCODING, "content-encoding")               \
    ROW(EXPECT, "expect")                                   \
    ROW(PREFER, "prefer")                                   \
    ROW(TRACEPARENT, "traceparent")                         \
    ROW(X_CROUPIER_PROVIDER, "x-croupier-provider")         \
    ROW(X_CROUPIER_TIMESTAMP, "x-croupier-timestamp")       \
    ROW(X_CROUPIER_SIGNATURE, "x-croupier-signature")       \
    ROW(X_CROUPIER_KEY_ID, "x-croupier-key-id")             \
    ROW(COOKIE, "cookie")                                   \
    ROW(IF_MATCH, "if-match")                               \
    ROW(ORIGIN, "origin")                                   \
    ROW(SEC_FETCH_SITE, "sec-fetch-site")                   \
    ROW(X_CROUPIER_PROXY_SECRET, "x-croupier-proxy-secret") \
    ROW(X_CROUPIER_FAULT, "x-croupier-fault")               \
    ROW(NAMED, "") /* named_field of the server's options */
#define HTTP_FIELD_DECLARE(field_, name_) HTTP_FIELD_##field_,
enum http_field { HTTP_FIELDS(HTTP_FIELD_DECLARE) HTTP_FIELD_OTHER };
#define HTTP_FIELD_COUNT HTTP_FIELD_OTHER

struct http_field_line {
    struct text value;     /* trimmed of spaces and tabs */
    enum http_field field; /* never HTTP_FIELD_OTHER */
};

struct http_server;
struct http_connection;

/* A client may get this in place of a reply: the connection ends without it, or 500. */
enum http_instead { HTTP_INSTEAD_NONE, HTTP_INSTEAD_NOTHING, HTTP_INSTEAD_500 };

#define HTTP_NOTE_SIZE 65 /* with the NUL; a longer id is cut */

struct http_codings {
    bool gzip, dcz;
    bool known; /* read already */
};

struct http_request {
    enum http_method method;
    /* The path of the target, also of one in absolute form. Percent-encoded unreserved characters
     * are decoded (RFC 3986 section 6.2.2.2); the rest is as sent. */
    struct text path;
    struct text query;                   /* after '?', as sent; size 0 when there is none */
    const struct http_field_line *lines; /* the known fields, in the order they came */
    uint32_t line_count;
    uint8_t field_count
        [HTTP_FIELD_COUNT]; /* how many lines of each there are (255 means 255 or more) */
    struct text body;
    struct address peer; /* of the TCP connection */
    char id[24];         /* X-Request-Id of the answer; NUL-terminated */
    uint64_t started_ns; /* monotonic: when its first byte was read */

    uint64_t parked_ns; /* monotonic: when it was first parked; 0: never */
    /* It is the last request of its connection once more: the same bytes, except for the values of
     * If-None-Match and Available-Dictionary. */
    bool repeated;
    struct http_codings codings; /* see http_accepted_codings */

    /* For the handler. `user` starts as zeros for every request. `connection_user` starts as zeros
     * and lives as long as the connection, for data that later requests can reuse.
     * http_server_options gives the sizes. */
    void *user;
    void *connection_user;
    /* For the access log, when the request ends. */
    const struct http_error *error; /* the error it was answered with; NULL: none */
    struct {
        struct text what; /* a constant; empty: nothing is noted */
        char id[HTTP_NOTE_SIZE];
    } note; /* see http_request_note */

    enum http_instead instead; /* of the reply that the handler gives */

    /* Called when the client closes before the reply; may be NULL. See also http/deferral.h. */
    void (*abandoned)(struct http_request *request);
    void *deferral; /* for the code that set `abandoned` */

    struct http_connection *connection;
};

/* The next line of that field, searched from index `*at`, which is moved past it. False: there is
 * none, and `line` is the empty text with at == NULL. */
bool http_request_next_field(const struct http_request *request, enum http_field field,
                             uint32_t *at, struct text *line);

/* The first line of that field, or the empty text with at == NULL. */
struct text http_request_field(const struct http_request *request, enum http_field field);

/* The value of the field if the request has exactly one line of it, else the empty text. */
struct text http_request_only_field(const struct http_request *request, enum http_field field);

/* Writes the request's traceparent (W3C Trace Context), as version 00. False: the request has none,
 * several, or a malformed one. */
#define HTTP_TRACE_SIZE 56 /* "00-", 32 digits of the trace, "-", 16 of the parent, "-", flags */
#define HTTP_TRACE_ID(trace_) ((struct text){(trace_) + 3, 32})
MUST_CHECK bool http_request_trace(const struct http_request *request, char out[HTTP_TRACE_SIZE]);

/* Adds "name: value" to the reply that will follow, beside the reply's own fields. All added fields
 * together may take HTTP_ADDED_MAX (768) bytes, which a CHECK enforces: only constants and numbers
 * are added. */
void http_request_add_field(struct http_request *request, struct text name, struct text value);

/* Ends the connection after the reply to this request. */
void http_request_end_connection(struct http_request *request);

/* Notes for the log which launch, transaction or similar the request concerns. `what` is a
 * constant; `id` is copied. A later note replaces an earlier one. */
void http_request_note(struct http_request *request, struct text what, const char *id);

/* ---- replies: exactly one for each request --------------------------------------------------- */

/* Sends a prepared message, with Date, X-Request-Id and the added fields. Takes its own reference
 * if it needs one. Omits the body for HEAD. */
void http_reply_message(struct http_request *request, struct http_message *message);

/* Sends a JSON document (copied), with Content-Type, nosniff and `Cache-Control: no-store`. */
void http_reply_json(struct http_request *request, int status, struct text body);

/* The same with another content type, a constant: the operator listener's metrics. */
void http_reply_text(struct http_request *request, int status, const char *content_type,
                     struct text body);

/* Sends the error's document: {"error": code, "message": message}. */
void http_reply_error(struct http_request *request, const struct http_error *error);

/* Appends that document. If `message` is not NULL, it replaces the error's message. */
void http_error_write(const struct http_error *error, const char *message, struct buffer *out);

/* Sends the error's document with another message (copied; NULL: the error's), which must contain
 * no text from the request. */
void http_reply_error_as(struct http_request *request, const struct http_error *error,
                         const char *message);

/* Sends another document, the caller's, for the error. All three note the error for
 * the log; a 503 or 504 asks for a pause (Retry-After). */
void http_reply_error_document(struct http_request *request, const struct http_error *error,
                               struct text document);

/* ---- requests put aside ---------------------------------------------------------------------- */

/*
 * A request without a body may be parked for a long time. Its connection then holds no exchange for
 * it, only its bytes and a pointer to this struct, which the caller embeds in its own. Requests
 * behind it on the connection wait for its answer.
 */
struct http_parked {
    /* Called from the loop. `gone`: the client has closed, and no answer may follow. `ended`: the
     * request may not wait any longer (see http_may_wait) and must be answered soon; this may be
     * called more than once. */
    void (*gone)(struct http_parked *parked);
    void (*ended)(struct http_parked *parked);
    struct http_connection *connection; /* from here on http's own; NULL: not parked */
    uint64_t since_ns;                  /* when it was first parked */
};

/* True: the request is parked, and the caller must not use `request` any more. False: it must be
 * answered now, because it has a body, has got more fields for its reply than a rate limit adds,
 * may not wait (see http_may_wait), or the server drains. */
bool http_park(struct http_parked *parked, struct http_request *request);

/* Returns the request as it arrived, with a new `id`, `user` zeroed, parked_ns set and started_ns
 * set to now. The caller replies to it, defers it or parks it again. */
struct http_request *http_unpark(struct http_parked *parked);

/* ---- content negotiation (pure) -------------------------------------------------------------- */

/*
 * The codings that Accept-Encoding (all its lines) names; RFC 9110 section 12.5.3. `gzip`: it
 * prefers gzip to identity, by "gzip" or "x-gzip" or "*" with a q above 0 and not below identity's
 * explicit q. `dcz`: it names that coding (RFC 9842) with a q above 0; "*" does not. No field:
 * neither.
 */
struct http_codings http_accepted_codings(const struct http_request *request);

/* Does Content-Encoding (all its lines) name any coding other than "identity", which changes
 * nothing? RFC 9110 section 8.4. */
bool http_body_is_encoded(const struct http_request *request);

/* Is there an If-Match that neither is "*" nor names this strong entity tag (given with its quotes)
 * by strong comparison? RFC 9110 section 13.1.1. */
bool http_precondition_fails(const struct http_request *request, struct text etag);

/* Does If-None-Match name this strong entity tag (given with its quotes), by weak comparison, or
 * "*"? RFC 9110 section 13.1.2. */
bool http_matches_etag(const struct http_request *request, struct text etag);

/* As http_matches_etag, for the tags of all forms of one content (answer.h), which begin with
 * `start`; "*" does not match. */
bool http_names_form(const struct http_request *request, struct text start);

/* No route lets a client wait for longer. */
#define HTTP_WAIT_SECONDS_MAX 55U

/* The seconds of `Prefer: wait=N` (RFC 7240 section 4.3), at most `most`. 0: the client does not
 * prefer to wait. The first of several counts. */
uint32_t http_preferred_wait(const struct http_request *request, uint32_t most);

/* May the answer wait for long? Not when the client has ended its half of the connection: it may
 * still read an answer, but has probably closed. Nor when the client has sent more than
 * HTTP_PIPELINE_MAX bytes behind the request: reading has stopped, so the server would not notice a
 * close. */
bool http_may_wait(const struct http_request *request);

/* ---- the server of one thread ---------------------------------------------------------------- */

struct http_tls; /* certificate and key, shared by all threads; see http/tls.h */

/* The outcome of a request, for the access log and metrics. `finished` gets one for each reply:
 * when the kernel has taken its last byte, or, with `complete` false, when the connection closed
 * before that. If this layer refused the request, `refused` is true and `request` may hold only the
 * parts that were read. */
struct http_outcome {
    const struct http_request *request;
    int status;
    uint64_t bytes;
    uint64_t duration_ns; /* without waited_ns */
    uint64_t waited_ns;   /* the time it was parked; 0: it was not */
    bool complete;
    bool refused;
};

enum http_event {
    HTTP_EVENT_OPENED,
    HTTP_EVENT_CLOSED,
    HTTP_EVENT_REFUSED,    /* over the limit of connections */
    HTTP_EVENT_TLS_FAILED, /* handshake failed */
};

struct http_deadlines {
    uint32_t header_seconds, body_seconds, write_seconds, idle_seconds;
};

struct http_server_options {
    uv_loop_t *loop;
    struct http_tls *tls;        /* borrowed; NULL: plain */
    size_t request_user_size;    /* bytes at request->user */
    size_t connection_user_size; /* bytes at request->connection_user; wiped on close */
    uint32_t connection_limit;   /* of this thread */
    struct text named_field;     /* a further field that the handler reads; "": none. Borrowed */
    /* At the limit the server closes another connection for a new one: first one whose client does
     * not read its answer, then one without a whole request, then one that is being answered. It
     * refuses the new one only if every other connection's request is with the handler. */
    bool makes_room;
    struct http_deadlines deadlines;
    void (*handle)(void *context, struct http_request *request);
    void (*finished)(void *context, const struct http_outcome *outcome); /* may be NULL */
    void (*event)(void *context, enum http_event event);                 /* may be NULL */
    /* A connection from `peer` was accepted. Returns by how many connections this peer is over its
     * own limit; above 0 the connection is refused as one over connection_limit is. NULL: peers
     * have no limit. */
    uint32_t (*opened)(void *context, const struct address *peer);
    /* The connection has closed; `user` is its connection_user, or NULL if it was refused at once.
     * Called once for each call of `opened`; NULL if `opened` is NULL. */
    void (*closed)(void *context, const struct address *peer, void *user);
    void *context;
    struct log *log;
};

/*
 * Opens a listening socket. With `share`, several threads listen on one address (SO_REUSEPORT),
 * each with its own socket: call this once for each thread with the same `bound`, which must start
 * as 0. The first call makes sure that no other process has the address (SO_REUSEPORT alone would
 * let a second croupier share it silently) and sets `bound` to the port, even when `port` is 0. The
 * other calls join that port.
 *
 * "::" takes IPv4 clients too. The descriptor is listening already; http_server_create takes it
 * over. The error names address and reason.
 */
MUST_CHECK enum status http_listen(const char *host, uint16_t port, bool share, int *descriptor,
                                   uint16_t *bound, struct error *error);

/* Could it listen there? Returns 0, or an errno: EADDRINUSE, EACCES, EADDRNOTAVAIL, … */
int http_listen_try(const char *host, uint16_t port);

/* Is this the listening socket of that address? `bound` is its port. STATUS_INVALID: it is not. */
MUST_CHECK enum status http_listen_check(const char *host, uint16_t port, int descriptor,
                                         uint16_t *bound, struct error *error);

struct http_server *http_server_create(const struct http_server_options *options, int descriptor);

/* They may change while the server runs (SIGHUP). */
void http_server_set_deadlines(struct http_server *server, const struct http_deadlines *deadlines);

/* Before the end, when another process shares the listening socket and accepts from it: stops
 * accepting, and leaves the queued connections to that process. */
void http_server_hand_over(struct http_server *server);

/*
 * Graceful end. The next answer on each connection carries `Connection: close`; a connection
 * without a request closes after idle_ms, a new one after at least a second. The server accepts
 * until no connection is left or idle_ms have passed. Then it closes the listening socket without
 * resetting connections in its queue. `drained` is called once, when no connection is left.
 */
void http_server_drain(struct http_server *server, uint32_t idle_ms,
                       void (*drained)(void *context));
/* The drain took too long: closes everything now (requests are abandoned), then `drained` fires. */
void http_server_abort(struct http_server *server);

/* Call it only when the server is drained. */
void http_server_destroy(struct http_server **server);
