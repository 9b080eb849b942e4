#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "base/status.h"
#include "http/answer.h"
#include "sports/catalog.h"

/*
 * The result of one version of a stored value: of a sport's catalog, or of an event's odds together
 * with its catalog row. It is reference-counted. A holder may answer from it for as long as the
 * store confirms its version.
 */
struct job;
struct entry {
    atomic_uint references;
    struct answer_counts *counts;
    uint64_t version;   /* of the catalog, or of the odds; 0: nothing was stored */
    enum status status; /* OK, NOT_FOUND (version 0), or MALFORMED */

    /* The store held this version at this monotonic time or later. Only ever moves forward. */
    atomic_uint_fast64_t checked_ns;
    /* When a serving thread last answered from it, up to a second late; monotonic. */
    atomic_uint_fast64_t asked_ms;

    /* Wall clock: when it was last published; 0: the store does not know. */
    atomic_int_fast64_t published_ms;

    struct catalog *catalog; /* OK, of a catalog */
    struct text row;         /* OK, of an event: its catalog row, inside the answer's body */
    /* OK: of an event, from the start; the list of a catalog is made when it is first asked for. */
    _Atomic(struct answer *) answer;

    struct job *job; /* one that completes the answer; guarded by the lock of struct sports */
};

/* Starts with one reference, without catalog, row and answer. The counts is borrowed. */
struct entry *entry_create(enum status status, uint64_t version, uint64_t checked_ns,
                           struct answer_counts *counts);
struct entry *entry_hold(struct entry *entry);
void entry_release(struct entry **entry);

/* Both take over the reference; each is set once, before others see the entry, or by its job. */
void entry_set_catalog(struct entry *entry, struct catalog *catalog);
void entry_set_answer(struct entry *entry, struct answer *answer);
struct answer *entry_answer(const struct entry *entry); /* borrowed; NULL: not made yet */

/* The store still held it at `checked_ns`. */
void entry_confirm(struct entry *entry, uint64_t checked_ns);
