/*
 * A request's members by name; see strict_json.h.
 *
 * The body is checked once by base/json_text.h and cut into slices of itself. A member that is
 * there twice is told before one that is unknown, also when it is an unknown one that is there
 * twice; so the names of unknown members are kept until the end and compared then, which costs
 * honest requests nothing and others no more than sorting what fits into a body.
 */
#include "base/strict_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/memory.h"

/* Names of unknown members, unescaped, one after another. */
struct strangers {
    struct buffer names;
    size_t *ends; /* of each name in `names` */
    size_t count, room;
};

static void add_stranger(struct strangers *strangers, struct text name)
{
    if (strangers->count == strangers->room) {
        strangers->room = strangers->room == 0 ? 16 : strangers->room * 2;
        strangers->ends =
            memory_resize(strangers->ends, strangers->room * sizeof strangers->ends[0]);
    }
    json_text_unescape(name, &strangers->names);
    strangers->ends[strangers->count++] = strangers->names.size;
}

static int compare(const void *left, const void *right)
{
    const struct text *a = left;
    const struct text *b = right;
    size_t common = a->size < b->size ? a->size : b->size;
    int order = common == 0 ? 0 : memcmp(a->at, b->at, common);
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static bool has_twins(const struct strangers *strangers)
{
    struct text *names = memory_alloc_zeroed(strangers->count, sizeof names[0]);
    bool twins = false;
    for (size_t i = 0; i < strangers->count; i++) {
        size_t start = i == 0 ? 0 : strangers->ends[i - 1];
        names[i] = (struct text){strangers->names.data + start, strangers->ends[i] - start};
    }
    qsort(names, strangers->count, sizeof names[0], compare);
    for (size_t i = 1; i < strangers->count && !twins; i++)
        twins = compare(&names[i - 1], &names[i]) == 0;
    memory_free(names);
    return twins;
}

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
    struct strangers strangers = {0};
    struct text name;
    struct text value;
    bool twice = false;
    for (size_t i = 0; i < count; i++)
        values[i] = (struct text){NULL, 0};
    if (json_text_check(body, NULL, NULL) != STATUS_OK)
        return STRICT_JSON_INVALID;
    struct text object = json_text_trim(body);
    if (json_text_kind(object) != JSON_TEXT_OBJECT)
        return STRICT_JSON_INVALID;
    struct json_text_cursor cursor = json_text_open(object);
    while (!twice && json_text_next_member(&cursor, &name, &value)) {
        size_t at = find(name, names, count);
        if (at == count) {
            add_stranger(&strangers, name);
            continue;
        }
        twice = values[at].at != NULL;
        values[at] = value;
    }
    enum strict_json result = STRICT_JSON_OK;
    if (strangers.count > 0)
        result = STRICT_JSON_UNKNOWN_FIELD;
    if (twice || (strangers.count > 1 && has_twins(&strangers)))
        result = STRICT_JSON_INVALID;
    buffer_free(&strangers.names);
    memory_free(strangers.ends);
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

bool content_type_is_json(struct text content_type)
{
    struct text rest = content_type;
    struct text type = text_trim(text_cut(&rest, ';'));
    if (!text_equals_ignore_case(type, TEXT("application/json")))
        return false;
    struct text parameter = text_trim(rest);
    return parameter.size == 0 || text_equals_ignore_case(parameter, TEXT("charset=utf-8")) ||
           text_equals_ignore_case(parameter, TEXT("charset=\"utf-8\""));
}
