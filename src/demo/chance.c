/* Integer probabilities for the simulator; see chance.h. */
#include "demo/chance.h"

#include "base/status.h"

uint64_t chance_mix(uint64_t value)
{
    value += 0x9E3779B97F4A7C15U;
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
    return value ^ (value >> 31);
}

uint64_t chance_next(struct chance *chance)
{
    uint64_t value = chance_mix(chance->state);
    chance->state += 0x9E3779B97F4A7C15U;
    return value;
}

uint32_t chance_below(struct chance *chance, uint32_t limit)
{
    CHECK(limit > 0);
    return (uint32_t)(((chance_next(chance) >> 32) * limit) >> 32);
}

int32_t chance_between(struct chance *chance, int32_t least, int32_t most)
{
    CHECK(least <= most);
    return least + (int32_t)chance_below(chance, (uint32_t)(most - least) + 1);
}

void chance_share(const uint64_t *weights, size_t count, uint32_t *ppm)
{
    uint64_t sum = 0;
    size_t largest = 0;
    for (size_t i = 0; i < count; i++) {
        sum += weights[i];
        if (weights[i] > weights[largest])
            largest = i;
    }
    CHECK(sum > 0);
    uint32_t given = 0;
    for (size_t i = 0; i < count; i++) {
        ppm[i] = (uint32_t)(weights[i] * CHANCE_ONE / sum);
        given += ppm[i];
    }
    ppm[largest] += CHANCE_ONE - given;
}
