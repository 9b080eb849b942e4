#ifndef CROUPIER_API_SPORTS_ROUTES_H
#define CROUPIER_API_SPORTS_ROUTES_H

#include "http/http.h"
#include "sports/sports.h"

/*
 * The sports routes that name a sport. Admission, rate limit, method, and the path's form are
 * settled. They reply to the request, at once or later; they set request->abandoned and
 * request->deferral when they defer the reply. `request->user` is the caller's.
 */
/* sport and event id texts as they stand in the path: 400 invalid_sport, then 400 invalid_event_id,
 * then 403 sport_not_allowed, then the store. */
void sports_route_catalog(struct sports_cache *cache, struct http_request *request,
                          sport_set allowed, struct text sport);
void sports_route_event(struct sports_cache *cache, struct http_request *request, sport_set allowed,
                        struct text sport, struct text event);

#endif
