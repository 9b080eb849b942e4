#pragma once

#include "operator/credentials.h"

/*
 * Tokens, with which machines call the admin API. Settings of a new one: name and role (both
 * required), expires_at, cidrs. A token is not changed, only revoked. It is a secret as those in
 * operator/credentials.h are, behind its id (cro_…): a whole one leaves this module once, from
 * tokens_issue, and is repeated in no text.
 */

extern const struct resource token_resource; /* of struct token_record */

/* Makes the token of a record that resource_make has filled, and adds it. `token` is the caller's
 * to wipe (explicit_bzero). EXISTS: another token that is not revoked has the name. */
MUST_CHECK enum status tokens_issue(struct platform_store *store, struct token_record *record,
                                    char token[CREDENTIAL_SIZE], struct error *error);

/* Finds a token by its id, by the whole token, or by its name if it is not revoked, and revokes it.
 * One that was revoked before keeps its first time. NOT_FOUND. */
MUST_CHECK enum status tokens_revoke(struct platform_store *store, const char *wanted,
                                     int64_t now_ms, struct token_record *record,
                                     struct error *error);

/* Finds the token's name and role and notes its use from this address. NOT_FOUND: the token is not
 * good, for any reason; CONFLICT: it is, but not from there (`signed_in` says whose it is). */
MUST_CHECK enum status tokens_admit(struct platform_store *store, struct text token,
                                    const struct address *from, int64_t now_ms,
                                    struct signed_in *signed_in, struct error *error);
