/*
 * Counting must cost next to nothing, reading may cost something. So every serving thread counts in
 * cells of its own that no other thread writes, on cache lines of their own: an increment is a
 * load, an add and a store. A scrape reads all shards without stopping anybody; sums are exact,
 * though not of one instant.
 *
 * What is written, and in which order, is one table at the end of this file.
 */
#include "metrics/metrics.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/version.h"

#define CACHE_LINE 64

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

typedef _Atomic uint64_t cell;

struct metrics_shard {
    _Alignas(CACHE_LINE) cell requests[METRICS_ROUTE_MAX][STATUS_KINDS + 1];
    cell durations[METRICS_ROUTE_MAX][BUCKET_COUNT + 1]; /* not cumulative; the last is +Inf */
    cell duration_ns[METRICS_ROUTE_MAX];
    cell counters[METRICS_COUNTER_COUNT];
    uint8_t status_kind[1024]; /* status & 1023 → its place in `statuses` */
};

struct metrics {
    size_t shard_count;
    struct metrics_shard *shards;
    size_t route_count;
    const char *routes[METRICS_ROUTE_MAX];
};

struct metrics *metrics_create(size_t shards, const char *(*route_label)(size_t route))
{
    CHECK(shards > 0);
    struct metrics *metrics = memory_alloc_zeroed(1, sizeof *metrics);
    metrics->shard_count = shards;
    for (const char *label; (label = route_label(metrics->route_count)) != NULL;) {
        CHECK(metrics->route_count < METRICS_ROUTE_MAX);
        metrics->routes[metrics->route_count++] = label;
    }
    metrics->shards = aligned_alloc(CACHE_LINE, shards * sizeof metrics->shards[0]);
    CHECK(metrics->shards != NULL);
    memset(metrics->shards, 0, shards * sizeof metrics->shards[0]);
    for (size_t i = 0; i < shards; i++) {
        memset(metrics->shards[i].status_kind, STATUS_OTHER, sizeof metrics->shards[i].status_kind);
        for (size_t kind = 0; kind < STATUS_KINDS; kind++)
            metrics->shards[i].status_kind[statuses[kind]] = (uint8_t)kind;
    }
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

/* Only the shard's owner calls this, so no other write comes between the load and the store. */
static void add_owned(cell *at, uint64_t amount)
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

void metrics_add(struct metrics_shard *shard, enum metrics_counter counter, uint64_t amount)
{
    atomic_fetch_add_explicit(&shard->counters[counter], amount, memory_order_relaxed);
}

/* ---- adding up ------------------------------------------------------------------------------- */

/* The sum over all shards of the cell that stands at `offset`. */
static uint64_t sum_at(const struct metrics *metrics, size_t offset)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < metrics->shard_count; i++) {
        const char *shard = (const char *)&metrics->shards[i];
        sum += atomic_load_explicit((const cell *)(const void *)(shard + offset),
                                    memory_order_relaxed);
    }
    return sum;
}

static uint64_t sum_counter(const struct metrics *metrics, enum metrics_counter counter)
{
    return sum_at(metrics, offsetof(struct metrics_shard, counters) + counter * sizeof(cell));
}

/* ---- writing --------------------------------------------------------------------------------- */

struct row {
    struct metric_description about;
    void (*write)(const struct row *row, const struct metrics *metrics,
                  const struct metrics_gauges *gauges, struct buffer *out);
    enum metrics_counter counter; /* for write_counter */
    size_t offset;                /* in struct metrics_gauges, for write_gauge */
};

static void write_sample(struct buffer *out, const char *name, const char *labels, uint64_t value)
{
    buffer_append_string(out, name);
    buffer_append_string(out, labels);
    buffer_append_char(out, ' ');
    buffer_append_u64(out, value);
    buffer_append_char(out, '\n');
}

static void write_counter(const struct row *row, const struct metrics *metrics,
                          const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)gauges;
    write_sample(out, row->about.name, "", sum_counter(metrics, row->counter));
}

static void write_gauge(const struct row *row, const struct metrics *metrics,
                        const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)metrics;
    uint64_t value;
    memcpy(&value, (const char *)gauges + row->offset, sizeof value);
    write_sample(out, row->about.name, "", value);
}

