/* demo/chance: integer probabilities. */
#include "demo/chance.h"
#include "tests.h"

TEST(the_same_seed_gives_the_same_numbers)
{
    /* The reference generator's first outputs for seed 1234567. */
    struct chance chance = {1234567};
    assert_true(chance_next(&chance) == 6457827717110365317U);
    assert_true(chance_next(&chance) == 3203168211198807973U);
    assert_true(chance_next(&chance) == 9817491932198370423U);
}

TEST(numbers_stay_within_their_bounds_and_reach_them)
{
    struct chance chance = {1};
    unsigned seen[7] = {0};
    for (int i = 0; i < 7000; i++) {
        int32_t number = chance_between(&chance, -3, 3);
        assert_in_range(number + 3, 0, 6);
        seen[number + 3]++;
    }
    for (int i = 0; i < 7; i++)
        assert_in_range(seen[i], 800, 1200);
}

TEST(shares_sum_to_one)
{
    const uint64_t weights[] = {1, 7, 0, 123456789, 3};
    uint32_t ppm[5], sum = 0;
    chance_share(weights, 5, ppm);
    for (int i = 0; i < 5; i++)
        sum += ppm[i];
    assert_int_equal(sum, CHANCE_ONE);
    assert_int_equal(ppm[2], 0);
}
