/* Cuts members out of the text of an object; see filter.h. */
#include "sports/filter.h"

static bool is_hidden(const struct object_filter *filter, struct text name)
{
    for (const struct text *hidden = filter->hidden; hidden->size > 0; hidden++)
        if (json_text_string_equals(name, *hidden))
            return true;
    return false;
}

void object_filter_append(const struct object_filter *filter, struct text object,
                          struct buffer *out, struct text *wanted_value)
{
    struct json_text_cursor cursor = json_text_open(object);
    struct text name;
    struct text value;
    struct text wanted = {NULL, 0};
    bool first = true;
    buffer_reserve(out, object.size);
    buffer_append_char(out, '{');
    while (json_text_next_member(&cursor, &name, &value)) {
        if (wanted_value != NULL && json_text_string_equals(name, filter->wanted))
            wanted = value;
        if (is_hidden(filter, name))
            continue;
        if (!first)
            buffer_append_char(out, ',');
        first = false;
        /* Name, colon and value stand side by side: the text is minified. */
        buffer_append(out, name.at, (size_t)(value.at + value.size - name.at));
    }
    buffer_append_char(out, '}');
    if (wanted_value != NULL)
        *wanted_value = wanted;
}

static enum status refuse(struct json_text_error *error, const char *reason)
{
    if (error != NULL)
        *error = (struct json_text_error){.reason = reason};
    return STATUS_MALFORMED;
}

enum status feed_array_minify(struct text stored, struct buffer *minified,
                              struct json_text_error *error)
{
    struct text element;
    if (json_text_check(stored, minified, error) != STATUS_OK)
        return STATUS_MALFORMED;
    if (json_text_kind(buffer_text(minified)) != JSON_TEXT_ARRAY)
        return refuse(error, "not an array");
    struct json_text_cursor cursor = json_text_open(buffer_text(minified));
    while (json_text_next_element(&cursor, &element))
        if (json_text_kind(element) != JSON_TEXT_OBJECT)
            return refuse(error, "an element of the array is not an object");
    return STATUS_OK;
}
