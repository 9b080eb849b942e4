/* A list of changes for each reader, under one lock; see changes.h. */
#include "sports/changes.h"

#include "base/memory.h"

#define CHANGES_MAX 8192U /* a reader with more of them looks at everything */

struct changes {
    struct odds_watch watch;
    struct odds_store *odds;
    uv_mutex_t lock; /* guards the list, and what the readers have of changes.c */
    LIST_HEAD(, change_reader) readers;
};

static void note(struct change_reader *reader, const struct odds_subject *subjects, size_t count)
{
    if (count > 0 && !reader->all && reader->list.size / sizeof *subjects + count <= CHANGES_MAX) {
        buffer_append(&reader->list, subjects, count * sizeof *subjects);
    } else {
        reader->all = true;
        buffer_free(&reader->list);
    }
    if (!reader->posted)
        mailbox_post(reader->mailbox, &reader->mail);
    reader->posted = true;
}

/* Runs on a thread of the store's. */
static void on_changed(struct odds_watch *watch, const struct odds_subject *subjects, size_t count)
{
    struct changes *changes = CONTAINER_OF(watch, struct changes, watch);
    struct change_reader *reader;
    uv_mutex_lock(&changes->lock);
    LIST_FOREACH (reader, &changes->readers, link)
        note(reader, subjects, count);
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
    struct changes *mine = memory_take(changes);
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
    uv_mutex_lock(&changes->lock);
    LIST_REMOVE(reader, link);
    reader->all = false;
    buffer_free(&reader->list);
    uv_mutex_unlock(&changes->lock);
}

bool changes_take(struct changes *changes, struct change_reader *reader, struct buffer *list)
{
    uv_mutex_lock(&changes->lock);
    bool all = reader->all;
    *list = reader->list;
    reader->list = (struct buffer){0};
    reader->all = false;
    reader->posted = false;
    uv_mutex_unlock(&changes->lock);
    return all;
}
