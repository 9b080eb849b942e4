/*
 * Counters only grow. The writer thread notes beside each counter how much it has taken. A serving
 * thread publishes a new customer's row by raising its count of rows; only it uses the index that
 * finds rows. So neither thread waits for the other.
 *
 * Taken counts wait as rows for the store. Rows of several threads with one key are merged before
 * they are written.
 */
#include "usage/usage.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "base/threads.h"
#include "stores/platform_sums.h"

#define SUMS_LOOK_MS 1000 /* at whether this many entries have come: */
#define SUMS_LEAST 4096

struct usage_row {
    char customer_id[CUSTOMER_ID_SIZE];
    metrics_cell counted[USAGE_GROUP_COUNT][USAGE_CLASS_COUNT]; /* the serving thread's */
    uint64_t taken[USAGE_GROUP_COUNT][USAGE_CLASS_COUNT];       /* the writer's */
};

struct usage_thread {
    struct usage_row **rows; /* room for all; the first counts all further customers */
    atomic_size_t count;     /* rows that the writer may read */
    /* The serving thread's: */
    uint32_t *slots; /* by hash; 0: empty; else a place in `rows` */
    size_t slot_count;
    uint64_t seed;
};

struct usage {
    struct platform_store_options store;
    uint32_t period_ms;
    size_t thread_count;
    struct usage_thread *threads;
    atomic_bool stopping;
    struct background writer;
    /* The writer's: */
    struct platform_store *open;  /* NULL: not opened yet */
    int64_t day;                  /* the day of the counts until they are taken */
    struct usage_record *waiting; /* room for all, whose pages are taken as they are used */
    size_t waiting_count;
    bool failing, conduct_failing; /* and it is logged */
    atomic_uint_least64_t waiting_fact, failures;
    /* Under the writer's lock. Serving threads append to `conduct`, and only the writer takes away,
     * so it reads those that it has counted without the lock. */
    uint64_t conduct_count, conduct_dropped;
    uint64_t conduct_told; /* so many of the dropped have a kept fact in its `lost` */
    struct conduct_fact conduct[USAGE_CONDUCT_MAX];
};

/* ---- counting -------------------------------------------------------------------------------- */

static uint32_t *slot_of(const struct usage_thread *thread, const char *customer_id)
{
    for (uint64_t at = hash_string(thread->seed, customer_id);; at++) {
        uint32_t *slot = &thread->slots[at & (thread->slot_count - 1)];
        if (*slot == 0 || strcmp(thread->rows[*slot]->customer_id, customer_id) == 0)
            return slot;
    }
}

static void make_slots(struct usage_thread *thread, size_t slot_count)
{
    size_t count = relaxed_load(&thread->count);
    memory_free(thread->slots);
    thread->slot_count = slot_count;
    thread->slots = memory_alloc_zeroed(slot_count, sizeof thread->slots[0]);
    for (uint32_t i = 1; i < count; i++)
        *slot_of(thread, thread->rows[i]->customer_id) = i;
}

/* A row for a customer that is new to the thread. */
static struct usage_row *add_row(struct usage_thread *thread, const char *customer_id)
{
    size_t count = relaxed_load(&thread->count);
    if (count > USAGE_CUSTOMERS_MAX)
        return thread->rows[0];
    if (count >= thread->slot_count / 2)
        make_slots(thread, thread->slot_count * 2);
    struct usage_row *row = memory_alloc_zeroed(1, sizeof *row);
    memcpy(row->customer_id, customer_id, strlen(customer_id));
    thread->rows[count] = row;
    *slot_of(thread, customer_id) = (uint32_t)count;
    atomic_store_explicit(&thread->count, count + 1, memory_order_release);
    return row;
}

void usage_count(struct usage_thread *thread, struct usage_row **last, const char *customer_id,
                 enum usage_group group, int http_status)
{
    int class = http_status / 100 - 2;
    if (class < 0 || class >= USAGE_CLASS_COUNT)
        return;
    if (*last == NULL || strcmp((*last)->customer_id, customer_id) != 0) {
        uint32_t slot = *slot_of(thread, customer_id);
        *last = slot != 0 ? thread->rows[slot] : add_row(thread, customer_id);
    }
    metrics_cell *cell = &(*last)->counted[group][class];
    /* No other thread writes the cell, so load and store suffice. */
    relaxed_store(cell, relaxed_load(cell) + 1);
}

/* ---- taking ---------------------------------------------------------------------------------- */

/* Sorts the waiting rows and merges rows with one key. */
static void merge_waiting(struct usage *usage)
{
    size_t kept = 0;
    if (usage->waiting_count == 0)
        return;
    qsort(usage->waiting, usage->waiting_count, sizeof usage->waiting[0], usage_compare);
    for (size_t i = 1; i < usage->waiting_count; i++) {
        struct usage_record *last = &usage->waiting[kept];
        if (usage_compare(last, &usage->waiting[i]) != 0) {
            usage->waiting[++kept] = usage->waiting[i];
            continue;
        }
        for (size_t class = 0; class < USAGE_CLASS_COUNT; class ++)
            last->requests[class] += usage->waiting[i].requests[class];
    }
    usage->waiting_count = kept + 1;
}

