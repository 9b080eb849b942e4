/* A customer's key: its rules and its columns; see key.h. */
#include "records/key.h"

#include <string.h>

bool key_is_live(const struct key_record *record, int64_t now_ms)
{
    return record->revoked_ms == 0 && (record->expires_ms == 0 || record->expires_ms > now_ms);
}

static enum status check(const void *checked, struct error *error)
{
    const struct key_record *record = checked;
    if (!record_id_is_sound(record->id, sizeof record->id, "key_"))
        return error_set(error, STATUS_INVALID, "id: is not a key id (key_…)");
    if (!record_id_is_sound(record->customer_id, sizeof record->customer_id, "cus_"))
        return error_set(error, STATUS_INVALID, "customer: is not a customer id (cus_…)");
    if (strnlen(record->prefix, sizeof record->prefix) != KEY_PREFIX_SIZE - 1)
        return error_set(error, STATUS_INVALID, "prefix: must be %d characters",
                         KEY_PREFIX_SIZE - 1);
    if (record->cidr_count > KEY_CIDRS_MAX)
        return error_set(error, STATUS_INVALID, "cidrs: a key has at most %d", KEY_CIDRS_MAX);
    if (record->expires_ms < 0 || record->last_used_ms < 0 || record->revoked_ms < 0)
        return error_set(error, STATUS_INVALID, "times: must not be negative");
    return record_text_check("label", record->label, sizeof record->label, 0, error);
}

/* ---- columns --------------------------------------------------------------------------------- */

static const char *const scope_names[] = {
    [KEY_SCOPE_ALL] = "", [KEY_SCOPE_SPORTS] = "sports", [KEY_SCOPE_CASINO] = "casino"};
const struct enum_names key_scopes = ENUM_NAMES(scope_names);
static const struct column_type column_scope = COLUMN_NAMES(scope_names);

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
    COLUMN(key_record, scope, column_scope, COLUMN_NULLABLE),
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
