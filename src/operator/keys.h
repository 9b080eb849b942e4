#pragma once

#include "admission/key.h"
#include "operator/resource.h"

/*
 * API keys. Settings of a new one: customer (required), label, expires_at, only, cidrs. The whole
 * key leaves this module once, from keys_issue, and is repeated in no text. Keys are listed by
 * their customer, and neither changed nor added but by keys_issue and keys_revoke.
 */

extern const struct resource key_resource; /* of struct key_record */
/* Listed by what they are called, as keys_check takes it, in place of by their customer. */
extern const struct resource found_key_resource;

/* Makes the key of a record that resource_make has filled, and adds it. `key` is the caller's to
 * wipe (explicit_bzero). */
MUST_CHECK enum status keys_issue(struct platform_store *store, struct key_record *record,
                                  char key[KEY_SIZE], struct error *error);

/* Is that an id, a whole key or its first 8 characters? STATUS_INVALID otherwise. */
MUST_CHECK enum status keys_check(const char *wanted, struct error *error);

/* Finds a key by its id, by the whole key, or by its first 8 characters when they name exactly one
 * live key (or, when none is live, exactly one); else a refusal that lists the ids. */
MUST_CHECK enum status keys_find(struct platform_store *store, const char *wanted, int64_t now_ms,
                                 struct key_record *record, struct error *error);

/* A key that was revoked before keeps its first time. */
MUST_CHECK enum status keys_revoke(struct platform_store *store, const char *wanted, int64_t now_ms,
                                   struct key_record *record, struct error *error);