static void write_build(const struct row *row, const struct metrics *metrics,
                        const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)metrics;
    (void)gauges;
    char labels[64 + sizeof CROUPIER_VERSION];
    (void)snprintf(labels, sizeof labels, "{version=\"%s\",commit=\"%.40s\"}", CROUPIER_VERSION,
                   croupier_commit);
    write_sample(out, row->about.name, labels, 1);
}

static void write_requests(const struct row *row, const struct metrics *metrics,
                           const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)gauges;
    for (size_t route = 0; route < metrics->route_count; route++) {
        for (size_t kind = 0; kind <= STATUS_KINDS; kind++) {
            uint64_t count =
                sum_at(metrics, offsetof(struct metrics_shard, requests) +
                                    (route * (STATUS_KINDS + 1) + kind) * sizeof(cell));
            /* What never happened is left out, except success, so that a rate has a beginning. */
            if (count == 0 && kind != 0)
                continue;
            buffer_append_format(out, "%s{route=\"%s\",status=\"", row->about.name,
                                 metrics->routes[route]);
            if (kind == STATUS_OTHER)
                buffer_append_string(out, "other");
            else
                buffer_append_u64(out, statuses[kind]);
            write_sample(out, "\"}", "", count);
        }
    }
}

static void append_seconds(struct buffer *out, uint64_t nanoseconds)
{
    buffer_append_format(out, "%llu.%09llu", (unsigned long long)(nanoseconds / 1000000000U),
                         (unsigned long long)(nanoseconds % 1000000000U));
}

static void write_durations(const struct row *row, const struct metrics *metrics,
                            const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)gauges;
    for (size_t route = 0; route < metrics->route_count; route++) {
        const char *name = metrics->routes[route];
        uint64_t count = 0;
        for (size_t bucket = 0; bucket <= BUCKET_COUNT; bucket++) {
            count += sum_at(metrics, offsetof(struct metrics_shard, durations) +
                                         (route * (BUCKET_COUNT + 1) + bucket) * sizeof(cell));
            buffer_append_format(out, "%s_bucket{route=\"%s\",le=\"%s\"} ", row->about.name, name,
                                 bucket == BUCKET_COUNT ? "+Inf" : buckets[bucket].seconds);
            buffer_append_u64(out, count);
            buffer_append_char(out, '\n');
        }
        buffer_append_format(out, "%s_sum{route=\"%s\"} ", row->about.name, name);
        append_seconds(out, sum_at(metrics, offsetof(struct metrics_shard, duration_ns) +
                                                route * sizeof(cell)));
        buffer_append_format(out, "\n%s_count{route=\"%s\"} ", row->about.name, name);
        buffer_append_u64(out, count);
        buffer_append_char(out, '\n');
    }
}

/* `never` is what a negative age is: "NaN", which no alert's comparison is true for, or "+Inf". */
static void write_age(struct buffer *out, const char *name, const char *sport, int64_t age_ms,
                      const char *never)
{
    buffer_append_string(out, name);
    if (sport != NULL)
        buffer_append_format(out, "{sport=\"%s\"}", sport);
    if (age_ms < 0)
        buffer_append_format(out, " %s\n", never);
    else
        buffer_append_format(out, " %lld.%03d\n", (long long)(age_ms / 1000), (int)(age_ms % 1000));
}

static void write_policy_age(const struct row *row, const struct metrics *metrics,
                             const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)metrics;
    write_age(out, row->about.name, NULL, gauges->policy_age_ms, "+Inf");
}

static void write_platform_wait(const struct row *row, const struct metrics *metrics,
                                const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)metrics;
    buffer_append_string(out, row->about.name);
    buffer_append_char(out, ' ');
    append_seconds(out, gauges->platform_round_trip_ns);
    buffer_append_char(out, '\n');
}

static void write_feed_age(const struct row *row, const struct metrics *metrics,
                           const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)metrics;
    for (size_t i = 0; i < gauges->feed_count; i++)
        write_age(out, row->about.name, gauges->feed[i].sport, gauges->feed[i].age_ms, "NaN");
}

static void write_connections(const struct row *row, const struct metrics *metrics,
                              const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)gauges;
    /* Closed is read first: a connection cannot be seen closed and not opened. */
    uint64_t closed = sum_counter(metrics, METRICS_CONNECTIONS_CLOSED);
    uint64_t opened = sum_counter(metrics, METRICS_CONNECTIONS_OPENED);
    write_sample(out, row->about.name, "", opened > closed ? opened - closed : 0);
}

