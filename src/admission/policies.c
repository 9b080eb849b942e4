/*
 * The current policy table, the thread that keeps it fresh, and the thread that writes back when
 * keys were used; see admission.h and policies.h.
 *
 * The refresher owns the editor and frees tables; it asks the store for its revision every
 * `refresh_ms`, and for what changed when it has moved. A look confirms the table as of the moment
 * it began, so a verdict never rests on a table older than it claims. After trouble with the store
 * it opens it again and reads everything: what comes back may be another database.
 *
 * `lock` guards the current snapshot, the counts of snapshots, the retired ones, `stopping` and
 * `ready`. Nothing slow happens under it.
 */
#include "admission/policies.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"

#define BACK_OFF_MAX_MS 1000U
#define USES_PERIOD_MS 60000U
#define USES_BATCH 256U

struct policies {
    struct policies_options options;
    uv_mutex_t lock;
    uv_cond_t stop;   /* `stopping` was set */
    uv_cond_t loaded; /* `ready` was set */
    struct policies_snapshot *current;
    struct policies_snapshot *retired; /* not held any more */
    bool stopping;
    bool ready;
    atomic_uint_least64_t generation;
    atomic_uint_least64_t confirmed_ms; /* monotonic; 0: never */
    atomic_uint_least64_t errors;
    uv_thread_t refresher;
    uv_thread_t use_writer;

    /* the refresher's own */
    struct policy_editor *editor;
    struct platform_store *store;
    uint64_t revision;
    bool read_all;     /* start from nothing: at first, and after the store was opened again */
    uint32_t failures; /* in a row */
    struct error told; /* the reason that was logged, while there are failures */
};

