#ifndef CROUPIER_HTTP_MEMO_H
#define CROUPIER_HTTP_MEMO_H

#include "http/intake.h"

/*
 * A client that polls sends the same bytes again and again, but for the entity tag that it got
 * last. What they were found to say the last time is what they say this time: a memo holds a
 * request without a body as it came, with what was made of it, so that the same bytes need only be
 * compared, and another tag of the same size be put in the place of the last. A memo belongs to
 * one connection; it holds the client's key, so it is wiped when it goes.
 */
#define HTTP_MEMO_MAX 1024U /* bytes of a request worth remembering */
#define HTTP_MEMO_LINES 12U

struct http_memo;

/* Remembers a request that was just found complete in `raw`, all of it, if it is one to
 * remember. */
void http_memo_remember(struct http_memo **memo, const struct http_intake *intake,
                        const struct http_request *request, struct text raw);
/* If `input` begins with the remembered request, but for its tag: fills in `request`, whose texts
 * live in the memo, steps over it, and is done, as after INTAKE_COMPLETE. `memo` may be NULL;
 * `intake` has not been fed. */
bool http_memo_recall(struct http_memo *memo, struct http_intake *intake,
                      struct http_request *request, struct text *input);

/* For a request that is put aside: the memo is of this one from now on, whatever it is like. False:
 * it has a body. `request` may be one that was recalled. */
bool http_memo_keep(struct http_memo **memo, const struct http_intake *intake,
                    const struct http_request *request);
/* Fills in `request` as http_memo_recall does. */
void http_memo_restore(const struct http_memo *memo, struct http_intake *intake,
                       struct http_request *request);
void http_memo_forget(struct http_memo **memo);

#endif
