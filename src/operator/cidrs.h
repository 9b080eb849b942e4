#pragma once

#include "base/address.h"
#include "operator/field.h"

/* Lists of address blocks, as operators write and read them: of customers, keys and providers. */

/* A field that is an array of struct cidr; `beside`: where its count is, a size_t. Setting it takes
 * the place of what was there. `words` are for an empty list. */
extern const struct field_type field_cidrs;

/* Appends the blocks of a text, separated by commas, to `cidrs`, which has room for `room` and
 * `count` already; one that is there is not added again. STATUS_INVALID, and `count` as it was: one
 * is no block, or there would be too many. */
MUST_CHECK enum status cidrs_add(struct text text, struct cidr *cidrs, size_t room, size_t *count,
                                 struct error *error);

/* Takes the blocks of a text away; one that is not there is passed over. */
MUST_CHECK enum status cidrs_remove(struct text text, struct cidr *cidrs, size_t *count,
                                    struct error *error);
