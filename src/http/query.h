#pragma once

#include "base/text.h"

/*
 * A query whose parameters are known, each at most once, into a struct. Names and values are
 * percent-encoded, and '+' is a space. Pure. Threads: any.
 */
#define HTTP_QUERY_VALUE_MAX 255 /* bytes of a decoded value */
#define HTTP_QUERY_PARAMETERS_MAX 32

#define HTTP_QUERY_LIMIT 50U      /* rows of a page, unless a query says otherwise, */
#define HTTP_QUERY_LIMIT_MAX 200U /* and at most */

struct http_parameter {
    struct text name;
    size_t offset, room;                       /* of the field in the struct */
    bool (*sound)(struct text value);          /* of a text, which is not empty and fits */
    bool (*read)(struct text value, void *to); /* NULL: it is a text */
    const char *rule;                          /* for people, when it is not kept */
};

enum http_query { HTTP_QUERY_READ, HTTP_QUERY_UNKNOWN, HTTP_QUERY_TWICE, HTTP_QUERY_UNSOUND };

/* `at`: the parameter that is there twice, or is not what it must be. */
MUST_CHECK enum http_query http_query_read(struct text query,
                                           const struct http_parameter *parameters, size_t count,
                                           void *out, size_t *at);

/* Reads the limit of a page: a uint32_t from 1 to HTTP_QUERY_LIMIT_MAX, of three digits at most. */
MUST_CHECK bool http_query_limit(struct text value, void *to);
