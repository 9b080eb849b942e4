#pragma once

#include "operator/resource.h"

/* Resources that are nothing but what every resource is. */

/*
 * Legacy addresses: exact client addresses that are admitted to sports without a key. Settings:
 * address (required in a new one), sports, rate, enabled. A removed address is not there for an
 * operator, and adding it again starts afresh. A row that cannot be read is only changed by giving
 * sports and rate.
 */
extern const struct resource address_resource; /* of struct legacy_record */

/*
 * How a sandbox customer or provider behaved, by what croupier saw of it: a row for each check
 * (sql/statements/conduct.sql). They are listed alone, `of` the id of a customer or provider.
 */
extern const struct resource conduct_resource; /* of struct conduct_verdict */

/* The audit trail as an operator reads it. It is neither added to nor changed by hand. */
extern const struct resource trail_resource; /* of struct trail_record */
