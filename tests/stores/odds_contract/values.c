/* What is published is what is stored. See contract.h. */
#include "contract.h"

#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"

TEST_WITH(what_was_published_is_read_back, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    publish_one(store, catalog_change(SPORT_CRICKET, "[{\"gmid\":1}]"));
    publish_one(store, odds_change(SPORT_CRICKET, "1", "[{\"marketId\":\"1.1\"}]"));
    assert_stored(store, ODDS_CATALOG, SPORT_CRICKET, NULL, "[{\"gmid\":1}]", 12);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "1", "[{\"marketId\":\"1.1\"}]", 20);
}

TEST_WITH(a_fresh_store_holds_nothing, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    for (unsigned i = 0; i < SPORT_COUNT; i++) {
        assert_not_stored(store, ODDS_CATALOG, (enum sport)i, NULL);
        assert_not_stored(store, ODDS_MARKETS, (enum sport)i, "1");
    }
}

TEST_WITH(an_empty_document_is_stored_and_not_missing, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    publish_one(store, catalog_change(SPORT_TENNIS, ""));
    assert_stored(store, ODDS_CATALOG, SPORT_TENNIS, NULL, "", 0);
}

TEST_WITH(bytes_are_kept_exactly, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    char bytes[512];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7); /* every byte value, NUL and broken UTF-8 among them */
    publish_one(store, (struct odds_change){.kind = ODDS_CATALOG,
                                            .sport = SPORT_FOOTBALL,
                                            .bytes = bytes,
                                            .size = sizeof bytes});
    assert_stored(store, ODDS_CATALOG, SPORT_FOOTBALL, NULL, bytes, sizeof bytes);
}

TEST_OF(fixture, a_document_may_have_32_mib_and_no_byte_more)
{
    /* A busy machine may take longer for as much than the deadline of the other tests. */
    odds_store_close(&fixture->store);
    fixture->store = open_within(fixture, false, 60000);
    struct odds_store *store = fixture->store;
    size_t size = ODDS_VALUE_MAX;
    char *bytes = memory_alloc(size + 1);
    for (size_t i = 0; i < size + 1; i++)
        bytes[i] = (char)('a' + i % 23);
    struct odds_change change = {
        .kind = ODDS_CATALOG, .sport = SPORT_FOOTBALL, .bytes = bytes, .size = size + 1};
    struct error error = {{0}};
    assert_int_equal(odds_store_publish(store, &change, 1, &error), STATUS_INVALID);
    assert_not_stored(store, ODDS_CATALOG, SPORT_FOOTBALL, NULL);
    change.size = size;
    publish_one(store, change);
    assert_stored(store, ODDS_CATALOG, SPORT_FOOTBALL, NULL, bytes, size);
    memory_free(bytes);
}

TEST_WITH(ids_have_up_to_20_digits, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    publish_one(store, odds_change(SPORT_CRICKET, "99999999999999999999", "[1]"));
    publish_one(store, odds_change(SPORT_CRICKET, "9999999999999999999", "[2]"));
    publish_one(store, odds_change(SPORT_CRICKET, "18446744073709551615", "[3]"));
    publish_one(store, odds_change(SPORT_CRICKET, "18446744073709551616", "[4]"));
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "99999999999999999999", "[1]", 3);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "9999999999999999999", "[2]", 3);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "18446744073709551615", "[3]", 3);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "18446744073709551616", "[4]", 3);
}

TEST_WITH(sports_are_kept_apart, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    for (unsigned i = 0; i < SPORT_COUNT; i++) {
        char text[2] = {(char)('0' + i), '\0'};
        publish_one(store, catalog_change((enum sport)i, text));
        publish_one(store, odds_change((enum sport)i, "5", text));
    }
    for (unsigned i = 0; i < SPORT_COUNT; i++) {
        char text[2] = {(char)('0' + i), '\0'};
        assert_stored(store, ODDS_CATALOG, (enum sport)i, NULL, text, 1);
        assert_stored(store, ODDS_MARKETS, (enum sport)i, "5", text, 1);
    }
}

TEST_WITH(what_was_withdrawn_is_not_stored, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    publish_one(store, catalog_change(SPORT_CRICKET, "[]"));
    publish_one(store, odds_change(SPORT_CRICKET, "1", "[]"));
    publish_one(store, odds_change(SPORT_CRICKET, "1", NULL));
    assert_not_stored(store, ODDS_MARKETS, SPORT_CRICKET, "1");
    assert_stored(store, ODDS_CATALOG, SPORT_CRICKET, NULL, "[]", 2);
    publish_one(store, odds_change(SPORT_CRICKET, "1", NULL)); /* once more is fine */
    publish_one(store, catalog_change(SPORT_CRICKET, NULL));
    assert_not_stored(store, ODDS_CATALOG, SPORT_CRICKET, NULL);
}

