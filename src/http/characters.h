#ifndef CROUPIER_HTTP_CHARACTERS_H
#define CROUPIER_HTTP_CHARACTERS_H

#include <stdbool.h>
#include <string.h>

/* The classes of characters that requests are made of. Pure; private to http/. */

static inline bool is_alphanumeric(char character)
{
    return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') ||
           (character >= '0' && character <= '9');
}

static inline bool is_one_of(char character, const char *set)
{
    return character != '\0' && strchr(set, character) != NULL;
}

/* RFC 9110 section 5.6.2 */
static inline bool is_token_character(char character)
{
    return is_alphanumeric(character) || is_one_of(character, "!#$%&'*+-.^_`|~");
}

/* RFC 3986 section 2.3 */
static inline bool is_unreserved(char character)
{
    return is_alphanumeric(character) || is_one_of(character, "-._~");
}

/* -1: not a hexadecimal digit. */
static inline int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    char lower = (char)(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

#endif
