/*
 * Sixteen bytes a step: their halves are multiplied to 128 bits, whose halves are folded together,
 * so that every bit of the input moves half of the output's. The former state also stands beside
 * the product, because a factor of zero would erase it.
 */
#include "base/checksum.h"

#include <string.h>

#define ODD_1 0x9E3779B97F4A7C15U /* 2^64 by the golden ratio */
#define ODD_2 0xD1B54A32D192ED03U
#define ODD_3 0x8CB92BA72F3D8DD7U

__extension__ typedef unsigned __int128 wide;

static uint64_t fold(uint64_t a, uint64_t b)
{
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t step(uint64_t sum, const unsigned char bytes[16])
{
    uint64_t a;
    uint64_t b;
    memcpy(&a, bytes, sizeof a);
    memcpy(&b, bytes + sizeof a, sizeof b);
    return (sum << 23 | sum >> 41) ^ fold(a ^ ODD_1, b ^ ODD_2 ^ sum);
}

uint64_t checksum_add(uint64_t seed, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint64_t sum = seed ^ size * ODD_3; /* the size tells zeros at the end from the padding below */
    for (; size >= 16; at += 16, size -= 16)
        sum = step(sum, at);
    if (size > 0) {
        unsigned char last[16] = {0};
        memcpy(last, at, size);
        sum = step(sum, last);
    }
    return fold(sum ^ ODD_2, ODD_3 ^ seed);
}
