/* Providers as an operator handles them; see providers.h. */
#include "operator/providers.h"

#include "operator/option_texts.h"
#include "sealing/provider_secret.h"

/* ---- the launch URL, or the endpoint that is called for it ----------------------------------- */

/* One member of the record holds either, and a flag says which it is. */
static bool is_endpoint(const struct field *field)
{
    return strcmp(field->name, "launch_endpoint") == 0;
}

static bool write_launch(const struct field *field, const void *record,
                         const struct field_output *out)
{
    const struct provider_record *provider = record;
    bool is_this = provider->launch_call == is_endpoint(field);
    if (out->json != NULL && is_this)
        json_string(out->json, field->name, provider->launch_url);
    else if (out->json != NULL)
        json_null(out->json, field->name);
    else
        buffer_append_format(out->text, "%s%s", provider->launch_url,
                             out->brief && provider->launch_call ? " (called)" : "");
    return is_this;
}

static enum status set_launch(const struct field *field, struct text text, void *record,
                              struct error *error)
{
    struct provider_record *provider = record;
    provider->launch_call = is_endpoint(field);
    return field_set_text(field, text, record, error);
}

static const struct field_type launch_type = {write_launch, set_launch};

/* ---- its secrets, of which only names and times are shown ------------------------------------ */

void provider_write_secrets(struct json_writer *json, const char *name,
                            const struct provider_record *provider)
{
    json_array(json, name);
    for (size_t i = 0; i < PROVIDER_SECRETS_MAX && provider->secrets[i].size > 0; i++) {
        json_object(json, NULL);
        json_string(json, "kid", provider_secret_name(&provider->secrets[i]));
        json_bool(json, "signs", i == 0);
        json_time(json, "added_at", provider->secrets[i].added_ms);
        json_end(json);
    }
    json_end(json);
}

static bool write_secrets(const struct field *field, const void *record,
                          const struct field_output *out)
{
    const struct provider_record *provider = record;
    if (out->json != NULL) {
        provider_write_secrets(out->json, field->name, provider);
        return true;
    }
    for (size_t i = 0; i < PROVIDER_SECRETS_MAX && provider->secrets[i].size > 0; i++)
        buffer_append_format(out->text, "%s%s", i == 0 ? "" : ", until it is retired: ",
                             provider_secret_name(&provider->secrets[i]));
    return true;
}

static const struct field_type secrets_type = {write_secrets, NULL};

/* ---- the fields ------------------------------------------------------------------------------ */

/* A new provider's audience is its id until another is set. */
static enum status set_id(const struct field *field, struct text text, void *record,
                          struct error *error)
{
    static const struct field audience = {"id", FIELD_OF(provider_record, audience)};
    enum status status = field_set_text(field, text, record, error);
    return status == STATUS_OK ? field_set_text(&audience, text, record, error) : status;
}

#define OF_RECORD(member) FIELD_OF(provider_record, member)

