/*
 * Leases; see rate_lease.h.
 *
 * The lock of a budget guards its lease. It is held for a few comparisons, and for no call that
 * blocks, so a request takes a unit in well under a microsecond.
 *
 * `asking` is set while a call to the store is under way. There is one at a time, to which `ask`
 * belongs. The lock of the leases guards only the number of calls; it is taken inside of the other.
 */
#include "limits/rate_lease.h"

#include "base/clock.h"
#include "base/memory.h"
#include "metrics/metrics.h"

#define NO_OFFSET INT64_MIN

struct rate_leases {
    struct odds_store *store;
    struct log *log;
    uv_mutex_t lock;
    uv_cond_t idle; /* `calls` is 0 */
    uint32_t calls; /* under way; guarded by the lock */
    _Atomic int64_t
        offset_ms;    /* the store's wall clock minus our monotonic clock, at its last answer */
    atomic_bool away; /* logged */
    struct rate_leases_facts facts;
};

struct rate_lease {
    uint64_t units;          /* left of the lease */
    uint64_t reserve;        /* left in the store */
    uint64_t low;            /* units at which more are fetched */
    uint32_t limit;          /* this and the next: under which the store confirmed the lease */
    uint32_t window_seconds; /* 0: never leased */
    uint64_t deadline_ns;    /* the lease is valid until then */
    uint64_t end_ns;         /* of the window, about */
    uint64_t retry_ns;       /* 0: the store answers; else when to try it again */
    uint64_t seen;           /* as rate_budget.window: units drawn, as last reported by the store */

    STAILQ_HEAD(rate_pending_list, rate_pending) pending;
    uint32_t waiting;
    bool asking;

    struct rate_leases *leases;
    struct rate_budget *budget;
    struct odds_lease ask; /* this and the next belong to the call under way */
    uint64_t asked_ns;
};

