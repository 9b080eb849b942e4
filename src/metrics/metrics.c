/*
 * Counting must cost next to nothing, reading may cost something. So every serving thread counts in
 * cells of its own, on cache lines of their own. A scrape reads all shards without stopping
 * anybody; sums are exact, though not of one instant.
 */
#include "metrics/metrics.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/version.h"

#define CACHE_LINE 64
#define COUNTERS_MAX 96U /* of all tables */

/* ---- cells ----------------------------------------------------------------------------------- */

/* The statuses that this program answers with; anything else counts under "other". */
static const uint16_t statuses[] = {200, 304, 400, 403, 404, 405, 408, 409, 413, 414, 415,
                                    417, 422, 429, 431, 500, 501, 502, 503, 504, 505};
#define STATUS_KINDS (sizeof statuses / sizeof statuses[0])
#define STATUS_OTHER STATUS_KINDS

/* Upper bounds of the histogram's buckets. A ready-made answer takes some 20 microseconds. */
static const struct {
    uint64_t ns;
    const char *seconds;
} buckets[] = {
    {25000, "0.000025"}, {50000, "0.00005"},  {100000, "0.0001"},  {250000, "0.00025"},
    {500000, "0.0005"},  {1000000, "0.001"},  {2500000, "0.0025"}, {5000000, "0.005"},
    {10000000, "0.01"},  {25000000, "0.025"}, {50000000, "0.05"},  {100000000, "0.1"},
    {250000000, "0.25"}, {500000000, "0.5"},  {1000000000, "1"},   {2500000000, "2.5"},
    {5000000000, "5"},
};
#define BUCKET_COUNT (sizeof buckets / sizeof buckets[0])
_Static_assert(METRICS_DURATIONS == BUCKET_COUNT + 1, "the header says how many");

struct metrics_shard {
    _Alignas(CACHE_LINE) metrics_cell requests[METRICS_ROUTE_MAX][STATUS_KINDS + 1];
    /* Not cumulative; the last is +Inf. */
    metrics_cell durations[METRICS_ROUTE_MAX][BUCKET_COUNT + 1];
    metrics_cell duration_ns[METRICS_ROUTE_MAX];
    metrics_cell counters[COUNTERS_MAX]; /* the tables' blocks, one after the other */
    const struct metrics *metrics;
    uint8_t status_kind[1024]; /* status & 1023 → its place in `statuses` */
};

struct metrics {
    const struct metric *const *counted;
    size_t shard_count;
    struct metrics_shard *shards;
    size_t route_count;
    const char *routes[METRICS_ROUTE_MAX];
};

static size_t cell_count(const struct metric *table)
{
    size_t count = 0;
    for (const struct metric *row = table; row->name != NULL; row++)
        count += 1 + row->more_cells;
    return count;
}

static void shard_init(struct metrics_shard *shard, const struct metrics *metrics)
{
    memset(shard, 0, sizeof *shard);
    shard->metrics = metrics;
    memset(shard->status_kind, STATUS_OTHER, sizeof shard->status_kind);
    for (size_t kind = 0; kind < STATUS_KINDS; kind++)
        shard->status_kind[statuses[kind]] = (uint8_t)kind;
}

struct metrics *metrics_create(const struct metrics_options *options)
{
    CHECK(options->threads > 0);
    struct metrics *metrics = memory_alloc_zeroed(1, sizeof *metrics);
    metrics->counted = options->counted;
    size_t counters = 0;
    for (size_t i = 0; metrics->counted[i] != NULL; i++)
        counters += cell_count(metrics->counted[i]);
    CHECK(counters <= COUNTERS_MAX);
    for (const char *label; (label = options->route_label(metrics->route_count)) != NULL;) {
        CHECK(metrics->route_count < METRICS_ROUTE_MAX);
        metrics->routes[metrics->route_count++] = label;
    }
    metrics->shard_count = options->threads;
    metrics->shards = aligned_alloc(CACHE_LINE, metrics->shard_count * sizeof metrics->shards[0]);
    CHECK(metrics->shards != NULL);
    for (size_t i = 0; i < metrics->shard_count; i++)
        shard_init(&metrics->shards[i], metrics);
    return metrics;
}

