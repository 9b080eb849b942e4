#pragma once

#include "base/text.h"

/*
 * An event id (`gmid`): a positive integer of at most 20 digits, which can exceed 2^64, so it is
 * kept and compared as decimal text without leading zeros and never as a machine integer
 * (docs/interface.md).
 */
#define EVENT_ID_DIGITS 20
struct event_id {
    uint8_t size;                     /* 1 to 20 */
    char digits[EVENT_ID_DIGITS + 1]; /* NUL-terminated, the rest zero: structs compare as bytes */
};

/* Reads 1 to 20 ASCII digits with a value above zero; leading zeros are dropped. */
MUST_CHECK enum status event_id_parse(struct text text, struct event_id *id);

/* Reads a catalog row's `gmid`, as json_text slices it: a number, or a string of digits. NOT_FOUND
 * where there is none (the empty text), INVALID where it is no id. */
MUST_CHECK enum status event_id_read(struct text value, struct event_id *id);

bool event_id_equals(const struct event_id *a, const struct event_id *b);
struct text event_id_text(const struct event_id *id);
