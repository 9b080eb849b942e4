/*
 * The provider thread: a queue of calls for each provider; see provider_calls.h.
 *
 * The thread takes the calls that have arrived and gives them back by mail; between, it waits in
 * libcurl. Calls of a lane wait in the order in which they came, so nearly in the order of their
 * deadlines: looking at the first of each lane, often enough, finds those that are late. A call is
 * late when half of its time has passed: one that begins with less left would likely be given up,
 * and the provider would have worked for nothing.
 */
#include "launch/provider_calls.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/threads.h"
#include "metrics/metrics.h"

#define TURN_MS 1000 /* no call waits: a new call wakes the thread */
#define SWEEP_MS 20  /* between two looks for late calls */
#define KEPT_CONNECTIONS 64U
#define REASON_SIZE 96      /* bytes of a reason that are compared */
#define NEWS_NS 1000000000U /* at most one line of the log in this time, of one provider */

STAILQ_HEAD(call_list, provider_call);

struct provider_lane {
    SLIST_ENTRY(provider_lane) link;
    char provider_id[PROVIDER_ID_SIZE];
    struct call_list calls; /* waiting */
    size_t waiting, in_flight;
    bool full; /* one was refused since calls began to wait */
    /* For the log: */
    enum provider_outcome noted;    /* PROVIDER_LAUNCHED: it answers */
    char noted_reason[REASON_SIZE]; /* of what it answered; "" of what kept it from that */
    uint64_t noted_ns;              /* when it said so; 0: never */
    uint64_t failures;              /* since it answered last */
};

struct provider_calls {
    uint32_t timeout_ms;
    struct log *log;
    struct background thread; /* it waits in libcurl; its lock guards the next three */
    struct call_list arrived;
    size_t accepted;                   /* submitted and not yet delivered */
    struct provider_calls_facts facts; /* without the depths, which are the next two */
    atomic_size_t in_flight, waiting;  /* the thread changes them, others read */

    /* the thread's own */
    struct outgoing *outgoing;
    SLIST_HEAD(, provider_lane) lanes; /* kept for good: providers are never deleted */
};

const uint32_t provider_call_bounds_ms[PROVIDER_CALL_BUCKETS - 1] = {10,   50,   100,  250,
                                                                     1000, 2500, 10000};

static const char *const outcome_names[PROVIDER_OUTCOME_COUNT] = {
    [PROVIDER_LAUNCHED] = "launched",       [PROVIDER_REFUSED] = "refused",
    [PROVIDER_MALFORMED] = "malformed",     [PROVIDER_TIMEOUT] = "timeout",
    [PROVIDER_UNREACHABLE] = "unreachable", [PROVIDER_UNTRUSTED] = "untrusted",
    [PROVIDER_BROKEN] = "broken",           [PROVIDER_OVERLOADED] = "overloaded",
    [PROVIDER_ABANDONED] = "abandoned",     [PROVIDER_CANCELLED] = "cancelled",
};
const struct enum_names provider_outcomes = ENUM_NAMES(outcome_names);

/* ---- the end of a call ----------------------------------------------------------------------- */

static bool tells_of_provider(enum provider_outcome outcome)
{
    return outcome != PROVIDER_OVERLOADED && outcome != PROVIDER_ABANDONED &&
           outcome != PROVIDER_CANCELLED;
}

/* Different answers of a provider are logged apart. Failures of a connection are not: libcurl's
 * text differs each time. */
static const char *kept_reason(enum provider_outcome outcome, const char *reason)
{
    return outcome == PROVIDER_REFUSED || outcome == PROVIDER_MALFORMED ? reason : "";
}

/* Said when a provider begins to fail, when it fails for another reason, and when it answers again;
 * of one that does all that by turns, now and then. */
