#ifndef CROUPIER_SPORTS_CACHE_H
#define CROUPIER_SPORTS_CACHE_H

#include "sports/sports.h"

/*
 * What a cache does for a request whose path makes sense: it replies, at once or later. Private to
 * src/sports; on the cache's thread.
 */
void sports_cache_answer_sports(struct sports_cache *cache, struct http_request *request,
                                sport_set allowed);
void sports_cache_answer_catalog(struct sports_cache *cache, struct http_request *request,
                                 enum sport sport);
void sports_cache_answer_event(struct sports_cache *cache, struct http_request *request,
                               enum sport sport, const struct event_id *id);

#endif
