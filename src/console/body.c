/* JSON into texts, which the fields then judge; see body.h. */
#include "console/body.h"

#include "base/json_text.h"

/* May it be set? Fields with an option may, a secret in a new record, the argument of `add` (the
 * first field, unless the program makes it, or the customer of a key), `enabled` and `blocked`. */
static bool is_settable(const struct resource *resource, const struct field *field, bool add)
{
    if (field->name == NULL || field_setter_of(field) == NULL)
        return false;
    if (field->type == &field_secret)
        return add;
    if (field->option.name != NULL)
        return (add ? field->option.add_help : field->option.set_help) != NULL ||
               (add && strcmp(field->name, "name") == 0);
    if (strcmp(field->name, "enabled") == 0 || strcmp(field->name, "blocked") == 0)
        return !add;
    return add && ((field == resource->fields && !resource->makes_id) ||
                   strcmp(field->name, "customer") == 0);
}

/* Appends what a string stands for; not one that a text cannot be. */
static bool append_string(struct text value, struct buffer *out)
{
    size_t before = out->size;
    return json_text_unescape(value, out) &&
           (out->size == before || memchr(out->data + before, '\0', out->size - before) == NULL);
}

static enum status read_list(const struct field *field, struct text value, struct buffer *out,
                             struct error *error)
{
    struct json_text_cursor cursor = json_text_open(value);
    struct text item;
    for (bool first = true; json_text_next_element(&cursor, &item); first = false) {
        buffer_append_string(out, first ? "" : ",");
        size_t before = out->size;
        if (json_text_kind(item) != JSON_TEXT_STRING || !append_string(item, out) ||
            out->size == before || memchr(out->data + before, ',', out->size - before) != NULL)
            return error_invalid(error, "%s: must be a list of texts", field->name);
    }
    return STATUS_OK;
}

static enum status read_rate(const struct field *field, struct text value, struct buffer *out,
                             struct error *error)
{
    struct text requests = json_text_member(value, TEXT("requests"));
    struct text seconds = json_text_member(value, TEXT("window_seconds"));
    buffer_append_format(out, "%.*s/%.*s", (int)(requests.size < 20 ? requests.size : 20),
                         requests.at, (int)(seconds.size < 20 ? seconds.size : 20), seconds.at);
    return field->type == &field_rate
               ? STATUS_OK
               : error_invalid(error, "%s: must not be an object", field->name);
}

/* `text` becomes NULL where the value is taken away; `given` false: it is left as it is. */
static enum status read_value(const struct field *field, struct text value, struct buffer *out,
                              const char **text, bool *given, struct error *error)
{
    enum status status = STATUS_OK;
    bool empty_list = false;
    *given = true;
    buffer_reserve(out, value.size + 1); /* so that no copy of a secret is left behind */
    switch (json_text_kind(value)) {
    case JSON_TEXT_STRING:
        if (!append_string(value, out))
            status = error_invalid(error, "%s: must be Unicode text without control characters",
                                   field->name);
        break;
    case JSON_TEXT_TRUE:
    case JSON_TEXT_FALSE:
        buffer_append_string(out, json_text_kind(value) == JSON_TEXT_TRUE ? "yes" : "no");
        break;
    case JSON_TEXT_ARRAY:
        status = read_list(field, value, out, error);
        empty_list = out->size == 0;
        break;
    case JSON_TEXT_OBJECT:
        status = read_rate(field, value, out, error);
        break;
    case JSON_TEXT_NULL:
        *given = field->type == &field_rate || field->option.no_name != NULL;
        break;
    case JSON_TEXT_NUMBER:
    default:
        buffer_append_text(out, value);
    }
    bool none = empty_list || json_text_kind(value) == JSON_TEXT_NULL;
    if (none && field->type == &field_rate)
        *text = "off";
    else if (none && field->type == &field_sports)
        *text = "none";
    else
        *text = none ? NULL : buffer_string(out);
    return status;
}

static enum status read_member(const struct resource *resource, bool add, struct text name,
                               struct text value, struct console_settings *settings,
                               char field_name[64], struct error *error)
{
    const struct field *field = resource->fields;
    const char *text = NULL;
    bool given = false;
    while (field->type != NULL &&
           (field->name == NULL || !json_text_string_equals(name, text_of(field->name)) ||
            !is_settable(resource, field, add)))
        field++;
    if (field->type == NULL)
        return error_invalid(error, "a member of the document is no field to be set");
    (void)snprintf(field_name, 64, "%s", field->name);
    for (size_t i = 0; i < settings->count; i++)
        if (settings->list[i].name == field->name)
            return error_invalid(error, "%s: is there twice", field->name);
    CHECK(settings->count < CONSOLE_SETTINGS_MAX); /* there are fewer fields than that */
    enum status status =
        read_value(field, value, &settings->texts[settings->count], &text, &given, error);
    if (status == STATUS_OK && given)
        settings->list[settings->count++] = (struct setting){field->name, text};
    return status;
}

enum status console_settings_read(const struct resource *resource, bool add, struct text body,
                                  struct console_settings *settings, char field[64],
                                  struct error *error)
{
    struct text name;
    struct text value;
    enum status status = STATUS_OK;
    *settings = (struct console_settings){.count = 0};
    field[0] = '\0';
    if (json_text_check(body, NULL, NULL) != STATUS_OK ||
        json_text_kind(json_text_trim(body)) != JSON_TEXT_OBJECT)
        return error_invalid(error, "the body must be a JSON object");
    struct json_text_cursor cursor = json_text_open(json_text_trim(body));
    while (status == STATUS_OK && json_text_next_member(&cursor, &name, &value))
        status = read_member(resource, add, name, value, settings, field, error);
    if (status == STATUS_OK)
        field[0] = '\0';
    return status;
}

void console_settings_free(struct console_settings *settings)
{
    for (size_t i = 0; i < CONSOLE_SETTINGS_MAX; i++)
        buffer_wipe(&settings->texts[i]); /* there may be a secret in it */
}
