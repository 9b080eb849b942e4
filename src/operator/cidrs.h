#pragma once

#include "base/address.h"
#include "operator/field.h"

/* Lists of address blocks, as operators write and read them: of customers, keys and providers. */

/* A field that is an array of struct cidr; `beside`: where its count is, a size_t. Setting it takes
 * the place of what was there. `words` are for an empty list. */
extern const struct field_type field_cidrs;

/* The same array, to which setting appends blocks, or from which it takes them. Neither a block
 * that is there already nor one that is not there is an error. */
extern const struct field_type field_cidrs_added, field_cidrs_removed;
