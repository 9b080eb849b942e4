#pragma once

#include "http/http.h"

/*
 * The files of the operator's console: a page, its modules, its style. They are the same for
 * everybody and hold no data, so they need no session; the data of a page comes from /admin/v1.
 *
 * A file is sent gzipped, with a strong entity tag made at build, and asked for again each time
 * (`Cache-Control: no-cache`, 304), so that after an upgrade no browser runs half of the old page.
 * There is one page; the fragment of its address ("/#/customers") says what it shows, so that a
 * sign-in link never sends its secret in a request line.
 *
 * Threads: any.
 */

/* Answers a GET or HEAD of a page or one of its files; false, and nothing done: it is neither. The
 * header fields that protect a page are the caller's to add. */
bool console_pages_reply(struct http_request *request);
