/* The checksum of what is kept in files: the same for ever, and another for other bytes. */
#include "base/checksum.h"
#include "tests.h"

TEST(what_it_gives_never_changes)
{
    assert_true(checksum_add(0, "", 0) == 0x38CE81CE2564C6ADU);
    assert_true(checksum_add(1, "odds:cricket:34000001", 21) == 0xBB5B0A69969BBEACU);
}

TEST(every_bit_the_size_and_what_came_before_count)
{
    unsigned char bytes[67];
    memset(bytes, 0, sizeof bytes);
    for (size_t size = 0; size < sizeof bytes; size++) {
        uint64_t whole = checksum_add(7, bytes, size);
        assert_true(whole != checksum_add(8, bytes, size));
        assert_true(whole != checksum_add(7, bytes, size + 1));
        for (size_t bit = 0; bit < 8 * size; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
            assert_true(whole != checksum_add(7, bytes, size));
            bytes[bit / 8] ^= (unsigned char)(1U << bit % 8);
        }
    }
}
