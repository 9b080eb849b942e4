/*
 * API keys: made here, checked here, digested here; see key.h. Randomness comes straight from the
 * kernel: keys are made rarely, and no library's generator state has to be trusted across a fork.
 */
#include "admission/key.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <zlib.h>

#include "base/memory.h"

#define KEY_START "crk_"
#define KEY_START_LENGTH 4
#define CHECKSUM_LENGTH 6
#define CHECKED_LENGTH (KEY_LENGTH - CHECKSUM_LENGTH)
#define IDENTITY_RANDOM_LENGTH 16

static const char base62_digits[] =
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

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
static void random_base62(char *out, size_t length)
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

static void write_checksum(const char *checked, char out[CHECKSUM_LENGTH])
{
    unsigned long crc = crc32(0, (const unsigned char *)checked, CHECKED_LENGTH);
    for (size_t i = CHECKSUM_LENGTH; i-- > 0; crc /= 62)
        out[i] = base62_digits[crc % 62];
}

void key_generate(char out[KEY_SIZE])
{
    memcpy(out, KEY_START, KEY_START_LENGTH);
    random_base62(out + KEY_START_LENGTH, CHECKED_LENGTH - KEY_START_LENGTH);
    write_checksum(out, out + CHECKED_LENGTH);
    out[KEY_LENGTH] = '\0';
}

static bool is_base62(char character)
{
    return (character >= '0' && character <= '9') || (character >= 'A' && character <= 'Z') ||
           (character >= 'a' && character <= 'z');
}

bool key_is_well_formed(struct text key)
{
    char checksum[CHECKSUM_LENGTH];
    if (key.size != KEY_LENGTH || memcmp(key.at, KEY_START, KEY_START_LENGTH) != 0)
        return false;
    for (size_t i = KEY_START_LENGTH; i < KEY_LENGTH; i++) {
        if (!is_base62(key.at[i]))
            return false;
    }
    write_checksum(key.at, checksum);
    return memcmp(checksum, key.at + CHECKED_LENGTH, CHECKSUM_LENGTH) == 0;
}

void key_digest(struct text key, uint8_t digest[KEY_DIGEST_SIZE])
{
    CHECK(SHA256((const unsigned char *)key.at, key.size, digest) != NULL);
}

struct key_digester {
    EVP_MD *algorithm;
    EVP_MD_CTX *context;
};

struct key_digester *key_digester_create(void)
{
    struct key_digester *digester = memory_alloc_zeroed(1, sizeof *digester);
    digester->algorithm = EVP_MD_fetch(NULL, "SHA256", NULL);
    digester->context = EVP_MD_CTX_new();
    CHECK(digester->algorithm != NULL && digester->context != NULL);
    return digester;
}

void key_digester_destroy(struct key_digester **digester)
{
    if (*digester == NULL)
        return;
    EVP_MD_CTX_free((*digester)->context);
    EVP_MD_free((*digester)->algorithm);
    memory_free(*digester);
    *digester = NULL;
}

void key_digester_digest(struct key_digester *digester, struct text key,
                         uint8_t digest[KEY_DIGEST_SIZE])
{
    CHECK(EVP_DigestInit_ex(digester->context, digester->algorithm, NULL) == 1);
    CHECK(EVP_DigestUpdate(digester->context, key.at, key.size) == 1);
    CHECK(EVP_DigestFinal_ex(digester->context, digest, NULL) == 1);
}

void key_prefix(struct text key, char out[KEY_PREFIX_SIZE])
{
    size_t size = key.size < KEY_PREFIX_SIZE - 1 ? key.size : KEY_PREFIX_SIZE - 1;
    memset(out, 0, KEY_PREFIX_SIZE);
    if (size > 0)
        memcpy(out, key.at, size);
}

void identity_generate(const char *prefix, char *out, size_t size)
{
    size_t length = strlen(prefix);
    CHECK(length + IDENTITY_RANDOM_LENGTH < size);
    memcpy(out, prefix, length);
    random_base62(out + length, IDENTITY_RANDOM_LENGTH);
    memset(out + length + IDENTITY_RANDOM_LENGTH, 0, size - length - IDENTITY_RANDOM_LENGTH);
}
