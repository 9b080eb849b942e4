/* http/answer: forms, tags and their negotiation. */

#include <stdio.h>

#include <openssl/evp.h>
#include <zlib.h>
#include <zstd.h>

#include "base/digest.h"
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

/* ---- differences (RFC 9842) ------------------------------------------------------------------ */

static struct http_message *pick_named(struct answer *answer, const char *name, const char *tag,
                                       unsigned times)
{
    struct http_field_line lines[4];
    struct http_request request = request_with(lines, "gzip, dcz", tag);
    for (unsigned i = 0; i < times; i++)
        lines[request.line_count++] =
            (struct http_field_line){text_of(name), HTTP_FIELD_AVAILABLE_DICTIONARY};
    request.field_count[HTTP_FIELD_AVAILABLE_DICTIONARY] = (uint8_t)times;
    return answer_pick(answer, &request);
}

static void name_dictionary(struct text dictionary, char *name)
{
    uint8_t digest[DIGEST_SIZE];
    digest_sha256(dictionary.at, dictionary.size, digest);
    name[0] = ':';
    EVP_EncodeBlock((uint8_t *)name + 1, digest, sizeof digest);
    strcpy(name + 45, ":");
}

static struct http_message *pick_after(struct answer *answer, struct text dictionary,
                                       const char *tag)
{
    char name[48];
    name_dictionary(dictionary, name);
    return pick_named(answer, name, tag, 1);
}

/* Odds of which one has changed. */
static struct text odds(char *buffer, size_t size, unsigned changed)
{
    size_t used = 0;
    for (unsigned i = 0; i < 400; i++)
        used += (size_t)snprintf(buffer + used, size - used, "{\"id\":\"%u\",\"price\":1.%02u},",
                                 i * 7919, i == changed ? 99 : i % 90);
    return (struct text){buffer, used};
}

static void assert_decodes(const struct http_message *message, struct text dictionary,
                           struct text body)
{
    static const char magic[8] = {0x5e, 0x2a, 0x4d, 0x18, 32, 0, 0, 0};
    char *out = memory_alloc(body.size + 1);
    uint8_t digest[DIGEST_SIZE];
    digest_sha256(dictionary.at, dictionary.size, digest);
    assert_field(message, "Content-Encoding", "dcz");
    assert_memory_equal(message->body, magic, sizeof magic);
    assert_memory_equal(message->body + sizeof magic, digest, sizeof digest);
    ZSTD_DCtx *context = ZSTD_createDCtx();
    ZSTD_DCtx_refPrefix(context, dictionary.at, dictionary.size);
    size_t size =
        ZSTD_decompressDCtx(context, out, body.size + 1, message->body, message->body_size);
    assert_int_equal(size, body.size);
    assert_memory_equal(out, body.at, body.size);
    ZSTD_freeDCtx(context);
    memory_free(out);
}

TEST(who_holds_an_earlier_body_gets_the_difference)
{
    char first[20000], second[20000], third[20000];
    struct text one = odds(first, sizeof first, 1), two = odds(second, sizeof second, 2);
    struct text three = odds(third, sizeof third, 3);
    struct answer_counts mine = {.kept_max = 1U << 20};
    struct answer *a = answer_create_after(NULL, one, &mine);
    assert_field(answer_plain(a), "Vary", "Accept-Encoding, Available-Dictionary");
    assert_null(pick(a, "gzip, dcz", NULL)); /* it has no dictionary, so it takes gzip */
    answer_compress(a);
    assert_field(pick(a, "gzip, dcz", NULL), "Content-Encoding", "gzip");
    struct answer *b = answer_create_after(a, two, &mine);
    assert_int_equal(answer_make_differences(b), 1); /* who waits has the one before */
    struct http_message *difference = pick_after(b, one, NULL);
    assert_decodes(difference, one, two);
    assert_true(difference->body_size < two.size / 20);
    char *tag = field(difference, "ETag");
    assert_non_null(strstr(tag, "-dcz-"));
    assert_int_equal(pick_after(b, two, tag)->status, 304);
    assert_true(answer_is_named(
        b, &(struct http_request){
               .lines = &(struct http_field_line){text_of(tag), HTTP_FIELD_IF_NONE_MATCH},
               .line_count = 1,
               .field_count = {[HTTP_FIELD_IF_NONE_MATCH] = 1}}));
    memory_free(tag);
    struct answer *c = answer_create_after(b, three, &mine);
    assert_int_equal(answer_make_differences(c), 1);
    assert_decodes(pick_after(c, two, NULL), two, three);
    assert_null(pick_after(c, one, NULL));
    assert_int_equal(answer_make_differences(c), 1);
    assert_int_equal(answer_make_differences(c), 0);
    assert_decodes(pick_after(c, one, NULL), one, three);
    answer_release(&a);
    answer_release(&b);
    assert_decodes(pick_after(c, one, NULL), one, three);
    answer_release(&c);
    assert_int_equal(atomic_load(&mine.kept), 0);
    assert_int_equal(atomic_load(&mine.bytes), 0);
}

