/*
 * The embedded store's life. See store.h.
 *
 * One `struct lmdb_values` is one opening of the environment. At most one is current. It is retired
 * when it faults, turns out to be broken, or is no longer what is under the path; then every call
 * says STATUS_UNAVAILABLE until the background thread has closed it and opened a new one. (Closing
 * comes first: LMDB must not have one file open twice in a process.)
 *
 * A call enters a gate, looks at `values`, uses it, leaves the gate. Retiring
 * takes it out of `values`; once every gate has been seen empty after that, no call can be inside
 * any more. There are many gates so that serving threads do not fight over one counter's cache
 * line; entering and leaving is wait-free.
 *
 * The background thread reports what commits have changed (watch.c), opens, looks whether the path
 * still leads to what is open, closes what was retired, and writes interest.
 *
 * Locks, in this order: publish_lock (the publishers of this process, one at a time), lock
 * (`retired`, `problem`).
 */
#include "stores/odds/lmdb/store.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "stores/odds/lmdb/watch.h"

#define TICK_MS 200
#define INTEREST_MS 20 /* between two writes of interest */
#define GATES 64U
#define OPEN_WAIT_MS 10000 /* for others who are opening the same store, when asked to open now */

struct lmdb_gate {
    atomic_uint inside;
    char padding[128 -
                 sizeof(atomic_uint)]; /* a cache line, and its neighbour that is fetched too */
};

struct lmdb_store {
    struct odds_store base;
    struct lmdb_location location; /* owns its root; `create` ends with the first opening */
    uint32_t timeout_ms;
    struct log *log;
    struct lmdb_interest *interest;
    struct lmdb_watch *watch;

    _Atomic(struct lmdb_values *) values; /* the current one, or NULL */
    struct lmdb_gate gates[GATES];

    uv_mutex_t publish_lock;

    uv_mutex_t lock;             /* guards what follows */
    struct lmdb_values *retired; /* to be closed; at most one, as none opens before it is gone */
    struct error problem;        /* why `values` is NULL */

    /* The background thread's (before it starts: the opener's). */
    uint64_t epoch;
    bool complained; /* about `problem`, of an opening */

    atomic_uint_fast64_t opened;
    uv_loop_t loop; /* the background thread's, as the next four */
    uv_timer_t tick;
    uv_timer_t pace;
    uv_async_t wake;
    uint64_t interest_written_ms;
    atomic_bool stopping;
    uv_thread_t thread;
};

static struct lmdb_store *lmdb_store_of(struct odds_store *store)
{
    return (struct lmdb_store *)store;
}

/* ---- gates and retiring ---------------------------------------------------------------------- */

/* Few threads share one. */
static struct lmdb_gate *gate_of_thread(struct lmdb_store *store)
{
    return &store->gates[((uint64_t)pthread_self() * 0x9E3779B97F4A7C15U) >> 58];
}

/* Takes `values` out of use; inside a gate, or on the background thread. When several threads find
 * it broken, the first one does it. */
static void retire(struct lmdb_store *store, struct lmdb_values *values, const char *why)
{
    struct lmdb_values *expected = values;
    uv_mutex_lock(&store->lock);
    if (atomic_compare_exchange_strong(&store->values, &expected, NULL)) {
        CHECK(store->retired == NULL);
        store->retired = values;
        (void)error_set(&store->problem, STATUS_UNAVAILABLE, "the odds store at %s: %s",
                        store->location.root, why);
        CHECK(uv_async_send(&store->wake) == 0);
    }
    uv_mutex_unlock(&store->lock);
}

enum status lmdb_store_enter(struct odds_store *base, struct lmdb_use *use, struct error *error)
{
    struct lmdb_store *store = lmdb_store_of(base);
    *use = (struct lmdb_use){store, gate_of_thread(store), NULL, store->interest,
                             store->location.root};
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
    return STATUS_UNAVAILABLE;
}

