#pragma once

#include "base/json_text.h"
#include "stores/odds.h"

/*
 * Checks documents before they are published. A document that the server could not serve is refused
 * with the line and column of its first error, before the store is asked for anything, so it
 * changes nothing. Exactly the given bytes are published.
 *
 * A document is a JSON array (RFC 8259, UTF-8, at most 32 MiB, nested at most 256 deep) of objects.
 * Rows of a catalog that no client can ask for (no usable `gmid`, or one that an earlier row has)
 * are counted, and published like all others.
 *
 * Threads: any.
 */

struct feed_report {
    size_t bytes;
    size_t rows;                 /* elements of the array */
    size_t without_id;           /* catalog rows without a usable gmid */
    size_t without_id_line;      /* of the first one, from 1 */
    size_t repeated;             /* catalog rows whose gmid an earlier row has */
    size_t repeated_line;        /* of the first one */
    struct event_id repeated_id; /* its id */
};

/* Looks at a document and publishes nothing. `name` is what to call it in the error ("odds.json",
 * "standard input"): "odds.json:3:14: expected a value". STATUS_MALFORMED: refused. */
MUST_CHECK enum status feed_check(enum odds_kind kind, const char *name, struct text document,
                                  struct feed_report *report, struct error *error);

/* The same for a document that is a value of a text that json_text_check has accepted, and for a
 * caller that says where in its own words: `wrong` is set with STATUS_MALFORMED. */
MUST_CHECK enum status feed_check_value(enum odds_kind kind, struct text document,
                                        struct feed_report *report, struct json_text_error *wrong);

/* Is the event in the sport's published catalog? A catalog that was never published, or cannot be
 * read, lists nothing. */
MUST_CHECK enum status feed_catalog_lists(struct odds_store *store, enum sport sport,
                                          const struct event_id *event, bool *listed,
                                          struct error *error);
