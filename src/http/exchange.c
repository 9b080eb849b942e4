/*
 * An exchange: a request and the reply to it. A server keeps the last one for the next request, so
 * that a thread that answers one request after the other allocates nothing.
 *
 * A reply has three parts, in this order on the wire: the message's head (status line and constant
 * fields), a small head that is built for this request (Date, X-Request-Id, added fields,
 * Connection, the empty line), and the message's body. The first and the last are sent from the
 * message itself, without building them again.
 */

#include "base/clock.h"
#include "base/memory.h"
#include "http/internal.h"

/* Ten random characters of the server, then a counter: unique in practice, not secret. */
static void write_id(struct http_server *server, char *id)
{
    static const char digits[] = "0123456789abcdefghjkmnpqrstvwxyz";
    memcpy(id, server->next_id, sizeof server->next_id);
    /* The next one: a digit changes when those behind it begin again. */
    uint64_t number = ++server->id_counter;
    for (size_t i = HTTP_ID_SIZE - 1; i > HTTP_ID_START_SIZE; i--, number >>= 5) {
        server->next_id[i] = digits[number & 31];
        if ((number & 31) != 0)
            break;
    }
}

struct http_exchange *http_exchange_begin(struct http_connection *connection)
{
    struct http_server *server = connection->server;
    struct http_exchange *exchange = server->spare_exchange;
    server->spare_exchange = NULL;
    if (exchange == NULL)
        exchange = memory_alloc(sizeof *exchange + server->options.request_user_size);
    memset(exchange, 0, offsetof(struct http_exchange, write));
    if (server->options.request_user_size > 0) {
        exchange->request.user = exchange->user;
        memset(exchange->request.user, 0, server->options.request_user_size);
    }
    exchange->magic = EXCHANGE_MAGIC;
    write_id(server, exchange->request.id);
    http_intake_start(&exchange->intake);
    exchange->intake.named_field = server->options.named_field;
    exchange->request.peer = connection->peer;
    exchange->request.connection = connection;
    exchange->request.connection_user =
        server->options.connection_user_size > 0 ? connection + 1 : NULL;
    exchange->request.started_ns = clock_monotonic_ns();
    return exchange;
}

void http_exchange_give_back(struct http_server *server, struct http_exchange *exchange)
{
    CHECK(exchange->magic == EXCHANGE_MAGIC);
    exchange->magic = 0; /* exchange_of catches a late reply */
    http_intake_reset(&exchange->intake);
    memory_free(server->spare_exchange);
    server->spare_exchange = exchange;
}

/* ---- the reply ------------------------------------------------------------------------------- */

static struct http_exchange *exchange_of(struct http_request *request)
{
    struct http_exchange *exchange = (struct http_exchange *)(void *)request;
    CHECK(exchange->magic == EXCHANGE_MAGIC && !exchange->replied);
    return exchange;
}

void http_request_note(struct http_request *request, struct text what, const char *id)
{
    request->note.what = what;
    (void)snprintf(request->note.id, sizeof request->note.id, "%s", id);
}

void http_request_add_field(struct http_request *request, struct text name, struct text value)
{
    struct http_exchange *exchange = exchange_of(request);
    size_t size = name.size + 2 + value.size + 2;
    CHECK(size <= HTTP_ADDED_MAX - exchange->added_size);
    char *at = exchange->reply_head + HTTP_ADDED_AT + exchange->added_size;
    at = mempcpy(at, name.at, name.size);
    at = mempcpy(at, ": ", 2);
    at = mempcpy(at, value.at, value.size);
    memcpy(at, "\r\n", 2);
    exchange->added_size += (uint32_t)size;
}

struct text http_exchange_added(const struct http_exchange *exchange)
{
    return (struct text){exchange->reply_head + HTTP_ADDED_AT, exchange->request.parked_ns > 0
                                                                   ? exchange->kept_size
                                                                   : exchange->added_size};
}

void http_exchange_add(struct http_exchange *exchange, struct text added)
{
    CHECK(added.size <= HTTP_ADDED_MAX - exchange->added_size);
    memcpy(exchange->reply_head + HTTP_ADDED_AT + exchange->added_size, added.at, added.size);
    exchange->added_size += (uint32_t)added.size;
    exchange->kept_size = exchange->added_size;
}

/* Date has whole seconds, so it is formatted once a second. */
static const char *date_head(struct http_server *server)
{
    int64_t wall_ms = clock_wall_coarse_ms();
    if (wall_ms / 1000 == server->date_second)
        return server->date_head;
    server->date_second = wall_ms / 1000;
    char date[CLOCK_TEXT_SIZE];
    clock_format_http(wall_ms, date);
    char *at = mempcpy(server->date_head, "Date: ", 6);
    at = mempcpy(at, date, 29);
    at = mempcpy(at, "\r\nX-Request-Id: ", 16);
    CHECK(at == server->date_head + HTTP_DATE_HEAD_SIZE);
    return server->date_head;
}

static struct text small_head(struct http_server *server, struct http_exchange *exchange,
                              bool close_after)
{
    char *at = mempcpy(exchange->reply_head, date_head(server), HTTP_DATE_HEAD_SIZE);
    at = mempcpy(at, exchange->request.id, HTTP_ID_SIZE);
    at = mempcpy(at, "\r\n", 2);
    at += exchange->added_size; /* http_request_add_field wrote them in place */
    if (close_after)
        at = mempcpy(at, "Connection: close\r\n", 19);
    else if (exchange->intake.parser.http_minor == 0)
        at = mempcpy(at, "Connection: keep-alive\r\n", 24);
    at = mempcpy(at, "\r\n", 2);
    return (struct text){exchange->reply_head, (size_t)(at - exchange->reply_head)};
}

void http_exchange_reply(struct http_server *server, struct http_exchange *exchange,
                         struct http_message *message, bool close_after)
{
    bool head_only = exchange_of(&exchange->request)->request.method == METHOD_HEAD;
    exchange->replied = true;
    exchange->status = message->status;
    exchange->rest[0] = (struct text){message->head, message->head_size};
    exchange->rest[1] = small_head(server, exchange, close_after);
    exchange->rest[2] = (struct text){message->body, head_only ? 0 : message->body_size};
    exchange->bytes = exchange->rest[0].size + exchange->rest[1].size + exchange->rest[2].size;
}
