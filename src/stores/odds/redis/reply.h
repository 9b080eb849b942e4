#pragma once

#include "base/text.h"

/*
 * Reads the replies of a Redis server: RESP2 and RESP3, in pieces of any size.
 *
 * Everything is bounded, whatever the server sends: the memory of a reply, the depth of its lists,
 * the length of a line. A string that is longer than any document is skipped; the error "TOOLARGE
 * …" stands in its place. An announced length is not believed before the bytes have come.
 */

enum redis_type {
    REDIS_NIL,
    REDIS_STATUS,  /* "+OK" */
    REDIS_STRING,  /* also what RESP3 writes as a double or as a big number */
    REDIS_ERROR,   /* "-ERR …" */
    REDIS_INTEGER, /* also a boolean, 0 or 1 */
    REDIS_LIST,    /* an array, a set, or a map as names and values in turn */
    REDIS_PUSH,    /* a list that answers nothing; never inside of a reply */
};

struct redis_reply {
    enum redis_type type;
    int64_t integer;
    struct text text; /* of a status, string or error; one NUL beyond its size */
    struct redis_reply *elements;
    size_t count;
    size_t offset; /* the parser's: of the text */
};

#define REDIS_TOO_LARGE "TOOLARGE the value is larger than 32 MiB"

struct redis_parser;

/* Strings of more than `string_max` bytes are not taken in; a reply that would hold more than
 * `reply_max` bytes in memory is broken. */
struct redis_parser *redis_parser_create(size_t string_max, size_t reply_max);
void redis_parser_destroy(struct redis_parser **parser);

/* Takes from `bytes` what belongs to the next reply. STATUS_OK: it is complete, `reply` is set and
 * good until the next call, and `bytes` is what follows. STATUS_PENDING: all was taken, and more
 * has to come. STATUS_MALFORMED: this is not the protocol; STATUS_FULL: the reply is too large; the
 * parser must not be used again after these two. */
MUST_CHECK enum status redis_parser_take(struct redis_parser *parser, struct text *bytes,
                                         const struct redis_reply **reply);

/* The element of a list of names and values that stands after `name`, or NULL. */
const struct redis_reply *redis_reply_value(const struct redis_reply *reply, const char *name);
/* Is it a string or a status of these bytes? */
bool redis_reply_is(const struct redis_reply *reply, const char *text);
