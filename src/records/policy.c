/* Sports and rate limits in columns, and their rules; see policy.h. */
#include "records/policy.h"

bool rate_limit_read(struct text text, struct rate_limit *rate)
{
    struct text seconds_text = text;
    struct text requests_text = text_cut(&seconds_text, '/');
    uint64_t requests = 0;
    uint64_t seconds = 0;
    bool enabled = !text_equals(text, TEXT("off"));
    if (enabled && (text_to_u64(requests_text, RATE_REQUESTS_MAX, &requests) != STATUS_OK ||
                    text_to_u64(seconds_text, RATE_SECONDS_MAX, &seconds) != STATUS_OK ||
                    requests == 0 || seconds == 0))
        return false;
    *rate = (struct rate_limit){enabled, (uint32_t)requests, (uint32_t)seconds};
    return true;
}

bool rate_limit_is_sound(const struct rate_limit *rate)
{
    return !rate->enabled ||
           (rate->requests >= 1 && rate->requests <= RATE_REQUESTS_MAX &&
            rate->window_seconds >= 1 && rate->window_seconds <= RATE_SECONDS_MAX);
}

enum status policy_check(sport_set sports, const struct rate_limit *rate, struct error *error)
{
    if ((sports & ~SPORT_SET_ALL) != 0)
        return error_invalid(error, "sports: holds an unknown sport");
    if (!rate_limit_is_sound(rate))
        return error_invalid(error, "rate: must be 1 to %u requests in 1 to %u seconds",
                             RATE_REQUESTS_MAX, RATE_SECONDS_MAX);
    return STATUS_OK;
}

static void get_sports(const struct column *column, const void *record, struct column_value *value)
{
    CHECK(column->room == sizeof(sport_set));
    sport_set_append(&value->made, *(const sport_set *)column_field(column, record));
    value->bytes = buffer_text(&value->made);
}

static bool set_sports(const struct column *column, void *record, const struct column_value *value)
{
    CHECK(column->room == sizeof(sport_set));
    return sport_set_parse(value->bytes, column_field_to_set(column, record), NULL) == STATUS_OK;
}

const struct column_type column_sports = {
    .kind = COLUMN_TEXT, .get = get_sports, .set = set_sports};

static void get_rate(const struct column *column, const void *record, struct column_value *value)
{
    CHECK(column->room == sizeof(struct rate_limit));
    const struct rate_limit *rate = column_field(column, record);
    value->null = !rate->enabled;
    if (rate->enabled)
        value->integer =
            column->type == &column_rate_requests ? rate->requests : rate->window_seconds;
}

/* A limit with only one of the two is not off: it is `enabled`, with a zero that is out of
 * bounds. */
static bool set_rate(const struct column *column, void *record, const struct column_value *value)
{
    CHECK(column->room == sizeof(struct rate_limit));
    struct rate_limit *rate = column_field_to_set(column, record);
    bool last = column->type == &column_rate_window;
    if (!value->null && (value->integer < 0 || value->integer > UINT32_MAX))
        return false;
    if (!value->null) {
        rate->enabled = true;
        *(last ? &rate->window_seconds : &rate->requests) = (uint32_t)value->integer;
    }
    return !last || rate_limit_is_sound(rate);
}

const struct column_type column_rate_requests = {
    .kind = COLUMN_INTEGER, .get = get_rate, .set = set_rate};
const struct column_type column_rate_window = {
    .kind = COLUMN_INTEGER, .get = get_rate, .set = set_rate};

/* ---- a policy of one address ----------------------------------------------------------------- */

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
    RECORD_TABLE(RECORD_ADDRESS, "address", "addresses", "legacy_address", legacy_record, columns),
    .listed = "NOT removed",
    .order = "address",
    .counter = "store_revision",
    .usable = offsetof(struct legacy_record, usable),
    .check = check,
};
