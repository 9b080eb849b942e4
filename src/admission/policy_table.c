/*
 * The policy table; see policy_table.h.
 *
 * Items have plain reference counters that only the editor's thread touches. The two fields that
 * serving threads write (the time a key was used, a budget's window) are atomic. A look-up scans
 * the whole shard for the hash and compares one name in constant time. A look-up of a key then
 * looks up its customer, or for an unknown key a customer that does not exist. So known and unknown
 * names cost the same work.
 */
#include "admission/policy_table.h"

#include <openssl/crypto.h>

#include "base/hash.h"
#include "base/memory.h"
#include "limits/rate_limit.h"

#define NAME_SIZE KEY_DIGEST_SIZE
#define SHARDS 4096U
#define USE_RESOLUTION_MS 1000

/* An element of an index, found by its name: a key or a policy. */
struct item {
    size_t references; /* of shards */
    uint8_t name[NAME_SIZE];
};

struct policy_entry {
    struct item item; /* named by the key's digest */
    char customer_id[CUSTOMER_ID_SIZE];
    struct policy_key key;
    _Atomic int64_t used_ms;    /* written by serving threads */
    _Atomic int64_t written_ms; /* the time in the store */
    struct cidr cidrs[];        /* key.cidrs points here */
};

struct policy_item {
    struct item item; /* named by the customer's id or the address, padded with zeros */
    struct policy policy;
    struct cidr cidrs[]; /* policy.cidrs points here */
};

struct shard {
    size_t references; /* of versions; a shared shard is copied before a write */
    uint32_t size, capacity;
    struct {
        uint64_t hash;
        struct item *item;
    } rows[];
};

/* The shards of items of one kind. Versions share the shards that did not change between them. A
 * new version costs 4096 pointers and counts: less than a millisecond, five times a second at
 * most. */
struct index {
    struct shard *shards[SHARDS]; /* NULL: an empty shard */
    void (*destroy_item)(struct item *item);
    uint64_t count; /* of items */
};

struct rows {
    struct index keys, customers, addresses;
    uint64_t revoked; /* of the keys */
};

struct policy_table {
    struct rows rows;
    uint64_t revision;
};

struct policy_editor {
    struct rows now;
    struct rows before; /* the rows before a complete reading began; else empty */
    bool restarted;
};

/* The policy of an unknown key or address. Its few blocks hold no address that a client can have;
 * they make its scan cost the same as a known customer's. */
static const struct cidr no_address[4] = {{{{0}}, 128}, {{{0}}, 128}, {{{0}}, 128}, {{{0}}, 128}};
static const struct policy admits_no_address = {.cidrs = no_address, .cidr_count = 4};

/* ---- items and shards: reference counts ------------------------------------------------------ */

static void destroy_key(struct item *item)
{
    memory_free(item);
}

static void destroy_policy(struct item *item)
{
    struct rate_budget *budget = ((struct policy_item *)item)->policy.budget;
    rate_budget_release(&budget); /* a store call may still hold the budget */
    memory_free(item);
}

static void item_release(const struct index *index, struct item *item)
{
    CHECK(item != NULL && item->references > 0);
    if (--item->references == 0)
        index->destroy_item(item);
}

static const struct rows no_rows = {
    .keys = {.destroy_item = destroy_key},
    .customers = {.destroy_item = destroy_policy},
    .addresses = {.destroy_item = destroy_policy},
};

static void index_share(struct index *index)
{
    for (uint32_t i = 0; i < SHARDS; i++)
        if (index->shards[i] != NULL)
            index->shards[i]->references++;
}

static void index_release(struct index *index)
{
    for (uint32_t i = 0; i < SHARDS; i++) {
        struct shard *shard = index->shards[i];
        if (shard == NULL || --shard->references > 0)
            continue;
        for (uint32_t row = 0; row < shard->size; row++)
            item_release(index, shard->rows[row].item);
        memory_free(shard);
    }
}

static void rows_release(struct rows *rows)
{
    index_release(&rows->keys);
    index_release(&rows->customers);
    index_release(&rows->addresses);
    *rows = no_rows;
}

/* ---- finding by name ------------------------------------------------------------------------- */

struct name {
    uint8_t bytes[NAME_SIZE];
    uint64_t hash;
};

static struct name name_of_key(const uint8_t digest[KEY_DIGEST_SIZE])
{
    struct name name;
    memcpy(name.bytes, digest, NAME_SIZE);
    memcpy(&name.hash, digest, sizeof name.hash); /* a digest is random already */
    return name;
}

