/* The route table and how a path finds its row; see routes.h. */
#include "api/routes.h"

static const struct route routes[] = {
    {ROUTE_EVENT, "/api/v1/{sport}/events/{eventId}", true, true, "GET, HEAD", METRICS_ROUTE_EVENT},
    {ROUTE_CATALOG, "/api/v1/{sport}/events", true, true, "GET, HEAD", METRICS_ROUTE_CATALOG},
    {ROUTE_SPORTS, "/api/v1/sports", true, true, "GET, HEAD", METRICS_ROUTE_SPORTS},
    {ROUTE_GAMES, "/api/v1/casino/games", true, false, "GET, HEAD", METRICS_ROUTE_GAMES},
    {ROUTE_LAUNCH, "/api/v1/casino/games/{gameId}/launch", true, false, "POST",
     METRICS_ROUTE_LAUNCH},
    {ROUTE_WALLET, "/api/v1/casino/wallet", true, false, "POST", METRICS_ROUTE_WALLET},
    {ROUTE_HEALTH, "/api/v1/health", false, false, "GET, HEAD", METRICS_ROUTE_HEALTH},
};

/* Does `value` fit the pattern's segment? Placeholders take any segment but an empty one. */
static bool segment_fits(struct text segment, struct text value)
{
    if (segment.at[0] != '{')
        return text_equals(segment, value);
    if (text_equals(segment, TEXT("{sport}")) && text_equals(value, TEXT("casino")))
        return false;
    return value.size > 0;
}

static bool pattern_fits(const char *pattern, struct text path, struct text *values)
{
    struct text segments = text_of(pattern + 1);
    struct text rest = {path.at + 1, path.size - 1};
    size_t count = 0;
    while (segments.at != NULL && rest.at != NULL) {
        struct text segment = text_cut(&segments, '/');
        struct text value = text_cut(&rest, '/');
        if (!segment_fits(segment, value))
            return false;
        if (segment.at[0] == '{') {
            CHECK(count < ROUTE_VALUES_MAX);
            values[count++] = value;
        }
    }
    return segments.at == NULL && rest.at == NULL;
}

struct route_match route_find(struct text path)
{
    struct route_match match = {0};
    if (!text_starts_with(path, TEXT("/api/v1/")))
        return match;
    for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
        if (pattern_fits(routes[i].pattern, path, match.values)) {
            match.route = &routes[i];
            return match;
        }
    }
    return (struct route_match){0};
}

bool route_is_casino(struct text path)
{
    return text_starts_with(path, TEXT("/api/v1/casino/"));
}

bool route_allows(const struct route *route, enum http_method method)
{
    struct text rest = text_of(route->allow);
    while (rest.at != NULL)
        if (text_equals(text_trim(text_cut(&rest, ',')), text_of(http_method_name(method))))
            return true;
    return false;
}

size_t route_table(const struct route **rows)
{
    *rows = routes;
    return sizeof routes / sizeof routes[0];
}
