/* base/digest: SHA-256 of what is at hand. */

#include <openssl/sha.h>

#include "base/digest.h"
#include "base/threads.h"
#include "tests.h"

TEST(is_that_of_the_standard)
{
    /* FIPS 180-4's example of one block */
    static const uint8_t abc[DIGEST_SIZE] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                             0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
                                             0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
                                             0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
    uint8_t digest[DIGEST_SIZE];
    for (int i = 0; i < 3; i++) {
        digest_sha256("abc", 3, digest);
        assert_memory_equal(digest, abc, sizeof digest);
    }
    struct digest *pieces = digest_begin();
    digest_add(pieces, "a", 1);
    digest_add(pieces, "bc", 2);
    digest_end(&pieces, digest);
    assert_memory_equal(digest, abc, sizeof digest);
    assert_null(pieces);
}

static void compare_all_sizes(void *failed)
{
    char bytes[300];
    uint8_t digest[DIGEST_SIZE];
    uint8_t expected[SHA256_DIGEST_LENGTH];
    memset(bytes, 'x', sizeof bytes);
    for (size_t size = 0; size <= sizeof bytes; size++) {
        digest_sha256(bytes, size, digest);
        *(bool *)failed |= SHA256((const unsigned char *)bytes, size, expected) == NULL ||
                           memcmp(digest, expected, sizeof digest) != 0;
    }
}

TEST(nothing_is_left_of_the_call_before)
{
    bool failed = false;
    compare_all_sizes(&failed);
    assert_false(failed);
}

TEST(threads_have_contexts_of_their_own)
{
    bool failed[4] = {false};
    uv_thread_t threads[4];
    for (size_t i = 0; i < 4; i++)
        thread_start(&threads[i], "digest", compare_all_sizes, &failed[i]);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(uv_thread_join(&threads[i]), 0);
        assert_false(failed[i]);
    }
}
