#pragma once

#include "records/conduct.h"
#include "records/records.h"
#include "records/usage.h"
#include "stores/platform.h"

/* Counts of requests in the platform store (platform.h holds the rules on handles and threads). */

/* Adds to the stored counts of each customer, day and group, in one transaction, at most
 * PLATFORM_USAGE_MAX records. It takes no revision. Instances that write at the same time give
 * their records in the order of usage_compare: then they wait for each other without a deadlock. */
#define PLATFORM_USAGE_MAX 256U
MUST_CHECK enum status platform_usage_add(struct platform_store *store,
                                          const struct usage_record *records, size_t count,
                                          struct error *error);

/* The stored counts of the days from `from_day` to `to_day`, both included, by customer, day and
 * group; of one customer, or of all (NULL). One snapshot, constant memory; `see` returns false to
 * see no more, and must not call the store. */
typedef bool usage_function(void *context, const struct usage_record *record);
MUST_CHECK enum status platform_usage_list(struct platform_store *store, const char *customer_id,
                                           int64_t from_day, int64_t to_day, usage_function *see,
                                           void *context, struct error *error);

/* ---- facts about requests of sandbox callers; a copy of the store has none ---- */

/* Adds facts, in one transaction, and keeps the newest CONDUCT_FACTS_MAX of each caller. */
MUST_CHECK enum status platform_conduct_add(struct platform_store *store,
                                            const struct conduct_fact *facts, size_t count,
                                            struct error *error);

/* Judges those of one caller as of `now_ms`. `see` gets a struct conduct_verdict for each rule.
 * STATUS_NOT_FOUND: there is no such sandbox customer or provider. */
MUST_CHECK enum status platform_conduct_judge(struct platform_store *store, const char *caller,
                                              int64_t now_ms, record_function *see, void *context,
                                              struct error *error);

/* Forgets those of one caller, with a row of the audit trail. STATUS_NOT_FOUND, as above. */
MUST_CHECK enum status platform_conduct_reset(struct platform_store *store, const char *caller,
                                              struct error *error);
