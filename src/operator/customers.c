/*
 * Customers as an operator handles them; see customers.h. A change is read, edited and written back
 * under the revision that was read, and done again when somebody was quicker.
 */
#include "operator/customers.h"

#include <stdlib.h>
#include <string.h>

#include "admission/key.h"
#include "base/memory.h"

#define CHANGE_TRIES 16

/* ---- editing --------------------------------------------------------------------------------- */

static enum status edit_name(struct customer_record *record, const char *name, struct error *error)
{
    struct text text = text_of(name);
    if (text.size == 0 || text.size >= sizeof record->name || !text_is_plain(text))
        return error_set(error, STATUS_INVALID,
                         "a name is 1 to %d bytes of UTF-8 without control characters",
                         CUSTOMER_NAME_SIZE - 1);
    memcpy(record->name, name, text.size + 1);
    return STATUS_OK;
}

static bool holds(const struct cidr *cidrs, size_t count, const struct cidr *wanted)
{
    for (size_t i = 0; i < count; i++)
        if (cidrs[i].prefix == wanted->prefix &&
            address_equals(&cidrs[i].network, &wanted->network))
            return true;
    return false;
}

/* Each value is a block, or several separated by commas. One that is given twice is kept once. */
static enum status edit_cidrs(struct customer_record *record,
                              const struct customer_settings *settings, struct error *error)
{
    struct cidr found[CIDRS_MAX];
    size_t count = 0;
    for (size_t i = 0; i < settings->cidr_count; i++) {
        struct text rest = text_of(settings->cidr_values[i]);
        do {
            struct cidr one;
            enum status status = cidr_parse(text_trim(text_cut(&rest, ',')), &one, error);
            if (status != STATUS_OK)
                return status;
            if (holds(found, count, &one))
                continue;
            if (count == CIDRS_MAX)
                return error_set(error, STATUS_INVALID, "a customer has at most %d CIDR blocks",
                                 CIDRS_MAX);
            found[count++] = one;
        } while (rest.at != NULL);
    }
    customer_record_free(record);
    record->cidrs = memory_copy(found, count * sizeof found[0]);
    record->cidr_count = count;
    return STATUS_OK;
}

static enum status edit(struct customer_record *record, const struct customer_settings *settings,
                        struct error *error)
{
    enum status status = STATUS_OK;
    if (settings->name != NULL)
        status = edit_name(record, settings->name, error);
    if (status == STATUS_OK && settings->sports != NULL)
        status = sport_set_parse(text_of(settings->sports), &record->sports, error);
    if (status == STATUS_OK && settings->rate != NULL)
        status = rate_parse(text_of(settings->rate), &record->rate, error);
    if (status == STATUS_OK && settings->replace_cidrs)
        status = edit_cidrs(record, settings, error);
    switch_apply(settings->casino, &record->casino);
    switch_apply(settings->enabled, &record->enabled);
    return status;
}

/* ---- the verbs ------------------------------------------------------------------------------- */

static enum status no_such_customer(const char *id, struct error *error)
{
    return error_set(error, STATUS_NOT_FOUND, "there is no customer '%.*s'", 64, id);
}

enum status customers_add(struct platform_store *store, const struct customer_settings *settings,
                          int64_t now_ms, struct customer_record *record, struct error *error)
{
    CHECK(settings->name != NULL);
    struct customer_record made = {
        .enabled = true, .usable = true, .sports = SPORT_SET_ALL, .created_ms = now_ms};
    identity_generate("cus_", made.id, sizeof made.id);
    enum status status = edit(&made, settings, error);
    if (status == STATUS_OK)
        status = platform_customer_add(store, &made, error);
    if (status != STATUS_OK) {
        customer_record_free(&made);
        return status;
    }
    *record = made;
    return STATUS_OK;
}

enum status customers_get(struct platform_store *store, const char *id,
                          struct customer_record *record, struct error *error)
{
    enum status status = platform_customer_get(store, id, record, error);
    return status == STATUS_NOT_FOUND ? no_such_customer(id, error) : status;
}

