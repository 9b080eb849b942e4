#pragma once

#include "api/reasons.h"
#include "base/json_writer.h"
#include "console/sources.h"

/*
 * The metrics of the last minutes and hours, for the overview of the console: rates, percentiles
 * and gauges between one sample of the counters and the next.
 *
 * Two rings of samples: one every 2 seconds for 6 minutes, one every 2 minutes for 12 hours; 750 KB
 * in all, whatever happens. Samples hold the counters themselves, so nothing is lost between two.
 * Nothing is kept over a restart.
 *
 * Threads: one adds, any number writes.
 */
#define HISTORY_RECENT_STEP_S 2
#define HISTORY_RECENT_SAMPLES 181
#define HISTORY_HOURS_STEP_S 120
#define HISTORY_HOURS_SAMPLES 361

struct history_sample { /* of this process, since its start */
    int64_t at_ms;      /* wall clock, shown alone */
    uint64_t monotonic_ms;
    struct metrics_totals answers;
    uint64_t denials;
    uint64_t reasons[REASONS_MAX];
    uint64_t connections; /* open at that moment */
    uint64_t ledger_operations;
    uint64_t ledger_commits[LEDGER_COMMIT_BUCKETS];
};

struct history;
struct history *history_create(void);
void history_destroy(struct history **history);

/* A ring takes the sample when its step has passed since the one before; so call it more often than
 * every HISTORY_RECENT_STEP_S. */
void history_add(struct history *history, const struct history_sample *sample);
/* The same with what the counters say now. */
void history_take(struct history *history, const struct console_sources *sources);

/* At least one sample is there. The members "at" (of the newest), "live" (the figures of the last
 * 10 seconds), "refusals" (by reason, with those of the last hour or, where it began later, since
 * the start), and "history": the figures of one ring, a list of numbers each, with the times ("at",
 * seconds since 1970) until which they are, each over "window_seconds". So the last ones of the
 * minutes are those of "live". A figure is null where there is nothing to say. */
enum history_span { HISTORY_MINUTES, HISTORY_HOURS };
/* When the newest sample was taken, by the wall clock. */
int64_t history_write(struct history *history, enum history_span span, struct json_writer *json);
