/* Legacy addresses as an operator handles them; see addresses.h. */
#include "operator/addresses.h"

#define CHANGE_TRIES 16

static enum status parse_exact(const char *text, struct address *address, struct error *error)
{
    if (address_parse(text_of(text), address) == STATUS_OK)
        return STATUS_OK;
    return error_set(error, STATUS_INVALID,
                     "'%.*s' is not one exact IP address (a block needs a customer with a key)", 64,
                     text);
}

static enum status edit(struct legacy_record *record, const struct address_settings *settings,
                        struct error *error)
{
    enum status status = STATUS_OK;
    if (settings->sports != NULL)
        status = sport_set_parse(text_of(settings->sports), &record->sports, error);
    if (status == STATUS_OK && settings->rate != NULL)
        status = rate_parse(text_of(settings->rate), &record->rate, error);
    switch_apply(settings->enabled, &record->enabled);
    return status;
}

/* The record that is there for an operator: stored and not removed. */
static enum status get(struct platform_store *store, const struct address *address,
                       struct legacy_record *record, struct error *error)
{
    struct legacy_record found;
    enum status status = platform_legacy_get(store, address, &found, error);
    if (status == STATUS_NOT_FOUND || (status == STATUS_OK && found.removed)) {
        char text[ADDRESS_TEXT_SIZE];
        address_format(address, text);
        return error_set(error, STATUS_NOT_FOUND,
                         "there is no address %s; to add it: croupier ip add %s", text, text);
    }
    if (status == STATUS_OK)
        *record = found;
    return status;
}

enum status addresses_add(struct platform_store *store, const char *address,
                          const struct address_settings *settings, int64_t now_ms,
                          struct legacy_record *record, struct error *error)
{
    struct legacy_record made = {
        .enabled = true, .usable = true, .sports = SPORT_SET_ALL, .created_ms = now_ms};
    struct legacy_record old;
    enum status status = parse_exact(address, &made.address, error);
    if (status == STATUS_OK && address_is_unspecified(&made.address))
        return error_set(error, STATUS_INVALID, "%s is no address that a client can have", address);
    if (status == STATUS_OK)
        status = edit(&made, settings, error);
    if (status != STATUS_OK)
        return status;
    status = platform_legacy_get(store, &made.address, &old, error);
    if (status == STATUS_OK && !old.removed) {
        char text[ADDRESS_TEXT_SIZE];
        address_format(&made.address, text);
        return error_set(error, STATUS_EXISTS,
                         "%s is there already; to change it: croupier ip set %s", text, text);
    }
    if (status != STATUS_OK && status != STATUS_NOT_FOUND)
        return status;
    made.revision = status == STATUS_OK ? old.revision : 0;
    status = platform_legacy_put(store, &made, error);
    if (status == STATUS_OK)
        *record = made;
    return status;
}

static enum status change_once(struct platform_store *store, const struct address *address,
                               const struct address_settings *settings,
                               struct legacy_record *record, struct error *error)
{
    struct legacy_record changed;
    enum status status = get(store, address, &changed, error);
    if (status != STATUS_OK)
        return status;
    if (!changed.usable && (settings->sports == NULL || settings->rate == NULL))
        return error_set(error, STATUS_MALFORMED,
                         "the stored record of this address cannot be read, so it admits nobody; "
                         "mend it by giving all of it: ip set … --sports … --rate …");
    status = edit(&changed, settings, error);
    if (status == STATUS_OK)
        status = platform_legacy_put(store, &changed, error);
    if (status != STATUS_OK)
        return status;
    changed.usable = true;
    *record = changed;
    return STATUS_OK;
}

enum status addresses_change(struct platform_store *store, const char *address,
                             const struct address_settings *settings, struct legacy_record *record,
                             struct error *error)
{
    struct address parsed;
    enum status status = parse_exact(address, &parsed, error);
    if (status != STATUS_OK)
        return status;
    status = STATUS_EXISTS; /* somebody was quicker */
    for (int i = 0; i < CHANGE_TRIES && status == STATUS_EXISTS; i++)
        status = change_once(store, &parsed, settings, record, error);
    return status;
}

enum status addresses_remove(struct platform_store *store, const char *address,
                             struct legacy_record *record, struct error *error)
{
    struct address parsed;
    struct legacy_record removed;
    enum status status = parse_exact(address, &parsed, error);
    if (status == STATUS_OK)
        status = get(store, &parsed, &removed, error);
    if (status != STATUS_OK)
        return status;
    removed.removed = true;
    removed.enabled = false;
    removed.revision = 0; /* whatever it has become meanwhile, it goes */
    status = platform_legacy_put(store, &removed, error);
    if (status == STATUS_OK)
        *record = removed;
    return status;
}

yyjson_mut_val *address_json(yyjson_mut_doc *doc, const struct legacy_record *record)
{
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    char text[ADDRESS_TEXT_SIZE];
    address_format(&record->address, text);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "address", text);
    (void)yyjson_mut_obj_add_bool(doc, object, "enabled", record->enabled);
    if (!record->usable)
        (void)yyjson_mut_obj_add_bool(doc, object, "usable", false);
    (void)yyjson_mut_obj_add_val(doc, object, "sports", sports_json(doc, record->sports));
    (void)yyjson_mut_obj_add_val(doc, object, "rate", rate_json(doc, &record->rate));
    (void)yyjson_mut_obj_add_val(doc, object, "created_at", time_json(doc, record->created_ms));
    return object;
}
