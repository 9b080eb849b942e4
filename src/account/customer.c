/* GET /account is the customer as the operator has it, and its keys; POST and DELETE of
 * /account/keys. */
#include "account/call.h"
#include "base/json_text.h"
#include "operator/customers.h"
#include "operator/keys.h"

void account_write_fields(struct json_writer *json, const struct resource *resource,
                          const char *const *names, const void *record)
{
    for (; *names != NULL; names++) {
        const struct field *field = field_find(resource->fields, *names);
        (void)field->type->write(field, record, &(struct field_output){.json = json});
    }
}

/* The members of a key; `whole`: as it is shown once, or NULL. */
static void write_key(struct json_writer *json, const struct key_record *key, const char *whole)
{
    static const char *const before[] = {"prefix", "label", NULL};
    static const char *const after[] = {"cidrs", "created_at", "expires_at", "last_used_at", NULL};
    if (whole != NULL)
        json_string(json, "key", whole);
    account_write_fields(json, &key_resource, before, key);
    json_set(json, "areas", &key_area_names, key->areas);
    account_write_fields(json, &key_resource, after, key);
}

static bool list_key(void *context, const void *record)
{
    struct account_call *call = context;
    if (!key_is_live(record, call->now_ms))
        return true;
    json_object(&call->json, NULL);
    write_key(&call->json, record, NULL);
    json_end(&call->json);
    return true;
}

static enum status show(struct account_call *call, struct error *error)
{
    static const char *const names[] = {"name", "sports", "rate", "casino", "cidrs", NULL};
    struct customer_record customer;
    struct json_writer *json = &call->json;
    enum status status =
        platform_get(call->store, &customer_table, call->caller.customer_id, &customer, error);
    if (status != STATUS_OK)
        return status;
    account_write_fields(json, &customer_resource, names, &customer);
    json_unsigned_or_null(json, "connections_max",
                          client_limits_get(call->limits, CONNECTIONS_PER_CUSTOMER));
    json_unsigned_or_null(json, "waiting_max",
                          client_limits_get(call->limits, WAITING_PER_CUSTOMER));
    json_array(json, "keys");
    status =
        platform_list(call->store, &key_table, call->caller.customer_id, list_key, call, error);
    json_end(json);
    return status;
}

const struct account_act account_show = {.name = "account", .area = KEY_ACCOUNT, .handle = show};

/* ---- rotation -------------------------------------------------------------------------------- */

/* ["sports"]: names, none of them more than once. */
static bool read_areas(struct text value, void *out)
{
    struct text item;
    key_areas *areas = out;
    if (json_text_kind(value) != JSON_TEXT_ARRAY)
        return false;
    struct json_text_cursor cursor = json_text_open(value);
    while (json_text_next_element(&cursor, &item)) {
        unsigned area;
        if (!strict_json_name(item, &key_area_names, &area) || (*areas & 1U << area) != 0)
            return false;
        *areas |= (key_areas)(1U << area);
    }
    return *areas != 0;
}

static const struct strict_json_field fields[] = {
    ACCOUNT_MEMBER(only, true, NULL, read_areas,
                   "must be a list of areas that the operator lets this key issue"),
    ACCOUNT_MEMBER(label, false, NULL, NULL, "must be 1 to 64 bytes of text"),
    ACCOUNT_MEMBER(expires_at, false, NULL, NULL, ACCOUNT_AHEAD),
};
static const struct strict_json_form form = {fields, sizeof fields / sizeof fields[0], NULL};

/* Finds a live key of the customer by the prefix that was asked for, or the caller's own by its
 * digest. */
struct search {
    const struct account_call *call;
    struct key_record found;
    size_t count;
};

static bool search_key(void *context, const void *record)
{
    struct search *search = context;
    const struct key_record *key = record;
    const struct account_call *call = search->call;
    bool wanted = call->asked.prefix[0] != '\0'
                      ? strcmp(key->prefix, call->asked.prefix) == 0
                      : memcmp(key->digest, call->caller.key_digest, sizeof key->digest) == 0;
    if (wanted && key_is_live(key, call->now_ms)) {
        search->found = *key;
        search->count++;
    }
    return true;
}

static enum status find_key(struct search *search, struct error *error)
{
    return platform_list(search->call->store, &key_table, search->call->caller.customer_id,
                         search_key, search, error);
}

/* Gives a new key what its maker lets it have. */
static enum status fill_key(const struct account_call *call, const struct key_record *maker,
                            struct key_record *key, struct error *error)
{
    enum status status =
        account_ahead(call, "expires_at", call->asked.expires_at, &key->expires_ms, error);
    if (status != STATUS_OK)
        return status;
    if ((call->asked.only & ~maker->may_issue) != 0)
        return error_invalid(error, "only: %s", fields[0].rule);
    if (key->expires_ms == 0)
        key->expires_ms = maker->expires_ms;
    if (maker->expires_ms != 0 && key->expires_ms > maker->expires_ms)
        return error_invalid(error, "expires_at: must not be after that of the key that makes it");
    memcpy(key->customer_id, maker->customer_id, sizeof key->customer_id);
    memcpy(key->maker, maker->id, sizeof key->maker);
    memcpy(key->label, call->asked.label, sizeof key->label);
    memcpy(key->cidrs, maker->cidrs, sizeof key->cidrs);
    key->cidr_count = maker->cidr_count;
    key->areas = call->asked.only;
    return STATUS_OK;
}

static enum status make_key(struct account_call *call, struct error *error)
{
    struct search search = {.call = call};
    struct key_record key = {.id = ""};
    char whole[KEY_SIZE] = "";
    enum status status = find_key(&search, error);
    if (status != STATUS_OK)
        return status;
    if (search.count == 0) /* it has ended since it was admitted */
        return account_refuse(call, &error_area_not_allowed, error);
    key_resource.begin(&key, call->now_ms);
    status = fill_key(call, &search.found, &key, error);
    if (status == STATUS_OK)
        status = keys_issue(call->store, &key, whole, error);
    if (status == STATUS_FULL)
        return account_refuse(call, &error_too_many_keys, error);
    if (status == STATUS_OK) {
        call->status = 201;
        write_key(&call->json, &key, whole);
    }
    explicit_bzero(whole, sizeof whole);
    return status;
}

static enum status revoke_key(struct account_call *call, struct error *error)
{
    struct search search = {.call = call};
    if (strlen(call->asked.prefix) != KEY_PREFIX_SIZE - 1)
        return error_invalid(error, "prefix: %s", account_prefix.rule);
    enum status status = find_key(&search, error);
    if (status == STATUS_OK && search.count != 1)
        return account_refuse(call, search.count == 0 ? &error_key_not_found : &error_key_ambiguous,
                              error);
    if (status == STATUS_OK)
        status = platform_key_revoke(call->store, search.found.id, call->now_ms, error);
    if (status == STATUS_OK)
        write_key(&call->json, &search.found, NULL);
    return status;
}

static const struct account_act revoking = {.name = "keys",
                                            .area = KEY_MANAGE,
                                            .handle = revoke_key,
                                            .parameters = {&account_prefix},
                                            .required = &account_prefix};
const struct account_act account_key_make = {.name = "keys",
                                             .area = KEY_MANAGE,
                                             .handle = make_key,
                                             .missing = &error_area_not_allowed,
                                             .form = &form,
                                             .on_delete = &revoking};