TEST_WITH(the_events_that_have_odds_are_listed, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct error error = {{0}};
    struct event_id *list = NULL;
    size_t count = 99;
    const struct odds_change changes[] = {
        catalog_change(SPORT_TENNIS, "[]"),
        odds_change(SPORT_TENNIS, "7", "[1]"),
        odds_change(SPORT_TENNIS, "99999999999999999999", "[2]"),
        odds_change(SPORT_TENNIS, "70", "[3]"),
        odds_change(SPORT_CRICKET, "71", "[4]"),
    };
    assert_int_equal(odds_store_list_events(store, SPORT_TENNIS, &list, &count, &error), STATUS_OK);
    assert_int_equal(count, 0);
    memory_free(list);
    assert_int_equal(odds_store_publish(store, changes, 5, &error), STATUS_OK);
    assert_int_equal(odds_store_list_events(store, SPORT_TENNIS, &list, &count, &error), STATUS_OK);
    assert_int_equal(count, 3);
    unsigned seen = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 1; j < 4; j++)
            if (event_id_equals(&list[i], &changes[j].event))
                seen |= 1U << j;
    assert_int_equal(seen, 1U << 1 | 1U << 2 | 1U << 3);
    memory_free(list);
}

/* An engine may know it of what it has read or heard of alone. */
TEST_WITH(when_odds_were_published_is_told, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    const struct odds_change change = odds_change(SPORT_TENNIS, "7", "[1]");
    const struct odds_change other = odds_change(SPORT_TENNIS, "8", "[1]");
    int64_t before_ms = clock_wall_ms();
    assert_int_equal(odds_store_published_ms(store, SPORT_TENNIS, &change.event), 0);
    publish_one(store, change);
    assert_stored(store, ODDS_MARKETS, SPORT_TENNIS, "7", "[1]", 3);
    int64_t published_ms = odds_store_published_ms(store, SPORT_TENNIS, &change.event);
    assert_true(published_ms >= before_ms && published_ms <= clock_wall_ms());
    assert_not_stored(store, ODDS_MARKETS, SPORT_TENNIS, "8");
    assert_int_equal(odds_store_published_ms(store, SPORT_TENNIS, &other.event), 0);
    assert_int_equal(odds_store_published_ms(store, SPORT_CRICKET, &change.event), 0);
}

TEST_WITH(withdrawing_a_sport_takes_its_catalog_and_all_its_odds, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    char event[16];
    publish_one(store, catalog_change(SPORT_HORSE_RACING, "[]"));
    publish_one(store, catalog_change(SPORT_GREYHOUND_RACING, "[]"));
    publish_one(store, odds_change(SPORT_GREYHOUND_RACING, "3", "[]"));
    for (int i = 1; i <= 50; i++) {
        (void)snprintf(event, sizeof event, "%d", i * 37);
        publish_one(store, odds_change(SPORT_HORSE_RACING, event, "[]"));
    }
    withdraw_sport(store, SPORT_HORSE_RACING);
    assert_not_stored(store, ODDS_CATALOG, SPORT_HORSE_RACING, NULL);
    for (int i = 1; i <= 50; i++) {
        (void)snprintf(event, sizeof event, "%d", i * 37);
        assert_not_stored(store, ODDS_MARKETS, SPORT_HORSE_RACING, event);
    }
    assert_stored(store, ODDS_CATALOG, SPORT_GREYHOUND_RACING, NULL, "[]", 2);
    assert_stored(store, ODDS_MARKETS, SPORT_GREYHOUND_RACING, "3", "[]", 2);
    withdraw_sport(store, SPORT_TENNIS);
}

TEST_OF(fixture, a_batch_is_published_as_one)
{
    struct odds_change changes[] = {
        catalog_change(SPORT_CRICKET, "[{\"gmid\":1}]"),
        odds_change(SPORT_CRICKET, "1", "[1]"),
        odds_change(SPORT_TENNIS, "2", "[2]"),
        odds_change(SPORT_TENNIS, "3", NULL),
    };
    uint64_t before = stamp_of(fixture->store);
    publish(fixture->store, changes, 4);
    assert_stamp(fixture->store, before, true);
    uint64_t version = version_of(fixture->store, ODDS_CATALOG, SPORT_CRICKET, NULL);
    uint64_t second = version_of(fixture->store, ODDS_MARKETS, SPORT_CRICKET, "1");
    uint64_t third = version_of(fixture->store, ODDS_MARKETS, SPORT_TENNIS, "2");
    assert_true(version != 0 && second != 0 && third != 0);
    assert_true(!engine->one_version || (version == second && version == third));
    /* One change that cannot be takes all the others with it. */
    changes[0].size = (size_t)ODDS_VALUE_MAX + 1;
    changes[1].bytes = "[9]";
    struct error error = {{0}};
    assert_int_equal(odds_store_publish(fixture->store, changes, 4, &error), STATUS_INVALID);
    assert_stored(fixture->store, ODDS_MARKETS, SPORT_CRICKET, "1", "[1]", 3);
}

TEST_WITH(publishing_nothing_is_fine, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    uint64_t before = stamp_of(store);
    struct error error = {{0}};
    assert_int_equal(odds_store_publish(store, NULL, 0, &error), STATUS_OK);
    assert_stamp(store, before, false);
}
