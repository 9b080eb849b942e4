#ifndef CROUPIER_COMMANDS_LISTENER_PROBE_H
#define CROUPIER_COMMANDS_LISTENER_PROBE_H

#include <stdbool.h>

#include "base/text.h"
#include "config/config.h"

/*
 * Who has an address that croupier is to listen on? Asked for `croupier check` and `croupier
 * health`, from outside: what listens there is asked for something that only croupier answers as
 * croupier does, so it needs no right to look at other users' processes. Blocks, for PROBE_SECONDS
 * at most.
 */
#define PROBE_SECONDS 5L

enum listener_kind { LISTENER_PUBLIC, LISTENER_OPERATOR, LISTENER_PROVIDER };

/* Tries to listen. Returns 0, or an errno: EADDRINUSE, EACCES, EADDRNOTAVAIL, … */
int listener_try(const struct listen_address *address);

/* Whether what listens there answers as that listener of croupier's does. */
bool listener_is_croupier(enum listener_kind kind, const struct listen_address *address, bool tls);

/* The same, and the body of the answer, whatever its status: at most 64 KiB, replacing what is in
 * `answer`, which the caller frees. */
bool listener_ask(enum listener_kind kind, const struct listen_address *address, bool tls,
                  struct buffer *answer);

#endif
