#pragma once

#include "base/text.h"

/*
 * Writes a JSON document, front to back, into a buffer. Every document of ours is written with it.
 *
 *     struct json_writer json = {.out = &body};
 *     json_object(&json, NULL);
 *     json_string(&json, "id", record->id);
 *     json_array(&json, "cidrs");
 *     json_string(&json, NULL, "203.0.113.0/24");
 *     json_end(&json);
 *     json_end(&json);
 *
 * Each value takes its name inside an object, and NULL as an element or as the document (CHECKed).
 * Names are constants of the program and written as they are. The writer keeps track of commas, so
 * between two values the caller may empty the buffer (after printing it) and go on. A zeroed writer
 * with `out` set writes without white space. Threads: one at a time.
 */

#define JSON_WRITER_DEPTH_MAX 32U /* objects and arrays inside one another (CHECKed) */

enum json_layout {
    JSON_COMPACT,  /* {"a":1,"b":2} */
    JSON_SPACED,   /* {"a": 1, "b": 2} */
    JSON_ROWS,     /* compact, but each value of the outermost level on a line of its own */
    JSON_INDENTED, /* a line a value, four spaces a level */
};

struct json_writer {
    struct buffer *out; /* the caller's */
    enum json_layout layout;
    unsigned depth;    /* of objects and arrays that are open */
    uint32_t arrays;   /* bit d: the container open at depth d + 1 is an array */
    uint32_t filled;   /* bit d: it has a value already */
    const char *space; /* goes before the next value; see json_space */
};

void json_object(struct json_writer *json, const char *name);
void json_array(struct json_writer *json, const char *name);
void json_end(struct json_writer *json);     /* of the innermost object or array */
void json_end_all(struct json_writer *json); /* of all that are open */

void json_text(struct json_writer *json, const char *name, struct text value);
void json_string(struct json_writer *json, const char *name, const char *value);
/* "" and NULL are null. */
void json_string_or_null(struct json_writer *json, const char *name, const char *value);
void json_integer(struct json_writer *json, const char *name, int64_t value);
void json_unsigned(struct json_writer *json, const char *name, uint64_t value);
void json_bool(struct json_writer *json, const char *name, bool value);
void json_null(struct json_writer *json, const char *name);
/* 0 is null. */
void json_unsigned_or_null(struct json_writer *json, const char *name, uint64_t value);

/* RFC 3339, in UTC with milliseconds; 0 is null. */
void json_time(struct json_writer *json, const char *name, int64_t time_ms);
/* The bytes as a string of lower-case hexadecimal digits. */
void json_hex(struct json_writer *json, const char *name, const uint8_t *bytes, size_t size);
/* A list of texts, separated by LF, as an array of strings; "" is an empty one. */
void json_lines(struct json_writer *json, const char *name, struct text lines);
/* The names of a set, as buffer_append_set has it, as an array of strings. */
void json_set(struct json_writer *json, const char *name, const struct enum_names *names,
              uint32_t set);

/* Writes text that is JSON already, unchanged. */
void json_raw(struct json_writer *json, const char *name, struct text value);
/* The same for a caller who then appends the value to `out`. */
void json_begin_raw(struct json_writer *json, const char *name);

/* White space between the next value and the comma or bracket before it; a constant. */
void json_space(struct json_writer *json, const char *space);
