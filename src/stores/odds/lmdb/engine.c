/*
 * The embedded odds store: `embedded:DIR`, on LMDB. This file is its life; lmdb.h says where
 * the rest is.
 *
 * One `struct lmdb_values` is one opening of the environment. At most one is current. It is retired
 * when it faults, turns out to be broken, or is no longer what is under the path; then every call
 * says STATUS_UNAVAILABLE until the background thread has closed it and opened a new one. (Closing
 * comes first: LMDB must not have one file open twice in a process.)
 *
 * Who may touch it: a call enters a gate, looks at `values`, uses it, leaves the gate. Retiring
 * takes it out of `values`; once every gate has been seen empty after that, no call can be inside
 * any more. There are many gates so that serving threads do not fight over one counter's cache
 * line; entering and leaving is wait-free.
 *
 * The background thread tells what commits have changed (watch.c), opens, looks whether the path
 * still leads to what is open, clears the reader slots of dead processes, closes what was retired,
 * and writes interest.
 *
 * Locks, in this order: publish_lock (the publishers of this process, one at a time), lock
 * (`problem`, `stopping`, the thread's wake-up).
 */
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "stores/odds/lmdb/lmdb.h"
#include "stores/odds_engine.h"

#define TICK_MS 200
#define READER_CHECK_EVERY_MS 1000
#define OPEN_WAIT_MS 10000 /* for others who are opening the same store, when asked to open now */
#define LOOK_AGAIN_MS 2000 /* at a damaged file that has not been touched */

struct gate {
    atomic_uint inside;
    char padding[128 -
                 sizeof(atomic_uint)]; /* a cache line, and its neighbour that is fetched too */
};

struct lmdb_store {
    struct odds_store base;
    char *root;
    uint32_t timeout_ms;
    struct log *log;
    struct lmdb_interest *interest;
    struct lmdb_watch *watch;

    _Atomic(struct lmdb_values *) values; /* the current one, or NULL */
    struct gate gates[LMDB_THREADS];

    uv_mutex_t publish_lock;

    uv_mutex_t lock; /* guards what follows */
    bool stopping;
    struct lmdb_values *retired; /* to be closed; at most one, as none opens before it is gone */
    struct error problem;        /* why `values` is NULL */

    /* The background thread's (before it starts: the opener's). */
    uint64_t epoch;
    uint64_t ticked_ms;
    bool create; /* make the store when it is not there; false once it has been opened */
    uint64_t readers_checked_ms;
    bool complained; /* about `complaint` */
    struct error complaint;
    struct stat damaged; /* the file that was found damaged, so as not to walk it every time */
    uint64_t damaged_until_ms; /* 0: none was */
    struct error damage;
    struct lmdb_state last; /* of the store that was open last */

    atomic_uint_fast64_t reads;
    atomic_uint_fast64_t errors;
    atomic_uint_fast64_t opened;
    uv_thread_t thread;
};

static struct lmdb_store *lmdb_store_of(struct odds_store *store)
{
    CHECK(store->engine == &odds_engine_lmdb);
    return (struct lmdb_store *)store;
}

/* ---- gates and retiring ---------------------------------------------------------------------- */

/* Takes `values` out of use; inside a gate, or on the background thread. Of several who find it
 * broken, the first does it. */
static void retire(struct lmdb_store *store, struct lmdb_values *values, const char *why)
{
    struct lmdb_values *expected = values;
    uv_mutex_lock(&store->lock);
    if (atomic_compare_exchange_strong(&store->values, &expected, NULL)) {
        CHECK(store->retired == NULL);
        store->retired = values;
        (void)error_set(&store->problem, STATUS_UNAVAILABLE, "the odds store at %s: %s",
                        store->root, why);
        lmdb_watch_wake(store->watch);
    }
    uv_mutex_unlock(&store->lock);
}

static enum status count_error(struct lmdb_store *store, enum status status)
{
    if (status != STATUS_OK)
        (void)atomic_fetch_add_explicit(&store->errors, 1, memory_order_relaxed);
    return status;
}

/* A call: from enter, which may refuse it, to leave. */
struct use {
    struct lmdb_store *store;
    struct gate *gate;
    struct lmdb_values *values;
};

static enum status enter(struct odds_store *base, struct use *use, struct error *error)
{
    struct lmdb_store *store = lmdb_store_of(base);
    *use = (struct use){store, &store->gates[lmdb_thread_number()], NULL};
    (void)atomic_fetch_add(&use->gate->inside, 1);
    use->values = atomic_load(&store->values);
    if (use->values != NULL)
        return STATUS_OK;
    (void)atomic_fetch_sub(&use->gate->inside, 1);
    if (error != NULL) {
        uv_mutex_lock(&store->lock);
        *error = store->problem;
        uv_mutex_unlock(&store->lock);
    }
    return count_error(store, STATUS_UNAVAILABLE);
}

