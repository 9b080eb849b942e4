#ifndef CROUPIER_ADMISSION_POLICIES_H
#define CROUPIER_ADMISSION_POLICIES_H

#include "admission/admission.h"
#include "admission/policy_table.h"
#include "stores/refresher.h"

/* How a serving thread gets at the current struct policy_table (the rest of struct policies is in
 * admission.h). */
struct refresher *policies_refresher(struct policies *policies);

#endif
