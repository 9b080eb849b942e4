#pragma once

#include <sys/queue.h>

#include "http/memo.h"
#include "http/tls_session.h"

/*
 * Types that the files of http/ share: the server of a thread, its connections, and the exchange (a
 * request with its reply) that a connection is working on. Private to http/.
 *
 *   server.c      listening, accepting, limits, the sweep of deadlines, draining
 *   connection.c  the life of a connection: its state, its input and its end
 *   output.c      sends bytes to the kernel, plain or through TLS
 *   park.c        parks a request and brings it back
 *   exchange.c    a request with its reply: turns a message into the bytes to send
 *   message.c     prepared messages: made from a document or an error
 *   memo.c        recognises repeated requests by their bytes
 *   intake.c      turns bytes into a request, with target.c for its target and chunk_line.c for its
 *                 chunks
 *   tls.c         turns ciphertext into bytes and back
 *   listen.c      listening sockets, made when the service starts
 *
 * Other domains use deferral.c (requests that wait for data), answer.c (a body in its encodings)
 * and negotiate.c (which encoding to send, and whether to send the body).
 *
 * Calls go down this list and never up. A file reports to one above it by its return value or by a
 * callback (`closed`, `sent`).
 *
 * A connection is in one state at a time:
 *
 *   OPENING ──▶ IDLE ──▶ RECEIVING ──▶ HANDLING ──▶ WRITING ──▶ IDLE … ──▶ LINGERING ──▶ CLOSED
 *                                      ▲    ▼
 *                                      PARKED
 *
 * It has an exchange from RECEIVING to the end of WRITING, but not while it is PARKED. Idle
 * connections own no buffer: all reads of a thread go to one buffer, and the server keeps one spare
 * exchange for the next request.
 */
#define HTTP_READ_SIZE 65536U
#define HTTP_RECORD_SIZE 16384U /* the most plain text that a TLS record holds */
#define HTTP_SWEEP_MS 250U
#define HTTP_LINGER_MS 2000U             /* time for a client to read the last answer */
#define HTTP_LINGER_BYTES (256U * 1024U) /* discarded during that time */
#define HTTP_REFUSAL_RESERVE 64U /* connections over the limit that may get an answer at one time */
#define HTTP_UNSENT_MAX (512U * 1024U) /* of ciphertext copies queued for one client */

#define HTTP_DATE_HEAD_SIZE (sizeof "Date: Sat, 21 Nov 2026 04:53:17 GMT\r\nX-Request-Id: " - 1)
#define HTTP_ID_START_SIZE 10U /* random characters of the server */
#define HTTP_ID_SIZE 21U       /* those, '-', a counter of ten */
#define HTTP_ADDED_MAX 768U
#define HTTP_ADDED_AT (HTTP_DATE_HEAD_SIZE + HTTP_ID_SIZE + 2)
#define HTTP_REPLY_HEAD_SIZE (HTTP_ADDED_AT + HTTP_ADDED_MAX + 32)

enum connection_state {
    CONNECTION_OPENING,   /* TLS handshake */
    CONNECTION_IDLE,      /* between requests */
    CONNECTION_RECEIVING, /* a request has begun */
    CONNECTION_HANDLING,  /* it is with the handler */
    CONNECTION_PARKED,    /* the request is parked; the connection has no exchange */
    CONNECTION_WRITING,   /* the kernel has not taken all of the reply yet */
    CONNECTION_LINGERING, /* our side is shut; input is discarded */
    CONNECTION_CLOSED,    /* waiting for libuv to close the handle */
};

#define EXCHANGE_MAGIC 0x45584348U
#define CONNECTION_MAGIC 0x434F4E4EU

struct http_exchange {
    struct http_request request; /* first member: a request's address is its exchange's */
    uint32_t magic;              /* EXCHANGE_MAGIC while a connection uses it */
    uint32_t added_size;
    bool replied;
    bool refused;
    int status;
    uint64_t waited_ns; /* parked */
    uint32_t kept_size; /* of the fields added before that */
    uint64_t bytes;
    /* The parts that the kernel has not taken yet. `held` keeps their message alive. */
    struct http_message *held;
    struct text rest[3];
    /* The members above are zeroed for each request. */
    uv_write_t write;
    char reply_head[HTTP_REPLY_HEAD_SIZE]; /* Date, X-Request-Id, the added fields, Connection */
    struct http_intake intake;
    _Alignas(16) char user[]; /* request->user */
};

/* The result of sending bytes. */
enum http_output {
    OUTPUT_SENT,    /* the kernel has them all */
    OUTPUT_WAITING, /* the rest follows when the socket is writable */
    OUTPUT_BROKEN,  /* nothing more can be sent: close the connection */
};

