/*
 * SipHash (Aumasson, Bernstein 2012). For tables in memory it runs one round a word and three at
 * the end, as the hash tables of several languages do. This is too weak for signatures, but no way
 * is known to find collisions without the seed. The key's second half is the complement of the
 * seed. For stored hashes (hash_keyed) it runs two rounds and four, as its authors propose.
 */
#include "base/hash.h"

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

static inline struct state rounds_of(struct state s, int rounds)
{
    for (int i = 0; i < rounds; i++)
        s = round_of(s);
    return s;
}

static inline struct state take_word(struct state s, uint64_t word, int rounds)
{
    s.v3 ^= word;
    s = rounds_of(s, rounds);
    s.v0 ^= word;
    return s;
}

/* Words are in the machine's byte order. */
static inline uint64_t sip_hash(uint64_t first_key, uint64_t second_key, const void *bytes,
                                size_t size, int rounds, int last_rounds)
{
    const char *at = bytes;
    struct state s = {first_key ^ 0x736f6d6570736575U, second_key ^ 0x646f72616e646f6dU,
                      first_key ^ 0x6c7967656e657261U, second_key ^ 0x7465646279746573U};
    uint64_t word;
    size_t left = size;
    for (; left >= sizeof word; at += sizeof word, left -= sizeof word) {
        memcpy(&word, at, sizeof word);
        s = take_word(s, word, rounds);
    }
    word = 0;
    if (left > 0)
        memcpy(&word, at, left);
    s = take_word(s, word | (uint64_t)size << 56, rounds);
    s.v2 ^= 0xFF;
    s = rounds_of(s, last_rounds);
    return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

uint64_t hash_bytes(uint64_t seed, const void *bytes, size_t size)
{
    return sip_hash(seed, ~seed, bytes, size, 1, 3);
}

uint64_t hash_keyed(const uint8_t key[HASH_KEY_SIZE], const void *bytes, size_t size)
{
    uint64_t words[2];
    memcpy(words, key, sizeof words);
    return sip_hash(words[0], words[1], bytes, size, 2, 4);
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
