/* The route table and how a path finds its row; see routes.h. */
#include "api/routes.h"

#include "api/service.h"

static void answer_health(struct service *service, struct http_request *request,
                          const struct caller *caller, const struct route_match *match)
{
    (void)caller;
    (void)match;
    health_ask(service->shared->health, &service->health_waits, service->mailbox, request);
}

static void answer_sports(struct service *service, struct http_request *request,
                          const struct caller *caller, const struct route_match *match)
{
    sports_route(service->sports, request, caller->sports, match->values);
}

static void answer_games(struct service *service, struct http_request *request,
                         const struct caller *caller, const struct route_match *match)
{
    (void)match;
    games_route_list(service->games, request, caller->of.customer_id, caller->sandbox);
}

static void answer_launch(struct service *service, struct http_request *request,
                          const struct caller *caller, const struct route_match *match)
{
    launch_route(service->shared->launcher, service->games, service->mailbox, request,
                 caller->of.customer_id, caller->sandbox, match->values[0]);
}

static void answer_wallet(struct service *service, struct http_request *request,
                          const struct caller *caller, const struct route_match *match)
{
    bool provider = caller->provider_id[0] != '\0';
    (void)match;
    wallet_route(service->wallet, service->games, request,
                 provider ? WALLET_PROVIDER : WALLET_CUSTOMER,
                 provider ? caller->provider_id : caller->of.customer_id, caller->sandbox);
}

static void answer_account(struct service *service, struct http_request *request,
                           const struct caller *caller, const struct route_match *match)
{
    account_route(service->shared->account, service->mailbox, service->waits, request, &caller->of,
                  match->route->account);
}

/* A row of /api/v1/account. */
#define ACCOUNT(method_, path_, act_)                                         \
    {                                                                         \
        METHOD_##method_, "/api/v1/account" path_, true, true, USAGE_ACCOUNT, \
            .account = &(act_), .handle = answer_account                      \
    }

/* The most frequent routes come first. */
static const struct route routes[] = {
    {METHOD_GET, "/api/v1/{sport}/events/{eventId}", true, true, USAGE_SPORTS,
     .handle = answer_sports},
    {METHOD_GET, "/api/v1/{sport}/events", true, true, USAGE_SPORTS, .handle = answer_sports},
    {METHOD_GET, "/api/v1/sports", true, true, USAGE_SPORTS, .handle = answer_sports},
    {METHOD_GET, "/api/v1/casino/games", true, false, USAGE_GAMES, .handle = answer_games},
    {METHOD_POST, "/api/v1/casino/games/{gameId}/launch", true, false, USAGE_LAUNCH,
     .handle = answer_launch},
    {METHOD_POST, "/api/v1/casino/wallet", true, false, USAGE_WALLET, .handle = answer_wallet},
    ACCOUNT(GET, "", account_show),
    ACCOUNT(PUT, "/block", account_block),
    ACCOUNT(POST, "/keys", account_key_make),
    ACCOUNT(GET, "/transactions", account_transactions),
    ACCOUNT(GET, "/players", account_players),
    ACCOUNT(GET, "/statement", account_statement),
    ACCOUNT(GET, "/rounds", account_rounds),
    ACCOUNT(GET, "/days", account_days_act),
    ACCOUNT(GET, "/entries", account_entries),
    ACCOUNT(GET, "/usage", account_usage),
    {METHOD_GET, "/api/v1/health", false, false, USAGE_OTHER, .handle = answer_health},
    {METHOD_POST, "/provider/v1/wallet", true, false, USAGE_OTHER, .handle = answer_wallet},
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

static bool has_delete(const struct route *route)
{
    return route->account != NULL && route->account->on_delete != NULL;
}

bool route_allows(const struct route *route, enum http_method method)
{
    return method == route->method || (method == METHOD_HEAD && route->method == METHOD_GET) ||
           (method == METHOD_DELETE && has_delete(route));
}

struct text route_methods(const struct route *route)
{
    return route->method == METHOD_GET ? TEXT("GET, HEAD")
           : has_delete(route)         ? TEXT("POST, DELETE")
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
