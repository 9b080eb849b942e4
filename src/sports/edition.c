/* A counted result; see edition.h. */
#include "sports/edition.h"

#include "base/memory.h"

struct edition *edition_create(enum status status, uint64_t version, uint64_t checked_ns,
                               struct answer_tally *tally)
{
    struct edition *edition = memory_alloc_zeroed(1, sizeof *edition);
    atomic_init(&edition->references, 1);
    atomic_init(&edition->checked_ns, checked_ns);
    atomic_init(&edition->asked_ms, 0);
    atomic_init(&edition->answer, NULL);
    edition->tally = tally;
    edition->version = version;
    edition->status = status;
    return edition;
}

struct edition *edition_hold(struct edition *edition)
{
    (void)atomic_fetch_add_explicit(&edition->references, 1, memory_order_relaxed);
    return edition;
}

void edition_release(struct edition **edition)
{
    struct edition *mine = *edition;
    *edition = NULL;
    if (mine == NULL || atomic_fetch_sub_explicit(&mine->references, 1, memory_order_acq_rel) > 1)
        return;
    CHECK(mine->job == NULL); /* a job holds what it works on */
    if (mine->catalog != NULL)
        (void)atomic_fetch_sub_explicit(&mine->tally->bytes, catalog_bytes(mine->catalog),
                                        memory_order_relaxed);
    catalog_release(&mine->catalog);
    struct answer *answer = edition_answer(mine);
    answer_release(&answer);
    memory_free(mine);
}

void edition_set_catalog(struct edition *edition, struct catalog *catalog)
{
    edition->catalog = catalog;
    (void)atomic_fetch_add_explicit(&edition->tally->bytes, catalog_bytes(catalog),
                                    memory_order_relaxed);
}

void edition_set_answer(struct edition *edition, struct answer *answer)
{
    CHECK(edition_answer(edition) == NULL);
    atomic_store_explicit(&edition->answer, answer, memory_order_release);
}

struct answer *edition_answer(const struct edition *edition)
{
    return atomic_load_explicit(&edition->answer, memory_order_acquire);
}

void edition_confirm(struct edition *edition, uint64_t checked_ns)
{
    uint_fast64_t before = atomic_load_explicit(&edition->checked_ns, memory_order_relaxed);
    while (before < checked_ns &&
           !atomic_compare_exchange_weak_explicit(&edition->checked_ns, &before, checked_ns,
                                                  memory_order_release, memory_order_relaxed))
        ;
}
