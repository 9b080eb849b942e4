#pragma once

#include "base/mailbox.h"
#include "stores/odds_read.h"

/*
 * Changes that the odds store has reported, for the caches in which a poll waits for one. Each
 * reader has a list of those that it has not taken yet. The list is bounded: a reader that falls
 * behind by more must assume that everything has changed.
 */
struct changes;

struct change_reader {
    struct mail mail; /* first. Its `deliver` is the owner's: there are changes to take */
    struct mailbox *mailbox;
    LIST_ENTRY(change_reader) link; /* from here on for changes.c */
    bool posted, all;
    struct buffer list; /* of struct odds_subject */
};

/* Watches the store until it is destroyed. */
struct changes *changes_create(struct odds_store *odds);
void changes_destroy(struct changes **changes);

/* The reader gets the changes reported from now on. */
void changes_join(struct changes *changes, struct change_reader *reader);
/* Mail that was posted before may still be delivered; it finds no changes. */
void changes_leave(struct changes *changes, struct change_reader *reader);

/* The reader's thread calls this when its mail has come: it takes the list, of struct odds_subject,
 * which the caller frees. True: the reader has missed some, or the store does not know what has
 * changed. */
bool changes_take(struct changes *changes, struct change_reader *reader, struct buffer *list);