struct http_connection {
    uv_tcp_t tcp; /* data: the connection */
    uint32_t magic;
    enum connection_state state;
    struct http_server *server;
    LIST_ENTRY(http_connection) link;                   /* all connections of the server */
    void (*closed)(struct http_connection *connection); /* the handle is closed */
    /* The result of output that was WAITING. SENT: the kernel has the whole reply. */
    void (*sent)(struct http_connection *connection, enum http_output result);
    struct http_exchange *exchange;
    struct tls_session *tls;    /* NULL: plain */
    struct http_memo *memo;     /* of a request that it carried; NULL: none */
    struct http_parked *parked; /* PARKED */
    uint64_t deadline_ms;       /* by clock_loop_ms; 0: none */
    size_t unsent;              /* bytes unsent when the deadline was last renewed */
    struct buffer ahead;        /* input behind the request being answered */
    size_t ahead_start;
    uint32_t linger_left;
    uint32_t copies_in_flight; /* writes of ciphertext that libuv has not finished */
    uint8_t blank;             /* bytes of empty lines skipped before a request */
    bool memo_is_last;         /* `memo` holds the last request that was handled */
    bool processing;           /* process is on the stack */
    bool served;               /* it has carried a request */
    bool close_after;          /* this exchange is the last */
    bool tls_begun;            /* the client has sent the first of its TLS */
    bool tls_missing;          /* the client speaks plain HTTP to a TLS port */
    bool more_input;           /* input has arrived behind the current request */
    bool input_ended;          /* the client has sent FIN (or close_notify) */
    bool read_stopped;
    struct address peer;
    /* request->connection_user follows */
};

struct http_server {
    struct http_server_options options;
    uv_poll_t listener;
    int descriptor; /* of the listening socket; -1: none */
    int reserve;    /* a spare descriptor, to refuse a connection when none is left */
    uv_timer_t sweep;
    LIST_HEAD(, http_connection) connections;
    size_t connection_count;
    struct http_exchange *spare_exchange; /* for the next request; may be NULL */
    char date_head[HTTP_DATE_HEAD_SIZE + 1];
    int64_t date_second;
    char next_id[HTTP_ID_SIZE + 1]; /* of a request */
    uint64_t id_counter;
    uint64_t accept_failed_ms;
    uint64_t swept_ms;
    bool swept_late;
    bool accept_paused; /* accepting failed; the sweep tries again */
    bool listener_closed;
    bool draining;
    bool turning_away;        /* no new connection can begin */
    uint64_t drain_idle_ms;   /* the most a connection may be idle while draining */
    uint64_t drain_accept_ms; /* by clock_loop_ms; the server accepts until then */
    void (*drained)(void *context);
    char *read_buffer;
    char *plain_buffer;   /* with TLS */
    struct buffer cipher; /* with TLS: the bytes to send next */
};

static inline void http_report_event(struct http_server *server, enum http_event event)
{
    if (server->options.event != NULL)
        server->options.event(server->options.context, event);
}

/* ---- server.c -------------------------------------------------------------------------------- */
/* Makes a connection of a connected stream socket. Accepting calls it; so do tests and the
 * fuzzer. */
void http_server_adopt(struct http_server *server, int descriptor);

/* ---- connection.c ---------------------------------------------------------------------------- */
/* Starts a zeroed connection whose tcp handle is initialised. */
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
/* The other three send as much as the kernel takes now, and a copy of the rest later; for that rest
 * they report only failure. They send a few bytes outside any reply ("100 Continue"), the
 * ciphertext that a TLS session left in server->cipher, and the end of our side of the stream. */
enum http_output http_output_interim(struct http_connection *connection, struct text bytes);
enum http_output http_output_cipher(struct http_connection *connection);
enum http_output http_output_shutdown(struct http_connection *connection);

/* ---- park.c ---------------------------------------------------------------------------------- */
/* Detaches the parked request from its connection. */
struct http_parked *http_parked_take(struct http_connection *connection);

/* ---- exchange.c ------------------------------------------------------------------------------ */
/* An exchange for a request that begins on this connection now. */
struct http_exchange *http_exchange_begin(struct http_connection *connection);
void http_exchange_give_back(struct http_server *server, struct http_exchange *exchange);
/* The fields added to a reply before it was first parked; and the call that adds them to a new
 * exchange's reply. */
struct text http_exchange_added(const struct http_exchange *exchange);
void http_exchange_add(struct http_exchange *exchange, struct text added);
/* Makes the message the reply: fills `rest` with the bytes to send. */
void http_exchange_reply(struct http_server *server, struct http_exchange *exchange,
                         struct http_message *message, bool close_after);

/* ---- message.c ------------------------------------------------------------------------------- */
extern const char http_phrases[]; /* phrases.txt: a status and its phrase a line */
/* The caller owns the reference. */
struct http_message *http_message_of_text(int status, const char *content_type, struct text body);
