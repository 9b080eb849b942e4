#pragma once

#include "base/address.h"
#include "records/record.h"
#include "records/sport.h"

/* The common part of customers and address policies: sports and a rate limit; and the latter. */

struct rate_limit {
    bool enabled;
    uint32_t requests;       /* admitted in one window, from 1 on */
    uint32_t window_seconds; /* from 1 on */
};

#define RATE_REQUESTS_MAX 1000000000U
#define RATE_SECONDS_MAX 86400U

/* Reads "off" or "300/60": requests and seconds. False: the text is neither, or out of bounds. */
MUST_CHECK bool rate_limit_read(struct text text, struct rate_limit *rate);

/* Is the limit off, or within its bounds? */
bool rate_limit_is_sound(const struct rate_limit *rate);

MUST_CHECK enum status policy_check(sport_set sports, const struct rate_limit *rate,
                                    struct error *error);

extern const struct column_type column_sports; /* sport_set: "all", "none", "cricket,tennis" */
extern const struct column_type
    column_rate_requests;                           /* struct rate_limit; both are NULL where it */
extern const struct column_type column_rate_window; /* is off. The requests stand first */

/* ---- a policy of one address ----------------------------------------------------------------- */

/* The rights of one address without a key, as clients had them before there were keys. */
struct legacy_record {
    struct address address;
    bool enabled;
    bool removed;
    bool usable; /* false: the stored row is not sound (set on reading); admits no one */
    sport_set sports;
    struct rate_limit rate;
    int64_t created_ms;
    uint64_t revision;
};

extern const struct record_table legacy_table;
