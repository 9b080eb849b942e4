/*
 * One serving thread's cache: the answers it has ready, and the requests it has deferred.
 *
 * Freshness (docs/decisions/freshness.md). An entry may answer a request if the store held the
 * entry's version at some moment after the request came. The cache knows that in one of two ways:
 *
 *   - The store confirms it: odds_store_versions, called after the request came, names that
 *     version. The cache keeps the stamp of that moment with the entry. As long as odds_store_stamp
 *     gives the same stamp, nothing has changed and the cache asks no more. This is the usual case,
 *     and it costs one look-up in a table and one comparison.
 *   - A job read it after the request came (checked_ns). Without this rule a store that changes
 *     faster than jobs make answers could never be answered from.
 *
 * An event's answer holds its catalog row as well. A job makes an entry from a row and odds that
 * the store held together (job.c), so an entry that was read after the request came may be sent as
 * it is. An older entry needs both parts confirmed: its odds by their version, and its row by a
 * catalog that is fresh in the same sense. A new catalog with the same row leaves the answer as it
 * is.
 *
 * A store behind a network may be unable to confirm anything, for a while or for good
 * (odds_store_asks). Then only the second way is left, and every answer waits for the store. An
 * event needs one read: its job takes the row from a catalog of before, and the read shows whether
 * the store still holds that row.
 *
 * When an entry is missing, the cache asks for a job with a completion and defers the request. When
 * the completion is back, the cache looks again from the start: jobs leave entries behind, they do
 * not decide. An entry that was fresh for a request stays fresh for it, so each look gets further.
 * LOOKS_MAX bounds the number of looks. A job that has run on this thread needs no mail: the cache
 * looks again at once.
 *
 * Everything here runs on the cache's thread. A pending request belongs to the cache. While its
 * completion is out, its request may be answered (deadline) or go away (abandoned); then the mail
 * frees it.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "http/deferral.h"
#include "sports/errors.h"
#include "sports/shared.h"
#include "sports/waiting.h"

#define CACHE_EVENTS_MAX 32768U
#define CACHE_PENDING_MAX 8192U
/* A request waits so long. A read may not take as long, so the client hears of the store's
 * deadline. */
#define WAIT_MS_LEAST 2000U
#define WAIT_MS_BEYOND_READ 1000U
#define LOOKS_MAX 16U
#define CONFLICTS_TO_READ_BOTH 2U
#define QUICK_SIZE 4096U
#define NOTE_MS 1000U /* between two notes of interest in one event */

/* The cache's state of one value. */
struct ready {
    bool confirmed; /* `status` was right under `stamp` */
    uint64_t stamp;
    enum status status;   /* OK, NOT_FOUND or MALFORMED */
    uint64_t catalog;     /* an event's: the version of the catalog when it was confirmed */
    struct entry *entry;  /* held, may be NULL; when confirmed and OK it is the answer */
    uint64_t noted_ms;    /* when interest was noted last */
    int64_t published_ms; /* as `published_text` says */
    char published_text[25];
    struct wait_group *group; /* polls that wait for another answer; NULL: none */
};

struct cached_event {
    struct event_node node; /* first */
    struct ready ready;
};

struct pending_request {
    struct completion completion; /* first */
    struct sports_cache *cache;
    struct http_deferral deferral; /* no request: answered or gone; only the mail is awaited */
    struct odds_subject subject;   /* a catalog: the list is wanted */
    uint64_t arrived_ns;
    struct odds_versions versions; /* the store's, seen since then */
    bool read_since;               /* a job has read the value in the same call */
    unsigned looks;
    bool missed;              /* a job was needed */
    bool assumed;             /* `catalog` is not known to be fresh: reading the event will show */
    uint64_t epoch;           /* of the rights, when the request was judged */
    unsigned conflicts;       /* how often a row and its odds turned out not to belong together */
    struct entry *catalog;    /* held: fresh for this request; NULL: not found yet */
    struct entry *chosen;     /* held: fresh and the one to send; NULL: not found yet */
    struct wait_group *leads; /* the group that it leads; NULL: none */
};

struct sports_cache {
    struct sports *sports;
    struct mailbox *mailbox;
    metrics_cell *counters;
    struct ready catalogs[SPORT_COUNT];
    struct event_table events;          /* of struct cached_event */
    struct cached_event *last;          /* that was found: a wave asks for one event; may be NULL */
    struct http_deferral_queue pending; /* requests whose completions are out */
    struct waiting *waiting;
};

