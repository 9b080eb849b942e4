#ifndef CROUPIER_CONSOLE_QUERY_H
#define CROUPIER_CONSOLE_QUERY_H

#include "base/status.h"
#include "base/text.h"

/* What stands percent-encoded in a path or a query (RFC 3986 section 2.1). Pure. Threads: any. */

#define CONSOLE_VALUE_SIZE 256 /* of a decoded value, with its NUL */

/* Decodes into a NUL-terminated string; in a query '+' is a space. False: a broken escape, a
 * control character, no UTF-8, or too long. */
MUST_CHECK bool console_decode(struct text encoded, bool of_query, char out[CONSOLE_VALUE_SIZE]);

/* The value of a parameter ("": it is not there). STATUS_INVALID: it is there twice, or does not
 * decode. */
MUST_CHECK enum status console_parameter(struct text query, const char *name,
                                         char out[CONSOLE_VALUE_SIZE], struct error *error);

/* The same of a whole number from 1 to `most`; `otherwise` where it is not there. */
MUST_CHECK enum status console_number(struct text query, const char *name, uint64_t most,
                                      uint64_t otherwise, uint64_t *number, struct error *error);

#endif
