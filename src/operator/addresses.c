/* Legacy addresses as an operator handles them; see tables.h. */
#include "operator/tables.h"

#include "operator/option_texts.h"

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
    struct address address;
    if (address_parse(text, &address) != STATUS_OK)
        return error_invalid(
            error, "'%.*s' is not one exact IP address (a block needs a customer with a key)",
            TEXT_SHOWN(text));
    if (address_is_unspecified(&address))
        return error_invalid(error, "%.*s is no address that a client can have", (int)text.size,
                             text.at);
    memcpy(field_value_to_set(field, record), &address, sizeof address);
    return STATUS_OK;
}

static const struct field_type address_type = {write_address, set_address};

#define OF_RECORD(member) FIELD_OF(legacy_record, member)

static const struct field fields[] = {
    {"address", "address", "ADDRESS", &address_type, OF_RECORD(address)},
    {"enabled", "enabled", "ENABLED", &field_enabled, OF_ENABLED(legacy_record)},
    {"usable", "usable", NULL, &field_usable, OF_RECORD(usable),
     .words = "no: the stored record cannot be read, so it admits no one"},
    {"sports", "sports", "SPORTS", &field_sports, OF_RECORD(sports), .option = OPTION_IP_SPORTS},
    {"rate", "rate", "RATE", &field_rate, OF_RECORD(rate), .option = OPTION_IP_RATE},
    {"created_at", "created", "CREATED (UTC)", &field_time, OF_RECORD(created_ms)},
    {0},
};

/* ---- the store ------------------------------------------------------------------------------- */

static void begin(void *record, int64_t now_ms)
{
    *(struct legacy_record *)record = (struct legacy_record){
        .enabled = true, .usable = true, .sports = SPORT_SET_ALL, .created_ms = now_ms};
}

static const char *const whole[] = {"sports", "rate", NULL};

const struct resource address_resource = {
    RESOURCE(RECORD_ADDRESS, legacy_record, fields),
    .begin = begin,
    .whole = whole,
    .mend = "ip set ADDRESS --sports … --rate …",
    .state = RESOURCE_STATE_OF(legacy_record),
};
