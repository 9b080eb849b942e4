#ifndef CROUPIER_HTTP_PATH_H
#define CROUPIER_HTTP_PATH_H

#include <stdbool.h>

#include "base/text.h"

/* Paths of route tables. Pure. */

#define HTTP_PATH_VALUES 2

/* Does the path fit a pattern as "/customers/{id}/keys", segment by segment? A {word} stands for
 * any segment that is not empty. True: `values` are those segments, from left to right, and "" for
 * words that the pattern has not. */
bool http_path_fits(const char *pattern, struct text path, struct text values[HTTP_PATH_VALUES]);

#endif
