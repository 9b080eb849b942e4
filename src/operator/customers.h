#pragma once

#include "operator/resource.h"

/*
 * Customers call the API with their keys, from their address blocks. Settings: name (required in a
 * new one), cidrs, sports, rate, casino, enabled. A row that cannot be read (`usable` is false) is
 * changed only as a whole: the program does not guess its other fields.
 */

extern const struct resource customer_resource;

/* The struct of its fields. */
struct customer_view {
    struct customer_record record;
    size_t live_keys; /* neither revoked nor expired */
};

/* Finds a customer by its name: the first that has it; `id` "" : none has. `alone`: no other one
 * has it. */
MUST_CHECK enum status customers_find_name(struct platform_store *store, const char *name,
                                           char id[CUSTOMER_ID_SIZE], bool *alone,
                                           struct error *error);
