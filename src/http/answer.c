/*
 * Messages made once and picked by content negotiation; see answer.h.
 *
 * The only thing that changes after creation is `gzip`: NULL until the gzipped message is made,
 * then that message, or `plain` itself when compressing did not help. The store is a release and
 * the load an acquire, so that a thread that sees the pointer sees the whole message.
 */
#include "http/answer.h"

#include <string.h>

#include <zlib.h>

#include "base/base64url.h"
#include "base/digest.h"
#include "base/memory.h"
#include "http/errors.h"

#define TAG_DIGEST_BYTES 18 /* of the SHA-256: 144 bits, which are 24 characters of base64 */
#define HEAD_USUAL 256U     /* bytes: every head fits */
#define TAG_SIZE 32         /* two quotes, 24 characters, "-gz", NUL, rounded up */

/* Saves much of the size in little time: odds are repetitive, and each change compresses them
 * again. */
#define GZIP_LEVEL 5

struct answer {
    atomic_uint references;
    uint64_t mark; /* of the digest, never 0 */
    atomic_bool gzip_wanted;
    struct answer_counts *counts;
    struct http_message *plain;
    _Atomic(struct http_message *) gzip;
    struct http_message *plain_not_modified;
    struct http_message *gzip_not_modified;
    char plain_tag[TAG_SIZE];
    char gzip_tag[TAG_SIZE];
};

/* ---- making ---------------------------------------------------------------------------------- */

/* Writes by hand, as the heads are written. */
static void write_tag(char *tag, struct text digest, struct text end)
{
    CHECK(1 + digest.size + end.size < TAG_SIZE);
    *tag++ = '"';
    tag = mempcpy(tag, digest.at, digest.size);
    tag = mempcpy(tag, end.at, end.size);
    *tag = '\0';
}

static void write_tags(struct answer *answer, struct text body)
{
    uint8_t digest[DIGEST_SIZE];
    struct buffer base64 = {0};
    digest_sha256(body.at, body.size, digest);
    memcpy(&answer->mark, digest, sizeof answer->mark);
    answer->mark |= 1;
    buffer_append_base64url(&base64, digest, TAG_DIGEST_BYTES);
    write_tag(answer->plain_tag, buffer_text(&base64), TEXT("\""));
    write_tag(answer->gzip_tag, buffer_text(&base64), TEXT("-gz\""));
    buffer_free(&base64);
}

/* 304 has the fields of 200 except those about the body: RFC 9110 section 15.4.5. */
static struct http_message *make_message(uint16_t status, const char *tag, const char *encoding,
                                         struct text body)
{
    struct buffer head = {0};
    buffer_reserve(&head, HEAD_USUAL);
    /* Writes by hand, because formats cost a third of the time that an answer takes to make. */
    buffer_append_text(&head, TEXT("HTTP/1.1 "));
    buffer_append_text(&head, status == 200 ? TEXT("200 OK\r\nContent-Type: application/json\r\n")
                                            : TEXT("304 Not Modified\r\n"));
    buffer_append_text(&head, TEXT("X-Content-Type-Options: nosniff\r\nETag: "));
    buffer_append_string(&head, tag);
    buffer_append_text(&head, TEXT("\r\n"
                                   "Vary: Accept-Encoding\r\n"
                                   "Cache-Control: private, no-cache\r\n"));
    if (encoding != NULL) {
        buffer_append_text(&head, TEXT("Content-Encoding: "));
        buffer_append_string(&head, encoding);
        buffer_append_text(&head, TEXT("\r\n"));
    }
    if (status == 200) {
        buffer_append_text(&head, TEXT("Content-Length: "));
        buffer_append_u64(&head, body.size);
        buffer_append_text(&head, TEXT("\r\n"));
    }
    struct http_message *message = http_message_create(status, buffer_text(&head), body);
    buffer_free(&head);
    return message;
}

static size_t message_bytes(const struct http_message *message)
{
    return sizeof *message + message->head_size + message->body_size;
}

static size_t fixed_bytes(const struct answer *answer)
{
    return sizeof *answer + message_bytes(answer->plain) +
           message_bytes(answer->plain_not_modified) + message_bytes(answer->gzip_not_modified);
}

struct answer *answer_create(struct text body, struct answer_counts *counts)
{
    struct answer *answer = memory_alloc_zeroed(1, sizeof *answer);
    atomic_init(&answer->references, 1);
    write_tags(answer, body);
    answer->counts = counts;
    answer->plain = make_message(200, answer->plain_tag, NULL, body);
    answer->plain_not_modified = make_message(304, answer->plain_tag, NULL, TEXT(""));
    answer->gzip_not_modified = make_message(304, answer->gzip_tag, NULL, TEXT(""));
    (void)atomic_fetch_add_explicit(&counts->answers, 1, memory_order_relaxed);
    (void)atomic_fetch_add_explicit(&counts->bytes, fixed_bytes(answer), memory_order_relaxed);
    return answer;
}

