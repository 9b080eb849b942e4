/*
 * currencies.txt is ISO 4217 list one as of 2026-01-01 (amendments up to 180) less what is not
 * money to play with: precious metals, bond units, SDRs, the testing code and "no currency". A line
 * is a code and its exponent, "EUR 2". Withdrawn codes stay, because players of before go on with
 * them: "ANG 2 withdrawn 2025-03-31".
 */
#include "records/currency.h"

#include "records/player.h"
#include "records/texts.h"

#define LINE_SIZE 5 /* of a currency that is in use */

static struct text line_of(struct text code)
{
    struct text rest = text_of(record_currencies);
    while (code.size == 3 && rest.size > 0) {
        struct text line = text_cut(&rest, '\n');
        if (text_starts_with(line, code))
            return line;
    }
    return (struct text){NULL, 0};
}

bool currency_is_withdrawn(struct text code)
{
    return line_of(code).size > LINE_SIZE;
}

bool currency_exponent(struct text code, uint8_t *exponent)
{
    struct text line = line_of(code);
    if (line.size > 0)
        *exponent = (uint8_t)(line.at[LINE_SIZE - 1] - '0');
    return line.size > 0;
}

void currency_format(int64_t minor, unsigned exponent, char out[CURRENCY_AMOUNT_SIZE])
{
    char digits[20];
    size_t count = decimal_write(digits, minor < 0 ? 0 - (uint64_t)minor : (uint64_t)minor);
    CHECK(exponent <= CURRENCY_EXPONENT_MAX);
    if (minor < 0)
        *out++ = '-';
    if (count <= exponent)
        *out++ = '0';
    for (size_t left = count > exponent ? count : exponent; left > 0; left--) {
        if (left == exponent)
            *out++ = '.';
        *out++ = left > count ? '0' : digits[count - left];
    }
    *out = '\0';
}
