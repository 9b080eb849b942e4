#pragma once

#include "base/text.h"
#include "config/config.h"

/*
 * Does a croupier listen on this address? `croupier check` and `croupier health` send a request
 * that only croupier answers in its way, so they need no right to look at other users' processes.
 * Blocks, for PROBE_SECONDS at most.
 */
#define PROBE_SECONDS 5L

enum listener_kind { LISTENER_PUBLIC, LISTENER_OPERATOR, LISTENER_PROVIDER };

/* Does the program that listens there answer as that listener of croupier's does? `answer` gets the
 * body, whatever its status: at most 64 KiB, replacing what is in it. The caller frees it. */
bool listener_ask(enum listener_kind kind, const struct listen_address *address, bool tls,
                  struct buffer *answer);