void metrics_destroy(struct metrics **metrics)
{
    if (*metrics == NULL)
        return;
    free((*metrics)->shards);
    memory_free(*metrics);
    *metrics = NULL;
}

struct metrics_shard *metrics_shard(struct metrics *metrics, size_t index)
{
    CHECK(index < metrics->shard_count);
    return &metrics->shards[index];
}

/* Where the table's block begins in `counters`. */
static size_t block_of(const struct metrics *metrics, const struct metric *table)
{
    size_t at = 0;
    for (size_t i = 0; metrics->counted[i] != table; i++) {
        CHECK(metrics->counted[i] != NULL);
        at += cell_count(metrics->counted[i]);
    }
    return at;
}

metrics_cell *metrics_cells(struct metrics_shard *shard, const struct metric *table)
{
    return &shard->counters[block_of(shard->metrics, table)];
}

/* Only the shard's owner calls this, so nothing can come between the load and the store. */
static void add_owned(metrics_cell *at, uint64_t amount)
{
    atomic_store_explicit(at, atomic_load_explicit(at, memory_order_relaxed) + amount,
                          memory_order_relaxed);
}

void metrics_request(struct metrics_shard *shard, size_t route, int http_status,
                     uint64_t duration_ns)
{
    bool known = http_status >= 0 && http_status < (int)sizeof shard->status_kind;
    size_t kind = known ? shard->status_kind[http_status] : STATUS_OTHER;
    size_t bucket = 0;
    while (bucket < BUCKET_COUNT && duration_ns > buckets[bucket].ns)
        bucket++;
    add_owned(&shard->requests[route][kind], 1);
    add_owned(&shard->durations[route][bucket], 1);
    add_owned(&shard->duration_ns[route], duration_ns);
}

/* ---- adding up ------------------------------------------------------------------------------- */

/* The sum over all shards of the cell that stands at `offset`. */
static uint64_t sum_at(const struct metrics *metrics, size_t offset)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < metrics->shard_count; i++) {
        const char *shard = (const char *)&metrics->shards[i];
        sum += atomic_load_explicit((const metrics_cell *)(const void *)(shard + offset),
                                    memory_order_relaxed);
    }
    return sum;
}

static void sum_counters(const struct metrics *metrics, const struct metric *table, uint64_t *sums)
{
    size_t at = block_of(metrics, table);
    /* The last is read first, and enums go from cause to effect: nothing is seen to have ended that
     * was not seen to begin. */
    for (size_t i = cell_count(table); i-- > 0;)
        sums[i] = sum_at(metrics, offsetof(struct metrics_shard, counters[at + i]));
}

uint64_t metrics_counted(const struct metrics *metrics, const struct metric *table, size_t counter)
{
    return sum_at(metrics,
                  offsetof(struct metrics_shard, counters[block_of(metrics, table) + counter]));
}

void metrics_totals(const struct metrics *metrics, struct metrics_totals *totals)
{
    *totals = (struct metrics_totals){.requests = {0}};
    for (size_t route = 0; route < metrics->route_count; route++) {
        for (size_t kind = 0; kind < STATUS_KINDS; kind++)
            totals->requests[statuses[kind] / 100 - 2] +=
                sum_at(metrics, offsetof(struct metrics_shard, requests[route][kind]));
        for (size_t bucket = 0; bucket <= BUCKET_COUNT; bucket++)
            totals->durations[bucket] +=
                sum_at(metrics, offsetof(struct metrics_shard, durations[route][bucket]));
    }
}

double metrics_duration_ms(const uint64_t durations[METRICS_DURATIONS], unsigned percent)
{
    uint32_t bounds_us[BUCKET_COUNT];
    for (size_t i = 0; i < BUCKET_COUNT; i++)
        bounds_us[i] = (uint32_t)(buckets[i].ns / 1000);
    return metric_percentile(&(struct metric_histogram){.bounds = bounds_us,
                                                        .counts = durations,
                                                        .bucket_count = METRICS_DURATIONS},
                             percent) /
           1000;
}

