/*
 * The thread that keeps a simulated feed moving beside a server in the same process. One mutex
 * guards everything that two threads see; the simulator itself is the thread's alone once it runs.
 */
#include <pthread.h>
#include <stdbool.h>

#include "base/clock.h"
#include "base/memory.h"
#include "demo/simulate.h"

struct simulation {
    struct simulator *simulator;
    struct odds_store *store;
    struct log *log;
    uint32_t interval_ms;
    pthread_t thread;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    bool stopping;
    struct simulator_facts facts;
};

/* Waits until `deadline_ns` or until it is to stop; true when it is. */
static bool wait_for_stop(struct simulation *simulation, uint64_t deadline_ns)
{
    struct timespec until = clock_timespec(deadline_ns);
    (void)pthread_mutex_lock(&simulation->lock);
    int result = 0;
    while (!simulation->stopping && result == 0)
        result = pthread_cond_timedwait(&simulation->wake, &simulation->lock, &until);
    bool stopping = simulation->stopping;
    (void)pthread_mutex_unlock(&simulation->lock);
    return stopping;
}

static void keep_facts(struct simulation *simulation)
{
    (void)pthread_mutex_lock(&simulation->lock);
    simulator_facts(simulation->simulator, &simulation->facts);
    (void)pthread_mutex_unlock(&simulation->lock);
}

static void *run(void *argument)
{
    struct simulation *simulation = argument;
    uint64_t interval_ns = (uint64_t)simulation->interval_ms * 1000000U;
    uint64_t next_ns = clock_monotonic_ns() + interval_ns;
    bool failing = false;
    while (!wait_for_stop(simulation, next_ns)) {
        struct error error = {0};
        enum status status =
            simulator_tick(simulation->simulator, clock_wall_ms(), simulation->store, &error);
        if (status != STATUS_OK && !failing)
            log_event(simulation->log, LOG_WARNING, "simulated feed cannot publish; goes on trying",
                      LOG_STRING("reason", error.text));
        else if (status == STATUS_OK && failing)
            log_event(simulation->log, LOG_INFO, "simulated feed publishes again");
        failing = status != STATUS_OK;
        keep_facts(simulation);
        /* Ticks that were missed are not made up for: the next one covers their time. */
        next_ns += interval_ns;
        uint64_t now_ns = clock_monotonic_ns();
        if (next_ns < now_ns)
            next_ns = now_ns + interval_ns;
    }
    return NULL;
}

static void free_simulation(struct simulation *simulation)
{
    simulator_destroy(&simulation->simulator);
    (void)pthread_cond_destroy(&simulation->wake);
    (void)pthread_mutex_destroy(&simulation->lock);
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
    pthread_condattr_t attributes;
    CHECK(pthread_condattr_init(&attributes) == 0);
    CHECK(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0);
    CHECK(pthread_cond_init(&made->wake, &attributes) == 0);
    CHECK(pthread_condattr_destroy(&attributes) == 0);
    CHECK(pthread_mutex_init(&made->lock, NULL) == 0);

    enum status status = simulator_tick(made->simulator, now_ms, store, error);
    if (status == STATUS_OK) {
        keep_facts(made);
        if (pthread_create(&made->thread, NULL, run, made) != 0)
            status = error_set(error, STATUS_INTERNAL, "cannot start the simulated feed's thread");
    }
    if (status != STATUS_OK) {
        free_simulation(made);
        return status;
    }
    (void)pthread_setname_np(made->thread, "feed");
    *simulation = made;
    return STATUS_OK;
}

void simulation_facts(struct simulation *simulation, struct simulator_facts *facts)
{
    (void)pthread_mutex_lock(&simulation->lock);
    *facts = simulation->facts;
    (void)pthread_mutex_unlock(&simulation->lock);
}

void simulation_stop(struct simulation **simulation)
{
    if (*simulation == NULL)
        return;
    (void)pthread_mutex_lock(&(*simulation)->lock);
    (*simulation)->stopping = true;
    (void)pthread_cond_signal(&(*simulation)->wake);
    (void)pthread_mutex_unlock(&(*simulation)->lock);
    (void)pthread_join((*simulation)->thread, NULL);
    free_simulation(*simulation);
    *simulation = NULL;
}