struct answer *answer_hold(struct answer *answer)
{
    (void)atomic_fetch_add_explicit(&answer->references, 1, memory_order_relaxed);
    return answer;
}

void answer_release(struct answer **answer)
{
    struct answer *mine = memory_take(answer);
    if (mine == NULL || atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) > 1)
        return;
    struct http_message *gzip = atomic_load_explicit(&mine->gzip, memory_order_relaxed);
    size_t bytes = fixed_bytes(mine);
    if (gzip != NULL && gzip != mine->plain) {
        bytes += message_bytes(gzip);
        http_message_release(&gzip);
    }
    (void)atomic_fetch_sub_explicit(&mine->counts->answers, 1, memory_order_relaxed);
    (void)atomic_fetch_sub_explicit(&mine->counts->bytes, bytes, memory_order_relaxed);
    http_message_release(&mine->plain);
    http_message_release(&mine->plain_not_modified);
    http_message_release(&mine->gzip_not_modified);
    memory_free(mine);
}

/* ---- compressing ----------------------------------------------------------------------------- */

/* NULL: no smaller than the body. */
static struct http_message *make_gzip(const struct answer *answer, struct text body)
{
    z_stream stream = {0};
    CHECK(deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
    struct http_message *message = NULL;
    char *out = memory_alloc(body.size); /* a larger result is useless */
    stream.next_in = (z_const Bytef *)(uintptr_t)body.at;
    stream.avail_in = (uInt)body.size;
    stream.next_out = (Bytef *)out;
    stream.avail_out = (uInt)body.size;
    if (deflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out < body.size)
        message = make_message(200, answer->gzip_tag, "gzip", (struct text){out, stream.total_out});
    memory_free(out);
    CHECK(deflateEnd(&stream) != Z_STREAM_ERROR);
    return message;
}

void answer_compress(struct answer *answer)
{
    if (answer_compressed(answer))
        return;
    struct http_message *gzip = make_gzip(answer, answer_body(answer));
    if (gzip == NULL)
        gzip = answer->plain;
    else
        (void)atomic_fetch_add_explicit(&answer->counts->bytes, message_bytes(gzip),
                                        memory_order_relaxed);
    atomic_store_explicit(&answer->gzip, gzip, memory_order_release);
}

bool answer_compressed(const struct answer *answer)
{
    return atomic_load_explicit(&answer->gzip, memory_order_acquire) != NULL;
}

bool answer_gzip_wanted(const struct answer *answer)
{
    return atomic_load_explicit(&answer->gzip_wanted, memory_order_relaxed);
}

/* ---- picking --------------------------------------------------------------------------------- */

struct http_message *answer_pick(struct answer *answer, const struct http_request *request)
{
    struct http_message *full = answer->plain;
    struct http_message *not_modified = answer->plain_not_modified;
    const char *tag = answer->plain_tag;
    if (http_accepts_gzip(request)) {
        if (!answer_gzip_wanted(answer)) /* write once: all threads share the cache line */
            atomic_store_explicit(&answer->gzip_wanted, true, memory_order_relaxed);
        struct http_message *gzip = atomic_load_explicit(&answer->gzip, memory_order_acquire);
        if (gzip != answer->plain) {
            full = gzip;
            not_modified = answer->gzip_not_modified;
            tag = answer->gzip_tag;
        }
    }
    /* A client may name the tag of a gzipped form that is not made yet; it then holds the same
     * bytes. */
    return http_matches_etag(request, text_of(tag)) ? not_modified : full;
}

void answer_reply(const struct answer *answer, struct http_request *request,
                  struct http_message *message)
{
    bool plain = message == answer->plain || message == answer->plain_not_modified;
    if (http_precondition_fails(request, text_of(plain ? answer->plain_tag : answer->gzip_tag)))
        http_reply_error(request, &error_precondition_failed);
    else
        http_reply_message(request, message);
}

struct http_message *answer_plain(const struct answer *answer)
{
    return answer->plain;
}

uint64_t answer_mark(const struct answer *answer)
{
    return answer->mark;
}

bool answer_is_named(const struct answer *answer, const struct http_request *request)
{
    return http_names_etag(request, text_of(answer->plain_tag)) ||
           http_names_etag(request, text_of(answer->gzip_tag));
}

struct text answer_body(const struct answer *answer)
{
    return (struct text){answer->plain->body, answer->plain->body_size};
}
