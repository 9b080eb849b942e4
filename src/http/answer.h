#pragma once

#include "http/http.h"

/*
 * One JSON body, ready to be sent in every form a client may ask for: as it is, gzipped, as the
 * difference from an answer of before, and as the 304 (docs/interface.md, "Polling"). Immutable
 * except for the gzipped form and the differences, which are made once, when a client first asks
 * for them. Reference-counted; any thread may use it.
 *
 * The entity tag is strong and depends only on the content: two answers with the same body have the
 * same tag. The other forms' tags have that content's before their end, as the bytes differ: "-gz",
 * and "-dcz-" with the first 8 digits of the dictionary's digest in hex.
 */
struct answer;

/* Totals over all answers. An answer counts from answer_create until its last reference is
 * released. */
struct answer_counts {
    atomic_uint_fast64_t answers;
    atomic_uint_fast64_t bytes;
    /* Bytes of the bodies that are kept as dictionaries, and how many there may be; 0: none. */
    atomic_uint_fast64_t kept, kept_max;
};

/* Starts with one reference; copies `body`. `counts` is borrowed. */
struct answer *answer_create(struct text body, struct answer_counts *counts);
/* The same for a value that changes. `before` is its answer of before (borrowed; NULL: none): if a
 * client got it that takes differences, the new answer keeps its body as a dictionary, and those
 * that `before` keeps, as far as counts->kept_max allows, the newest first. */
struct answer *answer_create_after(const struct answer *before, struct text body,
                                   struct answer_counts *counts);
struct answer *answer_hold(struct answer *answer);
void answer_release(struct answer **answer);

/* Two answers with the same mark have the same body. */
uint64_t answer_mark(const struct answer *answer);

/* Does the request name the tag of this answer, in any of its forms? */
bool answer_is_named(const struct answer *answer, const struct http_request *request);

struct text answer_body(const struct answer *answer);

/* The message for this request, by its Accept-Encoding, Available-Dictionary and If-None-Match; it
 * lives as long as the answer. NULL: the client wants a form which has not been made yet:
 * answer_compress and answer_make_differences, then ask again (or send answer_plain, which is
 * always right). */
struct http_message *answer_pick(struct answer *answer, const struct http_request *request);
/* Replies with 412 when the request has an If-Match that does not name the tag of this message,
 * which comes before If-None-Match (RFC 9110 section 13.2.2). False: it has none, or names it, and
 * nothing was sent. Call it before fields are added that belong to the message alone. */
bool answer_refuse(const struct answer *answer, struct http_request *request,
                   const struct http_message *message);
/* Replies with a message of this answer, or with that 412. */
void answer_reply(const struct answer *answer, struct http_request *request,
                  struct http_message *message);
struct http_message *answer_plain(const struct answer *answer);

/* Did any client want this one gzipped? Did one want it that takes differences? */
bool answer_gzip_wanted(const struct answer *answer);
bool answer_differences_wanted(const struct answer *answer);

/* Makes the gzipped form (takes milliseconds: for a pool thread). When gzip does not make it
 * smaller, the plain form is used in its place. */
void answer_compress(struct answer *answer);
bool answer_compressed(const struct answer *answer);

/* Makes the differences that were wanted and are not there (the same threads). Where one is no
 * smaller than the gzipped form, that is used in its place. Returns how many it made. */
size_t answer_make_differences(struct answer *answer);
