/*
 * One lock guards the current snapshot, the counts of all of them, the retired ones and `stopping`.
 * Nothing slow happens under it.
 */
#include "stores/refresher.h"

#include <sys/resource.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"

#define AGE_MAX_MS 1000U
#define BACK_OFF_MAX_MS 1000U
#define DELAY_OVER_MS 10000U /* without a late look, before the log says that delays are over */

struct table_snapshot {
    void *table;
    uint64_t generation;
    uint32_t references;
    struct table_snapshot *next; /* retired before it */
};

struct refresher {
    struct refresher_options options;
    atomic_uint_least64_t generation;
    atomic_uint_least64_t confirmed_ms; /* monotonic; 0: never */
    atomic_uint_least64_t errors;
    atomic_bool ready; /* a table was confirmed when it was read; only the thread sets it */

    struct background thread; /* its lock guards the fields below */
    struct table_snapshot *current;
    struct table_snapshot *retired; /* not held any more */

    /* the thread's own */
    struct platform_store *store;
    uint64_t revision;
    bool read_all;       /* start from nothing: at first, and after the store was opened again */
    uint32_t failures;   /* in a row */
    uint64_t late_ms;    /* the last look that confirmed too late; 0: none since it was logged */
    uint64_t starved_ms; /* thread_starved_ms when the table was confirmed before */
    struct error logged; /* the reason that was logged, while there are failures */
};

