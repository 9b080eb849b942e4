#ifndef CROUPIER_OPERATOR_KEYS_H
#define CROUPIER_OPERATOR_KEYS_H

#include "admission/key.h"
#include "operator/policy_text.h"

/*
 * What an operator can do to API keys. The whole key leaves this module once, from keys_issue, and
 * is repeated in no text. Blocks as the store does.
 */

/* When a key shall expire: RFC 3339, a date (midnight UTC), or a time from now in whole seconds,
 * minutes, hours, days or weeks ("90d", "12h"). In the future, and before the year 10000. */
MUST_CHECK enum status expiry_parse(struct text text, int64_t now_ms, int64_t *expires_ms,
                                    struct error *error);

struct key_settings {
    const char *customer_id;
    const char *label;   /* NULL: none */
    const char *expires; /* as for expiry_parse; NULL: never */
};

/* Makes a key. `key` is the caller's to wipe (OPENSSL_cleanse). */
MUST_CHECK enum status keys_issue(struct platform_store *store, const struct key_settings *settings,
                                  int64_t now_ms, char key[KEY_SIZE], struct key_record *record,
                                  struct error *error);

/* Finds a key by its id, by the whole key, or by its first 8 characters when they name exactly one
 * live key (or, when none is live, exactly one); else a refusal that lists the ids. */
MUST_CHECK enum status keys_find(struct platform_store *store, const char *wanted, int64_t now_ms,
                                 struct key_record *record, struct error *error);

/* `before` tells that it had been revoked already: its first time stands. */
MUST_CHECK enum status keys_revoke(struct platform_store *store, const char *wanted, int64_t now_ms,
                                   struct key_record *record, bool *before, struct error *error);

bool key_is_live(const struct key_record *record, int64_t now_ms);

/* {"id", "customer", "prefix", "label", "created_at", "expires_at", "last_used_at",
 * "revoked_at"} */
yyjson_mut_val *key_json(yyjson_mut_doc *doc, const struct key_record *record);

#endif
