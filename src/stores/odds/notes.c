/* Two small tables under a mutex: one is filled while the other is written. See odds_notes.h. */
#include "stores/odds/notes.h"

#include <stdatomic.h>
#include <string.h>

#include <uv.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"

#define SLOTS (2 * ODDS_NOTES_MAX) /* a power of two */

struct table {
    size_t count;
    struct odds_note notes[ODDS_NOTES_MAX];
    uint16_t slots[SLOTS]; /* 1 + index into notes; 0: free */
};

struct odds_notes {
    uv_mutex_t lock; /* guards `filling` and what it points to */
    struct table *filling;
    struct table *taken;
    atomic_uint_fast64_t dropped;
};

struct odds_notes *odds_notes_create(void)
{
    struct odds_notes *notes = memory_alloc_zeroed(1, sizeof *notes);
    notes->filling = memory_alloc_zeroed(1, sizeof *notes->filling);
    notes->taken = memory_alloc_zeroed(1, sizeof *notes->taken);
    CHECK(uv_mutex_init(&notes->lock) == 0);
    atomic_init(&notes->dropped, 0);
    return notes;
}

void odds_notes_destroy(struct odds_notes **notes)
{
    if (*notes == NULL)
        return;
    uv_mutex_destroy(&(*notes)->lock);
    memory_free((*notes)->filling);
    memory_free((*notes)->taken);
    memory_free(*notes);
    *notes = NULL;
}

void odds_notes_add(struct odds_notes *notes, enum sport sport, const struct event_id *event)
{
    int64_t now_ms = clock_wall_ms();
    size_t at = hash_text(sport, event_id_text(event));
    uv_mutex_lock(&notes->lock);
    struct table *table = notes->filling;
    for (at &= SLOTS - 1; table->slots[at] != 0; at = (at + 1) & (SLOTS - 1)) {
        struct odds_note *note = &table->notes[table->slots[at] - 1];
        if (note->sport == sport && event_id_equals(&note->event, event)) {
            note->requested_ms = now_ms;
            goto out;
        }
    }
    if (table->count == ODDS_NOTES_MAX) {
        odds_notes_lost(notes, 1);
        goto out;
    }
    table->notes[table->count++] =
        (struct odds_note){.sport = sport, .event = *event, .requested_ms = now_ms};
    table->slots[at] = (uint16_t)table->count;
out:
    uv_mutex_unlock(&notes->lock);
}

uint64_t odds_notes_dropped(const struct odds_notes *notes)
{
    return atomic_load_explicit(&notes->dropped, memory_order_relaxed);
}

size_t odds_notes_take(struct odds_notes *notes, const struct odds_note **list)
{
    struct table *empty = notes->taken;
    if (empty->count > 0) {
        empty->count = 0;
        memset(empty->slots, 0, sizeof empty->slots);
    }
    uv_mutex_lock(&notes->lock);
    notes->taken = notes->filling;
    notes->filling = empty;
    uv_mutex_unlock(&notes->lock);
    *list = notes->taken->notes;
    return notes->taken->count;
}

void odds_notes_lost(struct odds_notes *notes, size_t count)
{
    (void)atomic_fetch_add_explicit(&notes->dropped, count, memory_order_relaxed);
}
