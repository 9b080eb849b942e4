#ifndef CROUPIER_OPERATOR_PROVIDERS_H
#define CROUPIER_OPERATOR_PROVIDERS_H

#include "operator/resource.h"
#include "records/secrets.h"
#include "stores/platform.h"

/*
 * Providers: who hosts casino games. Settings: id (required in a new one), name, launch_url or
 * launch_endpoint (of which the last one given says whether it is called), return_url, audience (of
 * a new one the id), enabled. A new one needs name, one of the two URLs, and a secret.
 */

extern const struct resource provider_resource; /* of struct provider_record */

/* A secret goes in and is sealed; it never comes out. */
struct provider_sealing {
    const struct secrets *secrets;
    struct text secret; /* at most SECRETS_PLAIN_MAX bytes */
};
resource_editor provider_seal; /* the context is a struct provider_sealing */

#endif
