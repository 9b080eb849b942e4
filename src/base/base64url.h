#pragma once

#include "base/text.h"

/* base64url without padding (RFC 4648 section 5). Pure. Threads: any. */

void buffer_append_base64url(struct buffer *buffer, const void *bytes, size_t size);

/* Appends what `text` stands for. False, and nothing appended: a character that is none, a length
 * that is none, or bits left over that are not zero (so one value has one text). */
MUST_CHECK bool base64url_read(struct text text, struct buffer *out);
