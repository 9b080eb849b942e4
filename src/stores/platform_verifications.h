#pragma once

#include "records/verification.h"
#include "stores/platform.h"

/* The outcomes of the ledger's last verifications, in the platform store (platform.h). */

/* Stores the verification in place of the last one of its scope. A sound verification of the whole
 * also deletes one of the recent entries that ended before it began. The call adds a row to the
 * trail, and takes no revision. */
MUST_CHECK enum status platform_verification_put(struct platform_store *store,
                                                 const struct verification_record *record,
                                                 struct error *error);

/* The stored verifications, by scope; `started_ms` 0: there is none. */
struct verifications {
    struct verification_record of[VERIFICATION_SCOPE_COUNT];
};
MUST_CHECK enum status platform_verifications(struct platform_store *store,
                                              struct verifications *found, struct error *error);
/* A number that changes when the verifications may have changed: one cheap query. */
MUST_CHECK enum status platform_verifications_revision(struct platform_store *store,
                                                       uint64_t *revision, struct error *error);
