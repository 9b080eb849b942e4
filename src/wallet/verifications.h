#pragma once

#include "stores/platform_verifications.h"

/*
 * The time and outcome of the ledger's last verifications, for the metrics and the operators. A
 * refresher (stores/refresher.h) reads them from the store every few seconds.
 */
struct verification_watch;

struct verification_watch *verification_watch_create(const struct platform_store_options *store,
                                                     struct log *log);
void verification_watch_destroy(struct verification_watch **watch);

/* Called by one thread. As of the last answer of the store; nothing before the first. */
struct verifications verification_watch_last(struct verification_watch *watch);
extern const struct metric verification_metrics[]; /* of a struct verifications */
