#ifndef CROUPIER_METRICS_METRICS_H
#define CROUPIER_METRICS_METRICS_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/*
 * Counters of the service, in Prometheus' text format 0.0.4.
 *
 * Each serving thread has a `struct metrics_shard` of its own and only adds to that one (plain
 * relaxed atomics, no sharing of cache lines); a scrape adds the shards up. Gauges are asked for at
 * scrape time by the caller (feed age, table age, connections). All names are rows of one table in
 * metrics.c; a test proves that docs/ names every row.
 */

enum metrics_counter {
    METRICS_RATE_LIMITED,
    METRICS_RATE_WAITS, /* requests that waited for a lease */
    METRICS_RATE_ALONE, /* limited without the store that shares the budget */
    METRICS_NOT_ADMITTED,
    METRICS_POLICY_UNAVAILABLE,
    METRICS_ODDS_UNAVAILABLE, /* answers 503 cache_unavailable */
    METRICS_ODDS_TIMEOUT,     /* answers 504 */
    METRICS_ODDS_MALFORMED,   /* answers 502 */
    METRICS_READY_HITS,       /* answered from memory */
    METRICS_READY_MISSES,     /* had to wait for a value to be read or made ready */
    METRICS_READY_REBUILDS,   /* catalogs and events made ready */
    METRICS_GZIP_REBUILDS,    /* bodies compressed */
    METRICS_NOT_MODIFIED,     /* answers 304 */
    METRICS_CONNECTIONS_OPENED,
    METRICS_CONNECTIONS_CLOSED,
    METRICS_CONNECTIONS_REFUSED, /* over max_connections */
    METRICS_TLS_FAILURES,
    METRICS_BYTES_SENT,
};
#define METRICS_COUNTER_COUNT (METRICS_BYTES_SENT + 1)

struct metrics_shard;
struct metrics;

#define METRICS_ROUTE_MAX 16
/* `route_label` names what requests are counted under: 0, 1, … (METRICS_ROUTE_MAX at most), then
 * NULL. */
struct metrics *metrics_create(size_t shards, const char *(*route_label)(size_t route));
void metrics_destroy(struct metrics **metrics);
struct metrics_shard *metrics_shard(struct metrics *metrics, size_t index);

/* One answered request: its route, HTTP status and time from first byte in to answer handed to the
 * kernel. Owner thread of the shard only. */
void metrics_request(struct metrics_shard *shard, size_t route, int http_status,
                     uint64_t duration_ns);
/* Any thread for shared shards: relaxed atomic add. */
void metrics_add(struct metrics_shard *shard, enum metrics_counter counter, uint64_t amount);

#define METRICS_WALLET_MAX 64
#define METRICS_LAUNCH_CALL_MAX 16
#define METRICS_HISTOGRAM_MAX 8

/* What somebody else has counted: `counts[i]` of what is above bounds[i - 1] and at most bounds[i];
 * the last of them has no bound. */
struct metrics_histogram {
    const uint32_t *bounds; /* bucket_count - 1 */
    size_t bucket_count;
    uint64_t counts[METRICS_HISTOGRAM_MAX];
    uint64_t sum; /* of what was counted; for milliseconds, in nanoseconds */
};

/* What only the scraper can know. Times in ms; negative ages are those of what never was: +Inf of a
 * table, NaN of a feed. */
struct metrics_gauges {
    int64_t policy_age_ms;
    uint64_t policy_customers;
    uint64_t policy_keys;
    uint64_t policy_addresses;
    struct {
        const char *sport;
        int64_t age_ms;
    } feed[8];
    size_t feed_count;
    uint64_t odds_reads;
    uint64_t odds_errors;
    uint64_t odds_reopened;
    uint64_t odds_connected; /* 1 or 0 */
    uint64_t odds_invalidations;
    uint64_t odds_round_trip_ns; /* 0: not known */
    uint64_t interest_written;
    uint64_t interest_dropped;
    uint64_t rate_leases; /* calls */
    uint64_t rate_lease_failures;
    uint64_t rate_leased_requests;
    uint64_t ready_answers; /* held in memory */
    uint64_t ready_bytes;
    uint64_t work_queue_depth;
    uint64_t log_lines_dropped;
    uint64_t platform_errors;
    uint64_t platform_round_trips; /* of a platform store that is a server */
    uint64_t platform_round_trip_ns;
    uint64_t platform_connections;
    uint64_t platform_connects;
    uint64_t platform_repeats;
    uint64_t platform_timeouts;
    struct {
        const char *operation;
        const char *outcome;
        uint64_t count;
    } wallet
        /* requests by operation and outcome; those that never occurred are 0 */
        [METRICS_WALLET_MAX];
    size_t wallet_count;
    struct metrics_histogram wallet_batch;  /* operations in a batch */
    struct metrics_histogram wallet_commit; /* milliseconds */
    uint64_t ledger_queue_depth;
    uint64_t ledger_reopened;
    uint64_t ledger_conflicts;
    int64_t games_age_ms;
    uint64_t launch_queue_depth;
    struct {
        const char *outcome;
        uint64_t count;
    } launch_calls[METRICS_LAUNCH_CALL_MAX];
    size_t launch_call_count;
    uint64_t launch_calls_in_flight;
    uint64_t launch_calls_waiting;
    struct metrics_histogram launch_call; /* milliseconds */
};
void metrics_write(const struct metrics *metrics, const struct metrics_gauges *gauges,
                   struct buffer *out);

/* The table of names, for the docs test. */
struct metric_description {
    const char *name;
    const char *type; /* counter, gauge, histogram */
    const char *help;
};
/* NULL beyond the last row. */
const struct metric_description *metrics_description(size_t index);

#endif
