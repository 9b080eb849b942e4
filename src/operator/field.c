/* Types of fields that several resources have; see field.h. */
#include "operator/field.h"

#include <string.h>

#include "base/clock.h"

#define RATE_REQUESTS_MAX 1000000000U
#define RATE_SECONDS_MAX 86400U

/* ---- texts ----------------------------------------------------------------------------------- */

static void write_text(const struct field *field, const void *record, struct json_writer *json)
{
    json_string(json, field->name, field_value(field, record));
}

static void write_text_or_null(const struct field *field, const void *record,
                               struct json_writer *json)
{
    json_string_or_null(json, field->name, field_value(field, record));
}

static bool show_text(const struct field *field, const void *record, struct buffer *out)
{
    const char *text = field_value(field, record);
    buffer_append_string(out, text[0] == '\0' && field->words != NULL ? field->words : text);
    return true;
}

enum status field_set_text(const struct field *field, const char *what, struct text text,
                           void *record, struct error *error)
{
    char *out = field_value_to_set(field, record);
    if (text.size >= field->room)
        return error_set(error, STATUS_INVALID, "%s: is longer than %zu bytes", what,
                         field->room - 1);
    if (text.size > 0)
        memcpy(out, text.at, text.size);
    out[text.size] = '\0';
    return STATUS_OK;
}

static enum status set_text(const struct field *field, struct text text, void *record,
                            struct error *error)
{
    return field_set_text(field, field->label, text, record, error);
}

const struct field_type field_text = {write_text, show_text, NULL, set_text};
const struct field_type field_text_or_null = {write_text_or_null, show_text, NULL, set_text};

static void write_list(const struct field *field, const void *record, struct json_writer *json)
{
    json_lines(json, field->name, text_of(field_value(field, record)));
}

static bool show_list(const struct field *field, const void *record, struct buffer *out)
{
    struct text rest = text_of(field_value(field, record));
    if (rest.size == 0)
        buffer_append_string(out, "none");
    while (rest.size > 0) {
        buffer_append_text(out, text_cut(&rest, '\n'));
        if (rest.size > 0)
            buffer_append_string(out, ", ");
    }
    return true;
}

const struct field_type field_list = {write_list, show_list, NULL, NULL};

static bool show_words(const struct field *field, const void *record, struct buffer *out)
{
    (void)record;
    buffer_append_string(out, field->words);
    return true;
}

const struct field_type field_words = {NULL, show_words, NULL, NULL};

/* ---- yes or no ------------------------------------------------------------------------------- */

static bool is_true(const struct field *field, const void *record)
{
    return *(const bool *)field_value(field, record);
}

static void write_bool(const struct field *field, const void *record, struct json_writer *json)
{
    json_bool(json, field->name, is_true(field, record));
}

static bool show_yes_no(const struct field *field, const void *record, struct buffer *out)
{
    buffer_append_string(out, is_true(field, record) ? "yes" : "no");
    return true;
}

static enum status set_yes_no(const struct field *field, struct text text, void *record,
                              struct error *error)
{
    bool yes = text_equals(text, TEXT("yes"));
    if (!yes && text.at != NULL && !text_equals(text, TEXT("no")))
        return error_set(error, STATUS_INVALID, "%s: must be yes or no", field->name);
    *(bool *)field_value_to_set(field, record) = yes;
    return STATUS_OK;
}

static void append_enabled_cell(const struct field *field, const void *record, struct buffer *out)
{
    if (*(const bool *)((const char *)record + field->beside))
        (void)show_yes_no(field, record, out);
    else
        buffer_append_string(out, "unusable");
}

static void write_usable(const struct field *field, const void *record, struct json_writer *json)
{
    if (!is_true(field, record))
        json_bool(json, field->name, false);
}

static bool show_usable(const struct field *field, const void *record, struct buffer *out)
{
    return !is_true(field, record) && show_words(field, record, out);
}

const struct field_type field_yes_no = {write_bool, show_yes_no, NULL, set_yes_no};
const struct field_type field_enabled = {write_bool, show_yes_no, append_enabled_cell, set_yes_no};
const struct field_type field_usable = {write_usable, show_usable, NULL, NULL};

/* ---- numbers and times ----------------------------------------------------------------------- */

static void write_count(const struct field *field, const void *record, struct json_writer *json)
{
    json_unsigned(json, field->name, *(const size_t *)field_value(field, record));
}

static bool show_count(const struct field *field, const void *record, struct buffer *out)
{
    buffer_append_u64(out, *(const size_t *)field_value(field, record));
    return true;
}

