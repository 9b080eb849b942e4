/* Providers as an operator handles them; see providers.h. */
#include "operator/providers.h"

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

/* In documents the state comes last but one; people see it first. */
static const struct field fields[] = {
    {"id", "id", "ID", &field_text, FIELD_OF(provider_record, id), .least = 1, .set = set_id},
    {"name", "name", "NAME", &field_text, FIELD_OF(provider_record, name),
     .option = {"name", "NAME", .add_help = "what to call it; customers see it",
                .set_help = "what to call it; customers see it"}},
    {NULL, "enabled", "ENABLED", &field_enabled, FIELD_OF(provider_record, enabled),
     .beside = offsetof(struct provider_record, usable)},
    {NULL, "usable", NULL, &field_usable, FIELD_OF(provider_record, usable),
     .words = "no: the stored record cannot be read, so its games are hidden"},
    {"launch_url", "launch url", "LAUNCH URL", &launch_type, FIELD_OF(provider_record, launch_url),
     .option = {"launch-url", "URL",
                .add_help = "where its games are opened; the token is added as ?token=…",
                .set_help = "where its games are opened, with a token"},
     .owners = true},
    {"launch_endpoint", "endpoint", NULL, &launch_type, FIELD_OF(provider_record, launch_url),
     .option = {"launch-endpoint", "URL",
                .add_help = "in its place: what is called for the URL of each launch",
                .set_help = "in its place: what is called for the URL of each launch"},
     .owners = true},
    {"secret", NULL, NULL, &field_secret, /* by provider_seal */
     .option = {"secret", "-",
                .add_help = "the secret that launches are signed with, from standard input",
                .set_help = "another secret, from standard input"}},
    {"return_url", "return url", NULL, &field_text_or_null, FIELD_OF(provider_record, return_url),
     .words = "none",
     .option = {"return-url", "URL", .add_help = "where the provider sends players back to (none)",
                .set_help = "where the provider sends players back to", .no_name = "no-return-url",
                .no_help = "no return URL"}},
    {"audience", "audience", NULL, &field_text, FIELD_OF(provider_record, audience),
     .option = {"audience", "TEXT", .add_help = "'aud' of its tokens (the id)",
                .set_help = "'aud' of its tokens"}},
    {"cidrs", "cidrs", NULL, &field_cidrs, FIELD_OF(provider_record, cidrs),
     .beside = offsetof(struct provider_record, cidr_count), .words = "any",
     .option = {"cidr", "CIDR",
                .add_help = "an address block that its wallet calls come from (any)",
                .set_help =
                    "the address blocks that its wallet calls come from, instead of those it has",
                .no_name = "no-cidrs", .no_help = "no address block: they may come from anywhere",
                .repeatable = true}},
    {"blocked_countries", "not offered in", NULL, &field_countries,
     FIELD_OF(provider_record, blocked_countries),
     .option = {"blocked-country", "CODE",
                .add_help = "a country (ISO 3166-1) where its games must not be offered (none)",
                .set_help = "the countries where its games must not be offered, instead of those "
                            "it has",
                .no_name = "no-blocked-countries", .no_help = "they may be offered everywhere",
                .repeatable = true}},
    {"sandbox", "sandbox", NULL, &field_yes_no, FIELD_OF(provider_record, sandbox),
     .set = field_set_on_off,
     .option = {"sandbox", "on|off",
                .add_help = "on: it tries things out, with sandbox customers alone",
                .set_help =
                    "on: it tries things out, with sandbox customers alone; only before its "
                    "first launch"}},
    {"secrets", "secrets", NULL, &secrets_type, FIELD_OF(provider_record, secrets)},
    {"enabled", NULL, NULL, &field_yes_no, FIELD_OF(provider_record, enabled)},
    {"usable", NULL, NULL, &field_usable, FIELD_OF(provider_record, usable)},
    {"created_at", "created", "CREATED (UTC)", &field_time, FIELD_OF(provider_record, created_ms)},
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
    .kind = RECORD_PROVIDER,
    .sound = &sound,
    .fields = fields,
    .size = sizeof(struct provider_record),
    .begin = begin,
};
