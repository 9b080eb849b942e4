/*
 * The policy table; see policy_table.h.
 *
 * Everything here is counted with plain counters that only the editor's thread touches; the two
 * fields that serving threads write (the time a key was used, a budget's window) are atomic. Work
 * per look-up: the whole shard is scanned for the hash, one name is compared in constant time, one
 * slot is read; whether the name is known makes no difference but in which name was compared.
 */
#include "admission/policy_table.h"

#include <stdatomic.h>
#include <string.h>

#include <openssl/crypto.h>

#include "admission/rate_limit.h"
#include "admission/shared_tree.h"
#include "base/hash.h"
#include "base/memory.h"

#define NAME_SIZE KEY_DIGEST_SIZE
#define SHARD_LEVELS 2
#define SHARD_COUNT (1U << SHARED_TREE_BITS * SHARD_LEVELS)
#define SLOT_LEVELS 5 /* a billion: memory ends first */
#define SLOT_COUNT_MAX (1U << SHARED_TREE_BITS * SLOT_LEVELS)
#define NOBODY 0U /* the slot of the policy that admits no address */
#define USE_RESOLUTION_MS 1000

struct policy_entry {
    struct counted counted;
    uint32_t slot;
    int64_t expires_ms;
    _Atomic int64_t used_ms;    /* serving threads write it */
    _Atomic int64_t written_ms; /* what the store knows */
    uint8_t name[NAME_SIZE];    /* a key's digest; an address and zeros */
};

struct shard {
    struct counted counted;
    uint32_t size, capacity;
    struct {
        uint64_t hash;
        struct policy_entry *entry;
    } rows[];
};

struct slot {
    struct counted counted;
    struct policy policy;
    struct cidr cidrs[]; /* what policy.cidrs points at */
};

/* What both a table and an editor hold. */
struct trees {
    struct shared_tree slots;
    struct shared_tree keys;
    struct shared_tree addresses;
    uint32_t slot_count; /* used or free, slot 0 included */
    uint64_t customer_count, key_count, address_count;
};

struct policy_table {
    struct trees trees;
    uint64_t revision;
    size_t bytes;
};

/* The editor's own: how it finds the slot of a customer, and which slots are free. */
struct draft {
    struct trees trees;
    uint32_t *by_customer; /* open addressing by the hash of the id; 0 is empty */
    uint32_t by_customer_size;
    uint32_t *free_slots;
    uint32_t free_count, free_capacity;
};

struct policy_editor {
    struct draft now;
    struct draft before; /* during a complete reading: what was there before; else empty */
    bool restarted;
    size_t bytes;
};

/* ---- budgets, slots, entries, shards: counted things ----------------------------------------- */

static struct rate_budget *budget_hold(struct policy_editor *editor, struct rate_budget *budget)
{
    if (budget == NULL) {
        budget = rate_budget_create();
        editor->bytes += sizeof *budget;
    }
    budget->references++;
    return budget;
}

static void slot_destroy(struct counted *leaf, size_t *bytes)
{
    struct slot *slot = (struct slot *)leaf;
    struct rate_budget *budget = slot->policy.budget;
    if (--budget->references == 0) {
        *bytes -= sizeof *budget;
        rate_budget_release(&budget); /* a call to the store may still hold it */
    }
    *bytes -= sizeof *slot + slot->policy.cidr_count * sizeof slot->cidrs[0];
    memory_free(slot);
}

static void entry_release(struct policy_entry *entry, size_t *bytes)
{
    CHECK(entry != NULL);
    if (--entry->counted.references > 0)
        return;
    *bytes -= sizeof *entry;
    memory_free(entry);
}

static size_t shard_bytes(uint32_t capacity)
{
    return sizeof(struct shard) + capacity * sizeof((struct shard *)NULL)->rows[0];
}

