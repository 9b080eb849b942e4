#ifndef CROUPIER_HTTP_HTTP_H
#define CROUPIER_HTTP_HTTP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/address.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "http/errors.h"

/*
 * HTTP/1.1 for one thread: a listening socket, its connections, requests in, replies out.
 *
 * llhttp finds the parts of a request; this layer decides whether it is one (framing doubt ends in
 * a JSON error document and a closed connection, never in a repair: RFC 9112 section 11.2), keeps
 * the bounds and deadlines, and sends replies in the order of their requests. It knows no route and
 * no JSON but its own refusals. Everything runs on the loop's thread; nothing here is shared
 * between threads except `struct http_message`, which is immutable and counted.
 *
 * A request is handed to the handler when its head and whole body have arrived. The handler replies
 * at once or later, exactly once, with one of the http_reply_* calls; all texts of the request stay
 * valid and in place until then, and the request is gone when that call returns. If the connection
 * dies first, `abandoned` is called (once) and the request is gone: no reply may follow. A request
 * that was replied to is never abandoned. A client that has only shut its side (FIN) may still be
 * reading, so it gets its answer; nothing on the wire tells it from one that has closed.
 */

/* ---- bounds (docs/configuration.md, "Fixed limits") ------------------------------------------ */
#define HTTP_TARGET_MAX 8192U    /* 414 uri_too_long */
#define HTTP_HEAD_MAX 16384U     /* field lines in all: 431 headers_too_large */
#define HTTP_FIELDS_MAX 100U     /* 431 */
#define HTTP_BODY_MAX 16384U     /* 413 payload_too_large */
#define HTTP_PIPELINE_MAX 65536U /* bytes read ahead of the request being answered */

/* ---- ready-made messages --------------------------------------------------------------------- */

/*
 * A reply that is kept ready: the status line and constant header fields as bytes (each line ends
 * in CRLF, without the empty line at the end), and the body. Immutable, shared by all threads,
 * counted; sent without copying. The head must contain Content-Length unless the status is 304.
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

/* Methods that exist here; any other is refused with 501 before a handler sees it. */
enum http_method {
    METHOD_GET,
    METHOD_HEAD,
    METHOD_POST,
    METHOD_PUT,
    METHOD_DELETE,
    METHOD_PATCH,
    METHOD_OPTIONS,
    METHOD_TRACE,
    METHOD_CONNECT,
};
const char *http_method_name(enum http_method method);

/* The header fields that anybody here looks at. Others are checked and forgotten. */
enum http_field {
    HTTP_FIELD_HOST,
    HTTP_FIELD_AUTHORIZATION,
    HTTP_FIELD_X_API_KEY,
    HTTP_FIELD_X_FORWARDED_FOR,
    HTTP_FIELD_ACCEPT_ENCODING,
    HTTP_FIELD_IF_NONE_MATCH,
    HTTP_FIELD_CONTENT_TYPE,
    HTTP_FIELD_CONTENT_ENCODING,
    HTTP_FIELD_EXPECT,
    HTTP_FIELD_PREFER,
    HTTP_FIELD_X_CROUPIER_PROVIDER,
    HTTP_FIELD_X_CROUPIER_TIMESTAMP,
    HTTP_FIELD_X_CROUPIER_SIGNATURE,
    HTTP_FIELD_X_CROUPIER_KEY_ID,
    HTTP_FIELD_COOKIE,
    HTTP_FIELD_IF_MATCH,
    HTTP_FIELD_ORIGIN,
    HTTP_FIELD_SEC_FETCH_SITE,
    HTTP_FIELD_OTHER,
};
#define HTTP_FIELD_COUNT HTTP_FIELD_OTHER

struct http_field_line {
    struct text value;     /* trimmed of spaces and tabs */
    enum http_field field; /* never HTTP_FIELD_OTHER */
};

struct http_server;
struct http_connection;

#define HTTP_NOTE_SIZE 65 /* with the NUL; what is longer is cut */

struct http_request {
    enum http_method method;
    /* From the target, absolute-form reduced to its path. Percent-encoded unreserved characters are
     * decoded (RFC 3986 section 6.2.2.2), all else is as sent. */
    struct text path;
    struct text query;                   /* after '?', as sent; size 0 when there is none */
    const struct http_field_line *lines; /* the known fields, in the order they came */
    uint32_t line_count;
    uint8_t field_count
        [HTTP_FIELD_COUNT]; /* how many lines of each there are (255 means 255 or more) */
    struct text body;
    struct address peer; /* of the TCP connection */
    char id[24];         /* X-Request-Id of the answer; NUL-terminated */
    uint64_t started_ns; /* monotonic: when the first byte of the request was seen */