/* The work does not depend on the size. */
static struct name name_of(const void *bytes, size_t size)
{
    struct name name = {0};
    memcpy(name.bytes, bytes, size);
    name.hash = hash_bytes(0, name.bytes, NAME_SIZE);
    return name;
}

static struct name name_of_customer(const char *id)
{
    _Static_assert(CUSTOMER_ID_SIZE <= NAME_SIZE, "a customer's id is a name");
    return name_of(id, strlen(id));
}

static struct name name_of_address(const struct address *address)
{
    return name_of(address->bytes, sizeof address->bytes);
}

static uint32_t shard_number(const struct name *name)
{
    return (uint32_t)(name->hash % SHARDS);
}

/* The row of a name, or shard->size. Never returns early: see the top of this file. */
static uint32_t shard_find(const struct shard *shard, const struct name *name)
{
    static const uint8_t nothing[NAME_SIZE];
    uint32_t size = shard == NULL ? 0 : shard->size;
    uint32_t found = size;
    bool compared = false;
    for (uint32_t i = 0; i < size; i++) {
        if (shard->rows[i].hash != name->hash)
            continue;
        compared = true;
        if (CRYPTO_memcmp(shard->rows[i].item->name, name->bytes, NAME_SIZE) == 0)
            found = i;
    }
    if (!compared && CRYPTO_memcmp(nothing, name->bytes, NAME_SIZE) == 0)
        found = size;
    return found;
}

static struct item *index_find(const struct index *index, const struct name *name)
{
    const struct shard *shard = index->shards[shard_number(name)];
    uint32_t row = shard_find(shard, name);
    return shard == NULL || row == shard->size ? NULL : shard->rows[row].item;
}

/* NULL: there is none. */
static const struct policy *find_policy(const struct index *index, const struct name *name)
{
    const struct policy_item *found = (const struct policy_item *)index_find(index, name);
    return found == NULL ? NULL : &found->policy;
}

static struct policy_entry *find_key(const struct index *keys, const struct name *name)
{
    return (struct policy_entry *)index_find(keys, name);
}

const struct policy *policy_table_find_key(const struct policy_table *table,
                                           const uint8_t digest[KEY_DIGEST_SIZE],
                                           struct policy_entry **entry)
{
    struct name name = name_of_key(digest);
    *entry = find_key(&table->rows.keys, &name);
    struct name customer = name_of_customer(*entry == NULL ? "" : (*entry)->customer_id);
    const struct policy *policy = find_policy(&table->rows.customers, &customer);
    return policy == NULL ? &admits_no_address : policy;
}

const struct policy *policy_table_find_address(const struct policy_table *table,
                                               const struct address *address)
{
    struct name name = name_of_address(address);
    const struct policy *policy = find_policy(&table->rows.addresses, &name);
    return policy == NULL ? &admits_no_address : policy;
}

/* ---- changing an index ----------------------------------------------------------------------- */

/* The shard of a name, owned by this version only and with room for one more row. */
static struct shard *shard_own(struct index *index, const struct name *name)
{
    struct shard **place = &index->shards[shard_number(name)];
    struct shard *shard = *place;
    uint32_t size = shard == NULL ? 0 : shard->size;
    bool shared = shard != NULL && shard->references > 1;
    if (shard != NULL && !shared && size < shard->capacity)
        return shard;
    uint32_t capacity = size + size / 4 + 2;
    struct shard *roomier = memory_alloc(sizeof *roomier + capacity * sizeof roomier->rows[0]);
    *roomier = (struct shard){.references = 1, .size = size, .capacity = capacity};
    if (shard != NULL)
        memcpy(roomier->rows, shard->rows, size * sizeof shard->rows[0]);
    if (shared) {
        for (uint32_t i = 0; i < size; i++)
            shard->rows[i].item->references++;
        shard->references--;
    } else { /* the new shard took over the references */
        memory_free(shard);
    }
    *place = roomier;
    return roomier;
}

/* Puts an item under its name and releases the one it replaces. */
static void index_put(struct index *index, const struct name *name, struct item *item)
{
    struct shard *shard = shard_own(index, name);
    uint32_t row = shard_find(shard, name);
    item->references = 1;
    memcpy(item->name, name->bytes, NAME_SIZE);
    if (row < shard->size)
        item_release(index, shard->rows[row].item);
    else {
        shard->size++;
        index->count++;
    }
    shard->rows[row].hash = name->hash;
    shard->rows[row].item = item;
}

static void index_remove(struct index *index, const struct name *name)
{
    if (index_find(index, name) == NULL)
        return;
    struct shard *shard = shard_own(index, name);
    uint32_t row = shard_find(shard, name);
    item_release(index, shard->rows[row].item);
    shard->rows[row] = shard->rows[--shard->size];
    index->count--;
}

