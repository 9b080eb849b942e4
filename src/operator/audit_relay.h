#ifndef CROUPIER_OPERATOR_AUDIT_RELAY_H
#define CROUPIER_OPERATOR_AUDIT_RELAY_H

#include <stdbool.h>

#include "records/ledger_entry.h"

/*
 * Transactions from the thread that reads them out of a store to another that does something with
 * each, in their order, so that a walk over the whole ledger uses two processors. Bounded: who
 * reads waits while the other is behind.
 *
 * relay_put and relay_destroy are for one thread. What `consume` is given as context belongs to the
 * relay's own thread until relay_destroy has returned.
 */

struct relay;

/* Returns false to stop: nothing more is consumed, and relay_put says so. */
typedef bool relay_consumer(void *context, const struct ledger_transaction *transaction);

struct relay *relay_create(relay_consumer *consume, void *context);

/* Copies it. False: no more is wanted. */
bool relay_put(struct relay *relay, const struct ledger_transaction *transaction);

/* When all that was put has been consumed, or no more was wanted. */
void relay_destroy(struct relay **relay);

#endif
