#ifndef CROUPIER_API_PROVIDER_ADMISSION_H
#define CROUPIER_API_PROVIDER_ADMISSION_H

#include "admission/admission.h"
#include "games/table.h"

/*
 * May a provider's call come in (docs/providers.md)? It says who it is, when it was made, and
 * proves both with the body by an HMAC under the provider's secret, as launch calls do:
 *
 *   X-Croupier-Provider: ID
 *   X-Croupier-Timestamp: SECONDS        within PROVIDER_CLOCK_SECONDS of our clock
 *   X-Croupier-Signature: v1=HEX         launch/document.h
 *   X-Croupier-Key-Id: KID               optional: which of its secrets; else any
 *
 * each exactly once. An unknown provider is judged by a secret of nobody, so that
 * the answer takes as long. It reads memory alone. Threads: any.
 */
#define PROVIDER_CLOCK_SECONDS 60

/* DENIAL_NONE, and `provider` is set, or why not: for the log alone, whoever calls is answered the
 * same. */
MUST_CHECK enum admission_denial provider_admit(const struct games_table *table,
                                                const struct http_request *request,
                                                int64_t now_wall_ms,
                                                const struct games_provider **provider);

/* Whether an admitted provider may call from there. */
MUST_CHECK bool provider_may_call_from(const struct games_provider *provider,
                                       const struct address *client);

#endif
