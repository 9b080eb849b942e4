#pragma once

#include "base/text.h"

#define COUNTRY_SIZE 3 /* two capitals; NUL-terminated */

/* Is it a code of ISO 3166-1 alpha-2, or XK (Kosovo), which databases of addresses use? */
bool country_is_known(struct text code);
