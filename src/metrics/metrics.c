/*
 * Counting must cost next to nothing, reading may cost something. So every serving thread counts in
 * cells of its own, on cache lines of their own. A scrape reads all shards without stopping
 * anybody; sums are exact, though not of one instant.
 */
#include "metrics/metrics.h"

#include "base/memory.h"
#include "base/version.h"

#define CACHE_LINE 64
#define COUNTERS_MAX 192

/* ---- cells ----------------------------------------------------------------------------------- */

/* Statuses from 200 to 599 have a cell each; anything else counts under "other". */
#define STATUS_FIRST 200
#define STATUS_KINDS 400U
#define STATUS_OTHER STATUS_KINDS

/* Upper bounds of the histogram's buckets. A ready-made answer takes some 20 microseconds. */
static const uint32_t bounds_us[METRICS_DURATIONS - 1] = {
    25,    50,    100,    250,    500,    1000,    2500,    5000,    10000,
    25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000,
};

struct metrics_shard {
    _Alignas(CACHE_LINE) metrics_cell requests[METRICS_ROUTE_MAX][STATUS_KINDS + 1];
    /* The counts are not cumulative; the last is +Inf. */
    metrics_cell durations[METRICS_ROUTE_MAX][METRICS_DURATIONS];
    metrics_cell duration_ns[METRICS_ROUTE_MAX];
    metrics_cell counters[COUNTERS_MAX]; /* the tables' blocks, one after the other */
    const struct metrics *metrics;
};

struct metrics {
    const struct metric *const *counted;
    const struct metric_about *about;
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

struct metrics *metrics_create(size_t threads, const char *(*route_label)(size_t route),
                               const struct metric *const *counted,
                               const struct metric_about *about)
{
    CHECK(threads > 0);
    struct metrics *metrics = memory_alloc_zeroed(1, sizeof *metrics);
    metrics->counted = counted;
    metrics->about = about;
    size_t counters = 0;
    for (size_t i = 0; metrics->counted[i] != NULL; i++)
        counters += cell_count(metrics->counted[i]);
    CHECK(counters <= COUNTERS_MAX);
    for (const char *label; (label = route_label(metrics->route_count)) != NULL;) {
        CHECK(metrics->route_count < METRICS_ROUTE_MAX);
        metrics->routes[metrics->route_count++] = label;
    }
    metrics->shard_count = threads;
    metrics->shards = aligned_alloc(CACHE_LINE, metrics->shard_count * sizeof metrics->shards[0]);
    CHECK(metrics->shards != NULL);
    memset(metrics->shards, 0, metrics->shard_count * sizeof metrics->shards[0]);
    for (size_t i = 0; i < metrics->shard_count; i++)
        metrics->shards[i].metrics = metrics;
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

/* The table's block begins here in `counters`. */
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
    relaxed_store(at, relaxed_load(at) + amount);
}

void metrics_request(struct metrics_shard *shard, size_t route, int http_status,
                     uint64_t duration_ns)
{
    size_t kind = (size_t)http_status - STATUS_FIRST; /* of a lower one: a large number */
    size_t bucket = metric_bucket(bounds_us, METRICS_DURATIONS, (duration_ns + 999) / 1000);
    if (kind > STATUS_OTHER)
        kind = STATUS_OTHER;
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
        sum += relaxed_load((const metrics_cell *)(const void *)(shard + offset));
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
            totals->requests[kind / 100] +=
                sum_at(metrics, offsetof(struct metrics_shard, requests[route][kind]));
        for (size_t bucket = 0; bucket < METRICS_DURATIONS; bucket++)
            totals->durations[bucket] +=
                sum_at(metrics, offsetof(struct metrics_shard, durations[route][bucket]));
    }
}

