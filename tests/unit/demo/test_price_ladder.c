/* demo/price_ladder: the exchange's ladder of prices, in integers. */
#include "demo/price_ladder.h"
#include "tests.h"

TEST(the_ladder_has_the_exchange_s_steps)
{
    static const struct {
        uint32_t from, to, step;
    } rungs[] = {{101, 200, 1},      {200, 300, 2},        {300, 400, 5},     {400, 600, 10},
                 {600, 1000, 20},    {1000, 2000, 50},     {2000, 3000, 100}, {3000, 5000, 200},
                 {5000, 10000, 500}, {10000, 100000, 1000}};
    uint32_t tick = 0;
    for (size_t r = 0; r < sizeof rungs / sizeof rungs[0]; r++)
        for (uint32_t price = rungs[r].from; price < rungs[r].to; price += rungs[r].step)
            assert_int_equal(price_ladder_at(tick++), price);
    assert_int_equal(price_ladder_at(tick++), 100000);
    assert_int_equal(tick, PRICE_LADDER_TICKS);
}

TEST(floor_finds_the_tick_at_or_below)
{
    for (uint32_t tick = 0; tick + 1 < PRICE_LADDER_TICKS; tick++) {
        assert_int_equal(price_ladder_floor(price_ladder_at(tick)), tick);
        assert_int_equal(price_ladder_floor(price_ladder_at(tick + 1) - 1), tick);
    }
    assert_int_equal(price_ladder_floor(0), 0);
    assert_int_equal(price_ladder_floor(UINT32_MAX), PRICE_LADDER_TICKS - 1);
}

TEST(prices_are_written_exactly)
{
    static const struct {
        uint32_t hundredths;
        const char *text;
    } rows[] = {{101, "1.01"}, {180, "1.8"}, {200, "2"}, {1050, "10.5"}, {100000, "1000"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[16];
        price_write(rows[i].hundredths, text, sizeof text);
        assert_string_equal(text, rows[i].text);
    }
}
