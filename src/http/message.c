/* Prepared messages: one allocation holds the counter, the head and the body; see http.h. */
#include "base/json_writer.h"
#include "base/memory.h"
#include "http/internal.h"

#define HEAD_USUAL 192U /* bytes: most heads fit */

struct http_message *http_message_create(uint16_t status, struct text head, struct text body)
{
    CHECK(head.size <= UINT32_MAX && head.size >= 2 && head.at[head.size - 1] == '\n');
    struct http_message *message = memory_alloc(sizeof *message + head.size + body.size);
    char *bytes = (char *)(message + 1);
    memcpy(bytes, head.at, head.size);
    if (body.size > 0)
        memcpy(bytes + head.size, body.at, body.size);
    atomic_init(&message->references, 1);
    message->status = status;
    message->head_size = (uint32_t)head.size;
    message->body_size = body.size;
    message->head = bytes;
    message->body = bytes + head.size;
    return message;
}

struct http_message *http_message_hold(struct http_message *message)
{
    unsigned before = relaxed_add(&message->references, 1);
    CHECK(before > 0 && before < UINT32_MAX);
    return message;
}

void http_message_release(struct http_message **message)
{
    struct http_message *released = memory_take(message);
    if (released == NULL)
        return;
    /* The acquire orders the other threads' reads, which precede their releases, before the
     * free. */
    unsigned before = atomic_fetch_sub_explicit(&released->references, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before == 1)
        memory_free(released);
}

/* ---- documents and errors -------------------------------------------------------------------- */

/* RFC 9112 section 4: the phrase may be empty. */
static struct text reason_phrase(int status)
{
    struct text rest = text_of(http_phrases);
    while (rest.size > 0) {
        struct text line = text_cut(&rest, '\n');
        if (strtol(line.at, NULL, 10) == status)
            return (struct text){line.at + 4, line.size - 4};
    }
    return TEXT("");
}

struct http_message *http_message_of_text(int status, const char *content_type, struct text body)
{
    CHECK(status >= 200 && status <= 599);
    struct buffer head = {0};
    buffer_reserve(&head, HEAD_USUAL);
    buffer_append_string(&head, "HTTP/1.1 ");
    buffer_append_u64(&head, (uint64_t)status);
    buffer_append_char(&head, ' ');
    buffer_append_text(&head, reason_phrase(status));
    buffer_append_string(&head, "\r\nContent-Type: ");
    buffer_append_string(&head, content_type);
    buffer_append_string(&head, "\r\nX-Content-Type-Options: nosniff\r\n"
                                "Cache-Control: no-store\r\n"
                                "Content-Length: ");
    buffer_append_u64(&head, body.size);
    buffer_append_string(&head, "\r\n");
    struct http_message *message = http_message_create((uint16_t)status, buffer_text(&head), body);
    buffer_free(&head);
    return message;
}

void http_error_write(const struct http_error *error, const char *message, struct buffer *out)
{
    struct json_writer json = {.out = out};
    json_object(&json, NULL);
    json_string(&json, "error", error->code);
    json_string(&json, "message", message != NULL ? message : error->message);
    json_end(&json);
}
