#pragma once

#include "records/policy.h"

#define CUSTOMER_ID_SIZE 24    /* "cus_" and 16 base62 characters; NUL-terminated */
#define CUSTOMER_NAME_SIZE 129 /* 1 to 128 bytes of UTF-8, NUL-terminated */
#define CIDRS_MAX 256          /* a customer */

struct customer_record {
    char id[CUSTOMER_ID_SIZE];
    char name[CUSTOMER_NAME_SIZE];
    bool enabled;
    bool casino;  /* may use the casino */
    bool sandbox; /* tries things out: its money counts nowhere */
    bool usable;  /* false: the stored row is not sound (set on reading); admits no one */
    sport_set sports;
    struct rate_limit rate;
    size_t cidr_count;
    struct cidr cidrs[CIDRS_MAX]; /* where it may call from */
    int64_t created_ms;
    uint64_t revision;
};

extern const struct record_table customer_table;

/* "192.0.2.0/24 2001:db8::/32": canonical, one space between, "" for none. A customer's blocks
 * in one column, because reading 100,000 customers must be one scan and not a join. */
void cidr_list_append(struct buffer *buffer, const struct cidr *cidrs, size_t count);

/* False when the text is not such a list or has more than `room` blocks. */
MUST_CHECK bool cidr_list_read(struct text text, struct cidr *cidrs, size_t room, size_t *count);

/* Such a list in an array `cidrs` of the record, whose count is `cidr_count`. */
extern const struct column_type column_cidr_array;
#define COLUMN_CIDRS(record)                                                               \
    {                                                                                      \
        "cidrs", &column_cidr_array, offsetof(struct record, cidrs),                       \
            sizeof(((struct record *)NULL)->cidrs), 0, offsetof(struct record, cidr_count) \
    }
