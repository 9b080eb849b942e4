#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/*
 * SHA-256. Of what is at hand in one piece, as often as a ledger needs it: OpenSSL's one-shot
 * SHA256() looks the algorithm up and makes a context at each call, which takes four times as long
 * as hashing a short text. Here each thread keeps a context, made at its first call and freed when
 * it ends. Threads: any.
 */

#define DIGEST_SIZE 32

void digest_sha256(const void *bytes, size_t size, uint8_t out[DIGEST_SIZE]);
void digest_hmac_sha256(struct text key, struct text data, uint8_t out[DIGEST_SIZE]);

/* Of what comes in pieces. One thread at a time. */
struct digest;
struct digest *digest_begin(void);
void digest_add(struct digest *digest, const void *bytes, size_t size);
void digest_end(struct digest **digest, uint8_t out[DIGEST_SIZE]); /* and destroys */
