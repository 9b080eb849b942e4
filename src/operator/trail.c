/* The audit trail as an operator reads it; see tables.h. */
#include "operator/tables.h"

/* Characters of `before` or `after` in a table; a document has all of it. */
#define BRIEF_MAX 60

static bool write_columns(const struct field *field, const void *record,
                          const struct field_output *out)
{
    struct text columns = *(const struct text *)field_value(field, record);
    size_t size = columns.size;
    if (out->json != NULL && size == 0)
        json_null(out->json, field->name);
    else if (out->json != NULL)
        json_raw(out->json, field->name, columns);
    if (out->json != NULL)
        return true;
    if (out->brief && size > BRIEF_MAX) {
        for (size = BRIEF_MAX; ((unsigned char)columns.at[size] & 0xC0) == 0x80;)
            size--; /* between two characters */
        buffer_append_format(out->text, "%.*s…", (int)size, columns.at);
    } else if (size > 0) {
        buffer_append_text(out->text, columns);
    } else {
        buffer_append_string(out->text, "-");
    }
    return true;
}

static const struct field_type columns_type = {write_columns, NULL};

static const struct field fields[] = {
    {"number", NULL, "NUMBER", &field_count, FIELD_OF(trail_record, number)},
    {"at", NULL, "TIME (UTC)", &field_time, FIELD_OF(trail_record, at_ms)},
    {"who", NULL, "WHO", &field_text, FIELD_OF(trail_record, who)},
    {"command", NULL, "COMMAND", &field_text, FIELD_OF(trail_record, command)},
    {"kind", NULL, "KIND", &field_text, FIELD_OF(trail_record, kind)},
    {"object", NULL, "OBJECT", &field_text, FIELD_OF(trail_record, object)},
    {"before", NULL, "BEFORE", &columns_type, FIELD_OF(trail_record, before)},
    {"after", NULL, "AFTER", &columns_type, FIELD_OF(trail_record, after)},
    {0},
};

const struct resource trail_resource = {RESOURCE(RECORD_TRAIL, trail_record, fields)};
