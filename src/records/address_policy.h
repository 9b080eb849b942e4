#pragma once

#include "records/policy.h"

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
