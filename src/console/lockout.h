#ifndef CROUPIER_CONSOLE_LOCKOUT_H
#define CROUPIER_CONSOLE_LOCKOUT_H

#include <stdint.h>

#include "base/address.h"

/*
 * A bound on guessing how to sign in: so many attempts that failed in a minute from one address,
 * and so many from all together. Who is beyond it is refused unheard until the minute is over. What
 * is guessed has 256 bits, so this is no more than quiet for the store and the audit.
 *
 * Bounded memory: of more addresses than there is room for, the one whose minute began first is
 * forgotten; the bound of all together holds for those. Times are of the monotonic clock. Threads:
 * one at a time.
 */
#define LOCKOUT_WINDOW_MS 60000
#define LOCKOUT_FAILURES_MAX 5      /* of one address */
#define LOCKOUT_ALL_FAILURES_MAX 50 /* of all */

struct lockout;
struct lockout *lockout_create(void);
void lockout_destroy(struct lockout **lockout);

/* 0: it may try. Else the seconds after which it may again. */
uint32_t lockout_seconds(const struct lockout *lockout, const struct address *address,
                         uint64_t now_ms);

void lockout_note_failure(struct lockout *lockout, const struct address *address, uint64_t now_ms);

#endif
