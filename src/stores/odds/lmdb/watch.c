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

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/memory.h"
#include "stores/odds_engine.h"

#define BEHIND_MS 1
#define BEHIND_LOOKS 100U

struct lmdb_watch {
    struct odds_store *store;
    int wake;       /* eventfd */
    int inotify;    /* -1: there is none */
    int file;       /* the data file, as inotify calls it; -1: not watched */
    uint64_t epoch; /* of the opening that was looked at; 0: none */
    bool behind;
    unsigned behind_looks;
    uint64_t seen;         /* the last transaction that was reported */
    uint64_t seen_stamp;   /* as a stamp */
    struct buffer changes; /* of struct lmdb_entry */
    bool all;              /* the changes are not known */
};

struct lmdb_watch *lmdb_watch_create(struct odds_store *store)
{
    struct lmdb_watch *watch = memory_alloc_zeroed(1, sizeof *watch);
    watch->store = store;
    watch->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CHECK(watch->wake >= 0);
    watch->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    watch->file = -1;
    return watch;
}

void lmdb_watch_destroy(struct lmdb_watch **watch)
{
    struct lmdb_watch *mine = *watch;
    *watch = NULL;
    (void)close(mine->wake);
    if (mine->inotify >= 0)
        (void)close(mine->inotify);
    buffer_free(&mine->changes);
    memory_free(mine);
}

/* ---- waiting --------------------------------------------------------------------------------- */

void lmdb_watch_wake(struct lmdb_watch *watch)
{
    const uint64_t one = 1;
    /* It fails only when it has been woken more often than can be counted. */
    if (write(watch->wake, &one, sizeof one) < 0)
        return;
}

/* Any number of reports is one reason to look. */
static void empty(int descriptor)
{
    _Alignas(struct inotify_event) char bytes[4096];
    ssize_t size;
    do
        size = read(descriptor, bytes, sizeof bytes);
    while (size == (ssize_t)sizeof bytes || (size < 0 && errno == EINTR));
}

void lmdb_watch_wait(struct lmdb_watch *watch, uint64_t ms)
{
    struct pollfd descriptors[] = {{.fd = watch->wake, .events = POLLIN},
                                   {.fd = watch->inotify, .events = POLLIN}};
    if (watch->behind && ms > BEHIND_MS)
        ms = BEHIND_MS;
    if (poll(descriptors, 2, (int)ms) <= 0)
        return;
    if ((descriptors[0].revents & POLLIN) != 0)
        empty(watch->wake);
    if ((descriptors[1].revents & POLLIN) != 0)
        empty(watch->inotify);
}

/* ---- looking --------------------------------------------------------------------------------- */

static void watch_file(struct lmdb_watch *watch, const char *path)
{
    if (watch->inotify < 0)
        return;
    if (watch->file >= 0)
        (void)inotify_rm_watch(watch->inotify, watch->file);
    watch->file = path == NULL ? -1 : inotify_add_watch(watch->inotify, path, IN_MODIFY);
}

/* In a guarded body. */
static enum status read_changes(struct lmdb_lookup *lookup, const struct lmdb_view *view)
{
    struct lmdb_watch *watch = lookup->context;
    for (uint64_t next = watch->seen + 1; next <= view->transaction && !watch->all; next++)
        watch->all = view->transaction - next >= LMDB_RING ||
                     lmdb_changes_read(view, next, &watch->changes) != 0;
    return STATUS_OK;
}

static void report(const struct lmdb_watch *watch)
{
    struct lmdb_entry entry;
    if (watch->all) {
        odds_store_tell(watch->store, NULL);
        return;
    }
    for (size_t at = 0; at < watch->changes.size; at += sizeof entry) {
        memcpy(&entry, watch->changes.data + at, sizeof entry);
        struct odds_subject subject = {(enum odds_kind)entry.kind, (enum sport)entry.sport,
                                       entry.event};
        odds_store_tell(watch->store, &subject);
    }
}

static void note_behind(struct lmdb_watch *watch, bool behind)
{
    watch->behind_looks = behind ? watch->behind_looks + 1 : 0;
    watch->behind = behind && watch->behind_looks < BEHIND_LOOKS;
}

/* Starts over: with these values, or, when they are NULL, with none. */
static void follow(struct lmdb_watch *watch, struct lmdb_values *values, uint64_t epoch)
{
    watch->seen = 0;
    watch->seen_stamp = 0;
    /* Watched before it is looked at, or a commit in between would go unnoticed. */
    watch_file(watch, values == NULL ? NULL : values->env.data_path);
    watch->epoch = epoch;
    watch->all = true;
}

/* Whether something newer is being committed, which cannot be read yet. */
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
        note_behind(watch, false);
        return;
    }
    buffer_clear(&watch->changes);
    watch->all = false;
    if (watch->epoch != epoch)
        follow(watch, values, epoch);
    note_behind(watch, look(watch, values));
    report(watch);
}