/* ---- samples --------------------------------------------------------------------------------- */

static void begin_sample(struct buffer *out, const char *name, const char *labels)
{
    buffer_append_string(out, name);
    if (labels != NULL)
        buffer_append_string(out, labels);
    buffer_append_char(out, ' ');
}

void metric_number(struct buffer *out, const char *name, const char *labels, uint64_t value)
{
    begin_sample(out, name, labels);
    buffer_append_u64(out, value);
    buffer_append_char(out, '\n');
}

void metric_seconds(struct buffer *out, const char *name, const char *labels, uint64_t ns)
{
    begin_sample(out, name, labels);
    buffer_append_format(out, "%llu.%09llu\n", (unsigned long long)(ns / 1000000000U),
                         (unsigned long long)(ns % 1000000000U));
}

void metric_age(struct buffer *out, const char *name, const char *labels, int64_t age_ms,
                const char *never)
{
    begin_sample(out, name, labels);
    if (age_ms < 0)
        buffer_append_format(out, "%s\n", never);
    else
        buffer_append_format(out, "%lld.%03d\n", (long long)(age_ms / 1000), (int)(age_ms % 1000));
}

size_t metric_bucket(const uint32_t *bounds, size_t bucket_count, uint64_t value)
{
    size_t bucket = 0;
    while (bucket + 1 < bucket_count && value > bounds[bucket])
        bucket++;
    return bucket;
}

size_t metric_bucket_of_time(const uint32_t *bounds_ms, size_t bucket_count, uint64_t ns)
{
    return metric_bucket(bounds_ms, bucket_count, ns / 1000000 + (ns % 1000000 > 0));
}

void metric_histogram(struct buffer *out, const char *name,
                      const struct metric_histogram *histogram)
{
    uint64_t count = 0;
    for (size_t i = 0; i < histogram->bucket_count; i++) {
        count += histogram->counts[i];
        buffer_append_format(out, "%s_bucket{le=\"", name);
        if (i + 1 == histogram->bucket_count)
            buffer_append_string(out, "+Inf");
        else if (histogram->of_times)
            buffer_append_format(out, "%g", histogram->bounds[i] / 1000.0);
        else
            buffer_append_u64(out, histogram->bounds[i]);
        metric_number(out, "\"}", NULL, count);
    }
    buffer_append_string(out, name);
    if (histogram->of_times)
        metric_seconds(out, "_sum", NULL, histogram->sum);
    else
        metric_number(out, "_sum", NULL, histogram->sum);
    buffer_append_string(out, name);
    metric_number(out, "_count", NULL, count);
}

/* Evenly spread within a bucket, of which the first begins at 0. */
double metric_percentile(const struct metric_histogram *histogram, unsigned percent)
{
    uint64_t count = 0;
    uint64_t below = 0;
    size_t i = 0;
    for (size_t k = 0; k < histogram->bucket_count; k++)
        count += histogram->counts[k];
    if (count == 0)
        return -1;
    double rank = (double)count * percent / 100;
    while (i + 1 < histogram->bucket_count && (double)(below + histogram->counts[i]) < rank)
        below += histogram->counts[i++];
    if (i + 1 == histogram->bucket_count)
        return histogram->bounds[i - 1];
    double from = i == 0 ? 0 : histogram->bounds[i - 1];
    return from +
           (histogram->bounds[i] - from) * (rank - (double)below) / (double)histogram->counts[i];
}

/* ---- requests, and the build ----------------------------------------------------------------- */

static void write_build(const struct metric *metric, const void *facts, struct buffer *out)
{
    (void)facts;
    char labels[64 + sizeof CROUPIER_VERSION];
    (void)snprintf(labels, sizeof labels, "{version=\"%s\",commit=\"%.40s\"}", CROUPIER_VERSION,
                   croupier_commit);
    metric_number(out, metric->name, labels, 1);
}

