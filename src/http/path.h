#pragma once

#include "base/text.h"

/* Paths of route tables. Pure. */

#define HTTP_PATH_VALUES 2

/* Does the path match a pattern such as "/customers/{id}/keys", segment by segment? A {word}
 * matches any segment that is not empty. If true, `values` holds those segments from left to right;
 * unused ones are "". */
bool http_path_fits(const char *pattern, struct text path, struct text values[HTTP_PATH_VALUES]);
