#ifndef CROUPIER_OPERATOR_CUSTOMERS_H
#define CROUPIER_OPERATOR_CUSTOMERS_H

#include "operator/resource.h"

/*
 * Customers: who calls the API, with its keys, from its address blocks. Settings: name (required in
 * a new one), cidrs, sports, rate, casino, enabled. A row that cannot be read (`usable` is false)
 * is only changed by giving all of it: what it should have said is not for the program to guess.
 */

extern const struct resource customer_resource;

/* What its fields are in. */
struct customer_view {
    struct customer_record record;
    size_t live_keys; /* neither revoked nor expired */
};

#endif