/* ---- the rows of the store ------------------------------------------------------------------- */

/* A limit that cannot be applied makes a policy unusable, not unlimited. */
static bool rate_is_usable(const struct rate_limit *rate)
{
    return !rate->enabled || (rate->requests > 0 && rate->window_seconds > 0);
}

/* Copies the policy. Its budget is that of the policy it replaces, in `now` or else in `before`, or
 * a new one. */
static void put_policy(struct index *now, const struct index *before, const struct name *name,
                       const struct policy *policy)
{
    const struct policy *known = find_policy(now, name);
    size_t cidr_bytes = policy->cidr_count * sizeof policy->cidrs[0];
    struct policy_item *made = memory_alloc(sizeof *made + cidr_bytes);
    if (known == NULL)
        known = find_policy(before, name);
    made->policy = *policy;
    made->policy.budget = known == NULL ? rate_budget_create() : rate_budget_hold(known->budget);
    made->policy.cidrs = made->cidrs;
    if (cidr_bytes > 0)
        memcpy(made->cidrs, policy->cidrs, cidr_bytes);
    index_put(now, name, &made->item);
}

bool policy_editor_customer(void *context, const void *visited)
{
    const struct customer_record *record = visited;
    struct policy_editor *editor = context;
    struct name name = name_of_customer(record->id);
    struct policy policy = {
        .is_customer = true,
        .admits = record->enabled && record->usable && rate_is_usable(&record->rate),
        .casino = record->casino,
        .sandbox = record->sandbox,
        .sports = record->sports & SPORT_SET_ALL,
        .rate = record->rate,
        .cidrs = record->cidrs,
        .cidr_count = record->cidr_count,
    };
    memcpy(policy.customer_id, record->id, sizeof policy.customer_id);
    put_policy(&editor->now.customers, &editor->before.customers, &name, &policy);
    return true;
}

/* Sets the last use of the key to the latest that this process or the store knows. */
static void entry_inherit_use(struct policy_editor *editor, struct policy_entry *entry,
                              const struct name *name, int64_t stored_ms)
{
    struct policy_entry *earlier[] = {find_key(&editor->now.keys, name),
                                      find_key(&editor->before.keys, name)};
    int64_t used_ms = stored_ms;
    for (size_t i = 0; i < sizeof earlier / sizeof earlier[0]; i++) {
        int64_t noted_ms = earlier[i] == NULL ? 0 : atomic_load(&earlier[i]->used_ms);
        if (noted_ms > used_ms)
            used_ms = noted_ms;
    }
    atomic_init(&entry->used_ms, used_ms);
    atomic_init(&entry->written_ms, stored_ms);
}

static bool is_the_same_key(const struct policy_entry *entry, const struct key_record *record)
{
    return strcmp(entry->customer_id, record->customer_id) == 0 &&
           entry->key.expires_ms == record->expires_ms && entry->key.areas == record->areas &&
           entry->key.revoked == (record->revoked_ms != 0) &&
           entry->key.cidr_count == record->cidr_count &&
           memcmp(entry->cidrs, record->cidrs, record->cidr_count * sizeof entry->cidrs[0]) == 0;
}

static struct policy_entry *make_entry(const struct key_record *record)
{
    size_t cidr_bytes = record->cidr_count * sizeof record->cidrs[0];
    struct policy_entry *entry = memory_alloc_zeroed(1, sizeof *entry + cidr_bytes);
    memcpy(entry->customer_id, record->customer_id, sizeof entry->customer_id);
    memcpy(entry->cidrs, record->cidrs, cidr_bytes);
    entry->key = (struct policy_key){.expires_ms = record->expires_ms,
                                     .areas = record->areas,
                                     .revoked = record->revoked_ms != 0,
                                     .cidrs = entry->cidrs,
                                     .cidr_count = record->cidr_count};
    return entry;
}

bool policy_editor_key(void *context, const void *visited)
{
    const struct key_record *record = visited;
    struct policy_editor *editor = context;
    struct name name = name_of_key(record->digest);
    struct name customer = name_of_customer(record->customer_id);
    const struct policy_entry *known = find_key(&editor->now.keys, &name);
    bool belongs = find_policy(&editor->now.customers, &customer) != NULL;
    if (belongs && known != NULL && is_the_same_key(known, record))
        return true; /* nothing that this table uses has changed */
    if (known != NULL && known->key.revoked)
        editor->now.revoked--;
    if (!belongs) {
        index_remove(&editor->now.keys, &name);
        return true;
    }
    struct policy_entry *entry = make_entry(record);
    entry_inherit_use(editor, entry, &name, record->last_used_ms);
    if (entry->key.revoked)
        editor->now.revoked++;
    index_put(&editor->now.keys, &name, &entry->item);
    return true;
}

