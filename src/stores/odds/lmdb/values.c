/*
 * Look-ups in snapshots of the values environment, and publishing. See values.h.
 *
 * Stamp and snapshot. A commit first writes the meta page, which is where mdb_env_info and thus the
 * stamp look, syncs it, and only then moves the number that a new read transaction starts from. In
 * between the stamp is ahead of what can be read, so what a read tells must carry the number of the
 * transaction that it was read in: under the newer stamp it will be asked again.
 *
 * `lock` guards the index. A snapshot is begun under it, so the index is never ahead of one; values
 * are read without it. No call waits for another's reading or commit.
 *
 * Everything that touches the map runs under odds_guard_run. A body leaves what has to be cleaned
 * up in its context; a read transaction that was interrupted is reset, so that it pins no pages.
 */
#include "stores/odds/lmdb/values.h"

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/lmdb/guard.h"

#define EPOCH_SHIFT 40 /* bits of a transaction number */
#define TRANSACTION_MASK (((uint64_t)1 << EPOCH_SHIFT) - 1)

/* ---- life ------------------------------------------------------------------------------------ */

enum status lmdb_values_open(struct lmdb_values **values, const struct lmdb_location *location,
                             uint64_t epoch, struct error *error)
{
    struct lmdb_values *opened = memory_alloc_zeroed(1, sizeof *opened);
    opened->epoch = epoch;
    CHECK(uv_mutex_init(&opened->lock) == 0);
    enum status status = lmdb_env_open(&opened->env, location, &opened->index, error);
    atomic_init(&opened->newest, opened->index.transaction);
    atomic_init(&opened->next_deadline_ms, opened->index.next_deadline_ms);
    if (status != STATUS_OK)
        lmdb_values_close(&opened);
    *values = opened;
    return status;
}

void lmdb_values_close(struct lmdb_values **values)
{
    struct lmdb_values *closing = memory_take(values);
    if (closing == NULL)
        return;
    while (closing->idle != NULL) {
        struct lmdb_view *view = closing->idle;
        closing->idle = view->next;
        lmdb_view_end(view, false);
        memory_free(view);
    }
    lmdb_env_close(&closing->env);
    lmdb_index_free(&closing->index);
    lmdb_index_free(&closing->written);
    buffer_free(&closing->expired);
    uv_mutex_destroy(&closing->lock);
    memory_free(closing);
}

/* ---- stamps ---------------------------------------------------------------------------------- */

/* A transaction as a version or a stamp; 0 stays 0. */
static uint64_t version_of(const struct lmdb_values *values, uint64_t transaction)
{
    return transaction == 0 ? 0 : values->epoch << EPOCH_SHIFT | (transaction & TRANSACTION_MASK);
}

/* Under the lock. Each process judges by its own index, so an end needs no write; the next commit
 * deletes the value. */
static void expire(struct lmdb_values *values, int64_t now_ms)
{
    size_t before = values->expired.size;
    lmdb_index_expire(&values->index, now_ms, &values->expired);
    if (values->expired.size > before)
        (void)atomic_fetch_add(&values->expiries, 1);
    atomic_store(&values->next_deadline_ms, values->index.next_deadline_ms);
}

/* Notes the values that have expired, before an answer is made of them. The index is first brought
 * up to the last commit, which may be a sign of life; without that it has to judge as it stands.
 * Costs a load while nothing expires. */
static void expire_if_due(struct lmdb_values *values)
{
    struct lmdb_lookup nothing = {.event = NULL};
    int64_t next_ms = atomic_load_explicit(&values->next_deadline_ms, memory_order_acquire);
    if (next_ms == 0 || clock_boot_ms() < next_ms)
        return;
    if (lmdb_values_look_up(values, &nothing) == STATUS_OK)
        return;
    uv_mutex_lock(&values->lock);
    expire(values, clock_boot_ms());
    uv_mutex_unlock(&values->lock);
}

void lmdb_values_take_expired(struct lmdb_values *values, struct buffer *expired)
{
    expire_if_due(values);
    uv_mutex_lock(&values->lock);
    *expired = values->expired;
    values->expired = (struct buffer){0};
    uv_mutex_unlock(&values->lock);
}

