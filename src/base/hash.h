#ifndef CROUPIER_BASE_HASH_H
#define CROUPIER_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

/*
 * The hash of tables in memory: SipHash-1-3. Never stored or sent: it depends on the machine.
 *
 * Where keys come from outside, the seed is hash_random_seed's, or they could choose
 * keys that all fall into one place; where it is bounded anyway what a collision costs, any will
 * do. Several values make one key when the hash of the first is the seed of the next.
 */
uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size);
uint64_t hash_text(uint64_t seed, struct text text);
uint64_t hash_string(uint64_t seed, const char *string);

uint64_t hash_random_seed(void);

#endif
