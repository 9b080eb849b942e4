/* A request's members by name; see strict_json.h. Two members of one name that is unknown are told as
 * unknown: there is nothing to choose between. */
#include "casino/strict_json.h"

#include <string.h>

#include "base/json_text.h"

static size_t find(struct text name, const struct text *names, size_t count)
{
    size_t i = 0;
    while (i < count && !json_text_string_equals(name, names[i]))
        i++;
    return i;
}

enum strict_json strict_json_object(struct text body, const struct text *names, size_t count,
                                    struct text *values)
{
    struct text name;
    struct text value;
    bool unknown = false;
    CHECK(count <= STRICT_JSON_MEMBERS_MAX);
    for (size_t i = 0; i < count; i++)
        values[i] = (struct text){NULL, 0};
    if (json_text_check(body, NULL, NULL) != STATUS_OK)
        return STRICT_JSON_INVALID;
    struct text object = json_text_trim(body);
    if (json_text_kind(object) != JSON_TEXT_OBJECT)
        return STRICT_JSON_INVALID;
    struct json_text_cursor cursor = json_text_open(object);
    while (json_text_next_member(&cursor, &name, &value)) {
        size_t at = find(name, names, count);
        if (at == count) {
            unknown = true;
            continue;
        }
        if (values[at].at != NULL)
            return STRICT_JSON_INVALID;
        values[at] = value;
    }
    return unknown ? STRICT_JSON_UNKNOWN_FIELD : STRICT_JSON_OK;
}

bool strict_json_string(struct text value, char *out, size_t room)
{
    struct buffer plain = {0};
    /* An escaped byte takes at most six, so what is longer as written cannot fit. */
    if (value.at == NULL || json_text_kind(value) != JSON_TEXT_STRING || value.size > 6 * room + 2)
        return false;
    json_text_unescape(value, &plain);
    /* A lone surrogate stands for nothing, so it equals nothing, not even what it was unescaped to. */
    bool fits = plain.size >= 1 && plain.size < room && text_is_plain(buffer_text(&plain)) &&
                json_text_string_equals(value, buffer_text(&plain));
    if (fits) {
        memcpy(out, plain.data, plain.size);
        out[plain.size] = '\0';
    }
    buffer_free(&plain);
    return fits;
}
