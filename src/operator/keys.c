/* API keys as an operator handles them; see keys.h. */
#include "operator/keys.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "operator/customers.h"

#define EXPIRES_MAX_MS 253402300799999 /* the end of the year 9999 */

/* ---- expiry ---------------------------------------------------------------------------------- */

/* 0: there is no such unit. */
static uint64_t seconds_in(char unit)
{
    static const char units[] = "smhdw";
    static const uint32_t seconds[] = {1, 60, 3600, 86400, 7 * 86400};
    const char *at = unit == '\0' ? NULL : strchr(units, unit);
    return at == NULL ? 0 : seconds[at - units];
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

/* ---- the fields ------------------------------------------------------------------------------ */

static enum status set_customer(const struct field *field, struct text text, void *record,
                                struct error *error)
{
    enum status status = field_set_text(field, "customer", text, record, error);
    return status == STATUS_OK ? status : resource_missing(&customer_resource, text.at, error);
}

static enum status set_label(const struct field *field, struct text text, void *record,
                             struct error *error)
{
    if (text.size >= field->room || !text_is_plain(text))
        return error_set(error, STATUS_INVALID,
                         "a label is at most %d bytes of UTF-8 without control characters",
                         KEY_LABEL_SIZE - 1);
    return field_set_text(field, "a label", text, record, error);
}

static enum status set_expiry(const struct field *field, struct text text, void *record,
                              struct error *error)
{
    const struct key_view *view = record;
    return expiry_parse(text, view->now_ms, field_value_to_set(field, record), error);
}

static bool write_prefix(const struct field *field, const void *record,
                         const struct field_output *out)
{
    buffer_append_format(out->text, "%s…", (const char *)field_value(field, record));
    return true;
}

static bool write_state(const struct field *field, const void *record,
                        const struct field_output *out)
{
    const struct key_view *view = record;
    (void)field;
    buffer_append_string(out->text, key_is_live(&view->record, view->now_ms) ? "live"
                                    : view->record.revoked_ms != 0           ? "revoked"
                                                                             : "expired");
    return true;
}

static const struct field_type prefix_type = {write_prefix, NULL};
static const struct field_type state_type = {write_state, NULL};

/* A view begins with the record. */
#define OF_RECORD(member) FIELD_OF(key_record, member)
_Static_assert(offsetof(struct key_view, record) == 0, "a view is read as its record");

static const struct field fields[] = {
    {"id", NULL, "ID", &field_text, OF_RECORD(id)},
    {"customer", NULL, NULL, &field_text, OF_RECORD(customer_id), .set = set_customer},
    {"prefix", NULL, NULL, &field_text, OF_RECORD(prefix)},
    {NULL, NULL, "KEY", &prefix_type, OF_RECORD(prefix)},
    {"label", NULL, "LABEL", &field_text, OF_RECORD(label), .words = "-", .set = set_label,
     .option = {"label", "LABEL", .add_help = "what it is for, up to 64 bytes"}},
    {.title = "STATE", .type = &state_type},
    {"created_at", NULL, "CREATED (UTC)", &field_time, OF_RECORD(created_ms)},
    {"expires_at", NULL, "EXPIRES", &field_time, OF_RECORD(expires_ms), .set = set_expiry,
     .option = {"expires", "TIME",
                .add_help = "when it ends: 2027-01-31, 2027-01-31T18:00:00Z, or 90d from now"}},
    {"last_used_at", NULL, "LAST USED", &field_time, OF_RECORD(last_used_ms)},
    {"revoked_at", NULL, "REVOKED", &field_time, OF_RECORD(revoked_ms)},
    {0},
};

/* ---- issuing, listing ------------------------------------------------------------------------ */

static void begin(void *record, int64_t now_ms)
{
    struct key_view *view = record;
    *view = (struct key_view){.record.created_ms = now_ms, .now_ms = now_ms};
    identity_generate("key_", view->record.id, sizeof view->record.id);
}

enum status keys_issue(struct platform_store *store, struct key_record *record, char key[KEY_SIZE],
                       struct error *error)
{
    struct key_record made = *record;
    char fresh[KEY_SIZE];
    key_generate(fresh);
    key_digest(text_of(fresh), made.digest);
    key_prefix(text_of(fresh), made.prefix);
    enum status status = platform_add(store, &key_table, &made, error);
    if (status == STATUS_NOT_FOUND)
        status = resource_missing(&customer_resource, made.customer_id, error);
    if (status == STATUS_OK) {
        memcpy(key, fresh, sizeof fresh);
        *record = made;
    }
    OPENSSL_cleanse(fresh, sizeof fresh);
    return status;
}

struct listing {
    record_function *see;
    void *context;
    int64_t now_ms;
};

static bool list_key(void *context, const void *record)
{
    const struct listing *listing = context;
    const struct key_view view = {*(const struct key_record *)record, listing->now_ms};
    return listing->see(listing->context, &view);
}

static enum status list(struct platform_store *store, const char *of, record_function *see,
                        void *context, struct error *error)
{
    struct listing listing = {see, context, clock_wall_ms()};
    struct customer_record owner;
    enum status status = platform_get(store, &customer_table, of, &owner, error);
    if (status != STATUS_OK)
        return status == STATUS_NOT_FOUND ? resource_missing(&customer_resource, of, error)
                                          : status;
    customer_record_free(&owner);
    return platform_list(store, &key_table, of, list_key, &listing, error);
}

const struct resource key_resource = {
    .kind = RECORD_KEY,
    .fields = fields,
    .size = sizeof(struct key_view),
    .begin = begin,
    .list = list,
};

/* ---- finding --------------------------------------------------------------------------------- */

/* What is not understood is not repeated: it may be a key with a typo. */
enum status keys_check(const char *wanted, struct error *error)
{
    struct text text = text_of(wanted);
    if (text_starts_with(text, TEXT("key_")) || key_is_well_formed(text) ||
        (text_starts_with(text, TEXT("crk_")) && text.size == KEY_PREFIX_SIZE - 1))
        return STATUS_OK;
    return error_set(error, STATUS_INVALID,
                     "that is no key: give its id (key_…), its first 8 characters (crk_…), or all "
                     "of it");
}

#define IDS_SHOWN 8

struct key_search {
    struct text wanted; /* an id or a prefix, which differ in how they begin, unless it is */
    bool whole;         /* a key, and then by its digest */
    uint8_t digest[KEY_DIGEST_SIZE];
    int64_t now_ms;
    size_t live, dead;
    struct key_record live_key, dead_key; /* the last ones seen */
    struct buffer ids;                    /* of the first live ones */
};

static bool search_key(void *context, const void *visited)
{
    const struct key_record *record = visited;
    struct key_search *search = context;
    bool found = search->whole ? CRYPTO_memcmp(search->digest, record->digest, KEY_DIGEST_SIZE) == 0
                               : text_equals(search->wanted, text_of(record->id)) ||
                                     text_equals(search->wanted, text_of(record->prefix));
    if (found && key_is_live(record, search->now_ms)) {
        search->live_key = *record;
        if (++search->live <= IDS_SHOWN)
            buffer_append_format(&search->ids, "%s%s", search->live == 1 ? "" : ", ", record->id);
    } else if (found) {
        search->dead_key = *record;
        search->dead++;
    }
    return true;
}

/* The one that was found, or why there is not one. */
static enum status choose_key(struct key_search *search, struct key_record *record,
                              struct error *error)
{
    const char *wanted = search->wanted.at;
    if (search->live > 1)
        return error_set(error, STATUS_EXISTS,
                         "%zu live keys begin with '%s'; name one by its id: %s%s", search->live,
                         wanted, buffer_string(&search->ids),
                         search->live > IDS_SHOWN ? ", …" : "");
    if (search->live == 0 && search->dead == 0)
        return search->whole
                   ? error_set(error, STATUS_NOT_FOUND, "there is no such key")
                   : error_set(error, STATUS_NOT_FOUND, "there is no key '%.*s'", 64, wanted);
    if (search->live == 0 && search->dead > 1)
        return error_set(error, STATUS_EXISTS,
                         "%zu keys begin with '%s' and none of them is live; name one by its id",
                         search->dead, wanted);
    *record = search->live == 1 ? search->live_key : search->dead_key;
    return STATUS_OK;
}

enum status keys_find(struct platform_store *store, const char *wanted, int64_t now_ms,
                      struct key_record *record, struct error *error)
{
    struct key_search search = {.wanted = text_of(wanted), .now_ms = now_ms};
    enum status status = keys_check(wanted, error);
    if (status != STATUS_OK)
        return status;
    search.whole = key_is_well_formed(search.wanted);
    if (search.whole)
        key_digest(search.wanted, search.digest);
    status = platform_list(store, &key_table, NULL, search_key, &search, error);
    if (status == STATUS_OK)
        status = choose_key(&search, record, error);
    buffer_free(&search.ids);
    return status;
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
