/* The sports routes: turn the texts of a path into a request to the cache. The order of checks:
 * path parameters, sport permission, store (docs/interface.md). */
#include "api/sports_routes.h"

#include "sports/errors.h"
#include "sports/sports.h"

void sports_route(struct sports_cache *cache, struct http_request *request, sport_set allowed,
                  const struct text values[HTTP_PATH_VALUES])
{
    enum sport sport;
    struct event_id event;
    bool wants_event = values[1].size > 0;
    if (sport_from_key(values[0], &sport) != STATUS_OK)
        http_reply_error(request, &error_invalid_sport);
    else if (wants_event && event_id_parse(values[1], &event) != STATUS_OK)
        http_reply_error(request, &error_invalid_event_id);
    else if ((allowed & SPORT_BIT(sport)) == 0)
        http_reply_error(request, &error_sport_not_allowed);
    else
        sports_cache_answer(cache, request, sport, wants_event ? &event : NULL);
}
