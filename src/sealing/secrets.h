#pragma once

#include "base/text.h"

/*
 * The key of [casino] secrets_key_file, and what is done with it: 32 random bytes in a file that
 * file_read_secret takes (made with mode 0600), the same on all instances. It never leaves this
 * module: a purpose (a label) gives a key of its own, derived with HMAC-SHA-256, so that no two
 * uses can be turned against one another.
 *
 * Sealed: nonce (12 bytes), ciphertext, tag (16), by AES-256-GCM under the purpose "sealing". The
 * context (what it is, whose it is) is authenticated with it, so that a sealed secret that was
 * moved to another row does not open.
 *
 * Blocks on files when opened. Afterwards immutable: any thread.
 */
#define SECRETS_KEY_SIZE 32
#define SECRETS_SEAL_OVERHEAD 28U /* bytes that sealing adds */
#define SECRETS_PLAIN_MAX 512U    /* bytes that can be sealed */

struct secrets;

/* Makes the file when there is none; one that is there is not looked at. `made` tells which it was.
 * Safe to run twice at once: the file appears whole or not at all, and is never replaced. */
MUST_CHECK enum status secrets_make_key(const char *path, bool *made, struct error *error);

/* STATUS_UNAVAILABLE: no such file, or unreadable; STATUS_INVALID: others may use it, or it is no
 * regular file (file_read_secret); STATUS_MALFORMED: not 32 bytes. Texts say what to do. */
MUST_CHECK enum status secrets_open_key(struct secrets **secrets, const char *path,
                                        struct error *error);
void secrets_destroy(struct secrets **secrets);

/* The key of a purpose, a constant. The caller wipes it. */
void secrets_derive(const struct secrets *secrets, const char *purpose,
                    uint8_t key[SECRETS_KEY_SIZE]);

/* Secrets whose key is that of a purpose. No other purpose opens their seals. */
struct secrets *secrets_of_purpose(const struct secrets *secrets, const char *purpose);

/* Appends the sealed form. At most SECRETS_PLAIN_MAX bytes (CHECKed). */
void secrets_seal(const struct secrets *secrets, struct text context, struct text plain,
                  struct buffer *out);

/* Appends what was sealed. STATUS_MALFORMED, and nothing appended: not sealed with this key and
 * context. The caller wipes the buffer. */
MUST_CHECK enum status secrets_unseal(const struct secrets *secrets, struct text context,
                                      struct text sealed, struct buffer *out);
