#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/*
 * The hash of tables in memory: SipHash-1-3. Never stored or sent: its seed is forgotten.
 *
 * Where keys come from outside, the seed is hash_random_seed's, or they could choose
 * keys that all fall into one place; where it is bounded anyway what a collision costs, any will
 * do. Several values make one key when the hash of the first is the seed of the next.
 */
uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size);
uint64_t hash_text(uint64_t seed, struct text text);
uint64_t hash_string(uint64_t seed, const char *string);

uint64_t hash_random_seed(void);

/* For stored hashes, under a secret key: SipHash-2-4. It depends on the byte order of the machine;
 * a caller that stores it notes the order. */
#define HASH_KEY_SIZE 16
uint64_t hash_keyed(const uint8_t key[HASH_KEY_SIZE], const void *bytes, size_t size);
