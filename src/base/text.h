#pragma once

#include "base/status.h"

/*
 * Bytes with a length. A `struct text` borrows: the bytes are owned elsewhere, which need not end
 * in NUL and may hold any value. `at` may be NULL only when `size` is 0.
 */
struct text {
    const char *at;
    size_t size;
};

#define TEXT(literal) ((struct text){"" literal, sizeof(literal) - 1})
/* The same in the initializer of a static table, where C wants constants. */
#define TEXT_INIT(literal)              \
    {                                   \
        "" literal, sizeof(literal) - 1 \
    }

/* For "%.*s": as much of a text as a message has room for. */
#define TEXT_SHOWN(text) \
    (int)((text).size < 64 ? (text).size : 64), (text).size > 0 ? (text).at : ""

struct text text_of(const char *string); /* of a NUL-terminated string; NULL is the empty text */
bool text_equals(struct text a, struct text b);
bool text_equals_ignore_case(struct text a, struct text b); /* ASCII letters only */
bool text_starts_with(struct text text, struct text start);
/* Returns which of the names the text is, of which some may be NULL (that is, ""); `count`:
 * none. */
size_t text_find(struct text text, const char *const *names, size_t count);
/* The names of an enum's values, by value. */
struct enum_names {
    const char *const *list;
    size_t count;
};
#define ENUM_NAMES(list_)                                           \
    {                                                               \
        .list = (list_), .count = sizeof(list_) / sizeof(list_)[0], \
    }
const char *enum_name(const struct enum_names *names, unsigned value); /* CHECKed */
/* Sets the enum to the value of this name. False: it has none. */
MUST_CHECK bool enum_read(const struct enum_names *names, struct text name, void *value);

struct text text_trim(struct text text); /* without spaces and tabs at both ends */

/* Steps over so many bytes, which the text has. */
static inline void text_skip(struct text *text, size_t size)
{
    text->at += size;
    text->size -= size;
}

/* The length of the UTF-8 sequence at `at` (RFC 3629 section 4), or 0 when it is not one. Size >
 * 0. */
size_t utf8_sequence(const char *at, size_t size);

/* Whether it is UTF-8 (RFC 3629) without control characters (C0, DEL, C1): fit to be shown. */
bool text_is_plain(struct text text);

/* Percent-decodes (RFC 3986 section 2.1) into a NUL-terminated string of at most `room` bytes, with
 * '+' as a space where `plus`. False: a broken escape, a NUL, or too long. */
MUST_CHECK bool text_decode(struct text encoded, bool plus, char *out, size_t room);

/* Copies a text with its NUL into `out`, which has `room` bytes. One whose `at` is NULL, that does
 * not fit or is not plain is "" and false. */
bool text_copy_plain(struct text text, char *out, size_t room);

/* Cuts `rest` at the first `separator`: returns what is before it and leaves what follows in `rest`
 * (`rest->at` is NULL when there was no separator, so a loop ends there). */
struct text text_cut(struct text *rest, char separator);

/* The value of a hexadecimal digit; -1: it is none. */
int hex_value(char digit);

/* `size` bytes from two digits each, and nothing more. False: `digits` holds something else; then
 * `out` is undefined. */
MUST_CHECK bool hex_read(struct text digits, uint8_t *out, size_t size);

/* Two lower-case digits a byte, without a NUL. */
void hex_write(char *out, const uint8_t *bytes, size_t size);

/* Decimal digits only, no sign, no space; STATUS_INVALID otherwise or above `maximum`. */
MUST_CHECK enum status text_to_u64(struct text text, uint64_t maximum, uint64_t *value);

/*
 * A growing buffer of bytes. Owns its memory. A zeroed struct is an empty buffer.
 * Threads: one at a time.
 */
struct buffer {
    char *data;
    size_t size;
    size_t capacity;
};

void buffer_reserve(struct buffer *buffer, size_t more); /* room for `more` bytes beyond size */
static inline void buffer_append(struct buffer *buffer, const void *bytes, size_t size)
{
    if (size > buffer->capacity - buffer->size)
        buffer_reserve(buffer, size);
    if (size > 0)
        memcpy(buffer->data + buffer->size, bytes, size);
    buffer->size += size;
}
static inline void buffer_append_text(struct buffer *buffer, struct text text)
{
    buffer_append(buffer, text.at, text.size);
}
static inline void buffer_append_string(struct buffer *buffer, const char *string)
{
    buffer_append(buffer, string, strlen(string));
}
static inline void buffer_append_char(struct buffer *buffer, char character)
{
    buffer_append(buffer, &character, 1);
}
/* "sports,casino": the names of a set, in which bit N is the N-th. */
void buffer_append_set(struct buffer *buffer, const struct enum_names *names, uint32_t set);
/* "one, two or three". */
void buffer_append_choices(struct buffer *buffer, const char *const *words, size_t count);
void buffer_append_u64(struct buffer *buffer, uint64_t value);
void buffer_append_i64(struct buffer *buffer, int64_t value);
/* For a terminal: with a '?' in place of each control or format character (U+202E turns the rest of
 * a line round) and each byte that is no UTF-8. */
void buffer_append_shown(struct buffer *buffer, struct text text);
void buffer_append_format(struct buffer *buffer, const char *format, ...) PRINTF_LIKE(2, 3);
/* As a JSON string with its quotes (RFC 8259 section 7); bytes that are not UTF-8 become U+FFFD. */
void buffer_append_json_string(struct buffer *buffer, struct text text);
/* The bytes as a NUL-terminated string (the NUL is not counted in size). */
const char *buffer_string(struct buffer *buffer);
struct text buffer_text(const struct buffer *buffer);
void buffer_clear(struct buffer *buffer); /* keeps the memory */
void buffer_wipe(struct buffer *buffer);  /* buffer_free, after zeroing: it has held a secret */
void buffer_free(struct buffer *buffer);  /* gives the memory back; the buffer is empty again */

/* Writes `value` in decimal at `at` (at least 20 bytes of room, no NUL); returns the length. */
size_t decimal_write(char *at, uint64_t value);
