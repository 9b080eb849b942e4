/*
 * Whether a comma is due is kept in a bit a level, not read off the buffer, whose contents the
 * caller may have taken away.
 */
#include "base/json_writer.h"

#include "base/clock.h"

static bool in_array(const struct json_writer *json)
{
    return json->depth > 0 && (json->arrays >> (json->depth - 1) & 1) != 0;
}

static bool is_filled(const struct json_writer *json)
{
    return json->depth > 0 && (json->filled >> (json->depth - 1) & 1) != 0;
}

static void start_line(struct json_writer *json)
{
    buffer_append_char(json->out, '\n');
    for (unsigned i = 0; i < json->depth; i++)
        buffer_append(json->out, "    ", 4);
}

void json_begin_raw(struct json_writer *json, const char *name)
{
    CHECK((name != NULL) == (json->depth > 0 && !in_array(json)));
    if (is_filled(json))
        buffer_append_char(json->out, ',');
    if (json->space != NULL)
        buffer_append_string(json->out, json->space);
    else if (json->layout == JSON_INDENTED && json->depth > 0)
        start_line(json);
    else if (json->layout == JSON_SPACED && is_filled(json))
        buffer_append_char(json->out, ' ');
    else if (json->layout == JSON_ROWS && json->depth == 1 && is_filled(json))
        buffer_append(json->out, "\n ", 2);
    json->space = NULL;
    if (json->depth > 0)
        json->filled |= 1U << (json->depth - 1);
    if (name == NULL)
        return;
    buffer_append_char(json->out, '"');
    buffer_append_string(json->out, name);
    buffer_append_char(json->out, '"');
    buffer_append_char(json->out, ':');
    if (json->layout == JSON_SPACED || json->layout == JSON_INDENTED)
        buffer_append_char(json->out, ' ');
}

static void open_level(struct json_writer *json, const char *name, bool array)
{
    CHECK(json->depth < JSON_WRITER_DEPTH_MAX);
    json_begin_raw(json, name);
    buffer_append_char(json->out, array ? '[' : '{');
    uint32_t bit = 1U << json->depth++;
    json->arrays = array ? json->arrays | bit : json->arrays & ~bit;
    json->filled &= ~bit;
}

void json_object(struct json_writer *json, const char *name)
{
    open_level(json, name, false);
}

void json_array(struct json_writer *json, const char *name)
{
    open_level(json, name, true);
}

void json_end_all(struct json_writer *json)
{
    while (json->depth > 0)
        json_end(json);
}

void json_end(struct json_writer *json)
{
    CHECK(json->depth > 0);
    bool array = in_array(json);
    bool filled = is_filled(json);
    json->depth--;
    if (json->layout == JSON_INDENTED && filled)
        start_line(json);
    buffer_append_char(json->out, array ? ']' : '}');
}

void json_text(struct json_writer *json, const char *name, struct text value)
{
    json_begin_raw(json, name);
    buffer_append_json_string(json->out, value);
}

void json_string(struct json_writer *json, const char *name, const char *value)
{
    json_text(json, name, text_of(value));
}

void json_string_or_null(struct json_writer *json, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        json_null(json, name);
    else
        json_string(json, name, value);
}

void json_integer(struct json_writer *json, const char *name, int64_t value)
{
    json_begin_raw(json, name);
    buffer_append_i64(json->out, value);
}

void json_unsigned(struct json_writer *json, const char *name, uint64_t value)
{
    json_begin_raw(json, name);
    buffer_append_u64(json->out, value);
}

void json_bool(struct json_writer *json, const char *name, bool value)
{
    json_raw(json, name, value ? TEXT("true") : TEXT("false"));
}

void json_unsigned_or_null(struct json_writer *json, const char *name, uint64_t value)
{
    if (value == 0)
        json_null(json, name);
    else
        json_unsigned(json, name, value);
}

void json_null(struct json_writer *json, const char *name)
{
    json_raw(json, name, TEXT("null"));
}

void json_time(struct json_writer *json, const char *name, int64_t time_ms)
{
    char text[CLOCK_TEXT_SIZE];
    if (time_ms == 0) {
        json_null(json, name);
        return;
    }
    clock_format_rfc3339(time_ms, text);
    json_string(json, name, text);
}

void json_hex(struct json_writer *json, const char *name, const uint8_t *bytes, size_t size)
{
    json_begin_raw(json, name);
    buffer_append_char(json->out, '"');
    buffer_reserve(json->out, 2 * size);
    hex_write(json->out->data + json->out->size, bytes, size);
    json->out->size += 2 * size;
    buffer_append_char(json->out, '"');
}

void json_lines(struct json_writer *json, const char *name, struct text lines)
{
    json_array(json, name);
    while (lines.size > 0)
        json_text(json, NULL, text_cut(&lines, '\n'));
    json_end(json);
}

void json_set(struct json_writer *json, const char *name, const struct enum_names *names,
              uint32_t set)
{
    json_array(json, name);
    for (size_t i = 0; i < names->count; i++)
        if ((set & 1U << i) != 0)
            json_string(json, NULL, names->list[i]);
    json_end(json);
}

void json_raw(struct json_writer *json, const char *name, struct text value)
{
    json_begin_raw(json, name);
    buffer_append_text(json->out, value);
}

void json_space(struct json_writer *json, const char *space)
{
    json->space = space;
}