double metrics_duration_ms(const uint64_t durations[METRICS_DURATIONS], unsigned percent)
{
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

/* Writes no zeros at the end: "0.00025", "5". */
static void append_bound(struct buffer *out, double bound)
{
    buffer_append_format(out, "%.6f", bound);
    while (out->data[out->size - 1] == '0')
        out->size--;
    if (out->data[out->size - 1] == '.')
        out->size--;
}

void metric_histogram(struct buffer *out, const char *name,
                      const struct metric_histogram *histogram)
{
    const char *labels = histogram->labels == NULL ? "" : histogram->labels;
    int open_size = labels[0] == '\0' ? 0 : (int)strlen(labels) - 1; /* without the last brace */
    uint64_t count = 0;
    for (size_t i = 0; i < histogram->bucket_count; i++) {
        count += histogram->counts[i];
        /* Into the braces of the other labels. */
        buffer_append_format(out, "%s_bucket%.*s%sle=\"", name, open_size, labels,
                             labels[0] == '\0' ? "{" : ",");
        if (i + 1 == histogram->bucket_count)
            buffer_append_string(out, "+Inf");
        else
            append_bound(out, (double)histogram->bounds[i] / histogram->per_second);
        metric_number(out, "\"}", NULL, count);
    }
    buffer_append_string(out, name);
    if (histogram->per_second > 1)
        metric_seconds(out, "_sum", labels, histogram->sum);
    else
        metric_number(out, "_sum", labels, histogram->sum);
    buffer_append_string(out, name);
    metric_number(out, "_count", labels, count);
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
                buffer_append_u64(out, STATUS_FIRST + kind);
            metric_number(out, "\"}", NULL, count);
        }
    }
}

static void write_durations(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct metrics *metrics = facts;
    for (size_t route = 0; route < metrics->route_count; route++) {
        uint64_t counts[METRICS_DURATIONS];
        struct buffer labels = {0};
        for (size_t i = 0; i < METRICS_DURATIONS; i++)
            counts[i] = sum_at(metrics, offsetof(struct metrics_shard, durations[route][i]));
        buffer_append_format(&labels, "{route=\"%s\"}", metrics->routes[route]);
        metric_histogram(
            out, metric->name,
            &(struct metric_histogram){
                .labels = buffer_string(&labels),
                .bounds = bounds_us,
                .per_second = 1000000,
                .counts = counts,
                .bucket_count = METRICS_DURATIONS,
                .sum = sum_at(metrics, offsetof(struct metrics_shard, duration_ns[route])),
            });
        buffer_free(&labels);
    }
}

const struct metric metrics_table[] = {
    METRIC_WRITTEN("croupier_build_info", write_build),
    METRIC_WRITTEN("croupier_requests_total", write_requests),
    METRIC_WRITTEN("croupier_request_duration_seconds", write_durations),
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

static void write_facts(const struct metric *row, const void *facts, struct buffer *out)
{
    const metrics_cell *cells = (const void *)((const char *)facts + row->offset);
    const uint64_t first = relaxed_load(cells);
    if (row->never != NULL)
        metric_age(out, row->name, row->labels, (int64_t)first, row->never);
    else if (row->seconds)
        metric_seconds(out, row->name, row->labels, first);
    else if (row->names == NULL)
        metric_number(out, row->name, row->labels, first);
    for (size_t i = 0; row->names != NULL && i < row->names->count; i++) {
        buffer_append_format(out, "%s{%s=\"%s", row->name, row->labels, row->names->list[i]);
        metric_number(out, "\"}", NULL, relaxed_load(&cells[i]));
    }
}

static void write_samples(const struct metrics *metrics, const struct metrics_source *sources,
                          const char *name, struct buffer *out)
{
    for (const struct metrics_source *source = sources; source->table != NULL; source++) {
        for (const struct metric *row = source->table; row->name != NULL; row++) {
            uint64_t sums[COUNTERS_MAX];
            const void *facts = source->facts;
            if (strcmp(row->name, name) != 0)
                continue;
            if (facts == NULL) {
                sum_counters(metrics, source->table, sums);
                facts = sums;
            }
            if (row->write != NULL)
                row->write(row, facts, out);
            else
                write_facts(row, facts, out);
        }
    }
}

static void write_about(const struct metric_about *about, const char *name, struct buffer *out)
{
    while (about->name != NULL && strcmp(about->name, name) != 0)
        about++;
    if (about->name != NULL)
        buffer_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", name, about->help, name,
                             about->type);
}

void metrics_write(const struct metrics *metrics, const struct metrics_source *sources,
                   struct buffer *out)
{
    for (const struct metrics_source *source = sources; source->table != NULL; source++) {
        for (const struct metric *row = source->table; row->name != NULL; row++) {
            if (!is_first(sources, row))
                continue;
            write_about(metrics->about, row->name, out);
            write_samples(metrics, sources, row->name, out);
        }
    }
}
