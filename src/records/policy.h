#pragma once

#include "base/address.h"
#include "records/record.h"
#include "records/sport.h"

/* The common part of customers and address policies: sports and a rate limit. */

struct rate_limit {
    bool enabled;
    uint32_t requests;       /* admitted in one window, 1 to 1,000,000,000 */
    uint32_t window_seconds; /* 1 to 86,400 */
};

/* Is the limit off, or within its bounds? */
bool rate_limit_is_sound(const struct rate_limit *rate);

MUST_CHECK enum status policy_check(sport_set sports, const struct rate_limit *rate,
                                    struct error *error);

extern const struct column_type column_sports; /* sport_set: "all", "none", "cricket,tennis" */
extern const struct column_type
    column_rate_requests;                           /* struct rate_limit; both are NULL where it */
extern const struct column_type column_rate_window; /* is off. The requests stand first */
