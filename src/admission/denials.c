/* The table of denials; see denials.h. Each row is in a hash chain, and in one queue by time whose
 * oldest row is reused. */
#include "admission/denials.h"

#include <sys/queue.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/threads.h"

#define SLOT_MS (5 * 60 * 1000)
#define SLOTS 12 /* an hour: the current slot and eleven before it */

struct row {
    char customer_id[CUSTOMER_ID_SIZE]; /* "": the row is not in use */
    struct denied last;
    int64_t slot; /* the newest slot that was counted in */
    uint32_t counts[SLOTS];
    LIST_ENTRY(row) chain;
    TAILQ_ENTRY(row) age;
};

struct denials {
    uv_mutex_t lock; /* guards the rest */
    uint64_t seed;
    LIST_HEAD(, row) chains[DENIALS_MAX];
    TAILQ_HEAD(ages, row) ages; /* the last denied first */
    struct row rows[DENIALS_MAX];
};

/* Finds the row, or reuses the oldest one. */
static struct row *take_row(struct denials *denials, const char *customer_id,
                            enum admission_denial reason, const char *key)
{
    uint64_t hash = hash_string(denials->seed + (uint64_t)reason, customer_id) ^
                    hash_string(denials->seed, key);
    struct row *row;
    LIST_FOREACH (row, &denials->chains[hash % DENIALS_MAX], chain)
        if (row->last.reason == reason && strcmp(row->customer_id, customer_id) == 0 &&
            strcmp(row->last.key, key) == 0)
            return row;
    row = TAILQ_LAST(&denials->ages, ages);
    if (row->customer_id[0] != '\0')
        LIST_REMOVE(row, chain);
    memset(row->counts, 0, sizeof row->counts);
    row->slot = 0;
    row->last = (struct denied){.reason = reason};
    memcpy(row->customer_id, customer_id, strlen(customer_id) + 1);
    memcpy(row->last.key, key, strlen(key) + 1);
    LIST_INSERT_HEAD(&denials->chains[hash % DENIALS_MAX], row, chain);
    return row;
}

/* Empties the slots between the row's newest and `slot`. If the clock was set back, the row keeps
 * counting in its newest slot. */
static void pass_to(struct row *row, int64_t slot)
{
    if (slot - row->slot >= SLOTS)
        memset(row->counts, 0, sizeof row->counts);
    else
        for (int64_t i = row->slot + 1; i <= slot; i++)
            row->counts[i % SLOTS] = 0;
    if (slot > row->slot)
        row->slot = slot;
}

void denials_note(struct denials *denials, const char *customer_id, enum admission_denial reason,
                  const char *key, const struct address *address, int64_t now_ms)
{
    CHECK(strlen(customer_id) < CUSTOMER_ID_SIZE && strlen(key) < KEY_PREFIX_SIZE);
    uv_mutex_lock(&denials->lock);
    struct row *row = take_row(denials, customer_id, reason, key);
    pass_to(row, now_ms / SLOT_MS);
    row->counts[row->slot % SLOTS]++;
    row->last.address = *address;
    row->last.last_ms = now_ms;
    TAILQ_REMOVE(&denials->ages, row, age);
    TAILQ_INSERT_HEAD(&denials->ages, row, age);
    uv_mutex_unlock(&denials->lock);
}

size_t denials_list(struct denials *denials, const char *customer_id, int64_t now_ms,
                    struct denied *list, size_t most)
{
    size_t count = 0;
    struct row *row;
    uv_mutex_lock(&denials->lock);
    TAILQ_FOREACH (row, &denials->ages, age) {
        if (count == most || row->customer_id[0] == '\0')
            break; /* unused rows come last */
        if (strcmp(row->customer_id, customer_id) != 0)
            continue;
        pass_to(row, now_ms / SLOT_MS);
        list[count] = row->last;
        for (size_t i = 0; i < SLOTS; i++)
            list[count].count += row->counts[i];
        count += list[count].count > 0;
    }
    uv_mutex_unlock(&denials->lock);
    return count;
}

struct denials *denials_create(void)
{
    struct denials *denials = memory_alloc_zeroed(1, sizeof *denials);
    CHECK(uv_mutex_init(&denials->lock) == 0);
    denials->seed = hash_random_seed();
    TAILQ_INIT(&denials->ages);
    for (size_t i = 0; i < DENIALS_MAX; i++)
        TAILQ_INSERT_TAIL(&denials->ages, &denials->rows[i], age);
    return denials;
}

void denials_destroy(struct denials **at)
{
    struct denials *denials = memory_take(at);
    if (denials == NULL)
        return;
    uv_mutex_destroy(&denials->lock);
    memory_free(denials);
}
