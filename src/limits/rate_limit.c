/* Fixed windows in one atomic word; see rate_limit.h. */
#include "limits/rate_limit.h"

#include "base/memory.h"

struct rate_budget *rate_budget_create(void)
{
    struct rate_budget *budget = memory_alloc_zeroed(1, sizeof *budget);
    atomic_init(&budget->holders, 1);
    CHECK(uv_mutex_init(&budget->lock) == 0);
    return budget;
}

struct rate_budget *rate_budget_hold(struct rate_budget *budget)
{
    relaxed_add(&budget->holders, 1);
    return budget;
}

void rate_budget_release(struct rate_budget **at)
{
    struct rate_budget *budget = memory_take(at);
    if (budget == NULL || atomic_fetch_sub_explicit(&budget->holders, 1, memory_order_acq_rel) > 1)
        return;
    for (size_t i = 0; i < 2; i++) {
        struct rate_budget *account =
            atomic_load_explicit(&budget->account[i], memory_order_acquire);
        rate_budget_release(&account);
    }
    memory_free(atomic_load_explicit(&budget->lease, memory_order_acquire));
    uv_mutex_destroy(&budget->lock);
    memory_free(budget);
}

struct rate_budget *rate_budget_of_account(struct rate_budget *budget, bool change)
{
    _Atomic(struct rate_budget *) *at = &budget->account[change];
    struct rate_budget *found = atomic_load_explicit(at, memory_order_acquire);
    if (found != NULL)
        return found;
    struct rate_budget *made = rate_budget_create();
    if (atomic_compare_exchange_strong_explicit(at, &found, made, memory_order_acq_rel,
                                                memory_order_acquire))
        return made;
    rate_budget_release(&made); /* another thread was quicker */
    return found;
}

uint64_t rate_window_make(uint64_t start, uint64_t requests)
{
    return start << 32 | requests;
}

uint64_t rate_window_start(uint64_t window)
{
    return window >> 32;
}

uint64_t rate_window_requests(uint64_t window)
{
    return window & UINT32_MAX;
}

/* Seconds since the epoch; 32 bits last until 2106. */
static uint64_t seconds_of(int64_t wall_ms)
{
    uint64_t seconds = wall_ms > 0 ? (uint64_t)wall_ms / 1000 : 0;
    return seconds < UINT32_MAX ? seconds : UINT32_MAX;
}

uint64_t rate_window_count(uint64_t window, uint32_t window_seconds, int64_t now_wall_ms)
{
    uint64_t now = seconds_of(now_wall_ms);
    uint64_t start = now - now % window_seconds;
    uint64_t counted = rate_window_start(window);
    uint64_t requests = rate_window_requests(window);
    if (counted > now + RATE_LIMIT_LAG_SECONDS || counted < start)
        return rate_window_make(start, 1); /* a new window, or the clock was set back */
    if (counted > now)
        start = counted; /* another thread's clock is ahead of ours */
    return rate_window_make(start, requests < UINT32_MAX ? requests + 1 : requests);
}

uint32_t rate_window_seconds_left(uint64_t window, uint32_t window_seconds, int64_t now_wall_ms)
{
    int64_t end_ms = (int64_t)(rate_window_start(window) + window_seconds) * 1000;
    int64_t left_seconds = (end_ms - now_wall_ms + 999) / 1000;
    return left_seconds > 1 ? (uint32_t)left_seconds : 1;
}

struct rate_verdict rate_verdict_of(const struct rate_limit *rate, bool allowed, uint64_t remaining,
                                    uint32_t reset_seconds)
{
    return (struct rate_verdict){
        .limited = true,
        .allowed = allowed,
        .limit = rate->requests,
        .remaining = remaining < rate->requests ? (uint32_t)remaining : rate->requests,
        .reset_seconds = reset_seconds,
    };
}

void rate_limit_take(const struct rate_claim *claim, int64_t now_wall_ms,
                     struct rate_verdict *verdict)
{
    const struct rate_limit *rate = &claim->rate;
    if (!rate->enabled) {
        *verdict = (struct rate_verdict){.allowed = true};
        return;
    }
    CHECK(claim->budget != NULL && rate->window_seconds > 0);
    _Atomic uint64_t *word = &claim->budget->window;
    uint64_t before = relaxed_load(word);
    uint64_t after;
    do
        after = rate_window_count(before, rate->window_seconds, now_wall_ms);
    while (!atomic_compare_exchange_weak_explicit(word, &before, after, memory_order_relaxed,
                                                  memory_order_relaxed));
    uint64_t requests = rate_window_requests(after);
    *verdict = rate_verdict_of(rate, requests <= rate->requests,
                               requests < rate->requests ? rate->requests - requests : 0,
                               rate_window_seconds_left(after, rate->window_seconds, now_wall_ms));
}
