/*
 * API keys: making, checking and digesting them; see key.h.
 */
#include "admission/key.h"

#include <zlib.h>

#include "base/base62.h"
#include "base/digest.h"

#define KEY_START "crk_"
#define KEY_START_LENGTH 4
#define CHECKSUM_LENGTH 6
#define CHECKED_LENGTH (KEY_LENGTH - CHECKSUM_LENGTH)

static void write_checksum(const char *checked, char out[CHECKSUM_LENGTH])
{
    unsigned long crc = crc32(0, (const unsigned char *)checked, CHECKED_LENGTH);
    for (size_t i = CHECKSUM_LENGTH; i-- > 0; crc /= 62)
        out[i] = base62_digits[crc % 62];
}

void key_generate(char out[KEY_SIZE])
{
    memcpy(out, KEY_START, KEY_START_LENGTH);
    base62_random(out + KEY_START_LENGTH, CHECKED_LENGTH - KEY_START_LENGTH);
    write_checksum(out, out + CHECKED_LENGTH);
    out[KEY_LENGTH] = '\0';
}

bool key_is_well_formed(struct text key)
{
    char checksum[CHECKSUM_LENGTH];
    if (key.size != KEY_LENGTH || memcmp(key.at, KEY_START, KEY_START_LENGTH) != 0)
        return false;
    for (size_t i = KEY_START_LENGTH; i < KEY_LENGTH; i++) {
        if (!base62_is_digit(key.at[i]))
            return false;
    }
    write_checksum(key.at, checksum);
    return memcmp(checksum, key.at + CHECKED_LENGTH, CHECKSUM_LENGTH) == 0;
}

void key_digest(struct text key, uint8_t digest[KEY_DIGEST_SIZE])
{
    digest_sha256(key.at, key.size, digest);
}

void key_prefix(struct text key, char out[KEY_PREFIX_SIZE])
{
    size_t size = key.size < KEY_PREFIX_SIZE - 1 ? key.size : KEY_PREFIX_SIZE - 1;
    memset(out, 0, KEY_PREFIX_SIZE);
    if (size > 0)
        memcpy(out, key.at, size);
}
