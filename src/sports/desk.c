/*
 * One serving thread's desk: what it has ready, and the requests it has set aside.
 *
 * Freshness (docs/architecture.md, "The hot path"). An edition may answer a request when the store held its
 * version at some moment after the request came. The desk knows that in one of two ways:
 *
 *   - the store confirms it: odds_reader_versions, asked after the request came, names that version.
 *     The stamp of that moment is kept with it, and as long as odds_store_stamp gives the same stamp,
 *     nothing has changed and nothing more needs to be asked. That is the usual case, and all it
 *     costs is one look-up in a table and one comparison;
 *   - it was read after the request came (checked_ns): a store that changes faster than answers are
 *     made would otherwise never be answered from.
 *
 * An event's answer holds its catalog row as well. An edition is made of a row and odds that the store held
 * together (job.c), so what was read after the request came may be sent as it is. One that is older needs
 * both confirmed: its odds by their version, and its row by a catalog that is fresh in the same sense; a
 * new catalog with the same row leaves the answer as it is.
 *
 * A store that is asked over a network may be unable to confirm anything for a while; then only the second
 * way is left, and every answer waits for the store.
 *
 * What is missing is asked for with an errand, and the request is set aside. When the errand is back
 * the desk looks again, from the start: jobs leave editions behind, they do not decide. What was
 * fresh for a request once is so for good, so each look gets further; the number of looks is bounded
 * all the same.
 *
 * Everything here runs on the desk's thread. A waiter belongs to the desk; while its errand is out,
 * its request may be answered (deadline) or go away (abandoned), then the mail frees it.
 */
#include "sports/desk.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/aside.h"
#include "sports/shared.h"

#define DESK_EVENTS_MAX 32768U
#define DESK_WAITERS_MAX 8192U
/* How long a request waits. Longer than a read may take, so that it is the store's deadline that is heard of. */
#define WAIT_MS_LEAST 2000U
#define WAIT_MS_BEYOND_READ 1000U
#define LOOKS_MAX 16U
#define CONFLICTS_TO_READ_BOTH 2U
#define NOTE_MS 1000U /* between two notes of interest in one event */

/* What is at hand for one value. */
struct ready {
    bool confirmed; /* `status` was right under `stamp` */
    uint64_t stamp;
    enum status status;      /* OK, NOT_FOUND or MALFORMED */
    struct edition *edition; /* held, may be NULL; when confirmed and OK it is the answer */
    uint64_t noted_ms;       /* when interest was noted last */
};

struct desk_event {
    struct event_node node; /* first */
    struct ready ready;
};

struct waiter {
    struct errand errand; /* first */
    struct sports_desk *desk;
    struct http_aside aside; /* no request: answered or gone; only the mail is awaited */
    enum sport sport;
    bool wants_event; /* else the list */
    struct event_id event;
    uint64_t arrived_ns;
    unsigned looks;
    unsigned conflicts;      /* how often a row and its odds turned out not to belong together */
    struct edition *catalog; /* held: fresh for this request; NULL: not found yet */
    struct edition *chosen;  /* held: fresh and the one to send; NULL: not found yet */
};

struct sports_desk {
    struct sports *sports;
    struct mailbox *mailbox;
    struct metrics_shard *metrics;
    struct odds_reader *reader;
    struct ready catalogs[SPORT_COUNT];
    struct event_table events;       /* of struct desk_event */
    struct http_aside_queue waiters; /* whose errands are out */
};

/* ---- small things --------------------------------------------------------------------------------- */

static uint64_t now_ms_of(const struct http_request *request)
{
    return request->started_ns / 1000000;
}