static void shard_destroy(struct counted *leaf, size_t *bytes)
{
    struct shard *shard = (struct shard *)leaf;
    for (uint32_t i = 0; i < shard->size; i++)
        entry_release(shard->rows[i].entry, bytes);
    *bytes -= shard_bytes(shard->capacity);
    memory_free(shard);
}

static const struct shared_tree_kind slot_kind = {SLOT_LEVELS, slot_destroy};
static const struct shared_tree_kind shard_kind = {SHARD_LEVELS, shard_destroy};

static const struct trees empty_trees = {
    .slots = {&slot_kind, NULL}, .keys = {&shard_kind, NULL}, .addresses = {&shard_kind, NULL}};

static struct trees trees_share(const struct trees *trees)
{
    struct trees copy = *trees;
    copy.slots = shared_tree_share(&trees->slots);
    copy.keys = shared_tree_share(&trees->keys);
    copy.addresses = shared_tree_share(&trees->addresses);
    return copy;
}

static void trees_release(struct trees *trees, size_t *bytes)
{
    shared_tree_release(&trees->slots, bytes);
    shared_tree_release(&trees->keys, bytes);
    shared_tree_release(&trees->addresses, bytes);
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
    memcpy(&name.hash, digest, sizeof name.hash); /* already as random as can be */
    return name;
}

static struct name name_of_address(const struct address *address)
{
    struct name name = {0};
    memcpy(name.bytes, address->bytes, sizeof address->bytes);
    name.hash = hash_bytes(0, address->bytes, sizeof address->bytes);
    return name;
}

static uint32_t shard_number(const struct name *name)
{
    return (uint32_t)(name->hash % SHARD_COUNT);
}

/* The row of a name, or shard->size. No early end: see the top of this file. */
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
        if (CRYPTO_memcmp(shard->rows[i].entry->name, name->bytes, NAME_SIZE) == 0)
            found = i;
    }
    if (!compared && CRYPTO_memcmp(nothing, name->bytes, NAME_SIZE) == 0)
        found = size;
    return found;
}

static struct policy_entry *index_find(const struct shared_tree *index, const struct name *name)
{
    const struct shard *shard = (const struct shard *)shared_tree_get(index, shard_number(name));
    uint32_t row = shard_find(shard, name);
    return shard == NULL || row == shard->size ? NULL : shard->rows[row].entry;
}

static const struct policy *slot_policy(const struct trees *trees, uint32_t number)
{
    return &((const struct slot *)shared_tree_get(&trees->slots, number))->policy;
}

const struct policy *policy_table_find_key(const struct policy_table *table,
                                           const uint8_t digest[KEY_DIGEST_SIZE],
                                           struct policy_entry **entry)
{
    struct name name = name_of_key(digest);
    *entry = index_find(&table->trees.keys, &name);
    return slot_policy(&table->trees, *entry == NULL ? NOBODY : (*entry)->slot);
}

const struct policy *policy_table_find_address(const struct policy_table *table,
                                               const struct address *address)
{
    struct name name = name_of_address(address);
    const struct policy_entry *entry = index_find(&table->trees.addresses, &name);
    return slot_policy(&table->trees, entry == NULL ? NOBODY : entry->slot);
}

/* ---- changing an index ----------------------------------------------------------------------- */

/* The shard of a name, for this version alone, with room for one row more. */
static struct shard *shard_own(struct policy_editor *editor, struct shared_tree *index,
                               const struct name *name)
{
    struct counted **place = shared_tree_own(index, shard_number(name), &editor->bytes);
    struct shard *shard = (struct shard *)*place;
    uint32_t size = shard == NULL ? 0 : shard->size;
    bool shared = shard != NULL && shard->counted.references > 1;
    if (shard != NULL && !shared && size < shard->capacity)
        return shard;
    uint32_t capacity = size + size / 4 + 2;
    struct shard *roomier = memory_alloc(shard_bytes(capacity));
    editor->bytes += shard_bytes(capacity);
    *roomier = (struct shard){.counted = {1}, .size = size, .capacity = capacity};
    if (shard != NULL)
        memcpy(roomier->rows, shard->rows, size * sizeof shard->rows[0]);
    if (shared) {
        for (uint32_t i = 0; i < size; i++)
            shard->rows[i].entry->counted.references++;
        shard->counted.references--;
    } else if (shard != NULL) { /* the entries have moved */
        editor->bytes -= shard_bytes(shard->capacity);
        memory_free(shard);
    }
    *place = &roomier->counted;
    return roomier;
}

