/* Ready-made messages: one allocation that holds the counter, the head and the body; see http.h. */
#include <string.h>

#include "base/memory.h"
#include "http/http.h"

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
    unsigned before = atomic_fetch_add_explicit(&message->references, 1, memory_order_relaxed);
    CHECK(before > 0 && before < UINT32_MAX);
    return message;
}

void http_message_release(struct http_message **message)
{
    struct http_message *released = *message;
    *message = NULL;
    if (released == NULL)
        return;
    /* What other threads read of it happened before their release, so it is over by the last
     * one. */
    unsigned before = atomic_fetch_sub_explicit(&released->references, 1, memory_order_acq_rel);
    CHECK(before > 0);
    if (before == 1)
        memory_free(released);
}
