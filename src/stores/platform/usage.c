/*
 * Stores how much customers use. Writers add to the stored counts. A write takes no revision: no
 * server keeps a copy.
 */
#include "stores/platform/ledger/reads.h"
#include "stores/platform_usage.h"

static enum status add_usage(struct sql_flight *flight, void *context, struct error *error)
{
    const struct sql_records *adding = context;
    for (size_t i = 0; i < adding->count; i++) {
        const struct usage_record *record = (const struct usage_record *)adding->at + i;
        struct sql_parameters *parameters =
            sql_flight_add(flight, flight->store->engine->texts->add_usage)->parameters;
        SQL_ADD(parameters, SQL_STRING(record->customer_id), SQL_INTEGER(record->day),
                SQL_STRING(enum_name(&usage_groups, record->group)));
        for (size_t class = 0; class < USAGE_CLASS_COUNT; class ++)
            SQL_ADD(parameters, SQL_INTEGER(record->requests[class]));
    }
    return sql_flight_run(flight, true, error);
}

enum status platform_usage_add(struct platform_store *store, const struct usage_record *records,
                               size_t count, struct error *error)
{
    struct sql_records adding = {records, count};
    CHECK(count <= PLATFORM_USAGE_MAX);
    return count == 0 ? STATUS_OK : sql_transact(store, add_usage, &adding, error);
}

struct listing {
    struct platform_store *store;
    usage_function *see;
    void *context;
};

static enum status take_row(void *context, const struct sql_row *row, struct error *error)
{
    const struct listing *listing = context;
    struct usage_record record = {.day = sql_integer(row, 1)};
    for (int class = 0; class < USAGE_CLASS_COUNT; class ++)
        record.requests[class] = (uint64_t)sql_integer(row, 3 + class);
    return ledger_read_string(row, 0, record.customer_id, sizeof record.customer_id) &&
                   ledger_read_string(row, 7, record.customer_name, sizeof record.customer_name) &&
                   enum_read(&usage_groups, sql_text(row, 2), &record.group)
               ? ledger_more(listing->see(listing->context, &record))
               : platform_damaged(listing->store, "a count of requests is malformed", error);
}

enum status platform_usage_list(struct platform_store *store, const char *customer_id,
                                int64_t from_day, int64_t to_day, usage_function *see,
                                void *context, struct error *error)
{
    const struct sql_texts *texts = store->engine->texts;
    struct listing listing = {store, see, context};
    struct sql_parameters parameters = SQL_PARAMETERS(SQL_INTEGER(from_day), SQL_INTEGER(to_day));
    if (customer_id != NULL)
        SQL_ADD(&parameters, SQL_STRING(customer_id));
    return ledger_read(store, customer_id == NULL ? texts->usage : texts->usage_of_customer,
                       &parameters, take_row, &listing, error);
}
