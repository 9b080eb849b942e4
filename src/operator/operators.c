/* Operators of the console as an operator handles them; see credentials.h. */
#include "operator/credentials.h"

#include "operator/option_texts.h"

/* ---- the fields ------------------------------------------------------------------------------ */

static const struct field fields[] = {
    {"name", "name", "NAME", &field_text, FIELD_OF(operator_record, name)},
    {"role", "role", "ROLE", &field_word, FIELD_OF(operator_record, role), .names = &operator_roles,
     .option = OPTION_OPERATOR_ROLE},
    {"enabled", "enabled", "ENABLED", &field_enabled, OF_ENABLED(operator_record)},
    {"usable", "usable", NULL, &field_usable, FIELD_OF(operator_record, usable),
     .words = "no: the stored record cannot be read, so it lets no one in"},
    {"created_at", "created", "CREATED (UTC)", &field_time, FIELD_OF(operator_record, created_ms)},
    {0},
};

/* ---- the store ------------------------------------------------------------------------------- */

static void begin(void *record, int64_t now_ms)
{
    *(struct operator_record *)record =
        (struct operator_record){.enabled = true, .usable = true, .created_ms = now_ms};
}

static bool note_one(void *context, const void *record)
{
    (void)record;
    *(bool *)context = true;
    return false;
}

static bool note_live_token(void *context, const void *record)
{
    bool live = token_is_live(record, clock_wall_ms());
    *(bool *)context = live;
    return !live;
}

enum status operators_exist(struct platform_store *store, bool *exist, struct error *error)
{
    bool found = false;
    enum status status = platform_list(store, &operator_table, NULL, note_one, &found, error);
    if (status == STATUS_OK && !found)
        status = platform_list(store, &token_table, NULL, note_live_token, &found, error);
    if (status == STATUS_OK)
        *exist = found;
    return status;
}

static const struct operator_record sound = {.name = "name"};

const struct resource operator_resource = {
    RESOURCE(RECORD_OPERATOR, operator_record, fields),
    .sound = &sound,
    .begin = begin,
    .state = RESOURCE_STATE_OF(operator_record),
};
