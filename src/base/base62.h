#pragma once

#include <stdbool.h>
#include <stddef.h>

/*
 * The alphabet of keys and identities: 0-9 A-Z a-z, in that order. Threads: any.
 */
extern const char base62_digits[63];

/* Writes `length` random digits, each equally likely, from the kernel's random numbers; no NUL.
 * Good for secrets as well as for ids. */
void base62_random(char *out, size_t length);

bool base62_is_digit(char character);
