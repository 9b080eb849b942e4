/*
 * Messages made once and picked by content negotiation; see answer.h.
 *
 * The only things that change after creation are `gzip` and the differences' messages: NULL until
 * the message is made, then that message, or `plain` itself when compressing did not help. The
 * store is a release and the load an acquire, so that a thread that sees the pointer sees the whole
 * message. Two threads may make one message; the second is released.
 *
 * A difference keeps only the body of the answer of before, not the answer, which would keep
 * those before it.
 */
#include "http/answer.h"

#include <openssl/evp.h>
#include <zlib.h>
#include <zstd.h>

#include "base/base64url.h"
#include "base/digest.h"
#include "base/memory.h"
#include "http/errors.h"

#define TAG_DIGEST_BYTES 18 /* of the SHA-256: 144 bits, which are 24 characters of base64 */
#define TAG_CONTENT 25      /* characters that all forms' tags begin with: a quote and the digest */
#define HEAD_USUAL 320U     /* bytes: every head fits */
#define DICTIONARY_NAME 46  /* the SHA-256 in base64 between colons (RFC 9842 section 2.2) */
#define TAG_SIZE 48         /* two quotes, 24 characters, "-dcz-", 8 digits, NUL, rounded up */

/* Saves much of the size in little time: odds are repetitive, and each change compresses them
 * again. */
#define GZIP_LEVEL 5
#define ZSTD_LEVEL 8
#define ZSTD_MATCH_LEAST 6    /* bytes: the parts that two bodies share are long */
#define ZSTD_SMALL (1U << 16) /* bytes of both bodies, for which a table of 2^15 places is enough */
#define ZSTD_HASH_SMALL 15
#define ZSTD_WINDOW_USUAL 21 /* of that level, as the logarithm to base 2 */
#define ZSTD_WINDOW_MOST 23  /* every client must take it (RFC 9842 section 2.1.1) */

/* Kept for one answer: enough for clients that poll every some seconds. */
#define DIFFERENCES_MAX 16U
#define DIFFERENCES_FEW 2U /* for each answer, when half of the memory for all is used */
#define AGE_MAX 64U
/* A difference that is not so many times smaller than the body is compared with the gzipped form,
 * which gets there seldom. */
#define GZIP_AT_BEST 8U

/* The body of an answer of before, which clients may name. It counts as kept as long as one answer
 * has a difference from it. */
struct dictionary {
    atomic_uint references;
    struct http_message *plain; /* held */
    uint8_t digest[DIGEST_SIZE];
    char name[DICTIONARY_NAME + 1]; /* as clients write it */
};

struct difference {
    struct dictionary *from; /* held */
    unsigned age;            /* answers since */
    atomic_bool wanted;
    _Atomic(struct http_message *) message;
};

struct answer {
    atomic_uint references;
    bool varies; /* of a value that changes, and differences are kept */
    uint8_t digest[DIGEST_SIZE];
    atomic_bool gzip_wanted, differences_wanted;
    struct answer_counts *counts;
    struct http_message *plain;
    _Atomic(struct http_message *) gzip;
    struct http_message *plain_not_modified;
    struct http_message *gzip_not_modified;
    char plain_tag[TAG_SIZE];
    char gzip_tag[TAG_SIZE];
    struct difference *differences;
    size_t difference_count;
};

static void note(atomic_bool *wanted)
{
    if (!relaxed_load(wanted)) /* all threads share the cache line */
        relaxed_store(wanted, true);
}

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
    struct buffer base64 = {0};
    digest_sha256(body.at, body.size, answer->digest);
    buffer_append_base64url(&base64, answer->digest, TAG_DIGEST_BYTES);
    write_tag(answer->plain_tag, buffer_text(&base64), TEXT("\""));
    write_tag(answer->gzip_tag, buffer_text(&base64), TEXT("-gz\""));
    buffer_free(&base64);
}

/* 304 has the fields of 200 except those about the body: RFC 9110 section 15.4.5. Only
 * programs ask for differences, so nosniff, which is for browsers, is not on them. */