/* Waits under the lock until `*flag`, or for `timeout_ms`. Returns the flag. */
static bool wait_for(struct policies *policies, uv_cond_t *condition, const bool *flag,
                     uint32_t timeout_ms)
{
    uint64_t until_ns = clock_monotonic_ns() + timeout_ms * UINT64_C(1000000);
    uv_mutex_lock(&policies->lock);
    while (!*flag && condition_wait_until(condition, &policies->lock, until_ns)) {
    }
    bool set = *flag;
    uv_mutex_unlock(&policies->lock);
    return set;
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static void release_locked(struct policies *policies, struct policies_snapshot **held)
{
    struct policies_snapshot *snapshot = *held;
    *held = NULL;
    if (snapshot == NULL)
        return;
    CHECK(snapshot->references > 0);
    if (--snapshot->references > 0)
        return;
    snapshot->next = policies->retired;
    policies->retired = snapshot;
}

void policies_exchange(struct policies *policies, struct policies_snapshot **held)
{
    uv_mutex_lock(&policies->lock);
    release_locked(policies, held);
    *held = policies->current;
    if (*held != NULL)
        (*held)->references++;
    uv_mutex_unlock(&policies->lock);
}

void policies_let_go(struct policies *policies, struct policies_snapshot **held)
{
    uv_mutex_lock(&policies->lock);
    release_locked(policies, held);
    uv_mutex_unlock(&policies->lock);
}

uint64_t policies_generation(struct policies *policies)
{
    return atomic_load_explicit(&policies->generation, memory_order_acquire);
}

bool policies_confirmed(struct policies *policies, uint64_t now_mono_ms)
{
    uint64_t at = atomic_load_explicit(&policies->confirmed_ms, memory_order_acquire);
    return at != 0 && now_mono_ms <= at + POLICIES_AGE_MAX_MS;
}

static void publish(struct policies *policies)
{
    struct policies_snapshot *snapshot = memory_alloc_zeroed(1, sizeof *snapshot);
    snapshot->table = policy_editor_publish(policies->editor, policies->revision);
    snapshot->references = 1;
    uv_mutex_lock(&policies->lock);
    snapshot->generation = policies->current == NULL ? 1 : policies->current->generation + 1;
    release_locked(policies, &policies->current);
    policies->current = snapshot;
    atomic_store_explicit(&policies->generation, snapshot->generation, memory_order_release);
    uv_mutex_unlock(&policies->lock);
}

static void free_retired(struct policies *policies)
{
    uv_mutex_lock(&policies->lock);
    struct policies_snapshot *snapshot = policies->retired;
    policies->retired = NULL;
    uv_mutex_unlock(&policies->lock);
    while (snapshot != NULL) {
        struct policies_snapshot *next = snapshot->next;
        policy_table_destroy(policies->editor, &snapshot->table);
        memory_free(snapshot);
        snapshot = next;
    }
}

/* ---- the refresher --------------------------------------------------------------------------- */

static bool on_customer(void *context, const struct customer_record *record)
{
    policy_editor_customer(context, record);
    return true;
}

static bool on_key(void *context, const struct key_record *record)
{
    policy_editor_key(context, record);
    return true;
}

static bool on_legacy(void *context, const struct legacy_record *record)
{
    policy_editor_legacy(context, record);
    return true;
}

/* Brings the editor up to the store's revision and publishes. Rows of a reading that failed
 * half-way stay in the editor, unpublished; they come again next time. */
static enum status read_changes(struct policies *policies, struct error *error)
{
    const struct record_visitor visit = {
        .customer = on_customer, .key = on_key, .legacy = on_legacy, .context = policies->editor};
    if (policies->read_all)
        policy_editor_restart(policies->editor);
    enum status status =
        platform_changes_since(policies->store, policies->read_all ? 0 : policies->revision, &visit,
                               &policies->revision, error);
    if (status != STATUS_OK)
        return status;
    policies->read_all = false;
    publish(policies);
    return STATUS_OK;
}

/* One look at the store. `changed` tells whether there was anything to read. */
static enum status look(struct policies *policies, bool *changed, struct error *error)
{
    uint64_t began_ms = clock_monotonic_ms();
    if (policies->store == NULL) {
        enum status opened = platform_store_open(&policies->store, &policies->options.store, error);
        if (opened != STATUS_OK)
            return opened;
        policies->read_all = true;
    }
    uint64_t revision;
    enum status status = platform_revision(policies->store, &revision, error);
    if (status != STATUS_OK)
        return status;
    if (revision < policies->revision)
        policies->read_all = true; /* an older copy was put in place */
    *changed = policies->read_all || revision != policies->revision;
    if (*changed) {
        status = read_changes(policies, error);
        if (status != STATUS_OK)
            return status;
    }
    atomic_store_explicit(&policies->confirmed_ms, began_ms, memory_order_release);
    return STATUS_OK;
}

/* Says so when things go wrong, once for each reason, and once when they are right again. */
static void note_failure(struct policies *policies, enum status status, const struct error *error)
{
    atomic_fetch_add_explicit(&policies->errors, 1, memory_order_relaxed);
    /* Who mends the first trouble must see the second. */
    if (policies->failures++ == 0 || strcmp(error->text, policies->told.text) != 0) {
        log_event(policies->options.log, LOG_ERROR, "policies cannot be refreshed",
                  LOG_STRING("reason", error->text), LOG_STRING("status", status_name(status)));
        policies->told = *error;
    }
    if (status != STATUS_TIMEOUT) /* a busy store need not be opened again */
        platform_store_close(&policies->store);
}

static void note_success(struct policies *policies, bool first, uint64_t took_ms)
{
    struct policies_facts facts;
    if (policies->failures == 0 && !first)
        return;
    policies_facts(policies, &facts);
    log_event(policies->options.log, LOG_INFO,
              first ? "policies loaded" : "policies refreshed again",
              LOG_INTEGER("customers", facts.customers), LOG_INTEGER("keys", facts.keys),
              LOG_INTEGER("addresses", facts.addresses), LOG_INTEGER("revision", facts.revision),
              LOG_INTEGER("took_ms", took_ms));
    policies->failures = 0;
}

static uint32_t pause_ms(const struct policies *policies)
{
    uint32_t pause = policies->options.refresh_ms;
    for (uint32_t i = 1; i < policies->failures && pause < BACK_OFF_MAX_MS; i++)
        pause *= 2;
    return policies->failures > 0 && pause > BACK_OFF_MAX_MS ? BACK_OFF_MAX_MS : pause;
}

/* Looks once; returns how long to wait until the next time. */
static uint32_t refresh(struct policies *policies)
{
    struct error error = {.text = ""};
    bool first = policies_generation(policies) == 0;
    bool changed = false;
    uint64_t began_ms = clock_monotonic_ms();
    enum status status = look(policies, &changed, &error);
    free_retired(policies);
    if (status != STATUS_OK) {
        note_failure(policies, status, &error);
        return pause_ms(policies);
    }
    uint64_t took_ms = clock_monotonic_ms() - began_ms;
    note_success(policies, first, took_ms);
    if (changed && took_ms > policies->options.refresh_ms)
        return 0; /* a long reading is confirmed at once, or it would be out of date on arrival */
    uv_mutex_lock(&policies->lock);
    policies->ready = true;
    uv_cond_broadcast(&policies->loaded);
    uv_mutex_unlock(&policies->lock);
    return pause_ms(policies);
}

static void run_refresher(void *argument)
{
    struct policies *policies = argument;
    while (!wait_for(policies, &policies->stop, &policies->stopping, refresh(policies)))
        continue;
    platform_store_close(&policies->store);
}

/* ---- writing uses ---------------------------------------------------------------------------- */

struct use_batch {
    struct key_use uses[USES_BATCH];
    struct policy_entry *entries[USES_BATCH];
};

/* One batch; the store is opened when there is something to write. */
static enum status write_batch(struct policies *policies, struct platform_store **store,
                               struct use_batch *batch, size_t count, struct error *error)
{
    if (*store == NULL) {
        enum status opened = platform_store_open(store, &policies->options.store, error);
        if (opened != STATUS_OK)
            return opened;
    }
    enum status status = platform_key_touch(*store, batch->uses, count, error);
    if (status != STATUS_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        policy_entry_mark_written(batch->entries[i], batch->uses[i].used_ms);
    return STATUS_OK;
}

/* What cannot be written stays noted with its key, and is tried again next time. */
static void write_uses(struct policies *policies, struct use_batch *batch)
{
    struct error error = {.text = ""};
    enum status status = STATUS_OK;
    struct platform_store *store = NULL;
    struct policies_snapshot *snapshot = NULL;
    policies_exchange(policies, &snapshot);
    uint32_t cursor = snapshot == NULL ? POLICY_USES_END : 0;
    while (cursor != POLICY_USES_END && status == STATUS_OK) {
        size_t count = policy_table_collect_uses(snapshot->table, &cursor, batch->uses,
                                                 batch->entries, USES_BATCH);
        if (count > 0)
            status = write_batch(policies, &store, batch, count, &error);
    }
    if (status != STATUS_OK)
        log_event(policies->options.log, LOG_WARNING, "last use of keys cannot be written",
                  LOG_STRING("reason", error.text), LOG_STRING("status", status_name(status)));
    platform_store_close(&store);
    policies_let_go(policies, &snapshot);
}

static void run_use_writer(void *argument)
{
    struct policies *policies = argument;
    struct use_batch *batch = memory_alloc_zeroed(1, sizeof *batch);
    while (!wait_for(policies, &policies->stop, &policies->stopping, USES_PERIOD_MS))
        write_uses(policies, batch);
    write_uses(policies, batch);
    memory_free(batch);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct policies *policies_create(const struct policies_options *options)
{
    struct policies *policies = memory_alloc_zeroed(1, sizeof *policies);
    CHECK(options->refresh_ms > 0);
    policies->options = *options;
    policies->editor = policy_editor_create();
    CHECK(uv_mutex_init(&policies->lock) == 0);
    CHECK(uv_cond_init(&policies->stop) == 0);
    CHECK(uv_cond_init(&policies->loaded) == 0);
    thread_start(&policies->refresher, "policies", run_refresher, policies);
    thread_start(&policies->use_writer, "key-uses", run_use_writer, policies);
    return policies;
}

void policies_destroy(struct policies **at)
{
    struct policies *policies = *at;
    if (policies == NULL)
        return;
    *at = NULL;
    uv_mutex_lock(&policies->lock);
    policies->stopping = true;
    uv_cond_broadcast(&policies->stop);
    uv_mutex_unlock(&policies->lock);
    CHECK(uv_thread_join(&policies->use_writer) == 0);
    CHECK(uv_thread_join(&policies->refresher) == 0);
    policies_let_go(policies, &policies->current);
    free_retired(policies);
    policy_editor_destroy(&policies->editor); /* checks that no table is left */
    uv_cond_destroy(&policies->stop);
    uv_cond_destroy(&policies->loaded);
    uv_mutex_destroy(&policies->lock);
    memory_free(policies);
}

bool policies_wait_ready(struct policies *policies, uint32_t timeout_ms)
{
    return wait_for(policies, &policies->loaded, &policies->ready, timeout_ms);
}

void policies_facts(struct policies *policies, struct policies_facts *facts)
{
    struct policy_table_facts table = {0};
    uint64_t at = atomic_load_explicit(&policies->confirmed_ms, memory_order_acquire);
    uv_mutex_lock(&policies->lock);
    if (policies->current != NULL)
        policy_table_facts(policies->current->table, &table);
    uv_mutex_unlock(&policies->lock);
    uint64_t now_ms = clock_monotonic_ms();
    *facts = (struct policies_facts){
        .age_ms = at == 0 ? -1 : (int64_t)(now_ms - at),
        .customers = table.customers,
        .keys = table.keys,
        .addresses = table.addresses,
        .revision = table.revision,
        .errors = atomic_load_explicit(&policies->errors, memory_order_relaxed),
        .bytes = table.bytes,
    };
}
