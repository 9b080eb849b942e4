/* limits/rate_limit: fixed windows, one budget a client. */
#include <pthread.h>

#include "limits/rate_limit.h"
#include "tests.h"

#define MINUTE_MS 1763700000000 /* a whole minute, in November 2025 */

static struct rate_claim claim_with(struct rate_budget *budget, uint32_t requests, uint32_t seconds)
{
    memset(budget, 0, sizeof *budget);
    return (struct rate_claim){.rate = {true, requests, seconds}, .budget = budget};
}

static struct rate_verdict take(const struct rate_claim *claim, int64_t now_ms)
{
    struct rate_verdict verdict;
    memset(&verdict, 0xAA, sizeof verdict);
    rate_limit_take(claim, now_ms, &verdict);
    return verdict;
}

TEST(without_a_limit_everything_is_allowed)
{
    struct rate_claim claim = {.rate = {.enabled = false}};
    struct rate_verdict verdict = take(&claim, MINUTE_MS);
    assert_true(verdict.allowed);
    assert_false(verdict.limited);
}

TEST(as_many_as_the_limit_are_allowed)
{
    struct rate_budget budget;
    struct rate_claim claim = claim_with(&budget, 3, 60);
    for (uint32_t i = 0; i < 3; i++) {
        struct rate_verdict verdict = take(&claim, MINUTE_MS + i);
        assert_true(verdict.limited && verdict.allowed);
        assert_int_equal(verdict.limit, 3);
        assert_int_equal(verdict.remaining, 2 - i);
    }
    struct rate_verdict verdict = take(&claim, MINUTE_MS + 59999);
    assert_false(verdict.allowed);
    assert_int_equal(verdict.remaining, 0);
}

TEST(the_next_window_starts_afresh)
{
    struct rate_budget budget;
    struct rate_claim claim = claim_with(&budget, 1, 60);
    assert_true(take(&claim, MINUTE_MS + 59999).allowed);
    assert_false(take(&claim, MINUTE_MS + 59999).allowed);
    assert_true(take(&claim, MINUTE_MS + 60000).allowed);
}

TEST(windows_are_aligned_to_the_epoch)
{
    struct rate_budget budget;
    struct rate_claim claim = claim_with(&budget, 1, 60);
    assert_int_equal(take(&claim, MINUTE_MS + 45000).reset_seconds, 15);
}

TEST(seconds_left_are_rounded_up_and_at_least_one)
{
    struct rate_budget budget;
    struct rate_claim claim = claim_with(&budget, 1, 60);
    assert_int_equal(take(&claim, MINUTE_MS).reset_seconds, 60);
    assert_int_equal(take(&claim, MINUTE_MS + 1).reset_seconds, 60);
    assert_int_equal(take(&claim, MINUTE_MS + 1001).reset_seconds, 59);
    assert_int_equal(take(&claim, MINUTE_MS + 59999).reset_seconds, 1);
}

TEST(rejected_requests_count)
{
    struct rate_budget budget;
    struct rate_claim claim = claim_with(&budget, 1, 60);
    for (int i = 0; i < 5; i++)
        (void)take(&claim, MINUTE_MS);
    claim.rate.requests = 5; /* the operator raises the limit: the five have been used */
    assert_false(take(&claim, MINUTE_MS).allowed);
}

TEST(the_count_stops_at_its_maximum)
{
    uint64_t start = MINUTE_MS / 1000;
    uint64_t full = start << 32 | UINT32_MAX;
    assert_true(rate_window_count(full, 60, MINUTE_MS) == full);
}

TEST(a_new_policy_keeps_the_count)
{
    struct rate_budget budget;
    struct rate_claim claim = claim_with(&budget, 2, 60);
    (void)take(&claim, MINUTE_MS);
    struct rate_claim newer = claim;
    newer.rate.requests = 10;
    assert_int_equal(take(&newer, MINUTE_MS).remaining, 8);
}

TEST(a_window_made_longer_keeps_the_count)
{
    struct rate_budget budget;
    struct rate_claim claim = claim_with(&budget, 2, 10);
    (void)take(&claim, MINUTE_MS + 35000);
    claim.rate.window_seconds = 60;
    assert_int_equal(take(&claim, MINUTE_MS + 36000).remaining, 0);
}

TEST(a_thread_whose_clock_lags_counts_in_the_window_that_has_begun)
{
    struct rate_budget budget;
    struct rate_claim claim = claim_with(&budget, 2, 60);
    (void)take(&claim, MINUTE_MS + 60001);
    assert_int_equal(take(&claim, MINUTE_MS + 59998).remaining, 0);
    assert_false(take(&claim, MINUTE_MS + 60002).allowed);
}

TEST(a_clock_set_back_does_not_lock_the_client_out)
{
    struct rate_budget budget;
    struct rate_claim claim = claim_with(&budget, 1, 60);
    (void)take(&claim, MINUTE_MS + 3600000);
    assert_true(take(&claim, MINUTE_MS).allowed);
    assert_false(take(&claim, MINUTE_MS).allowed);
}

struct taker {
    pthread_t thread;
    const struct rate_claim *claim;
    unsigned allowed;
};

static void *take_many(void *argument)
{
    struct taker *taker = argument;
    for (int i = 0; i < 10000; i++) {
        struct rate_verdict verdict;
        rate_limit_take(taker->claim, MINUTE_MS + i, &verdict);
        taker->allowed += verdict.allowed ? 1 : 0;
    }
    return NULL;
}

TEST(threads_together_never_exceed_the_budget)
{
    struct rate_budget budget;
    struct rate_claim claim = claim_with(&budget, 15000, 60);
    struct taker takers[4];
    unsigned allowed = 0;
    for (size_t i = 0; i < 4; i++) {
        takers[i] = (struct taker){.claim = &claim};
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_many, &takers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(takers[i].thread, NULL), 0);
        allowed += takers[i].allowed;
    }
    assert_int_equal(allowed, 15000);
}
