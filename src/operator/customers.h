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
