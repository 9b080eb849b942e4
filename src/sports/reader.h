#ifndef CROUPIER_SPORTS_READER_H
#define CROUPIER_SPORTS_READER_H

#include "http/errors.h"
#include "sports/catalog.h"
#include "stores/odds.h"

/*
 * The published catalogs and events, for callers that may block: the operator's console. It makes
 * catalogs and bodies with the functions that make them for customers (catalog.h, event.h), from
 * values that the store held together. It keeps the last catalog of each sport, and reads it again
 * when the store names another version or cannot tell.
 *
 * Threads: any.
 */
struct sports_reader;

struct sports_reader *sports_reader_create(struct odds_store *odds); /* borrowed */
void sports_reader_destroy(struct sports_reader **reader);

/* The sport's catalog, held for the caller, and when it was published by the wall clock (0: the
 * store does not know). NULL, or the error that customers get. */
MUST_CHECK const struct http_error *sports_reader_catalog(struct sports_reader *reader,
                                                          enum sport sport,
                                                          struct catalog **catalog,
                                                          int64_t *published_ms);

/* Appends the body that a customer gets for the event. Likewise, of its odds. */
MUST_CHECK const struct http_error *sports_reader_event(struct sports_reader *reader,
                                                        enum sport sport,
                                                        const struct event_id *event,
                                                        struct buffer *body, int64_t *published_ms);

#endif
