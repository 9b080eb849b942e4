#pragma once

#include "base/text.h"

/*
 * ISO 4217: which currencies there are, and how many decimal digits their minor unit has (a JPY is
 * 1, a EUR is 100 cents, a KWD is 1000 fils). A currency that a store uses is frozen there (table
 * `currency`); this is only where a currency's first use takes its exponent from. Threads: any.
 */

/* False: there is no such currency (three capitals, exactly). */
MUST_CHECK bool currency_exponent(struct text code, uint8_t *exponent);

/* Has ISO 4217 withdrawn it? Players who have it go on; a new player cannot take it. */
MUST_CHECK bool currency_is_withdrawn(struct text code);

/* An amount for people: 1250 with exponent 2 is "12.50". */
#define CURRENCY_AMOUNT_SIZE 32
void currency_format(int64_t minor, unsigned exponent, char out[CURRENCY_AMOUNT_SIZE]);
