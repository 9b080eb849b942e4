/*
 * Leases; see rate_lease.h.
 *
 * The hot path is try_lease: it reads the fields of the lease and takes a unit with one
 * compare-and-swap of `word`, which holds a generation (high half) and the units left (low half).
 * publish installs a new lease in three steps: it closes the word (odd generation, no units),
 * writes the other fields, and opens the word with the next even generation. A swap succeeds only
 * if the generation is still the one under which the fields were read, so no unit is spent under
 * another lease's deadline. Fields are stored with release and loaded with acquire: a thread that
 * sees a field written after the close also sees the word closed.
 *
 * `asking` is set while a call to the store is under way, and only that call may write the lease.
 * `asking` changes under the lock, which also guards the pending requests. No slow work happens
 * under the lock, and a request that finds a unit never takes it.
 */
#include "limits/rate_lease.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <uv.h>

#include "base/clock.h"
#include "base/memory.h"
#include "limits/rate_limit.h"
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
    _Atomic uint64_t word;
    _Atomic uint64_t terms;       /* the limit and window seconds that the store confirmed */
    _Atomic uint64_t deadline_ns; /* the lease is valid until then; 0: never leased */
    _Atomic uint64_t reserve;  /* high: left in the store; low: units at which more are fetched */
    _Atomic uint64_t end_ns;   /* of the window, about */
    _Atomic uint64_t retry_ns; /* 0: the store answers; else when to try it again */
    _Atomic uint64_t seen; /* as rate_budget.window: units drawn, as last reported by the store */
    atomic_bool asking;

    STAILQ_HEAD(rate_pending_list, rate_pending) pending; /* under the lock */
    uint32_t waiting;

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

static uint64_t get(const _Atomic uint64_t *field)
{
    return atomic_load_explicit(field, memory_order_acquire);
}

static void set(_Atomic uint64_t *field, uint64_t value)
{
    atomic_store_explicit(field, value, memory_order_release);
}

static uint64_t pair(uint64_t high, uint64_t low)
{
    return high << 32 | low;
}

static uint64_t high_of(uint64_t pair)
{
    return pair >> 32;
}

