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
 * takes it out of `values`; once every gate has been seen empty after that, nobody can be inside
 * any more. There are many gates so that serving threads do not fight over one counter's cache
 * line; entering and leaving is wait-free. Publishers, which may wait for another process, hold
 * publish_lock instead.
 *
 * The background thread opens, looks whether the path still leads to what is open, clears the
 * reader slots of dead processes, closes what was retired, and writes interest.
 *
 * Locks, in this order: publish_lock (a publication), lock (`problem`, `stopping`, the thread's
 * wake-up).
 */
#include <pthread.h>
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
#define GATES 64           /* a power of two */

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

    _Atomic(struct lmdb_values *) values; /* the current one, or NULL */
    struct gate gates[GATES];

    uv_mutex_t publish_lock;

    uv_mutex_t lock; /* guards what follows */
    uv_cond_t wake;
    bool stopping;
    struct lmdb_values *retired; /* to be closed; at most one, as none opens before it is gone */
    struct error problem;        /* why `values` is NULL */

    /* The background thread's (before it starts: the opener's). */
    uint64_t epoch;
    bool create; /* make the store when it is not there; false once it has been opened */
    uint64_t readers_checked_ms;
    bool complained; /* about `complaint` */
    struct error complaint;
    struct stat damaged; /* the file that was found damaged, so as not to walk it every time */
    uint64_t damaged_until_ms; /* 0: none was */
    struct error damage;
    uint64_t identity;    /* of the store that was open last; 0: none was */
    uint64_t transaction; /* its newest that was read */

    atomic_uint_fast64_t reads;
    atomic_uint_fast64_t errors;
    atomic_uint_fast64_t opened;
    uv_thread_t thread;
};

struct lmdb_reader {
    struct odds_reader base;
    uint64_t epoch; /* whose slot it is */
    struct lmdb_slot *slot;
};

static struct lmdb_store *lmdb_store_of(struct odds_store *store)
{
    CHECK(store->engine == &odds_engine_lmdb);
    return (struct lmdb_store *)store;
}

/* ---- gates and retiring ---------------------------------------------------------------------- */

static struct gate *gate_of_thread(struct lmdb_store *store)
{
    uint64_t thread = (uint64_t)pthread_self();
    return &store->gates[(thread * 0x9E3779B97F4A7C15U) >> 58];
}

static struct lmdb_values *enter(struct lmdb_store *store, struct gate **gate)
{
    *gate = gate_of_thread(store);
    (void)atomic_fetch_add(&(*gate)->inside, 1);
    return atomic_load(&store->values);
}

static void leave(struct gate *gate)
{
    (void)atomic_fetch_sub(&gate->inside, 1);
}

/* Takes `values` out of use; inside a gate or under publish_lock. Of several who find it broken,
 * the first does it. */
static void retire(struct lmdb_store *store, struct lmdb_values *values, const char *why)
{
    struct lmdb_values *expected = values;
    uv_mutex_lock(&store->lock);
    if (atomic_compare_exchange_strong(&store->values, &expected, NULL)) {
        CHECK(store->retired == NULL);
        store->retired = values;
        (void)error_set(&store->problem, STATUS_UNAVAILABLE, "the odds store at %s: %s",
                        store->root, why);
        uv_cond_signal(&store->wake);
    }
    uv_mutex_unlock(&store->lock);
}

/* What a call answers; a broken environment is retired on the way. */
static enum status finish(struct lmdb_store *store, struct lmdb_values *values, enum status status)
{
    if (status == STATUS_INTERNAL) {
        retire(store, values, "its file is damaged");
        status = STATUS_UNAVAILABLE;
    }
    if (status != STATUS_OK)
        (void)atomic_fetch_add_explicit(&store->errors, 1, memory_order_relaxed);
    return status;
}

