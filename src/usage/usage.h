#pragma once

#include "stores/platform_usage.h"

/*
 * Counts the requests of each customer.
 *
 * Each serving thread adds to its own counters, without a lock or the store; it allocates only for
 * a customer that is new to it. Once a minute, at midnight (UTC) and at the end, the writer thread
 * takes the new counts and adds them to the platform store, which sums over instances. So a crash
 * loses at most a minute of counts, and each request counts on the day of its answer, to within
 * some milliseconds around midnight.
 *
 * While the store cannot be written, the writer keeps counts with their days and retries; it also
 * retries a commit whose outcome is unknown. Everything is bounded. A thread distinguishes
 * USAGE_CUSTOMERS_MAX customers and counts the requests of further ones under the name "". At most
 * USAGE_WAITING_MAX rows wait for the store; beyond that, counts stay in the counters and fall to a
 * later day.
 *
 * Facts about the requests of sandbox callers (records/conduct.h) go to the store once a second, or
 * later while the sums below are made. At most USAGE_CONDUCT_MAX of them wait for it; the next one
 * that is kept has the number of those that found no room.
 *
 * The writer also keeps the ledger's sums (platform_ledger_keep_sums): once a minute, and within a
 * second where thousands of entries have come.
 */

#define USAGE_CUSTOMERS_MAX 32768U /* for each thread, since the start; 12 MB */
#define USAGE_WAITING_MAX 131072U  /* rows of the store; 26 MB */
#define USAGE_CONDUCT_MAX 4096

struct usage;
struct usage_thread;
struct usage_row; /* the counters of one customer */

/* `store` is opened to write rows, and its `uri` and `log` are borrowed; `threads`: how many serve;
 * `period_ms`: between two writings. */
struct usage *usage_create(const struct platform_store_options *store, size_t threads,
                           uint32_t period_ms);
/* Call it when no thread counts any more. Writes the remaining rows; if the store fails they are
 * lost, and the log gives their number. Takes a few of the store's timeouts at most. */
void usage_destroy(struct usage **usage);

/* The counters of one serving thread, until usage_destroy. */
struct usage_thread *usage_thread(struct usage *usage, size_t index);

/* Counts one answered request; call it only on that serving thread. `last` is the caller's cache of
 * the last counters, NULL at first, which saves the look-up on a connection with one customer. */
void usage_count(struct usage_thread *thread, struct usage_row **last, const char *customer_id,
                 enum usage_group group, int http_status);

/* Any thread. Does not wait for the store; sets `lost`. */
void usage_add_conduct(struct usage *usage, struct conduct_fact *fact);

/* Any thread. */
struct usage_facts {
    uint64_t waiting;  /* rows that could not be written yet */
    uint64_t failures; /* failed writes */
    uint64_t conduct_waiting, conduct_dropped;
};
void usage_facts(struct usage *usage, struct usage_facts *facts);
extern const struct metric usage_metrics[];
