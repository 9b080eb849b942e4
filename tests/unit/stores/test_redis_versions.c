/* Which version of what is known to be stored. */
#include "base/memory.h"
#include "stores/odds/redis/versions.h"
#include "tests.h"

static int set_up(void **state)
{
    *state = redis_versions_create();
    return 0;
}

static int tear_down(void **state)
{
    struct redis_versions *versions = *state;
    redis_versions_destroy(&versions);
    return 0;
}

static struct odds_subject subject_of(unsigned number)
{
    struct odds_subject subject = {.kind = ODDS_MARKETS, .sport = SPORT_CRICKET};
    char digits[16];
    (void)snprintf(digits, sizeof digits, "%u", number);
    assert_int_equal(event_id_parse(text_of(digits), &subject.event), STATUS_OK);
    return subject;
}

static uint64_t see(struct redis_versions *versions, const struct odds_subject *subject,
                    const char *bytes, bool current)
{
    struct redis_seen seen = {.stored = true, .readable = true, .current = current};
    digest_sha256(bytes, strlen(bytes), seen.digest);
    return redis_versions_note(versions, subject, &seen);
}

TEST_WITH(nothing_is_known_at_first, set_up, tear_down)
{
    struct odds_subject subject = subject_of(1);
    struct odds_subject catalog = {.kind = ODDS_CATALOG, .sport = SPORT_TENNIS};
    assert_true(redis_versions_find(*state, &subject) == ODDS_VERSION_UNKNOWN);
    assert_true(redis_versions_find(*state, &catalog) == ODDS_VERSION_UNKNOWN);
}

TEST_WITH(what_was_seen_is_known_until_it_is_forgotten, set_up, tear_down)
{
    struct odds_subject one = subject_of(1);
    struct odds_subject other = subject_of(2);
    uint64_t first = see(*state, &one, "[1]", true);
    uint64_t second = see(*state, &other, "[1]", true);
    assert_true(first != second && first != 0 && second != 0);
    uint64_t stamp = redis_versions_stamp(*state);
    redis_versions_forget(*state, &one);
    assert_true(redis_versions_stamp(*state) != stamp);
    assert_true(redis_versions_find(*state, &one) == ODDS_VERSION_UNKNOWN);
    assert_true(redis_versions_find(*state, &other) == second);
    redis_versions_forget_all(*state);
    assert_true(redis_versions_find(*state, &other) == ODDS_VERSION_UNKNOWN);
}

TEST_WITH(the_same_bytes_keep_their_version_and_others_never_have_it, set_up, tear_down)
{
    struct odds_subject one = subject_of(1);
    uint64_t first = see(*state, &one, "[1]", true);
    redis_versions_forget(*state, &one);
    assert_true(see(*state, &one, "[1]", true) == first);
    uint64_t second = see(*state, &one, "[2]", true);
    uint64_t third = see(*state, &one, "[1]", true);
    assert_true(second != first && third != first && third != second);
}

TEST_WITH(what_was_overtaken_is_not_known, set_up, tear_down)
{
    struct odds_subject one = subject_of(1);
    (void)see(*state, &one, "[1]", false);
    assert_true(redis_versions_find(*state, &one) == ODDS_VERSION_UNKNOWN);
}

TEST_WITH(what_changed_unheard_moves_the_stamp, set_up, tear_down)
{
    struct odds_subject one = subject_of(1);
    (void)see(*state, &one, "[1]", true);
    uint64_t stamp = redis_versions_stamp(*state);
    (void)see(*state, &one, "[1]", true);
    assert_true(redis_versions_stamp(*state) == stamp);
    (void)see(*state, &one, "[2]", true);
    assert_true(redis_versions_stamp(*state) != stamp);
}

TEST_WITH(what_is_not_stored_is_version_0, set_up, tear_down)
{
    struct odds_subject one = subject_of(1);
    struct redis_seen missing = {.readable = true, .current = true};
    assert_true(redis_versions_note(*state, &one, &missing) == 0);
    assert_true(redis_versions_find(*state, &one) == 0);
}

TEST_WITH(what_cannot_be_read_has_a_version_that_no_document_had, set_up, tear_down)
{
    struct odds_subject one = subject_of(1);
    uint64_t first = see(*state, &one, "[1]", true);
    struct redis_seen unreadable = {.stored = true, .current = true};
    uint64_t second = redis_versions_note(*state, &one, &unreadable);
    assert_true(second != first && second != 0);
    assert_true(redis_versions_note(*state, &one, &unreadable) == second);
    redis_versions_forget(*state, &one);
    assert_true(redis_versions_note(*state, &one, &unreadable) != second);
    assert_true(see(*state, &one, "[1]", true) != first);
}

