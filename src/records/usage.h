#pragma once

#include "records/customer.h"

/*
 * Counts of the requests that a customer made: on one day (UTC), to one group of routes, by the
 * class of the answers' status. The store adds up what its writers bring. Plain data. Threads: any.
 */

enum usage_group {
    USAGE_SPORTS,
    USAGE_GAMES,
    USAGE_LAUNCH,
    USAGE_WALLET,
    USAGE_ACCOUNT,
    USAGE_OTHER
};
#define USAGE_GROUP_COUNT 6
extern const struct enum_names usage_groups; /* "sports" */

#define USAGE_CLASS_COUNT 4 /* 2xx, 3xx, 4xx, 5xx */

struct usage_record {
    int64_t day;                        /* since 1970-01-01 */
    char customer_id[CUSTOMER_ID_SIZE]; /* "": all further ones, together */
    char customer_name[CUSTOMER_NAME_SIZE];
    enum usage_group group;
    uint64_t requests[USAGE_CLASS_COUNT];
};

/* Rows come by customer, day and group. */
int usage_compare(const void *record, const void *other);
