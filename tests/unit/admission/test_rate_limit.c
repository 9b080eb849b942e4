/* admission/rate_limit: fixed windows, one budget a client. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admission/rate_limit.h"

#define MINUTE_MS 1763700000000 /* a whole minute, in November 2025 */

static struct policy policy_with(struct rate_budget *budget, uint32_t requests, uint32_t seconds)
{
    memset(budget, 0, sizeof *budget);
    return (struct policy){.rate = {true, requests, seconds}, .budget = budget};
}

static struct rate_verdict take(const struct policy *policy, int64_t now_ms)
{
    struct rate_verdict verdict;
    memset(&verdict, 0xAA, sizeof verdict);
    rate_limit_take(policy, now_ms, &verdict);
    return verdict;
}

static void without_a_limit_everything_is_allowed(void **state)
{
    (void)state;
    struct policy policy = {.rate = {.enabled = false}};
    struct rate_verdict verdict = take(&policy, MINUTE_MS);
    assert_true(verdict.allowed);
    assert_false(verdict.limited);
}

static void as_many_as_the_limit_are_allowed(void **state)
{
    (void)state;
    struct rate_budget budget;
    struct policy policy = policy_with(&budget, 3, 60);
    for (uint32_t i = 0; i < 3; i++) {
        struct rate_verdict verdict = take(&policy, MINUTE_MS + i);
        assert_true(verdict.limited && verdict.allowed);
        assert_int_equal(verdict.limit, 3);
        assert_int_equal(verdict.remaining, 2 - i);
    }
    struct rate_verdict verdict = take(&policy, MINUTE_MS + 59999);
    assert_false(verdict.allowed);
    assert_int_equal(verdict.remaining, 0);
}

static void the_next_window_starts_afresh(void **state)
{
    (void)state;
    struct rate_budget budget;
    struct policy policy = policy_with(&budget, 1, 60);
    assert_true(take(&policy, MINUTE_MS + 59999).allowed);
    assert_false(take(&policy, MINUTE_MS + 59999).allowed);
    assert_true(take(&policy, MINUTE_MS + 60000).allowed);
}

static void windows_are_aligned_to_the_epoch(void **state)
{
    (void)state;
    struct rate_budget budget;
    struct policy policy = policy_with(&budget, 1, 60);
    assert_int_equal(take(&policy, MINUTE_MS + 45000).reset_seconds, 15);
}

static void seconds_left_are_rounded_up_and_at_least_one(void **state)
{
    (void)state;
    struct rate_budget budget;
    struct policy policy = policy_with(&budget, 1, 60);
    assert_int_equal(take(&policy, MINUTE_MS).reset_seconds, 60);
    assert_int_equal(take(&policy, MINUTE_MS + 1).reset_seconds, 60);
    assert_int_equal(take(&policy, MINUTE_MS + 1001).reset_seconds, 59);
    assert_int_equal(take(&policy, MINUTE_MS + 59999).reset_seconds, 1);
}

static void rejected_requests_count(void **state)
{
    (void)state;
    struct rate_budget budget;
    struct policy policy = policy_with(&budget, 1, 60);
    for (int i = 0; i < 5; i++)
        (void)take(&policy, MINUTE_MS);
    policy.rate.requests = 5; /* the operator raises the limit: the five have been used */
    assert_false(take(&policy, MINUTE_MS).allowed);
}

static void the_count_stops_at_its_maximum(void **state)
{
    (void)state;
    uint64_t start = MINUTE_MS / 1000;
    uint64_t full = start << 32 | UINT32_MAX;
    assert_true(rate_window_count(full, 60, MINUTE_MS) == full);
}

static void a_new_policy_keeps_the_count(void **state)
{
    (void)state;
    struct rate_budget budget;
    struct policy policy = policy_with(&budget, 2, 60);
    (void)take(&policy, MINUTE_MS);
    struct policy newer = policy;
    newer.rate.requests = 10;
    assert_int_equal(take(&newer, MINUTE_MS).remaining, 8);
}

static void a_window_made_longer_keeps_the_count(void **state)
{
    (void)state;
    struct rate_budget budget;
    struct policy policy = policy_with(&budget, 2, 10);
    (void)take(&policy, MINUTE_MS + 35000);
    policy.rate.window_seconds = 60;
    assert_int_equal(take(&policy, MINUTE_MS + 36000).remaining, 0);
}

static void a_thread_whose_clock_lags_counts_in_the_window_that_has_begun(void **state)
{
    (void)state;
    struct rate_budget budget;
    struct policy policy = policy_with(&budget, 2, 60);
    (void)take(&policy, MINUTE_MS + 60001);
    assert_int_equal(take(&policy, MINUTE_MS + 59998).remaining, 0);
    assert_false(take(&policy, MINUTE_MS + 60002).allowed);
}

static void a_clock_set_back_does_not_lock_the_client_out(void **state)
{
    (void)state;
    struct rate_budget budget;
    struct policy policy = policy_with(&budget, 1, 60);
    (void)take(&policy, MINUTE_MS + 3600000);
    assert_true(take(&policy, MINUTE_MS).allowed);
    assert_false(take(&policy, MINUTE_MS).allowed);
}

struct taker {
    pthread_t thread;
    const struct policy *policy;
    unsigned allowed;
};

static void *take_many(void *argument)
{
    struct taker *taker = argument;
    for (int i = 0; i < 10000; i++) {
        struct rate_verdict verdict;
        rate_limit_take(taker->policy, MINUTE_MS + i, &verdict);
        taker->allowed += verdict.allowed ? 1 : 0;
    }
    return NULL;
}

static void threads_together_never_exceed_the_budget(void **state)
{
    (void)state;
    struct rate_budget budget;
    struct policy policy = policy_with(&budget, 15000, 60);
    struct taker takers[4];
    unsigned allowed = 0;
    for (size_t i = 0; i < 4; i++) {
        takers[i] = (struct taker){.policy = &policy};
        assert_int_equal(pthread_create(&takers[i].thread, NULL, take_many, &takers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(takers[i].thread, NULL), 0);
        allowed += takers[i].allowed;
    }
    assert_int_equal(allowed, 15000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_limit_everything_is_allowed),
        cmocka_unit_test(as_many_as_the_limit_are_allowed),
        cmocka_unit_test(the_next_window_starts_afresh),
        cmocka_unit_test(windows_are_aligned_to_the_epoch),
        cmocka_unit_test(seconds_left_are_rounded_up_and_at_least_one),
        cmocka_unit_test(rejected_requests_count),
        cmocka_unit_test(the_count_stops_at_its_maximum),
        cmocka_unit_test(a_new_policy_keeps_the_count),
        cmocka_unit_test(a_window_made_longer_keeps_the_count),
        cmocka_unit_test(a_thread_whose_clock_lags_counts_in_the_window_that_has_begun),
        cmocka_unit_test(a_clock_set_back_does_not_lock_the_client_out),
        cmocka_unit_test(threads_together_never_exceed_the_budget),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
