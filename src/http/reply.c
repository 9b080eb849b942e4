/*
 * Replies that are made for the occasion: documents and errors. A message that is kept ready is
 * sent by http_reply_message, in connection.c.
 */
#include "base/json_writer.h"
#include "http/internal.h"

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
