#pragma once

#include "admission/admission.h"
#include "games/table.h"

/*
 * Admission of providers' calls (docs/providers.md). A call names its provider and its time, and
 * proves both and its body by an HMAC under the provider's secret, as launch calls do:
 *
 *   X-Croupier-Provider: ID
 *   X-Croupier-Timestamp: SECONDS        within PROVIDER_CLOCK_SECONDS of our clock
 *   X-Croupier-Signature: v1=HEX         launch/document.h
 *   X-Croupier-Key-Id: KID               optional: which of its secrets; else any. "first" is the
 *                                        one without a kid
 *
 * Each field occurs exactly once. For an unknown provider the HMACs use a fixed secret, so that its
 * refusal takes as long. Reads only memory. Threads: any.
 */
#define PROVIDER_CLOCK_SECONDS 60

/* DENIAL_NONE: admitted. Otherwise the reason, for the log only: every refused caller gets the same
 * answer. `provider` is the one that the request names, also if it is refused; NULL: there is no
 * such provider. */
MUST_CHECK enum admission_denial provider_admit(const struct games_table *table,
                                                const struct http_request *request,
                                                int64_t now_wall_ms,
                                                const struct games_provider **provider);

/* May an admitted provider call from this address? */
MUST_CHECK bool provider_may_call_from(const struct games_provider *provider,
                                       const struct address *client);
