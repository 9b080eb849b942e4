/*
 * Randomness comes straight from the kernel: keys and identities are made rarely, and no library's
 * generator state has to be trusted across a fork.
 */
#include "base/base62.h"

#include <ctype.h>

#include <uv.h>

#include "base/status.h"

const char base62_digits[63] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* Bytes from 248 up are thrown away: 248 is the largest multiple of 62 that a byte holds, so every
 * digit is equally likely. */
void base62_random(char *out, size_t length)
{
    uint8_t pool[64];
    size_t used = sizeof pool;
    for (size_t i = 0; i < length;) {
        if (used == sizeof pool) {
            CHECK(uv_random(NULL, NULL, pool, sizeof pool, 0, NULL) == 0);
            used = 0;
        }
        uint8_t byte = pool[used++];
        if (byte < 248)
            out[i++] = base62_digits[byte % 62];
    }
    explicit_bzero(pool, sizeof pool);
}

bool base62_is_digit(char character)
{
    return isalnum((unsigned char)character) != 0; /* the locale is always "C" */
}
