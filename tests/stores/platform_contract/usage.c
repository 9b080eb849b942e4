/*
 * The contract of what customers use: what writers bring adds up.
 */
#include "platform_contract/contract.h"

static struct usage_record record(const char *customer_id, int64_t day, enum usage_group group,
                                  uint64_t requests)
{
    struct usage_record made = {.day = day, .group = group, .requests = {requests, 0, 1, 0}};
    (void)snprintf(made.customer_id, sizeof made.customer_id, "%s", customer_id);
    return made;
}

struct listed {
    size_t count, stop_after; /* 0: never */
    struct usage_record records[8];
};

static bool note(void *context, const struct usage_record *visited)
{
    struct listed *listed = context;
    assert_true(listed->count < 8);
    listed->records[listed->count++] = *visited;
    return listed->count != listed->stop_after;
}

static struct listed list(struct fixture *fixture, const char *customer_id, int64_t from_day,
                          int64_t to_day)
{
    struct listed listed = {0};
    OK(platform_usage_list(fixture->store, customer_id, from_day, to_day, note, &listed,
                           &fixture->error));
    return listed;
}

TEST_OF(fixture, usage_adds_up_by_customer_day_and_group)
{
    const struct usage_record records[] = {
        record("cus_Two", 20002, USAGE_WALLET, 7), record("cus_One", 20001, USAGE_SPORTS, 5),
        record("cus_One", 20001, USAGE_WALLET, 3), record("", 20001, USAGE_OTHER, 1)};
    struct platform_store *other = open_store(fixture, false);
    OK(platform_usage_add(fixture->store, records, 4, &fixture->error));
    OK(platform_usage_add(other, records, 2, &fixture->error));
    OK(platform_usage_add(other, records, 0, &fixture->error)); /* nothing is fine too */
    struct listed all = list(fixture, NULL, 20001, 20002);
    assert_int_equal(all.count, 4);
    assert_string_equal(all.records[0].customer_id, "");
    assert_int_equal(all.records[1].group, USAGE_SPORTS);
    assert_int_equal(all.records[1].requests[0], 10);
    assert_int_equal(all.records[1].requests[2], 2);
    assert_int_equal(all.records[2].group, USAGE_WALLET);
    assert_int_equal(all.records[2].requests[0], 3);
    assert_string_equal(all.records[3].customer_id, "cus_Two");
    assert_int_equal(all.records[3].requests[0], 14);
    assert_int_equal(list(fixture, NULL, 20002, 20010).count, 1);
    assert_int_equal(list(fixture, "cus_One", 0, 100000).count, 2);
    assert_int_equal(list(fixture, "cus_One", 20002, 20002).count, 0);
    assert_int_equal(list(fixture, "cus_Nobody", 0, 100000).count, 0);
    struct listed few = {.stop_after = 2};
    OK(platform_usage_list(other, NULL, 0, 100000, note, &few, &fixture->error));
    assert_int_equal(few.count, 2);
    platform_store_close(&other);
}

TEST_OF(fixture, as_much_usage_as_goes_into_one_transaction_is_written)
{
    static struct usage_record records[PLATFORM_USAGE_MAX];
    for (unsigned i = 0; i < PLATFORM_USAGE_MAX; i++)
        records[i] = record("cus_One", 20000 + i, USAGE_GAMES, i);
    for (int i = 0; i < 2; i++)
        OK(platform_usage_add(fixture->store, records, PLATFORM_USAGE_MAX, &fixture->error));
    struct listed last = list(fixture, "cus_One", 20000 + PLATFORM_USAGE_MAX - 1, 100000);
    assert_int_equal(last.count, 1);
    assert_int_equal(last.records[0].requests[0], 2 * (PLATFORM_USAGE_MAX - 1));
}