/* Puts an entry under its name. Returns whether the name is new. */
static bool index_put(struct policy_editor *editor, struct shared_tree *index,
                      const struct name *name, struct policy_entry *entry)
{
    struct shard *shard = shard_own(editor, index, name);
    uint32_t row = shard_find(shard, name);
    bool is_new = row == shard->size;
    if (is_new)
        shard->size++;
    else
        entry_release(shard->rows[row].entry, &editor->bytes);
    shard->rows[row].hash = name->hash;
    shard->rows[row].entry = entry;
    return is_new;
}

static void index_remove(struct policy_editor *editor, struct shared_tree *index,
                         const struct name *name)
{
    struct shard *shard = shard_own(editor, index, name);
    uint32_t row = shard_find(shard, name);
    CHECK(row < shard->size);
    entry_release(shard->rows[row].entry, &editor->bytes);
    shard->rows[row] = shard->rows[--shard->size];
}

static struct policy_entry *entry_create(struct policy_editor *editor, const struct name *name,
                                         uint32_t slot)
{
    struct policy_entry *entry = memory_alloc_zeroed(1, sizeof *entry);
    editor->bytes += sizeof *entry;
    entry->counted.references = 1;
    entry->slot = slot;
    memcpy(entry->name, name->bytes, NAME_SIZE);
    return entry;
}

/* ---- slots ----------------------------------------------------------------------------------- */

/* Takes over nothing; `cidrs` is copied; the budget is held. */
static void slot_put(struct policy_editor *editor, struct draft *draft, uint32_t number,
                     const struct policy *policy)
{
    size_t cidr_bytes = policy->cidr_count * sizeof policy->cidrs[0];
    struct slot *slot = memory_alloc(sizeof *slot + cidr_bytes);
    editor->bytes += sizeof *slot + cidr_bytes;
    slot->counted.references = 1;
    slot->policy = *policy;
    slot->policy.budget = budget_hold(editor, policy->budget);
    slot->policy.cidrs = slot->cidrs;
    if (cidr_bytes > 0)
        memcpy(slot->cidrs, policy->cidrs, cidr_bytes);
    shared_tree_put(&draft->trees.slots, number, &slot->counted, &editor->bytes);
}

static uint32_t slot_take(struct draft *draft)
{
    if (draft->free_count > 0)
        return draft->free_slots[--draft->free_count];
    CHECK(draft->trees.slot_count < SLOT_COUNT_MAX);
    return draft->trees.slot_count++;
}

static void slot_give_back(struct policy_editor *editor, struct draft *draft, uint32_t number)
{
    shared_tree_put(&draft->trees.slots, number, NULL, &editor->bytes);
    if (draft->free_count == draft->free_capacity) {
        draft->free_capacity = draft->free_capacity * 2 + 16;
        draft->free_slots =
            memory_resize(draft->free_slots, draft->free_capacity * sizeof draft->free_slots[0]);
    }
    draft->free_slots[draft->free_count++] = number;
}

/* ---- customers by id ------------------------------------------------------------------------- */

/* Where the customer's slot number stands, or where it belongs. */
static uint32_t *by_customer_find(const struct draft *draft, const char *id)
{
    uint32_t mask = draft->by_customer_size - 1;
    uint32_t at = (uint32_t)hash_string(0, id) & mask;
    while (draft->by_customer[at] != 0 &&
           strcmp(slot_policy(&draft->trees, draft->by_customer[at])->customer_id, id) != 0)
        at = (at + 1) & mask;
    return &draft->by_customer[at];
}

