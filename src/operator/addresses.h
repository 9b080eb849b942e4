#pragma once

#include "operator/resource.h"

/*
 * Legacy addresses: exact client addresses that are admitted to sports without a key. Settings:
 * address (required in a new one), sports, rate, enabled. A removed address is not there for an
 * operator, and adding it again starts afresh. A row that cannot be read is only changed by giving
 * sports and rate.
 */

extern const struct resource address_resource; /* of struct legacy_record */
