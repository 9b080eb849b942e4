/* Facts, health, and which URIs open. See contract.h. */
#include "contract.h"

#include "base/clock.h"
#include "feed/publication.h"

/* ---- facts and health ------------------------------------------------------------------------ */

TEST_WITH(facts_tell_the_last_publication_of_each_sport, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct odds_facts facts;
    int64_t before_ms = clock_wall_ms();
    publish_one(store, odds_change(SPORT_CRICKET, "1", "[]"));
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "1", "[]", 2);
    odds_store_facts(store, &facts);
    assert_true(facts.published_ms[SPORT_CRICKET] >= before_ms);
    assert_true(facts.published_ms[SPORT_CRICKET] <= clock_wall_ms());
    assert_true(facts.published_ms[SPORT_TENNIS] == 0);
    assert_true(facts.reads >= 1);
    assert_true(facts.errors == 0);
}

TEST_WITH(a_store_that_works_answers_a_ping, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct error error = {{0}};
    assert_int_equal(odds_store_ping(store, ODDS_TO_READ, &error), STATUS_OK);
    assert_int_equal(odds_store_ping(store, ODDS_TO_SERVE, &error), STATUS_OK);
}

/* ---- opening --------------------------------------------------------------------------------- */

TEST(an_unknown_uri_is_refused_by_both_ways_of_opening)
{
    const char *wrong[] = {NULL, "", "embedded", "embedded:", "lmdb:/tmp/x", "/tmp/x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct odds_store_options options = {.uri = wrong[i], .timeout_ms = 100};
        struct odds_store *store = NULL;
        struct error error = {{0}};
        assert_int_equal(odds_store_open(&store, &options, &error), STATUS_INVALID);
        options.patient = true;
        assert_int_equal(odds_store_open(&store, &options, &error), STATUS_INVALID);
        assert_null(store);
        assert_true(error.text[0] != '\0');
    }
}