bool policy_editor_legacy(void *context, const void *visited)
{
    const struct legacy_record *record = visited;
    struct policy_editor *editor = context;
    struct name name = name_of_address(&record->address);
    const struct policy policy = {
        .admits = record->enabled && record->usable && rate_is_usable(&record->rate),
        .sports = record->sports & SPORT_SET_ALL,
        .rate = record->rate,
    };
    if (record->removed)
        index_remove(&editor->now.addresses, &name);
    else
        put_policy(&editor->now.addresses, &editor->before.addresses, &name, &policy);
    return true;
}

/* ---- editor and tables ----------------------------------------------------------------------- */

struct policy_editor *policy_editor_create(void)
{
    struct policy_editor *editor = memory_alloc(sizeof *editor);
    *editor = (struct policy_editor){.now = no_rows, .before = no_rows};
    return editor;
}

void policy_editor_destroy(struct policy_editor **at)
{
    struct policy_editor *editor = memory_take(at);
    if (editor == NULL)
        return;
    rows_release(&editor->now);
    rows_release(&editor->before);
    memory_free(editor);
}

void policy_editor_restart(struct policy_editor *editor)
{
    if (editor->restarted)
        rows_release(&editor->now); /* half a reading; `before` is still the last complete one */
    else
        editor->before = editor->now;
    editor->restarted = true;
    editor->now = no_rows;
}

struct policy_table *policy_editor_publish(struct policy_editor *editor, uint64_t revision)
{
    struct policy_table *table = memory_alloc(sizeof *table);
    rows_release(&editor->before);
    editor->restarted = false;
    table->rows = editor->now;
    index_share(&table->rows.keys);
    index_share(&table->rows.customers);
    index_share(&table->rows.addresses);
    table->revision = revision;
    return table;
}

void policy_table_destroy(struct policy_table **at)
{
    struct policy_table *table = memory_take(at);
    if (table == NULL)
        return;
    rows_release(&table->rows);
    memory_free(table);
}

void policy_table_facts(const struct policy_table *table, struct policies_facts *facts)
{
    facts->revision = table->revision;
    facts->customers = table->rows.customers.count;
    facts->keys = table->rows.keys.count - table->rows.revoked;
    facts->addresses = table->rows.addresses.count;
}

/* ---- use of keys ----------------------------------------------------------------------------- */

const struct policy_key *policy_entry_key(const struct policy_entry *entry)
{
    return &entry->key;
}

const uint8_t *policy_entry_digest(const struct policy_entry *entry)
{
    return (const uint8_t *)entry->item.name;
}

void policy_entry_note_use(struct policy_entry *entry, int64_t now_wall_ms)
{
    int64_t used_ms = relaxed_load(&entry->used_ms);
    if (now_wall_ms - used_ms >= USE_RESOLUTION_MS)
        relaxed_store(&entry->used_ms, now_wall_ms);
}

/* Collects a shard's unwritten uses from row `*row` on, up to `room`. */
static size_t shard_collect(const struct shard *shard, uint32_t *row, struct key_use *uses,
                            size_t room)
{
    size_t count = 0;
    for (; *row < shard->size && count < room; (*row)++) {
        struct policy_entry *entry = (struct policy_entry *)shard->rows[*row].item;
        int64_t used_ms = relaxed_load(&entry->used_ms);
        if (used_ms <= relaxed_load(&entry->written_ms))
            continue;
        uses[count].used_ms = used_ms;
        memcpy(uses[count++].digest, entry->item.name, KEY_DIGEST_SIZE);
    }
    return count;
}

size_t policy_table_collect_uses(const struct policy_table *table, uint32_t *cursor,
                                 struct key_use *uses, size_t room)
{
    size_t count = 0;
    while (*cursor < SHARDS) {
        const struct shard *shard = table->rows.keys.shards[*cursor];
        uint32_t row = 0;
        if (shard != NULL)
            count += shard_collect(shard, &row, uses + count, room - count);
        if (shard != NULL && row < shard->size)
            return count; /* full; the next call skips uses that are marked written */
        (*cursor)++;
    }
    *cursor = POLICY_USES_END;
    return count;
}

void policy_table_mark_written(const struct policy_table *table, const struct key_use *uses,
                               size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct name name = name_of_key(uses[i].digest);
        struct policy_entry *entry = find_key(&table->rows.keys, &name);
        CHECK(entry != NULL);
        relaxed_store(&entry->written_ms, uses[i].used_ms);
    }
}