/* Takes the new counts of a row. False: no room, and they stay in the counters. */
static bool take_group(struct usage *usage, struct usage_row *row, size_t group)
{
    struct usage_record record = {.day = usage->day, .group = (enum usage_group)group};
    uint64_t sum = 0;
    for (size_t class = 0; class < USAGE_CLASS_COUNT; class ++) {
        uint64_t counted = relaxed_load(&row->counted[group][class]);
        record.requests[class] = counted - row->taken[group][class];
        sum += record.requests[class];
    }
    if (sum == 0)
        return true;
    if (usage->waiting_count == USAGE_WAITING_MAX)
        return false;
    memcpy(record.customer_id, row->customer_id, sizeof record.customer_id);
    for (size_t class = 0; class < USAGE_CLASS_COUNT; class ++)
        row->taken[group][class] += record.requests[class];
    usage->waiting[usage->waiting_count++] = record;
    return true;
}

static void take_all(struct usage *usage)
{
    bool room = true;
    for (size_t i = 0; i < usage->thread_count; i++) {
        const struct usage_thread *thread = &usage->threads[i];
        size_t count = atomic_load_explicit(&thread->count, memory_order_acquire);
        for (size_t k = 0; k < count * USAGE_GROUP_COUNT && room; k++)
            room = take_group(usage, thread->rows[k / USAGE_GROUP_COUNT], k % USAGE_GROUP_COUNT);
    }
    merge_waiting(usage);
    usage->day = clock_day(clock_wall_ms());
}

/* ---- writing --------------------------------------------------------------------------------- */

/* Logs where writing begins to fail, and where it works again. */
static void note_outcome(struct usage *usage, bool *failing, enum status status,
                         const struct error *error, const char *fails, const char *works)
{
    if (status != STATUS_OK && !*failing)
        log_event(usage->store.log, LOG_WARNING, fails, LOG_STRING("reason", error->text),
                  LOG_STRING("status", status_name(status)));
    else if (status == STATUS_OK && *failing)
        log_event(usage->store.log, LOG_INFO, works);
    *failing = status != STATUS_OK;
}

/* Writes a limited number of rows in each transaction, so that no other writer waits for long. */
static void write_waiting(struct usage *usage)
{
    struct error error = {.text = ""};
    enum status status = STATUS_OK;
    size_t written = 0;
    if (usage->waiting_count > 0)
        status = platform_store_open(&usage->open, &usage->store, &error);
    while (status == STATUS_OK && written < usage->waiting_count) {
        size_t left = usage->waiting_count - written;
        size_t count = left < PLATFORM_USAGE_MAX ? left : PLATFORM_USAGE_MAX;
        status = platform_usage_add(usage->open, &usage->waiting[written], count, &error);
        if (status == STATUS_OK)
            written += count;
    }
    usage->waiting_count -= written;
    if (usage->waiting_count > 0)
        memmove(usage->waiting, &usage->waiting[written],
                usage->waiting_count * sizeof usage->waiting[0]);
    relaxed_store(&usage->waiting_fact, usage->waiting_count);
    relaxed_add(&usage->failures, status != STATUS_OK);
    note_outcome(usage, &usage->failing, status, &error, "usage cannot be written; it is kept",
                 "usage is written again");
}

void usage_add_conduct(struct usage *usage, struct conduct_fact *fact)
{
    uv_mutex_lock(&usage->writer.lock);
    if (usage->conduct_count == USAGE_CONDUCT_MAX) {
        usage->conduct_dropped++;
    } else {
        fact->lost = (int64_t)(usage->conduct_dropped - usage->conduct_told);
        usage->conduct_told = usage->conduct_dropped;
        usage->conduct[usage->conduct_count++] = *fact;
    }
    uv_mutex_unlock(&usage->writer.lock);
}

static void write_conduct(struct usage *usage)
{
    struct error error;
    uv_mutex_lock(&usage->writer.lock);
    size_t count = usage->conduct_count;
    uv_mutex_unlock(&usage->writer.lock);
    if (count == 0)
        return;
    enum status status = platform_store_open(&usage->open, &usage->store, &error);
    if (status == STATUS_OK)
        status = platform_conduct_add(usage->open, usage->conduct, count, &error);
    note_outcome(usage, &usage->conduct_failing, status, &error,
                 "conduct in sandboxes cannot be written; it is kept",
                 "conduct in sandboxes is written again");
    if (status != STATUS_OK)
        return;
    uv_mutex_lock(&usage->writer.lock);
    usage->conduct_count -= count;
    memmove(usage->conduct, usage->conduct + count,
            usage->conduct_count * sizeof usage->conduct[0]);
    uv_mutex_unlock(&usage->writer.lock);
}

/* So that a customer's question about a day, which writes nothing, reads few entries. The first
 * time it may take minutes. False: it failed. */
