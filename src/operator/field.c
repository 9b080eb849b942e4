/* Types of fields that several resources have; see field.h. */
#include "operator/field.h"

#include "base/clock.h"
#include "operator/times.h"
#include "records/currency.h"
#include "records/ledger_entry.h"

/* ---- texts ----------------------------------------------------------------------------------- */

static bool write_text(const struct field *field, const void *record,
                       const struct field_output *out)
{
    const char *text = field_value(field, record);
    bool any = text[0] != '\0';
    if (out->json == NULL)
        buffer_append_string(out->text, any || field->words == NULL ? text : field->words);
    else if (any || field->type == &field_text)
        json_string(out->json, field->name, text);
    else if (field->type == &field_text_or_null)
        json_null(out->json, field->name);
    return any || field->type != &field_text_if_any;
}

static bool write_list(const struct field *field, const void *record,
                       const struct field_output *out)
{
    struct text rest = text_of(field_value(field, record));
    if (out->json != NULL)
        json_lines(out->json, field->name, rest);
    else if (rest.size == 0)
        buffer_append_string(out->text, "none");
    while (out->json == NULL && rest.size > 0) {
        buffer_append_text(out->text, text_cut(&rest, '\n'));
        if (rest.size > 0)
            buffer_append_string(out->text, ", ");
    }
    return true;
}

static bool write_word(const struct field *field, const void *record,
                       const struct field_output *out)
{
    const char *word = enum_name(field->names, *(const unsigned *)field_value(field, record));
    bool none = word == NULL || word[0] == '\0';
    if (out->json != NULL)
        json_string_or_null(out->json, field->name, word);
    else
        buffer_append_string(out->text, !none ? word : field->words != NULL ? field->words : "-");
    return true;
}

static enum status set_word(const struct field *field, struct text text, void *record,
                            struct error *error)
{
    struct buffer rule = {0};
    if (text.size > 0 && enum_read(field->names, text, field_value_to_set(field, record)))
        return STATUS_OK;
    size_t first = field->names->list[0][0] == '\0'; /* "": it is only taken away */
    buffer_append_choices(&rule, field->names->list + first, field->names->count - first);
    (void)error_invalid(error, "%s: must be %s", field->name, buffer_string(&rule));
    buffer_free(&rule);
    return STATUS_INVALID;
}

enum status field_set_text(const struct field *field, struct text text, void *record,
                           struct error *error)
{
    char *out = field_value_to_set(field, record);
    if (text.size < field->least || text.size >= field->room || !text_is_plain(text))
        return error_invalid(error,
                             "%s: must be %zu to %zu bytes of UTF-8 without control characters",
                             field->name, field->least, field->room - 1);
    if (text.size > 0)
        memcpy(out, text.at, text.size);
    out[text.size] = '\0';
    return STATUS_OK;
}

const struct field_type field_text = {write_text, field_set_text};
const struct field_type field_text_or_null = {write_text, field_set_text};
const struct field_type field_text_if_any = {write_text, NULL};
const struct field_type field_list = {write_list, NULL};
static enum status set_nothing(const struct field *field, struct text text, void *record,
                               struct error *error)
{
    (void)field;
    (void)text;
    (void)record;
    (void)error; /* it cannot fail */
    return STATUS_OK;
}

const struct field_type field_secret = {NULL, set_nothing};
const struct field_type field_word = {write_word, set_word};

/* ---- yes or no ------------------------------------------------------------------------------- */

static bool write_yes_no(const struct field *field, const void *record,
                         const struct field_output *out)
{
    bool yes = *(const bool *)field_value(field, record);
    if (out->json != NULL)
        json_bool(out->json, field->name, yes);
    else
        buffer_append_string(out->text, yes ? "yes" : "no");
    return true;
}

static bool write_enabled(const struct field *field, const void *record,
                          const struct field_output *out)
{
    bool usable = *(const bool *)((const char *)record + field->beside);
    if (usable || !out->brief)
        return write_yes_no(field, record, out);
    buffer_append_string(out->text, "unusable");
    return true;
}

/* Nothing where it is false. */
static bool write_if_true(const struct field *field, const void *record,
                          const struct field_output *out)
{
    return *(const bool *)field_value(field, record) && write_yes_no(field, record, out);
}

