#pragma once

#include "console/call.h"
#include "http/http.h"
#include "http/path.h"

/*
 * The admin API: a row a route, with the least role that may call it and the resource that it is
 * about. docs/admin.yaml describes each row, and a test holds the two together. Matching is pure.
 */
struct console_route {
    enum http_method method; /* GET: HEAD too */
    const char *path;        /* "/admin/v1/customers/{id}" */
    bool open;               /* for who is not signed in as well */
    enum operator_role role; /* else at least this */
    console_handler *handle;
    const struct resource *resource; /* of the general handlers */
};

/* The rows of a path: the one of this method, or NULL; `methods` (zeroed) gets the names of all
 * that the path has, for Allow, and stays empty when there is no such path. `values` is what stands
 * for the {words} of its path, as sent; those that it has not are empty. */
const struct console_route *console_route_find(struct text path, enum http_method method,
                                               struct text values[HTTP_PATH_VALUES],
                                               struct buffer *methods);
