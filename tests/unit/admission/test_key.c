/* admission/key: the form of a key, and what is kept of it. */
#include "admission/key.h"
#include "tests.h"

/* Computed independently (Python: zlib.crc32, hashlib.sha256), as a secret scanner would. */
static const char known_key[] = "crk_0123456789ABCDEFGHIJabcdefghij3rUW3m";

TEST(a_new_key_is_well_formed)
{
    for (int i = 0; i < 1000; i++) {
        char key[KEY_SIZE];
        key_generate(key);
        assert_int_equal(strlen(key), 40);
        assert_memory_equal(key, "crk_", 4);
        assert_true(key_is_well_formed(text_of(key)));
    }
}

TEST(two_keys_differ)
{
    char one[KEY_SIZE];
    char other[KEY_SIZE];
    key_generate(one);
    key_generate(other);
    assert_string_not_equal(one, other);
}

TEST(the_checksum_is_what_a_scanner_computes)
{
    assert_true(key_is_well_formed(text_of(known_key)));
}

TEST(every_single_typo_is_noticed)
{
    char key[KEY_SIZE];
    key_generate(key);
    for (size_t i = 0; i < KEY_LENGTH; i++) {
        for (int character = 0; character < 256; character++) {
            char typo[KEY_SIZE];
            memcpy(typo, key, sizeof typo);
            typo[i] = (char)character;
            bool same = typo[i] == key[i];
            assert_int_equal(key_is_well_formed((struct text){typo, KEY_LENGTH}), same);
        }
    }
}

TEST(a_key_has_exactly_one_length)
{
    char longer[KEY_SIZE + 1];
    key_generate(longer);
    longer[KEY_LENGTH] = '0';
    assert_false(key_is_well_formed((struct text){longer, KEY_LENGTH + 1}));
    assert_false(key_is_well_formed((struct text){longer, KEY_LENGTH - 1}));
    assert_false(key_is_well_formed((struct text){NULL, 0}));
}

TEST(the_digest_is_sha256)
{
    static const uint8_t of_abc[KEY_DIGEST_SIZE] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea,
                                                    0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
                                                    0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c,
                                                    0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad};
    uint8_t digest[KEY_DIGEST_SIZE];
    key_digest(TEXT("abc"), digest);
    assert_memory_equal(digest, of_abc, sizeof digest);
}

TEST(the_prefix_is_the_first_eight_characters)
{
    char prefix[KEY_PREFIX_SIZE];
    key_prefix(text_of(known_key), prefix);
    assert_string_equal(prefix, "crk_0123");
}
