/* The audit trail: its columns, and what a record holds as JSON; see trail.h. */
#include "records/trail.h"

#include "base/address.h"
#include "base/json_text.h"

/* ---- a row of it ----------------------------------------------------------------------------- */

static bool is_object(struct text text)
{
    return json_text_check(text, NULL, NULL) == STATUS_OK &&
           json_text_kind(json_text_trim(text)) == JSON_TEXT_OBJECT;
}

static enum status check(const void *checked, struct error *error)
{
    const struct trail_record *record = checked;
    enum status status = record_text_check("who", record->who, sizeof record->who, 1, error);
    if (status == STATUS_OK)
        status = record_text_check("command", record->command, sizeof record->command, 0, error);
    if (status == STATUS_OK)
        status = record_text_check("kind", record->kind, sizeof record->kind, 1, error);
    if (status == STATUS_OK)
        status = record_text_check("object", record->object, sizeof record->object, 1, error);
    if (status == STATUS_OK &&
        (!is_object(record->after) || (record->before.size > 0 && !is_object(record->before))))
        status = error_invalid(error, "before, after: must be JSON objects");
    return status;
}

static const struct column columns[] = {
    COLUMN(trail_record, number, column_revision, 0),
    COLUMN(trail_record, at_ms, column_integer, 0),
    COLUMN(trail_record, who, column_text, 0),
    COLUMN(trail_record, command, column_text, 0),
    COLUMN(trail_record, kind, column_text, 0),
    COLUMN(trail_record, object, column_text, 0),
    COLUMN(trail_record, before, column_borrowed, COLUMN_NULLABLE),
    COLUMN(trail_record, after, column_borrowed, 0),
};

/* A row that cannot be read must not look like a change that was never made. */
const struct record_table trail_table = {
    RECORD_TABLE(RECORD_TRAIL, "row of the audit trail", "audit rows", "audit_trail", trail_record,
                 columns),
    .order = "number",
    .search = "number >= $1 AND number < $2 AND at_ms >= $3 AND ($4 = '' OR object = $4)"
              " AND ($5 = '' OR who = $5) AND ($6 = '' OR kind = $6) AND at_ms < $7"
              " ORDER BY number DESC",
    .counter = "audit_revision",
    .checked = true,
    .unaudited = true,
    .check = check,
    .strict = true,
};

/* ---- images ---------------------------------------------------------------------------------- */

void trail_image_clear(struct trail_image *image)
{
    image->table = NULL;
    buffer_clear(&image->values);
}

void trail_image_free(struct trail_image *image)
{
    image->table = NULL;
    buffer_free(&image->values);
}

void trail_image_begin(struct trail_image *image, const struct record_table *table)
{
    trail_image_clear(image);
    image->table = table;
}

static void set_object(struct trail_image *image, const struct column_value *value)
{
    struct address address;
    size_t size = value->bytes.size;
    _Static_assert(ADDRESS_TEXT_SIZE <= TRAIL_OBJECT_SIZE, "an address is an object");
    memset(image->object, 0, sizeof image->object);
    if (value->kind == COLUMN_TEXT && size < sizeof image->object) {
        memcpy(image->object, value->bytes.at, size);
    } else if (value->kind == COLUMN_BYTES && size == sizeof address) {
        memcpy(&address, value->bytes.at, sizeof address);
        address_format(&address, image->object);
    }
}

void trail_image_add(struct trail_image *image, size_t column, const struct column_value *value)
{
    struct json_writer json = {.out = &image->values};
    const uint8_t *bytes = (const uint8_t *)value->bytes.at;
    CHECK(column < image->table->column_count);
    if (value->null)
        json_null(&json, NULL);
    else if (value->kind == COLUMN_FLAG && (value->integer == 0 || value->integer == 1))
        json_bool(&json, NULL, value->integer == 1);
    else if (value->kind == COLUMN_FLAG || value->kind == COLUMN_INTEGER)
        json_integer(&json, NULL, value->integer);
    else if (value->kind == COLUMN_TEXT)
        json_text(&json, NULL, value->bytes);
    else
        json_hex(&json, NULL, bytes, value->bytes.size);
    image->ends[column] = image->values.size;
    if (column == 0)
        set_object(image, value);
}

void trail_image_of(struct trail_image *image, const struct record_table *table, const void *record)
{
    trail_image_begin(image, table);
    for (size_t i = 0; i < table->column_count; i++) {
        struct column_value value;
        column_get(&table->columns[i], record, &value);
        trail_image_add(image, i, &value);
        column_value_free(&value);
    }
}

static struct text value_at(const struct trail_image *image, size_t column)
{
    size_t start = column == 0 ? 0 : image->ends[column - 1];
    return (struct text){image->values.data + start, image->ends[column] - start};
}

/* The first is the object itself. */
static bool is_audited(const struct record_table *table, size_t column)
{
    return column > 0 && table->columns[column].type != &column_revision &&
           (table->columns[column].rules & COLUMN_UNAUDITED) == 0;
}

static bool differs(const struct trail_image *before, const struct trail_image *after,
                    size_t column)
{
    return is_audited(after->table, column) &&
           (before->table == NULL ||
            !text_equals(value_at(before, column), value_at(after, column)));
}

bool trail_images_differ(const struct trail_image *before, const struct trail_image *after)
{
    CHECK(after->table != NULL);
    bool found = before->table == NULL;
    for (size_t i = 0; i < after->table->column_count && !found; i++)
        found = differs(before, after, i);
    return found;
}

static void write_value(struct json_writer *json, const struct trail_image *image, size_t column)
{
    const struct column *described = &image->table->columns[column];
    const char *table = strchr(described->name, '.'); /* of a joined column */
    const char *name = table == NULL ? described->name : table + 1;
    if ((described->rules & COLUMN_SECRET) != 0)
        json_string(json, name, "not shown");
    else
        json_raw(json, name, value_at(image, column));
}

void trail_images_write(const struct trail_image *before, const struct trail_image *after,
                        struct buffer *out_before, struct buffer *out_after)
{
    const struct trail_image *const images[] = {before, after};
    struct buffer *const outs[] = {out_before, out_after};
    for (size_t side = before->table == NULL ? 1 : 0; side < 2; side++) {
        struct json_writer json = {.out = outs[side]};
        json_object(&json, NULL);
        for (size_t i = 0; i < after->table->column_count; i++)
            if (differs(before, after, i))
                write_value(&json, images[side], i);
        json_end(&json);
    }
}
