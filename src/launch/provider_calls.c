/*
 * The provider thread: lanes of calls, and what becomes of each; see provider_calls.h.
 *
 * Everything but the counters belongs to the thread, whose loop gets calls by mail and gives them
 * back by mail. Calls of a lane wait in the order in which they came, so nearly in the order of
 * their deadlines: a sweep that looks at the first of each lane, often enough, finds those that are
 * late. Late is a call when half of its time has passed: one that begins with less left would
 * likely be given up, and the provider would have been troubled for nothing.
 */
#include "launch/provider_calls.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"

#define SWEEP_MS 20U
#define KEPT_CONNECTIONS 64U
#define NEWS_NS 1000000000U /* at most one line of the log in this time, of one provider */

struct provider_lane {
    struct provider_lane *next;
    char provider_id[PROVIDER_ID_SIZE];
    struct provider_call *first, *last; /* waiting */
    size_t waiting, in_flight;
    bool failing;
    bool full;         /* one was refused since calls began to wait */
    uint64_t noted_ns; /* when `failing` changed last */
};

struct provider_calls {
    struct provider_calls_options options;
    char *ca_file;
    uv_thread_t thread;
    uv_loop_t loop;
    struct mailbox *mailbox;
    struct mail stop;

    /* the thread's own */
    struct outgoing *outgoing;
    uv_timer_t sweep;
    uv_async_t alive; /* keeps the loop going while nothing is under way */
    struct provider_lane *lanes;
    size_t in_flight, waiting;
    bool stopping;

    /* anybody's */
    atomic_uint_least64_t accepted;
    atomic_uint_least64_t outcomes[PROVIDER_OUTCOME_COUNT];
    atomic_uint_least64_t durations[PROVIDER_CALL_BUCKETS];
    atomic_uint_least64_t duration_ns;
    atomic_uint_least64_t in_flight_now, waiting_now;
};

const uint32_t provider_call_bounds_ms[PROVIDER_CALL_BUCKETS - 1] = {10,   50,   100,  250,
                                                                     1000, 2500, 10000};

const char *provider_outcome_name(size_t outcome)
{
    static const char *const names[PROVIDER_OUTCOME_COUNT] = {
        [PROVIDER_LAUNCHED] = "launched",       [PROVIDER_REFUSED] = "refused",
        [PROVIDER_MALFORMED] = "malformed",     [PROVIDER_TIMEOUT] = "timeout",
        [PROVIDER_UNREACHABLE] = "unreachable", [PROVIDER_UNTRUSTED] = "untrusted",
        [PROVIDER_BROKEN] = "broken",           [PROVIDER_OVERLOADED] = "overloaded",
        [PROVIDER_ABANDONED] = "abandoned",     [PROVIDER_CANCELLED] = "cancelled",
    };
    CHECK(outcome < PROVIDER_OUTCOME_COUNT);
    return names[outcome];
}

static void count(atomic_uint_least64_t *at, uint64_t more)
{
    atomic_fetch_add_explicit(at, more, memory_order_relaxed);
}

static void show_depths(struct provider_calls *calls)
{
    atomic_store_explicit(&calls->in_flight_now, calls->in_flight, memory_order_relaxed);
    atomic_store_explicit(&calls->waiting_now, calls->waiting, memory_order_relaxed);
}

/* ---- the end of a call ----------------------------------------------------------------------- */

static bool tells_of_provider(enum provider_outcome outcome)
{
    return outcome != PROVIDER_OVERLOADED && outcome != PROVIDER_ABANDONED &&
           outcome != PROVIDER_CANCELLED;
}

/* Said once when a provider begins to fail and once when it answers again; of one that does both by
 * turns, now and then. */
static void note(struct provider_calls *calls, struct provider_lane *lane,
                 enum provider_outcome outcome, const char *reason)
{
    bool failing = outcome != PROVIDER_LAUNCHED;
    uint64_t now_ns = clock_monotonic_ns();
    if (!tells_of_provider(outcome) || failing == lane->failing ||
        (lane->noted_ns != 0 && now_ns - lane->noted_ns < NEWS_NS))
        return;
    lane->failing = failing;
    lane->noted_ns = now_ns;
    if (failing)
        log_event(calls->options.log, LOG_ERROR, "launch endpoint fails",
                  LOG_STRING("provider", lane->provider_id),
                  LOG_STRING("outcome", provider_outcome_name(outcome)),
                  LOG_STRING("reason", reason));
    else
        log_event(calls->options.log, LOG_INFO, "launch endpoint answers again",
                  LOG_STRING("provider", lane->provider_id));
}

