#ifndef CROUPIER_OPERATOR_PROVIDERS_H
#define CROUPIER_OPERATOR_PROVIDERS_H

#include <yyjson.h>

#include "operator/policy_text.h"
#include "records/secrets.h"
#include "stores/platform.h"

/*
 * What an operator can do to providers, whatever face it is done through: texts in, records out.
 * Blocks as the store does. A secret goes in and is sealed; it never comes out.
 */

struct provider_settings {
    const char *name; /* NULL: leave as it is */
    /* At most one of these two (CHECKed); which of them says whether it is called. NULL: leave. */
    const char *launch_url;
    const char *launch_endpoint;
    const char *return_url; /* NULL: leave (new: none); "": none */
    const char *audience;   /* NULL: leave (new: the id) */
    struct text secret;     /* size 0: leave; at most SECRETS_PLAIN_MAX bytes */
    enum setting_switch enabled;
};

/* `name`, `launch_url` or `launch_endpoint`, and `secret` are required. `secrets` may be NULL where
 * no secret is given. */
MUST_CHECK enum status providers_add(struct platform_store *store, const struct secrets *secrets,
                                     const char *id, const struct provider_settings *settings,
                                     int64_t now_ms, struct provider_record *record,
                                     struct error *error);
MUST_CHECK enum status providers_get(struct platform_store *store, const char *id,
                                     struct provider_record *record, struct error *error);

/* Changes what is given and leaves the rest, also when somebody else changes the rest meanwhile. */
MUST_CHECK enum status providers_change(struct platform_store *store, const struct secrets *secrets,
                                        const char *id, const struct provider_settings *settings,
                                        struct provider_record *record, struct error *error);

/* {"id", "name", "launch_url", "launch_endpoint", "return_url", "audience", "enabled",
 * "created_at"}, of launch_url and launch_endpoint one is null; and "usable": false where the
 * stored row makes no sense. */
yyjson_mut_val *provider_json(yyjson_mut_doc *doc, const struct provider_record *record);

#endif
