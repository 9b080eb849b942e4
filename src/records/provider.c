/* A provider of games: what is acceptable, and its columns; see provider.h. */
#include "records/provider.h"

#include <string.h>

#define SEALED_MIN 29 /* a nonce, one byte and a tag */

static enum status check(const void *checked, struct error *error)
{
    const struct provider_record *record = checked;
    enum status status = game_id_check(record->id, error);
    if (status == STATUS_OK)
        status = record_text_check("name", record->name, sizeof record->name, 1, error);
    if (status == STATUS_OK)
        status = game_url_check("launch URL", record->launch_url, false, error);
    if (status == STATUS_OK && record->launch_call &&
        !game_url_is_guarded(text_of(record->launch_url)))
        return error_set(error, STATUS_INVALID,
                         "launch endpoint: must be https:// (http:// only to 127.0.0.1, [::1] or "
                         "localhost), without a user name");
    if (status == STATUS_OK && record->return_url[0] != '\0')
        status = game_url_check("return URL", record->return_url, true, error);
    if (status == STATUS_OK)
        status = record_text_check("audience", record->audience, sizeof record->audience, 1, error);
    if (status != STATUS_OK)
        return status;
    if (record->secret_size < SEALED_MIN || record->secret_size > PROVIDER_SEALED_MAX)
        return error_set(error, STATUS_INVALID, "secret: is missing or too long");
    return STATUS_OK;
}

/* ---- columns --------------------------------------------------------------------------------- */

static void get_secret(const struct column *column, const void *record, struct column_value *value)
{
    const struct provider_record *provider = record;
    (void)column; /* two fields, of this record alone */
    value->bytes = (struct text){(const char *)provider->secret, provider->secret_size};
}

static bool set_secret(const struct column *column, void *record, const struct column_value *value)
{
    struct provider_record *provider = record;
    (void)column;
    if (value->null || value->bytes.size == 0 || value->bytes.size > sizeof provider->secret)
        return false;
    memcpy(provider->secret, value->bytes.at, value->bytes.size);
    provider->secret_size = value->bytes.size;
    return true;
}

static const struct column_type column_secret = {COLUMN_BYTES, get_secret, set_secret};

static const struct column columns[] = {
    COLUMN(provider_record, id, column_text, 0),
    COLUMN(provider_record, name, column_text, 0),
    COLUMN(provider_record, launch_url, column_text, 0),
    COLUMN(provider_record, return_url, column_text, COLUMN_NULLABLE),
    COLUMN(provider_record, audience, column_text, 0),
    COLUMN(provider_record, secret, column_secret, 0),
    COLUMN(provider_record, enabled, column_flag, 0),
    COLUMN(provider_record, launch_call, column_flag, 0),
    COLUMN(provider_record, created_ms, column_integer, COLUMN_FIXED),
    COLUMN(provider_record, revision, column_revision, 0),
};

const struct record_table provider_table = {
    .kind = RECORD_PROVIDER,
    .what = "provider",
    .plural = "providers",
    .name = "provider",
    .order = "id",
    .counter = "games_revision",
    .columns = columns,
    .column_count = sizeof columns / sizeof columns[0],
    .size = sizeof(struct provider_record),
    .usable = offsetof(struct provider_record, usable),
    .checked = true,
    .check = check,
};
