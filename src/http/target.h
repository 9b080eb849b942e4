#pragma once

#include "http/http.h"

/*
 * Request targets and Host (RFC 9112 sections 3.2 and 3.2.3). Pure; private to http/.
 */

/*
 * Splits a target into path and query and decodes the percent-encoded unreserved characters of the
 * path in place (the path may end up shorter). Accepts origin-form, absolute-form of http and
 * https, "*" with OPTIONS and authority-form with CONNECT; the last two become text that matches no
 * route. STATUS_INVALID for any other form, a fragment, a broken percent-encoding, and bytes that a
 * URI may not hold.
 */
MUST_CHECK enum status http_target_split(char *target, size_t size, enum http_method method,
                                         struct text *path, struct text *query);

/* A host (name, IPv4 or bracketed IP literal; not empty) with an optional port. */
bool http_host_is_valid(struct text host);