/* ---- small things ---------------------------------------------------------------------------- */

static uint64_t now_ms_of(const struct http_request *request)
{
    return request->started_ns / 1000000;
}

static void set_entry(struct entry **place, struct entry *entry) /* holds it */
{
    if (*place == entry)
        return;
    entry_release(place);
    *place = entry == NULL ? NULL : entry_hold(entry);
}

static void set_ready(struct ready *ready, uint64_t stamp, enum status status)
{
    ready->confirmed = true;
    ready->stamp = stamp;
    ready->status = status;
}

static bool is_ready(const struct ready *ready, uint64_t stamp)
{
    return ready->confirmed && ready->stamp == stamp;
}

static void reply_error(struct sports_cache *cache, struct http_request *request,
                        const struct http_error *error)
{
    if (error == &error_cache_unavailable)
        metrics_add(cache->counters, SPORTS_ODDS_UNAVAILABLE, 1);
    else if (error == &error_cache_timeout)
        metrics_add(cache->counters, SPORTS_ODDS_TIMEOUT, 1);
    else if (error == &error_malformed_upstream_data)
        metrics_add(cache->counters, SPORTS_ODDS_MALFORMED, 1);
    http_reply_error(request, error);
}

/* The facts about an answer that `park` and `add_published` need. */
struct reply_context {
    struct odds_subject subject;
    struct ready *ready;       /* NULL: the cache has none */
    const struct entry *entry; /* the entry of the answer */
    bool confirmed;            /* in this call, and so by the store's present stamp */
    bool rights_moved;         /* perhaps, since the request was judged */
};

static bool park(struct sports_cache *cache, struct http_request *request,
                 const struct answer *answer, const struct reply_context *context)
{
    uint32_t wanted_s = context->ready == NULL ? 0 : waiting_wanted_s(cache->waiting, request);
    if (wanted_s == 0 || !answer_is_named(answer, request))
        return false;
    uint64_t stamp;
    /* A later change comes by mail, and this thread reads its mail after it has parked. */
    bool sure = context->confirmed || odds_store_asks(cache->sports->odds) ||
                (odds_store_stamp(cache->sports->odds, &stamp) == STATUS_OK &&
                 is_ready(context->ready, stamp));
    const struct wait_subject what = {.subject = context->subject,
                                      .place = &context->ready->group,
                                      .mark = answer_mark(answer),
                                      .wanted_s = wanted_s,
                                      .sure = sure,
                                      .rights_moved = context->rights_moved};
    return waiting_park(cache->waiting, &what, request);
}

/* `ready` keeps the text, as making it costs more than the rest of this function. */
static void add_published(struct http_request *request, const struct reply_context *context)
{
    int64_t published_ms = relaxed_load(&context->entry->published_ms);
    struct ready local = {0};
    struct ready *ready = context->ready != NULL ? context->ready : &local;
    if (published_ms <= 0)
        return;
    if (ready->published_ms != published_ms) {
        char text[CLOCK_TEXT_SIZE];
        clock_format_rfc3339(published_ms, text);
        memcpy(ready->published_text, text, sizeof ready->published_text - 1);
        ready->published_ms = published_ms;
    }
    http_request_add_field(request, TEXT("X-Published-At"),
                           (struct text){ready->published_text, sizeof ready->published_text - 1});
}

/* Tells a client that takes differences that it may name this body (RFC 9842 section 2.1). The
 * pattern is relative to the address that was asked for, because each answer carries it. */
static void add_dictionary(struct http_request *request, const struct answer *answer,
                           const struct odds_subject *subject)
{
    if (!answer_differences_wanted(answer) || !http_accepted_codings(request).dcz)
        return;
    char match[48] = "match=\"";
    struct text name =
        subject->kind == ODDS_CATALOG ? TEXT("events") : event_id_text(&subject->event);
    char *at = mempcpy(match + strlen("match=\""), name.at, name.size);
    *at++ = '"';
    http_request_add_field(request, TEXT("Use-As-Dictionary"),
                           (struct text){match, (size_t)(at - match)});
}

/* Sends the message, which belongs to the answer. A poll that would get `not modified` and can wait
 * is parked instead. */
