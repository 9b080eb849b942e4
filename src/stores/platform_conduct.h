#pragma once

#include "records/conduct.h"
#include "records/records.h"
#include "stores/platform.h"

/* Facts about requests of sandbox callers in the platform store (platform.h holds the rules on
 * handles and threads). They take no revision, and a copy of the store has none. */

/* Adds facts, in one transaction, and keeps the newest CONDUCT_FACTS_MAX of each caller. */
MUST_CHECK enum status platform_conduct_add(struct platform_store *store,
                                            const struct conduct_fact *facts, size_t count,
                                            struct error *error);

/* Judges those of one caller as of now. `see` gets a struct conduct_verdict for each rule.
 * STATUS_NOT_FOUND: there is no such sandbox customer or provider. */
MUST_CHECK enum status platform_conduct_judge(struct platform_store *store, const char *caller,
                                              record_function *see, void *context,
                                              struct error *error);

/* Forgets those of one caller, with a row of the audit trail. STATUS_NOT_FOUND, as above. */
MUST_CHECK enum status platform_conduct_reset(struct platform_store *store, const char *caller,
                                              struct error *error);