/* Gives the call back. */
static void finish(struct provider_calls *calls, struct provider_call *call,
                   enum provider_outcome outcome, const char *reason)
{
    note(calls, call->lane, outcome, reason);
    count(&calls->outcomes[outcome], 1);
    show_depths(calls);
    atomic_fetch_sub_explicit(&calls->accepted, 1, memory_order_relaxed);
    call->outcome = outcome;
    call->mail.deliver = call->delivered;
    mailbox_post(call->mailbox, &call->mail);
}

static void count_duration(struct provider_calls *calls, const struct provider_call *call)
{
    uint64_t ns = clock_monotonic_ns() - call->submitted_ns;
    size_t bucket = 0;
    while (bucket + 1 < PROVIDER_CALL_BUCKETS &&
           ns > (uint64_t)provider_call_bounds_ms[bucket] * 1000000U)
        bucket++;
    count(&calls->durations[bucket], 1);
    count(&calls->duration_ns, ns);
}

/* `reason` has room for CURL_ERROR_SIZE. */
static enum provider_outcome judge(struct provider_call *call, char *reason)
{
    static const enum provider_outcome outcomes[] = {
        [OUTGOING_UNREACHABLE] = PROVIDER_UNREACHABLE, [OUTGOING_UNTRUSTED] = PROVIDER_UNTRUSTED,
        [OUTGOING_BROKEN] = PROVIDER_BROKEN,           [OUTGOING_TOO_LARGE] = PROVIDER_MALFORMED,
        [OUTGOING_TIMEOUT] = PROVIDER_TIMEOUT,         [OUTGOING_CANCELLED] = PROVIDER_CANCELLED,
    };
    struct outgoing_post *post = &call->post;
    if (post->result == OUTGOING_TOO_LARGE) {
        (void)snprintf(reason, CURL_ERROR_SIZE, "the answer is too long");
        return PROVIDER_MALFORMED;
    }
    if (post->result != OUTGOING_ANSWERED) {
        (void)snprintf(reason, CURL_ERROR_SIZE, "%s", post->reason);
        return outcomes[post->result];
    }
    if (post->status != 200) {
        (void)snprintf(reason, CURL_ERROR_SIZE, "status %ld", post->status);
        return PROVIDER_REFUSED;
    }
    const char *wrong =
        launch_answer_decode(buffer_text(&post->answer), clock_wall_ms(), &call->answer);
    (void)snprintf(reason, CURL_ERROR_SIZE, "%s", wrong == NULL ? "" : wrong);
    return wrong == NULL ? PROVIDER_LAUNCHED : PROVIDER_MALFORMED;
}

static void start_waiting(struct provider_calls *calls);

static void on_done(struct outgoing_post *post)
{
    struct provider_call *call = post->context;
    struct provider_calls *calls = call->calls;
    char reason[CURL_ERROR_SIZE];
    enum provider_outcome outcome = judge(call, reason);
    calls->in_flight--;
    call->lane->in_flight--;
    count_duration(calls, call);
    finish(calls, call, outcome, reason);
    start_waiting(calls);
}

/* ---- who is next ----------------------------------------------------------------------------- */

static struct provider_lane *lane_of(struct provider_calls *calls, const char *provider_id)
{
    struct provider_lane *lane = calls->lanes;
    while (lane != NULL && strcmp(lane->provider_id, provider_id) != 0)
        lane = lane->next;
    if (lane == NULL) { /* kept for good: providers are never deleted */
        lane = memory_alloc_zeroed(1, sizeof *lane);
        (void)snprintf(lane->provider_id, sizeof lane->provider_id, "%s", provider_id);
        lane->next = calls->lanes;
        calls->lanes = lane;
    }
    return lane;
}

