#ifndef CROUPIER_API_ROUTES_H
#define CROUPIER_API_ROUTES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"
#include "http/http.h"
#include "http/path.h"
#include "records/sport.h"
#include "records/usage.h"
#include "stores/platform.h"

/*
 * The route table: every path that exists, with all that is decided about it before its handler is
 * called (docs/interface.md). Matching is pure.
 *
 * Paths are exact: no trailing slash, no empty segment, case-sensitive. `{name}` stands for one
 * segment of any value. The word `casino` in the place of a sport is not a sports path, whatever
 * follows it (docs/interface.md, "Limits").
 */
struct service;

/* The caller, as admission has judged. */
struct caller {
    bool casino;
    sport_set sports;
    char customer_id[CUSTOMER_ID_SIZE]; /* also of one that was denied, when its key is known */
    char provider_id[PROVIDER_ID_SIZE]; /* on the listener for providers, of one that is admitted */
};

struct route {
    enum http_method method; /* GET: HEAD too */
    const char *path;        /* "/api/v1/{sport}/events/{eventId}"; also its label in metrics */
    bool admission;          /* judged before anything else is answered */
    bool rate_limited;       /* counts against the caller's budget, whatever comes of it */
    enum usage_group usage;  /* the customer's counter of its requests */
    /* Replies to the request, at once or later. `values` are what stood for {…}. */
    void (*handle)(struct service *service, struct http_request *request,
                   const struct caller *caller, const struct text *values);
};

struct route_match {
    const struct route *route;            /* NULL: no such path */
    struct text values[HTTP_PATH_VALUES]; /* in place of {…}, left to right */
};

/* On the public listener, and on the one for providers: neither has a path of the other's. */
struct route_match route_find(struct text path);
struct route_match route_find_of_provider(struct text path);

/* Is it under /api/v1/casino/, known or not? */
bool route_is_casino(struct text path);

/* Does the route answer this method? HEAD is GET without the body. */
bool route_allows(const struct route *route, enum http_method method);
/* All that it answers, for the field Allow: "GET, HEAD". */
struct text route_methods(const struct route *route);

/* The number and label of each row for metrics and the log, and two more. */
enum {
    ROUTE_OTHER,   /* no such path */
    ROUTE_REFUSED, /* refused before it was a request: 400, 408, 413, … */
    ROUTE_FIRST,   /* of the table */
};
size_t route_number(const struct route *route); /* NULL: ROUTE_OTHER */
const char *route_label(size_t number);         /* NULL beyond the last */

/* All rows, for the test that holds docs/openapi.yaml and docs/provider.yaml against them. */
size_t route_table(const struct route **routes);

#endif
