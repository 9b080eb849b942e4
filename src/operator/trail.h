#ifndef CROUPIER_OPERATOR_TRAIL_H
#define CROUPIER_OPERATOR_TRAIL_H

#include "operator/resource.h"

/* The audit trail as an operator reads it. It is neither added to nor changed by hand. */
extern const struct resource trail_resource; /* of struct trail_record */

#endif
