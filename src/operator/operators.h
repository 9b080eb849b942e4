#pragma once

#include "operator/resource.h"

/*
 * Operators sign in to the console; their role says what they may do there. Settings: name (of a
 * new one), role, enabled. Their links and sessions are in operator/credentials.h. One that is
 * removed may not sign in any more, and its sessions are over. Its name may be added again, which
 * gives it neither its sessions nor its links back.
 */

extern const struct resource operator_resource; /* struct operator_record */

/* Is there one who is not removed, or a live token? Until then there is no console. */
MUST_CHECK enum status operators_exist(struct platform_store *store, bool *exist,
                                       struct error *error);
