/* A customer: its rules and its columns; see customer.h. */
#include "records/customer.h"

static enum status check(const void *checked, struct error *error)
{
    const struct customer_record *record = checked;
    if (!record_id_is_sound(record->id, sizeof record->id, "cus_"))
        return error_invalid(error, "id: is not a customer id (cus_…)");
    if (record->cidr_count > CIDRS_MAX)
        return error_invalid(error, "cidrs: %zu are too many; at most %d", record->cidr_count,
                             CIDRS_MAX);
    enum status status = record_text_check("name", record->name, sizeof record->name, 1, error);
    return status == STATUS_OK ? policy_check(record->sports, &record->rate, error) : status;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

void cidr_list_append(struct buffer *buffer, const struct cidr *cidrs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[CIDR_TEXT_SIZE];
        cidr_format(&cidrs[i], text);
        if (i > 0)
            buffer_append_char(buffer, ' ');
        buffer_append_string(buffer, text);
    }
}

bool cidr_list_read(struct text text, struct cidr *cidrs, size_t room, size_t *count)
{
    size_t found = 0;
    struct text rest = text;
    while (rest.size > 0) {
        struct text one = text_cut(&rest, ' ');
        if (found == room || cidr_parse(one, &cidrs[found], NULL) != STATUS_OK)
            return false;
        found++;
        if (rest.at != NULL && rest.size == 0) /* a space at the end */
            return false;
    }
    *count = found;
    return true;
}

static void get_cidr_array(const struct column *column, const void *record,
                           struct column_value *value)
{
    const size_t *count = (const size_t *)(const void *)((const char *)record + column->count_at);
    cidr_list_append(&value->made, column_field(column, record), *count);
    value->bytes = buffer_text(&value->made);
}

static bool set_cidr_array(const struct column *column, void *record,
                           const struct column_value *value)
{
    struct cidr *cidrs = column_field_to_set(column, record);
    return !value->null && cidr_list_read(value->bytes, cidrs, column->room / sizeof *cidrs,
                                          (size_t *)(void *)((char *)record + column->count_at));
}

const struct column_type column_cidr_array = {
    .kind = COLUMN_TEXT, .get = get_cidr_array, .set = set_cidr_array};

/* ---- columns --------------------------------------------------------------------------------- */

static const struct column columns[] = {
    COLUMN(customer_record, id, column_text, 0),
    COLUMN(customer_record, name, column_text, 0),
    COLUMN(customer_record, enabled, column_flag, 0),
    COLUMN(customer_record, casino, column_flag, 0),
    COLUMN(customer_record, sandbox, column_flag, 0),
    COLUMN(customer_record, sports, column_sports, 0),
    COLUMN_OF("rate_requests", customer_record, rate, column_rate_requests, 0),
    COLUMN_OF("rate_window_seconds", customer_record, rate, column_rate_window, 0),
    COLUMN_CIDRS(customer_record),
    COLUMN(customer_record, created_ms, column_integer, COLUMN_FIXED),
    COLUMN(customer_record, revision, column_revision, 0),
};

const struct record_table customer_table = {
    RECORD_TABLE(RECORD_CUSTOMER, "customer", "customers", "customer", customer_record, columns),
    .order = "number",
    .counter = "store_revision",
    .usable = offsetof(struct customer_record, usable),
    .check = check,
};
