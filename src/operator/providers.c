/* Providers as an operator handles them; see providers.h. A change is read, edited and written back
 * under the revision that was read, and done again when somebody was quicker. */
#include "operator/providers.h"

#include <string.h>

#include "records/provider_secret.h"

#define CHANGE_TRIES 16

static enum status edit_text(const char *what, const char *value, char *out, size_t room,
                             struct error *error)
{
    size_t size = strlen(value);
    if (size >= room)
        return error_set(error, STATUS_INVALID, "%s: is longer than %zu bytes", what, room - 1);
    memcpy(out, value, size + 1);
    return STATUS_OK;
}

/* One field holds both: the flag says which it is. */
static enum status edit_launch(struct provider_record *record,
                               const struct provider_settings *settings, struct error *error)
{
    bool call = settings->launch_endpoint != NULL;
    const char *url = call ? settings->launch_endpoint : settings->launch_url;
    CHECK(settings->launch_url == NULL || !call);
    if (url == NULL)
        return STATUS_OK;
    record->launch_call = call;
    return edit_text(call ? "launch endpoint" : "launch URL", url, record->launch_url,
                     sizeof record->launch_url, error);
}

static enum status edit(struct provider_record *record, const struct secrets *secrets,
                        const struct provider_settings *settings, struct error *error)
{
    enum status status = STATUS_OK;
    if (settings->name != NULL)
        status = edit_text("name", settings->name, record->name, sizeof record->name, error);
    if (status == STATUS_OK)
        status = edit_launch(record, settings, error);
    if (status == STATUS_OK && settings->return_url != NULL)
        status = edit_text("return URL", settings->return_url, record->return_url,
                           sizeof record->return_url, error);
    if (status == STATUS_OK && settings->audience != NULL)
        status = edit_text("audience", settings->audience, record->audience,
                           sizeof record->audience, error);
    if (status == STATUS_OK && settings->secret.size > 0) {
        CHECK(secrets != NULL);
        provider_secret_seal(secrets, record, settings->secret);
    }
    switch_apply(settings->enabled, &record->enabled);
    return status == STATUS_OK ? provider_record_check(record, error) : status;
}

static enum status no_such_provider(const char *id, struct error *error)
{
    return error_set(error, STATUS_NOT_FOUND, "there is no provider '%.*s'", 64, id);
}

enum status providers_add(struct platform_store *store, const struct secrets *secrets,
                          const char *id, const struct provider_settings *settings, int64_t now_ms,
                          struct provider_record *record, struct error *error)
{
    struct provider_record made = {.enabled = true, .usable = true, .created_ms = now_ms};
    CHECK(settings->name != NULL && settings->secret.size > 0);
    CHECK(settings->launch_url != NULL || settings->launch_endpoint != NULL);
    enum status status = edit_text("id", id, made.id, sizeof made.id, error);
    if (status == STATUS_OK)
        status = edit_text("id", id, made.audience, sizeof made.audience, error);
    if (status == STATUS_OK)
        status = edit(&made, secrets, settings, error);
    if (status == STATUS_OK)
        status = platform_provider_add(store, &made, error);
    if (status == STATUS_EXISTS)
        return error_set(error, STATUS_EXISTS, "there is a provider '%s' already", made.id);
    if (status == STATUS_OK)
        *record = made;
    return status;
}

enum status providers_get(struct platform_store *store, const char *id,
                          struct provider_record *record, struct error *error)
{
    enum status status = platform_provider_get(store, id, record, error);
    return status == STATUS_NOT_FOUND ? no_such_provider(id, error) : status;
}

static enum status change_once(struct platform_store *store, const struct secrets *secrets,
                               const char *id, const struct provider_settings *settings,
                               struct provider_record *record, struct error *error)
{
    struct provider_record changed;
    enum status status = providers_get(store, id, &changed, error);
    if (status == STATUS_OK)
        status = edit(&changed, secrets, settings, error);
    if (status == STATUS_OK)
        status = platform_provider_update(store, &changed, error);
    if (status != STATUS_OK)
        return status;
    changed.usable = true;
    *record = changed;
    return STATUS_OK;
}

enum status providers_change(struct platform_store *store, const struct secrets *secrets,
                             const char *id, const struct provider_settings *settings,
                             struct provider_record *record, struct error *error)
{
    enum status status = STATUS_EXISTS; /* somebody was quicker */
    for (int i = 0; i < CHANGE_TRIES && status == STATUS_EXISTS; i++)
        status = change_once(store, secrets, id, settings, record, error);
    return status;
}

static yyjson_mut_val *text_or_null(yyjson_mut_doc *doc, const char *text, bool there)
{
    return there ? yyjson_mut_strcpy(doc, text) : yyjson_mut_null(doc);
}

yyjson_mut_val *provider_json(yyjson_mut_doc *doc, const struct provider_record *record)
{
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "id", record->id);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "name", record->name);
    (void)yyjson_mut_obj_add_val(doc, object, "launch_url",
                                 text_or_null(doc, record->launch_url, !record->launch_call));
    (void)yyjson_mut_obj_add_val(doc, object, "launch_endpoint",
                                 text_or_null(doc, record->launch_url, record->launch_call));
    (void)yyjson_mut_obj_add_val(
        doc, object, "return_url",
        text_or_null(doc, record->return_url, record->return_url[0] != '\0'));
    (void)yyjson_mut_obj_add_strcpy(doc, object, "audience", record->audience);
    (void)yyjson_mut_obj_add_bool(doc, object, "enabled", record->enabled);
    if (!record->usable)
        (void)yyjson_mut_obj_add_bool(doc, object, "usable", false);
    (void)yyjson_mut_obj_add_val(doc, object, "created_at", time_json(doc, record->created_ms));
    return object;
}
