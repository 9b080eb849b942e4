/* Legacy addresses as an operator handles them; see addresses.h. */
#include "operator/addresses.h"

static enum status parse_exact(struct text text, struct address *address, struct error *error)
{
    if (address_parse(text, address) == STATUS_OK)
        return STATUS_OK;
    return error_set(error, STATUS_INVALID,
                     "'%.*s' is not one exact IP address (a block needs a customer with a key)",
                     (int)(text.size < 64 ? text.size : 64), text.size > 0 ? text.at : "");
}

/* ---- the fields ------------------------------------------------------------------------------ */

static bool write_address(const struct field *field, const void *record,
                          const struct field_output *out)
{
    char text[ADDRESS_TEXT_SIZE];
    address_format(field_value(field, record), text);
    if (out->json != NULL)
        json_string(out->json, field->name, text);
    else
        buffer_append_string(out->text, text);
    return true;
}

static enum status set_address(const struct field *field, struct text text, void *record,
                               struct error *error)
{
    struct address *address = field_value_to_set(field, record);
    enum status status = parse_exact(text, address, error);
    return status == STATUS_OK && address_is_unspecified(address)
               ? error_set(error, STATUS_INVALID, "%.*s is no address that a client can have",
                           (int)text.size, text.at)
               : status;
}

static const struct field_type address_type = {write_address, set_address};

#define SPORTS_HELP "all (the default of 'add'), none, or names: cricket,tennis"
#define RATE_HELP "at most N sports requests in SECONDS; off (the default of 'add')"

static const struct field fields[] = {
    {"address", "address", "ADDRESS", &address_type, FIELD_OF(legacy_record, address)},
    {"enabled", "enabled", "ENABLED", &field_enabled, FIELD_OF(legacy_record, enabled),
     .beside = offsetof(struct legacy_record, usable)},
    {"usable", "usable", NULL, &field_usable, FIELD_OF(legacy_record, usable),
     .words = "no: the stored record cannot be read, so it admits no one"},
    {"sports", "sports", "SPORTS", &field_sports, FIELD_OF(legacy_record, sports),
     .option = {"sports", "LIST", .add_help = SPORTS_HELP, .set_help = SPORTS_HELP}},
    {"rate", "rate", "RATE", &field_rate, FIELD_OF(legacy_record, rate),
     .option = {"rate", "N/SECONDS", .add_help = RATE_HELP, .set_help = RATE_HELP}},
    {"created_at", "created", "CREATED (UTC)", &field_time, FIELD_OF(legacy_record, created_ms)},
    {0},
};

/* ---- the store ------------------------------------------------------------------------------- */

static void begin(void *record, int64_t now_ms)
{
    *(struct legacy_record *)record = (struct legacy_record){
        .enabled = true, .usable = true, .sports = SPORT_SET_ALL, .created_ms = now_ms};
}

static enum status check_id(const char *id, struct error *error)
{
    struct address address;
    return parse_exact(text_of(id), &address, error);
}

static const char *const whole[] = {"sports", "rate", NULL};

/* The record that is there for an operator: stored and not removed. */
static enum status get(struct platform_store *store, const char *id, void *record,
                       struct error *error)
{
    struct legacy_record found;
    struct address address;
    char text[ADDRESS_TEXT_SIZE];
    CHECK(address_parse(text_of(id), &address) == STATUS_OK);
    enum status status = platform_get(store, &legacy_table, &address, &found, error);
    if (status == STATUS_OK && !found.removed) {
        *(struct legacy_record *)record = found;
        return STATUS_OK;
    }
    if (status != STATUS_OK && status != STATUS_NOT_FOUND)
        return status;
    address_format(&address, text);
    return error_set(error, STATUS_NOT_FOUND,
                     "there is no address %s; to add it: croupier ip add %s", text, text);
}

static enum status add(struct platform_store *store, void *record, struct error *error)
{
    struct legacy_record *made = record;
    struct legacy_record old = {.removed = true};
    enum status status = platform_get(store, &legacy_table, &made->address, &old, error);
    if (status != STATUS_OK && status != STATUS_NOT_FOUND)
        return status;
    if (!old.removed) {
        char text[ADDRESS_TEXT_SIZE];
        address_format(&made->address, text);
        return error_set(error, STATUS_EXISTS,
                         "%s is there already; to change it: croupier ip set %s", text, text);
    }
    made->revision = old.revision; /* so that of two who add it at once one is refused */
    return platform_put(store, &legacy_table, made, error);
}

enum status address_remove(const void *context, void *record, struct error *error)
{
    struct legacy_record *address = record;
    (void)context;
    (void)error; /* it cannot fail */
    address->removed = true;
    address->enabled = false;
    address->revision = 0; /* also when another operator changed it */
    return STATUS_OK;
}

const struct resource address_resource = {
    .kind = RECORD_ADDRESS,
    .fields = fields,
    .size = sizeof(struct legacy_record),
    .begin = begin,
    .check_id = check_id,
    .whole = whole,
    .mend = "ip set ADDRESS --sports … --rate …",
    .get = get,
    .add = add,
};
