/*
 * A request's members by name; see strict_json.h.
 *
 * The body is checked once by base/json_text.h and cut into slices of itself. A member that is
 * there twice is reported before one that is unknown, also when it is an unknown one that is there
 * twice: so all names are kept, unescaped, and each is compared with those before it.
 */
#include "base/strict_json.h"

#include <string.h>

#include "base/json_text.h"

struct names {
    struct buffer bytes; /* one after another */
    size_t ends[STRICT_JSON_MEMBERS_MAX];
    size_t count;
};

/* Adds a name; false: it is there already, or there are too many. */
static bool add_name(struct names *names, struct text escaped, struct text *name)
{
    size_t start = names->bytes.size;
    if (names->count == STRICT_JSON_MEMBERS_MAX)
        return false;
    json_text_unescape(escaped, &names->bytes);
    *name = (struct text){names->bytes.data + start, names->bytes.size - start};
    for (size_t i = 0; i < names->count; i++) {
        size_t at = i == 0 ? 0 : names->ends[i - 1];
        if (text_equals(*name, (struct text){names->bytes.data + at, names->ends[i] - at}))
            return false;
    }
    names->ends[names->count++] = names->bytes.size;
    return true;
}

enum strict_json strict_json_object(struct text body, const struct text *names, size_t count,
                                    struct text *values)
{
    enum strict_json result = STRICT_JSON_OK;
    struct names seen = {.count = 0};
    struct text name;
    struct text value;
    for (size_t i = 0; i < count; i++)
        values[i] = (struct text){NULL, 0};
    struct text object = json_text_trim(body);
    if (json_text_check(body, NULL, NULL) != STATUS_OK ||
        json_text_kind(object) != JSON_TEXT_OBJECT)
        return STRICT_JSON_INVALID;
    struct json_text_cursor cursor = json_text_open(object);
    while (result != STRICT_JSON_INVALID && json_text_next_member(&cursor, &name, &value)) {
        size_t at = 0;
        if (!add_name(&seen, name, &name))
            result = STRICT_JSON_INVALID;
        while (at < count && !text_equals(name, names[at]))
            at++;
        if (at < count)
            values[at] = value;
        else if (result == STRICT_JSON_OK)
            result = STRICT_JSON_UNKNOWN_FIELD;
    }
    buffer_free(&seen.bytes);
    return result;
}

bool strict_json_string(struct text value, char *out, size_t room)
{
    struct buffer plain = {0};
    /* An escaped byte takes at most six, so what is longer as written cannot fit. */
    if (value.at == NULL || json_text_kind(value) != JSON_TEXT_STRING || value.size > 6 * room + 2)
        return false;
    json_text_unescape(value, &plain);
    /* A lone surrogate stands for nothing, so it equals nothing, not even what it was unescaped
     * to. */
    bool fits = plain.size >= 1 && plain.size < room && text_is_plain(buffer_text(&plain)) &&
                json_text_string_equals(value, buffer_text(&plain));
    if (fits) {
        memcpy(out, plain.data, plain.size);
        out[plain.size] = '\0';
    }
    buffer_free(&plain);
    return fits;
}

/* application/json, alone or with `charset=utf-8`. */
static bool content_type_is_json(struct text content_type)
{
    struct text rest = content_type;
    struct text type = text_trim(text_cut(&rest, ';'));
    if (!text_equals_ignore_case(type, TEXT("application/json")))
        return false;
    struct text parameter = text_trim(rest);
    return parameter.size == 0 || text_equals_ignore_case(parameter, TEXT("charset=utf-8")) ||
           text_equals_ignore_case(parameter, TEXT("charset=\"utf-8\""));
}

static bool read_field(const struct strict_json_field *field, struct text value, void *out)
{
    char *to = (char *)out + field->offset;
    if (field->read != NULL)
        return field->read(value, to);
    return strict_json_string(value, to, field->size) &&
           (field->is_sound == NULL || field->is_sound(text_of(to)));
}

enum strict_json strict_json_decode(struct text content_type, struct text body,
                                    const struct strict_json_field *fields, size_t count,
                                    unsigned (*case_of)(const void *), void *out)
{
    struct text names[STRICT_JSON_FIELDS_MAX];
    struct text values[STRICT_JSON_FIELDS_MAX];
    CHECK(count <= STRICT_JSON_FIELDS_MAX);
    if (!content_type_is_json(content_type))
        return STRICT_JSON_INVALID;
    for (size_t i = 0; i < count; i++)
        names[i] = fields[i].name;
    enum strict_json result = strict_json_object(body, names, count, values);
    for (size_t i = 0; i < count && result == STRICT_JSON_OK; i++)
        if (values[i].at != NULL && !read_field(&fields[i], values[i], out))
            result = STRICT_JSON_INVALID;
    unsigned kind = result == STRICT_JSON_OK ? case_of(out) : 0;
    for (size_t i = 0; i < count && result == STRICT_JSON_OK; i++)
        if (((values[i].at != NULL ? ~fields[i].allowed : fields[i].required) & kind) != 0)
            result = STRICT_JSON_INVALID;
    return result;
}