static void set_edition(struct edition **place, struct edition *edition) /* holds it */
{
    if (*place == edition)
        return;
    edition_release(place);
    *place = edition == NULL ? NULL : edition_hold(edition);
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

static void reply_error(struct sports_desk *desk, struct http_request *request,
                        enum http_error error)
{
    if (error == HTTP_ERROR_CACHE_UNAVAILABLE)
        metrics_add(desk->metrics, METRICS_ODDS_UNAVAILABLE, 1);
    else if (error == HTTP_ERROR_CACHE_TIMEOUT)
        metrics_add(desk->metrics, METRICS_ODDS_TIMEOUT, 1);
    else if (error == HTTP_ERROR_MALFORMED_UPSTREAM_DATA)
        metrics_add(desk->metrics, METRICS_ODDS_MALFORMED, 1);
    http_reply_error(request, error);
}

static void reply_message(struct sports_desk *desk, struct http_request *request,
                          struct http_message *message)
{
    if (message->status == 304)
        metrics_add(desk->metrics, METRICS_NOT_MODIFIED, 1);
    http_reply_message(request, message);
}

/* False: the form that the client wants has not been made yet. */
static bool reply_edition(struct sports_desk *desk, struct http_request *request,
                          const struct edition *edition)
{
    struct answer *answer = edition_answer(edition);
    struct http_message *message = answer == NULL ? NULL : answer_pick(answer, request);
    if (message == NULL)
        return false;
    reply_message(desk, request, message);
    return true;
}

/* What a value that is not OK means to a client. */
static enum http_error error_of(enum status status, enum http_error not_found)
{
    return status == STATUS_NOT_FOUND ? not_found : http_error_of_status(status);
}

/* ---- events at hand ------------------------------------------------------------------------------- */

static void drop_event(struct sports_desk *desk, struct desk_event *event)
{
    event_table_remove(&desk->events, &event->node);
    edition_release(&event->ready.edition);
    memory_free(event);
}

/* Lets go of what was not asked for lately, and of the oldest when there are too many or all that
 * is held ready is too large; a few at a time. */
static void tidy(struct sports_desk *desk, uint64_t now_ms)
{
    for (int i = 0; i < 4 && desk->events.count > 0; i++) {
        struct desk_event *oldest = (struct desk_event *)desk->events.oldest;
        if (oldest->node.used_ms + SPORTS_KEEP_MS >= now_ms &&
            desk->events.count < DESK_EVENTS_MAX && !sports_too_large(desk->sports))
            return;
        drop_event(desk, oldest);
    }
}

static struct desk_event *add_event(struct sports_desk *desk, enum sport sport,
                                    const struct event_id *id, uint64_t now_ms)
{
    tidy(desk, now_ms);
    struct desk_event *event = memory_alloc_zeroed(1, sizeof *event);
    event_table_add(&desk->events, &event->node, sport, id, now_ms);
    return event;
}

/* At most once a second for an event. Also keeps what it is answered from from being dropped. */
static void note_interest(struct sports_desk *desk, struct desk_event *event, uint64_t now_ms)
{
    struct ready *ready = &event->ready;
    if (ready->noted_ms != 0 && now_ms < ready->noted_ms + NOTE_MS)
        return;
    ready->noted_ms = now_ms;
    event_table_touch(&desk->events, &event->node, now_ms);
    if (ready->edition != NULL)
        atomic_store_explicit(&ready->edition->asked_ms, now_ms, memory_order_relaxed);
    odds_store_note_interest(desk->sports->odds, event->node.sport, &event->node.id);
}

/* The same for the list of a sport, without the interest. */
static void note_list(struct ready *ready, uint64_t now_ms)
{
    if (ready->noted_ms != 0 && now_ms < ready->noted_ms + NOTE_MS)
        return;
    ready->noted_ms = now_ms;
    atomic_store_explicit(&ready->edition->asked_ms, now_ms, memory_order_relaxed);
}

/* ---- waiters --------------------------------------------------------------------------------------- */

static void drop_waiter(struct waiter *waiter)
{
    http_aside_remove(&waiter->aside); /* the desk may be over */
    edition_release(&waiter->catalog);
    edition_release(&waiter->chosen);
    memory_free(waiter);
}

static struct waiter *waiter_of(struct http_aside *aside)
{
    return (struct waiter *)(void *)((char *)aside - offsetof(struct waiter, aside));
}

/* Only its mail is awaited now. */
static void on_gone(struct http_aside *aside)
{
    struct waiter *waiter = waiter_of(aside);
    edition_release(&waiter->catalog);
    edition_release(&waiter->chosen);
}

static void on_late(struct http_aside *aside)
{
    struct http_request *request = http_aside_take(aside);
    if (request == NULL)
        return;
    on_gone(aside);
    reply_error(waiter_of(aside)->desk, request, HTTP_ERROR_CACHE_TIMEOUT);
}

static bool is_queued(const struct waiter *waiter)
{
    return waiter->aside.queue != NULL;
}

static void await_errand(struct waiter *waiter)
{
    struct sports_desk *desk = waiter->desk;
    if (is_queued(waiter))
        return;
    metrics_add(desk->metrics, METRICS_READY_MISSES, 1);
    http_aside_append(&desk->waiters, &waiter->aside);
}

static void count_hit(const struct waiter *waiter)
{
    if (!is_queued(waiter))
        metrics_add(waiter->desk->metrics, METRICS_READY_HITS, 1);
}

static void fail(struct waiter *waiter, enum http_error error)
{
    reply_error(waiter->desk, http_aside_take(&waiter->aside), error);
    drop_waiter(waiter);
}

/* The value is as `status` says, and is not to be had. */
static void refuse(struct waiter *waiter, enum status status, enum http_error not_found)
{
    count_hit(waiter);
    fail(waiter, error_of(status, not_found));
}

static void look(struct waiter *waiter);

/* `sent` is what the errand's setting out ended in. */
static void wait_or_fail(struct waiter *waiter, enum status sent)
{
    if (sent == STATUS_PENDING)
        await_errand(waiter);
    else if (sent == STATUS_OK)
        look(waiter); /* only so often: each errand is counted */
    else
        fail(waiter, http_error_of_status(sent));
}

/* `seen` is the newest edition that was found, `checked_ns` when that had been checked; may be NULL. */
static struct errand_for errand_of(struct waiter *waiter, const struct edition *seen,
                                   uint64_t checked_ns)
{
    return (struct errand_for){&waiter->errand, waiter->desk->metrics, seen, checked_ns,
                               waiter->conflicts >= CONFLICTS_TO_READ_BOTH};
}

static uint64_t checked_ns_of(const struct edition *edition)
{
    return edition == NULL ? 0 : atomic_load_explicit(&edition->checked_ns, memory_order_acquire);
}

/* ---- looking --------------------------------------------------------------------------------------- */

/* May this edition, as far as its own value goes, answer a request that came at `arrived_ns`?
 * `known` is the version that the store holds, or NULL when it could not tell. */
static bool is_fresh(const struct edition *edition, const uint64_t *known, uint64_t arrived_ns)
{
    if (edition == NULL)
        return false;
    return (known != NULL && edition->version == *known) ||
           atomic_load_explicit(&edition->checked_ns, memory_order_acquire) >= arrived_ns;
}

/* Sends the chosen edition's answer, or has it completed first. */
static void send_chosen(struct waiter *waiter)
{
    struct sports_desk *desk = waiter->desk;
    struct http_request *request = waiter->aside.request;
    struct answer *answer = edition_answer(waiter->chosen);
    struct http_message *message = answer == NULL ? NULL : answer_pick(answer, request);
    enum status sent = STATUS_FULL;
    if (message == NULL && waiter->looks++ < LOOKS_MAX)
        sent = sports_want_answer(desk->sports, waiter->chosen, http_accepts_gzip(request),
                                  errand_of(waiter, NULL, 0));
    if (message == NULL && sent != STATUS_PENDING && answer != NULL)
        message = answer_plain(answer); /* better than nothing, and always acceptable */
    if (message == NULL) {
        wait_or_fail(waiter, sent);
        return;
    }
    count_hit(waiter);
    reply_message(desk, http_aside_take(&waiter->aside), message);
    drop_waiter(waiter);
}

/* NULL: the store could not tell it. */
static const uint64_t *known_version(const uint64_t *version)
{
    return *version == ODDS_VERSION_UNKNOWN ? NULL : version;
}

/* Finds the waiter a catalog that is fresh for it. False: it was answered, or set aside. */
static bool find_catalog(struct waiter *waiter, const struct odds_versions *versions)
{
    struct sports_desk *desk = waiter->desk;
    struct ready *ready = &desk->catalogs[waiter->sport];
    const uint64_t *known = versions == NULL ? NULL : known_version(&versions->catalog);
    if (known != NULL && *known == 0) {
        set_edition(&ready->edition, NULL);
        set_ready(ready, versions->stamp, STATUS_NOT_FOUND);
        refuse(waiter, STATUS_NOT_FOUND, HTTP_ERROR_CATALOG_UNAVAILABLE);
        return false;
    }
    /* Looking once more, it takes the newest one even if its own would do: an event's edition fits one
     * row, and desks that hold on to different catalogs would go on making each other's unfit. */
    if (waiter->looks > 0 || !is_fresh(ready->edition, known, waiter->arrived_ns)) {
        ready->confirmed = false;
        edition_release(&ready->edition);
        ready->edition = sports_newest_catalog(desk->sports, waiter->sport);
    }
    uint64_t checked_ns = checked_ns_of(ready->edition);
    if (is_fresh(ready->edition, known, waiter->arrived_ns)) {
        set_edition(&waiter->catalog, ready->edition);
        if (known != NULL && ready->edition->version == *known)
            set_ready(ready, versions->stamp, ready->edition->status);
    }
    if (waiter->catalog == NULL) {
        enum status sent = STATUS_FULL;
        if (waiter->looks++ < LOOKS_MAX)
            sent = sports_want_catalog(desk->sports, waiter->sport, known == NULL ? 0 : *known,
                                       errand_of(waiter, ready->edition, checked_ns));
        wait_or_fail(waiter, sent);
        return false;
    }
    if (waiter->catalog->status == STATUS_OK)
        return true;
    refuse(waiter, waiter->catalog->status, HTTP_ERROR_CATALOG_UNAVAILABLE);
    return false;
}

/* It is what the store holds now: these odds with this row. */
static bool is_current(const struct edition *edition, const uint64_t *known,
                       const struct catalog_row *row)
{
    return edition != NULL && known != NULL && edition->version == *known &&
           (edition->status != STATUS_OK || text_equals(edition->row, row->text));
}

/* The store held it, row and odds together, after the request came. */
static bool fits(const struct edition *edition, const uint64_t *known, uint64_t arrived_ns,
                 const struct catalog_row *row)
{
    return is_current(edition, known, row) || is_fresh(edition, NULL, arrived_ns);
}

/* The waiter has its catalog; now for the event in it. */
static void look_for_event(struct waiter *waiter, const struct odds_versions *versions)
{
    struct sports_desk *desk = waiter->desk;
    const struct catalog_row *row = catalog_find(waiter->catalog->catalog, &waiter->event);
    struct desk_event *event =
        (struct desk_event *)event_table_find(&desk->events, waiter->sport, &waiter->event);
    uint64_t now_ms = now_ms_of(waiter->aside.request);
    if (row == NULL) {
        if (event != NULL)
            drop_event(desk, event);
        refuse(waiter, STATUS_NOT_FOUND, HTTP_ERROR_EVENT_NOT_FOUND);
        return;
    }
    if (event == NULL)
        event = add_event(desk, waiter->sport, &waiter->event, now_ms);
    note_interest(desk, event, now_ms);
    struct ready *ready = &event->ready;
    const uint64_t *known = versions == NULL ? NULL : known_version(&versions->odds);
    ready->confirmed = false;
    if (!fits(ready->edition, known, waiter->arrived_ns, row)) {
        edition_release(&ready->edition);
        ready->edition = sports_newest_event(desk->sports, waiter->sport, &waiter->event, now_ms);
    }
    uint64_t checked_ns = checked_ns_of(ready->edition);
    bool confirmed = known != NULL && waiter->catalog->version == versions->catalog;
    if (known != NULL && *known == 0) {
        if (confirmed)
            set_ready(ready, versions->stamp, STATUS_NOT_FOUND);
        refuse(waiter, STATUS_NOT_FOUND, HTTP_ERROR_ODDS_NOT_FOUND);
        return;
    }
    if (!fits(ready->edition, known, waiter->arrived_ns, row)) {
        enum status sent = STATUS_FULL;
        if (waiter->looks++ < LOOKS_MAX)
            sent = sports_want_event(desk->sports, waiter->sport, waiter->catalog, row,
                                     known == NULL ? 0 : *known, now_ms,
                                     errand_of(waiter, ready->edition, checked_ns));
        wait_or_fail(waiter, sent);
        return;
    }
    if (confirmed && is_current(ready->edition, known, row))
        set_ready(ready, versions->stamp, ready->edition->status);
    if (ready->edition->status != STATUS_OK) {
        refuse(waiter, ready->edition->status, HTTP_ERROR_ODDS_NOT_FOUND);
        return;
    }
    set_edition(&waiter->chosen, ready->edition);
    send_chosen(waiter);
}

static void look(struct waiter *waiter)
{
    struct sports_desk *desk = waiter->desk;
    if (waiter->chosen != NULL) {
        send_chosen(waiter);
        return;
    }
    struct odds_versions versions;
    enum status status = odds_reader_versions(
        desk->reader, waiter->sport, waiter->wants_event ? &waiter->event : NULL, &versions);
    if (status != STATUS_OK && status != STATUS_PENDING) {
        fail(waiter, http_error_of_status(status));
        return;
    }
    const struct odds_versions *known = status == STATUS_OK ? &versions : NULL;
    if (!find_catalog(waiter, known))
        return;
    if (waiter->wants_event) {
        look_for_event(waiter, known);
        return;
    }
    set_edition(&waiter->chosen, waiter->catalog);
    send_chosen(waiter);
}

/* The catalog and the odds that were found do not belong together: looks for newer ones, as if the request
 * had come now. */
static void look_afresh(struct waiter *waiter)
{
    edition_release(&waiter->catalog);
    waiter->arrived_ns = clock_monotonic_ns();
    waiter->conflicts++;
    look(waiter);
}

static void on_mail(struct mail *mail)
{
    struct waiter *waiter = (struct waiter *)mail;
    if (waiter->aside.request == NULL)
        drop_waiter(waiter);
    else if (waiter->errand.result == STATUS_CONFLICT)
        look_afresh(waiter);
    else if (waiter->errand.result != STATUS_OK)
        fail(waiter, http_error_of_status(waiter->errand.result));
    else
        look(waiter);
}

/* Begins to look for an answer. `chosen` is one that is fresh but not complete, or NULL. */
static void set_out(struct sports_desk *desk, struct http_request *request, enum sport sport,
                    const struct event_id *event, struct edition *chosen)
{
    if (desk->waiters.count >= DESK_WAITERS_MAX) {
        reply_error(desk, request, HTTP_ERROR_OVERLOADED);
        return;
    }
    struct waiter *waiter = memory_alloc_zeroed(1, sizeof *waiter);
    waiter->errand.mail.deliver = on_mail;
    waiter->errand.mailbox = desk->mailbox;
    waiter->desk = desk;
    waiter->aside.gone = on_gone;
    http_aside_put(&waiter->aside, request);
    waiter->sport = sport;
    waiter->wants_event = event != NULL;
    if (event != NULL)
        waiter->event = *event;
    waiter->arrived_ns = clock_monotonic_ns();
    set_edition(&waiter->chosen, chosen);
    tidy(desk, now_ms_of(request));
    look(waiter);
}

/* ---- answering ------------------------------------------------------------------------------------- */

/* Answers from what is at hand under the store's present stamp. False: it only lacks the form that
 * the client wants. */
static bool answer_ready(struct sports_desk *desk, struct http_request *request,
                         const struct ready *ready, enum http_error not_found)
{
    if (ready->status != STATUS_OK)
        reply_error(desk, request, error_of(ready->status, not_found));
    else if (!reply_edition(desk, request, ready->edition))
        return false;
    metrics_add(desk->metrics, METRICS_READY_HITS, 1);
    return true;
}

/* Is there no such event, as far as the desk has the catalog at hand? */
static bool is_known_missing(const struct ready *catalog, uint64_t stamp,
                             const struct event_id *event)
{
    return is_ready(catalog, stamp) && catalog->status == STATUS_OK &&
           catalog_find(catalog->edition->catalog, event) == NULL;
}

void sports_desk_answer_event(struct sports_desk *desk, struct http_request *request,
                              enum sport sport, const struct event_id *id)
{
    uint64_t stamp;
    enum status status = odds_store_stamp(desk->sports->odds, &stamp);
    if (status == STATUS_PENDING) {
        set_out(desk, request, sport, id, NULL);
        return;
    }
    if (status != STATUS_OK) {
        reply_error(desk, request, http_error_of_status(status));
        return;
    }
    uint64_t now_ms = now_ms_of(request);
    struct edition *chosen = NULL;
    struct desk_event *event = (struct desk_event *)event_table_find(&desk->events, sport, id);
    if (event != NULL && is_ready(&event->ready, stamp)) {
        note_interest(desk, event, now_ms);
        if (answer_ready(desk, request, &event->ready, HTTP_ERROR_ODDS_NOT_FOUND))
            return;
        chosen = event->ready.edition;
    } else if (event == NULL && is_known_missing(&desk->catalogs[sport], stamp, id)) {
        metrics_add(desk->metrics, METRICS_READY_HITS, 1);
        reply_error(desk, request, HTTP_ERROR_EVENT_NOT_FOUND);
        return;
    }
    set_out(desk, request, sport, id, chosen);
}

void sports_desk_answer_catalog(struct sports_desk *desk, struct http_request *request,
                                enum sport sport)
{
    uint64_t stamp;
    enum status status = odds_store_stamp(desk->sports->odds, &stamp);
    if (status == STATUS_PENDING) {
        set_out(desk, request, sport, NULL, NULL);
        return;
    }
    if (status != STATUS_OK) {
        reply_error(desk, request, http_error_of_status(status));
        return;
    }
    struct edition *chosen = NULL;
    struct ready *ready = &desk->catalogs[sport];
    if (is_ready(ready, stamp)) {
        if (ready->status == STATUS_OK)
            note_list(ready, now_ms_of(request));
        if (answer_ready(desk, request, ready, HTTP_ERROR_CATALOG_UNAVAILABLE))
            return;
        chosen = ready->edition;
    }
    set_out(desk, request, sport, NULL, chosen);
}

void sports_desk_answer_sports(struct sports_desk *desk, struct http_request *request,
                               sport_set allowed)
{
    struct answer *answer = desk->sports->lists[allowed & SPORT_SET_ALL];
    reply_message(desk, request, answer_pick(answer, request));
}

/* ---- life ------------------------------------------------------------------------------------------ */

static uint64_t wait_ms(const struct sports *sports)
{
    uint64_t ms = (uint64_t)sports->read_ms + WAIT_MS_BEYOND_READ;
    return ms > WAIT_MS_LEAST ? ms : WAIT_MS_LEAST;
}

struct sports_desk *sports_desk_create(struct sports *sports, struct mailbox *mailbox,
                                       struct metrics_shard *metrics)
{
    struct sports_desk *desk = memory_alloc_zeroed(1, sizeof *desk);
    desk->sports = sports;
    desk->mailbox = mailbox;
    desk->metrics = metrics;
    desk->reader = odds_reader_create(sports->odds);
    event_table_init(&desk->events);
    http_aside_queue_init(&desk->waiters, mailbox_loop(mailbox), wait_ms(sports), on_late);
    return desk;
}

static void free_desk(void *desk)
{
    memory_free(desk);
}

void sports_desk_destroy(struct sports_desk **desk)
{
    struct sports_desk *mine = *desk;
    *desk = NULL;
    if (mine == NULL)
        return;
    struct http_aside *newer;
    for (struct http_aside *aside = mine->waiters.oldest; aside != NULL; aside = newer) {
        struct waiter *waiter = waiter_of(aside);
        newer = aside->newer;
        CHECK(aside->request == NULL);
        if (sports_forget(mine->sports, &waiter->errand))
            drop_waiter(waiter);
    }
    while (mine->events.oldest != NULL)
        drop_event(mine, (struct desk_event *)mine->events.oldest);
    event_table_free(&mine->events);
    for (int i = 0; i < SPORT_COUNT; i++)
        edition_release(&mine->catalogs[i].edition);
    odds_reader_destroy(&mine->reader);
    http_aside_queue_close(&mine->waiters, free_desk, mine);
}