/* The slot of a customer, or NOBODY. */
static uint32_t customer_slot(const struct draft *draft, const char *id)
{
    return draft->by_customer == NULL ? NOBODY : *by_customer_find(draft, id);
}

/* Keeps a third of the places empty. */
static void by_customer_reserve(struct policy_editor *editor, struct draft *draft)
{
    if (draft->trees.customer_count + 1 <= draft->by_customer_size / 3 * 2)
        return;
    uint32_t *old = draft->by_customer;
    uint32_t old_size = draft->by_customer_size;
    draft->by_customer_size = old_size == 0 ? 64 : old_size * 2;
    draft->by_customer = memory_alloc_zeroed(draft->by_customer_size, sizeof old[0]);
    editor->bytes += (draft->by_customer_size - old_size) * sizeof old[0];
    for (uint32_t i = 0; i < old_size; i++) {
        if (old[i] != 0)
            *by_customer_find(draft, slot_policy(&draft->trees, old[i])->customer_id) = old[i];
    }
    memory_free(old);
}

/* ---- the rows -------------------------------------------------------------------------------- */

/* A limit that cannot be applied makes a policy unusable, not unlimited. */
static bool rate_is_usable(const struct rate_limit *rate)
{
    return !rate->enabled || (rate->requests > 0 && rate->window_seconds > 0);
}

void policy_editor_customer(struct policy_editor *editor, const struct customer_record *record)
{
    struct draft *draft = &editor->now;
    uint32_t number = customer_slot(draft, record->id);
    uint32_t before = customer_slot(&editor->before, record->id);
    struct policy policy = {
        .is_customer = true,
        .admits = record->enabled && record->usable && rate_is_usable(&record->rate),
        .casino = record->casino,
        .sports = record->sports & SPORT_SET_ALL,
        .rate = record->rate,
        .cidrs = record->cidrs,
        .cidr_count = record->cidr_count,
    };
    memcpy(policy.customer_id, record->id, sizeof policy.customer_id);
    if (number != NOBODY)
        policy.budget = slot_policy(&draft->trees, number)->budget;
    else if (before != NOBODY)
        policy.budget = slot_policy(&editor->before.trees, before)->budget;
    if (number != NOBODY) {
        slot_put(editor, draft, number, &policy);
        return;
    }
    by_customer_reserve(editor, draft);
    number = slot_take(draft);
    uint32_t *place = by_customer_find(draft, record->id);
    slot_put(editor, draft, number, &policy);
    *place = number;
    draft->trees.customer_count++;
}

/* When this key was used last, as far as anybody knows. */
static void entry_inherit_use(struct policy_editor *editor, struct policy_entry *entry,
                              const struct name *name, int64_t stored_ms)
{
    struct policy_entry *earlier[] = {index_find(&editor->now.trees.keys, name),
                                      index_find(&editor->before.trees.keys, name)};
    int64_t used_ms = stored_ms;
    for (size_t i = 0; i < sizeof earlier / sizeof earlier[0]; i++) {
        int64_t noted_ms = earlier[i] == NULL ? 0 : atomic_load(&earlier[i]->used_ms);
        if (noted_ms > used_ms)
            used_ms = noted_ms;
    }
    atomic_init(&entry->used_ms, used_ms);
    atomic_init(&entry->written_ms, stored_ms);
}

void policy_editor_key(struct policy_editor *editor, const struct key_record *record)
{
    struct trees *trees = &editor->now.trees;
    struct name name = name_of_key(record->digest);
    uint32_t slot = customer_slot(&editor->now, record->customer_id);
    const struct policy_entry *known = index_find(&trees->keys, &name);
    if (record->revoked_ms != 0 || slot == NOBODY) {
        if (known != NULL) {
            index_remove(editor, &trees->keys, &name);
            trees->key_count--;
        }
        return;
    }
    if (known != NULL && known->slot == slot && known->expires_ms == record->expires_ms)
        return; /* nothing that matters here has changed */
    struct policy_entry *entry = entry_create(editor, &name, slot);
    entry->expires_ms = record->expires_ms;
    entry_inherit_use(editor, entry, &name, record->last_used_ms);
    if (index_put(editor, &trees->keys, &name, entry))
        trees->key_count++;
}

