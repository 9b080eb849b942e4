/* API keys as an operator handles them; see keys.h. */
#include "operator/keys.h"

#include <openssl/crypto.h>

#include "operator/customers.h"
#include "operator/option_texts.h"

/* ---- the fields ------------------------------------------------------------------------------ */

static enum status set_customer(const struct field *field, struct text text, void *record,
                                struct error *error)
{
    enum status status = field_set_text(field, text, record, error);
    return status == STATUS_OK ? status : resource_missing(&customer_resource, text.at, error);
}

static bool write_prefix(const struct field *field, const void *record,
                         const struct field_output *out)
{
    buffer_append_format(out->text, "%s…", (const char *)field_value(field, record));
    return true;
}

/* null: the areas of a key without the setting. */
static bool write_areas(const struct field *field, const void *record,
                        const struct field_output *out)
{
    key_areas areas = *(const key_areas *)field_value(field, record);
    bool usual = areas == 0 || (areas == KEY_AREAS_USUAL && strcmp(field->name, "only") == 0);
    if (out->json != NULL && usual)
        json_null(out->json, field->name);
    else if (out->json != NULL)
        json_set(out->json, field->name, &key_area_names, areas);
    else if (usual)
        buffer_append_string(out->text, "-");
    else
        buffer_append_set(out->text, &key_area_names, areas);
    return true;
}

static enum status set_areas(const struct field *field, struct text text, void *record,
                             struct error *error)
{
    return key_areas_read(text, field_value_to_set(field, record))
               ? STATUS_OK
               : error_invalid(error,
                               "%s: must be sports, casino, account or manage, separated by commas",
                               field->name);
}

static const struct field_type areas_type = {write_areas, set_areas};
static const struct field_type prefix_type = {write_prefix, NULL};

#define OF_RECORD(member) FIELD_OF(key_record, member)

static const struct field fields[] = {
    {"id", NULL, "ID", &field_text, OF_RECORD(id)},
    {"customer", NULL, "CUSTOMER", &field_text, OF_RECORD(customer_id), .set = set_customer},
    {"prefix", NULL, NULL, &field_text, OF_RECORD(prefix)},
    {NULL, NULL, "KEY", &prefix_type, OF_RECORD(prefix)},
    {"label", NULL, "LABEL", &field_text, OF_RECORD(label), .words = "-",
     .option = OPTION_KEY_LABEL},
    {NULL, NULL, "STATE", &field_live, OF_RECORD(expires_ms),
     .beside = offsetof(struct key_record, revoked_ms)},
    {"only", NULL, "ONLY", &areas_type, OF_RECORD(areas), .option = OPTION_KEY_ONLY},
    {"may_issue", NULL, "MAY ISSUE", &areas_type, OF_RECORD(may_issue),
     .option = OPTION_KEY_MAY_ISSUE},
    {"made_by", NULL, NULL, &field_text_or_null, OF_RECORD(maker)},
    {"cidrs", NULL, "CIDRS", &field_cidrs, OF_CIDRS(key_record), .words = "-",
     .option = OPTION_KEY_CIDR},
    {"created_at", NULL, "CREATED (UTC)", &field_time, OF_RECORD(created_ms)},
    {"expires_at", NULL, "EXPIRES", &field_time, OF_RECORD(expires_ms), .set = field_set_expiry,
     .beside = offsetof(struct key_record, created_ms), .option = OPTION_KEY_EXPIRES},
    {"last_used_at", NULL, "LAST USED", &field_time, OF_RECORD(last_used_ms)},
    {"revoked_at", NULL, "REVOKED", &field_time, OF_RECORD(revoked_ms)},
    {0},
};

/* ---- issuing, listing ------------------------------------------------------------------------ */

static void begin(void *record, int64_t now_ms)
{
    struct key_record *key = record;
    key->created_ms = now_ms;
    key->areas = KEY_AREAS_USUAL;
    record_id_generate("key_", key->id, sizeof key->id);
}

enum status keys_issue(struct platform_store *store, struct key_record *record, char key[KEY_SIZE],
                       struct error *error)
{
    struct key_record made = *record;
    char fresh[KEY_SIZE];
    key_generate(fresh);
    key_digest(text_of(fresh), made.digest);
    key_prefix(text_of(fresh), made.prefix);
    bool by_key = made.maker[0] != '\0';
    enum status status = by_key ? platform_key_make(store, &made, made.created_ms, error)
                                : platform_add(store, &key_table, &made, error);
    if (status == STATUS_NOT_FOUND && !by_key)
        status = resource_missing(&customer_resource, made.customer_id, error);
    if (status == STATUS_OK) {
        memcpy(key, fresh, sizeof fresh);
        *record = made;
    }
    explicit_bzero(fresh, sizeof fresh);
    return status;
}

