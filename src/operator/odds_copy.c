/*
 * One sport after the other: its odds, then its catalog. The comparison asks both stores for every
 * key of the source, and whether the copy has as many.
 */
#include "operator/odds_copy.h"

#include <string.h>

#include "base/memory.h"
#include "feed/publication.h"

/* A publication costs a sync of the disk or a round trip, so several documents share one. */
#define WAITING_MAX 64U
#define WAITING_BYTES_MAX (8U * 1024 * 1024)

struct copy {
    struct odds_store *from;
    struct odds_store *to;
    odds_copy_progress *progress;
    void *context;
    struct odds_counts counts;
    uint64_t done;

    struct feed_publication waiting; /* read, and not yet published */
    size_t waiting_bytes;
};

static void tell(struct copy *copy, const char *what)
{
    copy->done++;
    if (copy->progress != NULL)
        copy->progress(copy->context, what, copy->done);
}

/* ---- one value, waited for ------------------------------------------------------------------- */

/* The value; its bytes are NULL when nothing is stored, else the caller's to free. `event` NULL:
 * the sport's catalog. */
static enum status read_value(struct odds_store *store, enum sport sport,
                              const struct event_id *event, struct odds_value *value,
                              struct error *error)
{
    struct odds_read read = {.kind = event == NULL ? ODDS_CATALOG : ODDS_MARKETS, .sport = sport};
    if (event != NULL)
        read.event = *event;
    enum status status = odds_store_read_and_wait(store, &read);
    if (status != STATUS_OK)
        return error_set(error, status, "%s %s%s cannot be read: %s", sport_key(sport),
                         event == NULL ? "catalog" : "event ", event == NULL ? "" : event->digits,
                         status_name(status));
    *value = read.value;
    return STATUS_OK;
}

/* ---- copying --------------------------------------------------------------------------------- */

static void drop_waiting(struct copy *copy)
{
    for (size_t i = 0; i < copy->waiting.count; i++)
        memory_free((void *)(uintptr_t)copy->waiting.changes[i].bytes);
    feed_publication_free(&copy->waiting);
    copy->waiting_bytes = 0;
}

static enum status publish_waiting(struct copy *copy, struct error *error)
{
    enum status status = feed_publication_publish(&copy->waiting, copy->to, error);
    drop_waiting(copy);
    return status;
}

static enum status copy_value(struct copy *copy, enum sport sport, const struct event_id *event,
                              struct error *error)
{
    struct odds_value value = {0};
    enum status status = read_value(copy->from, sport, event, &value, error);
    if (status != STATUS_OK || value.bytes == NULL) /* withdrawn since it was listed */
        return status;
    struct odds_change change = {.kind = event == NULL ? ODDS_CATALOG : ODDS_MARKETS,
                                 .sport = sport,
                                 .bytes = value.bytes,
                                 .size = value.size};
    if (event != NULL)
        change.event = *event;
    feed_publication_add(&copy->waiting, &change);
    copy->waiting_bytes += value.size;
    copy->counts.bytes += value.size;
    if (event == NULL)
        copy->counts.catalogs++;
    else
        copy->counts.events++;
    tell(copy, "documents copied");
    if (copy->waiting.count < WAITING_MAX && copy->waiting_bytes < WAITING_BYTES_MAX)
        return STATUS_OK;
    return publish_waiting(copy, error);
}

