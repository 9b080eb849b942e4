#pragma once

#include "records/key.h"

/*
 * API keys.
 *
 *     crk_ 30 × base62 from the system's random source   6 × base62 CRC-32 of the 34 before
 *
 * The alphabet is 0-9 A-Z a-z, in that order; the checksum is big-endian and padded with '0'. With
 * the checksum a scanner for leaked secrets can tell a key from a look-alike, and a typo is refused
 * without a look-up. The 30 characters hold 178 bits, too many to guess, so storing a plain SHA-256
 * is safe.
 *
 * A whole key is shown once and never stored or logged. The store keeps its digest and its first
 * KEY_PREFIX_SIZE - 1 characters, which identify it to people. Threads: any.
 */
#define KEY_LENGTH 40
#define KEY_SIZE (KEY_LENGTH + 1)

/* A new key, NUL-terminated. The caller wipes it (explicit_bzero) after showing it. */
void key_generate(char out[KEY_SIZE]);

/* Does the text have the form of a key, with a correct checksum? The answer is not secret: any
 * client can compute it. */
bool key_is_well_formed(struct text key);

/* SHA-256 of the whole text. */
void key_digest(struct text key, uint8_t digest[KEY_DIGEST_SIZE]);

/* The first characters of a key, which identify it to people; NUL-terminated. */
void key_prefix(struct text key, char out[KEY_PREFIX_SIZE]);
