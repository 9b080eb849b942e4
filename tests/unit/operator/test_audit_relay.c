/* Transactions from one thread to another. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "operator/audit_relay.h"

struct seen {
    uint64_t count, sum;
    uint64_t last;   /* sequence */
    uint64_t wanted; /* after which nothing is */
    bool out_of_order;
};

static bool see(void *context, const struct ledger_transaction *transaction)
{
    struct seen *seen = context;
    seen->out_of_order = seen->out_of_order || transaction->sequence != seen->last + 1;
    seen->last = transaction->sequence;
    seen->sum += transaction->sequence;
    return ++seen->count < seen->wanted;
}

static void all_arrive_in_their_order(void **state)
{
    /* Nothing, less than a block, blocks exactly, and more than the ring holds. */
    static const uint64_t counts[] = {0, 1, 127, 128, 129, 1024, 1152, 10000};
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct seen seen = {.wanted = UINT64_MAX};
        struct relay *relay = relay_create(see, &seen);
        for (uint64_t at = 1; at <= counts[i]; at++)
            assert_true(relay_put(relay, &(struct ledger_transaction){.sequence = at}));
        relay_destroy(&relay);
        assert_null(relay);
        assert_int_equal(seen.count, counts[i]);
        assert_int_equal(seen.sum, counts[i] * (counts[i] + 1) / 2);
        assert_false(seen.out_of_order);
    }
}

static void who_wants_no_more_is_given_no_more(void **state)
{
    struct seen seen = {.wanted = 300};
    struct relay *relay = relay_create(see, &seen);
    uint64_t put = 0;
    (void)state;
    while (relay_put(relay, &(struct ledger_transaction){.sequence = put + 1}))
        put++;
    assert_true(put >= 300 && put <= 300 + 9 * 128); /* what was under way when it said so */
    relay_destroy(&relay);
    assert_int_equal(seen.count, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_arrive_in_their_order),
        cmocka_unit_test(who_wants_no_more_is_given_no_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