static enum status copy_sport(struct copy *copy, enum sport sport, struct error *error)
{
    struct event_id *events = NULL;
    size_t count = 0;
    enum status status = odds_store_list_events(copy->from, sport, &events, &count, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        status = copy_value(copy, sport, &events[i], error);
    memory_free(events);
    if (status == STATUS_OK)
        status = publish_waiting(copy, error);
    if (status == STATUS_OK)
        status = copy_value(copy, sport, NULL, error);
    if (status == STATUS_OK)
        status = publish_waiting(copy, error);
    drop_waiting(copy);
    return status;
}

/* ---- the target at first --------------------------------------------------------------------- */

static enum status check_empty(struct copy *copy, struct error *error)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < SPORT_COUNT && status == STATUS_OK; i++) {
        struct event_id *events = NULL;
        struct odds_value catalog = {0};
        size_t count = 0;
        status = odds_store_list_events(copy->to, (enum sport)i, &events, &count, error);
        if (status == STATUS_OK)
            status = read_value(copy->to, (enum sport)i, NULL, &catalog, error);
        if (status == STATUS_OK && (count > 0 || catalog.bytes != NULL))
            status = error_set(error, STATUS_EXISTS,
                               "the target already has %s; --replace withdraws what is there first",
                               sport_key((enum sport)i));
        memory_free(events);
        memory_free(catalog.bytes);
    }
    return status;
}

static enum status withdraw_all(struct copy *copy, struct error *error)
{
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < SPORT_COUNT && status == STATUS_OK; i++)
        status = feed_publication_withdraw_sport(&copy->waiting, copy->to, (enum sport)i, error);
    if (status == STATUS_OK)
        status = publish_waiting(copy, error);
    drop_waiting(copy);
    return status;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static enum status compare_value(struct copy *copy, enum sport sport, const struct event_id *event,
                                 struct error *error)
{
    struct odds_value source = {0};
    struct odds_value target = {0};
    enum status status = read_value(copy->from, sport, event, &source, error);
    if (status == STATUS_OK)
        status = read_value(copy->to, sport, event, &target, error);
    bool same = (source.bytes == NULL) == (target.bytes == NULL) && source.size == target.size;
    if (same && source.bytes != NULL)
        same = memcmp(source.bytes, target.bytes, source.size) == 0;
    memory_free(source.bytes);
    memory_free(target.bytes);
    if (status == STATUS_OK && !same)
        status = error_set(error, STATUS_MALFORMED,
                           "%s %s%s differs: a feed wrote meanwhile. Stop it and copy again with "
                           "--replace",
                           sport_key(sport), event == NULL ? "catalog" : "event ",
                           event == NULL ? "" : event->digits);
    tell(copy, "documents compared");
    return status;
}

/* Compares every event of the source. The numbers of events show whether the copy has others. */
static enum status compare_sport(struct copy *copy, enum sport sport, struct error *error)
{
    struct event_id *events = NULL;
    size_t in_source = 0, in_target = 0;
    enum status status = odds_store_list_events(copy->from, sport, &events, &in_source, error);
    for (size_t i = 0; i < in_source && status == STATUS_OK; i++)
        status = compare_value(copy, sport, &events[i], error);
    memory_free(events);
    events = NULL;
    if (status == STATUS_OK)
        status = odds_store_list_events(copy->to, sport, &events, &in_target, error);
    memory_free(events);
    if (status == STATUS_OK)
        status = compare_value(copy, sport, NULL, error);
    if (status == STATUS_OK && in_source != in_target)
        status = error_set(error, STATUS_MALFORMED,
                           "%s has %zu events in the source and %zu in the copy: a feed wrote "
                           "meanwhile. Stop it and copy again with --replace",
                           sport_key(sport), in_source, in_target);
    return status;
}

static enum status compare(struct copy *copy, struct error *error)
{
    enum status status = STATUS_OK;
    copy->done = 0;
    for (unsigned i = 0; i < SPORT_COUNT && status == STATUS_OK; i++)
        status = compare_sport(copy, (enum sport)i, error);
    return status;
}

enum status odds_copy(struct odds_store *from, struct odds_store *to, bool replace,
                      odds_copy_progress *progress, void *context, struct odds_counts *counts,
                      struct error *error)
{
    struct copy copy = {.from = from, .to = to, .progress = progress, .context = context};
    enum status status = replace ? withdraw_all(&copy, error) : check_empty(&copy, error);
    for (unsigned i = 0; i < SPORT_COUNT && status == STATUS_OK; i++)
        status = copy_sport(&copy, (enum sport)i, error);
    if (status == STATUS_OK)
        status = compare(&copy, error);
    if (status == STATUS_OK)
        *counts = copy.counts;
    return status;
}
