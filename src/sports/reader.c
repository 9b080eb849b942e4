/*
 * Reads and waits. It reads an event with the bytes at its row's place in the catalog that it has.
 * If the row is not there any more, it reads again with the whole catalog as of the same moment
 * (event.h).
 */
#include "sports/reader.h"

#include <uv.h>

#include "base/memory.h"
#include "sports/errors.h"
#include "sports/event.h"

#define TURNS_MAX 4 /* with all of the catalog: the feed may publish between two turns */

struct kept {
    uint64_t version; /* 0: nothing is kept */
    int64_t published_ms;
    struct catalog *catalog;
};

struct sports_reader {
    struct odds_store *odds;
    uv_mutex_t lock; /* guards: */
    struct kept kept[SPORT_COUNT];
};

struct sports_reader *sports_reader_create(struct odds_store *odds)
{
    struct sports_reader *reader = memory_alloc_zeroed(1, sizeof *reader);
    reader->odds = odds;
    CHECK(uv_mutex_init(&reader->lock) == 0);
    return reader;
}

void sports_reader_destroy(struct sports_reader **at)
{
    struct sports_reader *reader = *at;
    *at = NULL;
    if (reader == NULL)
        return;
    for (int i = 0; i < SPORT_COUNT; i++)
        catalog_release(&reader->kept[i].catalog);
    uv_mutex_destroy(&reader->lock);
    memory_free(reader);
}

/* ---- a catalog ------------------------------------------------------------------------------- */

/* The kept catalog, if the store still holds it. */
static struct catalog *take_kept(struct sports_reader *reader, enum sport sport,
                                 int64_t *published_ms)
{
    struct kept *kept = &reader->kept[sport];
    struct catalog *catalog = NULL;
    struct odds_versions versions;
    if (odds_store_versions(reader->odds, sport, NULL, &versions) != STATUS_OK)
        return NULL;
    uv_mutex_lock(&reader->lock);
    if (kept->version != 0 && kept->version == versions.catalog) {
        catalog = catalog_hold(kept->catalog);
        *published_ms = kept->published_ms;
    }
    uv_mutex_unlock(&reader->lock);
    return catalog;
}

static void keep(struct sports_reader *reader, const struct odds_read *read,
                 struct catalog *catalog)
{
    struct kept *kept = &reader->kept[read->sport];
    uv_mutex_lock(&reader->lock);
    catalog_release(&kept->catalog);
    *kept = (struct kept){read->value.version, read->value.published_ms, catalog_hold(catalog)};
    uv_mutex_unlock(&reader->lock);
}

const struct http_error *sports_reader_catalog(struct sports_reader *reader, enum sport sport,
                                               struct catalog **catalog, int64_t *published_ms)
{
    *catalog = take_kept(reader, sport, published_ms);
    if (*catalog != NULL)
        return NULL;
    struct odds_read read = {.kind = ODDS_CATALOG, .sport = sport};
    enum status status = odds_store_read_and_wait(reader->odds, &read);
    if (status == STATUS_OK && read.value.version == 0)
        status = STATUS_NOT_FOUND;
    if (status == STATUS_OK)
        status = catalog_create((struct text){read.value.bytes, read.value.size}, catalog, NULL);
    memory_free(read.value.bytes);
    if (status != STATUS_OK)
        return sports_error_of(status, &error_catalog_unavailable);
    keep(reader, &read, *catalog);
    *published_ms = read.value.published_ms;
    return NULL;
}

/* ---- an event -------------------------------------------------------------------------------- */

struct turn {
    struct odds_read read;
    const struct catalog_row *row;
    struct catalog *made; /* the row may be in it; NULL: in the one before */
    bool together;        /* the row and the odds were stored at one moment */
};

static enum status take_turn(struct sports_reader *reader, struct turn *turn, bool whole)
{
    struct odds_read *read = &turn->read;
    read->catalog = (struct odds_part){.at = whole ? 0 : turn->row->at,
                                       .max = whole ? ODDS_VALUE_MAX : turn->row->size};
    enum status status = odds_store_read_and_wait(reader->odds, read);
    turn->together = status == STATUS_OK && read->value.version != 0 &&
                     event_row_as_of(&read->catalog, whole, &read->event, &turn->row, &turn->made);
    return status;
}

static void end_turn(struct turn *turn)
{
    memory_free(turn->read.catalog.bytes);
    memory_free(turn->read.value.bytes);
    catalog_release(&turn->made);
}

/* `whole`: reads all of the catalog as well. */
static enum status read_event(struct sports_reader *reader, struct turn *turn, bool whole,
                              struct buffer *body, int64_t *published_ms)
{
    struct event_row_place place;
    enum status status = take_turn(reader, turn, whole);
    const struct odds_value *value = &turn->read.value;
    if (status == STATUS_OK && value->version == 0)
        status = STATUS_NOT_FOUND;
    else if (status == STATUS_OK && !turn->together)
        status = STATUS_CONFLICT;
    if (status == STATUS_OK)
        status = event_body_append(turn->read.sport, turn->row,
                                   (struct text){value->bytes, value->size}, body, &place, NULL);
    if (status == STATUS_OK)
        *published_ms = value->published_ms;
    end_turn(turn);
    return status;
}

const struct http_error *sports_reader_event(struct sports_reader *reader, enum sport sport,
                                             const struct event_id *event, struct buffer *body,
                                             int64_t *published_ms)
{
    struct catalog *catalog;
    const struct http_error *refusal = sports_reader_catalog(reader, sport, &catalog, published_ms);
    if (refusal != NULL)
        return refusal;
    const struct catalog_row *row = catalog_find(catalog, event);
    enum status status = STATUS_CONFLICT;
    for (int turns = 0; row != NULL && status == STATUS_CONFLICT && turns < TURNS_MAX; turns++) {
        struct turn turn = {
            .read = {.kind = ODDS_MARKETS, .sport = sport, .event = *event},
            .row = row,
        };
        status = read_event(reader, &turn, turns > 0, body, published_ms);
    }
    catalog_release(&catalog);
    if (row == NULL)
        return &error_event_not_found;
    if (status == STATUS_CONFLICT) /* the feed published between each two turns */
        return &error_overloaded;
    return status == STATUS_OK ? NULL : sports_error_of(status, &error_odds_not_found);
}
