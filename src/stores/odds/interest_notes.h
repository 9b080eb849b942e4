#pragma once

#include "records/event_id.h"
#include "records/sport.h"

/*
 * The queue before the interest of an engine: serving threads note events; the engine's own thread
 * takes them. An event that is noted for the first time in a second can be taken at once; its later
 * notes of that second are taken as one note when the second is over. So the feed hears of a new
 * event within milliseconds, and an event costs one write a second however often it is polled.
 * Bounded: a note that does not fit is dropped and counted.
 */
#define ODDS_NOTES_MAX 4096 /* different events a second */
#define ODDS_NOTES_SECOND_MS 1000
#define ODDS_NOTES_PRUNE_EVERY_MS 60000
#define ODDS_NOTES_KEEP_MS \
    ((int64_t)24 * 60 * 60 * 1000) /* older notes are removed from the store */

struct odds_note {
    enum sport sport;
    struct event_id event;
    int64_t requested_ms;
};

struct odds_notes;

struct odds_notes *odds_notes_create(void);
void odds_notes_destroy(struct odds_notes **notes);

/* Any thread. True: it is the first that can be taken since the last taking, which is to follow
 * soon. */
bool odds_notes_add(struct odds_notes *notes, enum sport sport, const struct event_id *event);
uint64_t odds_notes_dropped(const struct odds_notes *notes);

/* One thread at a time, at least once a second. The list is the notes' own and stays as it is until
 * the next time. */
size_t odds_notes_take(struct odds_notes *notes, const struct odds_note **list);

/* Those that were taken could not be written: they count as dropped. */
void odds_notes_lost(struct odds_notes *notes, size_t count);