static bool keep_sums(struct usage *usage, int64_t least)
{
    struct error error;
    if (platform_store_open(&usage->open, &usage->store, &error) != STATUS_OK)
        return false; /* writing counts reports it */
    usage->open->stop = &usage->stopping;
    bool kept = platform_ledger_keep_sums(usage->open, least);
    usage->open->stop = NULL;
    return kept;
}

/* Waits until the next period or midnight. True: the writer must stop. */
static bool waits_for_stop(struct usage *usage)
{
    int64_t to_midnight_ms = (usage->day + 1) * CLOCK_DAY_MS - clock_wall_ms();
    uint64_t wait_ms = usage->period_ms;
    if (to_midnight_ms > 0 && (uint64_t)to_midnight_ms < wait_ms)
        wait_ms = (uint64_t)to_midnight_ms;
    bool keeps = true; /* after a failure not before the next period */
    const uint64_t end_ms = clock_monotonic_ms() + wait_ms;
    for (uint64_t now_ms = clock_monotonic_ms(); now_ms < end_ms; now_ms = clock_monotonic_ms()) {
        uint64_t look_ms = now_ms + SUMS_LOOK_MS < end_ms ? now_ms + SUMS_LOOK_MS : end_ms;
        if (background_sleep(&usage->writer, look_ms * UINT64_C(1000000)))
            return true;
        write_conduct(usage);
        keeps = keeps && keep_sums(usage, SUMS_LEAST);
    }
    return false;
}

static void run_writer(void *argument)
{
    struct usage *usage = argument;
    bool last = false;
    while (!last) {
        last = waits_for_stop(usage);
        take_all(usage);
        write_waiting(usage);
        write_conduct(usage);
        if (!last)
            (void)keep_sums(usage, 1);
    }
    platform_store_close(&usage->open);
    if (usage->waiting_count > 0)
        log_event(usage->store.log, LOG_ERROR, "usage is lost: it could not be written",
                  LOG_INTEGER("rows", usage->waiting_count));
}

/* ---- life ------------------------------------------------------------------------------------ */

static void create_thread(struct usage_thread *thread)
{
    thread->rows = memory_alloc_zeroed(USAGE_CUSTOMERS_MAX + 1, sizeof(struct usage_row *));
    thread->rows[0] = memory_alloc_zeroed(1, sizeof(struct usage_row));
    thread->seed = hash_random_seed();
    atomic_init(&thread->count, 1);
    make_slots(thread, 64);
}

static void destroy_thread(struct usage_thread *thread)
{
    size_t count = relaxed_load(&thread->count);
    for (size_t i = 0; i < count; i++)
        memory_free(thread->rows[i]);
    memory_free(thread->rows);
    memory_free(thread->slots);
}

struct usage *usage_create(const struct platform_store_options *store, size_t threads,
                           uint32_t period_ms)
{
    struct usage *usage = memory_alloc_zeroed(1, sizeof *usage);
    CHECK(!store->create && threads > 0);
    usage->store = *store;
    usage->store.gives_way = true;
    usage->period_ms = period_ms;
    usage->thread_count = threads;
    usage->day = clock_day(clock_wall_ms());
    usage->waiting = memory_alloc(USAGE_WAITING_MAX * sizeof usage->waiting[0]);
    usage->threads = memory_alloc_zeroed(threads, sizeof usage->threads[0]);
    for (size_t i = 0; i < threads; i++)
        create_thread(&usage->threads[i]);
    background_start(&usage->writer, "usage", run_writer, usage);
    return usage;
}

void usage_destroy(struct usage **at)
{
    struct usage *usage = memory_take(at);
    if (usage == NULL)
        return;
    atomic_store(&usage->stopping, true);
    background_stop(&usage->writer);
    for (size_t i = 0; i < usage->thread_count; i++)
        destroy_thread(&usage->threads[i]);
    memory_free(usage->threads);
    memory_free(usage->waiting);
    memory_free(usage);
}

struct usage_thread *usage_thread(struct usage *usage, size_t index)
{
    CHECK(index < usage->thread_count);
    return &usage->threads[index];
}

/* ---- metrics --------------------------------------------------------------------------------- */

void usage_facts(struct usage *usage, struct usage_facts *facts)
{
    uv_mutex_lock(&usage->writer.lock);
    *facts = (struct usage_facts){.waiting = relaxed_load(&usage->waiting_fact),
                                  .failures = relaxed_load(&usage->failures),
                                  .conduct_waiting = usage->conduct_count,
                                  .conduct_dropped = usage->conduct_dropped};
    uv_mutex_unlock(&usage->writer.lock);
}

const struct metric usage_metrics[] = {
    METRIC_FACT("croupier_usage_waiting_rows", struct usage_facts, waiting),
    METRIC_FACT("croupier_usage_write_failures_total", struct usage_facts, failures),
    METRIC_FACT("croupier_conduct_waiting_facts", struct usage_facts, conduct_waiting),
    METRIC_FACT("croupier_conduct_dropped_total", struct usage_facts, conduct_dropped),
    {0},
};
