#ifndef CROUPIER_API_ROUTES_H
#define CROUPIER_API_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "http/http.h"
#include "metrics/metrics.h"

/*
 * The route table: every path that exists, as data (docs/interface.md). Matching is pure.
 *
 * Paths are exact: no trailing slash, no empty segment, case-sensitive. `{name}` stands for one
 * segment of any value. The word `casino` in the place of a sport is not a sports path, whatever
 * follows it (docs/interface.md, "Limits").
 */

enum route_id {
    ROUTE_HEALTH,
    ROUTE_SPORTS,
    ROUTE_CATALOG,
    ROUTE_EVENT,
    ROUTE_GAMES,
    ROUTE_LAUNCH,
    ROUTE_WALLET,
};

struct route {
    enum route_id id;
    const char *pattern; /* "/api/v1/{sport}/events/{eventId}" */
    bool admission;      /* judged before anything else is answered */
    bool rate_limited;   /* counts against the caller's budget, whatever comes of it */
    const char *allow;   /* for 405: "GET, HEAD" or "POST" */
    enum metrics_route metrics;
};

#define ROUTE_VALUES_MAX 2

struct route_match {
    const struct route *route;            /* NULL: no such path */
    struct text values[ROUTE_VALUES_MAX]; /* what stood for {…}, left to right */
};

struct route_match route_find(struct text path);

/* Is it under /api/v1/casino/, known or not? */
bool route_is_casino(struct text path);

/* Is the method one that the route answers, by its `allow`? HEAD is GET without the body. */
bool route_allows(const struct route *route, enum http_method method);

/* All rows, for the test that holds docs/openapi.yaml against them. */
size_t route_table(const struct route **routes);

#endif
