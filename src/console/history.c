/*
 * A ring keeps samples in the order in which they came; a figure is what lies between two of them.
 * The lock is held while samples are read: well under a millisecond, once a second for each page
 * that is open, on threads that serve no customer.
 */
#include "console/history.h"

#include "api/service.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"

#define LIVE_STEPS 5 /* of the recent ring */
#define HOUR_STEPS (3600 / HISTORY_HOURS_STEP_S)

struct ring {
    uint64_t step_ms;
    size_t size, next, count;
    struct history_sample *samples;
};

struct history {
    uv_mutex_t lock; /* guards: */
    struct ring rings[HISTORY_HOURS + 1];
};

/* ---- samples --------------------------------------------------------------------------------- */

/* 0 is the newest; as many steps ago as there are at most. */
static const struct history_sample *sample_at(const struct ring *ring, size_t steps_ago)
{
    size_t most = ring->count - 1;
    steps_ago = steps_ago < most ? steps_ago : most;
    return &ring->samples[(ring->next + ring->size - 1 - steps_ago) % ring->size];
}

/* A sample that comes a little early is in time: timers are not exact. */
static void ring_add(struct ring *ring, const struct history_sample *sample)
{
    if (ring->count > 0 &&
        sample->monotonic_ms + ring->step_ms / 4 < sample_at(ring, 0)->monotonic_ms + ring->step_ms)
        return;
    ring->samples[ring->next] = *sample;
    ring->next = (ring->next + 1) % ring->size;
    ring->count += ring->count < ring->size;
}

void history_add(struct history *history, const struct history_sample *sample)
{
    uv_mutex_lock(&history->lock);
    for (size_t i = 0; i <= HISTORY_HOURS; i++)
        ring_add(&history->rings[i], sample);
    uv_mutex_unlock(&history->lock);
}

/* Reads the counters; takes microseconds. */
static void take_sample(const struct console_sources *sources, struct history_sample *sample)
{
    struct service_totals service;
    struct ledger_facts ledger;
    *sample =
        (struct history_sample){.at_ms = clock_wall_ms(), .monotonic_ms = clock_monotonic_ms()};
    metrics_totals(sources->metrics, &sample->answers);
    service_totals(sources->metrics, &service);
    ledger_facts(sources->ledger, &ledger);
    sample->connections = service.connections;
    sample->denials = service.denials;
    memcpy(sample->reasons, service.reasons, sizeof sample->reasons);
    for (size_t i = 0; i < WALLET_OPERATION_COUNT; i++)
        for (size_t j = 0; j < LEDGER_COUNTED_COUNT; j++)
            sample->ledger_operations += ledger.operations[i][j];
    memcpy(sample->ledger_commits, ledger.commits, sizeof sample->ledger_commits);
}

void history_take(struct history *history, const struct console_sources *sources)
{
    struct history_sample sample;
    take_sample(sources, &sample);
    history_add(history, &sample);
}

/* ---- figures --------------------------------------------------------------------------------- */

enum kind { RATE, GAUGE, DURATION_MS, COMMIT_MS };

static const struct figure {
    const char *name;
    enum kind kind;
    size_t offset, count; /* of the numbers in a sample */
    unsigned percent;
} figures[] = {
#define NUMBERS(member, count_) offsetof(struct history_sample, member), (count_)
    {"requests_per_second", RATE, NUMBERS(answers.requests, METRICS_CLASSES), 0},
    {"requests_2xx_per_second", RATE, NUMBERS(answers.requests[0], 1), 0},
    {"requests_3xx_per_second", RATE, NUMBERS(answers.requests[1], 1), 0},
    {"requests_4xx_per_second", RATE, NUMBERS(answers.requests[2], 1), 0},
    {"requests_5xx_per_second", RATE, NUMBERS(answers.requests[3], 1), 0},
    {"p50_ms", DURATION_MS, NUMBERS(answers.durations, METRICS_DURATIONS), 50},
    {"p99_ms", DURATION_MS, NUMBERS(answers.durations, METRICS_DURATIONS), 99},
    {"denials_per_second", RATE, NUMBERS(denials, 1), 0},
    {"connections", GAUGE, NUMBERS(connections, 1), 0},
    {"ledger_operations_per_second", RATE, NUMBERS(ledger_operations, 1), 0},
    {"ledger_commit_ms", COMMIT_MS, NUMBERS(ledger_commits, LEDGER_COMMIT_BUCKETS), 99},
#undef NUMBERS
};
#define FIGURES (sizeof figures / sizeof figures[0])

