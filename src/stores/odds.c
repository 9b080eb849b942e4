/*
 * The face of the odds store: chooses the engine by the URI's scheme, and checks once, for all
 * engines, what every call has to respect. See odds.h.
 */
#include "stores/odds.h"

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds_engine.h"

static const struct odds_engine *const engines[] = {&odds_engine_lmdb, &odds_engine_redis};

enum status odds_store_open(struct odds_store **store, const struct odds_store_options *options,
                            struct error *error)
{
    struct text uri = text_of(options->uri);
    for (size_t i = 0; i < sizeof engines / sizeof engines[0]; i++) {
        for (const char *const *scheme = engines[i]->schemes; *scheme != NULL; scheme++) {
            if (!text_starts_with(uri, text_of(*scheme)))
                continue;
            const char *rest = uri.at + strlen(*scheme);
            if (rest[0] == '\0')
                return error_invalid(error, "the odds store %s names no store", *scheme);
            enum status status = engines[i]->open(store, options, rest, error);
            if (status == STATUS_OK)
                (*store)->engine = engines[i];
            return status;
        }
    }
    /* The URI may hold a password, so it is not quoted. */
    return error_invalid(
        error, "this odds store is of no known kind; use embedded:DIRECTORY, redis://HOST, "
               "rediss://HOST, unix:PATH, redis+sentinel://HOSTS/SERVICE or "
               "rediss+sentinel://HOSTS/SERVICE");
}

void odds_store_close(struct odds_store **store)
{
    if (*store == NULL)
        return;
    (*store)->engine->close(*store);
    *store = NULL;
}

static bool sport_is_real(enum sport sport)
{
    return (unsigned)sport < SPORT_COUNT;
}

/* Checks a subject's kind and the fields that it needs: a fault is a bug in the caller. */
static void check_subject(enum odds_kind kind, enum sport sport, const struct event_id *event)
{
    CHECK(kind == ODDS_CATALOG || kind == ODDS_MARKETS);
    CHECK(sport_is_real(sport));
    CHECK(kind == ODDS_CATALOG || (event->size >= 1 && event->size <= EVENT_ID_DIGITS));
}

enum status odds_store_stamp(struct odds_store *store, uint64_t *stamp)
{
    return odds_store_counted(store, store->engine->stamp(store, stamp));
}

bool odds_store_asks(struct odds_store *store)
{
    return store->engine->asks != NULL && store->engine->asks(store);
}

enum status odds_store_versions(struct odds_store *store, enum sport sport,
                                const struct event_id *event, struct odds_versions *versions)
{
    check_subject(event == NULL ? ODDS_CATALOG : ODDS_MARKETS, sport, event);
    return odds_store_counted(store, store->engine->versions(store, sport, event, versions));
}

enum status odds_store_read(struct odds_store *store, struct odds_read *read)
{
    check_subject(read->kind, read->sport, &read->event);
    relaxed_add(&store->reads, 1);
    return odds_store_counted(store, store->engine->read(store, read));
}

struct waiting_read {
    struct odds_read read; /* first: `done` is given this */
    uv_sem_t over;
};

static void on_read(struct odds_read *read)
{
    uv_sem_post(&((struct waiting_read *)read)->over);
}

enum status odds_store_read_and_wait(struct odds_store *store, struct odds_read *read)
{
    struct waiting_read waiting = {.read = *read};
    waiting.read.done = on_read;
    CHECK(uv_sem_init(&waiting.over, 0) == 0);
    enum status status = odds_store_read(store, &waiting.read);
    if (status == STATUS_PENDING) {
        uv_sem_wait(&waiting.over);
        status = waiting.read.result;
    }
    uv_sem_destroy(&waiting.over);
    *read = waiting.read;
    return status;
}

enum status odds_store_ping(struct odds_store *store, enum odds_need need, struct error *error)
{
    return odds_store_counted(store, store->engine->ping(store, need, error));
}

void odds_store_note_interest(struct odds_store *store, enum sport sport,
                              const struct event_id *event)
{
    check_subject(ODDS_MARKETS, sport, event);
    if (odds_notes_add(store->notes, sport, event))
        store->engine->wake(store);
}

