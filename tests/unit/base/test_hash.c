/* base/hash: the hash of tables in memory. */
#include "base/hash.h"
#include "tests.h"

TEST(equal_bytes_have_equal_hashes_wherever_they_lie)
{
    char bytes[64];
    for (size_t at = 0; at < 8; at++) {
        memset(bytes, (int)at, sizeof bytes);
        memcpy(bytes + at, "a key of 20 bytes...", 20);
        assert_true(hash_bytes(5, bytes + at, 20) == hash_string(5, "a key of 20 bytes..."));
    }
    assert_true(hash_text(1, (struct text){0}) == hash_string(1, ""));
}

TEST(size_bytes_and_seed_all_count)
{
    static const char zeros[17];
    uint64_t seen[2 * 17 + 2 * 16];
    size_t count = 0;
    for (uint64_t seed = 0; seed < 2; seed++) {
        for (size_t size = 0; size <= 16; size++)
            seen[count++] = hash_bytes(seed, zeros, size);
        for (size_t at = 0; at < 16; at++) {
            char one[16] = {0};
            one[at] = 1;
            seen[count++] = hash_bytes(seed, one, sizeof one);
        }
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
}

/* A table indexed by low bits must not clump when keys count up, as event ids do. */
TEST(hashes_of_neighbours_spread)
{
    unsigned low[256] = {0};
    unsigned high[256] = {0};
    for (unsigned i = 0; i < 65536; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "%u", 34000000U + i);
        uint64_t hash = hash_string(0, text);
        low[hash & 255]++;
        high[hash >> 56]++;
    }
    for (size_t i = 0; i < 256; i++) {
        assert_in_range(low[i], 128, 512); /* 256 on average */
        assert_in_range(high[i], 128, 512);
    }
}

TEST(a_random_seed_is_another_each_time)
{
    assert_true(hash_random_seed() != hash_random_seed());
}

/* The paper's own example (appendix A), on a machine with the lowest byte first. */
TEST(a_keyed_hash_is_that_of_the_paper)
{
    uint8_t key[HASH_KEY_SIZE];
    uint8_t bytes[15];
    for (uint8_t i = 0; i < sizeof key; i++)
        key[i] = i;
    for (uint8_t i = 0; i < sizeof bytes; i++)
        bytes[i] = i;
    assert_true(hash_keyed(key, bytes, sizeof bytes) == 0xa129ca6149be45e5U);
    assert_true(hash_keyed(key, bytes, 0) == 0x726fdb47dd0e0e31U);
    key[15] ^= 1;
    assert_true(hash_keyed(key, bytes, sizeof bytes) != 0xa129ca6149be45e5U);
}