static uint64_t after_ms(uint32_t wait_ms)
{
    return clock_monotonic_ns() + wait_ms * UINT64_C(1000000);
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static void release_locked(struct refresher *refresher, struct table_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    CHECK(snapshot->references > 0);
    if (--snapshot->references > 0)
        return;
    snapshot->next = refresher->retired;
    refresher->retired = snapshot;
}

static const void *exchange(struct refresher *refresher, struct table_hold *hold, bool take)
{
    uv_mutex_lock(&refresher->thread.lock);
    release_locked(refresher, hold->snapshot);
    hold->snapshot = take ? refresher->current : NULL;
    if (hold->snapshot != NULL)
        hold->snapshot->references++;
    uv_mutex_unlock(&refresher->thread.lock);
    hold->generation = hold->snapshot == NULL ? 0 : hold->snapshot->generation;
    return hold->snapshot == NULL ? NULL : hold->snapshot->table;
}

void refresher_release(struct refresher *refresher, struct table_hold *hold)
{
    (void)exchange(refresher, hold, false);
}

const void *refresher_newest(struct refresher *refresher, struct table_hold *hold)
{
    if (atomic_load_explicit(&refresher->generation, memory_order_acquire) != hold->generation)
        return exchange(refresher, hold, true);
    return hold->snapshot == NULL ? NULL : hold->snapshot->table;
}

const void *refresher_confirmed(struct refresher *refresher, struct table_hold *hold,
                                uint64_t now_mono_ms)
{
    /* The thread reads it before the generation: then the table that it leads to is the confirmed
     * one or a newer one. */
    uint64_t at = atomic_load_explicit(&refresher->confirmed_ms, memory_order_acquire);
    if (at == 0 || now_mono_ms > at + AGE_MAX_MS)
        return NULL;
    return refresher_newest(refresher, hold);
}

static void publish(struct refresher *refresher, void *table)
{
    struct table_snapshot *snapshot = memory_alloc_zeroed(1, sizeof *snapshot);
    snapshot->table = table;
    snapshot->references = 1;
    uv_mutex_lock(&refresher->thread.lock);
    snapshot->generation = refresher->current == NULL ? 1 : refresher->current->generation + 1;
    release_locked(refresher, refresher->current);
    refresher->current = snapshot;
    atomic_store_explicit(&refresher->generation, snapshot->generation, memory_order_release);
    uv_mutex_unlock(&refresher->thread.lock);
}

static void destroy_snapshots(struct refresher *refresher, struct table_snapshot *snapshot)
{
    while (snapshot != NULL) {
        struct table_snapshot *next = snapshot->next;
        refresher->options.destroy(snapshot->table);
        memory_free(snapshot);
        snapshot = next;
    }
}

static void destroy_retired(struct refresher *refresher)
{
    uv_mutex_lock(&refresher->thread.lock);
    struct table_snapshot *retired = refresher->retired;
    refresher->retired = NULL;
    uv_mutex_unlock(&refresher->thread.lock);
    destroy_snapshots(refresher, retired);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* One look at the store. `changed` tells whether there was anything to read. */
static enum status look(struct refresher *refresher, bool *changed, struct error *error)
{
    const struct refresher_options *options = &refresher->options;
    uint64_t began_ms = clock_monotonic_ms();
    uint64_t revision;
    refresher->read_all = refresher->read_all || refresher->store == NULL;
    enum status status = platform_store_open(&refresher->store, &options->store, error);
    if (status == STATUS_OK)
        status = options->revision(refresher->store, &revision, error);
    if (status != STATUS_OK)
        return status;
    if (revision < refresher->revision)
        refresher->read_all = true; /* an older copy was put in place */
    *changed = refresher->read_all || revision != refresher->revision;
    if (*changed) {
        void *table;
        status = options->read(options->context, refresher->store, refresher->read_all,
                               &refresher->revision, &table, error);
        if (status != STATUS_OK)
            return status;
        refresher->read_all = false;
        publish(refresher, table);
    }
    /* The thread writes it after the table: a reader of this number finds that table, or a newer
     * one. */
    atomic_store_explicit(&refresher->confirmed_ms, began_ms, memory_order_release);
    return STATUS_OK;
}

/* Says so when things go wrong, once for each reason: a second one must show beside the first. */
static void note_failure(struct refresher *refresher, enum status status, const struct error *error)
{
    relaxed_add(&refresher->errors, 1);
    if (refresher->failures++ == 0 || strcmp(error->text, refresher->logged.text) != 0) {
        log_event(refresher->options.store.log, LOG_ERROR, refresher->options.failing,
                  LOG_STRING("reason", error->text), LOG_STRING("status", status_name(status)));
        refresher->logged = *error;
    }
    if (status != STATUS_TIMEOUT) /* a busy store need not be opened again */
        platform_store_close(&refresher->store);
}

static uint32_t pause_ms(const struct refresher *refresher)
{
    uint32_t pause = refresher->options.refresh_ms;
    for (uint32_t i = 1; i < refresher->failures && pause < BACK_OFF_MAX_MS; i++)
        pause *= 2;
    return refresher->failures > 0 && pause > BACK_OFF_MAX_MS ? BACK_OFF_MAX_MS : pause;
}

static void note_recovery(struct refresher *refresher, bool first, uint64_t took_ms)
{
    const struct refresher_options *options = &refresher->options;
    if (options->recovered != NULL) /* only this thread replaces the current table */
        options->recovered(options->context, refresher->current->table, first, took_ms);
    else if (!first)
        log_event(options->store.log, LOG_INFO, options->again, LOG_INTEGER("took_ms", took_ms));
}

/* Logs the begin and the end of a time in which looks succeed, but so late that the table is out of
 * date between them. `age_ms`: of the table before, when the look had ended. */
static void note_delay(struct refresher *refresher, uint64_t age_ms, uint64_t took_ms,
                       uint64_t starved_ms)
{
    uint64_t now_ms = clock_monotonic_ms();
    bool logged = refresher->late_ms > 0;
    if (age_ms > AGE_MAX_MS) {
        refresher->late_ms = now_ms;
        if (!logged)
            log_event(refresher->options.store.log, LOG_ERROR, refresher->options.failing,
                      LOG_STRING("reason", starved_ms > age_ms / 2
                                               ? "its thread waits for a processor"
                                           : took_ms > age_ms / 2
                                               ? "the store answers too slowly"
                                               : "the process stood still: it was stopped, or "
                                                 "its memory was taken"),
                      LOG_INTEGER("took_ms", took_ms), LOG_INTEGER("starved_ms", starved_ms),
                      LOG_INTEGER("age_ms", age_ms));
    } else if (logged && now_ms - refresher->late_ms > DELAY_OVER_MS) {
        refresher->late_ms = 0;
        note_recovery(refresher, false, took_ms);
    }
}

/* Looks once; returns how long to wait until the next time. */
static uint32_t refresh(struct refresher *refresher)
{
    struct error error = {.text = ""};
    bool first = relaxed_load(&refresher->generation) == 0;
    bool changed = false;
    uint64_t before_ms = relaxed_load(&refresher->confirmed_ms);
    uint64_t began_ms = clock_monotonic_ms();
    enum status status = look(refresher, &changed, &error);
    destroy_retired(refresher);
    if (status != STATUS_OK) {
        note_failure(refresher, status, &error);
        return pause_ms(refresher);
    }
    const uint64_t now_ms = clock_monotonic_ms();
    const uint64_t took_ms = now_ms - began_ms;
    const uint64_t starved_before_ms = refresher->starved_ms;
    refresher->starved_ms = thread_starved_ms();
    if (first || refresher->failures > 0)
        note_recovery(refresher, first, took_ms);
    else if (refresher_is_ready(refresher) && refresher->options.refresh_ms < AGE_MAX_MS)
        /* The first table may take long to read. */
        note_delay(refresher, now_ms - before_ms, took_ms,
                   refresher->starved_ms - starved_before_ms);
    refresher->failures = 0;
    if (changed && took_ms > refresher->options.refresh_ms)
        return 0; /* a long reading is confirmed at once, or it would be out of date on arrival */
    atomic_store(&refresher->ready, true);
    return pause_ms(refresher);
}

static void run(void *argument)
{
    struct refresher *refresher = argument;
    /* Late by a second, all requests are refused. It is of this thread alone (setpriority(2),
     * NOTES), and in vain where neither LimitNICE= nor a capability allows it. */
    (void)setpriority(PRIO_PROCESS, 0, -10);
    while (!background_sleep(&refresher->thread, after_ms(refresh(refresher))))
        continue;
    platform_store_close(&refresher->store);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct refresher *refresher_create(const struct refresher_options *options)
{
    struct refresher *refresher = memory_alloc_zeroed(1, sizeof *refresher);
    CHECK(options->refresh_ms > 0);
    refresher->options = *options;
    background_start(&refresher->thread, options->name, run, refresher);
    return refresher;
}

void refresher_destroy(struct refresher **at)
{
    struct refresher *refresher = memory_take(at);
    if (refresher == NULL)
        return;
    background_stop(&refresher->thread); /* after it there is no lock any more */
    CHECK(refresher->current == NULL || refresher->current->references == 1);
    release_locked(refresher, refresher->current);
    destroy_snapshots(refresher, refresher->retired);
    memory_free(refresher);
}

bool refresher_is_ready(const struct refresher *refresher)
{
    return atomic_load(&refresher->ready);
}

int64_t refresher_age_ms(struct refresher *refresher)
{
    uint64_t at = atomic_load_explicit(&refresher->confirmed_ms, memory_order_acquire);
    uint64_t now = clock_monotonic_ms();
    return at == 0 ? -1 : now > at ? (int64_t)(now - at) : 0;
}

uint64_t refresher_errors(struct refresher *refresher)
{
    return relaxed_load(&refresher->errors);
}
