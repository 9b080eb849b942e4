#ifndef CROUPIER_BASE_STRICT_JSON_H
#define CROUPIER_BASE_STRICT_JSON_H

#include "base/status.h"
#include "base/text.h"

/*
 * A request body that is one JSON object with known members, each at most once, however its name is
 * escaped. Pure. Threads: any.
 */
enum strict_json {
    STRICT_JSON_OK,
    STRICT_JSON_INVALID,       /* 400 invalid_request: not JSON, not an object, a member twice */
    STRICT_JSON_UNKNOWN_FIELD, /* 400 unknown_field; no member, known or not, is there twice */
};

/* `values[i]` becomes the value of the member `names[i]` as it stands in the body, or a text with
 * at == NULL when there is none. */
MUST_CHECK enum strict_json strict_json_object(struct text body, const struct text *names,
                                               size_t count, struct text *values);

/* A JSON string of 1 to `room` - 1 bytes of plain UTF-8 (text_is_plain), unescaped. False: it is
 * not, and also when there is no such member. */
MUST_CHECK bool strict_json_string(struct text value, char *out, size_t room);

/* application/json, alone or with `charset=utf-8`. */
bool content_type_is_json(struct text content_type);

#endif
