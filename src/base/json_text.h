#pragma once

#include "base/text.h"

/*
 * JSON as text: is it strict JSON, and where do its values begin and end?
 *
 * It serves documents that pass through byte for byte (docs/feed.md). First the whole document is
 * checked, once; then it is cut into slices of itself with cursors, which trust it. Everything here
 * is a pure function of its input. Threads: any.
 */

#define JSON_TEXT_SIZE_MAX (32U * 1024 * 1024) /* bytes */
#define JSON_TEXT_DEPTH_MAX 256U               /* arrays and objects inside one another */

/* The first thing that is wrong, for a person. */
struct json_text_error {
    size_t offset;      /* in bytes, from 0 */
    size_t line;        /* from 1; lines end in LF */
    size_t column;      /* from 1, in characters (code points), not bytes */
    const char *reason; /* a constant: "expected a value" */
};

/*
 * STATUS_OK: `text` is one JSON value as RFC 8259 has it, all of it, in UTF-8, without a byte order
 * mark, within the bounds above. Otherwise STATUS_MALFORMED. When `minified` is not NULL, the value
 * is appended to it without insignificant whitespace, and otherwise byte for byte; on failure the
 * buffer's contents stay as they were. `error` may be NULL.
 */
MUST_CHECK enum status json_text_check(struct text text, struct buffer *minified,
                                       struct json_text_error *error);

/* Sets the place in a text of an error that the caller found in it; `offset` at
 * most the text's size, and what is before it must be UTF-8. */
void json_text_locate(struct json_text_error *error, struct text text, size_t offset,
                      const char *reason);

/* ---- everything below is only for text that json_text_check has accepted --------------------- */

enum json_text_kind { /* by the first byte */
                      JSON_TEXT_OBJECT = '{',
                      JSON_TEXT_ARRAY = '[',
                      JSON_TEXT_STRING = '"',
                      JSON_TEXT_NUMBER = '0',
                      JSON_TEXT_TRUE = 't',
                      JSON_TEXT_FALSE = 'f',
                      JSON_TEXT_NULL = 'n',
};

/* The value without whitespace around it. */
struct text json_text_trim(struct text text);

/* Returns the kind of a value that begins with its first byte. */
enum json_text_kind json_text_kind(struct text value);

/* Walks the direct elements of an array, or the direct members of an object (CHECKed), in order:
 *
 *     struct json_text_cursor cursor = json_text_open(value);
 *     while (json_text_next_member(&cursor, &name, &member)) …
 *
 * Slices are exact: from the first byte of a value to its last; a name with its quotes, as written.
 */
struct json_text_cursor {
    const char *at;
    const char *end;
};
struct json_text_cursor json_text_open(struct text container); /* at == NULL: nothing is in it */
bool json_text_next_element(struct json_text_cursor *cursor, struct text *element);
bool json_text_next_member(struct json_text_cursor *cursor, struct text *name, struct text *value);

/* For small documents: each call walks the container, which may be absent (at == NULL). What is not
 * there has at == NULL. */
struct text json_text_member(struct text object, struct text name);
struct text json_text_element(struct text array, size_t index);
size_t json_text_count(struct text array);

/* Without its quotes; empty unless the value is a string. Escapes stay as they are written. */
struct text json_text_inside(struct text value);
/* False: the value is absent, or no integer that fits. `integer` is then 0. */
bool json_text_integer(struct text value, int64_t *integer);

/* Is this string (with its quotes and escapes) `plain` when unescaped? A lone surrogate escape
 * equals nothing. */
bool json_text_string_equals(struct text string, struct text plain);

/* Appends what the string stands for, as UTF-8. False: it has the escape of a lone surrogate, which
 * stands for no character; U+FFFD is in its place. */
bool json_text_unescape(struct text string, struct buffer *out);
