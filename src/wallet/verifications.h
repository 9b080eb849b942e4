#ifndef CROUPIER_WALLET_VERIFICATIONS_H
#define CROUPIER_WALLET_VERIFICATIONS_H

#include "base/log.h"
#include "metrics/metrics.h"
#include "stores/platform.h"

/*
 * When the ledger was proved last, and how that ended, as this server has read it from the store a
 * few seconds ago: for the metrics, and for whoever looks after the ledger. A refresher
 * (stores/refresher.h) reads it.
 */
struct verification_watch;

struct verification_watch *verification_watch_create(const struct platform_store_options *store,
                                                     struct log *log);
void verification_watch_destroy(struct verification_watch **watch);

/* By one thread. As of the last time that the store answered; nothing before the first. */
struct verifications verification_watch_last(struct verification_watch *watch);
extern const struct metric verification_metrics[]; /* of a struct verifications */

#endif