static enum status list(struct platform_store *store, const char *of, record_function *see,
                        void *context, struct error *error)
{
    struct customer_view owner;
    enum status status = resource_get(&customer_resource, store, of, &owner, error);
    return status == STATUS_OK ? platform_list(store, &key_table, of, see, context, error) : status;
}

const struct resource key_resource = {
    RESOURCE(RECORD_KEY, key_record, fields),
    .makes_id = true,
    .begin = begin,
    .list = list,
};

/* ---- finding --------------------------------------------------------------------------------- */

/* The refusal does not repeat the word: it may be a key with a typo. */
enum status keys_check(const char *wanted, struct error *error)
{
    struct text text = text_of(wanted);
    if (text_starts_with(text, TEXT("key_")) || key_is_well_formed(text) ||
        (text_starts_with(text, TEXT("crk_")) && text.size == KEY_PREFIX_SIZE - 1))
        return STATUS_OK;
    return error_invalid(
        error, "that is no key: give its id (key_…), its first 8 characters (crk_…), or all "
               "of it");
}

struct key_search {
    struct text wanted; /* an id or a prefix, which differ in how they begin, unless it is */
    bool whole;         /* a key, and then by its digest */
    uint8_t digest[KEY_DIGEST_SIZE];
    record_function *see; /* gets those that are found */
    void *context;
};

static bool search_key(void *context, const void *visited)
{
    const struct key_record *record = visited;
    const struct key_search *search = context;
    bool found = search->whole ? CRYPTO_memcmp(search->digest, record->digest, KEY_DIGEST_SIZE) == 0
                               : text_equals(search->wanted, text_of(record->id)) ||
                                     text_equals(search->wanted, text_of(record->prefix));
    return !found || search->see(search->context, record);
}

static enum status list_wanted(struct platform_store *store, const char *wanted,
                               record_function *see, void *context, struct error *error)
{
    struct key_search search = {.wanted = text_of(wanted), .see = see, .context = context};
    enum status status = keys_check(wanted, error);
    if (status != STATUS_OK)
        return status;
    search.whole = key_is_well_formed(search.wanted);
    if (search.whole)
        key_digest(search.wanted, search.digest);
    return platform_list(store, &key_table, NULL, search_key, &search, error);
}

#define IDS_SHOWN 8

struct found_keys {
    int64_t now_ms;
    size_t live, dead;
    struct key_record live_key, dead_key; /* the last ones seen */
    struct buffer ids;                    /* of the first live ones */
};

static bool note_key(void *context, const void *visited)
{
    const struct key_record *record = visited;
    struct found_keys *found = context;
    if (!key_is_live(record, found->now_ms)) {
        found->dead_key = *record;
        found->dead++;
        return true;
    }
    found->live_key = *record;
    if (++found->live <= IDS_SHOWN)
        buffer_append_format(&found->ids, "%s%s", found->live == 1 ? "" : ", ", record->id);
    return true;
}

/* The one that was found, or why there is not one. */
static enum status choose_key(struct found_keys *found, const char *wanted,
                              struct key_record *record, struct error *error)
{
    if (found->live > 1)
        return error_set(error, STATUS_EXISTS,
                         "%zu live keys begin with '%s'; name one by its id: %s%s", found->live,
                         wanted, buffer_string(&found->ids), found->live > IDS_SHOWN ? ", …" : "");
    if (found->live == 0 && found->dead == 0)
        return key_is_well_formed(text_of(wanted))
                   ? error_not_found(error, "there is no such key")
                   : error_not_found(error, "there is no key '%.*s'", 64, wanted);
    if (found->live == 0 && found->dead > 1)
        return error_set(error, STATUS_EXISTS,
                         "%zu keys begin with '%s' and none of them is live; name one by its id",
                         found->dead, wanted);
    *record = found->live == 1 ? found->live_key : found->dead_key;
    return STATUS_OK;
}

enum status keys_find(struct platform_store *store, const char *wanted, int64_t now_ms,
                      struct key_record *record, struct error *error)
{
    struct found_keys found = {.now_ms = now_ms};
    enum status status = list_wanted(store, wanted, note_key, &found, error);
    if (status == STATUS_OK)
        status = choose_key(&found, wanted, record, error);
    buffer_free(&found.ids);
    return status;
}

const struct resource found_key_resource = {RESOURCE(RECORD_KEY, key_record, fields),
                                            .list = list_wanted};

enum status keys_revoke(struct platform_store *store, const char *wanted, int64_t now_ms,
                        struct key_record *record, struct error *error)
{
    struct key_record found = {0};
    enum status status = keys_find(store, wanted, now_ms, &found, error);
    if (status == STATUS_OK && found.revoked_ms == 0) {
        status = platform_key_revoke(store, found.id, now_ms, error);
        found.revoked_ms = now_ms;
    }
    if (status == STATUS_OK)
        *record = found;
    return status;
}
