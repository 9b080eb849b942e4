#pragma once

#include "records/provider.h"
#include "sealing/secrets.h"

/* A provider's secrets, into its record and out of it. Sealed for that very provider. Secrets are 1
 * to SECRETS_PLAIN_MAX bytes (CHECKed); the record's id must be set. */

/* Replaces the newest: its signatures are no longer valid. One that had a kid gets another; a
 * provider's first has none. */
void provider_secret_seal(const struct secrets *secrets, struct provider_record *record,
                          struct text secret, int64_t now_ms);

/* Adds one, with a kid, which signs from now on; the one before stays good until it is retired.
 * STATUS_CONFLICT: there are two already. */
MUST_CHECK enum status provider_secret_add(const struct secrets *secrets,
                                           struct provider_record *record, struct text secret,
                                           int64_t now_ms, struct error *error);

/* Ends the one that is called so. STATUS_NOT_FOUND; STATUS_CONFLICT: there is no other. */
MUST_CHECK enum status provider_secret_retire(struct provider_record *record, const char *name,
                                              struct error *error);

/* Returns its name for people: its kid, or "first". */
const char *provider_secret_name(const struct provider_secret *secret);

/* Appends the secret at `at`, which is there; the caller wipes the buffer. STATUS_MALFORMED: sealed
 * under another key. */
MUST_CHECK enum status provider_secret_unseal(const struct secrets *secrets,
                                              const struct provider_record *record, size_t at,
                                              struct buffer *out);