static bool write_usable(const struct field *field, const void *record,
                         const struct field_output *out)
{
    if (*(const bool *)field_value(field, record))
        return false;
    if (out->json != NULL)
        return write_yes_no(field, record, out);
    buffer_append_string(out->text, field->words);
    return true;
}

enum status field_set_on_off(const struct field *field, struct text text, void *record,
                             struct error *error)
{
    bool on = text_equals(text, TEXT("on"));
    return on || text_equals(text, TEXT("off"))
               ? field_set_yes_no(field, on ? TEXT("yes") : TEXT("no"), record, error)
               : field_set_yes_no(field, text, record, error);
}

enum status field_set_yes_no(const struct field *field, struct text text, void *record,
                             struct error *error)
{
    bool yes = text_equals(text, TEXT("yes"));
    if (!yes && text.at != NULL && !text_equals(text, TEXT("no")))
        return error_invalid(error, "%s: must be yes or no", field->name);
    *(bool *)field_value_to_set(field, record) = yes;
    return STATUS_OK;
}

const struct field_type field_yes_no = {write_yes_no, field_set_yes_no};
const struct field_type field_if_true = {write_if_true, NULL};
const struct field_type field_enabled = {write_enabled, field_set_yes_no};
const struct field_type field_usable = {write_usable, NULL};

/* ---- numbers and times ----------------------------------------------------------------------- */

static bool write_count(const struct field *field, const void *record,
                        const struct field_output *out)
{
    size_t count = field->compute != NULL ? (size_t)field->compute(record)
                                          : *(const size_t *)field_value(field, record);
    if (out->json != NULL)
        json_unsigned(out->json, field->name, count);
    else
        buffer_append_u64(out->text, count);
    return true;
}

/* A table shows the minute: "2026-11-21 04:53", or "-" for never. */
static bool write_time(const struct field *field, const void *record,
                       const struct field_output *out)
{
    char text[CLOCK_TEXT_SIZE];
    int64_t time_ms = *(const int64_t *)field_value(field, record);
    clock_format_rfc3339(time_ms, text);
    if (out->json != NULL)
        json_time(out->json, field->name, time_ms);
    else if (time_ms == 0)
        buffer_append_string(out->text, field->words != NULL ? field->words : "-");
    else if (!out->brief)
        buffer_append_string(out->text, text);
    else
        buffer_append_format(out->text, "%.10s %.5s", text, text + 11);
    return true;
}

static bool write_day(const struct field *field, const void *record, const struct field_output *out)
{
    char date[CLOCK_DAY_SIZE];
    clock_format_day(*(const int64_t *)field_value(field, record), date);
    if (out->json != NULL)
        json_string(out->json, field->name, date);
    else
        buffer_append_string(out->text, date);
    return true;
}

static bool write_amount(const struct field *field, const void *record,
                         const struct field_output *out)
{
    char amount[CURRENCY_AMOUNT_SIZE];
    int64_t minor = field->compute != NULL ? field->compute(record)
                                           : *(const int64_t *)field_value(field, record);
    if (out->json != NULL && minor == LEDGER_SUM_UNKNOWN) {
        json_null(out->json, field->name);
    } else if (out->json != NULL) {
        json_integer(out->json, field->name, minor);
    } else if (minor == LEDGER_SUM_UNKNOWN) {
        buffer_append_string(out->text, "unknown");
    } else {
        currency_format(minor, *((const uint8_t *)record + field->beside), amount);
        buffer_append_format(out->text, "%s%s", minor == LEDGER_SUM_MOST ? "more than " : "",
                             amount);
    }
    return true;
}

static bool write_exponent(const struct field *field, const void *record,
                           const struct field_output *out)
{
    if (out->json != NULL)
        json_unsigned(out->json, field->name, *(const uint8_t *)field_value(field, record));
    return out->json != NULL;
}

static bool write_hex(const struct field *field, const void *record, const struct field_output *out)
{
    CHECK(out->json != NULL); /* in no text for people */
    json_hex(out->json, field->name, field_value(field, record), field->room);
    return true;
}

