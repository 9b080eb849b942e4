#pragma once

#include "records/records.h"
#include "stores/platform.h"

/* The platform store for the policy table: the changes since a revision, and the last use of
 * keys. */

/* The store's revision now: one cheap query. */
MUST_CHECK enum status platform_revision(struct platform_store *store, uint64_t *revision,
                                         struct error *error);

/* Every customer, key and address, as far as the visitor wants them, whose revision is above
 * `since`: revoked and removed ones too, customers first, from one snapshot of the store, whose
 * revision is then stored in `revision`. since = 0 reads everything. */
MUST_CHECK enum status platform_changes_since(struct platform_store *store, uint64_t since,
                                              const struct record_visitor *visitor,
                                              uint64_t *revision, struct error *error);

/* Records when keys were last used (never moving it back; unknown digests are skipped): one
 * transaction, takes no revision. */
struct key_use {
    uint8_t digest[KEY_DIGEST_SIZE];
    int64_t used_ms;
};
MUST_CHECK enum status platform_key_touch(struct platform_store *store, const struct key_use *uses,
                                          size_t count, struct error *error);
