/*
 * SipHash (Aumasson, Bernstein 2012) with one round a word and three at the end, which is what hash
 * tables of several languages use: not for signatures, but no way is known to find collisions
 * without the seed. The second half of its key is the complement of the first.
 */
#include "base/hash.h"

#include <string.h>
#include <sys/random.h>

#include "base/status.h"

struct state {
    uint64_t v0, v1, v2, v3;
};

static uint64_t rotate(uint64_t value, unsigned bits)
{
    return value << bits | value >> (64 - bits);
}

static struct state round_of(struct state s)
{
    s.v0 += s.v1;
    s.v2 += s.v3;
    s.v1 = rotate(s.v1, 13) ^ s.v0;
    s.v3 = rotate(s.v3, 16) ^ s.v2;
    s.v0 = rotate(s.v0, 32) + s.v3;
    s.v2 += s.v1;
    s.v3 = rotate(s.v3, 21) ^ s.v0;
    s.v1 = rotate(s.v1, 17) ^ s.v2;
    s.v2 = rotate(s.v2, 32);
    return s;
}

static struct state take_word(struct state s, uint64_t word)
{
    s.v3 ^= word;
    s = round_of(s);
    s.v0 ^= word;
    return s;
}

uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size)
{
    const char *at = bytes;
    struct state s = {seed ^ 0x736f6d6570736575U, ~seed ^ 0x646f72616e646f6dU,
                      seed ^ 0x6c7967656e657261U, ~seed ^ 0x7465646279746573U};
    uint64_t word;
    size_t left = size;
    for (; left >= sizeof word; at += sizeof word, left -= sizeof word) {
        memcpy(&word, at, sizeof word);
        s = take_word(s, word);
    }
    word = 0;
    if (left > 0)
        memcpy(&word, at, left);
    s = take_word(s, word | (uint64_t)size << 56);
    s.v2 ^= 0xFF;
    s = round_of(round_of(round_of(s)));
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t hash_text(uint64_t seed, struct text text)
{
    return hash_bytes(seed, text.at, text.size);
}

uint64_t hash_string(uint64_t seed, const char *string)
{
    return hash_bytes(seed, string, strlen(string));
}

uint64_t hash_random_seed(void)
{
    uint64_t seed;
    CHECK(getrandom(&seed, sizeof seed, 0) == (ssize_t)sizeof seed);
    return seed;
}