static void reply_or_park(struct sports_cache *cache, struct http_request *request,
                          const struct answer *answer, struct http_message *message,
                          const struct reply_context *context)
{
    if ((message->status == 304 && park(cache, request, answer, context)) ||
        answer_refuse(answer, request, message))
        return;
    add_published(request, context);
    if (message->status == 200)
        add_dictionary(request, answer, &context->subject);
    http_reply_message(request, message);
}

/* NULL: the cache does not have this event, or the value is a catalog. */
static struct cached_event *find_event(struct sports_cache *cache,
                                       const struct odds_subject *subject)
{
    if (subject->kind == ODDS_CATALOG)
        return NULL;
    if (cache->last == NULL || cache->last->node.sport != subject->sport ||
        !event_id_equals(&cache->last->node.id, &subject->event))
        cache->last = (struct cached_event *)event_table_find(&cache->events, subject->sport,
                                                              &subject->event);
    return cache->last;
}

/* The state of a value, of which find_event said `event`. NULL: the cache does not have it. */
static struct ready *ready_of(struct sports_cache *cache, const struct odds_subject *subject,
                              struct cached_event *event)
{
    if (subject->kind == ODDS_CATALOG)
        return &cache->catalogs[subject->sport];
    return event == NULL ? NULL : &event->ready;
}

/* ---- cached events --------------------------------------------------------------------------- */

/* While polls wait for it the event stays, but without its entry. */
static void drop_event(struct sports_cache *cache, struct cached_event *event)
{
    if (event->ready.group != NULL) {
        event->ready.confirmed = false;
        entry_release(&event->ready.entry);
        return;
    }
    if (cache->last == event)
        cache->last = NULL;
    event_table_remove(&cache->events, &event->node);
    entry_release(&event->ready.entry);
    memory_free(event);
}

/* Drops events that no request asked for lately. Drops the oldest ones too when there are too many
 * or all answers held ready are too large. A few at a time. */
static void tidy(struct sports_cache *cache, uint64_t now_ms)
{
    for (int i = 0; i < 4 && cache->events.count > 0; i++) {
        struct cached_event *oldest = (struct cached_event *)event_table_oldest(&cache->events);
        if (oldest->node.used_ms + SPORTS_KEEP_MS >= now_ms &&
            cache->events.count < CACHE_EVENTS_MAX && !sports_too_large(cache->sports))
            return;
        if (oldest->ready.group != NULL)
            event_table_touch(&cache->events, &oldest->node, now_ms);
        else
            drop_event(cache, oldest);
    }
}

static struct cached_event *add_event(struct sports_cache *cache,
                                      const struct odds_subject *subject, uint64_t now_ms)
{
    tidy(cache, now_ms);
    struct cached_event *event = memory_alloc_zeroed(1, sizeof *event);
    event_table_add(&cache->events, &event->node, subject->sport, &subject->event, now_ms);
    return event;
}

/* Counts at most once a second for a value. Keeps its entry from being dropped. `event` NULL: it is
 * a list; else the feed will know that a client asked for the event. */
static void note_use(struct sports_cache *cache, struct ready *ready, struct cached_event *event,
                     uint64_t now_ms)
{
    if (ready->noted_ms != 0 && now_ms < ready->noted_ms + NOTE_MS)
        return;
    ready->noted_ms = now_ms;
    if (ready->entry != NULL)
        relaxed_store(&ready->entry->asked_ms, now_ms);
    if (event == NULL)
        return;
    event_table_touch(&cache->events, &event->node, now_ms);
    odds_store_note_interest(cache->sports->odds, event->node.sport, &event->node.id);
}

/* ---- pending requests ------------------------------------------------------------------------ */

/* Called before the request is answered, or when it has gone. */
static void end_lead(struct pending_request *pending, enum wait_outcome outcome)
{
    struct wait_group *group = pending->leads;
    pending->leads = NULL;
    waiting_led(pending->cache->waiting, group, outcome);
}

static void drop_pending(struct pending_request *pending)
{
    CHECK(pending->leads == NULL);
    http_deferral_remove(&pending->deferral); /* the cache may have been destroyed */
    entry_release(&pending->catalog);
    entry_release(&pending->chosen);
    memory_free(pending);
}

