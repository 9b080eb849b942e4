/* Decimal odds as integers on an exchange's ladder, and their text; no price is ever a floating
 * point number. */
#include "demo/price_ladder.h"

#include "base/status.h"

static const struct {
    uint32_t first_tick;
    uint32_t from; /* hundredths, at first_tick */
    uint32_t step;
} rungs[] = {
    {0, 101, 1},     {99, 200, 2},     {149, 300, 5},    {169, 400, 10},   {189, 600, 20},
    {209, 1000, 50}, {229, 2000, 100}, {239, 3000, 200}, {249, 5000, 500}, {259, 10000, 1000},
};

uint32_t price_ladder_at(uint32_t tick)
{
    CHECK(tick < PRICE_LADDER_TICKS);
    size_t rung = sizeof rungs / sizeof rungs[0] - 1;
    while (tick < rungs[rung].first_tick)
        rung--;
    return rungs[rung].from + (tick - rungs[rung].first_tick) * rungs[rung].step;
}

uint32_t price_ladder_floor(uint32_t hundredths)
{
    if (hundredths < rungs[0].from)
        return 0;
    size_t rung = sizeof rungs / sizeof rungs[0] - 1;
    while (hundredths < rungs[rung].from)
        rung--;
    uint32_t tick = rungs[rung].first_tick + (hundredths - rungs[rung].from) / rungs[rung].step;
    return tick < PRICE_LADDER_TICKS ? tick : PRICE_LADDER_TICKS - 1;
}

void price_write(uint32_t hundredths, char *out, size_t size)
{
    uint32_t whole = hundredths / 100, rest = hundredths % 100;
    if (rest == 0)
        (void)snprintf(out, size, "%u", whole);
    else if (rest % 10 == 0)
        (void)snprintf(out, size, "%u.%u", whole, rest / 10);
    else
        (void)snprintf(out, size, "%u.%02u", whole, rest);
}