/* What the call answers; a broken environment is retired on the way. */
static enum status leave(struct use *use, enum status status)
{
    if (status == STATUS_INTERNAL) {
        retire(use->store, use->values, "its file is damaged");
        status = STATUS_UNAVAILABLE;
    }
    (void)atomic_fetch_sub(&use->gate->inside, 1);
    return count_error(use->store, status);
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static bool stat_data(const struct lmdb_store *store, struct stat *data)
{
    struct buffer path = {0};
    buffer_append_format(&path, "%s/values/data.mdb", store->root);
    bool there = stat(buffer_string(&path), data) == 0;
    buffer_free(&path);
    return there;
}

/* A state of the store that is older than one that was served would take odds back. Once seen it
 * stays refused: when it has caught up in numbers, it still is not what it was. */
static enum status refuse_older(struct lmdb_store *store, struct lmdb_values **values,
                                struct error *error)
{
    struct lmdb_state state = lmdb_values_state(*values);
    if (state.identity != store->last.identity || state.transaction >= store->last.transaction)
        return STATUS_OK;
    lmdb_values_close(values);
    store->last.transaction = UINT64_MAX;
    return error_set(error, STATUS_MALFORMED,
                     "the odds store at %s was replaced by an older state of itself; publish "
                     "everything in a new one, or restart this process to use it",
                     store->root);
}

static enum status open_values(struct lmdb_store *store, uint32_t wait_ms, struct error *error)
{
    struct stat data = {0};
    bool there = stat_data(store, &data);
    if (there && clock_monotonic_ms() < store->damaged_until_ms &&
        same_file(&data, &store->damaged)) {
        if (error != NULL)
            *error = store->damage;
        return STATUS_MALFORMED; /* it has not been touched since */
    }
    struct lmdb_values *values = NULL;
    struct error reason = {{0}};
    enum status status =
        lmdb_values_open(&values, store->root, store->create, store->epoch + 1, wait_ms, &reason);
    if (status == STATUS_OK)
        status = refuse_older(store, &values, &reason);
    store->damaged_until_ms = status == STATUS_MALFORMED ? clock_monotonic_ms() + LOOK_AGAIN_MS : 0;
    if (status != STATUS_OK) {
        store->damaged = data;
        store->damage = reason;
        if (error != NULL)
            *error = reason;
        return status;
    }
    store->epoch++;
    /* A store that was there and is gone has been moved, unmounted or deleted: to put an empty one
     * in its place would be to say that all is well and nothing is published. */
    store->create = false;
    (void)atomic_fetch_add(&store->opened, 1);
    if (lmdb_values_damaged(values) > 0)
        log_event(
            store->log, LOG_WARNING, "the odds store holds damaged values; publish them again",
            LOG_STRING("path", store->root), LOG_INTEGER("values", lmdb_values_damaged(values)));
    atomic_store(&store->values, values);
    return STATUS_OK;
}

/* The background's try: what is wrong is logged when it is news. */
static void try_to_open(struct lmdb_store *store)
{
    struct error error = {{0}};
    enum status status = open_values(store, store->timeout_ms, &error);
    if (status == STATUS_OK) {
        log_event(store->log, LOG_INFO, "odds store opened", LOG_STRING("path", store->root));
        store->complained = false;
        return;
    }
    uv_mutex_lock(&store->lock);
    store->problem = error;
    uv_mutex_unlock(&store->lock);
    if (store->complained && strcmp(error.text, store->complaint.text) == 0)
        return;
    log_event(store->log, LOG_ERROR, "odds store cannot be used; trying again until it can",
              LOG_STRING("reason", error.text));
    store->complaint = error;
    store->complained = true;
}

/* ---- the background thread ------------------------------------------------------------------- */

static bool gates_are_empty(struct lmdb_store *store, bool seen_empty[LMDB_THREADS])
{
    bool all = true;
    for (size_t i = 0; i < LMDB_THREADS; i++) {
        seen_empty[i] = seen_empty[i] || atomic_load(&store->gates[i].inside) == 0;
        all = all && seen_empty[i];
    }
    return all;
}

/* Waits until no call can be using what was retired, and closes it. */
static void close_retired(struct lmdb_store *store, struct lmdb_values *retired)
{
    bool seen_empty[LMDB_THREADS] = {false};
    while (!gates_are_empty(store, seen_empty))
        clock_pause_ns(200000);
    store->last = lmdb_values_state(retired);
    lmdb_values_close(&retired);
    uv_mutex_lock(&store->lock);
    store->retired = NULL;
    uv_mutex_unlock(&store->lock);
}

static void look_after(struct lmdb_store *store, struct lmdb_values *values)
{
    const char *why = NULL;
    if (lmdb_values_changed(values, &why)) {
        log_event(store->log, LOG_WARNING, "odds store has changed under its path; opening again",
                  LOG_STRING("path", store->root), LOG_STRING("reason", why));
        retire(store, values, why);
        return;
    }
    uint64_t now_ms = clock_monotonic_ms();
    if (now_ms - store->readers_checked_ms >= READER_CHECK_EVERY_MS) {
        lmdb_values_clear_dead_readers(values);
        store->readers_checked_ms = now_ms;
    }
}

static void work(struct lmdb_store *store)
{
    struct lmdb_values *values = atomic_load(&store->values);
    uint64_t now_ms = clock_monotonic_ms();
    bool tick = now_ms - store->ticked_ms >= TICK_MS;
    if (tick)
        store->ticked_ms = now_ms;
    /* Only this thread closes, so no gate is needed. */
    lmdb_watch_look(store->watch, values, store->epoch);
    if (values != NULL && tick)
        look_after(store, values);
    if (atomic_load(&store->values) != NULL)
        lmdb_interest_tick(store->interest);
    uv_mutex_lock(&store->lock); /* under which both change together */
    bool open = atomic_load(&store->values) != NULL;
    struct lmdb_values *retired = store->retired;
    uv_mutex_unlock(&store->lock);
    if (retired != NULL)
        close_retired(store, retired);
    if (!open && (tick || retired != NULL))
        try_to_open(store);
}

/* Until something has happened or the next tick; false: the end. */
static bool wait_for_work(struct lmdb_store *store)
{
    uint64_t now_ms = clock_monotonic_ms();
    uint64_t tick_ms = store->ticked_ms + TICK_MS;
    uv_mutex_lock(&store->lock);
    bool on = !store->stopping;
    bool retired = store->retired != NULL;
    uv_mutex_unlock(&store->lock);
    /* What comes after this look ends the wait. */
    if (on && !retired && tick_ms > now_ms)
        lmdb_watch_wait(store->watch, tick_ms - now_ms);
    uv_mutex_lock(&store->lock);
    on = !store->stopping;
    uv_mutex_unlock(&store->lock);
    return on;
}

static void run(void *argument)
{
    struct lmdb_store *store = argument;
    while (wait_for_work(store))
        work(store);
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct lmdb_store *create(const struct odds_store_options *options, const char *root)
{
    struct lmdb_store *store = memory_alloc_zeroed(1, sizeof *store);
    odds_store_begin(&store->base, &odds_engine_lmdb);
    store->watch = lmdb_watch_create(&store->base);
    store->root = memory_copy_string(root);
    for (size_t size = strlen(root); size > 1 && store->root[size - 1] == '/'; size--)
        store->root[size - 1] = '\0';
    store->timeout_ms = options->timeout_ms;
    store->create = options->create;
    store->log = options->log;
    store->interest = lmdb_interest_create(store->root, options->log);
    CHECK(uv_mutex_init(&store->lock) == 0);
    CHECK(uv_mutex_init(&store->publish_lock) == 0);
    return store;
}

static void destroy(struct lmdb_store *store)
{
    lmdb_interest_destroy(&store->interest);
    struct lmdb_values *values = atomic_load(&store->values);
    lmdb_values_close(&values);
    lmdb_values_close(&store->retired);
    uv_mutex_destroy(&store->publish_lock);
    uv_mutex_destroy(&store->lock);
    lmdb_watch_destroy(&store->watch);
    odds_store_end(&store->base);
    memory_free(store->root);
    memory_free(store);
}

static enum status lmdb_open(struct odds_store **store, const struct odds_store_options *options,
                             const char *directory, struct error *error)
{
    struct lmdb_store *opening = create(options, directory);
    if (options->patient) {
        try_to_open(opening);
    } else {
        enum status status = open_values(opening, OPEN_WAIT_MS, error);
        if (status != STATUS_OK) {
            destroy(opening);
            return status;
        }
    }
    thread_start(&opening->thread, "odds-store", run, opening);
    *store = &opening->base;
    return STATUS_OK;
}

static void lmdb_close(struct odds_store *base)
{
    struct lmdb_store *store = lmdb_store_of(base);
    uv_mutex_lock(&store->lock);
    store->stopping = true;
    lmdb_watch_wake(store->watch);
    uv_mutex_unlock(&store->lock);
    CHECK(uv_thread_join(&store->thread) == 0);
    destroy(store);
}

/* ---- serving --------------------------------------------------------------------------------- */

static enum status lmdb_stamp(struct odds_store *base, uint64_t *stamp)
{
    struct use use;
    enum status status = enter(base, &use, NULL);
    return status != STATUS_OK ? status : leave(&use, lmdb_values_stamp(use.values, stamp));
}

static enum status lmdb_versions(struct odds_store *base, enum sport sport,
                                 const struct event_id *event, struct odds_versions *versions)
{
    struct use use;
    enum status status = enter(base, &use, NULL);
    return status != STATUS_OK
               ? status
               : leave(&use, lmdb_values_versions(use.values, sport, event, versions));
}

static enum status lmdb_read(struct odds_store *base, struct odds_read *read)
{
    struct use use;
    enum status status = enter(base, &use, NULL);
    if (status != STATUS_OK)
        return status;
    (void)atomic_fetch_add_explicit(&use.store->reads, 1, memory_order_relaxed);
    return leave(&use, lmdb_values_read(use.values, read));
}

static enum status lmdb_ping(struct odds_store *base, enum odds_need need, struct error *error)
{
    (void)need; /* whoever has opened it may do both */
    struct use use;
    enum status status = enter(base, &use, error);
    if (status != STATUS_OK)
        return status;
    status = leave(&use, lmdb_values_ping(use.values));
    if (status != STATUS_OK)
        (void)error_set(error, status, "the odds store at %s cannot be read", use.store->root);
    return status;
}

static void lmdb_note_interest(struct odds_store *base, enum sport sport,
                               const struct event_id *event)
{
    struct lmdb_store *store = lmdb_store_of(base);
    if (lmdb_interest_note(store->interest, sport, event))
        lmdb_watch_wake(store->watch);
}

static void lmdb_facts(struct odds_store *base, struct odds_facts *facts)
{
    struct lmdb_store *store = lmdb_store_of(base);
    uint64_t opened = atomic_load(&store->opened);
    *facts = (struct odds_facts){.reopened = opened > 0 ? opened - 1 : 0,
                                 .connected = atomic_load(&store->values) != NULL};
    lmdb_interest_facts(store->interest, facts);
    facts->reads = atomic_load(&store->reads);
    facts->errors = atomic_load(&store->errors);
    struct use use;
    if (facts->connected && enter(base, &use, NULL) == STATUS_OK)
        (void)leave(&use, lmdb_values_published(use.values, facts->published_ms));
}

static int64_t lmdb_published_ms(struct odds_store *base, enum sport sport,
                                 const struct event_id *event)
{
    int64_t published_ms = 0;
    struct use use;
    if (enter(base, &use, NULL) == STATUS_OK)
        (void)leave(&use, lmdb_values_odds_published(use.values, sport, event, &published_ms));
    return published_ms;
}

/* ---- feeding --------------------------------------------------------------------------------- */

/* May wait for another process, for as long as publishing may take. */
static enum status lmdb_publish(struct odds_store *base, const struct odds_change *changes,
                                size_t count, struct error *error)
{
    struct lmdb_store *store = lmdb_store_of(base);
    struct use use;
    uv_mutex_lock(&store->publish_lock);
    enum status status = enter(base, &use, error);
    if (status == STATUS_OK) {
        status = lmdb_values_write(use.values, changes, count, error);
        /* A long-lived writer must not say that it has published where no server will look. */
        if (status == STATUS_OK && !lmdb_values_in_place(use.values))
            status = error_set(error, STATUS_UNAVAILABLE,
                               "the odds store at %s was moved or replaced while it was written",
                               store->root);
        status = leave(&use, status);
    }
    uv_mutex_unlock(&store->publish_lock);
    return status;
}

static enum status lmdb_list_interest(struct odds_store *base, enum sport sport, int64_t since_ms,
                                      struct odds_interest **list, size_t *count,
                                      struct error *error)
{
    struct use use;
    enum status status = enter(base, &use, error);
    return status != STATUS_OK ? status
                               : leave(&use, lmdb_interest_list(use.store->interest, sport,
                                                                since_ms, list, count, error));
}

static enum status lmdb_list_events(struct odds_store *base, enum sport sport,
                                    struct event_id **list, size_t *count, struct error *error)
{
    struct use use;
    enum status status = enter(base, &use, error);
    return status != STATUS_OK
               ? status
               : leave(&use, lmdb_values_list_events(use.values, sport, list, count, error));
}

static enum status lmdb_back_up(struct odds_store *base, const char *path, struct error *error)
{
    struct use use;
    enum status status = enter(base, &use, error);
    return status != STATUS_OK ? status : leave(&use, lmdb_values_back_up(use.values, path, error));
}

const struct odds_engine odds_engine_lmdb = {
    .schemes = {"embedded:"},
    .open = lmdb_open,
    .close = lmdb_close,
    .stamp = lmdb_stamp,
    .versions = lmdb_versions,
    .read = lmdb_read,
    .published_ms = lmdb_published_ms,
    .ping = lmdb_ping,
    .note_interest = lmdb_note_interest,
    .facts = lmdb_facts,
    .publish = lmdb_publish,
    .list_interest = lmdb_list_interest,
    .list_events = lmdb_list_events,
    .back_up = lmdb_back_up,
};
