/*
 * The current games table and the thread that keeps it fresh; see games.h.
 *
 * A table is a snapshot: counted under `lock`, freed by whoever lets go of it last. A pages
 * compares a generation number (one atomic load) and only takes the lock when it has moved. After
 * a failure of the store the refresher opens it again and reads everything.
 */
#include "games/internal.h"

#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"

#define CONFIRMED_MAX_MS 1000U
#define BACK_OFF_MS 1000U

struct games {
    struct games_options options;
    char *secrets_key_file;
    uv_mutex_t lock; /* guards current, its references, stopping */
    uv_cond_t changed;
    struct games_snapshot *current;
    bool stopping;
    atomic_uint_least64_t generation;
    atomic_uint_least64_t confirmed_ms; /* monotonic; 0: never */
    uv_thread_t refresher;

    /* the refresher's own */
    struct platform_store *store;
    struct secrets *secrets;
    uint64_t revision;
    bool read_all;
    bool failing;
};

/* ---- snapshots ------------------------------------------------------------------------------- */

/* Lets go of one reference; returns the snapshot when it was the last, to be freed outside the
 * lock. */
static struct games_snapshot *let_go_locked(struct games_snapshot *snapshot)
{
    if (snapshot == NULL)
        return NULL;
    CHECK(snapshot->references > 0);
    return --snapshot->references == 0 ? snapshot : NULL;
}

static void free_snapshot(struct games_snapshot *snapshot)
{
    if (snapshot == NULL)
        return;
    games_table_destroy(&snapshot->table);
    memory_free(snapshot);
}

void games_exchange(struct games *games, struct games_snapshot **held, bool take)
{
    uv_mutex_lock(&games->lock);
    struct games_snapshot *last = let_go_locked(*held);
    *held = take ? games->current : NULL;
    if (*held != NULL)
        (*held)->references++;
    uv_mutex_unlock(&games->lock);
    free_snapshot(last);
}

uint64_t games_generation(struct games *games)
{
    return atomic_load_explicit(&games->generation, memory_order_acquire);
}

bool games_confirmed(struct games *games, uint64_t now_mono_ms)
{
    uint64_t at = atomic_load_explicit(&games->confirmed_ms, memory_order_acquire);
    return at != 0 && now_mono_ms <= at + CONFIRMED_MAX_MS;
}

int64_t games_age_ms(struct games *games)
{
    uint64_t at = atomic_load_explicit(&games->confirmed_ms, memory_order_acquire);
    uint64_t now = clock_monotonic_ms();
    return at == 0 ? -1 : now > at ? (int64_t)(now - at) : 0;
}

static void publish(struct games *games, struct games_table *table)
{
    struct games_snapshot *snapshot = memory_alloc_zeroed(1, sizeof *snapshot);
    snapshot->table = table;
    snapshot->references = 1;
    uv_mutex_lock(&games->lock);
    snapshot->generation = games->current == NULL ? 1 : games->current->generation + 1;
    struct games_snapshot *last = let_go_locked(games->current);
    games->current = snapshot;
    atomic_store_explicit(&games->generation, snapshot->generation, memory_order_release);
    uv_mutex_unlock(&games->lock);
    free_snapshot(last);
}

/* ---- the refresher --------------------------------------------------------------------------- */

struct reading {
    struct games *games;
    struct games_table *table;
};

static bool on_provider(void *context, const struct provider_record *record)
{
    struct reading *reading = context;
    if (!games_table_add_provider(reading->table, reading->games->secrets, record))
        log_event(reading->games->options.log, LOG_ERROR,
                  "a provider's secret was stored under another key; set it again",
                  LOG_STRING("provider", record->id));
    return true;
}

static bool on_game(void *context, const struct game_record *record)
{
    games_table_add_game(((struct reading *)context)->table, record);
    return true;
}

static bool on_policy(void *context, const struct game_policy_record *record)
{
    games_table_add_policy(((struct reading *)context)->table, record);
    return true;
}

