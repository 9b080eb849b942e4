/* Operators of the console, their credentials, and tokens: the rules, and the columns; see
 * operator.h. */
#include "records/operator.h"

#include "base/base62.h"

static const char *const role_names[ROLE_COUNT] = {
    [ROLE_READER] = "reader", [ROLE_OPERATOR] = "operator", [ROLE_OWNER] = "owner"};

const struct enum_names operator_roles = ENUM_NAMES(role_names);

static enum status check_name(const char *name, struct error *error)
{
    size_t size = strnlen(name, OPERATOR_NAME_SIZE);
    bool sound = size > 0 && size < OPERATOR_NAME_SIZE;
    for (size_t i = 0; sound && i < size; i++)
        sound = base62_is_digit(name[i]) || memchr("._-", name[i], 3) != NULL;
    return sound ? STATUS_OK
                 : error_invalid(error, "name: is 1 to %d letters, digits, '.', '_' and '-'",
                                 OPERATOR_NAME_SIZE - 1);
}

/* ---- operators ------------------------------------------------------------------------------- */

static enum status check_operator(const void *checked, struct error *error)
{
    const struct operator_record *record = checked;
    if ((unsigned)record->role >= ROLE_COUNT)
        return error_invalid(error, "role: is reader, operator or owner");
    return check_name(record->name, error);
}

static const struct column_type column_role = COLUMN_NAMES(&operator_roles);

static const struct column operator_columns[] = {
    COLUMN(operator_record, name, column_text, 0),
    COLUMN(operator_record, role, column_role, 0),
    COLUMN(operator_record, enabled, column_flag, 0),
    COLUMN(operator_record, removed, column_flag, 0),
    COLUMN(operator_record, created_ms, column_integer, 0),
    COLUMN(operator_record, revision, column_revision, 0),
};

static bool settle_operator(void *record, bool sound)
{
    struct operator_record *operator_record = record;
    if (!sound)
        operator_record->enabled = false; /* a malformed one cannot sign in */
    return true;
}

const struct record_table operator_table = {
    RECORD_TABLE(RECORD_OPERATOR, "operator", "operators", "console_operator", operator_record,
                 operator_columns),
    .listed = "NOT removed",
    .order = "name",
    .counter = "store_revision",
    .usable = offsetof(struct operator_record, usable),
    .check = check_operator,
    .settle = settle_operator,
};

/* ---- credentials ----------------------------------------------------------------------------- */

static enum status check_credential(const void *checked, struct error *error)
{
    const struct credential_record *record = checked;
    if (!record_id_is_sound(record->id, sizeof record->id, "lnk_") &&
        !record_id_is_sound(record->id, sizeof record->id, "ses_"))
        return error_invalid(error, "id: is neither lnk_… nor ses_…");
    if (record->created_ms < 0 || record->expires_ms <= 0 || record->ended_ms < 0)
        return error_invalid(error, "times: must not be negative");
    enum status status =
        record_text_check("address", record->address, sizeof record->address, 0, error);
    return status == STATUS_OK ? check_name(record->operator_name, error) : status;
}

static const struct column credential_columns[] = {
    COLUMN(credential_record, id, column_text, 0),
    COLUMN(credential_record, operator_name, column_text, COLUMN_FIXED),
    COLUMN(credential_record, digest, column_bytes, COLUMN_FIXED | COLUMN_SECRET),
    COLUMN(credential_record, address, column_text, COLUMN_FIXED),
    COLUMN(credential_record, created_ms, column_integer, COLUMN_FIXED),
    COLUMN(credential_record, expires_ms, column_integer, COLUMN_FIXED),
    COLUMN(credential_record, ended_ms, column_integer, COLUMN_NULLABLE),
    COLUMN(credential_record, revision, column_revision, 0),
};

const struct record_table credential_table = {
    RECORD_TABLE(RECORD_CREDENTIAL, "credential", "credentials", "operator_credential",
                 credential_record, credential_columns),
    .listed = "ended_ms IS NULL",
    .order = "number",
    .search = "expires_ms > $1 AND ended_ms IS NULL AND id LIKE 'ses%'"
              " ORDER BY expires_ms, number",
    .counter = "store_revision",
    .check = check_credential,
    .ended = offsetof(struct credential_record, ended_ms),
};

/* ---- tokens ---------------------------------------------------------------------------------- */

bool token_is_live(const struct token_record *record, int64_t now_ms)
{
    return record->revoked_ms == 0 && (record->expires_ms == 0 || record->expires_ms > now_ms);
}

static enum status check_token(const void *checked, struct error *error)
{
    const struct token_record *record = checked;
    if (!record_id_is_sound(record->id, sizeof record->id, "cro_"))
        return error_invalid(error, "id: is not the id of a token (cro_…)");
    if ((unsigned)record->role >= ROLE_COUNT)
        return error_invalid(error, "role: is reader, operator or owner");
    if (record->cidr_count > TOKEN_CIDRS_MAX)
        return error_invalid(error, "cidrs: a token has at most %d", TOKEN_CIDRS_MAX);
    if (record->created_ms < 0 || record->expires_ms < 0 || record->last_used_ms < 0 ||
        record->revoked_ms < 0)
        return error_invalid(error, "times: must not be negative");
    return check_name(record->name, error);
}

static const struct column token_columns[] = {
    COLUMN(token_record, id, column_text, 0),
    COLUMN(token_record, name, column_text, COLUMN_FIXED),
    COLUMN(token_record, role, column_role, COLUMN_FIXED),
    COLUMN(token_record, digest, column_bytes, COLUMN_FIXED | COLUMN_SECRET),
    COLUMN_CIDRS(token_record),
    COLUMN(token_record, created_ms, column_integer, COLUMN_FIXED),
    COLUMN(token_record, expires_ms, column_integer, COLUMN_FIXED | COLUMN_NULLABLE),
    COLUMN(token_record, last_used_ms, column_integer,
           COLUMN_FIXED | COLUMN_NULLABLE | COLUMN_UNAUDITED),
    COLUMN(token_record, revoked_ms, column_integer, COLUMN_NULLABLE),
    COLUMN(token_record, revision, column_revision, 0),
};

const struct record_table token_table = {
    RECORD_TABLE(RECORD_TOKEN, "token", "tokens", "operator_token", token_record, token_columns),
    .order = "number",
    .counter = "store_revision",
    .check = check_token,
    .ended = offsetof(struct token_record, revoked_ms),
};
