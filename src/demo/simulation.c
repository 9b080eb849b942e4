/*
 * The thread that keeps a simulated feed moving beside a server in the same process, or beside
 * `croupier feed simulate`, which watches it. One mutex guards everything that two threads see; the
 * simulator itself is the thread's alone once it runs.
 */
#include <stdbool.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "demo/simulate.h"

struct simulation {
    struct simulator *simulator;
    struct odds_store *store;
    struct log *log;
    uint32_t interval_ms;
    struct background thread; /* whose lock guards what follows */
    struct simulator_facts facts;
};

static void keep_facts(struct simulation *simulation, bool failing)
{
    uv_mutex_lock(&simulation->thread.lock);
    simulator_facts(simulation->simulator, &simulation->facts);
    simulation->facts.failing = failing;
    uv_mutex_unlock(&simulation->thread.lock);
}

static void run(void *argument)
{
    struct simulation *simulation = argument;
    uint64_t interval_ns = (uint64_t)simulation->interval_ms * 1000000U;
    uint64_t next_ns = clock_monotonic_ns() + interval_ns;
    bool failing = false;
    while (!background_sleep(&simulation->thread, next_ns)) {
        struct error error = {0};
        enum status status =
            simulator_tick(simulation->simulator, clock_wall_ms(), simulation->store, &error);
        if (status != STATUS_OK && !failing)
            log_event(simulation->log, LOG_WARNING, "simulated feed cannot publish; goes on trying",
                      LOG_STRING("reason", error.text));
        else if (status == STATUS_OK && failing)
            log_event(simulation->log, LOG_INFO, "simulated feed publishes again");
        failing = status != STATUS_OK;
        keep_facts(simulation, failing);
        /* Ticks that were missed are not made up for: the next one covers their time. */
        next_ns += interval_ns;
        uint64_t now_ns = clock_monotonic_ns();
        if (next_ns < now_ns)
            next_ns = now_ns + interval_ns;
    }
}

static void free_simulation(struct simulation *simulation)
{
    simulator_destroy(&simulation->simulator);
    memory_free(simulation);
}

enum status simulation_start(struct simulation **simulation,
                             const struct simulator_options *options, struct odds_store *store,
                             struct log *log, struct error *error)
{
    struct simulation *made = memory_alloc_zeroed(1, sizeof *made);
    int64_t now_ms = clock_wall_ms();
    made->store = store;
    made->log = log;
    made->interval_ms = options->interval_ms;
    made->simulator = simulator_create(options, now_ms);
    enum status status = simulator_tick(made->simulator, now_ms, store, error);
    if (status != STATUS_OK) {
        free_simulation(made);
        return status;
    }
    simulator_facts(made->simulator, &made->facts);
    background_start(&made->thread, "feed", run, made);
    *simulation = made;
    return STATUS_OK;
}

void simulation_facts(struct simulation *simulation, struct simulator_facts *facts)
{
    uv_mutex_lock(&simulation->thread.lock);
    *facts = simulation->facts;
    uv_mutex_unlock(&simulation->thread.lock);
}

void simulation_stop(struct simulation **simulation)
{
    if (*simulation == NULL)
        return;
    background_stop(&(*simulation)->thread);
    free_simulation(*simulation);
    *simulation = NULL;
}