static void note(struct provider_calls *calls, struct provider_lane *lane,
                 enum provider_outcome outcome, const char *reason)
{
    const char *kept = kept_reason(outcome, reason);
    uint64_t now_ns = clock_monotonic_ns();
    if (!tells_of_provider(outcome))
        return;
    lane->failures += outcome != PROVIDER_LAUNCHED;
    if ((outcome == lane->noted &&
         strncmp(kept, lane->noted_reason, sizeof lane->noted_reason - 1) == 0) ||
        (lane->noted_ns != 0 && now_ns - lane->noted_ns < NEWS_NS))
        return;
    lane->noted = outcome;
    lane->noted_ns = now_ns;
    (void)snprintf(lane->noted_reason, sizeof lane->noted_reason, "%s", kept);
    if (outcome != PROVIDER_LAUNCHED) {
        log_event(calls->log, LOG_ERROR, "launch endpoint fails",
                  LOG_STRING("provider", lane->provider_id),
                  LOG_STRING("outcome", enum_name(&provider_outcomes, outcome)),
                  LOG_STRING("reason", reason), LOG_INTEGER("failures", lane->failures));
        return;
    }
    log_event(calls->log, LOG_INFO, "launch endpoint answers again",
              LOG_STRING("provider", lane->provider_id), LOG_INTEGER("failures", lane->failures));
    lane->failures = 0;
}

/* Gives the call back. */
static void finish(struct provider_calls *calls, struct provider_call *call,
                   enum provider_outcome outcome, const char *reason)
{
    note(calls, call->lane, outcome, reason);
    uv_mutex_lock(&calls->thread.lock);
    calls->accepted--;
    calls->facts.outcomes[outcome]++;
    uv_mutex_unlock(&calls->thread.lock);
    call->outcome = outcome;
    call->mail.deliver = call->delivered;
    mailbox_post(call->mailbox, &call->mail);
}

static void count_duration(struct provider_calls *calls, const struct provider_call *call)
{
    uint64_t ns = clock_monotonic_ns() - call->submitted_ns;
    size_t bucket = metric_bucket(provider_call_bounds_ms, PROVIDER_CALL_BUCKETS,
                                  /* rounded up */ (ns + 999999) / 1000000);
    uv_mutex_lock(&calls->thread.lock);
    calls->facts.durations[bucket]++;
    calls->facts.duration_ns += ns;
    uv_mutex_unlock(&calls->thread.lock);
}

/* The outcome of a post that was not answered. */
static enum provider_outcome failure_of(const struct outgoing_post *post)
{
    if (post->too_large)
        return PROVIDER_MALFORMED;
    switch (post->code) {
    case OUTGOING_CANCELLED:
        return PROVIDER_CANCELLED;
    case CURLE_OPERATION_TIMEDOUT:
        return PROVIDER_TIMEOUT;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
        return PROVIDER_UNREACHABLE;
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_INVALIDCERTSTATUS:
        return PROVIDER_UNTRUSTED;
    default:
        return PROVIDER_BROKEN;
    }
}

enum provider_outcome provider_outcome_of(struct outgoing_post *post, struct launch_answer *answer)
{
    if (post->code != CURLE_OK)
        return failure_of(post);
    if (post->status != 200) {
        (void)snprintf(post->reason, sizeof post->reason, "status %ld", post->status);
        return PROVIDER_REFUSED;
    }
    const char *wrong = launch_answer_decode(buffer_text(&post->answer), clock_wall_ms(), answer);
    if (wrong == NULL)
        return PROVIDER_LAUNCHED;
    (void)snprintf(post->reason, sizeof post->reason, "%s", wrong);
    return PROVIDER_MALFORMED;
}

static void on_done(struct outgoing_post *post)
{
    struct provider_call *call = post->context;
    struct provider_calls *calls = call->calls;
    enum provider_outcome outcome = provider_outcome_of(post, &call->answer);
    calls->in_flight--;
    call->lane->in_flight--;
    count_duration(calls, call);
    finish(calls, call, outcome, post->reason);
}

/* ---- who is next ----------------------------------------------------------------------------- */

