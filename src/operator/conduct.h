#pragma once

#include "operator/resource.h"

/*
 * How a sandbox customer or provider behaved, by what croupier saw of it: a row for each check
 * (sql/statements/conduct.sql). They are listed alone, `of` the id of a customer or provider.
 */
extern const struct resource conduct_resource; /* of struct conduct_verdict */
