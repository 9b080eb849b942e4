#pragma once

#include "http/intake.h"

/*
 * A client that polls sends the same bytes again and again; only the entity tag changes, and the
 * dictionary that it names. A memo holds the bytes of a request without a body and the parsed
 * request. If the next bytes are the same except for values of the same size, the memo replaces
 * those and nothing is parsed again. A memo belongs to one connection. It holds the client's key,
 * so it is wiped when it is freed.
 */
#define HTTP_MEMO_MAX 1024U /* bytes of the longest request to remember */
#define HTTP_MEMO_LINES 12U
#define HTTP_MEMO_ADDED_MAX 128U /* bytes: the fields of a rate limit fit */

struct http_memo;

/* Remembers a request that is complete and whose bytes are exactly `raw`. False: it does not
 * qualify, and the memo stays as it was. */
bool http_memo_remember(struct http_memo **memo, const struct http_intake *intake,
                        const struct http_request *request, struct text raw);
/* If `input` begins with the remembered request, except for those values: fills in `request`, whose
 * texts live in the memo, steps over its bytes, and leaves `intake` as after INTAKE_COMPLETE.
 * `memo` may be NULL; `intake` has not been fed. */
bool http_memo_recall(struct http_memo *memo, struct http_intake *intake,
                      struct http_request *request, struct text *input);

/* A request that is parked calls this: it makes the memo hold this request, even if it does not
 * qualify for http_memo_remember, and the fields added to its reply. False: it has a body, or the
 * fields are longer than HTTP_MEMO_ADDED_MAX. `request` may be one that was recalled. */
bool http_memo_keep(struct http_memo **memo, const struct http_intake *intake,
                    const struct http_request *request, struct text added);
struct text http_memo_added(const struct http_memo *memo);
/* Fills in `request` as http_memo_recall does. */
void http_memo_restore(const struct http_memo *memo, struct http_intake *intake,
                       struct http_request *request);
void http_memo_forget(struct http_memo **memo);
