/* GET /account: the customer as the operator has it, and its keys. */
#include <string.h>

#include "account/call.h"
#include "operator/customers.h"
#include "operator/keys.h"

static void write_fields(struct json_writer *json, const struct resource *resource,
                         const char *const *names, const void *record)
{
    for (; *names != NULL; names++) {
        const struct field *field = field_find(resource->fields, *names);
        (void)field->type->write(field, record, &(struct field_output){.json = json});
    }
}

struct keys {
    struct json_writer *json;
    int64_t now_ms;
};

static bool write_key(void *context, const void *record)
{
    static const char *const before[] = {"prefix", "label", NULL};
    static const char *const after[] = {"cidrs", "created_at", "expires_at", "last_used_at", NULL};
    const struct keys *keys = context;
    const struct key_record *key = record;
    if (!key_is_live(key, keys->now_ms))
        return true;
    json_object(keys->json, NULL);
    write_fields(keys->json, &key_resource, before, key);
    key_areas_write(keys->json, "areas", key->areas);
    write_fields(keys->json, &key_resource, after, key);
    json_end(keys->json);
    return true;
}

static enum status show(struct account_call *call, struct error *error)
{
    static const char *const names[] = {"name", "sports", "rate", "casino", "cidrs", NULL};
    struct customer_record customer;
    struct json_writer json = {.out = &call->answer};
    struct keys keys = {&json, call->now_ms};
    enum status status =
        platform_get(call->store, &customer_table, call->caller.customer_id, &customer, error);
    if (status != STATUS_OK)
        return status;
    json_object(&json, NULL);
    write_fields(&json, &customer_resource, names, &customer);
    json_unsigned_or_null(&json, "connections_max",
                          client_limits_get(call->limits, CONNECTIONS_PER_CUSTOMER));
    json_unsigned_or_null(&json, "waiting_max",
                          client_limits_get(call->limits, WAITING_PER_CUSTOMER));
    json_array(&json, "keys");
    status =
        platform_list(call->store, &key_table, call->caller.customer_id, write_key, &keys, error);
    json_end(&json);
    json_end(&json);
    return status;
}

const struct account_act account_show = {.name = "account", .area = KEY_ACCOUNT, .handle = show};
