/*
 * Replies: what is ready-made goes out as it is, beside one small head that is made for the
 * request.
 *
 * The order on the wire is the message's head (status line and constant fields), the small head
 * (Date, X-Request-Id, added fields, Connection, the empty line), the body: three parts, one system
 * call, nothing copied.
 */
#include <string.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/memory.h"
#include "http/internal.h"

#define DATE_CHECK_MS 50 /* how far Date may lag behind the clock */

static struct http_exchange *exchange_of(struct http_request *request)
{
    struct http_exchange *exchange = (struct http_exchange *)request;
    CHECK(exchange->magic == EXCHANGE_MAGIC && !exchange->replied);
    return exchange;
}

static void put(char **at, const char *bytes, size_t size)
{
    memcpy(*at, bytes, size);
    *at += size;
}

void http_request_add_field(struct http_request *request, struct text name, struct text value)
{
    struct http_exchange *exchange = exchange_of(request);
    size_t size = name.size + 2 + value.size + 2;
    CHECK(size <= HTTP_ADDED_MAX - exchange->added_size);
    char *at = exchange->reply_head + HTTP_ADDED_AT + exchange->added_size;
    put(&at, name.at, name.size);
    put(&at, ": ", 2);
    put(&at, value.at, value.size);
    put(&at, "\r\n", 2);
    exchange->added_size += (uint32_t)size;
}

/* Date has whole seconds, so it is formatted once a second. */
static const char *date_head(struct http_server *server)
{
    uint64_t now = clock_loop_ms(server->options.loop);
    if (now - server->date_checked_ms < DATE_CHECK_MS && server->date_second != 0)
        return server->date_head;
    server->date_checked_ms = now;
    int64_t wall_ms = clock_wall_ms();
    if (wall_ms / 1000 == server->date_second)
        return server->date_head;
    server->date_second = wall_ms / 1000;
    char date[CLOCK_TEXT_SIZE];
    clock_format_http(wall_ms, date);
    char *at = server->date_head;
    put(&at, "Date: ", 6);
    put(&at, date, 29);
    put(&at, "\r\nX-Request-Id: ", 16);
    CHECK(at == server->date_head + HTTP_DATE_HEAD_SIZE);
    return server->date_head;
}

static struct text small_head(struct http_connection *connection, struct http_exchange *exchange)
{
    char *at = exchange->reply_head;
    put(&at, date_head(connection->server), HTTP_DATE_HEAD_SIZE);
    put(&at, exchange->request.id, HTTP_ID_SIZE);
    put(&at, "\r\n", 2);
    at += exchange->added_size; /* they are there already */
    if (connection->close_after)
        put(&at, "Connection: close\r\n", 19);
    else if (exchange->intake.parser.http_minor == 0)
        put(&at, "Connection: keep-alive\r\n", 24);
    put(&at, "\r\n", 2);
    return (struct text){exchange->reply_head, (size_t)(at - exchange->reply_head)};
}

void http_reply_message(struct http_request *request, struct http_message *message)
{
    struct http_exchange *exchange = exchange_of(request);
    struct http_connection *connection = request->connection;
    CHECK(connection->magic == CONNECTION_MAGIC && connection->exchange == exchange);
    exchange->replied = true;
    exchange->status = message->status;
    /* What the client has sent already, ahead of this answer, is answered as well. */
    if (connection->server->draining && !connection->more_input)
        connection->close_after = true;
    exchange->rest[0] = (struct text){message->head, message->head_size};
    exchange->rest[1] = small_head(connection, exchange);
    exchange->rest[2] =
        (struct text){message->body, request->method == HTTP_HEAD ? 0 : message->body_size};
    http_output_reply(connection, message);
}

static const char *reason_phrase(int status)
{
    static const struct {
        int status;
        const char *phrase;
    } phrases[] = {
        {200, "OK"},
        {201, "Created"},
        {204, "No Content"},
        {304, "Not Modified"},
        {400, "Bad Request"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Content Too Large"},
        {414, "URI Too Long"},
        {415, "Unsupported Media Type"},
        {417, "Expectation Failed"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {431, "Request Header Fields Too Large"},
        {500, "Internal Server Error"},
        {501, "Not Implemented"},
        {502, "Bad Gateway"},
        {503, "Service Unavailable"},
        {504, "Gateway Timeout"},
        {505, "HTTP Version Not Supported"},
    };
    for (size_t i = 0; i < sizeof phrases / sizeof phrases[0]; i++)
        if (phrases[i].status == status)
            return phrases[i].phrase;
    return ""; /* RFC 9112 section 4: the phrase may be empty */
}

static struct http_message *text_message_create(int status, const char *content_type,
                                                struct text body)
{
    CHECK(status >= 200 && status <= 599);
    struct buffer head = {0};
    buffer_append_format(&head,
                         "HTTP/1.1 %d %s\r\n"
                         "Content-Type: %s\r\n"
                         "X-Content-Type-Options: nosniff\r\n"
                         "Cache-Control: no-store\r\n"
                         "Content-Length: %zu\r\n",
                         status, reason_phrase(status), content_type, body.size);
    struct http_message *message = http_message_create((uint16_t)status, buffer_text(&head), body);
    buffer_free(&head);
    return message;
}

struct http_message *http_error_message_create(enum http_error error)
{
    const struct http_error_row *row = http_error_row(error);
    struct buffer body = {0};
    struct json_writer json = {.out = &body};
    json_object(&json, NULL);
    json_string(&json, "error", row->code);
    json_string(&json, "message", row->message);
    json_end(&json);
    struct http_message *message =
        text_message_create(row->status, "application/json", buffer_text(&body));
    buffer_free(&body);
    return message;
}

void http_reply_json(struct http_request *request, int status, struct text body)
{
    http_reply_text(request, status, "application/json", body);
}

void http_reply_text(struct http_request *request, int status, const char *content_type,
                     struct text body)
{
    struct http_message *message = text_message_create(status, content_type, body);
    http_reply_message(request, message);
    http_message_release(&message);
}

void http_reply_error(struct http_request *request, enum http_error error)
{
    CHECK((unsigned)error < HTTP_ERROR_COUNT);
    http_reply_message(request, request->connection->server->errors[error]);
}
