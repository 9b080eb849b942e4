/* What a record may hold and how its lists are written; see platform_record.h. */
#include "stores/platform_record.h"

#include <string.h>

#include "base/base62.h"
#include "base/memory.h"

#define RATE_REQUESTS_MAX 1000000000U
#define RATE_WINDOW_MAX 86400U

bool rate_limit_is_sound(const struct rate_limit *rate)
{
    return !rate->enabled || (rate->requests >= 1 && rate->requests <= RATE_REQUESTS_MAX &&
                              rate->window_seconds >= 1 && rate->window_seconds <= RATE_WINDOW_MAX);
}

/* An id is its kind ("cus_") and one or more ASCII letters and digits. */
static bool is_id(const char *id, size_t room, const char *kind)
{
    size_t size = strnlen(id, room);
    size_t kind_size = strlen(kind);
    if (size == room || size <= kind_size || memcmp(id, kind, kind_size) != 0)
        return false;
    for (size_t i = kind_size; i < size; i++)
        if (!base62_is_digit(id[i]))
            return false;
    return true;
}

/* Whether a text fits its field with its NUL and is UTF-8 without control characters. */
static bool is_plain(const char *field, size_t room, size_t least)
{
    size_t size = strnlen(field, room);
    return size < room && size >= least && text_is_plain((struct text){field, size});
}

static enum status policy_check(sport_set sports, const struct rate_limit *rate,
                                struct error *error)
{
    if ((sports & ~SPORT_SET_ALL) != 0)
        return error_set(error, STATUS_INVALID, "sports: holds an unknown sport");
    if (!rate_limit_is_sound(rate))
        return error_set(error, STATUS_INVALID, "rate: must be 1 to %u requests in 1 to %u seconds",
                         RATE_REQUESTS_MAX, RATE_WINDOW_MAX);
    return STATUS_OK;
}

enum status customer_record_check(const struct customer_record *record, struct error *error)
{
    if (!is_id(record->id, sizeof record->id, "cus_"))
        return error_set(error, STATUS_INVALID, "id: is not a customer id (cus_…)");
    if (!is_plain(record->name, sizeof record->name, 1))
        return error_set(error, STATUS_INVALID,
                         "name: must be 1 to %d bytes of UTF-8 without control characters",
                         CUSTOMER_NAME_SIZE - 1);
    if (record->cidr_count > CIDRS_MAX)
        return error_set(error, STATUS_INVALID, "cidrs: %zu are too many; at most %d",
                         record->cidr_count, CIDRS_MAX);
    return policy_check(record->sports, &record->rate, error);
}

enum status key_record_check(const struct key_record *record, struct error *error)
{
    if (!is_id(record->id, sizeof record->id, "key_"))
        return error_set(error, STATUS_INVALID, "id: is not a key id (key_…)");
    if (!is_id(record->customer_id, sizeof record->customer_id, "cus_"))
        return error_set(error, STATUS_INVALID, "customer: is not a customer id (cus_…)");
    if (!is_plain(record->label, sizeof record->label, 0))
        return error_set(error, STATUS_INVALID,
                         "label: must be at most %d bytes of UTF-8 without control characters",
                         KEY_LABEL_SIZE - 1);
    if (strnlen(record->prefix, sizeof record->prefix) != KEY_PREFIX_SIZE - 1)
        return error_set(error, STATUS_INVALID, "prefix: must be %d characters",
                         KEY_PREFIX_SIZE - 1);
    if (record->expires_ms < 0 || record->last_used_ms < 0 || record->revoked_ms < 0)
        return error_set(error, STATUS_INVALID, "times: must not be negative");
    return STATUS_OK;
}

enum status legacy_record_check(const struct legacy_record *record, struct error *error)
{
    return policy_check(record->sports, &record->rate, error);
}

bool is_outside_name(struct text name)
{
    if (name.size < 1 || name.size > 64)
        return false;
    for (size_t i = 0; i < name.size; i++)
        if (!base62_is_digit(name.at[i]) && (name.at[i] == '\0' || !strchr("._:-", name.at[i])))
            return false;
    return true;
}

static bool is_currency(const char *code)
{
    for (size_t i = 0; i < CURRENCY_SIZE - 1; i++)
        if (code[i] < 'A' || code[i] > 'Z')
            return false;
    return code[CURRENCY_SIZE - 1] == '\0';
}

enum status player_record_check(const struct player_record *record, struct error *error)
{
    if (!is_id(record->id, sizeof record->id, "ply_"))
        return error_set(error, STATUS_INVALID, "id: is not a player id (ply_…)");
    if (!is_id(record->customer_id, sizeof record->customer_id, "cus_"))
        return error_set(error, STATUS_INVALID, "customer: is not a customer id (cus_…)");
    if (!is_outside_name(text_of(record->reference)))
        return error_set(error, STATUS_INVALID,
                         "reference: must be 1 to 64 letters, digits, '.', '_', ':' or '-'");
    if (!is_currency(record->currency))
        return error_set(error, STATUS_INVALID, "currency: must be three capitals");
    if (record->currency_exponent > CURRENCY_EXPONENT_MAX)
        return error_set(error, STATUS_INVALID, "currency: its exponent must be at most %d",
                         CURRENCY_EXPONENT_MAX);
    return STATUS_OK;
}

void customer_record_free(struct customer_record *record)
{
    memory_free(record->cidrs);
    record->cidrs = NULL;
    record->cidr_count = 0;
}

void cidr_list_append(struct buffer *buffer, const struct cidr *cidrs, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char text[CIDR_TEXT_SIZE];
        cidr_format(&cidrs[i], text);
        if (i > 0)
            buffer_append_char(buffer, ' ');
        buffer_append_string(buffer, text);
    }
}

bool cidr_list_read(struct text text, struct cidr *cidrs, size_t room, size_t *count)
{
    size_t found = 0;
    struct text rest = text;
    while (rest.size > 0) {
        struct text one = text_cut(&rest, ' ');
        if (found == room || cidr_parse(one, &cidrs[found], NULL) != STATUS_OK)
            return false;
        found++;
        if (rest.at != NULL && rest.size == 0) /* a space at the end */
            return false;
    }
    *count = found;
    return true;
}
