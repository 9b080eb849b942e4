/* The interest in events. See contract.h. */
#include "contract.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

static size_t list_interest(struct odds_store *store, enum sport sport, int64_t since_ms,
                            struct odds_interest **list)
{
    size_t count = 0;
    struct error error = {{0}};
    if (odds_store_list_interest(store, sport, since_ms, list, &count, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    return count;
}

/* Interest is written in the background: waits until `count` events are listed. */
static struct odds_interest *wait_for_interest(struct odds_store *store, enum sport sport,
                                               size_t count)
{
    for (int i = 0; i < 1000; i++) {
        struct odds_interest *list = NULL;
        size_t listed = list_interest(store, sport, 0, &list);
        if (listed == count)
            return list;
        memory_free(list);
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    fail_msg("interest in %zu events was never written", count);
    return NULL;
}

static void note(struct odds_store *store, enum sport sport, const char *digits)
{
    struct event_id event = event_of(digits);
    odds_store_note_interest(store, sport, &event);
    (void)nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL); /* another millisecond */
}

TEST_WITH(interest_is_listed_latest_first, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    note(store, SPORT_CRICKET, "1");
    note(store, SPORT_CRICKET, "99999999999999999999");
    note(store, SPORT_CRICKET, "3");
    note(store, SPORT_CRICKET, "1"); /* asked for again: latest now */
    note(store, SPORT_TENNIS, "8");
    struct odds_interest *list = wait_for_interest(store, SPORT_CRICKET, 3);
    /* That it was asked for again is written when the second is over. */
    for (int i = 0; i < 200 && strcmp(list[0].event.digits, "1") != 0; i++) {
        memory_free(list);
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        list = wait_for_interest(store, SPORT_CRICKET, 3);
    }
    assert_string_equal(list[0].event.digits, "1");
    assert_string_equal(list[1].event.digits, "3");
    assert_string_equal(list[2].event.digits, "99999999999999999999");
    assert_true(list[0].requested_ms > list[1].requested_ms);
    /* `since` is inclusive */
    struct odds_interest *later = NULL;
    assert_int_equal(list_interest(store, SPORT_CRICKET, list[1].requested_ms, &later), 2);
    memory_free(later);
    later = NULL;
    assert_int_equal(list_interest(store, SPORT_CRICKET, list[0].requested_ms + 1, &later), 0);
    memory_free(later);
    memory_free(list);
    memory_free(wait_for_interest(store, SPORT_TENNIS, 1));
}

TEST_WITH(interest_in_one_event_is_written_once_a_second, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct event_id event = event_of("42");
    uint64_t until_ms = clock_monotonic_ms() + 1500;
    while (clock_monotonic_ms() < until_ms)
        for (int i = 0; i < 100; i++)
            odds_store_note_interest(store, SPORT_CRICKET, &event);
    memory_free(wait_for_interest(store, SPORT_CRICKET, 1));
    struct odds_facts facts;
    odds_store_facts(store, &facts);
    assert_true(facts.interest_written >= 1);
    assert_true(facts.interest_written <= 2 + (clock_monotonic_ms() - until_ms + 1500) / 1000);
    assert_true(facts.interest_dropped == 0);
}

TEST_WITH(more_interest_than_fits_is_dropped_and_counted, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    char digits[24];
    for (int i = 1; i <= 100000; i++) {
        (void)snprintf(digits, sizeof digits, "%d", i);
        struct event_id event = event_of(digits);
        odds_store_note_interest(store, SPORT_CRICKET, &event);
    }
    struct odds_facts facts;
    odds_store_facts(store, &facts);
    assert_true(facts.interest_dropped > 0);
}

TEST_WITH(interest_does_not_move_the_stamp, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    uint64_t before = stamp_of(store);
    note(store, SPORT_CRICKET, "1");
    memory_free(wait_for_interest(store, SPORT_CRICKET, 1));
    assert_stamp(store, before, false);
}

TEST_OF(fixture, interest_noted_before_closing_is_written)
{
    note(fixture->store, SPORT_CRICKET, "1");
    odds_store_close(&fixture->store);
    fixture->store = open_store(fixture, false);
    struct odds_interest *list = NULL;
    assert_int_equal(list_interest(fixture->store, SPORT_CRICKET, 0, &list), 1);
    memory_free(list);
}