static struct provider_lane *lane_of(struct provider_calls *calls, const char *provider_id)
{
    struct provider_lane *lane;
    SLIST_FOREACH (lane, &calls->lanes, link)
        if (strcmp(lane->provider_id, provider_id) == 0)
            return lane;
    lane = memory_alloc_zeroed(1, sizeof *lane);
    (void)snprintf(lane->provider_id, sizeof lane->provider_id, "%s", provider_id);
    STAILQ_INIT(&lane->calls);
    SLIST_INSERT_HEAD(&calls->lanes, lane, link);
    return lane;
}

static struct provider_call *pop(struct provider_calls *calls, struct provider_lane *lane)
{
    struct provider_call *call = STAILQ_FIRST(&lane->calls);
    STAILQ_REMOVE_HEAD(&lane->calls, link);
    lane->waiting--;
    calls->waiting--;
    lane->full = lane->full && lane->waiting > 0;
    return call;
}

/* The lane that has the fewest calls under way, of those where one waits and may begin; or NULL. */
static struct provider_lane *next_lane(const struct provider_calls *calls)
{
    struct provider_lane *best = NULL;
    struct provider_lane *lane;
    SLIST_FOREACH (lane, &calls->lanes, link)
        if (lane->waiting > 0 && lane->in_flight < PROVIDER_LANE_AT_ONCE &&
            (best == NULL || lane->in_flight < best->in_flight))
            best = lane;
    return best;
}

struct outgoing_post provider_post(const char *url, struct text document,
                                   const struct launch_fields *fields)
{
    return (struct outgoing_post){
        .url = url,
        .body = document,
        .fields = {"Content-Type: application/json", "Accept: application/json", fields->lines[0],
                   fields->lines[1], fields->lines[2], fields->lines[3]},
        .answer_max = LAUNCH_ANSWER_MAX,
    };
}

static void start_call(struct provider_calls *calls, struct provider_call *call, uint64_t now_ns)
{
    call->post = provider_post(call->url, buffer_text(&call->document), &call->fields);
    call->post.timeout_ms = (uint32_t)((call->deadline_ns - now_ns + 999999U) / 1000000U);
    call->post.done = on_done;
    call->post.context = call;
    calls->in_flight++;
    call->lane->in_flight++;
    outgoing_start(calls->outgoing, &call->post);
}

static void fail_expired_calls(struct provider_calls *calls, uint64_t now_ns)
{
    struct provider_lane *lane;
    SLIST_FOREACH (lane, &calls->lanes, link)
        while (lane->waiting > 0 && now_ns >= STAILQ_FIRST(&lane->calls)->begin_by_ns)
            finish(calls, pop(calls, lane), PROVIDER_TIMEOUT,
                   "the provider is slow: no call could begin");
}

