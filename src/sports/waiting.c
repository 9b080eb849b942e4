/*
 * The waiting polls, and when each is judged again; see waiting.h.
 *
 * A waiting poll is in a list of its group (the resting polls, or the due ones). It is also in a
 * slot of the wheel, by the tick at which its time is over. A group that has work is in the busy
 * queue. Each busy group gets a short turn in order, so that a hundred thousand polls for one event
 * do not hold up those for another. A group ends with its last poll.
 *
 * No change is missed. The store reports a change after it has moved the stamp. So a poll that
 * parks on an answer that is right under the present stamp gets every later change. A poll that
 * parks on any other answer is judged again at once.
 *
 * Judging a request may answer it, and so start the next request of its connection, all in one
 * call. So the loops here take the head of a list each time, and pin the group while they work on
 * it.
 */
#include "sports/waiting.h"

#include "base/clock.h"
#include "base/memory.h"
#include "sports/errors.h"
#include "sports/shared.h"

#define TICK_MS 100U
#define SLOTS 1024U /* of a tick each; more than the longest wait */
_Static_assert(SLOTS *TICK_MS > (HTTP_WAIT_SECONDS_MAX + 1) * 1000, "a wait fits the wheel");
#define NOTE_MS 1000U
#define SLICE_NS 1000000U
#define TURN 16U /* due polls of one group */

struct pending_poll {
    struct http_parked parked; /* first */
    struct waiting *waiting;
    struct wait_group *group;
    TAILQ_ENTRY(pending_poll) in_group;
    LIST_ENTRY(pending_poll) in_slot;
    uint64_t round; /* it rests in that round of its group; in any other it is due */
    uint32_t wanted_s;
};

TAILQ_HEAD(pending_polls, pending_poll);

struct wait_group {
    struct wait_group **place;
    struct odds_subject subject;
    struct pending_polls resting; /* their clients all have the answer of `mark` */
    struct pending_polls due;
    size_t count;
    unsigned pins;
    uint64_t round; /* only grows */
    uint64_t mark;
    uint64_t noted_ms;
    bool stale; /* a leader must look */
    bool led;   /* one is looking */
    bool busy;  /* in the queue */
    TAILQ_ENTRY(wait_group) in_busy;
    TAILQ_ENTRY(wait_group) in_groups; /* by when interest was noted */
};

TAILQ_HEAD(wait_groups, wait_group);

struct waiting {
    struct waiting_options options;
    struct change_reader reader;
    uv_timer_t tick;
    uv_idle_t slice;
    unsigned open_handles;
    struct wait_group *leading; /* while its leader is judged, until that takes the lead */
    struct wait_groups busy;
    struct wait_groups groups;
    uint64_t epoch; /* of the rights, as of the last tick; 0: not known */
    bool in_doubt;  /* the store could not confirm something */
    uint64_t ticks; /* ticks done */
    LIST_HEAD(, pending_poll) slots[SLOTS];
};

static uint64_t now_ms(const struct waiting *waiting)
{
    return clock_loop_ms(waiting->tick.loop);
}

static void on_tick(uv_timer_t *timer);
static void on_slice(uv_idle_t *idle);

/* ---- groups ---------------------------------------------------------------------------------- */

static struct wait_group *group_at(struct waiting *waiting, const struct wait_subject *what)
{
    struct wait_group *group = *what->place;
    if (group != NULL)
        return group;
    group = memory_alloc_zeroed(1, sizeof *group);
    group->place = what->place;
    group->subject = what->subject;
    group->mark = what->mark;
    group->noted_ms = now_ms(waiting);
    group->round = 1;
    TAILQ_INIT(&group->resting);
    TAILQ_INIT(&group->due);
    TAILQ_INSERT_TAIL(&waiting->groups, group, in_groups);
    *what->place = group;
    return group;
}