static void write_requests(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct metrics *metrics = facts;
    for (size_t route = 0; route < metrics->route_count; route++) {
        for (size_t kind = 0; kind <= STATUS_KINDS; kind++) {
            uint64_t count = sum_at(metrics, offsetof(struct metrics_shard, requests[route][kind]));
            /* Counts of zero are left out, except of success, so that a rate has a beginning. */
            if (count == 0 && kind != 0)
                continue;
            buffer_append_format(out, "%s{route=\"%s\",status=\"", metric->name,
                                 metrics->routes[route]);
            if (kind == STATUS_OTHER)
                buffer_append_string(out, "other");
            else
                buffer_append_u64(out, statuses[kind]);
            metric_number(out, "\"}", NULL, count);
        }
    }
}

static void write_durations(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct metrics *metrics = facts;
    for (size_t route = 0; route < metrics->route_count; route++) {
        const char *name = metrics->routes[route];
        uint64_t count = 0;
        for (size_t bucket = 0; bucket <= BUCKET_COUNT; bucket++) {
            count += sum_at(metrics, offsetof(struct metrics_shard, durations[route][bucket]));
            buffer_append_format(out, "%s_bucket{route=\"%s\",le=\"%s", metric->name, name,
                                 bucket == BUCKET_COUNT ? "+Inf" : buckets[bucket].seconds);
            metric_number(out, "\"}", NULL, count);
        }
        buffer_append_format(out, "%s_sum{route=\"%s", metric->name, name);
        metric_seconds(out, "\"}", NULL,
                       sum_at(metrics, offsetof(struct metrics_shard, duration_ns[route])));
        buffer_append_format(out, "%s_count{route=\"%s", metric->name, name);
        metric_number(out, "\"}", NULL, count);
    }
}

const struct metric metrics_table[] = {
    METRIC_WRITTEN("croupier_build_info", "gauge", write_build,
                   "Always 1; the labels tell the program"),
    METRIC_WRITTEN("croupier_requests_total", "counter", write_requests,
                   "Requests answered, by route and HTTP status"),
    METRIC_WRITTEN("croupier_request_duration_seconds", "histogram", write_durations,
                   "Time from a request's first byte to its answer handed to the kernel, by route"),
    {0},
};

/* ---- a scrape -------------------------------------------------------------------------------- */

/* Is this row the first of its name? */
static bool is_first(const struct metrics_source *sources, const struct metric *row)
{
    for (const struct metrics_source *source = sources;; source++)
        for (const struct metric *at = source->table; at->name != NULL; at++)
            if (strcmp(at->name, row->name) == 0)
                return at == row;
}

static void write_samples(const struct metrics *metrics, const struct metrics_source *sources,
                          const char *name, struct buffer *out)
{
    for (const struct metrics_source *source = sources; source->table != NULL; source++) {
        for (const struct metric *row = source->table; row->name != NULL; row++) {
            uint64_t sums[COUNTERS_MAX];
            const void *facts = source->facts;
            uint64_t value;
            if (strcmp(row->name, name) != 0)
                continue;
            if (facts == NULL) {
                sum_counters(metrics, source->table, sums);
                facts = sums;
            }
            if (row->write != NULL) {
                row->write(row, facts, out);
                continue;
            }
            value = atomic_load_explicit(
                (const metrics_cell *)(const void *)((const char *)facts + row->offset),
                memory_order_relaxed);
            if (row->never != NULL)
                metric_age(out, row->name, row->labels, (int64_t)value, row->never);
            else
                metric_number(out, row->name, row->labels, value);
        }
    }
}

void metrics_write(const struct metrics *metrics, const struct metrics_source *sources,
                   struct buffer *out)
{
    for (const struct metrics_source *source = sources; source->table != NULL; source++) {
        for (const struct metric *row = source->table; row->name != NULL; row++) {
            if (!is_first(sources, row))
                continue;
            buffer_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help,
                                 row->name, row->type);
            write_samples(metrics, sources, row->name, out);
        }
    }
}