static uint64_t low_of(uint64_t pair)
{
    return pair & UINT32_MAX;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static uint64_t terms_of(const struct rate_limit *rate)
{
    return pair(rate->requests, rate->window_seconds);
}

uint64_t rate_lease_deadline(uint64_t asked_ns, uint64_t left_us)
{
    return asked_ns + left_us * 999; /* nanoseconds, 0.1 % less */
}

/* Our best estimate of the store's wall clock. */
static int64_t store_wall_ms(const struct rate_leases *leases, uint64_t now_ns)
{
    int64_t offset_ms = atomic_load_explicit(&leases->offset_ms, memory_order_relaxed);
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
    uint64_t word = get(&lease->word);
    for (;;) {
        uint64_t units = low_of(word);
        uint64_t reserve = get(&lease->reserve);
        uint64_t end_ns = get(&lease->end_ns);
        if (high_of(word) % 2 != 0 || get(&lease->terms) != terms_of(rate) ||
            now_ns >= get(&lease->deadline_ns))
            return false;
        if (units == 0 && high_of(reserve) > 0)
            return false;
        if (units == 0) {
            uint64_t again = get(&lease->word);
            if (again == word) {
                *verdict = rate_verdict_of(rate, false, 0, seconds_until(end_ns, now_ns));
                return true;
            }
            word = again;
        } else if (atomic_compare_exchange_weak_explicit(
                       &lease->word, &word, word - 1, memory_order_acq_rel, memory_order_acquire)) {
            *verdict = rate_verdict_of(rate, true, units - 1 + high_of(reserve),
                                       seconds_until(end_ns, now_ns));
            *low = high_of(reserve) > 0 && units - 1 <= low_of(reserve);
            return true;
        }
    }
}

/* The units that the store reported as drawn in the window of `window`, or in a later one. */
static uint64_t drawn_in(uint64_t seen, uint64_t window, int64_t store_ms)
{
    bool ours = rate_window_start(seen) >= rate_window_start(window);
    bool possible =
        (int64_t)rate_window_start(seen) <= store_ms / 1000 + (int64_t)RATE_LIMIT_LAG_SECONDS;
    return ours && possible ? rate_window_requests(seen) : 0;
}

void rate_lease_take_alone(const struct rate_claim *claim, uint64_t now_ns,
                           struct rate_verdict *verdict)
{
    const struct rate_limit *rate = &claim->rate;
    struct rate_lease *lease = lease_of(claim);
    _Atomic uint64_t *word = &claim->budget->window;
    int64_t store_ms = store_wall_ms(lease->leases, now_ns);
    uint64_t before = atomic_load_explicit(word, memory_order_acquire);
    uint64_t after;
    uint64_t used;
    do { /* `seen` is read after the word: see settle_alone */
        after = rate_window_count(before, rate->window_seconds, store_ms);
        used = drawn_in(get(&lease->seen), after, store_ms) + rate_window_requests(after);
    } while (used <= rate->requests &&
             !atomic_compare_exchange_weak_explicit(word, &before, after, memory_order_acq_rel,
                                                    memory_order_acquire));
    *verdict = rate_verdict_of(rate, used <= rate->requests,
                               used < rate->requests ? rate->requests - used : 0,
                               rate_window_seconds_left(after, rate->window_seconds, store_ms));
    verdict->alone = true;
}

/* ---- the store's answer ---------------------------------------------------------------------- */

/* Takes all units out of the word, so that none is spent while the fields change. Returns their
 * number. */
static uint64_t close_word(struct rate_lease *lease)
{
    uint64_t word = get(&lease->word);
    CHECK(high_of(word) % 2 == 0);
    while (!atomic_compare_exchange_weak_explicit(&lease->word, &word, pair(high_of(word) + 1, 0),
                                                  memory_order_acq_rel, memory_order_acquire))
        continue;
    return low_of(word);
}

static void open_word(struct rate_lease *lease, uint64_t units)
{
    uint64_t generation = (high_of(get(&lease->word)) + 1) & UINT32_MAX;
    set(&lease->word, pair(generation, units));
}

/* Settles the requests that this server admitted without the store. Removes from the count those
 * that this call reported to the store, and moves those admitted since to the new lease. Returns
 * the units to charge to it. Runs after the store of `seen`, which includes the removed requests,
 * so that a thread that reads the smaller count also reads the larger use. */
static uint64_t settle_alone(struct rate_lease *lease, uint64_t units)
{
    const struct odds_lease *ask = &lease->ask;
    _Atomic uint64_t *word = &lease->budget->window;
    uint64_t before = get(word);
    uint64_t after;
    uint64_t late;
    do {
        uint64_t start = rate_window_start(before);
        uint64_t count = rate_window_requests(before);
        if (start == ask->since)
            count -= least(count, ask->since_spent);
        late = start == ask->start ? least(count, units) : 0;
        after = rate_window_make(start, count - late);
    } while (after != before &&
             !atomic_compare_exchange_weak_explicit(word, &before, after, memory_order_acq_rel,
                                                    memory_order_acquire));
    return late;
}

/* Installs the lease that the store granted. */
static void publish(struct rate_lease *lease)
{
    const struct odds_lease *ask = &lease->ask;
    uint64_t limit = ask->limit;
    uint64_t kept = close_word(lease);
    if (rate_window_start(get(&lease->seen)) != ask->start || ask->left < 0)
        kept = 0;
    uint64_t units = least(kept + ask->granted, limit);
    uint64_t left = ask->left > 0 ? least((uint64_t)ask->left, limit) : 0;
    uint64_t drawn = limit - left + (ask->left < 0 ? (uint64_t)-ask->left : 0);
    uint64_t deadline_ns = rate_lease_deadline(lease->asked_ns, ask->left_us);
    if (units > 0 || left > 0) /* a used-up window needs no renewal */
        deadline_ns = least(deadline_ns, lease->asked_ns + RATE_LEASE_TERM_NS);
    set(&lease->seen, rate_window_make(ask->start, least(drawn, UINT32_MAX)));
    units -= settle_alone(lease, units);
    set(&lease->terms, pair(limit, ask->window_seconds));
    set(&lease->deadline_ns, deadline_ns);
    set(&lease->end_ns, ask->answered_ns + ask->left_us * 1000);
    set(&lease->reserve, pair(left, ask->granted / 2));
    open_word(lease, units);
    set(&lease->retry_ns, 0);
}

static void on_granted(struct rate_lease *lease)
{
    struct rate_leases *leases = lease->leases;
    const struct odds_lease *ask = &lease->ask;
    (void)atomic_fetch_add_explicit(&leases->facts.granted, ask->granted, memory_order_relaxed);
    atomic_store_explicit(&leases->offset_ms, ask->store_ms - (int64_t)(ask->answered_ns / 1000000),
                          memory_order_relaxed);
    publish(lease);
    if (atomic_exchange_explicit(&leases->away, false, memory_order_relaxed))
        log_event(leases->log, LOG_INFO, "rate limits are shared again");
}

static void on_failed(struct rate_lease *lease)
{
    struct rate_leases *leases = lease->leases;
    const struct odds_lease *ask = &lease->ask;
    bool first = get(&lease->retry_ns) == 0;
    (void)atomic_fetch_add_explicit(&leases->facts.failed, 1, memory_order_relaxed);
    set(&lease->retry_ns, ask->answered_ns + RATE_LEASE_RETRY_NS);
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

/* The last step of a call: wakes the pending requests, which try again. */
static void end_ask(struct rate_lease *lease)
{
    struct rate_leases *leases = lease->leases;
    struct rate_budget *budget = lease->budget;
    struct rate_pending_list woken = STAILQ_HEAD_INITIALIZER(woken);
    uv_mutex_lock(&leases->lock);
    STAILQ_CONCAT(&woken, &lease->pending);
    lease->waiting = 0;
    atomic_store_explicit(&lease->asking, false, memory_order_release);
    uv_mutex_unlock(&leases->lock);
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

static void on_answer(struct odds_lease *ask)
{
    struct rate_lease *lease = CONTAINER_OF(ask, struct rate_lease, ask);
    if (ask->result == STATUS_OK)
        on_granted(lease);
    else
        on_failed(lease);
    end_ask(lease);
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* Call with the lock held. True: the caller must call send_ask. */
static bool begin_ask(struct rate_lease *lease)
{
    if (atomic_load_explicit(&lease->asking, memory_order_acquire))
        return false;
    atomic_store_explicit(&lease->asking, true, memory_order_relaxed);
    lease->leases->calls++;
    return true;
}

static void send_ask(struct rate_lease *lease, const struct rate_limit *rate, uint32_t demand,
                     uint64_t now_ns)
{
    struct rate_leases *leases = lease->leases;
    struct odds_lease *ask = &lease->ask;
    uint64_t alone = get(&lease->budget->window);
    uint64_t seen = get(&lease->seen);
    uint64_t since = rate_window_start(alone > seen ? alone : seen); /* the later one */
    ask->window_seconds = rate->window_seconds;
    ask->limit = rate->requests;
    ask->demand = demand > 0 ? demand : 1;
    ask->since = (uint32_t)since;
    ask->since_used = (uint32_t)(rate_window_start(seen) == since ? rate_window_requests(seen) : 0);
    ask->since_spent =
        (uint32_t)(rate_window_start(alone) == since ? rate_window_requests(alone) : 0);
    ask->done = on_answer;
    lease->asked_ns = now_ns;
    (void)rate_budget_hold(lease->budget);
    (void)atomic_fetch_add_explicit(&leases->facts.asked, 1, memory_order_relaxed);
    enum status status = odds_store_lease(leases->store, ask);
    if (status == STATUS_PENDING)
        return;
    ask->result = status;
    ask->answered_ns = now_ns;
    on_answer(ask);
}

/* Fetches the next lease in the background, unless a call is under way or a failure was too
 * recent. */
static void fetch(struct rate_lease *lease, const struct rate_limit *rate, uint64_t now_ns)
{
    if (atomic_load_explicit(&lease->asking, memory_order_acquire) ||
        now_ns < get(&lease->retry_ns))
        return;
    uv_mutex_lock(&lease->leases->lock);
    bool mine = begin_ask(lease);
    uv_mutex_unlock(&lease->leases->lock);
    if (mine)
        send_ask(lease, rate, 1, now_ns);
}

enum status rate_lease_take(const struct rate_claim *claim, uint64_t now_ns,
                            struct rate_verdict *verdict)
{
    struct rate_lease *lease = lease_of(claim);
    bool low = false;
    if (try_lease(lease, &claim->rate, now_ns, verdict, &low)) {
        if (low)
            fetch(lease, &claim->rate, now_ns);
        return STATUS_OK;
    }
    if (get(&lease->retry_ns) == 0)
        return STATUS_PENDING;
    fetch(lease, &claim->rate, now_ns);
    rate_lease_take_alone(claim, now_ns, verdict);
    return STATUS_OK;
}

enum status rate_lease_wait(const struct rate_claim *claim, uint64_t now_ns,
                            struct rate_pending *pending, struct rate_verdict *verdict)
{
    struct rate_lease *lease = lease_of(claim);
    struct rate_leases *leases = lease->leases;
    bool low = false;
    uv_mutex_lock(&leases->lock); /* an answer from now on finds the pending request */
    bool decided = try_lease(lease, &claim->rate, now_ns, verdict, &low);
    bool away = !decided && get(&lease->retry_ns) != 0;
    bool mine = false;
    uint32_t demand = 0;
    if (!decided && !away) {
        STAILQ_INSERT_TAIL(&lease->pending, pending, link);
        demand = ++lease->waiting;
        mine = begin_ask(lease);
    }
    uv_mutex_unlock(&leases->lock);
    if (decided && low)
        fetch(lease, &claim->rate, now_ns);
    else if (mine)
        send_ask(lease, &claim->rate, demand, now_ns);
    else if (away)
        rate_lease_take_alone(claim, now_ns, verdict);
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
    struct rate_leases *leases = *at;
    if (leases == NULL)
        return;
    *at = NULL;
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
    METRIC_FACT("croupier_rate_leases_total", "counter", struct rate_leases_facts, asked,
                "Leases of shared rate budgets asked of the odds store"),
    METRIC_FACT("croupier_rate_leased_requests_total", "counter", struct rate_leases_facts, granted,
                "Requests granted in those leases"),
    METRIC_FACT("croupier_rate_lease_failures_total", "counter", struct rate_leases_facts, failed,
                "Leases that the odds store did not answer for"),
    {0},
};
