#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The alphabet of keys and identities: 0-9 A-Z a-z, in that order. Threads: any.
 */
extern const char base62_digits[63];

/* Writes `length` random digits, each equally likely, straight from the kernel's source; no NUL.
 * For what must be unguessable as well as for what must only be unique. */
void base62_random(char *out, size_t length);

bool base62_is_digit(char character);