static void end_when_empty(struct waiting *waiting, struct wait_group *group)
{
    /* led: its leader's outcome is still to come. pins: an outer caller still uses it. */
    if (group->count > 0 || group->led || group->pins > 0)
        return;
    if (group->busy)
        TAILQ_REMOVE(&waiting->busy, group, in_busy);
    TAILQ_REMOVE(&waiting->groups, group, in_groups);
    *group->place = NULL;
    memory_free(group);
}

static void make_busy(struct waiting *waiting, struct wait_group *group)
{
    if (group->busy)
        return;
    group->busy = true;
    TAILQ_INSERT_TAIL(&waiting->busy, group, in_busy);
    if (!uv_is_active((uv_handle_t *)&waiting->slice))
        CHECK(uv_idle_start(&waiting->slice, on_slice) == 0);
}

/* The value may have changed. */
static void make_stale(struct waiting *waiting, struct wait_group *group)
{
    group->stale = true;
    make_busy(waiting, group);
}

static void all_due(struct waiting *waiting, struct wait_group *group)
{
    group->round++; /* this makes all of them due at once */
    TAILQ_CONCAT(&group->due, &group->resting, in_group);
    make_busy(waiting, group);
}

static void each_group(struct waiting *waiting,
                       void (*act)(struct waiting *waiting, struct wait_group *group))
{
    struct wait_group *group;
    TAILQ_FOREACH (group, &waiting->groups, in_groups)
        act(waiting, group);
}

/* ---- waiting polls --------------------------------------------------------------------------- */

/* False: the timer runs already. */
static bool start_ticking(struct waiting *waiting)
{
    if (uv_is_active((uv_handle_t *)&waiting->tick))
        return false;
    changes_join(waiting->options.sports->changes, &waiting->reader);
    waiting->ticks = now_ms(waiting) / TICK_MS;
    waiting->epoch = 0;
    CHECK(uv_timer_start(&waiting->tick, on_tick, TICK_MS, TICK_MS) == 0);
    return true;
}

/* Not as soon as the last poll ends: as a rule its client comes again. */
static void stop_ticking(struct waiting *waiting)
{
    changes_leave(waiting->options.sports->changes, &waiting->reader);
    CHECK(uv_timer_stop(&waiting->tick) == 0);
}

static bool is_due(const struct pending_poll *pending)
{
    return pending->round != pending->group->round;
}

/* Its group may end with it. */
static void remove_pending(struct pending_poll *pending)
{
    struct waiting *waiting = pending->waiting;
    struct wait_group *group = pending->group;
    TAILQ_REMOVE(is_due(pending) ? &group->due : &group->resting, pending, in_group);
    LIST_REMOVE(pending, in_slot);
    group->count--;
    relaxed_subtract(&waiting->options.sports->waiting, 1);
    end_when_empty(waiting, group);
}

static void make_due(struct pending_poll *pending)
{
    struct wait_group *group = pending->group;
    if (is_due(pending))
        return;
    TAILQ_REMOVE(&group->resting, pending, in_group);
    TAILQ_INSERT_TAIL(&group->due, pending, in_group);
    pending->round = group->round - 1;
    make_busy(pending->waiting, group);
}

static void on_gone(struct http_parked *parked)
{
    struct pending_poll *pending = (struct pending_poll *)(void *)parked;
    metrics_add(pending->waiting->options.counters, SPORTS_WAITS_GONE, 1);
    remove_pending(pending);
    memory_free(pending);
}

static void on_ended(struct http_parked *parked)
{
    make_due((struct pending_poll *)(void *)parked);
}

/* Judges it as if it had come now. */
static void look_again(struct pending_poll *pending)
{
    struct waiting *waiting = pending->waiting;
    const struct sports_waits *waits = waiting->options.waits;
    struct http_request *request = http_unpark(&pending->parked);
    char applied[32] = "wait=";
    size_t size = strlen(applied);
    size += decimal_write(applied + size, pending->wanted_s);
    remove_pending(pending); /* may end the group, unless it is led or pinned */
    memory_free(pending);
    metrics_add(waiting->options.counters, SPORTS_WAITS_LOOKS, 1);
    http_request_add_field(request, TEXT("Preference-Applied"), (struct text){applied, size});
    waits->resume(waits->context, request);
}

