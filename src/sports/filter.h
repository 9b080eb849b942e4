#pragma once

#include "base/json_text.h"

/*
 * Objects of the feed on their way out: the filter cuts the hidden members out of their text, and
 * everything else passes byte for byte (docs/feed.md).
 */
struct object_filter {
    struct text hidden[4]; /* names to cut out, escaped or not, and every time; "" ends them */
    struct text wanted;    /* the name of a member to look out for; may be empty */
};

/* Appends `object` (minified text that json_text_check accepted) without its hidden direct members.
 * Members that are nested in others stay. When `wanted_value` is not NULL, sets it to the last
 * value under the wanted name, or to the empty text. */
void object_filter_append(const struct object_filter *filter, struct text object,
                          struct buffer *out, struct text *wanted_value);

/* Appends a stored document without whitespace. STATUS_MALFORMED: not strict JSON, not an array, or
 * an element is not an object. `error` may be NULL; its line is 0 when the error is about the
 * document as a whole. */
MUST_CHECK enum status feed_array_minify(struct text stored, struct buffer *minified,
                                         struct json_text_error *error);