const struct field_type field_count = {write_count, show_count, NULL, NULL};

static void write_time(const struct field *field, const void *record, struct json_writer *json)
{
    json_time(json, field->name, *(const int64_t *)field_value(field, record));
}

static bool show_time(const struct field *field, const void *record, struct buffer *out)
{
    char text[CLOCK_TEXT_SIZE];
    clock_format_rfc3339(*(const int64_t *)field_value(field, record), text);
    buffer_append_string(out, text);
    return true;
}

/* To the minute: "2026-11-21 04:53". */
static void append_time_cell(const struct field *field, const void *record, struct buffer *out)
{
    char text[CLOCK_TEXT_SIZE];
    int64_t time_ms = *(const int64_t *)field_value(field, record);
    clock_format_rfc3339(time_ms, text);
    if (time_ms == 0)
        buffer_append_char(out, '-');
    else
        buffer_append_format(out, "%.10s %.5s", text, text + 11);
}

const struct field_type field_time = {write_time, show_time, append_time_cell, NULL};

/* ---- sports and rates ------------------------------------------------------------------------ */

static void write_sports(const struct field *field, const void *record, struct json_writer *json)
{
    sport_set sports = *(const sport_set *)field_value(field, record);
    if ((sports & SPORT_SET_ALL) == SPORT_SET_ALL) {
        json_string(json, field->name, "all");
        return;
    }
    json_array(json, field->name);
    for (int i = 0; i < SPORT_COUNT; i++)
        if ((sports & SPORT_BIT(i)) != 0)
            json_string(json, NULL, sport_key((enum sport)i));
    json_end(json);
}

static bool show_sports(const struct field *field, const void *record, struct buffer *out)
{
    sport_set_append(out, *(const sport_set *)field_value(field, record));
    return true;
}

static enum status set_sports(const struct field *field, struct text text, void *record,
                              struct error *error)
{
    return sport_set_parse(text, field_value_to_set(field, record), error);
}

const struct field_type field_sports = {write_sports, show_sports, NULL, set_sports};

static void write_rate(const struct field *field, const void *record, struct json_writer *json)
{
    const struct rate_limit *rate = field_value(field, record);
    if (!rate->enabled) {
        json_null(json, field->name);
        return;
    }
    json_object(json, field->name);
    json_unsigned(json, "requests", rate->requests);
    json_unsigned(json, "window_seconds", rate->window_seconds);
    json_end(json);
}

static bool show_rate(const struct field *field, const void *record, struct buffer *out)
{
    const struct rate_limit *rate = field_value(field, record);
    if (rate->enabled)
        buffer_append_format(out, "%u/%u", rate->requests, rate->window_seconds);
    else
        buffer_append_string(out, "off");
    return true;
}

static enum status set_rate(const struct field *field, struct text text, void *record,
                            struct error *error)
{
    struct rate_limit *rate = field_value_to_set(field, record);
    struct text seconds_text = text_trim(text);
    if (text_equals(seconds_text, TEXT("off")) || text_equals(seconds_text, TEXT("none"))) {
        *rate = (struct rate_limit){0};
        return STATUS_OK;
    }
    uint64_t requests = 0;
    uint64_t seconds = 0;
    struct text requests_text = text_cut(&seconds_text, '/');
    if (text_to_u64(requests_text, RATE_REQUESTS_MAX, &requests) != STATUS_OK || requests == 0 ||
        text_to_u64(seconds_text, RATE_SECONDS_MAX, &seconds) != STATUS_OK || seconds == 0)
        return error_set(error, STATUS_INVALID,
                         "'%.*s' is not a rate; write REQUESTS/SECONDS such as 600/60 (1 to %u "
                         "requests in 1 to %u seconds), or off",
                         (int)(text.size < 64 ? text.size : 64), text.size > 0 ? text.at : "",
                         RATE_REQUESTS_MAX, RATE_SECONDS_MAX);
    *rate = (struct rate_limit){true, (uint32_t)requests, (uint32_t)seconds};
    return STATUS_OK;
}

const struct field_type field_rate = {write_rate, show_rate, NULL, set_rate};

const struct field *field_find(const struct field *fields, const char *name)
{
    for (const struct field *field = fields; field->type != NULL; field++)
        if (field->name != NULL && strcmp(field->name, name) == 0)
            return field;
    return NULL;
}

field_setter *field_setter_of(const struct field *field)
{
    return field->set != NULL ? field->set : field->type->set;
}
