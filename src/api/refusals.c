/* The table of refusals; see refusals.h. Each row is in a hash chain, and in one queue by time, of
 * which the oldest row is reused. */
#include "api/refusals.h"

#include <sys/queue.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/threads.h"

#define SLOT_MS (5 * 60 * 1000)
#define SLOTS 12 /* an hour: the current slot and eleven before it */

struct row {
    struct refused last; /* customer_id "": the row is not in use */
    int64_t slot;        /* the newest slot that was counted in */
    uint32_t counts[SLOTS];
    LIST_ENTRY(row) chain;
    TAILQ_ENTRY(row) age;
};

struct refusals {
    uv_mutex_t lock; /* guards the rest */
    uint64_t seed;
    LIST_HEAD(, row) chains[REFUSALS_MAX];
    TAILQ_HEAD(ages, row) ages; /* the last refused first */
    struct row rows[REFUSALS_MAX];
};

/* Finds the row, or reuses the oldest one. */
static struct row *take_row(struct refusals *refusals, const char *customer_id,
                            const struct http_error *error, const char *key)
{
    uint64_t hash = hash_string(refusals->seed + (uint64_t)(uintptr_t)error, customer_id) ^
                    hash_string(refusals->seed, key);
    struct row *row;
    LIST_FOREACH (row, &refusals->chains[hash % REFUSALS_MAX], chain)
        if (row->last.error == error && strcmp(row->last.customer_id, customer_id) == 0 &&
            strcmp(row->last.key, key) == 0)
            return row;
    row = TAILQ_LAST(&refusals->ages, ages);
    if (row->last.customer_id[0] != '\0')
        LIST_REMOVE(row, chain);
    memset(row->counts, 0, sizeof row->counts);
    row->slot = 0;
    row->last = (struct refused){.error = error};
    (void)snprintf(row->last.customer_id, sizeof row->last.customer_id, "%s", customer_id);
    (void)snprintf(row->last.key, sizeof row->last.key, "%s", key);
    LIST_INSERT_HEAD(&refusals->chains[hash % REFUSALS_MAX], row, chain);
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

void refusals_note(struct refusals *refusals, const char *customer_id,
                   const struct http_error *error, const char *key, const struct address *address,
                   int64_t now_ms)
{
    if (error->status != 403 && error->status != 429)
        return;
    uv_mutex_lock(&refusals->lock);
    struct row *row = take_row(refusals, customer_id, error, key);
    pass_to(row, now_ms / SLOT_MS);
    row->counts[row->slot % SLOTS]++;
    row->last.address = *address;
    row->last.last_ms = now_ms;
    TAILQ_REMOVE(&refusals->ages, row, age);
    TAILQ_INSERT_HEAD(&refusals->ages, row, age);
    uv_mutex_unlock(&refusals->lock);
}

size_t refusals_list(struct refusals *refusals, const char *customer_id, int64_t now_ms,
                     struct refused *list, size_t most)
{
    size_t count = 0;
    struct row *row;
    uv_mutex_lock(&refusals->lock);
    TAILQ_FOREACH (row, &refusals->ages, age) {
        if (count == most || row->last.customer_id[0] == '\0')
            break; /* unused rows come last */
        if (customer_id != NULL && strcmp(row->last.customer_id, customer_id) != 0)
            continue;
        pass_to(row, now_ms / SLOT_MS);
        list[count] = row->last;
        for (size_t i = 0; i < SLOTS; i++)
            list[count].count += row->counts[i];
        count += list[count].count > 0;
    }
    uv_mutex_unlock(&refusals->lock);
    return count;
}

struct refusals *refusals_create(void)
{
    struct refusals *refusals = memory_alloc_zeroed(1, sizeof *refusals);
    CHECK(uv_mutex_init(&refusals->lock) == 0);
    refusals->seed = hash_random_seed();
    TAILQ_INIT(&refusals->ages);
    for (size_t i = 0; i < REFUSALS_MAX; i++)
        TAILQ_INSERT_TAIL(&refusals->ages, &refusals->rows[i], age);
    return refusals;
}

void refusals_destroy(struct refusals **at)
{
    struct refusals *refusals = memory_take(at);
    if (refusals == NULL)
        return;
    uv_mutex_destroy(&refusals->lock);
    memory_free(refusals);
}
