#pragma once

#include "base/text.h"

/*
 * SHA-256. The ledger hashes many short texts, and OpenSSL's one-shot SHA256() looks the algorithm
 * up and makes a context at each call, which takes four times as long as the hash itself. So each
 * thread keeps a context here, made at its first call and freed when it ends. Threads: any.
 */

#define DIGEST_SIZE 32
#define DIGEST_SHA1_SIZE 20 /* by which Redis scripts compare values */

void digest_sha256(const void *bytes, size_t size, uint8_t out[DIGEST_SIZE]);
void digest_sha1(const void *bytes, size_t size, uint8_t out[DIGEST_SHA1_SIZE]);
void digest_hmac_sha256(struct text key, struct text data, uint8_t out[DIGEST_SIZE]);

/* A digest of data that comes in pieces. One thread uses it at a time. */
struct digest;
struct digest *digest_begin(void);
void digest_add(struct digest *digest, const void *bytes, size_t size);
void digest_end(struct digest **digest, uint8_t out[DIGEST_SIZE]); /* and destroys */