/* ---- parking --------------------------------------------------------------------------------- */

/* When its time is over. */
static uint64_t deadline_ms(const struct waiting *waiting, const struct http_request *request,
                            uint32_t wanted_s)
{
    uint64_t since_ms = request->parked_ns > 0 ? request->parked_ns / 1000000 : now_ms(waiting);
    return since_ms + wanted_s * UINT64_C(1000);
}

uint32_t waiting_wanted_s(const struct waiting *waiting, const struct http_request *request)
{
    if (request->field_count[HTTP_FIELD_PREFER] == 0 ||
        request->field_count[HTTP_FIELD_IF_MATCH] > 0 || request->method != METHOD_GET ||
        waiting->options.waits == NULL)
        return 0;
    uint32_t wanted_s = http_preferred_wait(request, HTTP_WAIT_SECONDS_MAX);
    return deadline_ms(waiting, request, wanted_s) > now_ms(waiting) ? wanted_s : 0;
}

/* Counts one more poll. False: there are too many. */
static bool take_place(struct waiting *waiting, struct http_request *request)
{
    struct sports *sports = waiting->options.sports;
    const struct sports_waits *waits = waiting->options.waits;
    unsigned most = relaxed_load(&sports->waiting_max);
    unsigned before = relaxed_add(&sports->waiting, 1);
    /* A poll that has waited before gives up its place only for this moment, so it may always park
     * again. */
    if (request->parked_ns > 0 || (before < most && waits->begin(waits->context, request)))
        return true;
    relaxed_subtract(&sports->waiting, 1);
    metrics_add(waiting->options.counters, SPORTS_WAITS_REFUSED, 1);
    request->error = before < most ? &error_waits_of_customer : &error_too_many_waits;
    return false;
}

static uint64_t tick_of(const struct waiting *waiting, const struct wait_subject *what,
                        const struct http_request *request)
{
    const struct sports_waits *waits = waiting->options.waits;
    uint64_t at_ms = deadline_ms(waiting, request, what->wanted_s);
    uint64_t right_ms = waits->until_ms(waits->context, request);
    if (right_ms < at_ms)
        at_ms = right_ms;
    uint64_t tick = (at_ms + TICK_MS - 1) / TICK_MS;
    return what->rights_moved || tick <= waiting->ticks ? waiting->ticks + 1 : tick;
}

uint64_t waiting_epoch(const struct waiting *waiting)
{
    return waiting->epoch;
}

bool waiting_park(struct waiting *waiting, const struct wait_subject *what,
                  struct http_request *request)
{
    uint64_t tick = tick_of(waiting, what, request);
    if (!take_place(waiting, request))
        return false;
    bool again = request->parked_ns > 0;
    struct pending_poll *pending = memory_alloc_zeroed(1, sizeof *pending);
    pending->parked.gone = on_gone;
    pending->parked.ended = on_ended;
    pending->waiting = waiting;
    pending->wanted_s = what->wanted_s;
    if (!http_park(&pending->parked, request)) {
        relaxed_subtract(&waiting->options.sports->waiting, 1);
        memory_free(pending);
        return false;
    }
    if (!again)
        metrics_add(waiting->options.counters, SPORTS_WAITS, 1);
    struct wait_group *group = group_at(waiting, what);
    if (group->mark != what->mark) {
        all_due(waiting, group); /* the answer that they have was replaced */
        group->mark = what->mark;
    }
    pending->group = group;
    pending->round = group->round;
    TAILQ_INSERT_TAIL(&group->resting, pending, in_group);
    group->count++;
    /* Until now this thread did not listen, so its answer may have been replaced unnoticed. */
    bool first = start_ticking(waiting);
    if (tick <= waiting->ticks)
        tick = waiting->ticks + 1;
    LIST_INSERT_HEAD(&waiting->slots[tick % SLOTS], pending, in_slot);
    if (first || !what->sure)
        make_stale(waiting, group);
    return true;
}

