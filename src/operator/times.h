#pragma once

#include "base/text.h"

/* Times as operators write them: RFC 3339, a date (midnight UTC), or so many whole seconds,
 * minutes, hours, days or weeks ahead ("90d", "12h"). */

/* When something shall end: in the future, and before the year 10000. */
MUST_CHECK enum status time_parse_ahead(struct text text, int64_t now_ms, int64_t *time_ms,
                                        struct error *error);
/* Since when: "12h" is twelve hours ago. */
MUST_CHECK enum status time_parse_past(struct text text, int64_t now_ms, int64_t *time_ms,
                                       struct error *error);