static struct rate_lease *lease_of(const struct rate_claim *claim)
{
    struct rate_lease *lease = atomic_load_explicit(&claim->budget->lease, memory_order_acquire);
    CHECK(lease != NULL);
    return lease;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t rate_lease_deadline(uint64_t asked_ns, uint64_t left_us)
{
    return asked_ns + left_us * 999; /* nanoseconds, 0.1 % less */
}

/* Our best estimate of the store's wall clock. */
static int64_t store_wall_ms(const struct rate_leases *leases, uint64_t now_ns)
{
    int64_t offset_ms = relaxed_load(&leases->offset_ms);
    return offset_ms == NO_OFFSET ? clock_wall_ms() : (int64_t)(now_ns / 1000000) + offset_ms;
}

/* ---- deciding -------------------------------------------------------------------------------- */

static uint32_t seconds_until(uint64_t end_ns, uint64_t now_ns)
{
    uint64_t left = end_ns > now_ns ? (end_ns - now_ns + 999999999) / 1000000000 : 1;
    return left > 1 ? (uint32_t)left : 1;
}

/* Decides by the lease: takes a unit, or refuses if the window is used up. False: the lease cannot
 * decide. `low` is set when the next lease should be fetched. */
static bool try_lease(struct rate_lease *lease, const struct rate_limit *rate, uint64_t now_ns,
                      struct rate_verdict *verdict, bool *low)
{
    bool allowed = lease->units > 0;
    if (lease->limit != rate->requests || lease->window_seconds != rate->window_seconds ||
        now_ns >= lease->deadline_ns || (!allowed && lease->reserve > 0))
        return false;
    lease->units -= allowed ? 1 : 0;
    *low = lease->reserve > 0 && lease->units <= lease->low;
    *verdict = rate_verdict_of(rate, allowed, lease->units + lease->reserve,
                               seconds_until(lease->end_ns, now_ns));
    return true;
}

/* The units that the store reported as drawn in the window of `window`, or in a later one. */
static uint64_t drawn_in(uint64_t seen, uint64_t window, int64_t store_ms)
{
    bool ours = rate_window_start(seen) >= rate_window_start(window);
    bool possible =
        (int64_t)rate_window_start(seen) <= store_ms / 1000 + (int64_t)RATE_LIMIT_LAG_SECONDS;
    return ours && possible ? rate_window_requests(seen) : 0;
}

/* Decides without the store. A request that is refused is not counted. */
static void take_without_store(struct rate_lease *lease, const struct rate_limit *rate,
                               uint64_t now_ns, struct rate_verdict *verdict)
{
    int64_t store_ms = store_wall_ms(lease->leases, now_ns);
    uint64_t window = rate_window_count(lease->budget->window, rate->window_seconds, store_ms);
    uint64_t used = drawn_in(lease->seen, window, store_ms) + rate_window_requests(window);
    if (used <= rate->requests)
        lease->budget->window = window;
    *verdict = rate_verdict_of(rate, used <= rate->requests,
                               used < rate->requests ? rate->requests - used : 0,
                               rate_window_seconds_left(window, rate->window_seconds, store_ms));
    verdict->alone = true;
}

void rate_lease_take_alone(const struct rate_claim *claim, uint64_t now_ns,
                           struct rate_verdict *verdict)
{
    uv_mutex_lock(&claim->budget->lock);
    take_without_store(lease_of(claim), &claim->rate, now_ns, verdict);
    uv_mutex_unlock(&claim->budget->lock);
}

/* ---- the store's answer ---------------------------------------------------------------------- */

/* Settles the requests that this server admitted without the store. Removes from the count those
 * that this call reported to the store, and moves those admitted since to the new lease. Returns
 * the units to charge to it. */
static uint64_t settle_alone(struct rate_lease *lease, uint64_t units)
{
    const struct odds_lease *ask = &lease->ask;
    uint64_t window = lease->budget->window;
    uint64_t start = rate_window_start(window);
    uint64_t count = rate_window_requests(window);
    if (start == ask->since)
        count -= least(count, ask->since_spent);
    uint64_t late = start == ask->start ? least(count, units) : 0;
    lease->budget->window = rate_window_make(start, count - late);
    return late;
}

/* Installs the lease that the store granted. */
static void install(struct rate_lease *lease)
{
    const struct odds_lease *ask = &lease->ask;
    uint64_t limit = ask->limit;
    bool same_window = rate_window_start(lease->seen) == ask->start && ask->left >= 0;
    uint64_t units = least((same_window ? lease->units : 0) + ask->granted, limit);
    uint64_t left = ask->left > 0 ? least((uint64_t)ask->left, limit) : 0;
    uint64_t drawn = limit - left + (ask->left < 0 ? (uint64_t)-ask->left : 0);
    lease->deadline_ns = rate_lease_deadline(lease->asked_ns, ask->left_us);
    if (units > 0 || left > 0) /* a used-up window needs no renewal */
        lease->deadline_ns = least(lease->deadline_ns, lease->asked_ns + RATE_LEASE_TERM_NS);
    lease->seen = rate_window_make(ask->start, least(drawn, UINT32_MAX));
    lease->units = units - settle_alone(lease, units);
    lease->reserve = left;
    lease->low = ask->granted / 2;
    lease->limit = ask->limit;
    lease->window_seconds = ask->window_seconds;
    lease->end_ns = ask->answered_ns + ask->left_us * 1000;
    lease->retry_ns = 0;
}

static void on_granted(struct rate_lease *lease)
{
    struct rate_leases *leases = lease->leases;
    const struct odds_lease *ask = &lease->ask;
    relaxed_add(&leases->facts.granted, ask->granted);
    relaxed_store(&leases->offset_ms, ask->store_ms - (int64_t)(ask->answered_ns / 1000000));
    install(lease);
    if (atomic_exchange_explicit(&leases->away, false, memory_order_relaxed))
        log_event(leases->log, LOG_INFO, "rate limits are shared again");
}

static void on_failed(struct rate_lease *lease)
{
    struct rate_leases *leases = lease->leases;
    const struct odds_lease *ask = &lease->ask;
    bool first = lease->retry_ns == 0;
    relaxed_add(&leases->facts.failed, 1);
    lease->retry_ns = ask->answered_ns + RATE_LEASE_RETRY_NS;
    if (ask->result == STATUS_MALFORMED && first)
        log_event(leases->log, LOG_WARNING,
                  "a rate limit is not shared: the store holds something else under its name",
                  LOG_STRING("client", ask->client));
    else if (ask->result != STATUS_MALFORMED &&
             !atomic_exchange_explicit(&leases->away, true, memory_order_relaxed))
        log_event(leases->log, LOG_WARNING,
                  "rate limits are kept by this server alone until the odds store answers",
                  LOG_STRING("status", status_name(ask->result)));
}

/* Ends the call: wakes the pending requests, which try again. */
static void on_answer(struct odds_lease *ask)
{
    struct rate_lease *lease = CONTAINER_OF(ask, struct rate_lease, ask);
    struct rate_leases *leases = lease->leases;
    struct rate_budget *budget = lease->budget;
    struct rate_pending_list woken = STAILQ_HEAD_INITIALIZER(woken);
    uv_mutex_lock(&budget->lock);
    if (ask->result == STATUS_OK)
        on_granted(lease);
    else
        on_failed(lease);
    STAILQ_CONCAT(&woken, &lease->pending);
    lease->waiting = 0;
    lease->asking = false;
    uv_mutex_unlock(&budget->lock);
    while (!STAILQ_EMPTY(&woken)) {
        struct rate_pending *pending = STAILQ_FIRST(&woken);
        STAILQ_REMOVE_HEAD(&woken, link); /* its owner may free it after the post */
        mailbox_post(pending->mailbox, &pending->mail);
    }
    rate_budget_release(&budget);
    uv_mutex_lock(&leases->lock);
    if (--leases->calls == 0)
        uv_cond_signal(&leases->idle);
    uv_mutex_unlock(&leases->lock);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Prepares a call, which the caller sends when it has given the lock back. */
static void begin_ask(struct rate_lease *lease, const struct rate_limit *rate, uint32_t demand,
                      uint64_t now_ns)
{
    struct rate_leases *leases = lease->leases;
    struct odds_lease *ask = &lease->ask;
    uint64_t alone = lease->budget->window;
    uint64_t since = rate_window_start(alone > lease->seen ? alone : lease->seen); /* the later */
    bool seen = rate_window_start(lease->seen) == since;
    ask->window_seconds = rate->window_seconds;
    ask->limit = rate->requests;
    ask->demand = demand;
    ask->since = (uint32_t)since;
    ask->since_used = (uint32_t)(seen ? rate_window_requests(lease->seen) : 0);
    ask->since_spent =
        (uint32_t)(rate_window_start(alone) == since ? rate_window_requests(alone) : 0);
    ask->done = on_answer;
    lease->asked_ns = now_ns;
    lease->asking = true;
    (void)rate_budget_hold(lease->budget);
    uv_mutex_lock(&leases->lock);
    leases->calls++;
    uv_mutex_unlock(&leases->lock);
    relaxed_add(&leases->facts.asked, 1);
}

static void send_ask(struct rate_lease *lease, uint64_t now_ns)
{
    struct odds_lease *ask = &lease->ask;
    enum status status = odds_store_lease(lease->leases->store, ask);
    if (status == STATUS_PENDING)
        return;
    ask->result = status;
    ask->answered_ns = now_ns;
    on_answer(ask);
}

enum status rate_lease_take(const struct rate_claim *claim, uint64_t now_ns,
                            struct rate_pending *pending, struct rate_verdict *verdict)
{
    struct rate_lease *lease = lease_of(claim);
    uint32_t demand = 1;
    bool low = false;
    uv_mutex_lock(&claim->budget->lock); /* an answer from now on finds the pending request */
    bool decided = try_lease(lease, &claim->rate, now_ns, verdict, &low);
    bool away = !decided && lease->retry_ns != 0;
    bool waits = !decided && !away && pending != NULL;
    if (waits) {
        STAILQ_INSERT_TAIL(&lease->pending, pending, link);
        demand = ++lease->waiting;
    }
    bool ask = (low || away || waits) && !lease->asking && now_ns >= lease->retry_ns;
    if (ask)
        begin_ask(lease, &claim->rate, demand, now_ns);
    if (away)
        take_without_store(lease, &claim->rate, now_ns, verdict);
    uv_mutex_unlock(&claim->budget->lock);
    if (ask)
        send_ask(lease, now_ns);
    return decided || away ? STATUS_OK : STATUS_PENDING;
}

/* ---- life ------------------------------------------------------------------------------------ */

void rate_lease_prepare(struct rate_leases *leases, const struct rate_claim *claim,
                        const char *client)
{
    struct rate_budget *budget = claim->budget;
    CHECK(claim->rate.enabled && budget != NULL);
    if (atomic_load_explicit(&budget->lease, memory_order_acquire) != NULL)
        return;
    struct rate_lease *lease = memory_alloc_zeroed(1, sizeof *lease);
    lease->leases = leases;
    lease->budget = budget;
    STAILQ_INIT(&lease->pending);
    CHECK(strlen(client) < sizeof lease->ask.client);
    memcpy(lease->ask.client, client, strlen(client) + 1);
    struct rate_lease *none = NULL;
    if (!atomic_compare_exchange_strong_explicit(&budget->lease, &none, lease, memory_order_acq_rel,
                                                 memory_order_acquire))
        memory_free(lease); /* another thread was first */
}

struct rate_leases *rate_leases_create(struct odds_store *store, struct log *log)
{
    struct rate_leases *leases = memory_alloc_zeroed(1, sizeof *leases);
    CHECK(odds_store_has_leases(store));
    leases->store = store;
    leases->log = log;
    atomic_init(&leases->offset_ms, NO_OFFSET);
    CHECK(uv_mutex_init(&leases->lock) == 0);
    CHECK(uv_cond_init(&leases->idle) == 0);
    return leases;
}

void rate_leases_destroy(struct rate_leases **at)
{
    struct rate_leases *leases = memory_take(at);
    if (leases == NULL)
        return;
    uv_mutex_lock(&leases->lock);
    while (leases->calls > 0)
        uv_cond_wait(&leases->idle, &leases->lock);
    uv_mutex_unlock(&leases->lock);
    uv_cond_destroy(&leases->idle);
    uv_mutex_destroy(&leases->lock);
    memory_free(leases);
}

const struct rate_leases_facts *rate_leases_facts(const struct rate_leases *leases)
{
    static const struct rate_leases_facts none;
    return leases != NULL ? &leases->facts : &none;
}

const struct metric rate_leases_metrics[] = {
    METRIC_FACT("croupier_rate_leases_total", struct rate_leases_facts, asked),
    METRIC_FACT("croupier_rate_leased_requests_total", struct rate_leases_facts, granted),
    METRIC_FACT("croupier_rate_lease_failures_total", struct rate_leases_facts, failed),
    {0},
};
