/* A counted result; see shared.h. */
#include "sports/shared.h"

#include "base/memory.h"

struct entry *entry_create(enum status status, uint64_t version, uint64_t checked_ns,
                           struct answer_counts *counts)
{
    struct entry *entry = memory_alloc_zeroed(1, sizeof *entry);
    atomic_init(&entry->references, 1);
    atomic_init(&entry->checked_ns, checked_ns);
    entry->counts = counts;
    entry->version = version;
    entry->status = status;
    return entry;
}

struct entry *entry_hold(struct entry *entry)
{
    relaxed_add(&entry->references, 1);
    return entry;
}

void entry_release(struct entry **entry)
{
    struct entry *mine = memory_take(entry);
    if (mine == NULL || atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) > 1)
        return;
    CHECK(mine->job == NULL); /* a job holds what it works on */
    if (mine->catalog != NULL)
        relaxed_subtract(&mine->counts->bytes, catalog_bytes(mine->catalog));
    catalog_destroy(&mine->catalog);
    struct answer *answer = entry_answer(mine);
    answer_release(&answer);
    answer_release(&mine->list_before);
    memory_free(mine);
}

void entry_set_catalog(struct entry *entry, struct catalog *catalog)
{
    entry->catalog = catalog;
    relaxed_add(&entry->counts->bytes, catalog_bytes(catalog));
}

void entry_set_answer(struct entry *entry, struct answer *answer)
{
    CHECK(entry_answer(entry) == NULL);
    atomic_store_explicit(&entry->answer, answer, memory_order_release);
}

struct answer *entry_answer(const struct entry *entry)
{
    return atomic_load_explicit(&entry->answer, memory_order_acquire);
}

void entry_confirm(struct entry *entry, uint64_t checked_ns)
{
    uint_fast64_t before = relaxed_load(&entry->checked_ns);
    while (before < checked_ns &&
           !atomic_compare_exchange_weak_explicit(&entry->checked_ns, &before, checked_ns,
                                                  memory_order_release, memory_order_relaxed))
        ;
}
