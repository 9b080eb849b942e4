#ifndef CROUPIER_RECORDS_ADDRESS_POLICY_H
#define CROUPIER_RECORDS_ADDRESS_POLICY_H

#include "records/policy.h"

/* What one address may do without a key, as it was before there were keys. */
struct legacy_record {
    struct address address;
    bool enabled;
    bool removed;
    bool usable; /* false: the stored row makes no sense (set on reading); admits nobody */
    sport_set sports;
    struct rate_limit rate;
    int64_t created_ms;
    uint64_t revision;
};

extern const struct record_table legacy_table;

/* STATUS_INVALID with the field and the reason. */
MUST_CHECK enum status legacy_record_check(const struct legacy_record *record, struct error *error);

#endif
