/* Fields to values and back; see record.h. Every `set` looks at the size of its field first: a
 * line of a table that names the wrong type is caught by the first row. */
#include "records/record.h"

#include "base/base62.h"

#define ID_RANDOM 16 /* characters of a new id behind its kind */

void column_get(const struct column *column, const void *record, struct column_value *value)
{
    *value = (struct column_value){.kind = column->type->kind};
    column->type->get(column, record, value);
}

void column_value_free(struct column_value *value)
{
    buffer_free(&value->made);
}

bool record_settle(const struct record_table *table, void *record, bool sound)
{
    if (table->checked)
        sound = sound && table->check(record, NULL) == STATUS_OK;
    if (table->usable != 0)
        *(bool *)((char *)record + table->usable) = sound;
    int64_t *ended = table->ended == 0 ? NULL : (int64_t *)(void *)((char *)record + table->ended);
    if (ended != NULL && !sound && *ended == 0)
        *ended = 1;
    return (sound || !table->strict) && (table->settle == NULL || table->settle(record, sound));
}

/* ---- texts ----------------------------------------------------------------------------------- */

static void get_text(const struct column *column, const void *record, struct column_value *value)
{
    const char *field = column_field(column, record);
    size_t size = strnlen(field, column->room);
    CHECK(size < column->room);
    value->bytes = (struct text){field, size};
    value->null = size == 0 && (column->rules & COLUMN_NULLABLE) != 0;
}

/* The text fits with its NUL, and has no NUL inside that would end it sooner. */
static bool set_lines(const struct column *column, void *record, const struct column_value *value)
{
    char *field = column_field_to_set(column, record);
    if (value->null)
        return (column->rules & COLUMN_NULLABLE) != 0;
    if (value->bytes.size >= column->room ||
        (value->bytes.size > 0 && memchr(value->bytes.at, '\0', value->bytes.size) != NULL))
        return false;
    if (value->bytes.size > 0)
        memcpy(field, value->bytes.at, value->bytes.size);
    field[value->bytes.size] = '\0';
    return true;
}

static bool set_text(const struct column *column, void *record, const struct column_value *value)
{
    return (value->null || text_is_plain(value->bytes)) && set_lines(column, record, value);
}

const struct column_type column_text = {.kind = COLUMN_TEXT, .get = get_text, .set = set_text};
const struct column_type column_lines = {.kind = COLUMN_TEXT, .get = get_text, .set = set_lines};

/* ---- numbers --------------------------------------------------------------------------------- */

static int64_t read_number(const struct column *column, const void *field)
{
    CHECK(column->room == column->type->size);
    return column->room == sizeof(uint8_t)   ? *(const uint8_t *)field
           : column->room == sizeof(int32_t) ? *(const int32_t *)field
                                             : *(const int64_t *)field;
}

/* Is NULL a value of the column, which stands for the type's `none`? */
static bool is_nullable(const struct column *column)
{
    return column->type->none != 0 || (column->rules & COLUMN_NULLABLE) != 0;
}

static void get_number(const struct column *column, const void *record, struct column_value *value)
{
    value->integer = read_number(column, column_field(column, record));
    value->null = value->integer == column->type->none && is_nullable(column);
}

static bool set_number(const struct column *column, void *record, const struct column_value *value)
{
    const struct column_type *type = column->type;
    void *field = column_field_to_set(column, record);
    bool fits = value->null ? is_nullable(column)
                            : value->integer >= type->least && value->integer <= type->most;
    int64_t integer = fits && !value->null ? value->integer : type->none;
    CHECK(column->room == type->size);
    if (type->size == sizeof(uint8_t))
        *(uint8_t *)field = (uint8_t)integer;
    else if (type->size == sizeof(int32_t))
        *(int32_t *)field = (int32_t)integer;
    else
        *(int64_t *)field = integer;
    return fits;
}

#define NUMBER(kind_, c_type, least_, most_, none_)                                    \
    {                                                                                  \
        .kind = (kind_), .get = get_number, .set = set_number, .size = sizeof(c_type), \
        .least = (least_), .most = (most_), .none = (none_)                            \
    }
