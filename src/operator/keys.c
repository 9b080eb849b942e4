/* API keys as an operator handles them; see keys.h. */
#include "operator/keys.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"

#define EXPIRES_MAX_MS 253402300799999 /* the end of the year 9999 */

/* ---- expiry ---------------------------------------------------------------------------------- */

static uint64_t seconds_in(char unit)
{
    switch (unit) {
    case 's':
        return 1;
    case 'm':
        return 60;
    case 'h':
        return 3600;
    case 'd':
        return 86400;
    case 'w':
        return 7 * 86400;
    default:
        return 0;
    }
}

/* "90d" into milliseconds from now. */
static bool parse_duration(struct text text, int64_t now_ms, int64_t *time_ms)
{
    uint64_t number = 0;
    if (text.size < 2)
        return false;
    uint64_t unit = seconds_in(text.at[text.size - 1]);
    struct text digits = {text.at, text.size - 1};
    if (unit == 0 || text_to_u64(digits, EXPIRES_MAX_MS / 1000 / unit, &number) != STATUS_OK)
        return false;
    *time_ms = now_ms + (int64_t)(number * unit * 1000);
    return true;
}

enum status expiry_parse(struct text text, int64_t now_ms, int64_t *expires_ms, struct error *error)
{
    int64_t time_ms = 0;
    int shown = (int)(text.size < 64 ? text.size : 64);
    if (!parse_duration(text, now_ms, &time_ms) && clock_parse_rfc3339(text, &time_ms) != STATUS_OK)
        return error_set(error, STATUS_INVALID,
                         "'%.*s' is not a time; write 2027-01-31, 2027-01-31T18:00:00Z, or a time "
                         "from now such as 90d, 12h, 30m",
                         shown, shown > 0 ? text.at : "");
    if (time_ms <= now_ms || time_ms > EXPIRES_MAX_MS)
        return error_set(error, STATUS_INVALID, "'%.*s' is not in the future%s", shown, text.at,
                         time_ms > now_ms ? " of this calendar" : "");
    *expires_ms = time_ms;
    return STATUS_OK;
}

/* ---- issuing --------------------------------------------------------------------------------- */

enum status keys_issue(struct platform_store *store, const struct key_settings *settings,
                       int64_t now_ms, char key[KEY_SIZE], struct key_record *record,
                       struct error *error)
{
    struct key_record made = {.created_ms = now_ms};
    struct text label = text_of(settings->label);
    size_t id_size = strlen(settings->customer_id);
    if (label.size >= sizeof made.label || !text_is_plain(label))
        return error_set(error, STATUS_INVALID,
                         "a label is at most %d bytes of UTF-8 without control characters",
                         KEY_LABEL_SIZE - 1);
    if (settings->expires != NULL) {
        enum status status =
            expiry_parse(text_of(settings->expires), now_ms, &made.expires_ms, error);
        if (status != STATUS_OK)
            return status;
    }
    struct customer_record owner;
    enum status status = id_size < sizeof made.customer_id
                             ? platform_customer_get(store, settings->customer_id, &owner, error)
                             : STATUS_NOT_FOUND;
    if (status == STATUS_NOT_FOUND)
        return error_set(error, STATUS_NOT_FOUND, "there is no customer '%.*s'", 64,
                         settings->customer_id);
    if (status != STATUS_OK)
        return status;
    customer_record_free(&owner);

    char fresh[KEY_SIZE];
    key_generate(fresh);
    identity_generate("key_", made.id, sizeof made.id);
    memcpy(made.customer_id, settings->customer_id, id_size + 1);
    if (label.size > 0)
        memcpy(made.label, label.at, label.size);
    key_digest(text_of(fresh), made.digest);
    key_prefix(text_of(fresh), made.prefix);
    status = platform_key_add(store, &made, error);
    if (status == STATUS_OK) {
        memcpy(key, fresh, sizeof fresh);
        *record = made;
    }
    OPENSSL_cleanse(fresh, sizeof fresh);
    return status;
}

/* ---- finding --------------------------------------------------------------------------------- */

bool key_is_live(const struct key_record *record, int64_t now_ms)
{
    return record->revoked_ms == 0 && (record->expires_ms == 0 || record->expires_ms > now_ms);
}

enum key_form { KEY_FORM_ID, KEY_FORM_WHOLE, KEY_FORM_PREFIX, KEY_FORM_NONE };

static enum key_form form_of(struct text text)
{
    if (text_starts_with(text, TEXT("key_")))
        return KEY_FORM_ID;
    if (key_is_well_formed(text))
        return KEY_FORM_WHOLE;
    if (text_starts_with(text, TEXT("crk_")) && text.size == KEY_PREFIX_SIZE - 1)
        return KEY_FORM_PREFIX;
    return KEY_FORM_NONE;
}

