/* Versions, the stamp, and what belongs to one moment. See contract.h. */
#include "contract.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "feed/publication.h"

/* ---- freshness ------------------------------------------------------------------------------- */

TEST_WITH(a_version_moves_with_every_publication, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    uint64_t seen[6] = {0};
    for (size_t i = 0; i < 6; i++) {
        if (i == 3)
            publish_one(store, odds_change(SPORT_CRICKET, "1", NULL));
        publish_one(store, odds_change(SPORT_CRICKET, "1", i % 2 == 0 ? "[1]" : "[2]"));
        seen[i] = version_of(store, ODDS_MARKETS, SPORT_CRICKET, "1");
        assert_true(seen[i] != 0);
        for (size_t j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
    }
}

TEST_WITH(a_version_stays_while_others_change, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    publish_one(store, odds_change(SPORT_CRICKET, "1", "[1]"));
    uint64_t version = version_of(store, ODDS_MARKETS, SPORT_CRICKET, "1");
    publish_one(store, odds_change(SPORT_CRICKET, "2", "[2]"));
    publish_one(store, catalog_change(SPORT_CRICKET, "[]"));
    assert_true(version == version_of(store, ODDS_MARKETS, SPORT_CRICKET, "1"));
}

TEST_WITH(the_stamp_moves_when_something_may_have_changed, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    uint64_t before = stamp_of(store);
    assert_stamp(store, before, false);
    publish_one(store, catalog_change(SPORT_CRICKET, "[]"));
    assert_stamp(store, before, true);
    uint64_t after = stamp_of(store);
    publish_one(store, catalog_change(SPORT_CRICKET, NULL));
    assert_stamp(store, after, true);
}

/* An engine that must ask is asked here, so that it can tell. */
static struct odds_versions versions_of(struct odds_store *store, const struct event_id *event)
{
    struct odds_versions versions = {0};
    for (int i = 0; i < 100; i++) {
        enum status status = odds_store_versions(store, SPORT_CRICKET, event, &versions);
        assert_true(status == STATUS_OK || status == STATUS_PENDING);
        if (status == STATUS_OK && versions.catalog != ODDS_VERSION_UNKNOWN &&
            versions.odds != ODDS_VERSION_UNKNOWN && versions.stamp == stamp_of(store))
            return versions;
        (void)version_of(store, ODDS_CATALOG, SPORT_CRICKET, NULL);
        if (event != NULL)
            (void)version_of(store, ODDS_MARKETS, SPORT_CRICKET, event->digits);
    }
    fail_msg("the store cannot tell");
    return versions;
}

TEST_WITH(the_versions_of_an_event_are_told, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct event_id event = event_of("77");
    struct odds_versions versions;
    if (engine->asks) {
        assert_int_equal(odds_store_versions(store, SPORT_CRICKET, &event, &versions),
                         STATUS_PENDING);
        return;
    }
    bool absence = strcmp(engine->name, "cluster") != 0; /* there it is always asked for */
    if (absence) {
        versions = versions_of(store, &event);
        assert_true(versions.catalog == 0 && versions.odds == 0);
    }
    publish_one(store, catalog_change(SPORT_CRICKET, "[]"));
    publish_one(store, odds_change(SPORT_CRICKET, "77", "[]"));
    uint64_t catalog = version_of(store, ODDS_CATALOG, SPORT_CRICKET, NULL);
    uint64_t odds = version_of(store, ODDS_MARKETS, SPORT_CRICKET, "77");
    versions = versions_of(store, &event);
    assert_true(versions.catalog == catalog && versions.odds == odds);
    assert_true(catalog != 0 && odds != 0);
    versions = versions_of(store, NULL);
    assert_true(versions.catalog == catalog && versions.odds == 0);
}

TEST_OF(fixture, another_process_is_seen_at_once)
{
    publish_one(fixture->store, odds_change(SPORT_CRICKET, "1", "[0]"));
    for (int i = 1; i <= 5; i++) {
        char bytes[16];
        uint64_t stamp = stamp_of(fixture->store);
        uint64_t version = version_of(fixture->store, ODDS_MARKETS, SPORT_CRICKET, "1");
        (void)snprintf(bytes, sizeof bytes, "[%d]", i);
        publish_in_another_process(fixture, "cricket", "1", bytes);
        uint64_t until_ms = clock_monotonic_ms() + engine->seen_within_ms;
        while (stamp_of(fixture->store) == stamp && clock_monotonic_ms() < until_ms)
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        assert_stamp(fixture->store, stamp, true);
        assert_true(version_of(fixture->store, ODDS_MARKETS, SPORT_CRICKET, "1") != version);
        assert_stored(fixture->store, ODDS_MARKETS, SPORT_CRICKET, "1", bytes, strlen(bytes));
    }
}

TEST_OF(fixture, what_was_published_outlives_the_handle)
{
    publish_one(fixture->store, catalog_change(SPORT_TENNIS, "[5]"));
    odds_store_close(&fixture->store);
    fixture->store = open_store(fixture, false);
    assert_stored(fixture->store, ODDS_CATALOG, SPORT_TENNIS, NULL, "[5]", 3);
}

struct polling {
    struct odds_store *store;
    uint64_t least; /* the number that must be there at least; grows */
    pthread_mutex_t lock;
    bool ending;
};

/* Reads "[N]" again and again: N never goes back below what a publication had returned for. */
static void *poll_numbers(void *argument)
{
    struct polling *polling = argument;
    for (bool ending = false; !ending;) {
        CHECK(pthread_mutex_lock(&polling->lock) == 0);
        uint64_t least = polling->least;
        ending = polling->ending;
        CHECK(pthread_mutex_unlock(&polling->lock) == 0);
        struct odds_value value = {0};
        CHECK(read_value(polling->store, ODDS_CATALOG, SPORT_FOOTBALL, NULL, &value) == STATUS_OK);
        if (least > 0)
            CHECK(strtoull(value.bytes + 1, NULL, 10) >= least);
        memory_free(value.bytes);
    }
    return NULL;
}

TEST_OF(fixture, threads_publish_while_others_read)
{
    struct polling polling = {.store = fixture->store, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, poll_numbers, &polling), 0);
    for (uint64_t i = 1; i <= 60; i++) {
        char bytes[32];
        (void)snprintf(bytes, sizeof bytes, "[%llu]", (unsigned long long)i);
        publish_one(fixture->store, catalog_change(SPORT_FOOTBALL, bytes));
        assert_int_equal(pthread_mutex_lock(&polling.lock), 0);
        polling.least = i;
        polling.ending = i == 60;
        assert_int_equal(pthread_mutex_unlock(&polling.lock), 0);
    }
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* ---- a value with a part of the catalog ------------------------------------------------------ */

static void assert_part(struct odds_store *store, size_t at, size_t max, const char *part)
{
    struct waiting_read waiting = {.read = {.kind = ODDS_MARKETS,
                                            .sport = SPORT_TENNIS,
                                            .event = event_of("1"),
                                            .catalog = {.at = at, .max = max}}};
    assert_int_equal(wait_for(store, &waiting), STATUS_OK);
    const struct odds_part *got = &waiting.read.catalog;
    assert_int_equal(got->size, strlen(part));
    assert_true(got->bytes != NULL || got->size == 0);
    assert_memory_equal(got->bytes == NULL ? "" : got->bytes, part, got->size);
    memory_free(waiting.read.catalog.bytes);
    memory_free(waiting.read.value.bytes);
}

TEST_WITH(a_part_of_the_catalog_comes_with_the_odds, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    assert_part(store, 0, 10, ""); /* neither is stored */
    publish_one(store, catalog_change(SPORT_TENNIS, "[0123456789]"));
    assert_part(store, 0, 4, "[012");
    publish_one(store, odds_change(SPORT_TENNIS, "1", "[7]"));
    assert_part(store, 0, 4, "[012");
    assert_part(store, 1, 10, "0123456789");
    assert_part(store, 9, 10, "89]");
    assert_part(store, 11, 1, "]");
    assert_part(store, 12, 1, "");
    assert_part(store, 4000, 4000, "");
    assert_part(store, 0, ODDS_VALUE_MAX, "[0123456789]");
}

/* Does the store hold that version of the catalog, so that no part is needed? */
static bool has_catalog(struct odds_store *store, uint64_t version)
{
    struct waiting_read waiting = {.read = {.kind = ODDS_MARKETS,
                                            .sport = SPORT_CRICKET,
                                            .event = event_of("1"),
                                            .catalog = {.at = 1, .max = 1},
                                            .catalog_version = version}};
    assert_int_equal(wait_for(store, &waiting), STATUS_OK);
    const struct odds_read *read = &waiting.read;
    assert_true(read->same_catalog ? read->catalog.bytes == NULL : read->catalog.size == 1);
    bool same = read->same_catalog;
    memory_free(read->catalog.bytes);
    memory_free(read->value.bytes);
    return same;
}

TEST_WITH(a_catalog_that_the_caller_has_needs_no_part, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    publish_one(store, catalog_change(SPORT_CRICKET, "[1]"));
    publish_one(store, odds_change(SPORT_CRICKET, "1", "[7]"));
    uint64_t first = version_of(store, ODDS_CATALOG, SPORT_CRICKET, NULL);
    bool tells = has_catalog(store, first); /* an engine need not */
    assert_false(has_catalog(store, 0));
    publish_one(store, odds_change(SPORT_CRICKET, "1", "[8]"));
    assert_int_equal(has_catalog(store, first), tells);
    publish_one(store, catalog_change(SPORT_CRICKET, "[2]"));
    assert_false(has_catalog(store, first));
    assert_int_equal(has_catalog(store, version_of(store, ODDS_CATALOG, SPORT_CRICKET, NULL)),
                     tells);
}

static void *publish_pairs(void *argument)
{
    struct polling *polling = argument;
    for (unsigned number = 1; number <= 300; number++) {
        char catalog[32];
        char odds[32];
        (void)snprintf(catalog, sizeof catalog, "[%06u]", number);
        (void)snprintf(odds, sizeof odds, "[%06u]", number);
        struct odds_change changes[] = {odds_change(SPORT_TENNIS, "1", odds),
                                        catalog_change(SPORT_TENNIS, catalog)};
        publish(polling->store, changes, 2);
    }
    assert_int_equal(pthread_mutex_lock(&polling->lock), 0);
    polling->ending = true;
    assert_int_equal(pthread_mutex_unlock(&polling->lock), 0);
    return NULL;
}

/* What is published together is read together, or said not to be. */
TEST_WITH(a_part_of_the_catalog_is_of_the_moment_of_the_odds, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct polling polling = {.store = store, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    size_t together = 0;
    assert_int_equal(pthread_create(&thread, NULL, publish_pairs, &polling), 0);
    /* On a busy machine all may be published between two reads; at rest they are of one moment. */
    for (bool ending = false; !ending || together == 0;) {
        struct waiting_read waiting = {.read = {.kind = ODDS_MARKETS,
                                                .sport = SPORT_TENNIS,
                                                .event = event_of("1"),
                                                .catalog = {.max = 8}}};
        assert_int_equal(wait_for(store, &waiting), STATUS_OK);
        const struct odds_read *read = &waiting.read;
        if (read->catalog.bytes != NULL && read->catalog.size == read->value.size) {
            assert_memory_equal(read->catalog.bytes, read->value.bytes, read->value.size);
            together++;
        } else {
            assert_true(read->catalog.bytes == NULL || read->value.size == 0);
        }
        memory_free(read->catalog.bytes);
        memory_free(read->value.bytes);
        assert_int_equal(pthread_mutex_lock(&polling.lock), 0);
        ending = polling.ending;
        assert_int_equal(pthread_mutex_unlock(&polling.lock), 0);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
}
