/*
 * The embedded odds store: `embedded:DIR`, on LMDB. These are its verbs; each means what the
 * function of its name in stores/odds_engine.h says.
 *
 *   store.c        the store: life, background thread, which thread may use what when
 *   values.c       look-ups in snapshots, stamps, publishing
 *   index.c        which transaction wrote each value, in memory
 *   edit.c         what a commit writes beside the values
 *   records.c      keys, headers, checksums
 *   environment.c  the LMDB environment on disk: opening, damage, writing
 *   watch.c        noticing a commit, and what it has changed
 *   interest.c     which events were asked for
 *   guard.c        reading mapped files without dying of them
 *
 * Each value that is read must be the one that the index lists. So a damaged or older page never
 * hides or changes an answer: the value is malformed, or the environment is broken.
 */

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/lmdb/store.h"

/* ---- serving --------------------------------------------------------------------------------- */

static enum status lmdb_stamp(struct odds_store *store, uint64_t *stamp)
{
    struct lmdb_use use;
    enum status status = lmdb_store_enter(store, &use, NULL);
    return status != STATUS_OK ? status
                               : lmdb_store_leave(&use, lmdb_values_stamp(use.values, stamp));
}

static enum status look_up(struct odds_store *store, struct lmdb_lookup *lookup,
                           struct error *error)
{
    struct lmdb_use use;
    enum status status = lmdb_store_enter(store, &use, error);
    if (status != STATUS_OK)
        return status;
    status = lmdb_store_leave(&use, lmdb_values_look_up(use.values, lookup));
    if (status != STATUS_OK && error != NULL)
        (void)error_set(error, status, "the odds store at %s cannot be read", use.root);
    return status;
}

static enum status lmdb_versions(struct odds_store *store, enum sport sport,
                                 const struct event_id *event, struct odds_versions *versions)
{
    struct lmdb_lookup lookup = {.sport = sport, .event = event};
    enum status status = look_up(store, &lookup, NULL);
    if (status == STATUS_OK)
        *versions = lookup.versions;
    return status;
}

/* Copies a record, or the part of it that is wanted, which is cut to what there is. The copy
 * is not checked. Touching the record may fault, so its memory is in `part` before that. */
static bool copy_part(const struct lmdb_view *view, const struct lmdb_key *key,
                      uint64_t transaction, struct lmdb_record *record, struct odds_part *part)
{
    if (lmdb_record_find(view, key, transaction, record) != 0)
        return false;
    size_t at = part->at < record->size ? part->at : record->size;
    part->size = part->max < record->size - at ? part->max : record->size - at;
    part->bytes = memory_alloc(part->size + 1);
    part->bytes[part->size] = '\0';
    memcpy(part->bytes, record->bytes + at, part->size);
    return true;
}

/* The results of a read, also of one that a fault ends. */
struct reading {
    struct odds_part whole, part; /* of the value; of the catalog beside it */
    uint64_t part_version;        /* of the catalog, which needs no part then */
    int64_t published_ms;
};

static enum status read_value(struct lmdb_lookup *lookup, const struct lmdb_view *view)
{
    struct reading *reading = lookup->context;
    uint64_t transaction = lookup->event == NULL ? lookup->catalog : lookup->odds;
    struct lmdb_key key = lmdb_key_of(ODDS_CATALOG, lookup->sport, NULL);
    struct lmdb_record record;
    /* A part of the catalog needs no checksum: the caller compares it with a catalog that was
     * read whole. */
    if (reading->part.max > 0 && lookup->catalog != 0 &&
        lookup->versions.catalog != reading->part_version &&
        copy_part(view, &key, lookup->catalog, &record, &reading->part) &&
        reading->part.size == record.size &&
        !lmdb_record_is_whole(&record, view->root.identity, &key, reading->part.bytes))
        return STATUS_MALFORMED;
    if (transaction == 0)
        return STATUS_OK;
    if (lookup->event != NULL)
        key = lmdb_key_of(ODDS_MARKETS, lookup->sport, lookup->event);
    if (!copy_part(view, &key, transaction, &record, &reading->whole) ||
        !lmdb_record_is_whole(&record, view->root.identity, &key, reading->whole.bytes))
        return STATUS_MALFORMED;
    reading->published_ms = record.header.published_ms;
    return STATUS_OK;
}