/* ---- leaders --------------------------------------------------------------------------------- */

struct wait_group *waiting_take_lead(struct waiting *waiting, const struct http_request *request)
{
    struct wait_group *group = request->parked_ns > 0 ? waiting->leading : NULL;
    if (group != NULL)
        waiting->leading = NULL;
    return group;
}

void waiting_led(struct waiting *waiting, struct wait_group *group, enum wait_outcome outcome)
{
    if (group == NULL)
        return;
    CHECK(group->led);
    group->led = false;
    uint64_t mark = outcome == WAIT_ANSWERED
                        ? waiting->options.mark(waiting->options.cache, &group->subject)
                        : 0;
    if (outcome == WAIT_FAILED) {
        all_due(waiting, group);
    } else if (outcome == WAIT_LATER) {
        waiting->in_doubt = true;
    } else if (mark == 0) {
        make_stale(waiting, group);
    } else if (mark != group->mark) {
        all_due(waiting, group);
        group->mark = mark;
    }
    if (group->stale)
        make_busy(waiting, group); /* another change was reported during the look */
    end_when_empty(waiting, group);
}

/* One poll of the group looks for all. */
static void lead(struct waiting *waiting, struct wait_group *group)
{
    struct pending_poll *leader = TAILQ_FIRST(&group->due);
    if (leader == NULL)
        leader = TAILQ_FIRST(&group->resting);
    group->stale = false; /* before the look: a change that is reported during it sets this again */
    if (leader == NULL)
        return;
    /* Both before the look, which may take the lead and even end it within this call. */
    group->led = true;
    waiting->leading = group;
    look_again(leader);
    if (waiting->leading == NULL)
        return; /* the lead was taken */
    waiting->leading = NULL;
    waiting_led(waiting, group, WAIT_GONE); /* the request was not admitted any more */
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* While a leader looks, the others wait for its outcome. */
static void take_turn(struct waiting *waiting, struct wait_group *group)
{
    group->pins++; /* the last of its polls may go in this turn */
    if (group->stale && !group->led)
        lead(waiting, group);
    struct pending_poll *pending;
    for (unsigned i = 0;
         i < TURN && !group->led && !group->stale && (pending = TAILQ_FIRST(&group->due)) != NULL;
         i++)
        look_again(pending);
    group->pins--;
    if (!group->led && (group->stale || !TAILQ_EMPTY(&group->due)))
        make_busy(waiting, group);
    end_when_empty(waiting, group);
}

static void on_slice(uv_idle_t *idle)
{
    struct waiting *waiting = idle->data;
    uint64_t until_ns = clock_monotonic_ns() + SLICE_NS;
    struct wait_group *group;
    while ((group = TAILQ_FIRST(&waiting->busy)) != NULL) {
        TAILQ_REMOVE(&waiting->busy, group, in_busy);
        group->busy = false; /* before its turn, which may put it back behind the others */
        take_turn(waiting, group);
        if (clock_monotonic_ns() >= until_ns)
            break;
    }
    if (TAILQ_EMPTY(&waiting->busy))
        CHECK(uv_idle_stop(idle) == 0);
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void on_change(struct waiting *waiting, const struct odds_subject *subject)
{
    struct wait_group *group = waiting->options.find(waiting->options.cache, subject);
    if (group != NULL)
        make_stale(waiting, group);
    if (subject->kind != ODDS_CATALOG)
        return;
    /* An event's answer holds its row of the catalog. */
    TAILQ_FOREACH (group, &waiting->groups, in_groups) {
        if (group->subject.kind == ODDS_MARKETS && group->subject.sport == subject->sport)
            make_stale(waiting, group);
    }
}

static void on_changes(struct mail *mail)
{
    struct waiting *waiting =
        CONTAINER_OF((struct change_reader *)(void *)mail, struct waiting, reader);
    struct buffer list;
    struct odds_subject subject;
    if (changes_take(waiting->options.sports->changes, &waiting->reader, &list))
        each_group(waiting, make_stale);
    for (size_t at = 0; at < list.size; at += sizeof subject) {
        memcpy(&subject, list.data + at, sizeof subject);
        on_change(waiting, &subject);
    }
    buffer_free(&list);
}

/* If the store is unavailable, all polls become due and get its error. If it could not confirm
 * anything for a while, all groups look again when it can. */
static void look_at_store(struct waiting *waiting)
{
    uint64_t stamp;
    enum status status = odds_store_stamp(waiting->options.sports->odds, &stamp);
    if (status == STATUS_PENDING) {
        waiting->in_doubt = true;
    } else if (status != STATUS_OK) {
        each_group(waiting, all_due);
    } else if (waiting->in_doubt) {
        waiting->in_doubt = false;
        each_group(waiting, make_stale);
    }
}

static void look_at_rights(struct waiting *waiting)
{
    const struct sports_waits *waits = waiting->options.waits;
    uint64_t epoch = waits->epoch(waits->context);
    if (epoch != waiting->epoch || epoch == 0)
        each_group(waiting, all_due);
    waiting->epoch = epoch;
}

static void note_interest(struct waiting *waiting, uint64_t now)
{
    struct wait_group *group;
    while ((group = TAILQ_FIRST(&waiting->groups)) != NULL && group->noted_ms + NOTE_MS <= now) {
        group->noted_ms = now;
        TAILQ_REMOVE(&waiting->groups, group, in_groups);
        TAILQ_INSERT_TAIL(&waiting->groups, group, in_groups);
        waiting->options.note(waiting->options.cache, &group->subject, now);
    }
}

static void on_tick(uv_timer_t *timer)
{
    struct waiting *waiting = timer->data;
    uint64_t now = now_ms(waiting);
    uint64_t tick = now / TICK_MS;
    if (TAILQ_EMPTY(&waiting->groups)) {
        stop_ticking(waiting);
        return;
    }
    /* After a standstill longer than the wheel one round is enough: then all polls are due. */
    if (tick - waiting->ticks > SLOTS)
        waiting->ticks = tick - SLOTS;
    while (waiting->ticks < tick) {
        struct pending_poll *pending;
        waiting->ticks++;
        /* They stay in the slot until they are judged: this loop answers nothing. */
        LIST_FOREACH (pending, &waiting->slots[waiting->ticks % SLOTS], in_slot)
            make_due(pending);
    }
    look_at_store(waiting);
    look_at_rights(waiting);
    note_interest(waiting, now);
}

void waiting_drain(struct waiting *waiting)
{
    each_group(waiting, all_due);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct waiting *waiting_create(const struct waiting_options *options)
{
    struct waiting *waiting = memory_alloc_zeroed(1, sizeof *waiting);
    uv_loop_t *loop = mailbox_loop(options->mailbox);
    waiting->options = *options;
    TAILQ_INIT(&waiting->busy);
    TAILQ_INIT(&waiting->groups);
    clock_make_timer(loop, &waiting->tick, waiting);
    CHECK(uv_idle_init(loop, &waiting->slice) == 0);
    waiting->slice.data = waiting;
    waiting->open_handles = 2;
    waiting->reader.mail.deliver = on_changes;
    waiting->reader.mailbox = options->mailbox;
    return waiting;
}

static void on_closed(uv_handle_t *handle)
{
    struct waiting *waiting = handle->data;
    if (--waiting->open_handles == 0)
        memory_free(waiting);
}

void waiting_destroy(struct waiting **waiting)
{
    struct waiting *mine = memory_take(waiting);
    CHECK(TAILQ_EMPTY(&mine->groups));
    if (uv_is_active((uv_handle_t *)&mine->tick))
        stop_ticking(mine);
    uv_close((uv_handle_t *)&mine->tick, on_closed);
    uv_close((uv_handle_t *)&mine->slice, on_closed);
}
