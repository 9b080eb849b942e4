#ifndef CROUPIER_WALLET_SESSIONS_H
#define CROUPIER_WALLET_SESSIONS_H

#include "wallet/ledger.h"

/*
 * Whom providers' requests are about: from a provider, its own id of a player and a launch to the
 * player, and to when the launch was made. Launches are never changed, so what was found once is
 * remembered, in a table of a fixed size, for as long as the store is the same. What was not found
 * is asked for again each time: it may be there by now.
 *
 * One thread at a time.
 */
struct sessions;

struct sessions *sessions_create(void);
void sessions_destroy(struct sessions **sessions);

/* The store was opened again, and may be another one, such as a restored backup. */
void sessions_forget(struct sessions *sessions);

/* Fills in the player of each provider's request ("" where the provider has launched none of that
 * id), and of the launch that it names; asks the store once for all that it does not remember. At
 * most LEDGER_BATCH_MAX; customers' requests are left as they are. */
MUST_CHECK enum status sessions_find(struct sessions *sessions, struct platform_store *store,
                                     struct ledger_job **jobs, size_t count, struct error *error);

#endif
