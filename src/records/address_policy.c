/* A policy of one address: its rules and its columns; see address_policy.h. */
#include "records/address_policy.h"

static enum status check(const void *checked, struct error *error)
{
    const struct legacy_record *record = checked;
    return policy_check(record->sports, &record->rate, error);
}

static const struct column columns[] = {
    COLUMN(legacy_record, address, column_bytes, 0),
    COLUMN(legacy_record, enabled, column_flag, 0),
    COLUMN(legacy_record, removed, column_flag, 0),
    COLUMN(legacy_record, sports, column_sports, 0),
    COLUMN_OF("rate_requests", legacy_record, rate, column_rate_requests, 0),
    COLUMN_OF("rate_window_seconds", legacy_record, rate, column_rate_window, 0),
    COLUMN(legacy_record, created_ms, column_integer, 0),
    COLUMN(legacy_record, revision, column_revision, 0),
};

const struct record_table legacy_table = {
    .kind = RECORD_ADDRESS,
    .what = "address",
    .plural = "addresses",
    .name = "legacy_address",
    .listed = "NOT removed",
    .order = "address",
    .counter = "store_revision",
    RECORD_COLUMNS(legacy_record, columns),
    .usable = offsetof(struct legacy_record, usable),
    .check = check,
};