static struct pending_request *pending_of(struct http_deferral *deferral)
{
    return CONTAINER_OF(deferral, struct pending_request, deferral);
}

/* From here on the pending request only waits for its mail. */
static void on_gone(struct http_deferral *deferral)
{
    struct pending_request *pending = pending_of(deferral);
    end_lead(pending, WAIT_GONE);
    entry_release(&pending->catalog);
    entry_release(&pending->chosen);
}

static void on_late(struct http_deferral *deferral)
{
    struct http_request *request = http_deferral_take(deferral);
    if (request == NULL)
        return;
    end_lead(pending_of(deferral), WAIT_FAILED);
    on_gone(deferral);
    reply_error(pending_of(deferral)->cache, request, &error_cache_timeout);
}

static bool is_queued(const struct pending_request *pending)
{
    return pending->deferral.queue != NULL;
}

static void count_hit(const struct pending_request *pending)
{
    if (!pending->missed)
        metrics_add(pending->cache->counters, SPORTS_READY_HITS, 1);
}

static void fail(struct pending_request *pending, const struct http_error *error)
{
    struct sports_cache *cache = pending->cache;
    struct http_request *request = http_deferral_take(&pending->deferral);
    end_lead(pending, WAIT_FAILED);
    drop_pending(pending);
    reply_error(cache, request, error);
}

static void on_result(struct pending_request *pending);

/* `sent` is what sports_want returned. */
static void wait_or_fail(struct pending_request *pending, enum status sent)
{
    if (sent != STATUS_PENDING && sent != STATUS_OK) {
        fail(pending, sports_error_of(sent, NULL));
        return;
    }
    if (!pending->missed)
        metrics_add(pending->cache->counters, SPORTS_READY_MISSES, 1);
    pending->missed = true;
    pending->read_since = sent == STATUS_OK && pending->completion.result == STATUS_OK;
    if (sent == STATUS_OK)
        on_result(pending);
    else if (!is_queued(pending))
        http_deferral_append(&pending->cache->pending, &pending->deferral);
}

/* Asks for a job for the pending request, unless it has looked too often. */
static enum status want(struct pending_request *pending, struct job draft)
{
    if (pending->looks++ >= LOOKS_MAX)
        return STATUS_FULL;
    /* Such a read does not block, and the pool has nothing to do unless it brings a new value. */
    if (draft.kind != JOB_ANSWER && odds_store_asks(pending->cache->sports->odds))
        draft.here = true;
    draft.sport = pending->subject.sport;
    draft.counters = pending->cache->counters;
    return sports_want(pending->cache->sports, draft, &pending->completion,
                       now_ms_of(pending->deferral.request));
}

/* ---- looking --------------------------------------------------------------------------------- */

/* May this entry, as far as its own value goes, answer a request that came at `arrived_ns`?
 * `known` is the version that the store holds, or ODDS_VERSION_UNKNOWN, which no entry has. */
static bool is_fresh(const struct entry *entry, uint64_t known, uint64_t arrived_ns)
{
    return entry != NULL &&
           (entry->version == known ||
            atomic_load_explicit(&entry->checked_ns, memory_order_acquire) >= arrived_ns);
}

/* Holds the message's entry until it is sent. Nothing of the pending request is used after
 * `reply_or_park`: a pipelined request of the same client may be handled inside that call. */
static void send_and_drop(struct pending_request *pending, const struct answer *answer,
                          struct http_message *message)
{
    struct sports_cache *cache = pending->cache;
    struct http_request *request = http_deferral_take(&pending->deferral);
    const struct reply_context context = {
        .subject = pending->subject,
        .ready = ready_of(cache, &pending->subject, find_event(cache, &pending->subject)),
        .entry = pending->chosen,
        .rights_moved = is_queued(pending) &&
                        (pending->epoch == 0 || pending->epoch != waiting_epoch(cache->waiting))};
    struct entry *chosen = pending->chosen;
    pending->chosen = NULL;
    end_lead(pending, WAIT_ANSWERED);
    drop_pending(pending);
    reply_or_park(cache, request, answer, message, &context);
    entry_release(&chosen);
}

