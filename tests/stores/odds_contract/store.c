/* Facts, health, and which URIs open. See contract.h. */
#include "contract.h"

#include <stdatomic.h>
#include <time.h>
#include <uv.h>

#include "base/clock.h"
#include "base/mailbox.h"
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

/* The linker puts these two in front of the real ones (--wrap). */
void __real_mailbox_post(struct mailbox *mailbox, struct mail *mail);
void __wrap_mailbox_post(struct mailbox *mailbox, struct mail *mail);
void __real_uv_sem_post(uv_sem_t *semaphore);
void __wrap_uv_sem_post(uv_sem_t *semaphore);

static _Thread_local bool slow_to_wait; /* this thread goes on when its mail was answered */
static atomic_uint posts;

void __wrap_uv_sem_post(uv_sem_t *semaphore)
{
    __real_uv_sem_post(semaphore);
    (void)atomic_fetch_add(&posts, 1);
}

void __wrap_mailbox_post(struct mailbox *mailbox, struct mail *mail)
{
    unsigned before = atomic_load(&posts);
    __real_mailbox_post(mailbox, mail);
    for (int i = 0; slow_to_wait && atomic_load(&posts) == before && i < 5000; i++)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

TEST_WITH(an_answer_may_come_before_it_is_waited_for, set_up, tear_down)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct error error = {{0}};
    slow_to_wait = true;
    enum status status = odds_store_ping(store, ODDS_TO_SERVE, &error);
    slow_to_wait = false;
    assert_string_equal(error.text, "");
    assert_int_equal(status, STATUS_OK);
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
