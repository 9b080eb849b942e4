/* console/lockout: how many sign-ins may fail from an address. */
#include "console/lockout.h"
#include "tests.h"

static struct address numbered(unsigned number)
{
    char text[32];
    struct address address;
    (void)snprintf(text, sizeof text, "10.0.%u.%u", number / 256, number % 256);
    assert_int_equal(address_parse(text_of(text), &address), STATUS_OK);
    return address;
}

TEST(an_address_that_fails_too_often_waits_for_the_minute_to_end)
{
    struct lockout lockout = {0};
    struct address one = numbered(1);
    struct address other = numbered(2);
    for (uint64_t i = 0; i < LOCKOUT_FAILURES_MAX; i++)
        assert_int_equal(lockout_note_failure(&lockout, &one, 1000 + i), 0);
    assert_int_equal(lockout_note_failure(&lockout, &one, 1005), 60);
    assert_int_equal(lockout_note_failure(&lockout, &one, 1000 + LOCKOUT_WINDOW_MS - 1), 1);
    assert_int_equal(lockout_note_failure(&lockout, &other, 1005), 0);
    /* From then on it counts from 1 again. */
    for (uint64_t i = 0; i < LOCKOUT_FAILURES_MAX; i++)
        assert_int_equal(lockout_note_failure(&lockout, &one, 1000 + LOCKOUT_WINDOW_MS + i), 0);
    assert_int_equal(lockout_note_failure(&lockout, &one, 1005 + LOCKOUT_WINDOW_MS), 60);
}

TEST(who_guesses_from_many_addresses_keeps_nobody_else_out)
{
    struct lockout lockout = {0};
    struct address fresh = numbered(60000);
    for (unsigned i = 0; i < 1000; i++) {
        struct address address = numbered(i);
        assert_int_equal(lockout_note_failure(&lockout, &address, 5000), 0);
    }
    assert_int_equal(lockout_note_failure(&lockout, &fresh, 5000), 0);
}

static struct address parsed(const char *text)
{
    struct address address;
    assert_int_equal(address_parse(text_of(text), &address), STATUS_OK);
    return address;
}

TEST(a_network_of_ipv6_is_one_client)
{
    struct lockout lockout = {0};
    struct address neighbour = parsed("2001:db8:0:1:ffff::ffff");
    struct address other = parsed("2001:db8:0:2::1");
    for (unsigned i = 0; i < LOCKOUT_FAILURES_MAX; i++) {
        char text[40];
        (void)snprintf(text, sizeof text, "2001:db8:0:1::%u", i + 1);
        struct address address = parsed(text);
        assert_int_equal(lockout_note_failure(&lockout, &address, 5000), 0);
    }
    assert_int_equal(lockout_note_failure(&lockout, &neighbour, 5000), 60);
    assert_int_equal(lockout_note_failure(&lockout, &other, 5000), 0);
}

TEST(of_more_addresses_than_there_is_room_for_the_oldest_is_forgotten)
{
    struct lockout lockout = {0};
    for (unsigned i = 0; i < 1000; i++) {
        struct address address = numbered(i);
        for (unsigned j = 0; j < LOCKOUT_FAILURES_MAX; j++)
            assert_int_equal(
                lockout_note_failure(&lockout, &address, (uint64_t)i * LOCKOUT_WINDOW_MS), 0);
    }
    struct address last = numbered(999);
    assert_int_equal(lockout_note_failure(&lockout, &last, 999ULL * LOCKOUT_WINDOW_MS), 60);
}