static void write_store_errors(const struct row *row, const struct metrics *metrics,
                               const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)gauges;
    static const struct {
        enum metrics_counter counter;
        const char *labels;
    } kinds[] = {
        {METRICS_ODDS_UNAVAILABLE, "{store=\"odds\",kind=\"unavailable\"}"},
        {METRICS_ODDS_TIMEOUT, "{store=\"odds\",kind=\"timeout\"}"},
        {METRICS_ODDS_MALFORMED, "{store=\"odds\",kind=\"malformed\"}"},
        {METRICS_POLICY_UNAVAILABLE, "{store=\"platform\",kind=\"unavailable\"}"},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        write_sample(out, row->about.name, kinds[i].labels, sum_counter(metrics, kinds[i].counter));
}

static void write_store_failures(const struct row *row, const struct metrics *metrics,
                                 const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)metrics;
    write_sample(out, row->about.name, "{store=\"odds\"}", gauges->odds_errors);
    write_sample(out, row->about.name, "{store=\"platform\"}", gauges->platform_errors);
}

static void write_wallet(const struct row *row, const struct metrics *metrics,
                         const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)metrics;
    for (size_t i = 0; i < gauges->wallet_count; i++) {
        if (gauges->wallet[i].count == 0)
            continue;
        buffer_append_format(out, "%s{operation=\"%s\",outcome=\"%s", row->about.name,
                             gauges->wallet[i].operation, gauges->wallet[i].outcome);
        write_sample(out, "\"}", "", gauges->wallet[i].count);
    }
}

static uint64_t write_counted_buckets(const struct row *row,
                                      const struct metrics_histogram *histogram, bool milliseconds,
                                      struct buffer *out)
{
    uint64_t count = 0;
    for (size_t i = 0; i < histogram->bucket_count; i++) {
        count += histogram->counts[i];
        buffer_append_format(out, "%s_bucket{le=\"", row->about.name);
        if (i + 1 == histogram->bucket_count)
            buffer_append_string(out, "+Inf");
        else if (milliseconds)
            buffer_append_format(out, "%g", histogram->bounds[i] / 1000.0);
        else
            buffer_append_u64(out, histogram->bounds[i]);
        write_sample(out, "\"}", "", count);
    }
    return count;
}

static void write_wallet_batch(const struct row *row, const struct metrics *metrics,
                               const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)metrics;
    uint64_t count = write_counted_buckets(row, &gauges->wallet_batch, false, out);
    buffer_append_format(out, "%s_sum", row->about.name);
    write_sample(out, "", "", gauges->wallet_batch.sum);
    buffer_append_format(out, "%s_count", row->about.name);
    write_sample(out, "", "", count);
}

/* Of milliseconds, in seconds. */
static void write_counted_times(const struct row *row, const struct metrics_histogram *histogram,
                                struct buffer *out)
{
    uint64_t count = write_counted_buckets(row, histogram, true, out);
    buffer_append_format(out, "%s_sum ", row->about.name);
    append_seconds(out, histogram->sum);
    buffer_append_format(out, "\n%s_count", row->about.name);
    write_sample(out, "", "", count);
}

static void write_wallet_commit(const struct row *row, const struct metrics *metrics,
                                const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)metrics;
    write_counted_times(row, &gauges->wallet_commit, out);
}

static void write_launch_call(const struct row *row, const struct metrics *metrics,
                              const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)metrics;
    write_counted_times(row, &gauges->launch_call, out);
}

static void write_launch_calls(const struct row *row, const struct metrics *metrics,
                               const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)metrics;
    for (size_t i = 0; i < gauges->launch_call_count; i++) {
        buffer_append_format(out, "%s{outcome=\"%s", row->about.name,
                             gauges->launch_calls[i].outcome);
        write_sample(out, "\"}", "", gauges->launch_calls[i].count);
    }
}

static void write_games_age(const struct row *row, const struct metrics *metrics,
                            const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)metrics;
    write_age(out, row->about.name, NULL, gauges->games_age_ms, "+Inf");
}

static void write_odds_round_trip(const struct row *row, const struct metrics *metrics,
                                  const struct metrics_gauges *gauges, struct buffer *out)
{
    (void)metrics;
    buffer_append_format(out, "%s ", row->about.name);
    if (gauges->odds_round_trip_ns == 0)
        buffer_append_string(out, "NaN");
    else
        append_seconds(out, gauges->odds_round_trip_ns);
    buffer_append_char(out, '\n');
}

