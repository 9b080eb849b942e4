#ifndef CROUPIER_SPORTS_READER_H
#define CROUPIER_SPORTS_READER_H

#include "http/errors.h"
#include "sports/catalog.h"
#include "stores/odds.h"

/*
 * What is published, for callers that may block: the operator's console. Catalogs and bodies are
 * made by the functions that make them for customers (catalog.h, event.h), of values that were
 * stored together. The last catalog of each sport is kept, and read again when the store says by
 * its version that it is another one, or cannot tell.
 *
 * Threads: any.
 */
struct sports_reader;

struct sports_reader *sports_reader_create(struct odds_store *odds); /* which is borrowed */
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