/* Both numbers only grow, so no later state has the same sum. */
static uint64_t stamp_of(struct lmdb_values *values, uint64_t transaction)
{
    return version_of(values, transaction + atomic_load(&values->expiries));
}

struct stamping {
    MDB_env *env;
    uint64_t transaction;
};

static void stamp_body(void *context)
{
    struct stamping *stamping = context;
    MDB_envinfo info;
    (void)mdb_env_info(stamping->env, &info);
    stamping->transaction = info.me_last_txnid;
}

enum status lmdb_values_stamp(struct lmdb_values *values, uint64_t *stamp)
{
    expire_if_due(values);
    /* Read first, since the stamp may grow before it is read. */
    uint64_t newest = atomic_load_explicit(&values->newest, memory_order_acquire);
    struct stamping stamping = {.env = values->env.env};
    /* An older file in the place of this one: its stamps are those of answers long replaced. */
    if (!odds_guard_run(stamp_body, &stamping) || stamping.transaction < newest)
        return STATUS_INTERNAL;
    *stamp = stamp_of(values, stamping.transaction);
    return STATUS_OK;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

struct look {
    struct lmdb_values *values;
    struct lmdb_lookup *lookup;
    struct lmdb_view *view;
    bool known; /* the index was enough */
    int result; /* of the snapshot and the index */
    enum status outcome;
};

static uint64_t writer_of(const struct lmdb_index *index, enum odds_kind kind, enum sport sport,
                          const struct event_id *event, int64_t *deadline_ms)
{
    struct lmdb_entry wanted = lmdb_entry_of(kind, sport, event, 0);
    const struct lmdb_entry *entry = lmdb_index_find(index, &wanted);
    *deadline_ms = entry == NULL ? 0 : lmdb_index_deadline(index, entry);
    return entry == NULL || *deadline_ms == LMDB_EXPIRED ? 0 : entry->transaction;
}

static void list_events(const struct lmdb_index *index, enum sport sport, struct buffer *events)
{
    for (size_t i = 0; i < lmdb_index_count(index); i++) {
        const struct lmdb_entry *entry = lmdb_index_at(index, i);
        if (entry->kind == ODDS_MARKETS && entry->sport == sport && entry->transaction != 0 &&
            lmdb_index_deadline(index, entry) != LMDB_EXPIRED)
            buffer_append(events, &entry->event, sizeof entry->event);
    }
}

/* An event's versions need no snapshot while the index is as of the last commit: the snapshot that
 * brought the index there was checked. A thread asks for them after each commit, whatever event it
 * was for. */
static bool is_known(const struct look *look)
{
    const struct lmdb_lookup *lookup = look->lookup;
    struct stamping stamping = {.env = look->values->env.env};
    if (lookup->event == NULL || lookup->read != NULL || look->values->index.transaction == 0)
        return false;
    stamp_body(&stamping);
    return stamping.transaction == look->values->index.transaction;
}

static int begin_snapshot(const struct look *look)
{
    int result = lmdb_view_begin(look->view, &look->values->env);
    if (result == 0 && look->view->transaction < atomic_load(&look->values->newest))
        result = MDB_CORRUPTED; /* an older file in the place of this one */
    if (result == 0)
        result = lmdb_index_follow(&look->values->index, look->view);
    if (result == 0)
        atomic_store_explicit(&look->values->newest, look->view->transaction, memory_order_release);
    return result;
}

static void begin_body(void *context)
{
    struct look *look = context;
    struct lmdb_lookup *lookup = look->lookup;
    struct lmdb_index *index = &look->values->index;
    int64_t now_ms = clock_boot_ms(); /* so the snapshot has every sign of life that came before */
    look->known = is_known(look);
    look->result = look->known ? 0 : begin_snapshot(look);
    if (look->result != 0)
        return;
    lookup->transaction = index->transaction;
    expire(look->values, now_ms); /* before the index is asked */
    lookup->versions.stamp = stamp_of(look->values, lookup->transaction);
    lookup->catalog = writer_of(index, ODDS_CATALOG, lookup->sport, NULL, &lookup->deadline_ms);
    if (lookup->event != NULL)
        lookup->odds =
            writer_of(index, ODDS_MARKETS, lookup->sport, lookup->event, &lookup->deadline_ms);
    if (lookup->events != NULL)
        list_events(index, lookup->sport, lookup->events);
}

static void read_body(void *context)
{
    struct look *look = context;
    look->outcome = look->lookup->read(look->lookup, look->view);
}

enum status lmdb_values_look_up(struct lmdb_values *values, struct lmdb_lookup *lookup)
{
    struct look look = {.values = values, .lookup = lookup, .outcome = STATUS_OK};
    uv_mutex_lock(&values->lock);
    look.view = values->idle;
    if (look.view != NULL)
        values->idle = look.view->next;
    else
        look.view = memory_alloc_zeroed(1, sizeof *look.view);
    bool fault = !odds_guard_run(begin_body, &look);
    uv_mutex_unlock(&values->lock);
    lookup->versions = (struct odds_versions){.stamp = lookup->versions.stamp,
                                              .catalog = version_of(values, lookup->catalog),
                                              .odds = version_of(values, lookup->odds)};
    if (!fault && look.result == 0 && lookup->read != NULL)
        fault = !odds_guard_run(read_body, &look);
    if (!look.known)
        lmdb_view_end(look.view, true);
    uv_mutex_lock(&values->lock);
    look.view->next = values->idle;
    values->idle = look.view;
    uv_mutex_unlock(&values->lock);
    enum status status = fault ? STATUS_INTERNAL : lmdb_status(&values->env, look.result);
    return status != STATUS_OK ? status : look.outcome;
}

/* ---- publishing ------------------------------------------------------------------------------ */

enum status lmdb_values_publish(struct lmdb_values *values, const struct odds_change *changes,
                                size_t count, struct error *error)
{
    const char *path = values->env.data_path;
    int result = MDB_CORRUPTED;
    enum status status = lmdb_env_write(&values->env, &values->written, changes, count, &result);
    if (status == STATUS_OK)
        return STATUS_OK;
    if (status == STATUS_TIMEOUT)
        return error_set(error, status,
                         "another process has been writing %s for too long; nothing of this was "
                         "published",
                         path);
    /* Leaves this out when the file is no longer there, which breaks the store too. */
    if (status == STATUS_MALFORMED || result == MDB_CORRUPTED || result == MDB_PAGE_NOTFOUND) {
        values->damaged = lmdb_env_in_place(&values->env);
        return error_set(error, STATUS_INTERNAL, "%s is damaged; nothing of this was published",
                         path);
    }
    return error_set(error, status, "%s%s: %s; nothing of this was published", path,
                     status == STATUS_FULL ? " is full" : "", mdb_strerror(result));
}

/* ---- copying it ------------------------------------------------------------------------------ */

struct copying {
    MDB_env *env;
    int descriptor;
    int result;
};

/* LMDB takes the writer's turn for the two meta pages alone, and the rest from a snapshot. Copies
 * without MDB_CP_COMPACT, which would give pages other numbers. */
static void copy_body(void *context)
{
    struct copying *copying = context;
    copying->result = mdb_env_copyfd2(copying->env, copying->descriptor, 0);
}

enum status lmdb_values_back_up(struct lmdb_values *values, const char *path, struct error *error)
{
    struct copying copying = {.env = values->env.env};
    copying.descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (copying.descriptor < 0)
        return error_unavailable(error, "%s: cannot be made (%s)", path, strerror(errno));
    bool fault = !odds_guard_run(copy_body, &copying);
    if (!fault && copying.result == 0 && fsync(copying.descriptor) != 0)
        copying.result = errno;
    (void)close(copying.descriptor);
    if (!fault && copying.result == 0)
        return STATUS_OK;
    (void)unlink(path); /* half a copy is none */
    if (fault)
        return error_set(error, STATUS_INTERNAL, "%s is damaged", values->env.data_path);
    return error_set(error, copying.result == ENOSPC ? STATUS_FULL : STATUS_UNAVAILABLE,
                     "%s: the copy cannot be written (%s)", path, mdb_strerror(copying.result));
}
