#pragma once

#include "base/text.h"

/*
 * A body that is one JSON object with known members, each at most once, however its name is
 * escaped. Pure. Threads: any.
 */
#define STRICT_JSON_MEMBERS_MAX 64 /* with those that are not known */

/* INVALID (400 invalid_request): it is not JSON or no object, has a member twice or too many of
 * them, a value that is not sound, or not the members of its case. UNKNOWN_FIELD (400
 * unknown_field): no member, known or not, is there twice. */
enum strict_json { STRICT_JSON_OK, STRICT_JSON_INVALID, STRICT_JSON_UNKNOWN_FIELD };

/* `values[i]` becomes the value of the member `names[i]` as it stands in the body, or a text with
 * at == NULL when there is none. */
MUST_CHECK enum strict_json strict_json_object(struct text body, const struct text *names,
                                               size_t count, struct text *values);

/* A JSON string of 1 to `room` - 1 bytes of plain UTF-8 (text_is_plain), unescaped. False: it is
 * not, and also when there is no such member. */
MUST_CHECK bool strict_json_string(struct text value, char *out, size_t room);

/* Into a bool: true or false. False: it is neither. */
MUST_CHECK bool strict_json_flag(struct text value, void *flag);

/* Into an enum: a string that is one of the names. False: it is not. */
MUST_CHECK bool strict_json_name(struct text value, const struct enum_names *names, void *out);

/*
 * A member that becomes a field of a struct. The required members may depend on the kind of
 * request: its case, one bit, known when all present values have been read.
 */
struct strict_json_field {
    struct text name;
    unsigned required, allowed;        /* cases */
    size_t offset, size;               /* of the field: STRICT_JSON_FIELD */
    bool (*is_sound)(struct text);     /* of a string, which fits its field; NULL: any */
    bool (*read)(struct text, void *); /* NULL: it is a string */
    const char *rule;                  /* of its value, for people: "must be an integer" */
    bool null_is_absent;               /* else null is a value like any other, and not sound */
};
#define STRICT_JSON_FIELD(type, field) \
    offsetof(struct type, field), sizeof(((struct type *)NULL)->field)
#define STRICT_JSON_FIELDS_MAX 16

/* All members that a request may have. The first one decides its case. */
struct strict_json_form {
    const struct strict_json_field *fields;
    size_t count;
    unsigned (*case_of)(const void *request); /* NULL: there is one case, 1 */
};

/* The error, a sentence for people, made of the form's words and never of the request's. */
struct strict_json_fault {
    char message[224];
};

/* A request's body, of application/json, into a zeroed struct. `fault` is filled in unless
 * STRICT_JSON_OK. */
MUST_CHECK enum strict_json strict_json_decode(struct text content_type, struct text body,
                                               const struct strict_json_form *form, void *out,
                                               struct strict_json_fault *fault);