static void push(struct provider_calls *calls, struct provider_call *call)
{
    struct provider_lane *lane = call->lane;
    call->next = NULL;
    if (lane->last == NULL)
        lane->first = call;
    else
        lane->last->next = call;
    lane->last = call;
    lane->waiting++;
    calls->waiting++;
}

static struct provider_call *pop(struct provider_calls *calls, struct provider_lane *lane)
{
    struct provider_call *call = lane->first;
    lane->first = call->next;
    if (lane->first == NULL)
        lane->last = NULL;
    lane->waiting--;
    calls->waiting--;
    lane->full = lane->full && lane->waiting > 0;
    return call;
}

/* The lane that has the fewest calls under way, of those where one waits and may begin; or NULL. */
static struct provider_lane *next_lane(const struct provider_calls *calls)
{
    struct provider_lane *best = NULL;
    for (struct provider_lane *lane = calls->lanes; lane != NULL; lane = lane->next)
        if (lane->waiting > 0 && lane->in_flight < PROVIDER_LANE_AT_ONCE &&
            (best == NULL || lane->in_flight < best->in_flight))
            best = lane;
    return best;
}

static void start_call(struct provider_calls *calls, struct provider_call *call, uint64_t now_ns)
{
    (void)snprintf(call->fields[0], sizeof call->fields[0], "X-Croupier-Timestamp: %s",
                   call->timestamp);
    (void)snprintf(call->fields[1], sizeof call->fields[1], "X-Croupier-Signature: %s",
                   call->signature);
    call->post = (struct outgoing_post){
        .url = call->url,
        .body = buffer_text(&call->document),
        .fields = {"Content-Type: application/json", "Accept: application/json", call->fields[0],
                   call->fields[1]},
        .timeout_ms = (uint32_t)((call->deadline_ns - now_ns + 999999U) / 1000000U),
        .answer_max = LAUNCH_ANSWER_MAX,
        .done = on_done,
        .context = call,
    };
    calls->in_flight++;
    call->lane->in_flight++;
    outgoing_start(calls->outgoing, &call->post);
}

