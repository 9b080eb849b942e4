/*
 * countries.txt has the 249 codes that ISO 3166-1 assigns (2024), and XK, with one character
 * between two. A code that is not known is refused and not kept: a game with UK in its list would
 * be offered in GB.
 */
#include "records/game_rules.h"

#include "records/texts.h"

bool country_is_known(struct text code)
{
    if (code.size != COUNTRY_SIZE - 1)
        return false;
    for (const char *at = record_countries; *at != '\0'; at += COUNTRY_SIZE)
        if (memcmp(at, code.at, COUNTRY_SIZE - 1) == 0)
            return true;
    return false;
}
