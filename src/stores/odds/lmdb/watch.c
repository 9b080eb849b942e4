/*
 * Noticing a commit, and reporting what it has changed. See watch.h.
 *
 * The kernel says that the data file was written, which the last write of a commit does once the
 * stamp has moved. Each commit's list of changes (records.h) is read once. When lists are missing,
 * because more than LMDB_RING commits followed each other, everything is reported as changed.
 *
 * Between a commit's last write and the moment from which it can be read lies an instant
 * (values.c). A look that comes then is repeated, for a while: a writer that is killed in that
 * instant leaves it so until the next commit. Where files cannot be watched, the thread's own pace
 * is left.
 */
#include "stores/odds/lmdb/watch.h"

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds_engine.h"

#define BEHIND_MS 1
#define BEHIND_LOOKS 100U

struct lmdb_watch {
    struct odds_store *store;
    void *owner;
    void (*due)(void *owner);
    uv_fs_event_t file; /* the data file */
    uv_timer_t again;   /* the next look, while a commit cannot be read yet */
    uv_timer_t expiry;  /* the next look, when a value expires */
    unsigned behind_looks;
    uint64_t epoch;        /* of the opening that was looked at; 0: none */
    uint64_t seen;         /* the last transaction that was reported */
    uint64_t seen_stamp;   /* as a stamp */
    struct buffer changes; /* of struct lmdb_entry */
    bool all;              /* the changes are not known */
};

struct lmdb_watch *lmdb_watch_create(struct odds_store *store, uv_loop_t *loop, void *owner,
                                     void (*due)(void *owner))
{
    struct lmdb_watch *watch = memory_alloc_zeroed(1, sizeof *watch);
    watch->store = store;
    watch->owner = owner;
    watch->due = due;
    CHECK(uv_fs_event_init(loop, &watch->file) == 0);
    watch->file.data = watch;
    clock_make_timer(loop, &watch->again, watch);
    clock_make_timer(loop, &watch->expiry, watch);
    return watch;
}

void lmdb_watch_close(struct lmdb_watch *watch)
{
    uv_close((uv_handle_t *)&watch->file, NULL);
    uv_close((uv_handle_t *)&watch->again, NULL);
    uv_close((uv_handle_t *)&watch->expiry, NULL);
}

void lmdb_watch_destroy(struct lmdb_watch **watch)
{
    buffer_free(&(*watch)->changes);
    memory_free(*watch);
    *watch = NULL;
}

/* ---- looking --------------------------------------------------------------------------------- */

static void on_written(uv_fs_event_t *file, const char *name, int events, int status)
{
    const struct lmdb_watch *watch = file->data;
    (void)name;
    (void)events;
    (void)status;
    watch->due(watch->owner);
}

static void on_again(uv_timer_t *timer)
{
    const struct lmdb_watch *watch = timer->data;
    watch->due(watch->owner);
}

/* Values whose time was only extended by this commit are as they were. */
static void drop_renewals(struct buffer *changes, size_t from, uint64_t commit)
{
    size_t count, kept = from;
    struct lmdb_entry *entries = lmdb_entries(changes, &count);
    for (size_t i = from; i < count; i++)
        if ((entries[i].transaction & LMDB_UNTIL) == 0 ||
            (entries[i].transaction & ~LMDB_UNTIL) == commit)
            entries[kept++] = entries[i];
    changes->size = kept * sizeof *entries;
}

/* Call it in a guarded body. */
static enum status read_changes(struct lmdb_lookup *lookup, const struct lmdb_view *view)
{
    struct lmdb_watch *watch = lookup->context;
    for (uint64_t next = watch->seen + 1; next <= view->transaction && !watch->all; next++) {
        size_t from = watch->changes.size / sizeof(struct lmdb_entry);
        watch->all = view->transaction - next >= LMDB_RING ||
                     lmdb_changes_read(view, next, &watch->changes) != 0;
        drop_renewals(&watch->changes, from, next);
    }
    return STATUS_OK;
}

