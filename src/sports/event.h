#pragma once

#include "sports/catalog.h"
#include "stores/odds_read.h"

/*
 * The body of the single-event answer (docs/interface.md, "One event"):
 *
 *     {"sport":"cricket","event_id":34000001,"event":{…},"odds":[…]}
 *
 * `stored_odds` is the odds document as published: an array of market objects, which pass without
 * `tv`, `tvChannel` and `odd_type`. Appends to `body` and sets `row_at` to the row's offset in it.
 * STATUS_MALFORMED: not strict JSON, not an array, or an element is not an object; `body` is as it
 * was. `error` may be NULL; its line is 0 when the error is about the document as a whole.
 */
MUST_CHECK enum status event_body_append(enum sport sport, const struct catalog_row *row,
                                         struct text stored_odds, struct buffer *body,
                                         size_t *row_at, struct json_text_error *error);

/*
 * The row that an answer may show beside odds: the event's row in the catalog as of the moment of
 * the odds. `part` holds the bytes of the catalog as of then. They are the bytes at the place of
 * the row in the catalog that was read before, or, if `whole`, all of it, of which this function
 * makes a catalog. False: the row is not known to be there. `row` may point into `made`, which
 * the caller destroys (NULL before).
 */
MUST_CHECK bool event_row_as_of(const struct odds_part *part, bool whole,
                                const struct event_id *event, const struct catalog_row **row,
                                struct catalog **made);
