#ifndef CROUPIER_USAGE_USAGE_H
#define CROUPIER_USAGE_USAGE_H

#include "base/log.h"
#include "metrics/metrics.h"
#include "records/usage.h"
#include "stores/platform.h"

/*
 * How many requests each customer made, counted beside serving them.
 *
 * A serving thread adds to counters of its own: no lock, no allocation but for a customer that is
 * new to it, no store. Once a minute, at midnight (UTC) and at the end, a thread of this module
 * takes what has been counted since and adds it to the platform store, where instances add up. So a
 * crash loses the counts of a minute at most, and a day has what was answered on it, to within
 * some milliseconds around midnight.
 *
 * While the store cannot be written, counts are kept with their days and tried again; a commit of
 * which it cannot be found out whether it happened is tried again too. Everything is bounded: a
 * thread tells USAGE_CUSTOMERS_MAX customers apart, and the requests of further ones are counted
 * under no name (""); at most USAGE_WAITING_MAX rows wait for the store, and beyond that counts
 * stay where they are and fall to a later day.
 */

#define USAGE_CUSTOMERS_MAX 32768U /* by one thread, since the start; 12 MB */
#define USAGE_WAITING_MAX 131072U  /* rows of the store; 10 MB */

struct usage;
struct usage_thread;
struct usage_row; /* the counters of one customer */

struct usage_options {
    struct platform_store_options store; /* `uri` is borrowed; opened when there is something */
    size_t threads;                      /* that serve */
    uint32_t period_ms;                  /* between two writings */
    struct log *log;                     /* borrowed; may be NULL */
};
struct usage *usage_create(const struct usage_options *options);
/* No thread counts any more. Writes what is left, unless the store fails: then it is lost, and the
 * log says how much. Takes a few of the store's timeouts at most. */
void usage_destroy(struct usage **usage);

/* The counters of one serving thread, until usage_destroy. */
struct usage_thread *usage_thread(struct usage *usage, size_t index);

/* One answered request. That thread only. `last` is the caller's memory of the last counters, NULL
 * at first: a connection with one customer spares the look-up. */
void usage_count(struct usage_thread *thread, struct usage_row **last, const char *customer_id,
                 enum usage_group group, int http_status);

/* Any thread. */
struct usage_facts {
    uint64_t waiting;  /* rows that could not be written yet */
    uint64_t failures; /* to write some */
};
void usage_facts(const struct usage *usage, struct usage_facts *facts);
extern const struct metric usage_metrics[];

#endif
