/* http/answer: forms, tags and their negotiation. */

#include <zlib.h>

#include "base/memory.h"
#include "http/answer.h"
#include "tests.h"

static struct answer_counts counts;

static struct http_request request_with(struct http_field_line *lines, const char *accept_encoding,
                                        const char *if_none_match)
{
    struct http_request request = {.lines = lines};
    if (accept_encoding != NULL) {
        lines[request.line_count++] =
            (struct http_field_line){text_of(accept_encoding), HTTP_FIELD_ACCEPT_ENCODING};
        request.field_count[HTTP_FIELD_ACCEPT_ENCODING] = 1;
    }
    if (if_none_match != NULL) {
        lines[request.line_count++] =
            (struct http_field_line){text_of(if_none_match), HTTP_FIELD_IF_NONE_MATCH};
        request.field_count[HTTP_FIELD_IF_NONE_MATCH] = 1;
    }
    return request;
}

static struct http_message *pick(struct answer *answer, const char *accept_encoding,
                                 const char *if_none_match)
{
    struct http_field_line lines[2];
    struct http_request request = request_with(lines, accept_encoding, if_none_match);
    return answer_pick(answer, &request);
}

/* The value of a field of the head, as a string to be freed; NULL: it is not there. */
static char *field(const struct http_message *message, const char *name)
{
    char *head = memory_alloc(message->head_size + 1);
    char *value = NULL;
    memcpy(head, message->head, message->head_size);
    head[message->head_size] = '\0';
    struct buffer line = {0};
    buffer_append_format(&line, "\r\n%s: ", name);
    const char *at = strstr(head, buffer_string(&line));
    if (at != NULL) {
        at += line.size;
        size_t size = (size_t)(strstr(at, "\r\n") - at);
        value = memory_copy(at, size + 1);
        value[size] = '\0';
    }
    buffer_free(&line);
    memory_free(head);
    return value;
}

static void assert_field(const struct http_message *message, const char *name, const char *expected)
{
    char *value = field(message, name);
    if (expected == NULL)
        assert_null(value);
    else
        assert_string_equal(value, expected);
    memory_free(value);
}

/* A body that gzip makes smaller. */
static struct text large_body(void)
{
    static char body[20001];
    memset(body, ' ', sizeof body - 1);
    body[0] = '[';
    body[sizeof body - 2] = ']';
    return text_of(body);
}

TEST(the_plain_form_has_the_body_and_all_its_fields)
{
    struct answer *answer = answer_create(TEXT("[1.80]"), &counts);
    struct http_message *message = pick(answer, NULL, NULL);
    assert_ptr_equal(message, answer_plain(answer));
    assert_int_equal(message->status, 200);
    assert_memory_equal(message->head, "HTTP/1.1 200 OK\r\n", 17);
    assert_int_equal(message->body_size, 6);
    assert_memory_equal(message->body, "[1.80]", 6);
    assert_field(message, "Content-Type", "application/json");
    assert_field(message, "X-Content-Type-Options", "nosniff");
    assert_field(message, "Content-Length", "6");
    assert_field(message, "Vary", "Accept-Encoding");
    assert_field(message, "Cache-Control", "private, no-cache");
    assert_field(message, "Content-Encoding", NULL);
    answer_release(&answer);
}

TEST(the_tag_comes_from_the_content_alone)
{
    struct answer *a = answer_create(TEXT("[1]"), &counts);
    struct answer *b = answer_create(TEXT("[1]"), &counts);
    struct answer *c = answer_create(TEXT("[2]"), &counts);
    char *tag_a = field(pick(a, NULL, NULL), "ETag");
    char *tag_b = field(pick(b, NULL, NULL), "ETag");
    char *tag_c = field(pick(c, NULL, NULL), "ETag");
    assert_string_equal(tag_a, tag_b);
    assert_string_not_equal(tag_a, tag_c);
    assert_int_equal(strlen(tag_a), 26);
    assert_true(tag_a[0] == '"' && tag_a[25] == '"');
    assert_true(text_equals(answer_body(a), answer_body(b)));
    assert_false(text_equals(answer_body(a), answer_body(c)));
    memory_free(tag_a);
    memory_free(tag_b);
    memory_free(tag_c);
    answer_release(&a);
    answer_release(&b);
    answer_release(&c);
}

