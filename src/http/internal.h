#ifndef CROUPIER_HTTP_INTERNAL_H
#define CROUPIER_HTTP_INTERNAL_H

#include <sys/queue.h>

#include "http/http.h"
#include "http/intake.h"
#include "http/memo.h"
#include "http/tls_session.h"

/*
 * What the files of http/ share: the server of a thread, its connections, and the exchange (a
 * request with the reply to it) that a connection is busy with. Private to http/.
 *
 *   server.c      listening, accepting, limits, the sweep of deadlines, draining
 *   connection.c  a connection's life: what it is doing, what arrives, when it ends
 *   output.c      bytes to the kernel, plain or through TLS
 *   park.c        a request put aside, and back
 *   exchange.c    a request with its reply: from a message to those bytes
 *   message.c     what is ready to be sent; from a document or an error to a message
 *   memo.c        a request that comes again
 *   intake.c      bytes to a request, with target.c for its target and chunk_line.c for its chunks
 *   tls.c         ciphertext to bytes and back
 *   listen.c      listening sockets, made when the service starts
 *
 * The domains use deferral.c (requests that wait for data), answer.c (a body in its encodings) and
 * negotiate.c (which of them, and whether at all).
 *
 * Calls go down this list and never up: what a file has to say to one above it, it returns, or it
 * calls back (`closed`, `sent`).
 *
 * A connection is in one state at a time:
 *
 *   OPENING ──▶ IDLE ──▶ RECEIVING ──▶ HANDLING ──▶ WRITING ──▶ IDLE … ──▶ LINGERING ──▶ CLOSED
 *                                      ▲    ▼
 *                                      PARKED
 *
 * It has an exchange from RECEIVING to the end of WRITING, but not while it is PARKED. Idle
 * connections own no buffer at all: all reads of a thread go to one buffer, and exchanges come from
 * the server's store of them.
 */
#define HTTP_READ_SIZE 65536U
#define HTTP_RECORD_SIZE 16384U /* the most plain text that a TLS record holds */
#define HTTP_SWEEP_MS 250U
#define HTTP_LINGER_MS 2000U             /* for a refused client to read the answer */
#define HTTP_LINGER_BYTES (256U * 1024U) /* that it may go on sending meanwhile */
#define HTTP_REFUSAL_RESERVE 64U       /* connections over the limit that are answered at a time */
#define HTTP_SPARE_EXCHANGES 256U      /* kept for reuse */
#define HTTP_ERROR_SLOTS 128U          /* more than there are errors */
#define HTTP_UNSENT_MAX (512U * 1024U) /* of ciphertext copies a client may let pile up */

#define HTTP_DATE_HEAD_SIZE (sizeof "Date: Sat, 21 Nov 2026 04:53:17 GMT\r\nX-Request-Id: " - 1)
#define HTTP_ID_SIZE 21U /* ten random characters of the server, '-', a counter of ten */
#define HTTP_ADDED_MAX 768U
#define HTTP_ADDED_AT (HTTP_DATE_HEAD_SIZE + HTTP_ID_SIZE + 2)
#define HTTP_REPLY_HEAD_SIZE (HTTP_ADDED_AT + HTTP_ADDED_MAX + 32)

enum connection_state {
    CONNECTION_OPENING,   /* TLS handshake */
    CONNECTION_IDLE,      /* between requests */
    CONNECTION_RECEIVING, /* a request has begun */
    CONNECTION_HANDLING,  /* it is with the handler */
    CONNECTION_PARKED,    /* it is put aside, and the connection has no exchange meanwhile */
    CONNECTION_WRITING,   /* the kernel has not taken all of the reply yet */
    CONNECTION_LINGERING, /* our side is shut; what still comes is thrown away */
    CONNECTION_CLOSED,    /* waiting for libuv to let go */
};

#define EXCHANGE_MAGIC 0x45584348U
#define CONNECTION_MAGIC 0x434F4E4EU

struct http_exchange {
    struct http_request request; /* first: handlers' pointers lead back here */
    uint32_t magic;              /* EXCHANGE_MAGIC while a connection has it */
    uint32_t added_size;
    SLIST_ENTRY(http_exchange) link; /* of those kept for reuse */
    bool replied;
    bool refused;
    int status;
    uint64_t waited_ns; /* parked */
    uint32_t kept_size; /* of what was added before that */
    uint64_t bytes;
    /* What the kernel has not taken yet; the message is held meanwhile. */
    struct http_message *held;
    struct text rest[3];
    uv_write_t write;
    /* What stands before is zeroed for each request. */
    char reply_head[HTTP_REPLY_HEAD_SIZE]; /* Date, X-Request-Id, the added fields, Connection */
    struct http_intake intake;
    /* request->user follows */
};

/* What became of bytes that were to be sent. */
enum http_output {
    OUTPUT_SENT,    /* the kernel has them all */
    OUTPUT_WAITING, /* the rest goes when the client has taken some */
    OUTPUT_BROKEN,  /* nothing more can be sent: close the connection */
};