static void start_waiting(struct provider_calls *calls)
{
    struct provider_lane *lane;
    uint64_t now_ns = clock_monotonic_ns();
    while (!calls->stopping && calls->in_flight < PROVIDER_CALLS_AT_ONCE &&
           (lane = next_lane(calls)) != NULL) {
        struct provider_call *call = pop(calls, lane);
        if (atomic_load_explicit(&call->abandoned, memory_order_relaxed))
            finish(calls, call, PROVIDER_ABANDONED, "");
        else if (now_ns >= call->begin_by_ns)
            finish(calls, call, PROVIDER_TIMEOUT, "the provider is slow: no call could begin");
        else
            start_call(calls, call, now_ns);
    }
    show_depths(calls);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void on_sweep(uv_timer_t *timer)
{
    struct provider_calls *calls = timer->data;
    uint64_t now_ns = clock_monotonic_ns();
    for (struct provider_lane *lane = calls->lanes; lane != NULL; lane = lane->next)
        while (lane->first != NULL && now_ns >= lane->first->begin_by_ns)
            finish(calls, pop(calls, lane), PROVIDER_TIMEOUT,
                   "the provider is slow: no call could begin");
    if (calls->waiting == 0)
        CHECK(uv_timer_stop(timer) == 0);
}

static void refuse(struct provider_calls *calls, struct provider_call *call)
{
    if (!call->lane->full)
        log_event(calls->options.log, LOG_WARNING, "too many launches wait for a provider",
                  LOG_STRING("provider", call->lane->provider_id),
                  LOG_INTEGER("waiting", call->lane->waiting));
    call->lane->full = true;
    finish(calls, call, PROVIDER_OVERLOADED, "");
}

static void arrive(struct mail *mail)
{
    struct provider_call *call = (struct provider_call *)(void *)mail; /* `mail` comes first */
    struct provider_calls *calls = call->calls;
    call->lane = lane_of(calls, call->provider_id);
    if (call->lane->waiting == PROVIDER_LANE_WAITING) {
        refuse(calls, call);
        return;
    }
    push(calls, call);
    start_waiting(calls);
    if (calls->waiting > 0 && !uv_is_active((uv_handle_t *)&calls->sweep))
        CHECK(uv_timer_start(&calls->sweep, on_sweep, SWEEP_MS, SWEEP_MS) == 0);
}

static void stop_here(struct mail *mail)
{
    struct provider_calls *calls =
        (struct provider_calls *)(void *)((char *)mail - offsetof(struct provider_calls, stop));
    calls->stopping = true;
    for (struct provider_lane *lane = calls->lanes; lane != NULL; lane = lane->next)
        while (lane->first != NULL)
            finish(calls, pop(calls, lane), PROVIDER_CANCELLED, "");
    outgoing_destroy(&calls->outgoing);
    uv_close((uv_handle_t *)&calls->sweep, NULL);
    uv_close((uv_handle_t *)&calls->alive, NULL);
    mailbox_destroy(&calls->mailbox);
}

static void run(void *argument)
{
    struct provider_calls *calls = argument;
    (void)uv_run(&calls->loop, UV_RUN_DEFAULT);
}

/* ---- any thread ------------------------------------------------------------------------------ */

enum status provider_calls_submit(struct provider_calls *calls, struct provider_call *call)
{
    if (atomic_fetch_add_explicit(&calls->accepted, 1, memory_order_relaxed) >=
        PROVIDER_CALLS_MAX) {
        atomic_fetch_sub_explicit(&calls->accepted, 1, memory_order_relaxed);
        count(&calls->outcomes[PROVIDER_OVERLOADED], 1);
        return STATUS_FULL;
    }
    call->calls = calls;
    call->submitted_ns = clock_monotonic_ns();
    call->deadline_ns = call->submitted_ns + (uint64_t)calls->options.timeout_ms * 1000000U;
    call->begin_by_ns = call->submitted_ns + (uint64_t)calls->options.timeout_ms * 500000U;
    call->mail.deliver = arrive;
    mailbox_post(calls->mailbox, &call->mail);
    return STATUS_OK;
}

static uint64_t read_count(atomic_uint_least64_t *at)
{
    return atomic_load_explicit(at, memory_order_relaxed);
}

void provider_calls_facts(struct provider_calls *calls, struct provider_calls_facts *facts)
{
    for (size_t i = 0; i < PROVIDER_OUTCOME_COUNT; i++)
        facts->outcomes[i] = read_count(&calls->outcomes[i]);
    for (size_t i = 0; i < PROVIDER_CALL_BUCKETS; i++)
        facts->durations[i] = read_count(&calls->durations[i]);
    facts->duration_ns = read_count(&calls->duration_ns);
    facts->in_flight = read_count(&calls->in_flight_now);
    facts->waiting = read_count(&calls->waiting_now);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct provider_calls *provider_calls_create(const struct provider_calls_options *options)
{
    struct provider_calls *calls = memory_alloc_zeroed(1, sizeof *calls);
    CHECK(options->timeout_ms > 0);
    CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    calls->options = *options;
    calls->ca_file = options->ca_file[0] == '\0' ? NULL : memory_copy_string(options->ca_file);
    CHECK(uv_loop_init(&calls->loop) == 0);
    calls->mailbox = mailbox_create(&calls->loop);
    const struct outgoing_options outgoing = {
        .loop = &calls->loop, .ca_file = calls->ca_file, .kept_connections = KEPT_CONNECTIONS};
    calls->outgoing = outgoing_create(&outgoing);
    CHECK(uv_timer_init(&calls->loop, &calls->sweep) == 0);
    calls->sweep.data = calls;
    CHECK(uv_async_init(&calls->loop, &calls->alive, NULL) == 0);
    thread_start(&calls->thread, "provider", run, calls);
    return calls;
}

void provider_calls_destroy(struct provider_calls **at)
{
    struct provider_calls *calls = *at;
    *at = NULL;
    if (calls == NULL)
        return;
    calls->stop.deliver = stop_here;
    mailbox_post(calls->mailbox, &calls->stop);
    CHECK(uv_thread_join(&calls->thread) == 0);
    CHECK(uv_loop_close(&calls->loop) == 0);
    while (calls->lanes != NULL) {
        struct provider_lane *lane = calls->lanes;
        calls->lanes = lane->next;
        memory_free(lane);
    }
    memory_free(calls->ca_file);
    memory_free(calls);
    curl_global_cleanup();
}
