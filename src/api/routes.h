#pragma once

#include "account/account.h"
#include "http/path.h"
#include "records/provider.h"
#include "records/usage.h"

/*
 * The route table: every path, with the decisions that precede its handler (docs/interface.md).
 * Matching is pure.
 *
 * Paths are exact: no trailing slash, no empty segment, case-sensitive. `{name}` matches any one
 * segment. A path with `casino` in the place of a sport is never a sports path (docs/interface.md,
 * "Limits").
 */
struct service;

/* The caller, as admission identified it. */
struct caller {
    bool casino;
    bool sandbox;
    sport_set sports;
    key_areas areas;
    /* Its customer, also of a denied caller, if its key is known, and the first characters of the
     * key, if one was supplied. The digest is there if `areas` has one of ROUTE_ACCOUNT_AREAS. */
    struct account_caller of;
    char provider_id[PROVIDER_ID_SIZE]; /* of an admitted caller on the providers' listener */
};

#define ROUTE_ACCOUNT_AREAS (KEY_ACCOUNT | KEY_MANAGE)

struct route_match;

struct route {
    enum http_method method; /* GET: HEAD too */
    const char *path;        /* "/api/v1/{sport}/events/{eventId}"; also its label in metrics */
    bool admission;          /* the caller must be admitted before any other check */
    bool rate_limited;       /* each request counts against the caller's budget */
    enum usage_group usage;  /* the customer's counter for these requests */
    /* Replies to the request, at once or later. */
    void (*handle)(struct service *service, struct http_request *request,
                   const struct caller *caller, const struct route_match *match);
    /* Of /api/v1/account, which is not there for a key without ROUTE_ACCOUNT_AREAS; else NULL. */
    const struct account_act *account;
};

struct route_match {
    const struct route *route;            /* NULL: no such path */
    struct text values[HTTP_PATH_VALUES]; /* the segments that matched {…}, left to right */
};

/* Find a route on the public listener, or on the providers' listener. They have no path in
 * common. */
struct route_match route_find(struct text path);
struct route_match route_find_of_provider(struct text path);

/* Is the path under /api/v1/casino/, whether it exists or not? */
bool route_is_casino(struct text path);

/* Does the route answer this method? HEAD is GET without the body. */
bool route_allows(const struct route *route, enum http_method method);
/* The methods that it answers, for the field Allow: "GET, HEAD". */
struct text route_methods(const struct route *route);

/* The number and label of each row for metrics and the log, and of two cases without a row. */
enum {
    ROUTE_OTHER,   /* no such path */
    ROUTE_REFUSED, /* refused before it was a whole request: 400, 408, 413, … */
    ROUTE_FIRST,   /* of the table */
};
size_t route_number(const struct route *route); /* NULL: ROUTE_OTHER */
const char *route_label(size_t number);         /* NULL beyond the last */