bool odds_store_has_leases(const struct odds_store *store)
{
    return store->engine->lease != NULL;
}

enum status odds_store_lease(struct odds_store *store, struct odds_lease *lease)
{
    CHECK(odds_store_has_leases(store) && lease->done != NULL);
    CHECK(lease->client[0] != '\0' && lease->window_seconds > 0);
    CHECK(lease->limit > 0 && lease->demand > 0);
    return odds_store_counted(store, store->engine->lease(store, lease));
}

void odds_store_facts(struct odds_store *store, struct odds_facts *facts)
{
    *facts = (struct odds_facts){.reads = atomic_load(&store->reads),
                                 .errors = atomic_load(&store->errors),
                                 .interest_written = atomic_load(&store->interest_written),
                                 .interest_dropped = odds_notes_dropped(store->notes)};
    for (size_t i = 0; i < SPORT_COUNT; i++) {
        facts->expired[i] = atomic_load(&store->expired[i]);
        facts->expired_ms[i] = atomic_load(&store->expired_ms[i]);
    }
    store->engine->facts(store, facts);
}

static enum status check_changes(const struct odds_change *changes, size_t count,
                                 struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        const struct odds_change *change = &changes[i];
        check_subject(change->kind, change->sport, &change->event);
        if (change->bytes != NULL && change->size > ODDS_VALUE_MAX)
            return error_invalid(error,
                                 "a document of %zu bytes is larger than the %u bytes allowed",
                                 change->size, ODDS_VALUE_MAX);
        CHECK(change->expires_s <= ODDS_EXPIRES_MOST_S);
        CHECK(!change->renew || (change->bytes == NULL && change->expires_s > 0));
    }
    return STATUS_OK;
}

enum status odds_store_publish(struct odds_store *store, const struct odds_change *changes,
                               size_t count, struct error *error)
{
    enum status status = check_changes(changes, count, error);
    if (status != STATUS_OK || count == 0)
        return status;
    return odds_store_counted(store, store->engine->publish(store, changes, count, error));
}

/* Returns all changes of the list as one array; memory_free it. */
static struct odds_change *all_changes(const struct odds_publishing *publishing, size_t *count)
{
    const struct odds_publication *each;
    size_t sum = 0;
    STAILQ_FOREACH (each, &publishing->list, others)
        sum += each->count;
    struct odds_change *changes = memory_alloc(sum * sizeof *changes);
    *count = 0;
    STAILQ_FOREACH (each, &publishing->list, others) {
        memcpy(&changes[*count], each->changes, each->count * sizeof *changes);
        *count += each->count;
    }
    return changes;
}

/* Publishes them as one, which costs the least. When that fails, each alone, so that a failure is
 * its own; but a store that is away or silent is not asked again for each. */
static void publish_as_one(struct odds_store *store, struct odds_publishing *publishing)
{
    struct odds_publication *each;
    struct error error;
    size_t count;
    struct odds_change *changes = all_changes(publishing, &count);
    enum status status = odds_store_publish(store, changes, count, &error);
    bool alone = STAILQ_NEXT(STAILQ_FIRST(&publishing->list), others) == NULL;
    bool try_each =
        !alone && status != STATUS_OK && status != STATUS_UNAVAILABLE && status != STATUS_TIMEOUT;
    STAILQ_FOREACH (each, &publishing->list, others) {
        if (try_each)
            status = odds_store_publish(store, each->changes, each->count, &error);
        each->status = status;
        each->reason = status == STATUS_OK ? NULL : memory_copy_string(error.text);
    }
    memory_free(changes);
}

enum status odds_store_publish_each(struct odds_store *store, struct odds_publishing *publishing)
{
    const struct odds_publication *each;
    CHECK(!STAILQ_EMPTY(&publishing->list));
    STAILQ_FOREACH (each, &publishing->list, others)
        CHECK(each->count > 0 && check_changes(each->changes, each->count, NULL) == STATUS_OK);
    if (store->engine->publish_each != NULL)
        return store->engine->publish_each(store, publishing);
    publish_as_one(store, publishing);
    return STATUS_OK;
}

