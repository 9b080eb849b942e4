/*
 * Reads and waits. An event is read together with the bytes at its row's place in the catalog. If
 * the row is not there any more, the catalog has changed, and both are read again (event.h).
 */
#include "sports/reader.h"

#include "base/memory.h"
#include "sports/errors.h"
#include "sports/event.h"

#define TURNS_MAX 4 /* the feed may publish between the catalog and the odds */

const struct http_error *sports_read_catalog(struct odds_store *odds, enum sport sport,
                                             struct catalog **catalog, int64_t *published_ms)
{
    struct odds_read read = {.kind = ODDS_CATALOG, .sport = sport};
    enum status status = odds_store_read_and_wait(odds, &read);
    if (status == STATUS_OK && read.value.version == 0)
        status = STATUS_NOT_FOUND;
    if (status == STATUS_OK)
        status = catalog_create((struct text){read.value.bytes, read.value.size}, catalog, NULL);
    memory_free(read.value.bytes);
    if (status != STATUS_OK)
        return sports_error_of(status, &error_catalog_unavailable);
    *published_ms = read.value.published_ms;
    return NULL;
}

/* STATUS_CONFLICT: the catalog has changed since it was read. */
static enum status read_odds(struct odds_store *odds, enum sport sport,
                             const struct catalog_row *row, struct buffer *body,
                             int64_t *published_ms)
{
    struct odds_read read = {.kind = ODDS_MARKETS,
                             .sport = sport,
                             .event = row->id,
                             .catalog = {.at = row->at, .max = row->size}};
    size_t row_at;
    enum status status = odds_store_read_and_wait(odds, &read);
    if (status == STATUS_OK && read.value.version == 0)
        status = STATUS_NOT_FOUND;
    if (status == STATUS_OK && !event_row_as_of(&read.catalog, false, &row->id, &row, NULL))
        status = STATUS_CONFLICT;
    if (status == STATUS_OK)
        status = event_body_append(sport, row, (struct text){read.value.bytes, read.value.size},
                                   body, &row_at, NULL);
    if (status == STATUS_OK)
        *published_ms = read.value.published_ms;
    memory_free(read.catalog.bytes);
    memory_free(read.value.bytes);
    return status;
}

const struct http_error *sports_read_event(struct odds_store *odds, enum sport sport,
                                           const struct event_id *event, struct buffer *body,
                                           int64_t *published_ms)
{
    enum status status = STATUS_CONFLICT;
    for (int turns = 0; status == STATUS_CONFLICT && turns < TURNS_MAX; turns++) {
        struct catalog *catalog = NULL;
        const struct http_error *refusal = sports_read_catalog(odds, sport, &catalog, published_ms);
        if (refusal != NULL)
            return refusal;
        const struct catalog_row *row = catalog_find(catalog, event);
        if (row != NULL)
            status = read_odds(odds, sport, row, body, published_ms);
        catalog_destroy(&catalog);
        if (row == NULL)
            return &error_event_not_found;
    }
    if (status == STATUS_CONFLICT) /* the feed published in each turn */
        return &error_odds_keep_changing;
    return status == STATUS_OK ? NULL : sports_error_of(status, &error_odds_not_found);
}