const struct column_type column_flag = NUMBER(COLUMN_FLAG, bool, 0, 1, 0);
const struct column_type column_integer = NUMBER(COLUMN_INTEGER, int64_t, INT64_MIN, INT64_MAX, 0);
const struct column_type column_revision = NUMBER(COLUMN_INTEGER, uint64_t, 0, INT64_MAX, 0);
const struct column_type column_small = NUMBER(COLUMN_INTEGER, uint8_t, 0, UINT8_MAX, 0);
const struct column_type column_known = NUMBER(COLUMN_INTEGER, int32_t, 0, INT32_MAX, -1);

/* ---- bytes ----------------------------------------------------------------------------------- */

static void get_bytes(const struct column *column, const void *record, struct column_value *value)
{
    value->bytes = (struct text){column_field(column, record), column->room};
}

static bool set_bytes(const struct column *column, void *record, const struct column_value *value)
{
    if (value->null || value->bytes.size != column->room)
        return false;
    memcpy(column_field_to_set(column, record), value->bytes.at, column->room);
    return true;
}

const struct column_type column_bytes = {.kind = COLUMN_BYTES, .get = get_bytes, .set = set_bytes};

static void get_borrowed(const struct column *column, const void *record,
                         struct column_value *value)
{
    CHECK(column->room == sizeof(struct text));
    value->bytes = *(const struct text *)column_field(column, record);
    value->null = value->bytes.size == 0 && (column->rules & COLUMN_NULLABLE) != 0;
}

static bool set_borrowed(const struct column *column, void *record,
                         const struct column_value *value)
{
    CHECK(column->room == sizeof(struct text));
    *(struct text *)column_field_to_set(column, record) = value->null ? TEXT("") : value->bytes;
    return !value->null || (column->rules & COLUMN_NULLABLE) != 0;
}

const struct column_type column_borrowed = {
    .kind = COLUMN_TEXT, .get = get_borrowed, .set = set_borrowed};

/* ---- enums ----------------------------------------------------------------------------------- */

void column_get_name(const struct column *column, const void *record, struct column_value *value)
{
    CHECK(column->room == sizeof(unsigned));
    const unsigned *at = column_field(column, record);
    value->bytes = text_of(enum_name(column->type->names, *at));
    value->null = value->bytes.size == 0;
}

bool column_set_name(const struct column *column, void *record, const struct column_value *value)
{
    CHECK(column->room == sizeof(unsigned));
    if (value->null)
        return (column->rules & COLUMN_NULLABLE) != 0;
    return value->bytes.size > 0 &&
           enum_read(column->type->names, value->bytes, column_field_to_set(column, record));
}

/* ---- rules ----------------------------------------------------------------------------------- */

struct text record_field_text(const char *field, size_t room)
{
    return (struct text){field, strnlen(field, room)};
}

bool record_id_is_sound(const char *id, size_t room, const char *kind)
{
    size_t size = strnlen(id, room);
    size_t kind_size = strlen(kind);
    if (size == room || size <= kind_size || memcmp(id, kind, kind_size) != 0)
        return false;
    for (size_t i = kind_size; i < size; i++)
        if (!base62_is_digit(id[i]))
            return false;
    return true;
}

void record_id_generate(const char *kind, char *id, size_t room)
{
    size_t kind_size = strlen(kind);
    CHECK(kind_size + ID_RANDOM < room);
    memset(id, 0, room);
    memcpy(id, kind, kind_size);
    base62_random(id + kind_size, ID_RANDOM);
}

bool record_text_is_sound(const char *field, size_t room, size_t least)
{
    size_t size = strnlen(field, room);
    return size < room && size >= least && text_is_plain((struct text){field, size});
}

enum status record_text_check(const char *what, const char *field, size_t room, size_t least,
                              struct error *error)
{
    return record_text_is_sound(field, room, least)
               ? STATUS_OK
               : error_invalid(error, "%s: must be %s%zu bytes of UTF-8 without control characters",
                               what, least == 0 ? "at most " : "1 to ", room - 1);
}

bool currency_is_sound(struct text currency)
{
    if (currency.size != 3)
        return false;
    for (size_t i = 0; i < 3; i++)
        if (currency.at[i] < 'A' || currency.at[i] > 'Z')
            return false;
    return true;
}

bool is_outside_name(struct text name)
{
    if (name.size < 1 || name.size > 64)
        return false;
    for (size_t i = 0; i < name.size; i++)
        if (!base62_is_digit(name.at[i]) && (name.at[i] == '\0' || !strchr("._:-", name.at[i])))
            return false;
    return true;
}