static int by_event_then_latest(const void *a, const void *b)
{
    const struct odds_interest *left = a;
    const struct odds_interest *right = b;
    int order = strcmp(left->event.digits, right->event.digits);
    if (order != 0)
        return order;
    return left->requested_ms > right->requested_ms ? -1 : left->requested_ms < right->requested_ms;
}

static int latest_first(const void *a, const void *b)
{
    const struct odds_interest *left = a;
    const struct odds_interest *right = b;
    if (left->requested_ms != right->requested_ms)
        return left->requested_ms > right->requested_ms ? -1 : 1;
    return strcmp(left->event.digits, right->event.digits);
}

/* Latest first, each event once; returns how many there are then. */
static size_t sort_interest(struct odds_interest *list, size_t count)
{
    size_t kept = 0;
    if (count > 0)
        qsort(list, count, sizeof *list, by_event_then_latest);
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || !event_id_equals(&list[kept - 1].event, &list[i].event))
            list[kept++] = list[i];
    if (kept > 0)
        qsort(list, kept, sizeof *list, latest_first);
    return kept;
}

int64_t odds_store_published_ms(struct odds_store *store, enum sport sport,
                                const struct event_id *event)
{
    CHECK(sport_is_real(sport));
    return store->engine->published_ms(store, sport, event);
}

enum status odds_store_list_interest(struct odds_store *store, enum sport sport, int64_t since_ms,
                                     struct odds_interest **list, size_t *count,
                                     struct error *error)
{
    CHECK(sport_is_real(sport));
    enum status status = store->engine->list_interest(store, sport, since_ms, list, count, error);
    if (status == STATUS_OK)
        *count = sort_interest(*list, *count);
    return odds_store_counted(store, status);
}

enum status odds_store_list_events(struct odds_store *store, enum sport sport,
                                   struct event_id **list, size_t *count, struct error *error)
{
    CHECK(sport_is_real(sport));
    return odds_store_counted(store, store->engine->list_events(store, sport, list, count, error));
}

enum status odds_store_back_up(struct odds_store *store, const char *path, struct error *error)
{
    if (store->engine->back_up == NULL)
        return error_invalid(error, "the odds store is a server, whose own tools make backups");
    return store->engine->back_up(store, path, error);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void write_feed_age(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct odds_facts *odds = facts;
    int64_t now_ms = clock_wall_ms();
    for (int i = 0; i < SPORT_COUNT; i++) {
        char labels[64];
        int64_t age_ms = now_ms - odds->published_ms[i];
        (void)snprintf(labels, sizeof labels, "{sport=\"%s\"}", sport_key((enum sport)i));
        metric_age(out, metric->name, labels,
                   odds->published_ms[i] == 0 ? -1
                   : age_ms < 0               ? 0
                                              : age_ms,
                   "NaN");
    }
}

static void write_round_trip(const struct metric *metric, const void *facts, struct buffer *out)
{
    uint64_t ns = ((const struct odds_facts *)facts)->round_trip_ns;
    if (ns == 0)
        metric_age(out, metric->name, NULL, -1, "NaN");
    else
        metric_seconds(out, metric->name, NULL, ns);
}

const struct metric odds_metrics[] = {
    {.name = "croupier_store_failures_total",
     .labels = "{store=\"odds\"}",
     .offset = offsetof(struct odds_facts, errors)},
    METRIC_WRITTEN("croupier_feed_age_seconds", write_feed_age),
    METRIC_EACH("croupier_odds_expired_total", struct odds_facts, expired, "sport", &sport_keys),
    METRIC_FACT("croupier_odds_reads_total", struct odds_facts, reads),
    METRIC_FACT("croupier_odds_reopened_total", struct odds_facts, reopened),
    METRIC_FACT("croupier_odds_connected", struct odds_facts, connected),
    METRIC_FACT("croupier_odds_asking", struct odds_facts, asks),
    METRIC_FACT("croupier_odds_invalidations_total", struct odds_facts, invalidations),
    METRIC_WRITTEN("croupier_odds_round_trip_seconds", write_round_trip),
    METRIC_FACT("croupier_interest_written_total", struct odds_facts, interest_written),
    METRIC_FACT("croupier_interest_dropped_total", struct odds_facts, interest_dropped),
    {0},
};
