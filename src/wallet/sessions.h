#pragma once

#include "wallet/ledger.h"

/*
 * A provider's request names a player by the provider's own id, and a launch. This finds both in
 * the store.
 *
 * Fills in the player of each provider's request ("" if the provider has never launched a player of
 * that id) and the time of the launch. Makes one round trip for all jobs, at most LEDGER_BATCH_MAX.
 * Jobs of customers stay as they are. Threads: the store's.
 */
MUST_CHECK enum status sessions_find(struct platform_store *store, struct ledger_job **jobs,
                                     size_t count, struct error *error);
