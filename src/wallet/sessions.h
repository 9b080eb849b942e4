#ifndef CROUPIER_WALLET_SESSIONS_H
#define CROUPIER_WALLET_SESSIONS_H

#include "wallet/ledger.h"

/*
 * The player of a provider's request: from a provider, its id of a player and a launch to the
 * player and the time of the launch. Launches never change, so found ones are remembered, in a
 * table of a fixed size, as long as the store is the same. Others are asked for again each time:
 * they may exist by now.
 *
 * One thread at a time.
 */
struct sessions;

struct sessions *sessions_create(void);
void sessions_destroy(struct sessions **sessions);

/* The store was opened again, and may be another one, such as a restored backup: forgets all. */
void sessions_forget(struct sessions *sessions);

/* Fills in the player of each provider's request ("" where the provider has launched none of that
 * id), and the launch that it names. Asks the store once for all that it does not remember. At most
 * LEDGER_BATCH_MAX; customers' requests stay as they are. */
MUST_CHECK enum status sessions_find(struct sessions *sessions, struct platform_store *store,
                                     struct ledger_job **jobs, size_t count, struct error *error);

#endif
