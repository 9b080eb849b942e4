#pragma once

#include "wallet/ledger.h"

/*
 * The player of a provider's request: from a provider, its id of a player and a launch to the
 * player and the time of the launch.
 *
 * Fills in the player of each provider's request ("" where the provider has launched none of that
 * id), and the launch that it names. Asks the store once. At most LEDGER_BATCH_MAX; customers'
 * requests stay as they are. Threads: the store's.
 */
MUST_CHECK enum status sessions_find(struct platform_store *store, struct ledger_job **jobs,
                                     size_t count, struct error *error);