void policy_editor_legacy(struct policy_editor *editor, const struct legacy_record *record)
{
    struct draft *draft = &editor->now;
    struct name name = name_of_address(&record->address);
    const struct policy_entry *known = index_find(&draft->trees.addresses, &name);
    const struct policy_entry *before = index_find(&editor->before.trees.addresses, &name);
    if (record->removed) {
        if (known != NULL) {
            slot_give_back(editor, draft, known->slot);
            index_remove(editor, &draft->trees.addresses, &name);
            draft->trees.address_count--;
        }
        return;
    }
    struct policy policy = {
        .admits = record->enabled && record->usable && rate_is_usable(&record->rate),
        .sports = record->sports & SPORT_SET_ALL,
        .rate = record->rate,
    };
    if (known != NULL)
        policy.budget = slot_policy(&draft->trees, known->slot)->budget;
    else if (before != NULL)
        policy.budget = slot_policy(&editor->before.trees, before->slot)->budget;
    uint32_t number = known != NULL ? known->slot : slot_take(draft);
    slot_put(editor, draft, number, &policy);
    if (known == NULL) {
        (void)index_put(editor, &draft->trees.addresses, &name,
                        entry_create(editor, &name, number));
        draft->trees.address_count++;
    }
}

/* ---- drafts, editor, tables ------------------------------------------------------------------ */

/* The policy that admits no address has a few blocks, none of which holds any address that a client
 * can have, so that it takes a scan as a known customer's does. */
static void draft_begin(struct policy_editor *editor, struct draft *draft)
{
    static const struct cidr no_address[4] = {
        {{{0}}, 128}, {{{0}}, 128}, {{{0}}, 128}, {{{0}}, 128}};
    const struct policy nobody = {.cidrs = no_address, .cidr_count = 4};
    *draft = (struct draft){.trees = empty_trees};
    draft->trees.slot_count = NOBODY + 1;
    slot_put(editor, draft, NOBODY, &nobody);
}

static void draft_end(struct policy_editor *editor, struct draft *draft)
{
    trees_release(&draft->trees, &editor->bytes);
    editor->bytes -= draft->by_customer_size * sizeof draft->by_customer[0];
    memory_free(draft->by_customer);
    memory_free(draft->free_slots);
    *draft = (struct draft){.trees = empty_trees};
}

struct policy_editor *policy_editor_create(void)
{
    struct policy_editor *editor = memory_alloc_zeroed(1, sizeof *editor);
    editor->before.trees = empty_trees;
    draft_begin(editor, &editor->now);
    return editor;
}

void policy_editor_destroy(struct policy_editor **editor)
{
    if (*editor == NULL)
        return;
    draft_end(*editor, &(*editor)->now);
    draft_end(*editor, &(*editor)->before);
    CHECK((*editor)->bytes == 0); /* else a table was left, or something leaked */
    memory_free(*editor);
    *editor = NULL;
}

void policy_editor_restart(struct policy_editor *editor)
{
    if (editor->restarted)
        draft_end(editor, &editor->now); /* half a reading; what was there before still counts */
    else
        editor->before = editor->now;
    editor->restarted = true;
    draft_begin(editor, &editor->now);
}

struct policy_table *policy_editor_publish(struct policy_editor *editor, uint64_t revision)
{
    struct policy_table *table = memory_alloc(sizeof *table);
    editor->bytes += sizeof *table;
    if (editor->restarted)
        draft_end(editor, &editor->before);
    editor->restarted = false;
    table->trees = trees_share(&editor->now.trees);
    table->revision = revision;
    table->bytes = editor->bytes;
    return table;
}

