#pragma once

#include <stdint.h>

#include "base/address.h"

/*
 * A bound on failed sign-ins in a minute from one address; of IPv6, from one network of 64 bits,
 * which is what one client has (RFC 6177). Beyond it, attempts are refused without a look until the
 * minute is over. A link has 256 random bits, so the bound only spares the store. There is no bound
 * over all addresses: with one, a single attacker could lock every operator out.
 *
 * Bounded memory: of more addresses than there is room for, the one whose minute began first is
 * forgotten. Times are of the monotonic clock. Threads: one at a time.
 */
#define LOCKOUT_WINDOW_MS 60000
#define LOCKOUT_FAILURES_MAX 5

struct lockout;
struct lockout *lockout_create(void);
void lockout_destroy(struct lockout **lockout);

/* 0: it may try. Otherwise returns the seconds after which the address may try again. */
uint32_t lockout_seconds(const struct lockout *lockout, const struct address *address,
                         uint64_t now_ms);

void lockout_note_failure(struct lockout *lockout, const struct address *address, uint64_t now_ms);