static enum status lmdb_read(struct odds_store *store, struct odds_read *read)
{
    struct reading reading = {.whole = {.max = SIZE_MAX}};
    struct lmdb_lookup lookup = {.sport = read->sport, .read = read_value, .context = &reading};
    if (read->kind == ODDS_MARKETS) {
        lookup.event = &read->event;
        reading.part = (struct odds_part){.at = read->catalog.at, .max = read->catalog.max};
        reading.part_version = read->catalog_version;
    }
    enum status status = look_up(store, &lookup, NULL);
    if (status != STATUS_OK) {
        memory_free(reading.part.bytes);
        memory_free(reading.whole.bytes);
        return status;
    }
    read->value = (struct odds_value){.stamp = lookup.versions.stamp,
                                      .version = lookup.event == NULL ? lookup.versions.catalog
                                                                      : lookup.versions.odds,
                                      .published_ms = reading.published_ms,
                                      .bytes = reading.whole.bytes,
                                      .size = reading.whole.size};
    if (lookup.deadline_ms > 0) {
        int64_t left_s = (lookup.deadline_ms - clock_boot_ms()) / 1000;
        read->value.expires_s = left_s > 0 ? (uint32_t)left_s : 1;
    }
    read->catalog = reading.part;
    read->same_catalog =
        reading.part_version != 0 && lookup.versions.catalog == reading.part_version;
    return STATUS_OK;
}

static enum status lmdb_ping(struct odds_store *store, enum odds_need need, struct error *error)
{
    (void)need; /* a process that has opened it may do both */
    struct lmdb_lookup lookup = {0};
    return look_up(store, &lookup, error);
}

static enum status read_times(struct lmdb_lookup *lookup, const struct lmdb_view *view)
{
    struct odds_facts *facts = lookup->context;
    memcpy(facts->published_ms, view->root.published_ms, sizeof facts->published_ms);
    return STATUS_OK;
}

static void lmdb_facts(struct odds_store *store, struct odds_facts *facts)
{
    struct lmdb_lookup lookup = {.read = read_times, .context = facts};
    lmdb_store_facts(store, facts);
    if (facts->connected && look_up(store, &lookup, NULL) != STATUS_OK)
        facts->connected = 0;
}

/* The record's own word, unchecked: nothing is served by it. */
static enum status read_published(struct lmdb_lookup *lookup, const struct lmdb_view *view)
{
    struct lmdb_key key = lmdb_key_of(ODDS_MARKETS, lookup->sport, lookup->event);
    struct lmdb_record record;
    if (lookup->odds != 0 && lmdb_record_find(view, &key, lookup->odds, &record) == 0)
        *(int64_t *)lookup->context = record.header.published_ms;
    return STATUS_OK;
}

static int64_t lmdb_published_ms(struct odds_store *store, enum sport sport,
                                 const struct event_id *event)
{
    int64_t published_ms = 0;
    struct lmdb_lookup lookup = {
        .sport = sport, .event = event, .read = read_published, .context = &published_ms};
    return look_up(store, &lookup, NULL) == STATUS_OK ? published_ms : 0;
}

/* ---- feeding --------------------------------------------------------------------------------- */

static enum status lmdb_list_interest(struct odds_store *store, enum sport sport, int64_t since_ms,
                                      struct odds_interest **list, size_t *count,
                                      struct error *error)
{
    struct lmdb_use use;
    enum status status = lmdb_store_enter(store, &use, error);
    return status != STATUS_OK
               ? status
               : lmdb_store_leave(
                     &use, lmdb_interest_list(use.interest, sport, since_ms, list, count, error));
}

static enum status lmdb_list_events(struct odds_store *store, enum sport sport,
                                    struct event_id **list, size_t *count, struct error *error)
{
    struct buffer events = {0};
    struct lmdb_lookup lookup = {.sport = sport, .events = &events};
    enum status status = look_up(store, &lookup, error);
    if (status != STATUS_OK) {
        buffer_free(&events);
        return status;
    }
    *list = (struct event_id *)(void *)events.data;
    *count = events.size / sizeof **list;
    return STATUS_OK;
}

static enum status lmdb_back_up(struct odds_store *store, const char *path, struct error *error)
{
    struct lmdb_use use;
    enum status status = lmdb_store_enter(store, &use, error);
    return status != STATUS_OK
               ? status
               : lmdb_store_leave(&use, lmdb_values_back_up(use.values, path, error));
}

const struct odds_engine odds_engine_lmdb = {
    .schemes = {"embedded:"},
    .open = lmdb_store_open,
    .close = lmdb_store_close,
    .stamp = lmdb_stamp,
    .versions = lmdb_versions,
    .read = lmdb_read,
    .published_ms = lmdb_published_ms,
    .ping = lmdb_ping,
    .wake = lmdb_store_wake,
    .facts = lmdb_facts,
    .publish = lmdb_store_publish,
    .list_interest = lmdb_list_interest,
    .list_events = lmdb_list_events,
    .back_up = lmdb_back_up,
};