/* Sends the chosen entry's answer, or asks for a job that completes it first. */
static void send_chosen(struct pending_request *pending)
{
    struct http_request *request = pending->deferral.request;
    struct answer *answer = entry_answer(pending->chosen);
    struct http_message *message = answer == NULL ? NULL : answer_pick(answer, request);
    enum status sent = STATUS_FULL;
    if (message == NULL)
        sent = want(pending, (struct job){.kind = JOB_ANSWER, .source = pending->chosen});
    if (message == NULL && sent != STATUS_PENDING && answer != NULL)
        message = answer_plain(answer); /* better than nothing, and always acceptable */
    if (message == NULL) {
        wait_or_fail(pending, sent);
        return;
    }
    count_hit(pending);
    send_and_drop(pending, answer, message);
}

/* If the store confirms nothing, may the event's row be taken from this catalog, and the job find
 * out whether it still holds? */
static bool may_assume(const struct pending_request *pending, const struct odds_versions *versions,
                       const struct entry *catalog)
{
    return pending->subject.kind == ODDS_MARKETS && pending->conflicts == 0 &&
           versions->catalog == ODDS_VERSION_UNKNOWN && versions->odds == ODDS_VERSION_UNKNOWN &&
           catalog != NULL && catalog->status == STATUS_OK &&
           catalog_find(catalog->catalog, &pending->subject.event) != NULL;
}

/* The outcome of a look into the cache. HIT: an entry that is fresh for the request. MISS: none,
 * and `job` makes it. REFUSED: the value cannot be answered from, and `error` says why. */
struct found {
    enum { HIT, MISS, REFUSED } outcome;
    struct job job;
    const struct http_error *error;
};

static struct found missing(struct job job)
{
    return (struct found){.outcome = MISS, .job = job};
}

static struct found refused(enum status status, const struct http_error *not_found)
{
    return (struct found){.outcome = REFUSED, .error = sports_error_of(status, not_found)};
}

/* Finds a catalog that is fresh for the pending request, or assumed to be. A HIT is in
 * `pending->catalog`. */
static struct found find_catalog(struct pending_request *pending,
                                 const struct odds_versions *versions)
{
    struct sports_cache *cache = pending->cache;
    struct ready *ready = &cache->catalogs[pending->subject.sport];
    uint64_t known = versions->catalog;
    if (known == 0) {
        set_entry(&ready->entry, NULL);
        set_ready(ready, versions->stamp, STATUS_NOT_FOUND);
        return refused(STATUS_NOT_FOUND, &error_catalog_unavailable);
    }
    /* A second look takes the newest catalog even if the cache's own is still fresh. An event's
     * entry fits one row, so caches that hold different catalogs would keep replacing each other's
     * entries. */
    if (pending->looks > 0 || !is_fresh(ready->entry, known, pending->arrived_ns)) {
        ready->confirmed = false;
        entry_release(&ready->entry);
        ready->entry = sports_newest(cache->sports, pending->subject.sport, NULL, 0);
    }
    if (is_fresh(ready->entry, known, pending->arrived_ns)) {
        set_entry(&pending->catalog, ready->entry);
        pending->assumed = false;
        if (ready->entry->version == known)
            set_ready(ready, versions->stamp, ready->entry->status);
    } else if (may_assume(pending, versions, ready->entry)) {
        set_entry(&pending->catalog, ready->entry);
        pending->assumed = true;
    }
    if (pending->catalog == NULL)
        return missing((struct job){.kind = JOB_CATALOG, .expected = known});
    if (pending->catalog->status != STATUS_OK)
        return refused(pending->catalog->status, &error_catalog_unavailable);
    return (struct found){.outcome = HIT};
}

/* Does the store hold these odds with this row now? */
static bool is_current(const struct entry *entry, uint64_t known, const struct catalog_row *row)
{
    return entry != NULL && entry->version == known &&
           (entry->status != STATUS_OK || text_equals(entry->row, row->text));
}

/* Did the store hold row and odds together after the request came? */
static bool fits(const struct entry *entry, uint64_t known, uint64_t arrived_ns,
                 const struct catalog_row *row)
{
    return is_current(entry, known, row) || is_fresh(entry, ODDS_VERSION_UNKNOWN, arrived_ns);
}

/*
 * Is it better to read the event and make its answer on this thread than on the pool's? Handing a
 * job over and back takes longer than to make a small answer, and the thread would do it for each
 * event that changes. A leader's value was written just now, so reading it does not wait for a
 * disk.
 */
