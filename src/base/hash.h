#pragma once

#include "base/text.h"

/*
 * The hash of tables in memory: SipHash-1-3. Never stored or sent: its seed is forgotten.
 *
 * If clients choose the keys of a table, its seed is from hash_random_seed, so that they cannot
 * choose keys that collide. Where the cost of collisions is bounded, any seed will do. To hash
 * several values as one key, pass the hash of the first as the seed of the next.
 */
uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size);
uint64_t hash_text(uint64_t seed, struct text text);
uint64_t hash_string(uint64_t seed, const char *string);

uint64_t hash_random_seed(void);

/* Stored hashes use this one, under a secret key: SipHash-2-4. It depends on the byte order of the
 * machine; a caller that stores it notes the order. */
#define HASH_KEY_SIZE 16
uint64_t hash_keyed(const uint8_t key[HASH_KEY_SIZE], const void *bytes, size_t size);
