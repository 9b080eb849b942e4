/* The route table and how a path finds its row; see routes.h. */
#include "api/routes.h"

#include "api/service.h"
#include "sports/sports.h"

static void answer_health(struct service *service, struct http_request *request,
                          const struct caller *caller, const struct text *values)
{
    (void)caller;
    (void)values;
    health_ask(service->shared->health, &service->health_waits, service->mailbox, request);
}

static void answer_sports(struct service *service, struct http_request *request,
                          const struct caller *caller, const struct text *values)
{
    sports_route(service->sports, request, caller->sports, values);
}

static void answer_games(struct service *service, struct http_request *request,
                         const struct caller *caller, const struct text *values)
{
    (void)values;
    games_route_list(service->games, request, caller->customer_id);
}

static void answer_launch(struct service *service, struct http_request *request,
                          const struct caller *caller, const struct text *values)
{
    launch_route(service->shared->launcher, service->games, service->mailbox, request,
                 caller->customer_id, values[0]);
}

static void answer_wallet(struct service *service, struct http_request *request,
                          const struct caller *caller, const struct text *values)
{
    bool provider = caller->provider_id[0] != '\0';
    (void)values;
    wallet_route(service->wallet, service->games, request,
                 provider ? WALLET_PROVIDER : WALLET_CUSTOMER,
                 provider ? caller->provider_id : caller->customer_id);
}

/* The most frequent routes come first. */
static const struct route routes[] = {
    {METHOD_GET, "/api/v1/{sport}/events/{eventId}", true, true, USAGE_SPORTS, answer_sports},
    {METHOD_GET, "/api/v1/{sport}/events", true, true, USAGE_SPORTS, answer_sports},
    {METHOD_GET, "/api/v1/sports", true, true, USAGE_SPORTS, answer_sports},
    {METHOD_GET, "/api/v1/casino/games", true, false, USAGE_GAMES, answer_games},
    {METHOD_POST, "/api/v1/casino/games/{gameId}/launch", true, false, USAGE_LAUNCH, answer_launch},
    {METHOD_POST, "/api/v1/casino/wallet", true, false, USAGE_WALLET, answer_wallet},
    {METHOD_GET, "/api/v1/health", false, false, USAGE_OTHER, answer_health},
    {METHOD_POST, "/provider/v1/wallet", true, false, USAGE_OTHER, answer_wallet},
};
#define ROUTE_COUNT (sizeof routes / sizeof routes[0])

static struct route_match find(struct text path, struct text start)
{
    struct route_match match = {0};
    if (!text_starts_with(path, start))
        return match;
    for (size_t i = 0; i < ROUTE_COUNT; i++) {
        if (http_path_fits(routes[i].path, path, match.values) &&
            !(text_equals(match.values[0], TEXT("casino")) &&
              text_starts_with(text_of(routes[i].path), TEXT("/api/v1/{sport}")))) {
            match.route = &routes[i];
            return match;
        }
    }
    return (struct route_match){0};
}

struct route_match route_find(struct text path)
{
    return find(path, TEXT("/api/v1/"));
}

struct route_match route_find_of_provider(struct text path)
{
    return find(path, TEXT("/provider/v1/"));
}

bool route_is_casino(struct text path)
{
    return text_starts_with(path, TEXT("/api/v1/casino/"));
}

bool route_allows(const struct route *route, enum http_method method)
{
    return method == route->method || (method == METHOD_HEAD && route->method == METHOD_GET);
}

struct text route_methods(const struct route *route)
{
    return route->method == METHOD_GET ? TEXT("GET, HEAD")
                                       : text_of(http_method_name(route->method));
}

size_t route_number(const struct route *route)
{
    return route == NULL ? ROUTE_OTHER : ROUTE_FIRST + (size_t)(route - routes);
}

const char *route_label(size_t number)
{
    if (number < ROUTE_FIRST)
        return number == ROUTE_OTHER ? "other" : "refused";
    return number - ROUTE_FIRST < ROUTE_COUNT ? routes[number - ROUTE_FIRST].path : NULL;
}

size_t route_table(const struct route **rows)
{
    *rows = routes;
    return ROUTE_COUNT;
}
