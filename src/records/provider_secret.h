#ifndef CROUPIER_RECORDS_PROVIDER_SECRET_H
#define CROUPIER_RECORDS_PROVIDER_SECRET_H

#include "records/provider.h"
#include "records/secrets.h"

/* A provider's secret, into its record and out of it. Sealed for that very provider. */

/* 1 to SECRETS_PLAIN_MAX bytes (CHECKed). The record's id must be set. */
void provider_secret_seal(const struct secrets *secrets, struct provider_record *record,
                          struct text secret);

/* Appends it; the caller wipes the buffer. STATUS_MALFORMED: sealed under another key. */
MUST_CHECK enum status provider_secret_unseal(const struct secrets *secrets,
                                              const struct provider_record *record,
                                              struct buffer *out);

#endif
