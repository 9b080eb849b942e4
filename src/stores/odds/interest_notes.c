/*
 * A table of the events of a second, in the order in which they came, under a mutex; see
 * interest_notes.h. Notes behind `taken` are new. When the second is over, those that
 * were noted again after they were taken begin the next one.
 */
#include "stores/odds/interest_notes.h"

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
    bool again[ODDS_NOTES_MAX]; /* noted since it was taken */
    uint16_t slots[SLOTS];      /* 1 + index into notes; 0: free */
};

struct odds_notes {
    uv_mutex_t lock; /* guards the next three */
    struct table *table;
    size_t taken; /* of the table */
    uint64_t began_ms;
    struct table *spare;
    struct odds_note list[ODDS_NOTES_MAX];
    atomic_uint_fast64_t dropped;
};

struct odds_notes *odds_notes_create(void)
{
    struct odds_notes *notes = memory_alloc_zeroed(1, sizeof *notes);
    notes->table = memory_alloc_zeroed(1, sizeof *notes->table);
    notes->spare = memory_alloc_zeroed(1, sizeof *notes->spare);
    CHECK(uv_mutex_init(&notes->lock) == 0);
    atomic_init(&notes->dropped, 0);
    return notes;
}

void odds_notes_destroy(struct odds_notes **notes)
{
    if (*notes == NULL)
        return;
    uv_mutex_destroy(&(*notes)->lock);
    memory_free((*notes)->table);
    memory_free((*notes)->spare);
    memory_free(*notes);
    *notes = NULL;
}

/* Its index in the table, or where its slot would be: ODDS_NOTES_MAX is returned then. */
static size_t find(const struct table *table, enum sport sport, const struct event_id *event,
                   size_t *slot)
{
    size_t at = hash_text(sport, event_id_text(event)) & (SLOTS - 1);
    for (; table->slots[at] != 0; at = (at + 1) & (SLOTS - 1)) {
        const struct odds_note *note = &table->notes[table->slots[at] - 1];
        if (note->sport == sport && event_id_equals(&note->event, event))
            return table->slots[at] - 1U;
    }
    *slot = at;
    return ODDS_NOTES_MAX;
}

static void add(struct table *table, const struct odds_note *note, size_t slot)
{
    table->notes[table->count] = *note;
    table->again[table->count++] = false;
    table->slots[slot] = (uint16_t)table->count;
}

bool odds_notes_add(struct odds_notes *notes, enum sport sport, const struct event_id *event)
{
    struct odds_note note = {.sport = sport, .event = *event, .requested_ms = clock_wall_ms()};
    size_t slot = 0;
    bool first = false;
    uv_mutex_lock(&notes->lock);
    struct table *table = notes->table;
    size_t index = find(table, sport, event, &slot);
    if (index < ODDS_NOTES_MAX) {
        table->notes[index].requested_ms = note.requested_ms;
        table->again[index] = index < notes->taken;
    } else if (table->count == ODDS_NOTES_MAX) {
        odds_notes_lost(notes, 1);
    } else {
        first = table->count == notes->taken;
        add(table, &note, slot);
    }
    uv_mutex_unlock(&notes->lock);
    return first;
}

uint64_t odds_notes_dropped(const struct odds_notes *notes)
{
    return atomic_load_explicit(&notes->dropped, memory_order_relaxed);
}

/* The lock is held: a new table, with what was noted again and what was not taken. */
static void begin_second(struct odds_notes *notes)
{
    struct table *over = notes->table;
    struct table *table = notes->spare;
    size_t slot = 0;
    table->count = 0;
    memset(table->slots, 0, sizeof table->slots);
    for (size_t i = 0; i < over->count; i++) {
        const struct odds_note *note = &over->notes[i];
        if ((over->again[i] || i >= notes->taken) &&
            find(table, note->sport, &note->event, &slot) == ODDS_NOTES_MAX)
            add(table, note, slot);
    }
    notes->table = table;
    notes->spare = over;
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
    size_t count = notes->table->count - notes->taken;
    memcpy(notes->list, notes->table->notes + notes->taken, count * sizeof notes->list[0]);
    notes->taken = notes->table->count;
    uv_mutex_unlock(&notes->lock);
    *list = notes->list;
    return count;
}

void odds_notes_lost(struct odds_notes *notes, size_t count)
{
    (void)atomic_fetch_add_explicit(&notes->dropped, count, memory_order_relaxed);
}
