#pragma once

#include <stdbool.h>

#include "base/status.h"
#include "stores/odds/redis/link.h"

/* Asks whether the user has the rights that serving needs: to read, or `all`. If not, `error` names
 * the command that Redis refused, with Redis's own error. Waits as redis_link_ask. */
MUST_CHECK enum status redis_rights_ask(struct redis_link *link, const char *prefix, bool all,
                                        struct error *error);
