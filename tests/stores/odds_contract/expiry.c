/* Values that are stored for a time. See contract.h. */
#include "contract.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"

#define MANY 5000 /* more than one commit's list of changes holds */

static struct odds_change expiring(struct odds_change change, uint32_t seconds)
{
    change.expires_s = seconds;
    return change;
}

/* Of a feed that has published these bytes. */
static struct odds_change renewal(const char *event, const char *bytes, uint32_t seconds)
{
    struct odds_change change = expiring(odds_change(SPORT_CRICKET, event, NULL), seconds);
    change.renew = true;
    digest_sha1(bytes, strlen(bytes), change.renewed);
    return change;
}

/* Of the embedded store all who open it have the same clock. A store on Redis counts from before its
 * question, so a value may be over for it while Redis, and another store, still have it. */
static bool ends_for_all_at_once(void)
{
    return strcmp(engine->name, "embedded") == 0;
}

/* Its odds are of one byte or more as long as they are stored. */
static void wait_until_gone(struct odds_store *store, const char *event)
{
    uint64_t give_up_ms = clock_monotonic_ms() + 60000;
    while (version_of(store, ODDS_MARKETS, SPORT_CRICKET, event) != 0) {
        assert_true(clock_monotonic_ms() < give_up_ms);
        clock_pause_ns(5000000);
    }
}

TEST_WITH(a_value_is_gone_when_its_time_is_over, set_up, tear_down)
{
    const struct fixture *fixture = *state;
    struct odds_store *store = fixture->store;
    publish_one(store, odds_change(SPORT_CRICKET, "1", "[1]"));
    publish_one(store, expiring(odds_change(SPORT_CRICKET, "2", "[2]"), 1));
    publish_one(store, expiring(odds_change(SPORT_CRICKET, "3", "[3]"), 1000));
    publish_one(store, expiring(catalog_change(SPORT_CRICKET, "[]"), 1));
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "3", "[3]", 3);
    uint64_t before = stamp_of(store);
    wait_until_gone(store, "2");
    assert_stamp(store, before, true); /* waits: no saying while something is over */
    while (version_of(store, ODDS_CATALOG, SPORT_CRICKET, NULL) != 0)
        clock_pause_ns(5000000);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "1", "[1]", 3);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "3", "[3]", 3);
    publish_one(store, odds_change(SPORT_CRICKET, "2", "[4]"));
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "2", "[4]", 3);
}

TEST_WITH(a_renewed_value_stays_and_keeps_its_version, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    uint64_t version, began_ms;
    do { /* a busy machine may not come to the renewal in time */
        began_ms = clock_monotonic_ms();
        publish_one(store, expiring(odds_change(SPORT_CRICKET, "1", "[1]"), 2));
        version = version_of(store, ODDS_MARKETS, SPORT_CRICKET, "1");
        publish_one(store, renewal("1", "[1]", 1000));
    } while (clock_monotonic_ms() - began_ms >= 2000);
    publish_one(store, expiring(odds_change(SPORT_CRICKET, "2", "[2]"), 2));
    publish_one(store, renewal("9", "[9]", 1000)); /* which is not there */
    wait_until_gone(store, "2");
    assert_true(version_of(store, ODDS_MARKETS, SPORT_CRICKET, "1") == version);
    /* A server may miss a value a moment before Redis does; then this comes in time. */
    bool back = true;
    for (int tries = 0; tries < 5 && back; tries++) {
        publish_one(store, renewal("2", "[2]", 1));
        back = version_of(store, ODDS_MARKETS, SPORT_CRICKET, "2") != 0;
        if (back)
            wait_until_gone(store, "2");
    }
    assert_false(back);
    assert_not_stored(store, ODDS_MARKETS, SPORT_CRICKET, "9");
}

TEST_WITH(a_value_that_another_feed_has_replaced_is_not_renewed, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    publish_one(store, odds_change(SPORT_CRICKET, "1", "[1]")); /* to stay */
    publish_one(store, expiring(odds_change(SPORT_CRICKET, "2", "[22]"), 2));
    publish_one(store, renewal("1", "[1]", 1));
    publish_one(store, renewal("2", "[2]", 1000));
    wait_until_gone(store, "2");
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "1", "[1]", 3);
}

TEST_WITH(the_last_publication_says_whether_a_value_expires, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    publish_one(store, expiring(odds_change(SPORT_CRICKET, "1", "[1]"), 1));
    publish_one(store, expiring(odds_change(SPORT_CRICKET, "2", "[2]"), 1));
    publish_one(store, expiring(odds_change(SPORT_CRICKET, "3", "[3]"), 1));
    publish_one(store, odds_change(SPORT_CRICKET, "1", "[4]"));
    publish_one(store, odds_change(SPORT_CRICKET, "2", NULL));
    publish_one(store, odds_change(SPORT_CRICKET, "2", "[5]"));
    wait_until_gone(store, "3");
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "1", "[4]", 3);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "2", "[5]", 3);
}

TEST_WITH(an_opening_finds_which_values_expire, set_up, tear_down)
{
    struct fixture *fixture = *state;
    publish_one(fixture->store, expiring(odds_change(SPORT_CRICKET, "1", "[1]"), 2));
    publish_one(fixture->store, expiring(odds_change(SPORT_CRICKET, "2", "[2]"), 1000));
    odds_store_close(&fixture->store);
    fixture->store = open_store(fixture, false);
    assert_stored(fixture->store, ODDS_MARKETS, SPORT_CRICKET, "2", "[2]", 3);
    wait_until_gone(fixture->store, "1");
    odds_store_close(&fixture->store);
    fixture->store = open_store(fixture, false);
    if (!ends_for_all_at_once())
        wait_until_gone(fixture->store, "1");
    assert_not_stored(fixture->store, ODDS_MARKETS, SPORT_CRICKET, "1");
    assert_stored(fixture->store, ODDS_MARKETS, SPORT_CRICKET, "2", "[2]", 3);
}

TEST_WITH(many_values_expire_together_and_are_deleted, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct odds_change *changes = memory_alloc_zeroed(MANY, sizeof *changes);
    struct event_id *events = NULL;
    size_t count = 0;
    char event[16];
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(event, sizeof event, "%zu", i + 1);
        changes[i] = expiring(odds_change(SPORT_CRICKET, event, "[1]"), 2);
    }
    publish(store, changes, MANY);
    memory_free(changes);
    wait_until_gone(store, "5000");
    uint64_t give_up_ms = clock_monotonic_ms() + 60000;
    do {
        assert_true(clock_monotonic_ms() < give_up_ms);
        for (int i = 0; i < 8; i++)
            publish_one(store, odds_change(SPORT_CRICKET, "1", "[2]"));
        assert_int_equal(odds_store_list_events(store, SPORT_CRICKET, &events, &count, NULL),
                         STATUS_OK);
        memory_free(events);
    } while (count != 1 && !ends_for_all_at_once());
    assert_int_equal(count, 1);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "1", "[2]", 3);
}