TEST(a_matching_tag_is_answered_304_with_the_fields_of_200)
{
    struct answer *answer = answer_create(TEXT("[1]"), &counts);
    char *tag = field(pick(answer, NULL, NULL), "ETag");
    struct http_message *message = pick(answer, NULL, tag);
    assert_int_equal(message->status, 304);
    assert_int_equal(message->body_size, 0);
    assert_field(message, "ETag", tag);
    assert_field(message, "Vary", "Accept-Encoding");
    assert_field(message, "Cache-Control", "private, no-cache");
    assert_field(message, "Content-Length", NULL);
    assert_int_equal(pick(answer, NULL, "*")->status, 304);
    assert_int_equal(pick(answer, NULL, "\"other\"")->status, 200);
    memory_free(tag);
    answer_release(&answer);
}

TEST(the_gzip_form_is_made_when_asked_for_and_inflates_to_the_body)
{
    struct text body = large_body();
    struct answer *answer = answer_create(body, &counts);
    assert_false(answer_gzip_wanted(answer));
    assert_null(pick(answer, "gzip", NULL));
    assert_true(answer_gzip_wanted(answer));
    answer_compress(answer);
    struct http_message *message = pick(answer, "gzip", NULL);
    assert_int_equal(message->status, 200);
    assert_field(message, "Content-Encoding", "gzip");
    assert_field(message, "Vary", "Accept-Encoding");
    assert_true(message->body_size < body.size);
    char *inflated = memory_alloc(body.size + 1);
    z_stream stream = {.next_in = (Bytef *)(uintptr_t)message->body,
                       .avail_in = (uInt)message->body_size,
                       .next_out = (Bytef *)inflated,
                       .avail_out = (uInt)body.size + 1};
    assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
    assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
    assert_int_equal(stream.total_out, body.size);
    assert_memory_equal(inflated, body.at, body.size);
    assert_int_equal(inflateEnd(&stream), Z_OK);
    memory_free(inflated);
    assert_ptr_equal(pick(answer, NULL, NULL), answer_plain(answer));
    answer_release(&answer);
}

TEST(each_form_has_a_tag_of_its_own)
{
    struct answer *answer = answer_create(large_body(), &counts);
    answer_compress(answer);
    char *plain = field(pick(answer, NULL, NULL), "ETag");
    char *gzip = field(pick(answer, "gzip", NULL), "ETag");
    assert_string_not_equal(plain, gzip);
    assert_int_equal(pick(answer, "gzip", gzip)->status, 304);
    assert_field(pick(answer, "gzip", gzip), "ETag", gzip);
    assert_int_equal(pick(answer, "gzip", plain)->status, 200);
    assert_int_equal(pick(answer, NULL, gzip)->status, 200);
    memory_free(plain);
    memory_free(gzip);
    answer_release(&answer);
}

TEST(a_known_gzip_tag_needs_no_compressing)
{
    struct answer *first = answer_create(large_body(), &counts);
    answer_compress(first);
    char *tag = field(pick(first, "gzip", NULL), "ETag");
    struct answer *second = answer_create(large_body(), &counts);
    assert_int_equal(pick(second, "gzip", tag)->status, 304);
    assert_false(answer_compressed(second));
    memory_free(tag);
    answer_release(&first);
    answer_release(&second);
}

TEST(what_gzip_does_not_make_smaller_is_sent_plain)
{
    struct answer *answer = answer_create(TEXT("[]"), &counts);
    answer_compress(answer);
    assert_true(answer_compressed(answer));
    assert_ptr_equal(pick(answer, "gzip", NULL), answer_plain(answer));
    char *tag = field(answer_plain(answer), "ETag");
    assert_int_equal(pick(answer, "gzip", tag)->status, 304);
    memory_free(tag);
    answer_release(&answer);
}

TEST(the_tally_counts_what_is_held)
{
    assert_int_equal(atomic_load(&counts.answers), 0);
    assert_int_equal(atomic_load(&counts.bytes), 0);
    struct answer *answer = answer_create(large_body(), &counts);
    struct answer *held = answer_hold(answer);
    uint64_t plain = atomic_load(&counts.bytes);
    assert_int_equal(atomic_load(&counts.answers), 1);
    assert_true(plain > large_body().size);
    answer_compress(answer);
    assert_true(atomic_load(&counts.bytes) > plain);
    answer_release(&answer);
    assert_int_equal(atomic_load(&counts.answers), 1);
    answer_release(&held);
    assert_int_equal(atomic_load(&counts.answers), 0);
    assert_int_equal(atomic_load(&counts.bytes), 0);
}
