#pragma once

#include "operator/resource.h"
#include "sealing/secrets.h"

/*
 * Providers host casino games. Settings: id (required in a new one), name, launch_url or
 * launch_endpoint (of which the last one given says whether it is called), return_url, audience (of
 * a new one the id), enabled. A new one needs name, one of the two URLs, and a secret.
 */

extern const struct resource provider_resource; /* of struct provider_record */

/* A secret goes in and is sealed; it never comes out. */
struct provider_sealing {
    const struct secrets *secrets;
    struct text secret; /* at most SECRETS_PLAIN_MAX bytes */
    int64_t now_ms;
};
resource_editor provider_seal;          /* in place of the newest; the context is such a sealing, */
resource_editor provider_add_secret;    /* or beside it, for an overlap, likewise */
resource_editor provider_retire_secret; /* the context is the secret's name, a string */

/* Does the key open every secret of the enabled providers? Ask before another is sealed with it: no
 * instance could open both. STATUS_CONFLICT: no; the text names the file and a provider. */
MUST_CHECK enum status providers_try_key(struct platform_store *store,
                                         const struct secrets *secrets, const char *key_file,
                                         struct error *error);

/* The secrets, without what is secret: an array of {kid, signs, added_at}. */
void provider_write_secrets(struct json_writer *json, const char *name,
                            const struct provider_record *provider);