void policy_table_destroy(struct policy_editor *editor, struct policy_table **table)
{
    if (*table == NULL)
        return;
    trees_release(&(*table)->trees, &editor->bytes);
    editor->bytes -= sizeof **table;
    memory_free(*table);
    *table = NULL;
}

void policy_table_facts(const struct policy_table *table, struct policy_table_facts *facts)
{
    *facts = (struct policy_table_facts){
        .revision = table->revision,
        .customers = table->trees.customer_count,
        .keys = table->trees.key_count,
        .addresses = table->trees.address_count,
        .bytes = table->bytes,
    };
}

static void tree_compare(const struct shared_tree *a, const struct shared_tree *b, uint32_t size,
                         size_t *pieces, size_t *shared)
{
    for (uint32_t i = 0; i < size; i++) {
        const struct counted *one = shared_tree_get(a, i);
        const struct counted *other = shared_tree_get(b, i);
        *pieces += one != NULL || other != NULL ? 1 : 0;
        *shared += one != NULL && one == other ? 1 : 0;
    }
}

void policy_table_compare(const struct policy_table *a, const struct policy_table *b,
                          size_t *pieces, size_t *shared)
{
    *pieces = *shared = 0;
    uint32_t slots =
        a->trees.slot_count > b->trees.slot_count ? a->trees.slot_count : b->trees.slot_count;
    tree_compare(&a->trees.slots, &b->trees.slots, slots, pieces, shared);
    tree_compare(&a->trees.keys, &b->trees.keys, SHARD_COUNT, pieces, shared);
    tree_compare(&a->trees.addresses, &b->trees.addresses, SHARD_COUNT, pieces, shared);
}

/* ---- use of keys ----------------------------------------------------------------------------- */

int64_t policy_entry_expires_ms(const struct policy_entry *entry)
{
    return entry->expires_ms;
}

void policy_entry_note_use(struct policy_entry *entry, int64_t now_wall_ms)
{
    int64_t used_ms = atomic_load_explicit(&entry->used_ms, memory_order_relaxed);
    if (now_wall_ms - used_ms >= USE_RESOLUTION_MS)
        atomic_store_explicit(&entry->used_ms, now_wall_ms, memory_order_relaxed);
}

/* A shard's uses, from row `*row` on, while there is room. */
static size_t shard_collect(const struct shard *shard, uint32_t *row, struct key_use *uses,
                            struct policy_entry **entries, size_t room)
{
    size_t count = 0;
    for (; *row < shard->size && count < room; (*row)++) {
        struct policy_entry *entry = shard->rows[*row].entry;
        int64_t used_ms = atomic_load_explicit(&entry->used_ms, memory_order_relaxed);
        if (used_ms <= atomic_load_explicit(&entry->written_ms, memory_order_relaxed))
            continue;
        uses[count].used_ms = used_ms;
        memcpy(uses[count].digest, entry->name, KEY_DIGEST_SIZE);
        entries[count++] = entry;
    }
    return count;
}

size_t policy_table_collect_uses(const struct policy_table *table, uint32_t *cursor,
                                 struct key_use *uses, struct policy_entry **entries, size_t room)
{
    size_t count = 0;
    while (*cursor < SHARD_COUNT) {
        const struct shard *shard =
            (const struct shard *)shared_tree_get(&table->trees.keys, *cursor);
        uint32_t row = 0;
        if (shard != NULL)
            count += shard_collect(shard, &row, uses + count, entries + count, room - count);
        if (shard != NULL && row < shard->size)
            return count; /* full; what has been written by then is passed over next time */
        (*cursor)++;
    }
    *cursor = POLICY_USES_END;
    return count;
}

void policy_entry_mark_written(struct policy_entry *entry, int64_t used_ms)
{
    atomic_store_explicit(&entry->written_ms, used_ms, memory_order_relaxed);
}