static void start_waiting(struct provider_calls *calls)
{
    struct provider_lane *lane;
    uint64_t now_ns = clock_monotonic_ns();
    fail_expired_calls(calls, now_ns); /* the others have time */
    while (calls->in_flight < PROVIDER_CALLS_AT_ONCE && (lane = next_lane(calls)) != NULL) {
        struct provider_call *call = pop(calls, lane);
        if (relaxed_load(&call->abandoned))
            finish(calls, call, PROVIDER_ABANDONED, "");
        else
            start_call(calls, call, now_ns);
    }
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void refuse(struct provider_calls *calls, struct provider_call *call)
{
    if (!call->lane->full)
        log_event(calls->log, LOG_WARNING, "too many launches wait for a provider",
                  LOG_STRING("provider", call->lane->provider_id),
                  LOG_INTEGER("waiting", call->lane->waiting));
    call->lane->full = true;
    finish(calls, call, PROVIDER_OVERLOADED, "");
}

static void queue_call(struct provider_calls *calls, struct provider_call *call)
{
    struct provider_lane *lane = lane_of(calls, call->provider_id);
    call->lane = lane;
    if (lane->waiting == PROVIDER_LANE_WAITING) {
        refuse(calls, call);
        return;
    }
    STAILQ_INSERT_TAIL(&lane->calls, call, link);
    lane->waiting++;
    calls->waiting++;
    start_waiting(calls);
}

/* False: the end. */
static bool queue_arrived_calls(struct provider_calls *calls)
{
    struct call_list arrived = STAILQ_HEAD_INITIALIZER(arrived);
    uv_mutex_lock(&calls->thread.lock);
    STAILQ_CONCAT(&arrived, &calls->arrived);
    bool ending = calls->thread.stopping;
    uv_mutex_unlock(&calls->thread.lock);
    while (!STAILQ_EMPTY(&arrived)) {
        struct provider_call *call = STAILQ_FIRST(&arrived);
        STAILQ_REMOVE_HEAD(&arrived, link);
        queue_call(calls, call);
    }
    return !ending;
}

static void run(void *argument)
{
    struct provider_calls *calls = argument;
    while (queue_arrived_calls(calls)) {
        start_waiting(calls);
        outgoing_turn(calls->outgoing, calls->waiting > 0 ? SWEEP_MS : TURN_MS);
    }
    struct provider_lane *lane;
    SLIST_FOREACH (lane, &calls->lanes, link)
        while (lane->waiting > 0)
            finish(calls, pop(calls, lane), PROVIDER_CANCELLED, "");
    outgoing_destroy(&calls->outgoing);
}

/* ---- any thread ------------------------------------------------------------------------------ */

enum status provider_calls_submit(struct provider_calls *calls, struct provider_call *call)
{
    call->calls = calls;
    call->submitted_ns = clock_monotonic_ns();
    call->deadline_ns = call->submitted_ns + (uint64_t)calls->timeout_ms * 1000000U;
    call->begin_by_ns = call->submitted_ns + (uint64_t)calls->timeout_ms * 500000U;
    uv_mutex_lock(&calls->thread.lock);
    bool accepted = calls->accepted < PROVIDER_CALLS_MAX;
    if (accepted) {
        calls->accepted++;
        STAILQ_INSERT_TAIL(&calls->arrived, call, link);
    } else {
        calls->facts.outcomes[PROVIDER_OVERLOADED]++;
    }
    uv_mutex_unlock(&calls->thread.lock);
    if (!accepted)
        return STATUS_FULL;
    outgoing_wake(calls->outgoing);
    return STATUS_OK;
}

void provider_calls_facts(struct provider_calls *calls, struct provider_calls_facts *facts)
{
    uv_mutex_lock(&calls->thread.lock);
    *facts = calls->facts;
    facts->in_flight = relaxed_load(&calls->in_flight);
    facts->waiting = relaxed_load(&calls->waiting);
    uv_mutex_unlock(&calls->thread.lock);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct provider_calls *provider_calls_create(uint32_t timeout_ms, const char *ca_file,
                                             struct log *log)
{
    struct provider_calls *calls = memory_alloc_zeroed(1, sizeof *calls);
    CHECK(timeout_ms > 0);
    CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    calls->timeout_ms = timeout_ms;
    calls->log = log;
    calls->outgoing = outgoing_create(ca_file, KEPT_CONNECTIONS);
    STAILQ_INIT(&calls->arrived);
    background_start(&calls->thread, "provider", run, calls);
    return calls;
}

void provider_calls_destroy(struct provider_calls **at)
{
    struct provider_calls *calls = memory_take(at);
    if (calls == NULL)
        return;
    uv_mutex_lock(&calls->thread.lock);
    calls->thread.stopping = true;
    outgoing_wake(calls->outgoing); /* under the lock: the thread ends only after it */
    uv_mutex_unlock(&calls->thread.lock);
    background_stop(&calls->thread);
    while (!SLIST_EMPTY(&calls->lanes)) {
        struct provider_lane *lane = SLIST_FIRST(&calls->lanes);
        SLIST_REMOVE_HEAD(&calls->lanes, link);
        memory_free(lane);
    }
    memory_free(calls);
    curl_global_cleanup();
}
