#ifndef CROUPIER_API_SPORTS_ROUTES_H
#define CROUPIER_API_SPORTS_ROUTES_H

#include "http/http.h"
#include "http/path.h"
#include "sports/sports.h"

/*
 * The sports routes that name a sport. The caller has already checked admission, rate limit, method
 * and the form of the path. These calls reply to the request, at once or later; to defer the reply
 * they set request->abandoned and request->deferral. `request->user` stays with the caller.
 */
/* `values` are the texts in the path: the sport, and the event or "" for the list. Answers, in this
 * order: 400 invalid_sport, then 400 invalid_event_id, then 403 sport_not_allowed, then the
 * store. */
void sports_route(struct sports_cache *cache, struct http_request *request, sport_set allowed,
                  const struct text values[HTTP_PATH_VALUES]);

#endif