static bool is_quick(const struct pending_request *pending, const struct entry *before)
{
    struct answer *answer = before == NULL ? NULL : entry_answer(before);
    return pending->leads != NULL && pending->conflicts == 0 && answer != NULL &&
           answer_body(answer).size <= QUICK_SIZE && !answer_gzip_wanted(answer) &&
           !answer_differences_wanted(answer);
}

/* Finds the event's entry by the pending request's catalog. A HIT is in `pending->chosen`. */
static struct found choose_event(struct pending_request *pending,
                                 const struct odds_versions *versions)
{
    struct sports_cache *cache = pending->cache;
    const struct odds_subject *subject = &pending->subject;
    const struct catalog_row *row = catalog_find(pending->catalog->catalog, &subject->event);
    struct cached_event *event = find_event(cache, subject);
    uint64_t now_ms = now_ms_of(pending->deferral.request);
    if (row == NULL) {
        if (event != NULL)
            drop_event(cache, event);
        return refused(STATUS_NOT_FOUND, &error_event_not_found);
    }
    if (event == NULL)
        event = add_event(cache, subject, now_ms);
    struct ready *ready = &event->ready;
    note_use(cache, ready, event, now_ms);
    uint64_t known = pending->assumed ? ODDS_VERSION_UNKNOWN : versions->odds;
    ready->confirmed = false;
    if (!fits(ready->entry, known, pending->arrived_ns, row)) {
        entry_release(&ready->entry);
        ready->entry = sports_newest(cache->sports, subject->sport, &subject->event, now_ms);
    }
    bool confirmed =
        known != ODDS_VERSION_UNKNOWN && pending->catalog->version == versions->catalog;
    if (known == 0) {
        if (confirmed)
            set_ready(ready, versions->stamp, STATUS_NOT_FOUND);
        return refused(STATUS_NOT_FOUND, &error_odds_not_found);
    }
    if (!fits(ready->entry, known, pending->arrived_ns, row))
        return missing((struct job){.kind = JOB_EVENT,
                                    .source = pending->catalog,
                                    .row = row,
                                    .here = is_quick(pending, ready->entry),
                                    .both = pending->conflicts >= CONFLICTS_TO_READ_BOTH,
                                    .expected = known});
    if (confirmed && is_current(ready->entry, known, row)) {
        set_ready(ready, versions->stamp, ready->entry->status);
        ready->catalog = versions->catalog;
    }
    if (ready->entry->status != STATUS_OK)
        return refused(ready->entry->status, &error_odds_not_found);
    set_entry(&pending->chosen, ready->entry);
    return (struct found){.outcome = HIT};
}

static struct found choose_list(struct pending_request *pending)
{
    struct sports_cache *cache = pending->cache;
    set_entry(&pending->chosen, pending->catalog);
    note_use(cache, &cache->catalogs[pending->subject.sport], NULL,
             now_ms_of(pending->deferral.request));
    return (struct found){.outcome = HIT};
}

static void look(struct pending_request *pending)
{
    struct sports_cache *cache = pending->cache;
    if (pending->chosen != NULL) {
        send_chosen(pending);
        return;
    }
    const struct odds_subject *subject = &pending->subject;
    bool of_event = subject->kind == ODDS_MARKETS;
    struct odds_versions *versions = &pending->versions;
    /* The versions of a moment ago will do after a job on this thread: they confirm no
     * entry that the store has replaced meanwhile. */
    enum status status = pending->read_since
                             ? STATUS_OK
                             : odds_store_versions(cache->sports->odds, subject->sport,
                                                   of_event ? &subject->event : NULL, versions);
    pending->read_since = false;
    if (status != STATUS_OK && status != STATUS_PENDING) {
        fail(pending, sports_error_of(status, NULL));
        return;
    }
    if (status == STATUS_PENDING)
        versions->catalog = versions->odds = ODDS_VERSION_UNKNOWN;
    struct found found = find_catalog(pending, versions);
    if (found.outcome == HIT)
        found = of_event ? choose_event(pending, versions) : choose_list(pending);
    if (found.outcome == HIT) {
        send_chosen(pending);
    } else if (found.outcome == MISS) {
        wait_or_fail(pending, want(pending, found.job));
    } else {
        count_hit(pending);
        fail(pending, found.error);
    }
}

