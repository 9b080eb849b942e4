#ifndef CROUPIER_ADMISSION_POLICIES_H
#define CROUPIER_ADMISSION_POLICIES_H

#include "admission/admission.h"
#include "admission/policy_table.h"

/*
 * How a serving thread gets at the current table (the rest of struct policies is in admission.h).
 *
 * Each table that is published is a snapshot with a generation number. A thread compares the
 * number, one atomic load, and only when it has moved takes hold of the new snapshot under a mutex.
 * A retired snapshot is freed, by the refresher, after its last holder let go. A thread that is
 * idle keeps an old snapshot until its next request; since snapshots share what did not change,
 * that costs at most what changed since, once a thread.
 */
struct policies_snapshot {
    struct policy_table *table;
    uint64_t generation; /* 1, 2, 3, … */
    uint32_t references; /* under the mutex */
    struct policies_snapshot *next;
};

/* A table that was not confirmed for longer than this decides nothing (docs/interface.md,
 * "Errors"). */
#define POLICIES_AGE_MAX_MS 1000U

/* Is what was current at the time of this call, or has been published since, confirmed? Call it
 * before policies_generation: then the table that one leads to is the confirmed one or a newer
 * one. */
bool policies_confirmed(struct policies *policies, uint64_t now_mono_ms);

uint64_t policies_generation(struct policies *policies); /* 0: no table yet */

/* Lets go of `*held` (may be NULL) and takes hold of the current snapshot (NULL when there is
 * none). */
void policies_exchange(struct policies *policies, struct policies_snapshot **held);
void policies_let_go(struct policies *policies, struct policies_snapshot **held);

#endif