static enum status unavailable(struct lmdb_store *store, struct error *error)
{
    (void)atomic_fetch_add_explicit(&store->errors, 1, memory_order_relaxed);
    if (error != NULL) {
        uv_mutex_lock(&store->lock);
        *error = store->problem;
        uv_mutex_unlock(&store->lock);
    }
    return STATUS_UNAVAILABLE;
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
    if (lmdb_values_identity(*values) != store->identity ||
        lmdb_values_transaction(*values) >= store->transaction)
        return STATUS_OK;
    lmdb_values_close(values);
    store->transaction = UINT64_MAX;
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

static bool gates_are_empty(struct lmdb_store *store, bool seen_empty[GATES])
{
    bool all = true;
    for (size_t i = 0; i < GATES; i++) {
        seen_empty[i] = seen_empty[i] || atomic_load(&store->gates[i].inside) == 0;
        all = all && seen_empty[i];
    }
    return all;
}

/* Waits until nobody can be using what was retired, and closes it. */
static void close_retired(struct lmdb_store *store, struct lmdb_values *retired)
{
    bool seen_empty[GATES] = {false};
    while (!gates_are_empty(store, seen_empty))
        clock_pause_ns(200000);
    uv_mutex_lock(&store->publish_lock); /* a publication that was under way has ended */
    uv_mutex_unlock(&store->publish_lock);
    store->identity = lmdb_values_identity(retired);
    store->transaction = lmdb_values_transaction(retired);
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
    lmdb_interest_tick(store->interest);
}

static void work(struct lmdb_store *store)
{
    struct lmdb_values *values = atomic_load(&store->values);
    if (values != NULL)
        look_after(store, values); /* only this thread closes, so no gate is needed */
    uv_mutex_lock(&store->lock);   /* under which both change together */
    bool open = atomic_load(&store->values) != NULL;
    struct lmdb_values *retired = store->retired;
    uv_mutex_unlock(&store->lock);
    if (retired != NULL)
        close_retired(store, retired);
    if (!open)
        try_to_open(store);
}

/* Waits for the next tick, or less when something was retired; false: the end. */
static bool wait_for_tick(struct lmdb_store *store)
{
    uint64_t until_ns = clock_monotonic_ns() + TICK_MS * UINT64_C(1000000);
    uv_mutex_lock(&store->lock);
    while (!store->stopping && store->retired == NULL &&
           condition_wait_until(&store->wake, &store->lock, until_ns)) {
    }
    bool on = !store->stopping;
    uv_mutex_unlock(&store->lock);
    return on;
}

static void run(void *argument)
{
    struct lmdb_store *store = argument;
    while (wait_for_tick(store))
        work(store);
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct lmdb_store *create(const struct odds_store_options *options, const char *root)
{
    struct lmdb_store *store = memory_alloc_zeroed(1, sizeof *store);
    store->base.engine = &odds_engine_lmdb;
    store->root = memory_copy_string(root);
    for (size_t size = strlen(root); size > 1 && store->root[size - 1] == '/'; size--)
        store->root[size - 1] = '\0';
    store->timeout_ms = options->timeout_ms;
    store->create = options->create;
    store->log = options->log;
    store->interest = lmdb_interest_create(store->root, options->log);
    CHECK(uv_cond_init(&store->wake) == 0);
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
    uv_cond_destroy(&store->wake);
    memory_free(store->root);
    memory_free(store);
}

static enum status lmdb_open(struct odds_store **store, const struct odds_store_options *options,
                             const char *place, bool patient, struct error *error)
{
    struct lmdb_store *opening = create(options, place);
    if (patient) {
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
    uv_cond_signal(&store->wake);
    uv_mutex_unlock(&store->lock);
    CHECK(uv_thread_join(&store->thread) == 0);
    destroy(store);
}

/* ---- serving --------------------------------------------------------------------------------- */

static enum status lmdb_stamp(struct odds_store *base, uint64_t *stamp)
{
    struct lmdb_store *store = lmdb_store_of(base);
    struct gate *gate;
    struct lmdb_values *values = enter(store, &gate);
    enum status status = values == NULL ? unavailable(store, NULL)
                                        : finish(store, values, lmdb_values_stamp(values, stamp));
    leave(gate);
    return status;
}

static struct odds_reader *lmdb_reader_create(struct odds_store *base)
{
    struct lmdb_reader *reader = memory_alloc_zeroed(1, sizeof *reader);
    reader->base.store = base;
    return &reader->base;
}

static void lmdb_reader_destroy(struct odds_reader *base)
{
    struct lmdb_reader *reader = (struct lmdb_reader *)base;
    struct gate *gate;
    struct lmdb_values *values = enter(lmdb_store_of(base->store), &gate);
    /* Of an older opening there is nothing to give back: it went when that was closed. */
    if (reader->slot != NULL && values != NULL && lmdb_values_epoch(values) == reader->epoch)
        lmdb_values_return_slot(values, reader->slot);
    leave(gate);
    memory_free(reader);
}

static enum status lmdb_versions(struct odds_reader *base, enum sport sport,
                                 const struct event_id *event, struct odds_versions *versions)
{
    struct lmdb_reader *reader = (struct lmdb_reader *)base;
    struct lmdb_store *store = lmdb_store_of(base->store);
    struct gate *gate;
    enum status status;
    struct lmdb_values *values = enter(store, &gate);
    if (values == NULL) {
        status = unavailable(store, NULL);
    } else {
        if (reader->epoch != lmdb_values_epoch(values)) {
            reader->slot = lmdb_values_borrow_slot(values);
            reader->epoch = lmdb_values_epoch(values);
        }
        status = finish(store, values,
                        lmdb_values_versions(values, reader->slot, sport, event, versions));
    }
    leave(gate);
    return status;
}

static enum status lmdb_read(struct odds_store *base, struct odds_read *read)
{
    struct lmdb_store *store = lmdb_store_of(base);
    struct gate *gate;
    enum status status;
    struct lmdb_values *values = enter(store, &gate);
    if (values == NULL) {
        status = unavailable(store, NULL);
    } else {
        (void)atomic_fetch_add_explicit(&store->reads, 1, memory_order_relaxed);
        struct lmdb_slot *slot = lmdb_values_borrow_slot(values);
        status = finish(store, values, lmdb_values_read(values, slot, read));
        lmdb_values_return_slot(values, slot);
    }
    leave(gate);
    return status;
}

static enum status lmdb_ping(struct odds_store *base, enum odds_need need, struct error *error)
{
    (void)need; /* whoever has opened it may do both */
    struct lmdb_store *store = lmdb_store_of(base);
    struct gate *gate;
    enum status status;
    struct lmdb_values *values = enter(store, &gate);
    if (values == NULL) {
        status = unavailable(store, error);
    } else {
        struct lmdb_slot *slot = lmdb_values_borrow_slot(values);
        status = finish(store, values, lmdb_values_ping(values, slot));
        lmdb_values_return_slot(values, slot);
        if (status != STATUS_OK)
            (void)error_set(error, status, "the odds store at %s cannot be read", store->root);
    }
    leave(gate);
    return status;
}

static void lmdb_note_interest(struct odds_store *base, enum sport sport,
                               const struct event_id *event)
{
    lmdb_interest_note(lmdb_store_of(base)->interest, sport, event);
}

static void lmdb_facts(struct odds_store *base, struct odds_facts *facts)
{
    struct lmdb_store *store = lmdb_store_of(base);
    uint64_t opened = atomic_load(&store->opened);
    *facts = (struct odds_facts){.reads = atomic_load(&store->reads),
                                 .errors = atomic_load(&store->errors),
                                 .reopened = opened > 0 ? opened - 1 : 0,
                                 .connected = atomic_load(&store->values) != NULL};
    lmdb_interest_facts(store->interest, facts);
    struct gate *gate;
    struct lmdb_values *values = enter(store, &gate);
    if (values != NULL) {
        struct lmdb_slot *slot = lmdb_values_borrow_slot(values);
        if (finish(store, values, lmdb_values_published(values, slot, facts->published_ms)) !=
            STATUS_OK)
            memset(facts->published_ms, 0, sizeof facts->published_ms);
        lmdb_values_return_slot(values, slot);
    }
    leave(gate);
}

/* ---- feeding --------------------------------------------------------------------------------- */

static enum status lmdb_publish(struct odds_store *base, const struct odds_change *changes,
                                size_t count, struct error *error)
{
    struct lmdb_store *store = lmdb_store_of(base);
    uv_mutex_lock(&store->publish_lock);
    struct lmdb_values *values = atomic_load(&store->values);
    enum status status =
        values == NULL ? unavailable(store, error)
                       : finish(store, values, lmdb_values_publish(values, changes, count, error));
    uv_mutex_unlock(&store->publish_lock);
    return status;
}

static enum status lmdb_withdraw_sport(struct odds_store *base, enum sport sport,
                                       struct error *error)
{
    struct lmdb_store *store = lmdb_store_of(base);
    uv_mutex_lock(&store->publish_lock);
    struct lmdb_values *values = atomic_load(&store->values);
    enum status status =
        values == NULL ? unavailable(store, error)
                       : finish(store, values, lmdb_values_withdraw_sport(values, sport, error));
    uv_mutex_unlock(&store->publish_lock);
    return status;
}

static enum status lmdb_list_interest(struct odds_store *base, enum sport sport, int64_t since_ms,
                                      struct odds_interest **list, size_t *count,
                                      struct error *error)
{
    struct lmdb_store *store = lmdb_store_of(base);
    if (atomic_load(&store->values) == NULL)
        return unavailable(store, error);
    return lmdb_interest_list(store->interest, sport, since_ms, list, count, error);
}

static enum status lmdb_list_events(struct odds_store *base, enum sport sport,
                                    struct event_id **list, size_t *count, struct error *error)
{
    struct lmdb_store *store = lmdb_store_of(base);
    struct gate *gate;
    enum status status;
    struct lmdb_values *values = enter(store, &gate);
    if (values == NULL) {
        status = unavailable(store, error);
    } else {
        struct lmdb_slot *slot = lmdb_values_borrow_slot(values);
        status =
            finish(store, values, lmdb_values_list_events(values, slot, sport, list, count, error));
        lmdb_values_return_slot(values, slot);
    }
    leave(gate);
    return status;
}

const struct odds_engine odds_engine_lmdb = {
    .scheme = "embedded:",
    .open = lmdb_open,
    .close = lmdb_close,
    .stamp = lmdb_stamp,
    .reader_create = lmdb_reader_create,
    .reader_destroy = lmdb_reader_destroy,
    .versions = lmdb_versions,
    .read = lmdb_read,
    .ping = lmdb_ping,
    .note_interest = lmdb_note_interest,
    .facts = lmdb_facts,
    .publish = lmdb_publish,
    .withdraw_sport = lmdb_withdraw_sport,
    .list_interest = lmdb_list_interest,
    .list_events = lmdb_list_events,
};
