/*
 * Randomness comes straight from the kernel: keys and identities are made rarely, and no library's
 * generator state has to be trusted across a fork.
 */
#include "base/base62.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>
#include <sys/types.h>

#include <openssl/crypto.h>

#include "base/status.h"

const char base62_digits[63] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* At most 256 bytes, which getrandom gives whole once the kernel's pool has been seeded. */
static void random_bytes(uint8_t *out, size_t size)
{
    ssize_t got;
    CHECK(size <= 256);
    do
        got = getrandom(out, size, 0);
    while (got < 0 && errno == EINTR);
    CHECK(got == (ssize_t)size);
}

/* Bytes from 248 up are thrown away: 248 is the largest multiple of 62 that a byte holds, so every
 * digit is equally likely. */
void base62_random(char *out, size_t length)
{
    uint8_t pool[64];
    size_t used = sizeof pool;
    for (size_t i = 0; i < length;) {
        if (used == sizeof pool) {
            random_bytes(pool, sizeof pool);
            used = 0;
        }
        uint8_t byte = pool[used++];
        if (byte < 248)
            out[i++] = base62_digits[byte % 62];
    }
    OPENSSL_cleanse(pool, sizeof pool);
}

bool base62_is_digit(char character)
{
    return (character >= '0' && character <= '9') || (character >= 'A' && character <= 'Z') ||
           (character >= 'a' && character <= 'z');
}
