/*
 * Fuzzes what reads a Redis server's replies.
 *
 * Holds for every input: it is read alike as a whole, byte for byte, and in pieces of its own
 * choice; no reply holds more than its bounds allow; a text ends in NUL; a push is never inside of
 * a reply; lists are no deeper than they may be.
 */
#include <string.h>

#include "base/memory.h"
#include "stores/odds/redis/reply.h"

#define STRING_MAX 64
#define REPLY_MAX 8192
#define DEPTH_MAX 8

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Writes down what it is; returns the bytes that it holds. */
static size_t describe(const struct redis_reply *reply, unsigned depth, struct buffer *out)
{
    size_t held = reply->text.size;
    CHECK(depth <= DEPTH_MAX && (reply->type != REDIS_PUSH || depth == 0));
    buffer_append_format(out, "%d:%lld:", (int)reply->type, (long long)reply->integer);
    if (reply->text.at != NULL) {
        CHECK(reply->text.at[reply->text.size] == '\0');
        buffer_append_text(out, reply->text);
    }
    CHECK(reply->type != REDIS_STRING || reply->text.size <= STRING_MAX ||
          memchr(reply->text.at, '\n', reply->text.size) == NULL); /* a double's line */
    CHECK((reply->count == 0) == (reply->elements == NULL));
    buffer_append_char(out, '(');
    for (size_t i = 0; i < reply->count; i++)
        held += sizeof *reply + describe(&reply->elements[i], depth + 1, out);
    buffer_append_char(out, ')');
    return held;
}

/* All replies, and how it ends. `pace`: the sizes of the pieces; 0: as a whole. */
static void read_all(struct text input, uint32_t pace, struct buffer *out)
{
    struct redis_parser *parser = redis_parser_create(STRING_MAX, REPLY_MAX);
    enum status status = STATUS_PENDING;
    while (input.size > 0 && (status == STATUS_OK || status == STATUS_PENDING)) {
        size_t most = pace == 0 ? input.size : pace % 7 + 1;
        struct text piece = {input.at, most < input.size ? most : input.size};
        struct text rest = piece;
        const struct redis_reply *reply = NULL;
        pace = pace > 1 ? pace * 1664525U + 1013904223U : pace;
        pace = pace == 0 || pace > 1 ? pace : 1;
        status = redis_parser_take(parser, &rest, &reply);
        CHECK(status != STATUS_PENDING || rest.size == 0);
        input.at += piece.size - rest.size;
        input.size -= piece.size - rest.size;
        if (status == STATUS_OK)
            CHECK(describe(reply, 0, out) <= REPLY_MAX);
    }
    buffer_append_format(out, "end %d", (int)status);
    redis_parser_destroy(&parser);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct text input = {(const char *)bytes, size};
    struct buffer whole = {0};
    read_all(input, 0, &whole);
    static const uint32_t paces[] = {1, 7, 4711};
    for (size_t i = 0; i < sizeof paces / sizeof paces[0]; i++) {
        struct buffer pieces = {0};
        read_all(input, paces[i], &pieces);
        CHECK(text_equals(buffer_text(&whole), buffer_text(&pieces)));
        buffer_free(&pieces);
    }
    buffer_free(&whole);
    return 0;
}
