#pragma once

#include "http/errors.h"
#include "sports/catalog.h"
#include "stores/odds_read.h"

/*
 * The published catalogs and events, for callers that may block: the operator's console. They are
 * read from the store at each call, and made with the functions that make them for customers
 * (catalog.h, event.h). Threads: any.
 */

/* The sport's catalog, which the caller destroys, and when it was published by the wall clock (0:
 * the store does not know). NULL, or the error that customers get. */
MUST_CHECK const struct http_error *sports_read_catalog(struct odds_store *odds, enum sport sport,
                                                        struct catalog **catalog,
                                                        int64_t *published_ms);

/* Appends the body that a customer gets for the event. Likewise, of its odds. */
MUST_CHECK const struct http_error *sports_read_event(struct odds_store *odds, enum sport sport,
                                                      const struct event_id *event,
                                                      struct buffer *body, int64_t *published_ms);
