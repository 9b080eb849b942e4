/* The sports routes: turn the texts of a path into a request to the cache. The order of checks:
 * path parameters, sport permission, store (docs/interface.md). */
#include "api/sports_routes.h"

#include "sports/errors.h"
#include "sports/sports.h"

/* False: replied. */
static bool read_sport(struct http_request *request, struct text text, enum sport *sport)
{
    if (sport_from_key(text, sport) == STATUS_OK)
        return true;
    http_reply_error(request, &error_invalid_sport);
    return false;
}

static bool permit(struct http_request *request, sport_set allowed, enum sport sport)
{
    if ((allowed & SPORT_BIT(sport)) != 0)
        return true;
    http_reply_error(request, &error_sport_not_allowed);
    return false;
}

void sports_route_catalog(struct sports_cache *cache, struct http_request *request,
                          sport_set allowed, struct text sport_text)
{
    enum sport sport;
    if (read_sport(request, sport_text, &sport) && permit(request, allowed, sport))
        sports_cache_answer(cache, request, sport, NULL);
}

void sports_route_event(struct sports_cache *cache, struct http_request *request, sport_set allowed,
                        struct text sport_text, struct text event_text)
{
    enum sport sport;
    struct event_id event;
    if (!read_sport(request, sport_text, &sport))
        return;
    if (event_id_parse(event_text, &event) != STATUS_OK) {
        http_reply_error(request, &error_invalid_event_id);
        return;
    }
    if (permit(request, allowed, sport))
        sports_cache_answer(cache, request, sport, &event);
}