struct http_connection {
    uv_tcp_t tcp; /* data: the connection */
    uint32_t magic;
    enum connection_state state;
    struct http_server *server;
    LIST_ENTRY(http_connection) link;                   /* all connections of the server */
    void (*closed)(struct http_connection *connection); /* libuv has let go of it */
    /* What became of output that was WAITING: SENT is the whole reply's. */
    void (*sent)(struct http_connection *connection, enum http_output result);
    struct http_exchange *exchange;
    struct tls_session *tls;    /* NULL: plain */
    struct http_memo *memo;     /* of its last request; NULL: none */
    struct http_parked *parked; /* PARKED */
    uint64_t deadline_ms;       /* by clock_loop_ms; 0: none */
    size_t unsent;              /* what libuv had left to write at the last sweep */
    struct buffer ahead;        /* read ahead of the request being answered */
    size_t ahead_start;
    uint32_t linger_left;
    uint32_t copies_in_flight; /* writes of ciphertext that libuv has not finished */
    uint8_t blank;             /* bytes of empty lines skipped before a request */
    bool processing;           /* process is on the stack */
    bool served;               /* a request has begun on it */
    bool close_after;          /* this exchange is the last */
    bool tls_begun;            /* the client has sent the first of its TLS */
    bool tls_missing;          /* it speaks plain HTTP where TLS is wanted */
    bool more_input;           /* behind the request of this exchange something has arrived */
    bool input_ended;          /* the client has sent FIN (or close_notify) */
    bool read_stopped;
    struct address peer;
    /* request->connection_user follows */
};

struct http_server {
    struct http_server_options options;
    uv_poll_t listener;
    int descriptor; /* of the listening socket; -1: none */
    int reserve;    /* a descriptor kept for refusing a connection when there is none left */
    uv_timer_t sweep;
    LIST_HEAD(, http_connection) connections;
    size_t connection_count;
    SLIST_HEAD(, http_exchange) spare_exchanges;
    size_t spare_exchange_count;
    struct { /* a hash table of the errors that have been answered, with their messages */
        const struct http_error *error;
        struct http_message *message;
    } errors[HTTP_ERROR_SLOTS];
    struct http_tls *tls; /* held */
    char date_head[HTTP_DATE_HEAD_SIZE + 1];
    uint64_t date_checked_ms;
    int64_t date_second;
    char id_start[11];
    uint64_t id_counter;
    uint64_t accept_failed_ms;
    uint64_t swept_ms;
    bool swept_late;
    bool accept_paused; /* accepting failed; the sweep tries again */
    bool listener_closed;
    bool draining;
    bool turning_away;        /* no new connection can begin */
    uint64_t drain_idle_ms;   /* how long a connection may be idle while draining */
    uint64_t drain_accept_ms; /* by clock_loop_ms; until then it goes on accepting */
    bool drained_reported;
    void (*drained)(void *context);
    char *read_buffer;
    char *plain_buffer;   /* with TLS */
    struct buffer cipher; /* with TLS: what is to be sent next */
};

static inline void http_tell(struct http_server *server, enum http_event event)
{
    if (server->options.event != NULL)
        server->options.event(server->options.context, event);
}

/* ---- server.c -------------------------------------------------------------------------------- */
/* A connected stream socket becomes a connection; for accepting, and for tests and the fuzzer. */
void http_server_adopt(struct http_server *server, int descriptor);

/* ---- connection.c ---------------------------------------------------------------------------- */
/* A zeroed connection whose tcp handle is initialised: puts it to work. */
void http_connection_start(struct http_connection *connection);
/* Answers with the error and ends the connection; in any state before HANDLING. */
void http_connection_refuse(struct http_connection *connection, const struct http_error *error);
void http_connection_close(struct http_connection *connection);
void http_connection_sweep(struct http_connection *connection, uint64_t now_ms);
/* The server drains: an idle connection closes soon, or now. */
void http_connection_drain(struct http_connection *connection);

/* ---- output.c -------------------------------------------------------------------------------- */
/* Sends exchange->rest, parts of `message`. */
enum http_output http_output_reply(struct http_connection *connection,
                                   struct http_message *message);
/* The others send now what the kernel takes and a copy of the rest later, of which only a failure
 * is reported: a few bytes outside any reply ("100 Continue"); the ciphertext that a TLS session
 * has left in server->cipher; the end of our side of the stream. */
enum http_output http_output_interim(struct http_connection *connection, struct text bytes);
enum http_output http_output_cipher(struct http_connection *connection);
enum http_output http_output_shutdown(struct http_connection *connection);

/* ---- park.c ---------------------------------------------------------------------------------- */
/* What was parked is so no more, and what was kept of it is freed. */
struct http_parked *http_parked_take(struct http_connection *connection);

/* ---- exchange.c ------------------------------------------------------------------------------ */
/* One for a request of this connection, which begins now. */
struct http_exchange *http_exchange_begin(struct http_connection *connection);
void http_exchange_give_back(struct http_server *server, struct http_exchange *exchange);
/* What was added to its reply before it was parked first, and adding that to another's. */
struct text http_exchange_added(const struct http_exchange *exchange);
void http_exchange_add(struct http_exchange *exchange, struct text added);
/* Makes the message the reply: what has to be sent stands in `rest`. */
void http_exchange_reply(struct http_server *server, struct http_exchange *exchange,
                         struct http_message *message, bool close_after);

/* ---- message.c ------------------------------------------------------------------------------- */
/* The caller's own. */
struct http_message *http_message_of_text(int status, const char *content_type, struct text body);
/* The server's, made when it is first asked for. */
/* A message of its own for each call, with this text; the caller has its reference. */
struct http_message *http_message_make_error(const struct http_error *error, const char *text);
struct http_message *http_message_of_error(struct http_server *server,
                                           const struct http_error *error);

#endif
