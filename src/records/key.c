/* A customer's key: its rules and its columns; see key.h. */
#include "records/key.h"

bool key_is_live(const struct key_record *record, int64_t now_ms)
{
    return record->revoked_ms == 0 && (record->expires_ms == 0 || record->expires_ms > now_ms);
}

static const char *const area_names[] = {"sports", "casino", "account", "manage"};
const struct enum_names key_area_names = ENUM_NAMES(area_names);

bool key_areas_read(struct text names, key_areas *areas)
{
    key_areas found = 0;
    do {
        unsigned area;
        if (!enum_read(&key_area_names, text_trim(text_cut(&names, ',')), &area))
            return false;
        found |= (key_areas)(1U << area);
    } while (names.at != NULL);
    *areas = found;
    return true;
}

static enum status check(const void *checked, struct error *error)
{
    const struct key_record *record = checked;
    if (!record_id_is_sound(record->id, sizeof record->id, "key_"))
        return error_invalid(error, "id: is not a key id (key_…)");
    if (!record_id_is_sound(record->customer_id, sizeof record->customer_id, "cus_"))
        return error_invalid(error, "customer: is not a customer id (cus_…)");
    if (strnlen(record->prefix, sizeof record->prefix) != KEY_PREFIX_SIZE - 1)
        return error_invalid(error, "prefix: must be %d characters", KEY_PREFIX_SIZE - 1);
    if (record->cidr_count > KEY_CIDRS_MAX)
        return error_invalid(error, "cidrs: a key has at most %d", KEY_CIDRS_MAX);
    if (record->expires_ms < 0 || record->last_used_ms < 0 || record->revoked_ms < 0)
        return error_invalid(error, "times: must not be negative");
    if ((record->may_issue & ~KEY_AREAS_USUAL) != 0 ||
        (record->may_issue != 0 && (record->areas & KEY_MANAGE) == 0))
        return error_invalid(error,
                             "may_issue: must be sports or casino, of a key that has manage");
    if (record->maker[0] != '\0' && (record->areas & ~KEY_AREAS_USUAL) != 0)
        return error_invalid(error, "only: a key that another made has sports and casino at most");
    return record_text_check("label", record->label, sizeof record->label, 0, error);
}

/* ---- columns --------------------------------------------------------------------------------- */

static void get_areas(const struct column *column, const void *record, struct column_value *value)
{
    const key_areas *areas = column_field(column, record);
    value->null = *areas == 0 || *areas == column->type->none;
    buffer_append_set(&value->made, &key_area_names, *areas);
    value->bytes = buffer_text(&value->made);
}

static bool set_areas(const struct column *column, void *record, const struct column_value *value)
{
    key_areas *areas = column_field_to_set(column, record);
    *areas = (key_areas)column->type->none;
    return value->null || key_areas_read(value->bytes, areas);
}

/* A program from before knows `sports` and `casino` alone; other words are unsound for it, and so
 * the key is revoked. */
static const struct column_type column_areas = {
    .kind = COLUMN_TEXT, .get = get_areas, .set = set_areas, .none = KEY_AREAS_USUAL};
static const struct column_type column_issued = {
    .kind = COLUMN_TEXT, .get = get_areas, .set = set_areas};

static const struct column columns[] = {
    COLUMN(key_record, id, column_text, 0),
    COLUMN(key_record, customer_id, column_text, 0),
    COLUMN(key_record, label, column_text, 0),
    COLUMN(key_record, prefix, column_text, 0),
    COLUMN(key_record, digest, column_bytes, COLUMN_SECRET),
    COLUMN(key_record, created_ms, column_integer, 0),
    COLUMN(key_record, expires_ms, column_integer, COLUMN_NULLABLE),
    COLUMN(key_record, last_used_ms, column_integer, COLUMN_NULLABLE | COLUMN_UNAUDITED),
    COLUMN(key_record, revoked_ms, column_integer, COLUMN_NULLABLE),
    COLUMN_OF("scope", key_record, areas, column_areas, COLUMN_NULLABLE),
    COLUMN(key_record, may_issue, column_issued, COLUMN_NULLABLE),
    COLUMN(key_record, maker, column_text, COLUMN_NULLABLE),
    COLUMN_CIDRS(key_record),
    COLUMN(key_record, revision, column_revision, 0),
};

const struct record_table key_table = {
    RECORD_TABLE(RECORD_KEY, "key", "keys", "api_key", key_record, columns),
    .order = "number",
    .counter = "store_revision",
    .check = check,
    .ended = offsetof(struct key_record, revoked_ms),
};