TEST_WITH(what_expires_is_forgotten_in_time, set_up, tear_down)
{
    const uint64_t ms = 1000000;
    struct odds_subject one = subject_of(1);
    struct odds_subject other = subject_of(2);
    struct redis_seen seen = {.readable = true, .current = true, .expires_ns = 1000 * ms};
    (void)redis_versions_note(*state, &one, &seen);
    seen.expires_ns = 2000 * ms;
    (void)redis_versions_note(*state, &other, &seen);
    uint64_t stamp = redis_versions_stamp(*state);
    assert_false(redis_versions_expire(*state, 700 * ms));
    assert_true(redis_versions_find(*state, &one) == 0 && redis_versions_stamp(*state) == stamp);
    assert_false(redis_versions_is_overdue(*state, 999 * ms));
    assert_true(
        redis_versions_is_overdue(*state, 1000 * ms)); /* whoever looks now may not use it */
    assert_true(redis_versions_expire(*state, 800 * ms));
    assert_false(redis_versions_is_overdue(*state, 1000 * ms));
    assert_true(redis_versions_find(*state, &one) == ODDS_VERSION_UNKNOWN);
    assert_true(redis_versions_find(*state, &other) == 0);
    assert_true(redis_versions_stamp(*state) != stamp);
    assert_true(redis_versions_is_overdue(*state, 2001 * ms));
    assert_true(redis_versions_expire(*state, 2001 * ms));
    assert_false(redis_versions_is_overdue(*state, 3000 * ms));
    assert_true(redis_versions_find(*state, &other) == ODDS_VERSION_UNKNOWN);
}

/* What finds no room takes the place of others; what is known of it is right all the same. */
TEST_WITH(it_is_bounded, set_up, tear_down)
{
    enum { MANY = 200000 };
    uint64_t *versions = memory_alloc_zeroed(MANY, sizeof *versions);
    size_t known = 0;
    for (unsigned i = 1; i < MANY; i++) {
        struct odds_subject subject = subject_of(i);
        versions[i] = see(*state, &subject, "[1]", true);
    }
    for (unsigned i = 1; i < MANY; i++) {
        struct odds_subject subject = subject_of(i);
        uint64_t version = redis_versions_find(*state, &subject);
        assert_true(version == versions[i] || version == ODDS_VERSION_UNKNOWN);
        known += version != ODDS_VERSION_UNKNOWN;
    }
    assert_true(known > 60000 && known <= 65536);
    memory_free(versions);
}

static bool is_published(struct redis_versions *versions, const char *bytes, uint64_t expires_ns)
{
    struct odds_subject one = subject_of(1);
    struct redis_seen seen = {
        .stored = true, .readable = true, .asked = true, .expires_ns = expires_ns};
    digest_sha256(bytes, strlen(bytes), seen.digest);
    (void)redis_versions_note(versions, &one, &seen);
    return seen.published;
}

TEST_WITH(where_changes_are_not_reported_a_read_finds_publications, set_up, tear_down)
{
    const uint64_t second_ns = 1000000000;
    assert_false(is_published(*state, "[1]", 0)); /* perhaps long ago */
    assert_false(is_published(*state, "[1]", 0));
    assert_true(is_published(*state, "[2]", 0));
    assert_true(is_published(*state, "[3]", 10 * second_ns));
    assert_false(is_published(*state, "[3]", 10 * second_ns + 1000));
    assert_true(is_published(*state, "[3]", 12 * second_ns)); /* a sign of life */
}

/* Who goes by the stamp would not hear of its end, once it is not in the table. */
TEST_WITH(what_expires_moves_the_stamp_when_its_place_is_taken, set_up, tear_down)
{
    enum { MANY = 200000 };
    struct odds_subject one = subject_of(MANY);
    struct redis_seen seen = {.readable = true, .current = true, .expires_ns = 1000};
    (void)redis_versions_note(*state, &one, &seen);
    uint64_t stamp = redis_versions_stamp(*state);
    for (unsigned i = 1; i < MANY; i++) {
        struct odds_subject subject = subject_of(i);
        (void)see(*state, &subject, "[1]", true);
    }
    assert_true(redis_versions_find(*state, &one) == ODDS_VERSION_UNKNOWN);
    assert_true(redis_versions_stamp(*state) == stamp + 1);
}