enum status lmdb_store_leave(struct lmdb_use *use, enum status status)
{
    if (status == STATUS_INTERNAL) {
        retire(use->store, use->values, "its file is damaged");
        status = STATUS_UNAVAILABLE;
    }
    (void)atomic_fetch_sub(&use->gate->inside, 1);
    return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

static enum status open_values(struct lmdb_store *store, uint32_t wait_ms, struct error *error)
{
    struct lmdb_values *values = NULL;
    store->location.wait_ms = wait_ms;
    enum status status = lmdb_values_open(&values, &store->location, store->epoch + 1, error);
    store->location.damaged = false; /* the next opening finds another store, or looks again */
    if (status != STATUS_OK)
        return status;
    store->epoch++;
    /* A store that was there and is gone has been moved, unmounted or deleted: to put an empty one
     * in its place would be to say that all is well and nothing is published. */
    store->location.create = false;
    (void)atomic_fetch_add(&store->opened, 1);
    const char *damage = values->env.damage.text;
    if (damage[0] != '\0') {
        (void)error_set(error, STATUS_OK,
                        "%s; it was set aside as %s/values.damaged: publish everything again",
                        damage, store->location.root);
        log_event(store->log, LOG_ERROR, "a new odds store was begun in the place of another",
                  LOG_STRING("reason", error->text));
    }
    atomic_store(&store->values, values);
    return STATUS_OK;
}

/* The background's try: each new reason is logged once. */
static void try_to_open(struct lmdb_store *store)
{
    struct error error = {{0}};
    enum status status = open_values(store, store->timeout_ms, &error);
    if (status == STATUS_OK) {
        log_event(store->log, LOG_INFO, "odds store opened",
                  LOG_STRING("path", store->location.root));
        store->complained = false;
        return;
    }
    uv_mutex_lock(&store->lock);
    bool news = !store->complained || strcmp(error.text, store->problem.text) != 0;
    store->problem = error;
    uv_mutex_unlock(&store->lock);
    if (news)
        log_event(store->log, LOG_ERROR, "odds store cannot be used; trying again until it can",
                  LOG_STRING("reason", error.text));
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

/* Waits until no call can be using what was retired, and closes it. */
static void close_retired(struct lmdb_store *store, struct lmdb_values *retired)
{
    bool seen_empty[GATES] = {false};
    while (!gates_are_empty(store, seen_empty))
        clock_pause_ns(200000);
    store->location.identity = retired->env.identity;
    store->location.transaction = atomic_load(&retired->newest);
    store->location.damaged = retired->damaged;
    lmdb_values_close(&retired);
    uv_mutex_lock(&store->lock);
    store->retired = NULL;
    uv_mutex_unlock(&store->lock);
}

static void check_place(struct lmdb_store *store, struct lmdb_values *values)
{
    uint64_t stamp;
    const char *why = !lmdb_env_in_place(&values->env) ? "another store, or none, is there now"
                      : lmdb_values_stamp(values, &stamp) != STATUS_OK
                          ? "its file was cut short or overwritten by an older one"
                          : NULL;
    if (why == NULL)
        return;
    log_event(store->log, LOG_WARNING, "odds store has changed under its path; opening again",
              LOG_STRING("path", store->location.root), LOG_STRING("reason", why));
    retire(store, values, why);
}

static void on_pace(uv_timer_t *timer);

/* The first note is written at once, those that follow it within a few milliseconds together. */
static void write_interest(struct lmdb_store *store)
{
    uint64_t now_ms = clock_loop_ms(&store->loop);
    uint64_t next_ms = store->interest_written_ms + INTEREST_MS;
    if (atomic_load(&store->values) == NULL)
        return;
    if (now_ms < next_ms) {
        if (!uv_is_active((uv_handle_t *)&store->pace))
            CHECK(uv_timer_start(&store->pace, on_pace, next_ms - now_ms, 0) == 0);
        return;
    }
    store->interest_written_ms = now_ms;
    lmdb_interest_write(store->interest);
}

static void on_pace(uv_timer_t *timer)
{
    write_interest(timer->data);
}

/* The reasons for which the background thread works. */
enum reason { COMMIT, WAKE, TICK };

static void work(struct lmdb_store *store, enum reason reason)
{
    bool tick = reason == TICK;
    struct lmdb_values *values = atomic_load(&store->values);
    /* Only this thread closes, so no gate is needed. */
    lmdb_watch_look(store->watch, values, store->epoch);
    if (values != NULL && tick)
        check_place(store, values);
    if (reason != COMMIT)
        write_interest(store);
    uv_mutex_lock(&store->lock); /* under which both change together */
    bool open = atomic_load(&store->values) != NULL;
    struct lmdb_values *retired = store->retired;
    uv_mutex_unlock(&store->lock);
    if (retired != NULL)
        close_retired(store, retired);
    if (!open && (tick || retired != NULL))
        try_to_open(store);
}

static void on_tick(uv_timer_t *timer)
{
    work(timer->data, TICK);
}

static void on_due(void *owner)
{
    work(owner, COMMIT);
}

static void on_wake(uv_async_t *wake)
{
    struct lmdb_store *store = wake->data;
    if (atomic_load(&store->stopping))
        uv_stop(&store->loop);
    else
        work(store, WAKE);
}

static void run(void *argument)
{
    struct lmdb_store *store = argument;
    CHECK(uv_timer_start(&store->tick, on_tick, 0, TICK_MS) == 0);
    (void)uv_run(&store->loop, UV_RUN_DEFAULT);
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct lmdb_store *create(const struct odds_store_options *options, const char *root)
{
    struct lmdb_store *store = memory_alloc_zeroed(1, sizeof *store);
    odds_store_begin(&store->base);
    CHECK(uv_loop_init(&store->loop) == 0);
    clock_make_timer(&store->loop, &store->tick, store);
    clock_make_timer(&store->loop, &store->pace, store);
    CHECK(uv_async_init(&store->loop, &store->wake, on_wake) == 0);
    store->wake.data = store;
    store->watch = lmdb_watch_create(&store->base, &store->loop, store, on_due);
    char *path = memory_copy_string(root);
    for (size_t size = strlen(path); size > 1 && path[size - 1] == '/'; size--)
        path[size - 1] = '\0';
    store->location = (struct lmdb_location){
        .root = path, .create = options->create, .renew = options->create || options->patient};
    store->timeout_ms = options->timeout_ms;
    store->log = options->log;
    store->interest = lmdb_interest_create(&store->base, path, options->log);
    CHECK(uv_mutex_init(&store->lock) == 0);
    CHECK(uv_mutex_init(&store->publish_lock) == 0);
    return store;
}

static void destroy(struct lmdb_store *store)
{
    lmdb_interest_destroy(&store->interest);
    uv_close((uv_handle_t *)&store->tick, NULL);
    uv_close((uv_handle_t *)&store->pace, NULL);
    uv_close((uv_handle_t *)&store->wake, NULL);
    lmdb_watch_close(store->watch);
    CHECK(uv_run(&store->loop, UV_RUN_DEFAULT) == 0 && uv_loop_close(&store->loop) == 0);
    struct lmdb_values *values = atomic_load(&store->values);
    lmdb_values_close(&values);
    lmdb_values_close(&store->retired);
    uv_mutex_destroy(&store->publish_lock);
    uv_mutex_destroy(&store->lock);
    lmdb_watch_destroy(&store->watch);
    odds_store_end(&store->base);
    memory_free((char *)(uintptr_t)store->location.root);
    memory_free(store);
}

enum status lmdb_store_open(struct odds_store **store, const struct odds_store_options *options,
                            const char *root, struct error *error)
{
    struct lmdb_store *opening = create(options, root);
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

void lmdb_store_close(struct odds_store *base)
{
    struct lmdb_store *store = lmdb_store_of(base);
    atomic_store(&store->stopping, true);
    CHECK(uv_async_send(&store->wake) == 0);
    CHECK(uv_thread_join(&store->thread) == 0);
    destroy(store);
}

/* ---- interest, facts and publishing ---------------------------------------------------------- */

void lmdb_store_wake(struct odds_store *base)
{
    CHECK(uv_async_send(&lmdb_store_of(base)->wake) == 0);
}

void lmdb_store_facts(struct odds_store *base, struct odds_facts *facts)
{
    struct lmdb_store *store = lmdb_store_of(base);
    uint64_t opened = atomic_load(&store->opened);
    facts->reopened = opened > 0 ? opened - 1 : 0;
    facts->connected = atomic_load(&store->values) != NULL;
}

enum status lmdb_store_publish(struct odds_store *base, const struct odds_change *changes,
                               size_t count, struct error *error)
{
    struct lmdb_store *store = lmdb_store_of(base);
    struct lmdb_use use;
    uv_mutex_lock(&store->publish_lock);
    enum status status = lmdb_store_enter(base, &use, error);
    if (status == STATUS_OK) {
        status = lmdb_values_publish(use.values, changes, count, error);
        /* A long-lived writer must not say that it has published where no server will look. */
        if (status == STATUS_OK && !lmdb_env_in_place(&use.values->env))
            status = error_unavailable(
                error, "the odds store at %s was moved or replaced while it was written",
                store->location.root);
        status = lmdb_store_leave(&use, status);
    }
    uv_mutex_unlock(&store->publish_lock);
    return status;
}