/* In documents the state comes last but one; people see it first. */
static const struct field fields[] = {
    {"id", "id", "ID", &field_text, OF_RECORD(id), .least = 1, .set = set_id},
    {"name", "name", "NAME", &field_text, OF_RECORD(name), .option = OPTION_PROVIDER_NAME},
    {NULL, "enabled", "ENABLED", &field_enabled, OF_ENABLED(provider_record)},
    {NULL, "usable", NULL, &field_usable, OF_RECORD(usable),
     .words = "no: the stored record cannot be read, so its games are hidden"},
    {"launch_url", "launch url", "LAUNCH URL", &launch_type, OF_RECORD(launch_url),
     .option = OPTION_PROVIDER_LAUNCH_URL, .owners = true},
    {"launch_endpoint", "endpoint", NULL, &launch_type, OF_RECORD(launch_url),
     .option = OPTION_PROVIDER_LAUNCH_ENDPOINT, .owners = true},
    {"secret", NULL, NULL, &field_secret, /* by provider_seal */ .option = OPTION_PROVIDER_SECRET},
    {"return_url", "return url", NULL, &field_text_or_null, OF_RECORD(return_url), .words = "none",
     .option = OPTION_PROVIDER_RETURN_URL},
    {"audience", "audience", NULL, &field_text, OF_RECORD(audience),
     .option = OPTION_PROVIDER_AUDIENCE},
    {"cidrs", "cidrs", NULL, &field_cidrs, OF_CIDRS(provider_record), .words = "any",
     .option = OPTION_PROVIDER_CIDR},
    {"blocked_countries", "not offered in", NULL, &field_list, OF_RECORD(blocked_countries),
     .set = field_set_countries, .option = OPTION_PROVIDER_BLOCKED_COUNTRY},
    {"sandbox", "sandbox", NULL, &field_yes_no, OF_RECORD(sandbox), .set = field_set_on_off,
     .option = OPTION_PROVIDER_SANDBOX},
    {"secrets", "secrets", NULL, &secrets_type, OF_RECORD(secrets)},
    {"enabled", NULL, NULL, &field_yes_no, OF_RECORD(enabled)},
    {"usable", NULL, NULL, &field_usable, OF_RECORD(usable)},
    {"created_at", "created", "CREATED (UTC)", &field_time, OF_RECORD(created_ms)},
    {0},
};

enum status provider_seal(const void *context, void *record, struct error *error)
{
    const struct provider_sealing *sealing = context;
    (void)error; /* it cannot fail */
    provider_secret_seal(sealing->secrets, record, sealing->secret, sealing->now_ms);
    return STATUS_OK;
}

enum status provider_add_secret(const void *context, void *record, struct error *error)
{
    const struct provider_sealing *sealing = context;
    return provider_secret_add(sealing->secrets, record, sealing->secret, sealing->now_ms, error);
}

enum status provider_retire_secret(const void *context, void *record, struct error *error)
{
    return provider_secret_retire(record, context, error);
}

/* ---- the key that secrets are sealed with ---------------------------------------------------- */

struct unsealing {
    const struct secrets *secrets;
    char failed[PROVIDER_ID_SIZE]; /* a provider whose secret does not open; "": none */
};

static bool unseal(void *context, const void *visited)
{
    const struct provider_record *record = visited;
    struct unsealing *unsealing = context;
    for (size_t i = 0; record->enabled && i < PROVIDER_SECRETS_MAX && record->secrets[i].size > 0;
         i++) {
        struct buffer plain = {0};
        if (provider_secret_unseal(unsealing->secrets, record, i, &plain) != STATUS_OK)
            memcpy(unsealing->failed, record->id, sizeof unsealing->failed);
        buffer_wipe(&plain);
    }
    return true;
}

/* Disabled providers do not count: so after a loss of the key they can be set again one by one. */
enum status providers_try_key(struct platform_store *store, const struct secrets *secrets,
                              const char *key_file, struct error *error)
{
    struct unsealing unsealing = {.secrets = secrets};
    enum status status = platform_list(store, &provider_table, NULL, unseal, &unsealing, error);
    if (unsealing.failed[0] == '\0')
        return status;
    return error_conflict(error,
                          "%s is not the key that the secret of provider %s was stored under; "
                          "copy the right file from another instance or a backup; if no copy is "
                          "left, disable that provider first",
                          key_file, unsealing.failed);
}

/* ---- the store ------------------------------------------------------------------------------- */

static void begin(void *record, int64_t now_ms)
{
    *(struct provider_record *)record =
        (struct provider_record){.enabled = true, .usable = true, .created_ms = now_ms};
}

static const struct provider_record sound = {.id = "id",
                                             .name = "name",
                                             .launch_url = "https://launch/",
                                             .audience = "audience",
                                             .secrets = {{.size = PROVIDER_SEALED_MAX}}};

const struct resource provider_resource = {
    RESOURCE(RECORD_PROVIDER, provider_record, fields),
    .sound = &sound,
    .begin = begin,
};