/* Counts what has expired, and reports it like a change. */
static void add_expired(struct lmdb_watch *watch, struct lmdb_values *values)
{
    struct buffer expired;
    size_t count;
    lmdb_values_take_expired(values, &expired);
    const struct lmdb_entry *entries = lmdb_entries(&expired, &count);
    for (size_t i = 0; i < count; i++)
        odds_store_count_expired(watch->store, (enum sport)entries[i].sport, 1);
    buffer_append(&watch->changes, expired.data, expired.size);
    buffer_free(&expired);
    int64_t next_ms = atomic_load(&values->next_deadline_ms);
    int64_t left_ms = next_ms - clock_boot_ms();
    if (next_ms != 0)
        CHECK(uv_timer_start(&watch->expiry, on_again, left_ms > 0 ? (uint64_t)left_ms : 0, 0) ==
              0);
}

static void report(const struct lmdb_watch *watch)
{
    struct buffer subjects = {0};
    size_t count;
    const struct lmdb_entry *entries = lmdb_entries(&watch->changes, &count);
    for (size_t i = 0; i < count && !watch->all; i++) {
        struct odds_subject subject = {(enum odds_kind)entries[i].kind,
                                       (enum sport)entries[i].sport, entries[i].event};
        buffer_append(&subjects, &subject, sizeof subject);
    }
    /* Together: the first report wakes the threads that wait for it, on this processor perhaps. */
    if (watch->all || subjects.size > 0)
        odds_store_tell(watch->store, (const struct odds_subject *)(void *)subjects.data,
                        subjects.size / sizeof(struct odds_subject));
    buffer_free(&subjects);
}

static void note_behind(struct lmdb_watch *watch, bool behind)
{
    watch->behind_looks = behind ? watch->behind_looks + 1 : 0;
    if (behind && watch->behind_looks < BEHIND_LOOKS)
        CHECK(uv_timer_start(&watch->again, on_again, BEHIND_MS, 0) == 0);
}

/* Starts over: with these values, or, when they are NULL, with none. */
static void follow(struct lmdb_watch *watch, struct lmdb_values *values, uint64_t epoch)
{
    watch->seen = 0;
    watch->seen_stamp = 0;
    /* Watched before it is looked at, or a commit in between would go unnoticed. */
    (void)uv_fs_event_stop(&watch->file);
    if (values != NULL)
        (void)uv_fs_event_start(&watch->file, on_written, values->env.data_path, 0);
    watch->epoch = epoch;
    watch->all = true;
}

/* Is a process committing something newer, which cannot be read yet? */
static bool look(struct lmdb_watch *watch, struct lmdb_values *values)
{
    struct lmdb_lookup lookup = {.read = read_changes, .context = watch};
    uint64_t stamp;
    if (lmdb_values_stamp(values, &stamp) != STATUS_OK)
        return false; /* the tick finds out why */
    if (stamp == watch->seen_stamp)
        return false; /* and no snapshot is needed to know it */
    if (lmdb_values_look_up(values, &lookup) != STATUS_OK) {
        watch->all = true;
        return false;
    }
    watch->seen = lookup.transaction;
    watch->seen_stamp = lookup.versions.stamp;
    return stamp > watch->seen_stamp;
}

void lmdb_watch_look(struct lmdb_watch *watch, struct lmdb_values *values, uint64_t epoch)
{
    if (values == NULL || !odds_store_is_watched(watch->store)) {
        if (watch->epoch != 0)
            follow(watch, NULL, 0);
        if (values != NULL)
            add_expired(watch, values);
        buffer_clear(&watch->changes);
        note_behind(watch, false);
        return;
    }
    buffer_clear(&watch->changes);
    watch->all = false;
    if (watch->epoch != epoch)
        follow(watch, values, epoch);
    note_behind(watch, look(watch, values));
    add_expired(watch, values);
    report(watch);
}
