#pragma once

#include <ctype.h>

#include "base/text.h"

/* Character classes of requests. Pure; private to http/. The locale is always "C". */

static inline bool is_one_of(char character, const char *set)
{
    return character != '\0' && strchr(set, character) != NULL;
}

/* RFC 9110 section 5.6.2 */
static inline bool is_token_character(char character)
{
    return isalnum((unsigned char)character) || is_one_of(character, "!#$%&'*+-.^_`|~");
}

/* RFC 3986 section 2.3 */
static inline bool is_unreserved(char character)
{
    return isalnum((unsigned char)character) || is_one_of(character, "-._~");
}
