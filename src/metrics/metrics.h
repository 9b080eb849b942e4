#pragma once

#include "base/relaxed.h"
#include "base/text.h"

/*
 * Metrics in Prometheus' text format 0.0.4.
 *
 * A module describes its metrics in a table of rows, ended by one without a name. This module
 * writes them and knows no other module. There are two kinds of numbers. Facts are asked for at
 * scrape time: the module's struct of facts, with a row for each member. Counters belong to a
 * serving thread: each has a `struct metrics_shard` of its own, in which a module has a block of
 * cells that its rows are about, and only adds to those (plain relaxed atomics, no sharing of cache
 * lines); a scrape adds the shards up.
 *
 * Rows of one name may stand in several tables, with different labels. Type and HELP are those
 * of docs/metrics.md, which a test holds equal to the rows.
 */
struct metric {
    const char *name;
    const char *labels; /* "{store=\"odds\"}"; NULL: none */
    size_t offset;      /* of its uint64_t in the facts */
    /* Writes what is more than that one number, with the calls below; NULL: the number. */
    void (*write)(const struct metric *metric, const void *facts, struct buffer *out);
    /* Not NULL: the fact is an int64_t, in ms, written as metric_age does. */
    const char *never;
    bool seconds; /* the fact is a time in ns */
    /* Not NULL: the facts have a uint64_t for each of these names, which the label `labels` has. */
    const struct enum_names *names;
    size_t more_cells; /* of a counter that writes itself: beyond its one */
};

/* The row of a counter: `counter` is its place in the block. */
#define METRIC_COUNTED(name_, counter_) METRIC_COUNTED_AS(name_, NULL, counter_)
/* The same with labels: several rows may have one name. */
#define METRIC_COUNTED_AS(name_, labels_, counter_)                                           \
    {                                                                                         \
        .name = (name_), .labels = (labels_), .offset = (size_t)(counter_) * sizeof(uint64_t) \
    }
/* The row of a uint64_t in the facts. */
#define METRIC_FACT(name_, facts_, member_)                  \
    {                                                        \
        .name = (name_), .offset = offsetof(facts_, member_) \
    }
/* The row of an age in the facts. */
#define METRIC_AGE(name_, facts_, member_, never_)                              \
    {                                                                           \
        .name = (name_), .never = (never_), .offset = offsetof(facts_, member_) \
    }
/* The row of a time in the facts, in ns. */
#define METRIC_SECONDS(name_, facts_, member_)                                \
    {                                                                         \
        .name = (name_), .seconds = true, .offset = offsetof(facts_, member_) \
    }
/* The rows of an array of uint64_t in the facts, with a label. */
#define METRIC_EACH(name_, facts_, member_, label_, names_)     \
    {                                                           \
        .name = (name_), .labels = (label_), .names = (names_), \
        .offset = offsetof(facts_, member_)                     \
    }
/* The row that writes itself. */
#define METRIC_WRITTEN(name_, write_)      \
    {                                      \
        .name = (name_), .write = (write_) \
    }

/* The description of a metric: a table of all names, ended by one without a name. */
struct metric_about {
    const char *name;
    const char *type; /* counter, gauge, histogram */
    const char *help;
};
extern const struct metric_about metrics_about[]; /* docs/metrics.md */

/* ---- serving threads ------------------------------------------------------------------------- */

struct metrics;
struct metrics_shard;
typedef atomic_uint_least64_t metrics_cell;

#define METRICS_ROUTE_MAX 32
/* `route_label` names what requests are counted under: 0, 1, … (METRICS_ROUTE_MAX at most), then
 * NULL. `counted` are the tables about counters, ended by NULL, and `about` is what all metrics
 * are; both are borrowed. */
struct metrics *metrics_create(size_t threads, const char *(*route_label)(size_t route),
                               const struct metric *const *counted,
                               const struct metric_about *about);
void metrics_destroy(struct metrics **metrics);
struct metrics_shard *metrics_shard(struct metrics *metrics, size_t index);

/* One answered request: its route, HTTP status and time from first byte in to answer handed to the
 * kernel. Owner thread of the shard only. */
void metrics_request(struct metrics_shard *shard, size_t route, int http_status,
                     uint64_t duration_ns);

/* The thread's block for one of the tables: a cell a row, and those that a row has more. */
metrics_cell *metrics_cells(struct metrics_shard *shard, const struct metric *table);

/* Any thread. */
static inline void metrics_add(metrics_cell *cells, size_t counter, uint64_t amount)
{
    relaxed_add(&cells[counter], amount);
}

/* ---- a scrape -------------------------------------------------------------------------------- */

struct metrics_source {
    const struct metric *table;
    const void *facts; /* NULL: the sums of the threads' counters */
};

/* `sources` ends with one without a table. */
void metrics_write(const struct metrics *metrics, const struct metrics_source *sources,
                   struct buffer *out);

/* Requests and their durations, of which the facts are the struct metrics; and the build. */
extern const struct metric metrics_table[];

/* The same for who shows it otherwise; any thread. One counter, summed over the threads. */
uint64_t metrics_counted(const struct metrics *metrics, const struct metric *table, size_t counter);

#define METRICS_CLASSES 4 /* of status: 2xx to 5xx */
#define METRICS_DURATIONS 18
struct metrics_totals { /* of all routes */
    uint64_t requests[METRICS_CLASSES];
    uint64_t durations[METRICS_DURATIONS]; /* as metric_histogram has counts */
};
void metrics_totals(const struct metrics *metrics, struct metrics_totals *totals);
/* A percentile in ms, as histogram_quantile of Prometheus computes it; negative: there is none. */
double metrics_duration_ms(const uint64_t durations[METRICS_DURATIONS], unsigned percent);

/* ---- for rows that write themselves ---------------------------------------------------------- */

/* "name{labels} value"; `labels` as in the row, or NULL. */
void metric_number(struct buffer *out, const char *name, const char *labels, uint64_t value);
void metric_seconds(struct buffer *out, const char *name, const char *labels, uint64_t ns);
/* Writes seconds, or `never` when the value is negative: "NaN", for which no alert's comparison is
 * true, or "+Inf". */
void metric_age(struct buffer *out, const char *name, const char *labels, int64_t age_ms,
                const char *never);

/* `counts[i]` of what is above bounds[i - 1] and at most bounds[i]; the last has no bound. */
struct metric_histogram {
    const uint32_t *bounds; /* bucket_count - 1 */
    const uint64_t *counts;
    size_t bucket_count;
    uint64_t sum;        /* of what was counted; of times, in nanoseconds */
    unsigned per_second; /* of times: the unit of the bounds, 1000 for ms; else 1 */
    const char *labels;  /* as in the row, or NULL */
};
/* The bucket that counts a value. */
size_t metric_bucket(const uint32_t *bounds, size_t bucket_count, uint64_t value);
void metric_histogram(struct buffer *out, const char *name,
                      const struct metric_histogram *histogram);
/* A percentile in the unit of the bounds, at most the last bound; negative: nothing was counted. */
double metric_percentile(const struct metric_histogram *histogram, unsigned percent);