#define IDS_SHOWN 8

struct key_search {
    enum key_form form;
    struct text wanted;
    uint8_t digest[KEY_DIGEST_SIZE];
    int64_t now_ms;
    size_t live;
    size_t dead;
    struct key_record live_key; /* the last one seen */
    struct key_record dead_key;
    char ids[IDS_SHOWN][KEY_ID_SIZE]; /* of the first live ones */
};

static bool matches(const struct key_search *search, const struct key_record *record)
{
    switch (search->form) {
    case KEY_FORM_ID:
        return text_equals(search->wanted, text_of(record->id));
    case KEY_FORM_WHOLE:
        return CRYPTO_memcmp(search->digest, record->digest, KEY_DIGEST_SIZE) == 0;
    default:
        return text_equals(search->wanted, text_of(record->prefix));
    }
}

static bool search_key(void *context, const struct key_record *record)
{
    struct key_search *search = context;
    if (!matches(search, record))
        return true;
    if (!key_is_live(record, search->now_ms)) {
        search->dead_key = *record;
        search->dead++;
        return true;
    }
    if (search->live < IDS_SHOWN)
        memcpy(search->ids[search->live], record->id, sizeof record->id);
    search->live_key = *record;
    search->live++;
    return true;
}

static enum status refuse_ambiguous(const struct key_search *search, struct error *error)
{
    struct buffer ids = {0};
    for (size_t i = 0; i < search->live && i < IDS_SHOWN; i++)
        buffer_append_format(&ids, "%s%s", i == 0 ? "" : ", ", search->ids[i]);
    if (search->live > IDS_SHOWN)
        buffer_append_string(&ids, ", …");
    enum status status =
        error_set(error, STATUS_EXISTS, "%zu live keys begin with '%.*s'; name one by its id: %s",
                  search->live, (int)search->wanted.size, search->wanted.at, buffer_string(&ids));
    buffer_free(&ids);
    return status;
}

enum status keys_find(struct platform_store *store, const char *wanted, int64_t now_ms,
                      struct key_record *record, struct error *error)
{
    struct key_search search = {.wanted = text_of(wanted), .now_ms = now_ms};
    search.form = form_of(search.wanted);
    /* What is not understood is not repeated: it may be a key with a typo. */
    if (search.form == KEY_FORM_NONE)
        return error_set(error, STATUS_INVALID,
                         "that is no key: give its id (key_…), its first 8 characters (crk_…), or "
                         "all of it");
    if (search.form == KEY_FORM_WHOLE)
        key_digest(search.wanted, search.digest);
    enum status status = platform_key_list(store, NULL, search_key, &search, error);
    if (status != STATUS_OK)
        return status;
    if (search.live > 1)
        return refuse_ambiguous(&search, error);
    if (search.live == 0 && search.dead == 0)
        return search.form == KEY_FORM_WHOLE
                   ? error_set(error, STATUS_NOT_FOUND, "there is no such key")
                   : error_set(error, STATUS_NOT_FOUND, "there is no key '%.*s'", 64, wanted);
    if (search.live == 0 && search.dead > 1)
        return error_set(error, STATUS_EXISTS,
                         "%zu keys begin with '%s' and none of them is live; name one by its id",
                         search.dead, wanted);
    *record = search.live == 1 ? search.live_key : search.dead_key;
    return STATUS_OK;
}

enum status keys_revoke(struct platform_store *store, const char *wanted, int64_t now_ms,
                        struct key_record *record, bool *before, struct error *error)
{
    struct key_record found = {0};
    enum status status = keys_find(store, wanted, now_ms, &found, error);
    if (status != STATUS_OK)
        return status;
    bool was = found.revoked_ms != 0;
    if (!was) {
        status = platform_key_revoke(store, found.id, now_ms, error);
        if (status != STATUS_OK)
            return status;
        found.revoked_ms = now_ms;
    }
    *before = was;
    *record = found;
    return STATUS_OK;
}

yyjson_mut_val *key_json(yyjson_mut_doc *doc, const struct key_record *record)
{
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "id", record->id);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "customer", record->customer_id);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "prefix", record->prefix);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "label", record->label);
    (void)yyjson_mut_obj_add_val(doc, object, "created_at", time_json(doc, record->created_ms));
    (void)yyjson_mut_obj_add_val(doc, object, "expires_at", time_json(doc, record->expires_ms));
    (void)yyjson_mut_obj_add_val(doc, object, "last_used_at", time_json(doc, record->last_used_ms));
    (void)yyjson_mut_obj_add_val(doc, object, "revoked_at", time_json(doc, record->revoked_ms));
    return object;
}
