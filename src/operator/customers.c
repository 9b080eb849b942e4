/* Customers as an operator handles them; see customers.h. */
#include "operator/customers.h"

#include <search.h>

#include "base/clock.h"
#include "base/memory.h"
#include "operator/option_texts.h"
#include "records/customer.h"

/* ---- the fields ------------------------------------------------------------------------------ */

/* A view begins with the record. */
#define OF_RECORD(member) FIELD_OF(customer_record, member)
_Static_assert(offsetof(struct customer_view, record) == 0, "a view is read as its record");

static const struct field fields[] = {
    {"id", "id", "ID", &field_text, OF_RECORD(id)},
    {"name", "name", "NAME", &field_text, OF_RECORD(name), .least = 1,
     .option = OPTION_CUSTOMER_NAME},
    {"enabled", "enabled", "ENABLED", &field_enabled, OF_ENABLED(customer_record)},
    {"usable", "usable", NULL, &field_usable, OF_RECORD(usable),
     .words = "no: the stored record cannot be read, so it admits no one"},
    {"cidrs", "cidrs", "CIDRS", &field_cidrs, OF_CIDRS(customer_record),
     .words = "none: denied everywhere", .option = OPTION_CUSTOMER_CIDR},
    {"added_cidrs", NULL, NULL, &field_cidrs_added, OF_CIDRS(customer_record),
     .option = OPTION_CUSTOMER_ADD_CIDR},
    {"removed_cidrs", NULL, NULL, &field_cidrs_removed, OF_CIDRS(customer_record),
     .option = OPTION_CUSTOMER_REMOVE_CIDR},
    {"sports", "sports", "SPORTS", &field_sports, OF_RECORD(sports),
     .option = OPTION_CUSTOMER_SPORTS},
    {"rate", "rate", "RATE", &field_rate, OF_RECORD(rate), .option = OPTION_CUSTOMER_RATE},
    {"casino", "casino", "CASINO", &field_yes_no, OF_RECORD(casino),
     .option = OPTION_CUSTOMER_CASINO},
    {"sandbox", "sandbox", NULL, &field_yes_no, OF_RECORD(sandbox), .set = field_set_on_off,
     .option = OPTION_CUSTOMER_SANDBOX},
    {"keys", "keys", "KEYS", &field_count, FIELD_OF(customer_view, live_keys)},
    {"created_at", "created", "CREATED (UTC)", &field_time, OF_RECORD(created_ms)},
    {0},
};

/* ---- counting keys --------------------------------------------------------------------------- */

/* A customer with live keys. */
struct owner {
    char id[CUSTOMER_ID_SIZE]; /* first: an owner is found by it */
    size_t live_keys;
};

struct key_counts {
    void *owners; /* of tsearch, by the id */
    int64_t now_ms;
};

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool count_key(void *context, const void *visited)
{
    const struct key_record *record = visited;
    struct key_counts *counts = context;
    if (!key_is_live(record, counts->now_ms))
        return true;
    struct owner *made = memory_alloc_zeroed(1, sizeof *made);
    memcpy(made->id, record->customer_id, sizeof made->id);
    struct owner *const *found = tsearch(made, &counts->owners, compare_ids);
    CHECK(found != NULL);
    (*found)->live_keys++;
    if (*found != made)
        memory_free(made);
    return true;
}

static size_t count_of(const struct key_counts *counts, const char *customer_id)
{
    struct owner *const *found = tfind(customer_id, &counts->owners, compare_ids);
    return found == NULL ? 0 : (*found)->live_keys;
}

/* ---- the store ------------------------------------------------------------------------------- */

static void begin(void *record, int64_t now_ms)
{
    struct customer_record *customer = record;
    *customer = (struct customer_record){
        .enabled = true, .usable = true, .sports = SPORT_SET_ALL, .created_ms = now_ms};
    record_id_generate("cus_", customer->id, sizeof customer->id);
}

static const char *const whole[] = {"name", "sports", "rate", "cidrs", NULL};

struct name_search {
    const char *name;
    char *id;
    size_t count;
};

static bool match_name(void *context, const void *visited)
{
    const struct customer_record *record = visited;
    struct name_search *search = context;
    if (strcmp(record->name, search->name) == 0 && search->count++ == 0)
        memcpy(search->id, record->id, sizeof record->id);
    return search->count < 2;
}

enum status customers_find_name(struct platform_store *store, const char *name,
                                char id[CUSTOMER_ID_SIZE], bool *alone, struct error *error)
{
    struct name_search search = {.name = name, .id = id};
    id[0] = '\0';
    enum status status = platform_list(store, &customer_table, NULL, match_name, &search, error);
    *alone = search.count == 1;
    return status;
}

/* A name given for an id is answered with the id, if one customer alone has the name. */
static enum status missing(struct platform_store *store, const char *id, struct error *error)
{
    char found[CUSTOMER_ID_SIZE];
    bool alone;
    enum status status = customers_find_name(store, id, found, &alone, error);
    if (status != STATUS_OK)
        return status;
    return alone ? error_not_found(error, "there is no customer '%s'; give its id: %s", id, found)
                 : resource_missing(&customer_resource, id, error);
}

static enum status get(struct platform_store *store, const char *id, void *record,
                       struct error *error)
{
    struct customer_view *view = record;
    struct customer_record found;
    struct key_counts counts = {.now_ms = clock_wall_ms()};
    enum status status = platform_get(store, &customer_table, id, &found, error);
    if (status != STATUS_OK)
        return status == STATUS_NOT_FOUND ? missing(store, id, error) : status;
    status = platform_list(store, &key_table, found.id, count_key, &counts, error);
    if (status == STATUS_OK)
        *view = (struct customer_view){found, count_of(&counts, found.id)};
    tdestroy(counts.owners, memory_free);
    return status;
}

struct listing {
    struct key_counts counts;
    record_function *see;
    void *context;
};

static bool list_customer(void *context, const void *visited)
{
    const struct customer_record *record = visited;
    const struct listing *listing = context;
    const struct customer_view view = {*record, count_of(&listing->counts, record->id)};
    return listing->see(listing->context, &view);
}

static enum status list(struct platform_store *store, const char *of, record_function *see,
                        void *context, struct error *error)
{
    struct listing listing = {
        .counts = {.now_ms = clock_wall_ms()}, .see = see, .context = context};
    (void)of;
    enum status status = platform_list(store, &key_table, NULL, count_key, &listing.counts, error);
    if (status == STATUS_OK)
        status = platform_list(store, &customer_table, NULL, list_customer, &listing, error);
    tdestroy(listing.counts.owners, memory_free);
    return status;
}

const struct resource customer_resource = {
    RESOURCE(RECORD_CUSTOMER, customer_view, fields),
    .makes_id = true,
    .begin = begin,
    .whole = whole,
    .mend = "customer set ID --name … --sports … --rate … --cidr …",
    .get = get,
    .list = list,
};
