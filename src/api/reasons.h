#pragma once

#include <stddef.h>

#include "http/errors.h"

/* All reasons for which requests are refused or fail (docs/reasons.md), numbered from 0. Pure. */

#define REASONS_MAX 128 /* the most that there may be */

/* NULL: there are no more. */
const struct http_error *reason_at(size_t number);
/* Looks through all of them: for refusals alone. */
size_t reason_number(const struct http_error *error);
