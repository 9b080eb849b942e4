#pragma once

#include "base/json_text.h"
#include "records/event_id.h"

/*
 * One published catalog of a sport, made ready: the body of the event list, and its rows by event
 * id. Immutable: every thread that holds the entry which owns it (entry.h) may answer from it.
 * Finding a row does not depend on how many there are.
 *
 * Rows pass without `providerEventId` and `feed_source`. A row's id is its `gmid`: an integer, or a
 * string of digits, of 1 to 20 digits and above zero. If a row has several members of that name,
 * the last one counts, as in most JSON readers. A row without a usable id stays in the list and
 * cannot be found. If two rows have one id, the first is found.
 */
struct catalog;

struct catalog_row {
    struct event_id id; /* as digits: also how the answer writes it */
    struct text text;   /* the object, as in the list */
    uint32_t at, size;  /* its place in the stored document, which may have whitespace */
};

/* STATUS_MALFORMED: not strict JSON, not an array, or an element is not
 * an object. `error` may be NULL; its line is 0 when the error is about the document as a whole. */
MUST_CHECK enum status catalog_create(struct text stored, struct catalog **catalog,
                                      struct json_text_error *error);
void catalog_destroy(struct catalog **catalog);

/* The whole list as JSON. */
struct text catalog_list(const struct catalog *catalog);

/* NULL: not in the catalog. The row lives as long as the catalog. */
const struct catalog_row *catalog_find(const struct catalog *catalog, const struct event_id *id);

/* The rows with a usable id, in order, including those whose id an earlier row has. NULL: there are
 * no more. */
const struct catalog_row *catalog_row(const struct catalog *catalog, size_t number);

/* Are these bytes, which stand at the row's place in a stored document, still this row? */
bool catalog_row_is(const struct catalog_row *row, struct text stored);

size_t catalog_bytes(const struct catalog *catalog); /* memory held, about */
