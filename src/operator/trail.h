#pragma once

#include "operator/resource.h"

/* The audit trail as an operator reads it. It is neither added to nor changed by hand. */
extern const struct resource trail_resource; /* of struct trail_record */