    uint64_t parked_ns; /* monotonic: when it was put aside first; 0: it was not */

    /* The user's. `user` starts as zeros for every request; `connection_user` is kept (zeros at
     * first) as long as the connection, for what is worth remembering between requests. Sizes come
     * from http_server_options. */
    void *user;
    void *connection_user;
    /* For the log, when it is over. */
    const struct http_error *error; /* that it was replied with; NULL: with none */
    struct {
        struct text what; /* a constant; empty: nothing is noted */
        char id[HTTP_NOTE_SIZE];
    } note; /* see http_request_note */

    /* Called when the client goes away before the reply; may stay NULL. See also
     * http/deferral.h. */
    void (*abandoned)(struct http_request *request);
    void *deferral; /* belongs to whoever set `abandoned` */

    struct http_connection *connection;
};

/* The next line of that field from the line `*at` on, which it steps over, or the empty text with
 * at == NULL. */
struct text http_request_next_field(const struct http_request *request, enum http_field field,
                                    uint32_t *at);

/* The first line of that field, or the empty text with at == NULL. */
struct text http_request_field(const struct http_request *request, enum http_field field);

/* Its value when there is exactly one line of that field, else the empty text: two are none. */
struct text http_request_only_field(const struct http_request *request, enum http_field field);

/* Adds "name: value" to the reply that will follow, beside the reply's own fields. Bounded (768
 * bytes in all, CHECKed: only constants and numbers are added). */
void http_request_add_field(struct http_request *request, struct text name, struct text value);

/* No request follows on its connection, which ends after the reply to this one. */
void http_request_end_connection(struct http_request *request);

/* Notes which launch, transaction or the like it is about, for the log. `what` is a constant; `id`
 * is copied. The last note counts. */
void http_request_note(struct http_request *request, struct text what, const char *id);

/* ---- replies: exactly one for each request --------------------------------------------------- */

/* Sends a ready-made message (takes its own reference), with Date, X-Request-Id and the added
 * fields. Leaves the body away for HEAD. */
void http_reply_message(struct http_request *request, struct http_message *message);

/* Sends a JSON document (copied), with Content-Type, nosniff and `Cache-Control: no-store`. */
void http_reply_json(struct http_request *request, int status, struct text body);

/* The same with another content type, a constant: the operator listener's metrics. */
void http_reply_text(struct http_request *request, int status, const char *content_type,
                     struct text body);

/* Sends the error's document: {"error": code, "message": message}. */
void http_reply_error(struct http_request *request, const struct http_error *error);

/* Appends that document, with another message where one is given. */
void http_error_write(const struct http_error *error, const char *message, struct buffer *out);

/* The same with another message (copied), which must hold nothing of the request. */
void http_reply_error_as(struct http_request *request, const struct http_error *error,
                         const char *message);

/* ---- requests put aside ---------------------------------------------------------------------- */

/*
 * A request without a body may be put aside for a long time: its connection then holds no exchange
 * for it, only its bytes and a pointer to this struct, which is part of whatever waits. Requests
 * that come behind it wait for its answer.
 */
struct http_parked {
    /* Called from the loop. `gone`: the client has gone, and no answer may follow. `ended`: the
     * request may not wait any longer (see http_may_wait) and must be answered soon; this may be
     * called again before it is. */
    void (*gone)(struct http_parked *parked);
    void (*ended)(struct http_parked *parked);
    struct http_connection *connection; /* from here on http's; NULL: not parked */
    uint64_t since_ns;                  /* when it was parked first */
    char *added; /* what http_request_add_field had added before it was parked first */
    uint32_t added_size;
};

/* The request is gone when this returns true. False: it has to be answered now, because it has a
 * body, may not wait (see http_may_wait), or the server drains. */
bool http_park(struct http_parked *parked, struct http_request *request);

/* The request, as it was when it came, but for `id`, `user` (zeros), parked_ns and started_ns
 * (now): to be replied to, deferred, or parked again. */
struct http_request *http_unpark(struct http_parked *parked);

/* ---- content negotiation (pure) -------------------------------------------------------------- */

/* Does Accept-Encoding (all its lines) prefer gzip to identity? RFC 9110 section 12.5.3: "gzip" or
 * "x-gzip" or "*" with a q above 0 and not below identity's explicit q. No field: false. */
bool http_accepts_gzip(const struct http_request *request);

/* Is the body encoded in some way (Content-Encoding, all its lines), beside "identity", which
 * changes nothing? RFC 9110 section 8.4. */
