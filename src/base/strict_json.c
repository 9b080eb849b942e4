/*
 * A request's members by name; see strict_json.h.
 *
 * The body is checked once by base/json_text.h and cut into slices of itself. A member that is
 * there twice is reported before one that is unknown, also when it is an unknown one that is there
 * twice: so all names are kept, unescaped, and each is compared with those before it.
 */
#include "base/strict_json.h"

#include <stdarg.h>

#include "base/json_text.h"

#define STRICT_JSON_NAME_SIZE 16 /* of an enum's longest name, with its NUL */

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
    (void)json_text_unescape(escaped, &names->bytes); /* such a name is no known one */
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
    bool fits = json_text_unescape(value, &plain) && plain.size >= 1 && plain.size < room &&
                text_is_plain(buffer_text(&plain));
    if (fits) {
        memcpy(out, plain.data, plain.size);
        out[plain.size] = '\0';
    }
    buffer_free(&plain);
    return fits;
}

bool strict_json_flag(struct text value, void *flag)
{
    enum json_text_kind kind = json_text_kind(value);
    *(bool *)flag = kind == JSON_TEXT_TRUE;
    return kind == JSON_TEXT_TRUE || kind == JSON_TEXT_FALSE;
}

bool strict_json_name(struct text value, const struct enum_names *names, void *out)
{
    char name[STRICT_JSON_NAME_SIZE];
    return strict_json_string(value, name, sizeof name) && enum_read(names, text_of(name), out);
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

PRINTF_LIKE(2, 3)
static enum strict_json invalid(struct strict_json_fault *fault, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(fault->message, sizeof fault->message, format, arguments);
    va_end(arguments);
    return STRICT_JSON_INVALID;
}

static enum strict_json invalid_field(struct strict_json_fault *fault,
                                      const struct strict_json_field *field, const char *rule)
{
    return invalid(fault, "The field %.*s %s.", (int)field->name.size, field->name.at, rule);
}

static unsigned case_of(const struct strict_json_form *form, const void *request)
{
    return form->case_of == NULL ? 1 : form->case_of(request);
}

/* The names that the request's case takes, of all when what decides the case is not sound. */
static enum strict_json unknown_field(const struct strict_json_form *form, struct text decides,
                                      void *out, struct strict_json_fault *fault)
{
    struct buffer message = {0};
    unsigned kind = ~0U;
    if (decides.at != NULL && read_field(&form->fields[0], decides, out))
        kind = case_of(form, out);
    buffer_append_string(&message, "The request has an unknown field. It may have");
    const char *before = " ";
    for (size_t i = 0; i < form->count; i++) {
        if ((form->fields[i].allowed & kind) == 0)
            continue;
        buffer_append_string(&message, before);
        buffer_append_text(&message, form->fields[i].name);
        before = ", ";
    }
    CHECK(message.size + 2 <= sizeof fault->message);
    (void)invalid(fault, "%s.", buffer_string(&message));
    buffer_free(&message);
    return STRICT_JSON_UNKNOWN_FIELD;
}

/* Reads the present values. A null of a field with `null_is_absent` counts as absent from here
 * on. */
static enum strict_json read_values(const struct strict_json_form *form, struct text *values,
                                    void *out, struct strict_json_fault *fault)
{
    for (size_t i = 0; i < form->count; i++) {
        const struct strict_json_field *field = &form->fields[i];
        if (field->null_is_absent && values[i].at != NULL &&
            json_text_kind(values[i]) == JSON_TEXT_NULL)
            values[i].at = NULL;
        if (values[i].at != NULL && !read_field(field, values[i], out))
            return invalid_field(fault, field, field->rule);
    }
    return STRICT_JSON_OK;
}

static enum strict_json check_case(const struct strict_json_form *form, const struct text *values,
                                   unsigned kind, struct strict_json_fault *fault)
{
    for (size_t i = 0; i < form->count; i++) {
        const struct strict_json_field *field = &form->fields[i];
        if (values[i].at == NULL && (field->required & kind) != 0)
            return invalid_field(fault, field, "is missing");
        if (values[i].at != NULL && (field->allowed & kind) == 0)
            return invalid(fault, "The field %.*s does not go with this %.*s.",
                           (int)field->name.size, field->name.at, (int)form->fields[0].name.size,
                           form->fields[0].name.at);
    }
    return STRICT_JSON_OK;
}

enum strict_json strict_json_decode(struct text content_type, struct text body,
                                    const struct strict_json_form *form, void *out,
                                    struct strict_json_fault *fault)
{
    struct text names[STRICT_JSON_FIELDS_MAX];
    struct text values[STRICT_JSON_FIELDS_MAX];
    CHECK(form->count > 0 && form->count <= STRICT_JSON_FIELDS_MAX);
    if (!content_type_is_json(content_type))
        return invalid(fault, "The Content-Type must be application/json.");
    for (size_t i = 0; i < form->count; i++)
        names[i] = form->fields[i].name;
    enum strict_json result = strict_json_object(body, names, form->count, values);
    if (result == STRICT_JSON_INVALID)
        return invalid(fault, "The body must be a JSON object that has no field twice.");
    if (result == STRICT_JSON_UNKNOWN_FIELD)
        return unknown_field(form, values[0], out, fault);
    result = read_values(form, values, out, fault);
    return result == STRICT_JSON_OK ? check_case(form, values, case_of(form, out), fault) : result;
}
