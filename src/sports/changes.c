/* A ring of changes under one lock, which is held for a copy; see changes.h. */
#include "sports/changes.h"

#include <uv.h>

#include "base/memory.h"

#define CHANGES_MAX 8192U

struct changes {
    struct odds_watch watch;
    struct odds_store *odds;
    uv_mutex_t lock; /* guards what follows, and the ring's part of the readers */
    LIST_HEAD(, change_reader) readers;
    size_t listening;
    uint64_t count;      /* ever */
    uint64_t all_before; /* a listener at a position before this has missed something */
    struct odds_subject ring[CHANGES_MAX];
};

static void wake(struct changes *changes)
{
    struct change_reader *reader;
    LIST_FOREACH (reader, &changes->readers, link) {
        if (!reader->listens || reader->posted)
            continue;
        reader->posted = true;
        mailbox_post(reader->mailbox, &reader->mail);
    }
}

/* On a thread of the store's. */
static void on_changed(struct odds_watch *watch, const struct odds_subject *subject)
{
    struct changes *changes = CONTAINER_OF(watch, struct changes, watch);
    uv_mutex_lock(&changes->lock);
    if (changes->listening > 0) {
        if (subject != NULL)
            changes->ring[changes->count % CHANGES_MAX] = *subject;
        changes->count++;
        if (subject == NULL)
            changes->all_before = changes->count;
        wake(changes);
    }
    uv_mutex_unlock(&changes->lock);
}

struct changes *changes_create(struct odds_store *odds)
{
    struct changes *changes = memory_alloc_zeroed(1, sizeof *changes);
    changes->watch.changed = on_changed;
    changes->odds = odds;
    LIST_INIT(&changes->readers);
    CHECK(uv_mutex_init(&changes->lock) == 0);
    odds_store_watch(odds, &changes->watch);
    return changes;
}

void changes_destroy(struct changes **changes)
{
    struct changes *mine = *changes;
    *changes = NULL;
    odds_store_watch(mine->odds, NULL);
    CHECK(LIST_EMPTY(&mine->readers));
    uv_mutex_destroy(&mine->lock);
    memory_free(mine);
}

void changes_join(struct changes *changes, struct change_reader *reader)
{
    uv_mutex_lock(&changes->lock);
    LIST_INSERT_HEAD(&changes->readers, reader, link);
    uv_mutex_unlock(&changes->lock);
}

void changes_leave(struct changes *changes, struct change_reader *reader)
{
    changes_listen(changes, reader, false);
    uv_mutex_lock(&changes->lock);
    LIST_REMOVE(reader, link);
    uv_mutex_unlock(&changes->lock);
}

void changes_listen(struct changes *changes, struct change_reader *reader, bool listens)
{
    uv_mutex_lock(&changes->lock);
    if (listens && !reader->listens) {
        reader->position = changes->count;
        changes->listening++;
    } else if (!listens && reader->listens) {
        changes->listening--;
    }
    reader->listens = listens;
    uv_mutex_unlock(&changes->lock);
}

size_t changes_take(struct changes *changes, struct change_reader *reader,
                    struct odds_subject *subjects, size_t room, bool *all)
{
    size_t count = 0;
    uv_mutex_lock(&changes->lock);
    reader->posted = false;
    *all =
        reader->listens && reader->position < changes->count &&
        (reader->position < changes->all_before || changes->count - reader->position > CHANGES_MAX);
    if (*all)
        reader->position = changes->count;
    while (reader->listens && count < room && reader->position < changes->count)
        subjects[count++] = changes->ring[reader->position++ % CHANGES_MAX];
    uv_mutex_unlock(&changes->lock);
    return count;
}