bool http_body_is_encoded(const struct http_request *request);

/* Is there an If-Match that neither is "*" nor names this strong entity tag (given with its quotes)
 * by strong comparison? RFC 9110 section 13.1.1. */
bool http_precondition_fails(const struct http_request *request, struct text etag);

/* Does If-None-Match name this strong entity tag (given with its quotes), by weak comparison, or
 * "*"? RFC 9110 section 13.1.2. */
bool http_matches_etag(const struct http_request *request, struct text etag);

/* The same, but "*" names none. */
bool http_names_etag(const struct http_request *request, struct text etag);

/* The seconds of `Prefer: wait=N` (RFC 7240 section 4.3), at most `most`; 0: it is not preferred to
 * wait. Of several the first counts. */
uint32_t http_preferred_wait(const struct http_request *request, uint32_t most);

/* May its answer be kept back for long? Not when the client has ended its half of the connection:
 * it may still read an answer, but has probably gone. Nor when more than HTTP_PIPELINE_MAX bytes
 * were sent behind the request: reading has stopped, so a client that goes would not be noticed. */
bool http_may_wait(const struct http_request *request);

/* ---- the server of one thread ---------------------------------------------------------------- */

struct http_tls; /* certificate and key, shared by all threads; see http/tls.h */

/* What was answered, for the access log and metrics: called once for each reply when its last byte
 * has been handed to the kernel (or the connection died before: then `complete` is false). For
 * refusals before there was a request, `request` has only what was known; `refused` is true. */
struct http_outcome {
    const struct http_request *request;
    int status;
    uint64_t bytes;
    uint64_t duration_ns; /* without waited_ns */
    uint64_t waited_ns;   /* that it was parked for; 0: it was not */
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
    /* At the limit a new connection takes the place of one whose client does not read its answer,
     * else of one without a whole request, else of one that is being answered. It is refused only
     * where the handler has all the requests. */
    bool makes_room;
    struct http_deadlines deadlines;
    void (*handle)(void *context, struct http_request *request);
    void (*finished)(void *context, const struct http_outcome *outcome); /* may be NULL */
    void (*event)(void *context, enum http_event event);                 /* may be NULL */
    /* A connection from `peer` was accepted: by how many has this peer more than it may? One too
     * many is refused as one over the limit is. NULL: all may. */
    uint32_t (*opened)(void *context, const struct address *peer);
    /* It has gone; `user` is its connection_user. Called once for each call of `opened`; NULL where
     * that is. */
    void (*closed)(void *context, const struct address *peer, void *user);
    void *context;
    struct log *log;
};

/*
 * Opens a listening socket. With `share`, several threads listen on one address (SO_REUSEPORT),
 * each with a socket of its own: call this once a thread with the same `bound`, which must be 0 at
 * first. The first call makes sure that no other process has the address (SO_REUSEPORT alone would
 * let a second croupier share it silently) and sets `bound` to the port, also when port is 0; the
 * others join that port.
 *
 * "::" takes IPv4 clients too. The descriptor is listening already; http_server_create takes it
 * over. The error names address and reason.
 */
MUST_CHECK enum status http_listen(const char *host, uint16_t port, bool share, int *descriptor,
                                   uint16_t *bound, struct error *error);

/* Is this the listening socket of that address? `bound` is its port. STATUS_INVALID: it is not. */
MUST_CHECK enum status http_listen_check(const char *host, uint16_t port, int descriptor,
                                         uint16_t *bound, struct error *error);

struct http_server *http_server_create(const struct http_server_options *options, int descriptor);

/* These may change while it runs (SIGHUP). */
void http_server_set_deadlines(struct http_server *server, const struct http_deadlines *deadlines);
void http_server_set_tls(struct http_server *server, struct http_tls *tls);

/* Before the end, where another process has the listening socket as well and accepts from it:
 * accepts no more, and leaves what is in its queue. */
void http_server_hand_over(struct http_server *server);

/*
 * Graceful end. The next answer on each connection carries `Connection: close`; a connection on
 * which no request comes closes after idle_ms, a new one after a second at least. Connections are
 * accepted until none is left or idle_ms have passed; then the address is given up, without
 * resetting a connection that was accepted. `drained` is called once when no connection is left.
 */
void http_server_drain(struct http_server *server, uint32_t idle_ms,
                       void (*drained)(void *context));
/* The drain took too long: closes everything now (requests are abandoned), then `drained` fires. */
void http_server_abort(struct http_server *server);

size_t http_server_connections(const struct http_server *server);

/* Only when drained. */
void http_server_destroy(struct http_server **server);

#endif