static struct http_message *make_message(const struct answer *answer, uint16_t status,
                                         const char *tag, const char *encoding, struct text body)
{
    bool difference = encoding != NULL && strcmp(encoding, "dcz") == 0;
    struct buffer head = {0};
    buffer_reserve(&head, HEAD_USUAL);
    /* Writes by hand, because formats cost a third of the time that an answer takes to make. */
    buffer_append_text(&head, TEXT("HTTP/1.1 "));
    buffer_append_text(&head, status == 200 ? TEXT("200 OK\r\nContent-Type: application/json\r\n")
                                            : TEXT("304 Not Modified\r\n"));
    if (!difference)
        buffer_append_text(&head, TEXT("X-Content-Type-Options: nosniff\r\n"));
    buffer_append_text(&head, TEXT("ETag: "));
    buffer_append_string(&head, tag);
    buffer_append_text(&head, answer->varies
                                  ? TEXT("\r\nVary: Accept-Encoding, Available-Dictionary\r\n")
                                  : TEXT("\r\nVary: Accept-Encoding\r\n"));
    buffer_append_text(&head, TEXT("Cache-Control: private, no-cache\r\n"));
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

/* A message that was made later: NULL, `plain`, or one that counts by itself. */
static void set_made(struct answer *answer, _Atomic(struct http_message *) *place,
                     struct http_message *made)
{
    struct http_message *none = NULL;
    if (!atomic_compare_exchange_strong_explicit(place, &none, made, memory_order_release,
                                                 memory_order_relaxed)) {
        if (made != answer->plain)
            http_message_release(&made);
    } else if (made != answer->plain) {
        relaxed_add(&answer->counts->bytes, message_bytes(made));
    }
}

static void free_made(struct answer *answer, _Atomic(struct http_message *) *place)
{
    struct http_message *made = relaxed_load(place);
    if (made == NULL || made == answer->plain)
        return;
    relaxed_subtract(&answer->counts->bytes, message_bytes(made));
    http_message_release(&made);
}

static struct answer *create(struct text body, struct answer_counts *counts, bool varies)
{
    struct answer *answer = memory_alloc_zeroed(1, sizeof *answer);
    atomic_init(&answer->references, 1);
    write_tags(answer, body);
    answer->varies = varies;
    answer->counts = counts;
    answer->plain = make_message(answer, 200, answer->plain_tag, NULL, body);
    answer->plain_not_modified = make_message(answer, 304, answer->plain_tag, NULL, TEXT(""));
    answer->gzip_not_modified = make_message(answer, 304, answer->gzip_tag, NULL, TEXT(""));
    relaxed_add(&counts->answers, 1);
    relaxed_add(&counts->bytes, fixed_bytes(answer));
    return answer;
}

struct answer *answer_create(struct text body, struct answer_counts *counts)
{
    return create(body, counts, false);
}

/* ---- dictionaries ---------------------------------------------------------------------------- */

static struct difference *add_difference(struct answer *answer, struct dictionary *from)
{
    if (answer->differences == NULL)
        answer->differences = memory_alloc_zeroed(DIFFERENCES_MAX, sizeof *answer->differences);
    struct difference *difference = &answer->differences[answer->difference_count++];
    difference->from = from;
    return difference;
}

/* A client that waits for this answer has the one before it. The newest goes before those that are
 * kept, so more than may be is kept until their answer ends. */
static void differ_from(struct answer *answer, const struct answer *before, uint64_t max)
{
    struct answer_counts *counts = answer->counts;
    size_t size = before->plain->body_size;
    if (size > max || relaxed_load(&counts->kept) > max)
        return;
    struct dictionary *dictionary = memory_alloc_zeroed(1, sizeof *dictionary);
    atomic_init(&dictionary->references, 1);
    dictionary->plain = http_message_hold(before->plain);
    memcpy(dictionary->digest, before->digest, DIGEST_SIZE);
    (void)EVP_EncodeBlock((uint8_t *)dictionary->name + 1, before->digest, DIGEST_SIZE);
    dictionary->name[0] = dictionary->name[DICTIONARY_NAME - 1] = ':';
    relaxed_add(&counts->kept, size);
    note(&add_difference(answer, dictionary)->wanted);
}

struct answer *answer_create_after(const struct answer *before, struct text body,
                                   struct answer_counts *counts)
{
    uint64_t max = relaxed_load(&counts->kept_max);
    struct answer *answer = create(body, counts, max > 0);
    if (before == NULL || max == 0)
        return answer;
    if (answer_differences_wanted(before))
        differ_from(answer, before, max);
    uint64_t kept = relaxed_load(&counts->kept);
    size_t most = kept <= max / 2 ? DIFFERENCES_MAX : kept <= max ? DIFFERENCES_FEW : 0;
    for (size_t i = 0; i < before->difference_count && answer->difference_count < most; i++) {
        const struct difference *old = &before->differences[i];
        if (old->age >= AGE_MAX)
            continue;
        relaxed_add(&old->from->references, 1);
        add_difference(answer, old->from)->age = old->age + 1;
    }
    return answer;
}

static void free_differences(struct answer *answer)
{
    for (size_t i = 0; i < answer->difference_count; i++) {
        struct difference *difference = &answer->differences[i];
        struct dictionary *from = difference->from;
        free_made(answer, &difference->message);
        if (atomic_fetch_sub_explicit(&from->references, 1, memory_order_acq_rel) > 1)
            continue;
        relaxed_subtract(&answer->counts->kept, from->plain->body_size);
        http_message_release(&from->plain);
        memory_free(from);
    }
    memory_free(answer->differences);
}

struct answer *answer_hold(struct answer *answer)
{
    relaxed_add(&answer->references, 1);
    return answer;
}

void answer_release(struct answer **answer)
{
    struct answer *mine = memory_take(answer);
    if (mine == NULL || atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) > 1)
        return;
    free_made(mine, &mine->gzip);
    free_differences(mine);
    relaxed_subtract(&mine->counts->answers, 1);
    relaxed_subtract(&mine->counts->bytes, fixed_bytes(mine));
    http_message_release(&mine->plain);
    http_message_release(&mine->plain_not_modified);
    http_message_release(&mine->gzip_not_modified);
    memory_free(mine);
}

