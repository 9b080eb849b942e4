/*
 * A table of the events of a second, in the order in which they came, under a mutex; see
 * interest_notes.h. Notes behind `taken` are new. When the second is over, those that
 * were noted again after they were taken begin the next one.
 */
#include "stores/odds/interest_notes.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/relaxed.h"

#define SLOTS (2 * ODDS_NOTES_MAX) /* a power of two */

struct odds_notes {
    uv_mutex_t lock; /* guards all but the last two */
    uint64_t began_ms;
    size_t count;
    size_t taken; /* of them */
    struct odds_note notes[ODDS_NOTES_MAX];
    bool again[ODDS_NOTES_MAX]; /* noted since it was taken */
    uint16_t slots[SLOTS];      /* 1 + index into notes; 0: free */
    struct odds_note list[ODDS_NOTES_MAX];
    atomic_uint_fast64_t dropped;
};

struct odds_notes *odds_notes_create(void)
{
    struct odds_notes *notes = memory_alloc_zeroed(1, sizeof *notes);
    CHECK(uv_mutex_init(&notes->lock) == 0);
    return notes;
}

void odds_notes_destroy(struct odds_notes **notes)
{
    if (*notes == NULL)
        return;
    uv_mutex_destroy(&(*notes)->lock);
    memory_free(*notes);
    *notes = NULL;
}

/* The slot that leads to the note of this event, or the free one that would. */
static uint16_t *slot_of(struct odds_notes *notes, enum sport sport, const struct event_id *event)
{
    for (size_t at = hash_text(sport, event_id_text(event));; at++) {
        uint16_t *slot = &notes->slots[at & (SLOTS - 1)];
        const struct odds_note *note = &notes->notes[*slot == 0 ? 0 : *slot - 1];
        if (*slot == 0 || (note->sport == sport && event_id_equals(&note->event, event)))
            return slot;
    }
}

static void add(struct odds_notes *notes, const struct odds_note *note, uint16_t *slot)
{
    notes->notes[notes->count] = *note;
    notes->again[notes->count++] = false;
    *slot = (uint16_t)notes->count;
}

bool odds_notes_add(struct odds_notes *notes, enum sport sport, const struct event_id *event)
{
    struct odds_note note = {.sport = sport, .event = *event, .requested_ms = clock_wall_ms()};
    bool first = false;
    uv_mutex_lock(&notes->lock);
    uint16_t *slot = slot_of(notes, sport, event);
    if (*slot != 0) {
        size_t index = *slot - 1U;
        notes->notes[index].requested_ms = note.requested_ms;
        notes->again[index] = index < notes->taken;
    } else if (notes->count == ODDS_NOTES_MAX) {
        odds_notes_lost(notes, 1);
    } else {
        first = notes->count == notes->taken;
        add(notes, &note, slot);
    }
    uv_mutex_unlock(&notes->lock);
    return first;
}

uint64_t odds_notes_dropped(const struct odds_notes *notes)
{
    return relaxed_load(&notes->dropped);
}

/* The lock is held. Keeps what was noted again and what was not taken. */
static void begin_second(struct odds_notes *notes)
{
    size_t before = notes->count;
    notes->count = 0;
    memset(notes->slots, 0, sizeof notes->slots);
    for (size_t i = 0; i < before; i++) {
        struct odds_note note = notes->notes[i];
        if (notes->again[i] || i >= notes->taken)
            add(notes, &note, slot_of(notes, note.sport, &note.event));
    }
    notes->taken = 0;
}

size_t odds_notes_take(struct odds_notes *notes, const struct odds_note **list)
{
    uint64_t now_ms = clock_monotonic_ms();
    uv_mutex_lock(&notes->lock);
    if (now_ms - notes->began_ms >= ODDS_NOTES_SECOND_MS) {
        begin_second(notes);
        notes->began_ms = now_ms;
    }
    size_t count = notes->count - notes->taken;
    memcpy(notes->list, notes->notes + notes->taken, count * sizeof notes->list[0]);
    notes->taken = notes->count;
    uv_mutex_unlock(&notes->lock);
    *list = notes->list;
    return count;
}

void odds_notes_lost(struct odds_notes *notes, size_t count)
{
    relaxed_add(&notes->dropped, count);
}
