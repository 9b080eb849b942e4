#ifndef CROUPIER_SPORTS_FILTER_H
#define CROUPIER_SPORTS_FILTER_H

#include "base/text.h"

/*
 * Objects of the feed on their way out: the hidden members are cut out of their text, everything
 * else passes byte for byte (docs/feed.md).
 */
struct object_filter {
    const struct text *hidden; /* names that go, however they are escaped and however often */
    size_t hidden_count;
    struct text wanted; /* the name of a member to look out for; may be empty */
};

/* Appends `object` (minified text that json_text_check accepted) without its hidden direct members;
 * what is nested in other members is not touched. When `wanted_value` is not NULL, it is set to the
 * last value under the wanted name, or to the empty text. */
void object_filter_append(const struct object_filter *filter, struct text object,
                          struct buffer *out, struct text *wanted_value);

#endif