/* ---- the table ------------------------------------------------------------------------------- */

#define COUNTED(name_, counter_, help_)                                                   \
    {                                                                                     \
        .about = {name_, "counter", help_}, .write = write_counter, .counter = (counter_) \
    }
#define ASKED(name_, type_, field_, help_)                    \
    {                                                         \
        .about = {name_, type_, help_}, .write = write_gauge, \
        .offset = offsetof(struct metrics_gauges, field_)     \
    }

static const struct row rows[] = {
    {.about = {"croupier_build_info", "gauge", "Always 1; the labels tell the program"},
     .write = write_build},
    {.about = {"croupier_requests_total", "counter", "Requests answered, by route and HTTP status"},
     .write = write_requests},
    {.about = {"croupier_request_duration_seconds", "histogram",
               "Time from a request's first byte to its answer handed to the kernel, by route"},
     .write = write_durations},
    COUNTED("croupier_not_admitted_total", METRICS_NOT_ADMITTED, "Answers 403 ip_not_allowed"),
    COUNTED("croupier_rate_limited_total", METRICS_RATE_LIMITED, "Answers 429 rate_limited"),
    ASKED("croupier_rate_leases_total", "counter", rate_leases,
          "Leases of shared rate budgets asked of the odds store"),
    ASKED("croupier_rate_leased_requests_total", "counter", rate_leased_requests,
          "Requests granted in those leases"),
    ASKED("croupier_rate_lease_failures_total", "counter", rate_lease_failures,
          "Leases that the odds store did not answer for"),
    COUNTED("croupier_rate_waits_total", METRICS_RATE_WAITS, "Requests that waited for a lease"),
    COUNTED("croupier_rate_alone_total", METRICS_RATE_ALONE,
            "Requests limited by this server alone because the odds store was away"),
    {.about = {"croupier_store_errors_total", "counter",
               "Answers 502, 503 and 504 because of a store, by store and kind"},
     .write = write_store_errors},
    {.about = {"croupier_store_failures_total", "counter", "Calls to a store that failed"},
     .write = write_store_failures},
    COUNTED("croupier_ready_hits_total", METRICS_READY_HITS, "Answers sent from memory at once"),
    COUNTED("croupier_ready_misses_total", METRICS_READY_MISSES,
            "Requests that waited for a value to be read or made ready"),
    COUNTED("croupier_ready_rebuilds_total", METRICS_READY_REBUILDS,
            "Catalogs and events made ready"),
    COUNTED("croupier_gzip_rebuilds_total", METRICS_GZIP_REBUILDS, "Bodies compressed"),
    COUNTED("croupier_not_modified_total", METRICS_NOT_MODIFIED, "Answers 304"),
    ASKED("croupier_ready_answers", "gauge", ready_answers, "Answers held ready in memory"),
    ASKED("croupier_ready_bytes", "gauge", ready_bytes, "Bytes of the answers held ready"),
    {.about = {"croupier_connections", "gauge", "Client connections open now"},
     .write = write_connections},
    COUNTED("croupier_connections_opened_total", METRICS_CONNECTIONS_OPENED,
            "Client connections accepted"),
    COUNTED("croupier_connections_closed_total", METRICS_CONNECTIONS_CLOSED,
            "Client connections closed"),
    COUNTED("croupier_connections_refused_total", METRICS_CONNECTIONS_REFUSED,
            "Client connections over max_connections, closed at once"),
    COUNTED("croupier_tls_failures_total", METRICS_TLS_FAILURES, "TLS handshakes that failed"),
    COUNTED("croupier_sent_bytes_total", METRICS_BYTES_SENT, "Bytes of answers sent"),
    {.about = {"croupier_policy_age_seconds", "gauge",
               "Time since the policy table was last confirmed; +Inf: never"},
     .write = write_policy_age},
    ASKED("croupier_policy_customers", "gauge", policy_customers, "Customers in the policy table"),
    ASKED("croupier_policy_keys", "gauge", policy_keys, "Keys in the policy table"),
    ASKED("croupier_policy_addresses", "gauge", policy_addresses,
          "Legacy addresses in the policy table"),
    {.about = {"croupier_feed_age_seconds", "gauge",
               "Time since anything of the sport was published; NaN: never"},
     .write = write_feed_age},
    ASKED("croupier_odds_reads_total", "counter", odds_reads, "Values read from the odds store"),
    ASKED("croupier_odds_reopened_total", "counter", odds_reopened,
          "Times the odds store was opened or connected again"),
    ASKED("croupier_odds_connected", "gauge", odds_connected,
          "1 while the odds store is open or connected, else 0"),
    ASKED("croupier_odds_invalidations_total", "counter", odds_invalidations,
          "Changes of stored values that a Redis server has reported"),
    {.about = {"croupier_odds_round_trip_seconds", "gauge",
               "Time to the Redis server and back, of late; NaN: not known"},
     .write = write_odds_round_trip},
    ASKED("croupier_interest_written_total", "counter", interest_written,
          "Requests of events recorded for the feed"),
    ASKED("croupier_interest_dropped_total", "counter", interest_dropped,
          "Requests of events not recorded because the queue was full"),
    ASKED("croupier_platform_round_trips_total", "counter", platform_round_trips,
          "Queries, or flights of them, that went to PostgreSQL and back"),
    {.about = {"croupier_platform_wait_seconds_total", "counter",
               "Time spent in round trips to PostgreSQL"},
     .write = write_platform_wait},
    ASKED("croupier_platform_connections", "gauge", platform_connections,
          "Connections to PostgreSQL open now"),
    ASKED("croupier_platform_connects_total", "counter", platform_connects,
          "Connections to PostgreSQL made"),
    ASKED("croupier_platform_repeats_total", "counter", platform_repeats,
          "Calls done again after a conflict or a lost connection"),
    ASKED("croupier_platform_timeouts_total", "counter", platform_timeouts,
          "Connections given up because PostgreSQL was silent for too long"),
    ASKED("croupier_work_queue_depth", "gauge", work_queue_depth,
          "Jobs waiting for a background thread"),
    ASKED("croupier_log_lines_dropped_total", "counter", log_lines_dropped,
          "Log lines dropped because standard error was not read or could not be written"),
    {.about = {"croupier_wallet_operations_total", "counter",
               "Wallet requests that reached the ledger, by operation and outcome"},
     .write = write_wallet},
    {.about = {"croupier_ledger_batch_operations", "histogram", "Operations in one transaction"},
     .write = write_wallet_batch},
    {.about = {"croupier_ledger_commit_seconds", "histogram",
               "Time to write and commit a batch of the ledger"},
     .write = write_wallet_commit},
    ASKED("croupier_ledger_queue_depth", "gauge", ledger_queue_depth,
          "Wallet requests waiting for the ledger"),
    ASKED("croupier_ledger_reopened_total", "counter", ledger_reopened,
          "Times the ledger was opened and checked again"),
    ASKED("croupier_ledger_conflicts_total", "counter", ledger_conflicts,
          "Batches that were begun again because another instance came between"),
    {.about = {"croupier_games_age_seconds", "gauge",
               "Time since the games table was last confirmed; +Inf: never"},
     .write = write_games_age},
    ASKED("croupier_launch_queue_depth", "gauge", launch_queue_depth,
          "Launches waiting for their player to be looked up"),
    {.about = {"croupier_launch_calls_total", "counter",
               "Calls of providers' launch endpoints, by outcome"},
     .write = write_launch_calls},
    ASKED("croupier_launch_calls_in_flight", "gauge", launch_calls_in_flight,
          "Calls of launch endpoints under way"),
    ASKED("croupier_launch_calls_waiting", "gauge", launch_calls_waiting,
          "Calls of launch endpoints waiting for others to end"),
    {.about = {"croupier_launch_call_seconds", "histogram",
               "Time of calls of launch endpoints, waiting included"},
     .write = write_launch_call},
};
#define ROW_COUNT (sizeof rows / sizeof rows[0])

const struct metric_description *metrics_description(size_t index)
{
    return index < ROW_COUNT ? &rows[index].about : NULL;
}

void metrics_write(const struct metrics *metrics, const struct metrics_gauges *gauges,
                   struct buffer *out)
{
    for (size_t i = 0; i < ROW_COUNT; i++) {
        const struct metric_description *about = &rows[i].about;
        buffer_append_format(out, "# HELP %s %s\n# TYPE %s %s\n", about->name, about->help,
                             about->name, about->type);
        rows[i].write(&rows[i], metrics, gauges, out);
    }
}