/* A document has the times. */
static bool write_live(const struct field *field, const void *record,
                       const struct field_output *out)
{
    const int64_t *revoked_ms = (const void *)((const char *)record + field->beside);
    const int64_t *expires_ms = field_value(field, record);
    bool expired = *expires_ms != 0 && *expires_ms <= clock_wall_ms();
    buffer_append_string(out->text, *revoked_ms != 0 ? "revoked" : expired ? "expired" : "live");
    return true;
}

const struct field_type field_live = {write_live, NULL};
const struct field_type field_count = {write_count, NULL};
const struct field_type field_time = {write_time, NULL};

enum status field_set_expiry(const struct field *field, struct text text, void *record,
                             struct error *error)
{
    int64_t made_ms;
    memcpy(&made_ms, (const char *)record + field->beside, sizeof made_ms);
    return time_parse_ahead(text, made_ms, field_value_to_set(field, record), error);
}
const struct field_type field_day = {write_day, NULL};
const struct field_type field_amount = {write_amount, NULL};
const struct field_type field_exponent = {write_exponent, NULL};
const struct field_type field_hex = {write_hex, NULL};

/* ---- sports and rates ------------------------------------------------------------------------ */

static bool write_sports(const struct field *field, const void *record,
                         const struct field_output *out)
{
    sport_set sports = *(const sport_set *)field_value(field, record);
    if (out->json == NULL)
        sport_set_append(out->text, sports);
    else if ((sports & SPORT_SET_ALL) == SPORT_SET_ALL)
        json_string(out->json, field->name, "all");
    else
        json_set(out->json, field->name, &sport_keys, sports);
    return true;
}

static enum status set_sports(const struct field *field, struct text text, void *record,
                              struct error *error)
{
    return sport_set_parse(text, field_value_to_set(field, record), error);
}

const struct field_type field_sports = {write_sports, set_sports};

static bool write_rate(const struct field *field, const void *record,
                       const struct field_output *out)
{
    const struct rate_limit *rate = field_value(field, record);
    if (out->json != NULL && rate->enabled) {
        json_object(out->json, field->name);
        json_unsigned(out->json, "requests", rate->requests);
        json_unsigned(out->json, "window_seconds", rate->window_seconds);
        json_end(out->json);
    } else if (out->json != NULL) {
        json_null(out->json, field->name);
    } else if (rate->enabled) {
        buffer_append_format(out->text, "%u/%u", rate->requests, rate->window_seconds);
    } else {
        buffer_append_string(out->text, "off");
    }
    return true;
}

static enum status set_rate(const struct field *field, struct text text, void *record,
                            struct error *error)
{
    struct text given = text_trim(text);
    if (text_equals(given, TEXT("none")))
        given = TEXT("off");
    return rate_limit_read(given, field_value_to_set(field, record))
               ? STATUS_OK
               : error_invalid(
                     error,
                     "'%.*s' is not a rate; write REQUESTS/SECONDS such as 600/60 (1 to %u "
                     "requests in 1 to %u seconds), or off",
                     TEXT_SHOWN(text), RATE_REQUESTS_MAX, RATE_SECONDS_MAX);
}

const struct field_type field_rate = {write_rate, set_rate};

/* ---- tables of fields ------------------------------------------------------------------------ */

void fields_write(const struct field *fields, const void *record, struct json_writer *json)
{
    const struct field_output out = {.json = json};
    for (; fields->type != NULL; fields++)
        if (fields->name != NULL && fields->type->write != NULL)
            (void)fields->type->write(fields, record, &out);
}

void fields_write_object(const struct field *fields, const void *record, struct json_writer *json)
{
    json_object(json, NULL);
    fields_write(fields, record, json);
    json_end(json);
}

void fields_append_row(const struct field *fields, const void *record, struct buffer *out)
{
    struct buffer cell = {0};
    struct buffer shown = {0};
    const char *space = "";
    for (; fields->type != NULL; fields++) {
        if (fields->title == NULL)
            continue;
        buffer_clear(&cell);
        buffer_clear(&shown);
        if (record == NULL)
            buffer_append_string(&cell, fields->title);
        else
            (void)fields->type->write(fields, record, &(struct field_output){.text = &cell});
        buffer_append_shown(&shown, buffer_text(&cell));
        buffer_append_format(out, "%s%*s", space, fields->width, buffer_string(&shown));
        space = "  ";
    }
    buffer_append_char(out, '\n');
    buffer_free(&cell);
    buffer_free(&shown);
}

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