/* Negative: there is none. */
static double figure_of(const struct figure *figure, const struct history_sample *from,
                        const struct history_sample *to)
{
    uint64_t before[METRICS_DURATIONS];
    uint64_t counted[METRICS_DURATIONS];
    uint64_t sum = 0;
    uint64_t took_ms = to->monotonic_ms - from->monotonic_ms;
    CHECK(figure->count <= METRICS_DURATIONS);
    memcpy(before, (const char *)from + figure->offset, figure->count * sizeof before[0]);
    memcpy(counted, (const char *)to + figure->offset, figure->count * sizeof counted[0]);
    if (figure->kind == GAUGE)
        return (double)counted[0];
    if (took_ms == 0)
        return -1;
    for (size_t i = 0; i < figure->count; i++)
        sum += counted[i] -= before[i];
    if (figure->kind == RATE)
        return (double)sum * 1000 / (double)took_ms;
    return figure->kind == DURATION_MS ? metrics_duration_ms(counted, figure->percent)
                                       : ledger_commit_ms(counted, figure->percent);
}

static void write_figure(struct json_writer *json, const char *name, double value)
{
    if (value < 0) {
        json_null(json, name);
        return;
    }
    json_begin_raw(json, name);
    buffer_append_format(json->out, "%.6g", value);
}

static void write_live(const struct ring *ring, struct json_writer *json)
{
    const struct history_sample *newest = sample_at(ring, 0);
    json_object(json, "live");
    for (size_t i = 0; i < FIGURES; i++)
        write_figure(json, figures[i].name,
                     figure_of(&figures[i], sample_at(ring, LIVE_STEPS), newest));
    json_end(json);
}

static void write_refusals(const struct history *history, struct json_writer *json)
{
    const struct history_sample *newest = sample_at(&history->rings[HISTORY_MINUTES], 0);
    const struct history_sample *before = sample_at(&history->rings[HISTORY_HOURS], HOUR_STEPS);
    json_array(json, "refusals");
    const struct http_error *error;
    for (size_t i = 0; (error = reason_at(i)) != NULL; i++) {
        if (newest->reasons[i] == 0)
            continue;
        json_object(json, NULL);
        json_string(json, "reason", error->reason);
        json_unsigned(json, "total", newest->reasons[i]);
        json_unsigned(json, "last_hour", newest->reasons[i] - before->reasons[i]);
        json_end(json);
    }
    json_end(json);
}

/* A value is of `steps` steps until its time, so the newest of short steps is the live one. */
static void write_ring(const struct ring *ring, size_t steps, struct json_writer *json)
{
    json_object(json, "history");
    json_unsigned(json, "step_seconds", ring->step_ms / 1000);
    json_unsigned(json, "window_seconds", steps * ring->step_ms / 1000);
    json_array(json, "at");
    for (size_t ago = ring->count - 1; ago-- > 0;)
        json_integer(json, NULL, sample_at(ring, ago)->at_ms / 1000);
    json_end(json);
    json_object(json, "series");
    for (size_t i = 0; i < FIGURES; i++) {
        json_array(json, figures[i].name);
        for (size_t ago = ring->count - 1; ago-- > 0;)
            write_figure(
                json, NULL,
                figure_of(&figures[i], sample_at(ring, ago + steps), sample_at(ring, ago)));
        json_end(json);
    }
    json_end(json);
    json_end(json);
}

int64_t history_write(struct history *history, enum history_span span, struct json_writer *json)
{
    uv_mutex_lock(&history->lock);
    const struct ring *recent = &history->rings[HISTORY_MINUTES];
    CHECK(recent->count > 0); /* the first is added before anybody asks */
    int64_t at_ms = sample_at(recent, 0)->at_ms;
    json_time(json, "at", at_ms);
    write_live(recent, json);
    write_refusals(history, json);
    write_ring(&history->rings[span], span == HISTORY_MINUTES ? LIVE_STEPS : 1, json);
    uv_mutex_unlock(&history->lock);
    return at_ms;
}

/* ---- life ------------------------------------------------------------------------------------ */

static struct ring make_ring(uint64_t step_s, size_t size)
{
    return (struct ring){.step_ms = step_s * 1000,
                         .size = size,
                         .samples = memory_alloc_zeroed(size, sizeof(struct history_sample))};
}

struct history *history_create(void)
{
    struct history *history = memory_alloc_zeroed(1, sizeof *history);
    CHECK(uv_mutex_init(&history->lock) == 0);
    history->rings[HISTORY_MINUTES] = make_ring(HISTORY_RECENT_STEP_S, HISTORY_RECENT_SAMPLES);
    history->rings[HISTORY_HOURS] = make_ring(HISTORY_HOURS_STEP_S, HISTORY_HOURS_SAMPLES);
    return history;
}

void history_destroy(struct history **at)
{
    struct history *history = memory_take(at);
    if (history == NULL)
        return;
    for (size_t i = 0; i <= HISTORY_HOURS; i++)
        memory_free(history->rings[i].samples);
    uv_mutex_destroy(&history->lock);
    memory_free(history);
}