/* ---- compressing ----------------------------------------------------------------------------- */

/* `plain`: it is no smaller than that. */
static struct http_message *make_gzip(const struct answer *answer, struct text body)
{
    z_stream stream = {0};
    CHECK(deflateInit2(&stream, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) == Z_OK);
    struct http_message *message = answer->plain;
    char *out = memory_alloc(body.size); /* a larger result is useless */
    stream.next_in = (z_const Bytef *)(uintptr_t)body.at;
    stream.avail_in = (uInt)body.size;
    stream.next_out = (Bytef *)out;
    stream.avail_out = (uInt)body.size;
    if (deflate(&stream, Z_FINISH) == Z_STREAM_END && stream.total_out < body.size)
        message = make_message(answer, 200, answer->gzip_tag, "gzip",
                               (struct text){out, stream.total_out});
    memory_free(out);
    CHECK(deflateEnd(&stream) != Z_STREAM_ERROR);
    return message;
}

void answer_compress(struct answer *answer)
{
    if (!answer_compressed(answer))
        set_made(answer, &answer->gzip, make_gzip(answer, answer_body(answer)));
}

bool answer_compressed(const struct answer *answer)
{
    return atomic_load_explicit(&answer->gzip, memory_order_acquire) != NULL;
}

bool answer_gzip_wanted(const struct answer *answer)
{
    return relaxed_load(&answer->gzip_wanted);
}

bool answer_differences_wanted(const struct answer *answer)
{
    return relaxed_load(&answer->differences_wanted);
}

/* A Dictionary-Compressed Zstandard stream (RFC 9842 section 5): a skippable frame with the
 * dictionary's digest, and a frame whose prefix the dictionary is. 0: it has no room in `out`. */
static size_t write_difference(const struct difference *difference, struct text body, char *out,
                               size_t room)
{
    static const uint8_t magic[] = {0x5e, 0x2a, 0x4d, 0x18, DIGEST_SIZE, 0, 0, 0};
    const size_t start = sizeof magic + DIGEST_SIZE;
    if (room <= start)
        return 0;
    memcpy(mempcpy(out, magic, sizeof magic), difference->from->digest, DIGEST_SIZE);
    ZSTD_CCtx *context = ZSTD_createCCtx();
    CHECK(context != NULL);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_strategy, ZSTD_lazy);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_minMatch, ZSTD_MATCH_LEAST);
    size_t both = difference->from->plain->body_size + body.size;
    if (both <= ZSTD_SMALL)
        (void)ZSTD_CCtx_setParameter(context, ZSTD_c_hashLog, ZSTD_HASH_SMALL);
    if (both > (size_t)1 << ZSTD_WINDOW_USUAL)
        (void)ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, ZSTD_WINDOW_MOST);
    (void)ZSTD_CCtx_refPrefix(context, difference->from->plain->body,
                              difference->from->plain->body_size);
    size_t size = ZSTD_compress2(context, out + start, room - start, body.at, body.size);
    (void)ZSTD_freeCCtx(context);
    return ZSTD_isError(size) ? 0 : start + size;
}

