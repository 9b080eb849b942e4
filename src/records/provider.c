/* A provider of games: its rules and its columns; see provider.h. */
#include "records/provider.h"

#include "records/customer.h"

#define SEALED_MIN 29 /* a nonce, one byte and a tag */

static bool is_sound(const struct provider_secret *secret, bool optional)
{
    size_t kid_size = strnlen(secret->kid, sizeof secret->kid);
    if (secret->size == 0)
        return optional && kid_size == 0;
    return secret->size >= SEALED_MIN && secret->size <= PROVIDER_SEALED_MAX &&
           (kid_size == 0 || record_id_is_sound(secret->kid, sizeof secret->kid, ""));
}

static enum status check(const void *checked, struct error *error)
{
    const struct provider_record *record = checked;
    const char *launch = record->launch_call ? "launch_endpoint" : "launch_url";
    enum status status = game_id_check(record->id, error);
    if (status == STATUS_OK)
        status = record_text_check("name", record->name, sizeof record->name, 1, error);
    if (status == STATUS_OK)
        status = game_url_check(launch, record->launch_url, false, error);
    if (status == STATUS_OK && record->launch_call &&
        !game_url_is_guarded(text_of(record->launch_url)))
        return error_invalid(
            error, "launch_endpoint: must be https:// (http:// only to 127.0.0.1, [::1] or "
                   "localhost), without a user name");
    if (status == STATUS_OK && record->return_url[0] != '\0')
        status = game_url_check("return_url", record->return_url, true, error);
    if (status == STATUS_OK)
        status = record_text_check("audience", record->audience, sizeof record->audience, 1, error);
    if (status == STATUS_OK)
        status = game_list_check("blocked_countries", record->blocked_countries, country_is_known,
                                 error);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < PROVIDER_SECRETS_MAX; i++)
        if (!is_sound(&record->secrets[i], i > 0))
            return error_invalid(error, "secret: is missing or too long");
    return STATUS_OK;
}

/* ---- columns --------------------------------------------------------------------------------- */

/* A column of a sealed secret also sets its size. */
static size_t secret_at(const struct column *column)
{
    return column->at - offsetof(struct provider_secret, sealed);
}

static void get_secret(const struct column *column, const void *record, struct column_value *value)
{
    const struct provider_secret *secret = (const void *)((const char *)record + secret_at(column));
    value->bytes = (struct text){(const char *)secret->sealed, secret->size};
    value->null = secret->size == 0 && (column->rules & COLUMN_NULLABLE) != 0;
}

static bool set_secret(const struct column *column, void *record, const struct column_value *value)
{
    struct provider_secret *secret = (void *)((char *)record + secret_at(column));
    if (value->null)
        return (column->rules & COLUMN_NULLABLE) != 0;
    if (value->bytes.size == 0 || value->bytes.size > sizeof secret->sealed)
        return false;
    memcpy(secret->sealed, value->bytes.at, value->bytes.size);
    secret->size = value->bytes.size;
    return true;
}

static const struct column_type column_secret = {
    .kind = COLUMN_BYTES, .get = get_secret, .set = set_secret};

static const struct column columns[] = {
    COLUMN(provider_record, id, column_text, 0),
    COLUMN(provider_record, name, column_text, 0),
    COLUMN(provider_record, launch_url, column_text, 0),
    COLUMN(provider_record, return_url, column_text, COLUMN_NULLABLE),
    COLUMN(provider_record, audience, column_text, 0),
    COLUMN_OF("secret", provider_record, secrets[0].sealed, column_secret, COLUMN_SECRET),
    COLUMN_OF("secret_kid", provider_record, secrets[0].kid, column_text, COLUMN_NULLABLE),
    COLUMN_OF("secret_added_ms", provider_record, secrets[0].added_ms, column_integer,
              COLUMN_NULLABLE),
    COLUMN_OF("older_secret", provider_record, secrets[1].sealed, column_secret,
              COLUMN_SECRET | COLUMN_NULLABLE),
    COLUMN_OF("older_secret_kid", provider_record, secrets[1].kid, column_text, COLUMN_NULLABLE),
    COLUMN_OF("older_secret_added_ms", provider_record, secrets[1].added_ms, column_integer,
              COLUMN_NULLABLE),
    COLUMN(provider_record, enabled, column_flag, 0),
    COLUMN(provider_record, sandbox, column_flag, 0),
    COLUMN(provider_record, launch_call, column_flag, 0),
    COLUMN_CIDRS(provider_record),
    COLUMN(provider_record, blocked_countries, column_lines, 0),
    COLUMN(provider_record, created_ms, column_integer, COLUMN_FIXED),
    COLUMN(provider_record, revision, column_revision, 0),
};

const struct record_table provider_table = {
    RECORD_TABLE(RECORD_PROVIDER, "provider", "providers", "provider", provider_record, columns),
    .order = "id",
    .counter = "games_revision",
    .usable = offsetof(struct provider_record, usable),
    .checked = true,
    .check = check,
};