TEST(a_body_that_no_client_of_differences_got_is_not_kept)
{
    char first[20000], second[20000];
    struct text one = odds(first, sizeof first, 1), two = odds(second, sizeof second, 2);
    struct answer_counts mine = {.kept_max = 1U << 20};
    struct answer *a = answer_create_after(NULL, one, &mine);
    (void)pick(a, "gzip", NULL);
    struct answer *b = answer_create_after(a, two, &mine);
    assert_int_equal(atomic_load(&mine.kept), 0);
    answer_compress(b);
    assert_field(pick_after(b, one, NULL), "Content-Encoding", "gzip");
    assert_field(pick_after(b, TEXT("foreign"), NULL), "Content-Encoding", "gzip");
    answer_release(&a);
    answer_release(&b);
}

TEST(a_dictionary_is_named_by_its_digest_as_a_byte_sequence)
{
    char first[20000], second[20000], name[64];
    struct text one = odds(first, sizeof first, 1), two = odds(second, sizeof second, 2);
    struct answer_counts mine = {.kept_max = 1U << 20};
    struct answer *a = answer_create_after(NULL, one, &mine);
    (void)pick(a, "gzip, dcz", NULL);
    struct answer *b = answer_create_after(a, two, &mine);
    answer_compress(b);
    assert_int_equal(answer_make_differences(b), 1);
    name_dictionary(one, name);
    assert_decodes(pick_named(b, name, NULL, 1), one, two);
    assert_field(pick_named(b, name, NULL, 2), "Content-Encoding", "gzip");
    for (size_t i = 0; i < strlen(name); i++) {
        static const char wrong[] = {' ', ':', '=', '-', '\0'};
        char right = name[i];
        for (size_t at = 0; at < sizeof wrong; at++) {
            name[i] = wrong[at];
            if (wrong[at] != right)
                assert_field(pick_named(b, name, NULL, 1), "Content-Encoding", "gzip");
        }
        name[i] = right;
    }
    assert_field(pick_named(b, name + 1, NULL, 1), "Content-Encoding", "gzip");
    assert_field(pick_named(b, strcat(name, ";a"), NULL, 1), "Content-Encoding", "gzip");
    answer_release(&a);
    answer_release(&b);
}

TEST(no_more_is_kept_than_may_be_and_not_for_ever)
{
    char body[20000];
    size_t size = odds(body, sizeof body, 0).size;
    for (unsigned room = 0; room < 3; room++) {
        struct answer_counts mine = {.kept_max = room * size + 1};
        struct answer *before = NULL;
        for (unsigned i = 0; i < 100; i++) {
            struct answer *answer = answer_create_after(before, odds(body, sizeof body, i), &mine);
            answer_release(&before);
            assert_true(atomic_load(&mine.kept) <= room * size);
            (void)pick(answer, i < 10 ? "dcz" : "gzip", NULL);
            before = answer;
            if (i == 10)
                assert_true(atomic_load(&mine.kept) >= (room > 0) * size);
        }
        assert_int_equal(atomic_load(&mine.kept), 0);
        answer_release(&before);
    }
}

TEST(a_difference_that_is_no_smaller_is_sent_gzipped_or_plain)
{
    char first[20000], digits[2000];
    struct text one = odds(first, sizeof first, 1);
    struct text noise = {digits, sizeof digits};
    uint32_t random = 1;
    for (size_t i = 0; i < sizeof digits; i++) { /* words too short for a difference */
        if (i % 4 == 0)
            random = random * 1664525 + 1013904223;
        digits[i] = (char)('a' + ((random >> 16) % 32 + 1) * (i % 4 + 7) * 31 / 5 % 26);
    }
    struct answer_counts mine = {.kept_max = 1U << 20};
    struct answer *a = answer_create_after(NULL, one, &mine);
    (void)pick(a, "dcz", NULL);
    struct answer *b = answer_create_after(a, noise, &mine);
    assert_int_equal(answer_make_differences(b), 1);
    assert_field(pick_after(b, one, NULL), "Content-Encoding", "gzip");
    struct answer *c = answer_create_after(a, TEXT("[]"), &mine);
    assert_int_equal(answer_make_differences(c), 1);
    answer_compress(c);
    assert_ptr_equal(pick_after(c, one, NULL), answer_plain(c));
    answer_release(&a);
    answer_release(&b);
    answer_release(&c);
}