static enum status change_once(struct platform_store *store, const char *id,
                               const struct customer_settings *settings,
                               struct customer_record *record, struct error *error)
{
    struct customer_record changed;
    enum status status = customers_get(store, id, &changed, error);
    if (status != STATUS_OK)
        return status;
    bool whole = settings->name != NULL && settings->sports != NULL && settings->rate != NULL &&
                 settings->replace_cidrs;
    if (!changed.usable && !whole)
        status =
            error_set(error, STATUS_MALFORMED,
                      "the stored record of %s cannot be read, so it admits nobody; mend it by "
                      "giving all of it: customer set %s --name … --sports … --rate … --cidr …",
                      changed.id, changed.id);
    if (status == STATUS_OK)
        status = edit(&changed, settings, error);
    if (status == STATUS_OK)
        status = platform_customer_update(store, &changed, error);
    if (status != STATUS_OK) {
        customer_record_free(&changed);
        return status;
    }
    changed.usable = true;
    *record = changed;
    return STATUS_OK;
}

enum status customers_change(struct platform_store *store, const char *id,
                             const struct customer_settings *settings,
                             struct customer_record *record, struct error *error)
{
    enum status status = STATUS_EXISTS; /* somebody was quicker */
    for (int i = 0; i < CHANGE_TRIES && status == STATUS_EXISTS; i++)
        status = change_once(store, id, settings, record, error);
    return status;
}

yyjson_mut_val *customer_json(yyjson_mut_doc *doc, const struct customer_record *record,
                              size_t live_keys)
{
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    yyjson_mut_val *cidrs = yyjson_mut_arr(doc);
    for (size_t i = 0; i < record->cidr_count; i++) {
        char text[CIDR_TEXT_SIZE];
        cidr_format(&record->cidrs[i], text);
        (void)yyjson_mut_arr_add_strcpy(doc, cidrs, text);
    }
    (void)yyjson_mut_obj_add_strcpy(doc, object, "id", record->id);
    (void)yyjson_mut_obj_add_strcpy(doc, object, "name", record->name);
    (void)yyjson_mut_obj_add_bool(doc, object, "enabled", record->enabled);
    if (!record->usable)
        (void)yyjson_mut_obj_add_bool(doc, object, "usable", false);
    (void)yyjson_mut_obj_add_val(doc, object, "cidrs", cidrs);
    (void)yyjson_mut_obj_add_val(doc, object, "sports", sports_json(doc, record->sports));
    (void)yyjson_mut_obj_add_val(doc, object, "rate", rate_json(doc, &record->rate));
    (void)yyjson_mut_obj_add_bool(doc, object, "casino", record->casino);
    (void)yyjson_mut_obj_add_uint(doc, object, "keys", live_keys);
    (void)yyjson_mut_obj_add_val(doc, object, "created_at", time_json(doc, record->created_ms));
    return object;
}

/* ---- counting keys --------------------------------------------------------------------------- */

/* The owners of all live keys, sorted: a customer's count is the width of its range. */
struct key_counts {
    char (*owners)[CUSTOMER_ID_SIZE];
    size_t count;
    size_t room;
    int64_t now_ms;
};

static bool count_key(void *context, const struct key_record *record)
{
    struct key_counts *counts = context;
    if (record->revoked_ms != 0 ||
        (record->expires_ms != 0 && record->expires_ms <= counts->now_ms))
        return true;
    if (counts->count == counts->room) {
        counts->room = counts->room == 0 ? 64 : counts->room * 2;
        counts->owners = memory_resize(counts->owners, counts->room * sizeof counts->owners[0]);
    }
    memcpy(counts->owners[counts->count++], record->customer_id, CUSTOMER_ID_SIZE);
    return true;
}

static int compare_owners(const void *a, const void *b)
{
    return strcmp(a, b);
}

enum status key_counts_create(struct key_counts **counts, struct platform_store *store,
                              const char *customer_id, int64_t now_ms, struct error *error)
{
    struct key_counts *made = memory_alloc_zeroed(1, sizeof *made);
    made->now_ms = now_ms;
    enum status status = platform_key_list(store, customer_id, count_key, made, error);
    if (status != STATUS_OK) {
        key_counts_destroy(&made);
        return status;
    }
    if (made->count > 0)
        qsort(made->owners, made->count, sizeof made->owners[0], compare_owners);
    *counts = made;
    return STATUS_OK;
}

/* The number of owners that sort before `id`, or (with `also_equal`) not behind it. */
static size_t rank(const struct key_counts *counts, const char *id, bool also_equal)
{
    size_t low = 0;
    size_t high = counts->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(counts->owners[middle], id);
        if (order < 0 || (also_equal && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t key_counts_of(const struct key_counts *counts, const char *customer_id)
{
    return rank(counts, customer_id, true) - rank(counts, customer_id, false);
}

void key_counts_destroy(struct key_counts **counts)
{
    if (*counts != NULL)
        memory_free((*counts)->owners);
    memory_free(*counts);
    *counts = NULL;
}
