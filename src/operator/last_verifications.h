#pragma once

#include "stores/platform_verifications.h"

/*
 * The time and outcome of the ledger's last verifications, for the metrics and the operators. A
 * refresher (stores/refresher.h) reads them from the store every few seconds.
 */
struct last_verifications;

struct last_verifications *last_verifications_create(const struct platform_store_options *store,
                                                     struct log *log);
void last_verifications_destroy(struct last_verifications **last);

/* Called by one thread. The values are as of the store's last answer; there are none before the
 * first. */
struct verifications last_verifications_read(struct last_verifications *last);
extern const struct metric verification_metrics[]; /* of a struct verifications */