/* The completion is back. */
static void on_result(struct pending_request *pending)
{
    enum status result = pending->completion.result;
    if (result == STATUS_CONFLICT) {
        /* The catalog and the odds that were found do not belong together: looks for newer ones, as
         * if the request had come now. */
        entry_release(&pending->catalog);
        pending->assumed = false;
        pending->arrived_ns = clock_monotonic_ns();
        pending->conflicts++;
    }
    if (pending->deferral.request == NULL)
        drop_pending(pending);
    else if (result != STATUS_OK && result != STATUS_CONFLICT)
        fail(pending, sports_error_of(result, NULL));
    else
        look(pending);
}

static void on_mail(struct mail *mail)
{
    on_result((struct pending_request *)mail);
}

/* Begins to look for an answer. */
static void start_lookup(struct sports_cache *cache, struct http_request *request,
                         const struct odds_subject *subject, struct wait_group *leads)
{
    if (cache->pending.count >= CACHE_PENDING_MAX) {
        waiting_led(cache->waiting, leads, WAIT_LATER);
        reply_error(cache, request, &error_reads_full);
        return;
    }
    struct pending_request *pending = memory_alloc_zeroed(1, sizeof *pending);
    pending->completion.mail.deliver = on_mail;
    pending->completion.mailbox = cache->mailbox;
    pending->cache = cache;
    pending->deferral.gone = on_gone;
    http_defer(&pending->deferral, request);
    pending->subject = *subject;
    pending->leads = leads;
    pending->epoch = waiting_epoch(cache->waiting);
    pending->arrived_ns = clock_monotonic_ns();
    tidy(cache, now_ms_of(request));
    look(pending);
}

/* ---- answering ------------------------------------------------------------------------------- */

/* Answers from a value that is right under the store's present stamp. False: it only lacks the form
 * that the client wants. */
static bool answer_ready(struct sports_cache *cache, struct http_request *request,
                         const struct reply_context *context, struct wait_group *leads)
{
    const struct ready *ready = context->ready;
    struct answer *answer = ready->status == STATUS_OK ? entry_answer(ready->entry) : NULL;
    struct http_message *message = answer == NULL ? NULL : answer_pick(answer, request);
    if (ready->status == STATUS_OK && message == NULL)
        return false;
    metrics_add(cache->counters, SPORTS_READY_HITS, 1);
    waiting_led(cache->waiting, leads, ready->status == STATUS_OK ? WAIT_ANSWERED : WAIT_FAILED);
    if (message != NULL)
        reply_or_park(cache, request, answer, message, context);
    else
        reply_error(cache, request,
                    sports_error_of(ready->status, context->subject.kind == ODDS_CATALOG
                                                       ? &error_catalog_unavailable
                                                       : &error_odds_not_found));
    return true;
}

/* A commit of other values moves the stamp too. If the store holds the catalog and the odds that
 * the event was confirmed with, it is right under the new stamp as well. */
static bool confirm_again(struct sports_cache *cache, struct ready *ready,
                          const struct odds_subject *subject)
{
    struct odds_versions versions;
    if (subject->kind != ODDS_MARKETS || !ready->confirmed || ready->status != STATUS_OK ||
        odds_store_versions(cache->sports->odds, subject->sport, &subject->event, &versions) !=
            STATUS_OK ||
        versions.odds != ready->entry->version || versions.catalog != ready->catalog)
        return false;
    ready->stamp = versions.stamp;
    return true;
}

static void answer_from_cache(struct sports_cache *cache, struct http_request *request,
                              const struct odds_subject *subject)
{
    uint64_t stamp = 0;
    enum status status = odds_store_stamp(cache->sports->odds, &stamp);
    struct wait_group *leads = waiting_take_lead(cache->waiting, request);
    if (status != STATUS_OK && status != STATUS_PENDING) {
        waiting_led(cache->waiting, leads, WAIT_FAILED);
        reply_error(cache, request, sports_error_of(status, NULL));
        return;
    }
    struct cached_event *event = find_event(cache, subject);
    struct ready *ready = ready_of(cache, subject, event);
    /* A leader's value has changed as a rule, so it looks from the start. */
    if (status == STATUS_OK && ready != NULL &&
        (is_ready(ready, stamp) || (leads == NULL && confirm_again(cache, ready, subject)))) {
        const struct reply_context context = {
            .subject = *subject, .ready = ready, .entry = ready->entry, .confirmed = true};
        note_use(cache, ready, event, now_ms_of(request));
        if (answer_ready(cache, request, &context, leads))
            return;
    }
    start_lookup(cache, request, subject, leads);
}