static struct http_message *make_difference(struct answer *answer, struct difference *difference)
{
    struct text body = answer_body(answer);
    struct http_message *message = answer->plain;
    char *out = memory_alloc(body.size);
    size_t size = write_difference(difference, body, out, body.size);
    if (size > body.size / GZIP_AT_BEST)
        answer_compress(answer);
    const struct http_message *gzip = atomic_load_explicit(&answer->gzip, memory_order_acquire);
    if (size > 0 && (gzip == NULL || size < gzip->body_size)) {
        char tag[TAG_SIZE];
        (void)snprintf(tag, sizeof tag, "%.*s-dcz-%02x%02x%02x%02x\"", TAG_CONTENT,
                       answer->plain_tag, difference->from->digest[0], difference->from->digest[1],
                       difference->from->digest[2], difference->from->digest[3]);
        message = make_message(answer, 200, tag, "dcz", (struct text){out, size});
    }
    memory_free(out);
    return message;
}

size_t answer_make_differences(struct answer *answer)
{
    size_t made = 0;
    for (size_t i = 0; i < answer->difference_count; i++) {
        struct difference *difference = &answer->differences[i];
        if (!relaxed_load(&difference->wanted) || relaxed_load(&difference->message) != NULL)
            continue;
        set_made(answer, &difference->message, make_difference(answer, difference));
        made++;
    }
    return made;
}

/* ---- picking --------------------------------------------------------------------------------- */

static struct difference *find_difference(struct answer *answer, const struct http_request *request)
{
    struct text name = http_request_only_field(request, HTTP_FIELD_AVAILABLE_DICTIONARY);
    for (size_t i = 0; i < answer->difference_count; i++)
        if (text_equals(name, (struct text){answer->differences[i].from->name, DICTIONARY_NAME}))
            return &answer->differences[i];
    return NULL;
}

struct http_message *answer_pick(struct answer *answer, const struct http_request *request)
{
    struct http_codings accepted = http_accepted_codings(request);
    struct http_message *full = answer->plain;
    struct http_message *not_modified = answer->plain_not_modified;
    const char *tag = answer->plain_tag;
    if (accepted.dcz && answer->varies && request->field_count[HTTP_FIELD_IF_MATCH] == 0) {
        note(&answer->differences_wanted);
        if (answer_is_named(answer, request)) /* its content is that of any form */
            return http_names_form(request, text_of(answer->gzip_tag)) ? answer->gzip_not_modified
                                                                       : not_modified;
        struct difference *difference = find_difference(answer, request);
        if (difference != NULL && !http_matches_etag(request, TEXT("*"))) {
            note(&difference->wanted);
            struct http_message *message =
                atomic_load_explicit(&difference->message, memory_order_acquire);
            if (message != answer->plain)
                return message;
        }
    }
    if (accepted.gzip) {
        note(&answer->gzip_wanted);
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

bool answer_refuse(const struct answer *answer, struct http_request *request,
                   const struct http_message *message)
{
    bool plain = message == answer->plain || message == answer->plain_not_modified;
    if (!http_precondition_fails(request, text_of(plain ? answer->plain_tag : answer->gzip_tag)))
        return false;
    http_reply_error(request, &error_precondition_failed);
    return true;
}

void answer_reply(const struct answer *answer, struct http_request *request,
                  struct http_message *message)
{
    if (!answer_refuse(answer, request, message))
        http_reply_message(request, message);
}

struct http_message *answer_plain(const struct answer *answer)
{
    return answer->plain;
}

uint64_t answer_mark(const struct answer *answer)
{
    uint64_t mark;
    memcpy(&mark, answer->digest, sizeof mark);
    return mark | 1;
}

bool answer_is_named(const struct answer *answer, const struct http_request *request)
{
    return http_names_form(request, (struct text){answer->plain_tag, TAG_CONTENT});
}

struct text answer_body(const struct answer *answer)
{
    return (struct text){answer->plain->body, answer->plain->body_size};
}
