/*
 * One sport after the other: its odds, then its catalog. The comparison asks both stores for every
 * key of the source, and whether the copy has as many.
 */
#include "operator/odds_copy.h"

#include "base/memory.h"
#include "feed/publication.h"
#include "stores/odds_read.h"

/* A publication costs a sync of the disk or a round trip, so several documents share one. */
#define WAITING_MAX 64U
#define WAITING_BYTES_MAX (8U * 1024 * 1024)

struct copy {
    struct odds_store *from;
    struct odds_store *to;
    const struct progress_watch *watch;
    struct odds_counts counts;
    uint64_t done;
    enum status status; /* the first failure; nothing is done after it */
    struct error *error;

    struct feed_publication waiting; /* read, and not yet published */
    size_t waiting_bytes;
};

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
                         status == STATUS_MALFORMED
                             ? "its value is of another type, larger than 32 MiB, or damaged"
                             : status_name(status));
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

static void publish_waiting(struct copy *copy)
{
    if (copy->status == STATUS_OK)
        copy->status =
            odds_store_publish(copy->to, copy->waiting.changes, copy->waiting.count, copy->error);
    drop_waiting(copy);
}

static void copy_value(struct copy *copy, enum sport sport, const struct event_id *event)
{
    struct odds_value value = {0};
    if (copy->status == STATUS_OK)
        copy->status = read_value(copy->from, sport, event, &value, copy->error);
    if (value.bytes == NULL) /* withdrawn since it was listed */
        return;
    struct odds_change change = {.kind = event == NULL ? ODDS_CATALOG : ODDS_MARKETS,
                                 .sport = sport,
                                 .bytes = value.bytes,
                                 .expires_s = value.expires_s,
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
    progress_tell(copy->watch, "documents copied", ++copy->done, 0);
    if (copy->waiting.count == WAITING_MAX || copy->waiting_bytes >= WAITING_BYTES_MAX)
        publish_waiting(copy);
}

/* The events that a store lists; the caller's to free. */
static size_t list_events(struct copy *copy, struct odds_store *store, enum sport sport,
                          struct event_id **events)
{
    size_t count = 0;
    *events = NULL;
    if (copy->status == STATUS_OK)
        copy->status = odds_store_list_events(store, sport, events, &count, copy->error);
    return count;
}

static void copy_sport(struct copy *copy, enum sport sport)
{
    struct event_id *events;
    size_t count = list_events(copy, copy->from, sport, &events);
    for (size_t i = 0; i < count; i++)
        copy_value(copy, sport, &events[i]);
    memory_free(events);
    publish_waiting(copy); /* before the catalog */
    copy_value(copy, sport, NULL);
    publish_waiting(copy);
}

/* ---- the target at first --------------------------------------------------------------------- */

static void check_empty(struct copy *copy, enum sport sport)
{
    struct event_id *events;
    struct odds_value catalog = {0};
    size_t count = list_events(copy, copy->to, sport, &events);
    if (copy->status == STATUS_OK)
        copy->status = read_value(copy->to, sport, NULL, &catalog, copy->error);
    if (copy->status == STATUS_OK && (count > 0 || catalog.bytes != NULL))
        copy->status = error_set(
            copy->error, STATUS_EXISTS,
            "the target already has %s; --replace withdraws what is there first", sport_key(sport));
    memory_free(events);
    memory_free(catalog.bytes);
}

static void withdraw(struct copy *copy, enum sport sport)
{
    if (copy->status == STATUS_OK)
        copy->status =
            feed_publication_withdraw_sport(&copy->waiting, copy->to, sport, copy->error);
}

/* ---- comparing ------------------------------------------------------------------------------- */

static void compare_value(struct copy *copy, enum sport sport, const struct event_id *event)
{
    struct odds_value source = {0};
    struct odds_value target = {0};
    if (copy->status == STATUS_OK)
        copy->status = read_value(copy->from, sport, event, &source, copy->error);
    if (copy->status == STATUS_OK)
        copy->status = read_value(copy->to, sport, event, &target, copy->error);
    bool same =
        source.bytes == NULL || target.bytes == NULL
            ? source.bytes == target.bytes
            : source.size == target.size && memcmp(source.bytes, target.bytes, source.size) == 0;
    memory_free(source.bytes);
    memory_free(target.bytes);
    if (copy->status == STATUS_OK && !same)
        copy->status =
            error_set(copy->error, STATUS_MALFORMED,
                      "%s %s%s differs: a feed wrote meanwhile. Stop it and copy again with "
                      "--replace",
                      sport_key(sport), event == NULL ? "catalog" : "event ",
                      event == NULL ? "" : event->digits);
    progress_tell(copy->watch, "documents compared", ++copy->done, 0);
}

/* Compares every event of the source. The numbers of events show whether the copy has others. */
static void compare_sport(struct copy *copy, enum sport sport)
{
    struct event_id *events;
    size_t in_source = list_events(copy, copy->from, sport, &events);
    for (size_t i = 0; i < in_source && copy->status == STATUS_OK; i++)
        compare_value(copy, sport, &events[i]);
    memory_free(events);
    size_t in_target = list_events(copy, copy->to, sport, &events);
    memory_free(events);
    if (copy->status == STATUS_OK)
        compare_value(copy, sport, NULL);
    if (copy->status == STATUS_OK && in_source != in_target)
        copy->status =
            error_set(copy->error, STATUS_MALFORMED,
                      "%s has %zu events in the source and %zu in the copy: a feed wrote "
                      "meanwhile. Stop it and copy again with --replace",
                      sport_key(sport), in_source, in_target);
}

static void each_sport(struct copy *copy, void (*act)(struct copy *copy, enum sport sport))
{
    for (int i = 0; i < SPORT_COUNT; i++)
        act(copy, (enum sport)i);
}

enum status odds_copy(struct odds_store *from, struct odds_store *to, bool replace,
                      const struct progress_watch *watch, struct odds_counts *counts,
                      struct error *error)
{
    struct copy copy = {.from = from, .to = to, .watch = watch, .error = error};
    each_sport(&copy, replace ? withdraw : check_empty);
    publish_waiting(&copy); /* withdrawn in one go */
    each_sport(&copy, copy_sport);
    copy.done = 0;
    each_sport(&copy, compare_sport);
    if (copy.status == STATUS_OK)
        *counts = copy.counts;
    return copy.status;
}