static void answer_sports(const struct sports_cache *cache, struct http_request *request,
                          sport_set allowed)
{
    struct answer *answer = cache->sports->lists[allowed & SPORT_SET_ALL];
    answer_reply(answer, request, answer_pick(answer, request));
}

void sports_route(struct sports_cache *cache, struct http_request *request, sport_set allowed,
                  const struct text values[HTTP_PATH_VALUES])
{
    bool wants_event = values[1].size > 0;
    struct odds_subject subject = {.kind = wants_event ? ODDS_MARKETS : ODDS_CATALOG};
    if (values[0].size == 0)
        answer_sports(cache, request, allowed);
    else if (sport_from_key(values[0], &subject.sport) != STATUS_OK)
        http_reply_error(request, &error_invalid_sport);
    else if (wants_event && event_id_parse(values[1], &subject.event) != STATUS_OK)
        http_reply_error(request, &error_invalid_event_id);
    else if ((allowed & SPORT_BIT(subject.sport)) == 0)
        http_reply_error(request, &error_sport_not_allowed);
    else
        answer_from_cache(cache, request, &subject);
}

/* ---- for waiting.c --------------------------------------------------------------------------- */

static struct wait_group *find_group(void *context, const struct odds_subject *subject)
{
    const struct ready *ready = ready_of(context, subject, find_event(context, subject));
    return ready == NULL ? NULL : ready->group;
}

static void note_group(void *context, const struct odds_subject *subject, uint64_t now_ms)
{
    struct cached_event *event = find_event(context, subject);
    note_use(context, ready_of(context, subject, event), event, now_ms);
}

static uint64_t mark_of_group(void *context, const struct odds_subject *subject)
{
    const struct ready *ready = ready_of(context, subject, find_event(context, subject));
    const struct answer *answer =
        ready == NULL || ready->entry == NULL ? NULL : entry_answer(ready->entry);
    return answer == NULL ? 0 : answer_mark(answer);
}

/* ---- life ------------------------------------------------------------------------------------ */

void sports_cache_drain(struct sports_cache *cache)
{
    waiting_drain(cache->waiting);
}

struct sports_cache *sports_cache_create(struct sports *sports, struct mailbox *mailbox,
                                         metrics_cell *counters, const struct sports_waits *waits)
{
    struct sports_cache *cache = memory_alloc_zeroed(1, sizeof *cache);
    cache->sports = sports;
    cache->mailbox = mailbox;
    cache->counters = counters;
    const struct waiting_options waiting = {.sports = sports,
                                            .mailbox = mailbox,
                                            .counters = counters,
                                            .waits = waits,
                                            .cache = cache,
                                            .find = find_group,
                                            .note = note_group,
                                            .mark = mark_of_group};
    cache->waiting = waiting_create(&waiting);
    event_table_init(&cache->events);
    uint64_t wait_ms = (uint64_t)sports->read_ms + WAIT_MS_BEYOND_READ;
    http_deferral_queue_init(&cache->pending, mailbox_loop(mailbox),
                             wait_ms > WAIT_MS_LEAST ? wait_ms : WAIT_MS_LEAST, on_late);
    return cache;
}

void sports_cache_destroy(struct sports_cache **cache)
{
    struct sports_cache *mine = memory_take(cache);
    if (mine == NULL)
        return;
    struct http_deferral *newer;
    for (struct http_deferral *deferral = TAILQ_FIRST(&mine->pending.deferrals); deferral != NULL;
         deferral = newer) {
        struct pending_request *pending = pending_of(deferral);
        newer = TAILQ_NEXT(deferral, link);
        CHECK(deferral->request == NULL);
        if (sports_forget(mine->sports, &pending->completion))
            drop_pending(pending);
    }
    waiting_destroy(&mine->waiting);
    while (mine->events.count > 0)
        drop_event(mine, (struct cached_event *)event_table_oldest(&mine->events));
    event_table_free(&mine->events);
    for (int i = 0; i < SPORT_COUNT; i++)
        entry_release(&mine->catalogs[i].entry);
    http_deferral_queue_close(&mine->pending, memory_free, mine);
}
