#pragma once

#include "base/json_writer.h"

/* Percent-encoded values of a path or a query (RFC 3986 section 2.1). Pure. Threads: any. */

#define CONSOLE_VALUE_SIZE 256 /* of a decoded value, with its NUL */
#define CONSOLE_PARAMETERS_MAX 8

/* Decodes into a NUL-terminated string; in a query '+' is a space. False: a broken escape, a
 * control character, no UTF-8, or too long. */
MUST_CHECK bool console_decode(struct text encoded, bool of_query, char out[CONSOLE_VALUE_SIZE]);

/*
 * A query that is read parameter by parameter. The first parameter that is wrong sets `status` to
 * STATUS_INVALID and says why in `error`; the caller looks at it when all are read. Until then the
 * values of wrong parameters are those of absent ones.
 */
struct console_query {
    struct text text;
    enum status status;
    struct error *error;
    char values[CONSOLE_PARAMETERS_MAX][CONSOLE_VALUE_SIZE]; /* of the parameters that were read */
    size_t count;
};

/* The value of a parameter ("": it is not there), which may be given once; good for as long as the
 * query is. A caller reads CONSOLE_PARAMETERS_MAX values at the most (CHECKed). */
const char *console_parameter(struct console_query *query, const char *name);

/* A whole number from 1 to `most`; `otherwise` where it is not there. */
uint64_t console_number(struct console_query *query, const char *name, uint64_t most,
                        uint64_t otherwise);

/* Returns which of the words the parameter is; NULL ends the words, and an absent parameter is the
 * first. */
size_t console_choice(struct console_query *query, const char *name, const char *const *words);

/* The query of a list: q, limit and cursor. */
struct console_page {
    const char *words; /* to find in a row; "": any */
    uint64_t limit, offset;
};
#define CONSOLE_PAGE_MAX 200 /* rows */
void console_page(struct console_query *query, struct console_page *page);
/* Ends the rows of a page, and writes the last members of its document: how many rows there are on
 * all pages (UINT64_MAX: too many to count), and the cursor of the next page, or 0. */
void console_end_page(struct json_writer *json, uint64_t found, uint64_t next);
/* Where the cursor is how many rows are before it. */
uint64_t console_next(const struct console_page *page, uint64_t found);

/* Refuses a parameter that the caller reads itself, with this rule, unless another was refused
 * before. */
void console_refuse_parameter(struct console_query *query, const char *name, const char *rule);