static enum status read_all(struct games *games, struct error *error)
{
    struct reading reading = {games, games_table_create(games->secrets)};
    const struct record_visitor visit = {
        .provider = on_provider, .game = on_game, .policy = on_policy, .context = &reading};
    enum status status = platform_games_read(games->store, &visit, &games->revision, error);
    if (status != STATUS_OK) {
        games_table_destroy(&reading.table);
        return status;
    }
    games->read_all = false;
    publish(games, reading.table);
    return STATUS_OK;
}

/* One look at the store: confirms the table as of the moment when it began. */
static enum status look(struct games *games, struct error *error)
{
    uint64_t began_ms = clock_monotonic_ms();
    uint64_t revision;
    enum status status = STATUS_OK;
    if (games->secrets == NULL)
        status = secrets_open_key(&games->secrets, games->secrets_key_file, error);
    if (status == STATUS_OK && games->store == NULL) {
        status = platform_store_open(&games->store, &games->options.store, error);
        games->read_all = true;
    }
    if (status == STATUS_OK)
        status = platform_games_revision(games->store, &revision, error);
    if (status == STATUS_OK && (games->read_all || revision != games->revision))
        status = read_all(games, error);
    if (status != STATUS_OK)
        return status;
    atomic_store_explicit(&games->confirmed_ms, began_ms, memory_order_release);
    return STATUS_OK;
}

/* Looks, says so once when things go wrong and once when they are right again; returns how long to
 * wait. */
static uint32_t refresh(struct games *games)
{
    struct error error = {.text = ""};
    enum status status = look(games, &error);
    if (status == STATUS_OK && games->failing)
        log_event(games->options.log, LOG_INFO, "games refreshed again",
                  LOG_INTEGER("revision", games->revision));
    if (status != STATUS_OK && !games->failing)
        log_event(games->options.log, LOG_ERROR, "games cannot be refreshed",
                  LOG_STRING("reason", error.text), LOG_STRING("status", status_name(status)));
    games->failing = status != STATUS_OK;
    if (status == STATUS_OK) {
        uv_cond_broadcast(&games->changed);
        return games->options.refresh_ms;
    }
    if (status != STATUS_TIMEOUT) /* a busy store need not be opened again */
        platform_store_close(&games->store);
    return games->secrets == NULL ? BACK_OFF_MS : games->options.refresh_ms;
}

/* Waits until `timeout_ms` have passed, somebody stops, or with `ready`, there is a table. True
 * when what was waited for is so. */
static bool wait_for(struct games *games, bool ready, uint32_t timeout_ms)
{
    uint64_t until_ns = clock_monotonic_ns() + timeout_ms * UINT64_C(1000000);
    bool done = false;
    uv_mutex_lock(&games->lock);
    while (!(done = ready ? games->current != NULL : games->stopping) &&
           condition_wait_until(&games->changed, &games->lock, until_ns)) {
    }
    uv_mutex_unlock(&games->lock);
    return done;
}

static void run(void *argument)
{
    struct games *games = argument;
    while (!wait_for(games, false, refresh(games)))
        continue;
    platform_store_close(&games->store);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct games *games_create(const struct games_options *options)
{
    struct games *games = memory_alloc_zeroed(1, sizeof *games);
    CHECK(options->refresh_ms > 0);
    games->options = *options;
    games->secrets_key_file = memory_copy_string(options->secrets_key_file);
    CHECK(uv_mutex_init(&games->lock) == 0);
    CHECK(uv_cond_init(&games->changed) == 0);
    thread_start(&games->refresher, "games", run, games);
    return games;
}

bool games_wait_ready(struct games *games, uint32_t timeout_ms)
{
    return wait_for(games, true, timeout_ms);
}

void games_destroy(struct games **at)
{
    struct games *games = *at;
    *at = NULL;
    if (games == NULL)
        return;
    uv_mutex_lock(&games->lock);
    games->stopping = true;
    uv_cond_broadcast(&games->changed);
    uv_mutex_unlock(&games->lock);
    CHECK(uv_thread_join(&games->refresher) == 0);
    if (games->current != NULL)
        CHECK(games->current->references == 1);
    free_snapshot(games->current);
    secrets_destroy(&games->secrets);
    uv_cond_destroy(&games->changed);
    uv_mutex_destroy(&games->lock);
    memory_free(games->secrets_key_file);
    memory_free(games);
}
