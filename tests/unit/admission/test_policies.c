/* admission/policies: the threads that keep the table fresh and write uses back, against a store
 * that has troubles. */
#include "admission/admission.h"
#include "fake_platform.h"
#include "question.h"
#include "tests.h"

#define PATIENCE_MS 60000U

static int set_up(void **state)
{
    fake_reset();
    return 0;
}

/* Whatever happened, every handle that was opened has been closed. */
static int tear_down(void **state)
{
    return fake.opened == fake.closed ? 0 : -1;
}

static struct policies *start(void)
{
    const struct platform_store_options store = {.uri = "fake:"};
    return policies_create(&store, 2);
}

static struct policies *start_and_wait(void)
{
    struct policies *policies = start();
    assert_true(wait_until_ready(policies, PATIENCE_MS));
    return policies;
}

static struct policies_facts facts_of(struct policies *policies)
{
    struct policies_facts facts;
    policies_facts(policies, &facts);
    return facts;
}

static void settle(struct policies *policies)
{
    assert_true(fake_settle(policies, PATIENCE_MS));
}

/* Waits until one more look at the store has failed. */
static void wait_for_error(struct policies *policies)
{
    uint64_t before = facts_of(policies).errors;
    uint64_t began_ms = clock_monotonic_ms();
    while (facts_of(policies).errors == before) {
        struct timespec moment = {.tv_nsec = 1000000};
        (void)nanosleep(&moment, NULL);
        assert_true(clock_monotonic_ms() - began_ms < PATIENCE_MS);
    }
}

static enum admission_denial ask(struct admission *admission, const char *peer, const char *key)
{
    const struct policy *policy;
    struct address client;
    struct admission_question question = {.api_key_count = 1,
                                          .api_key = text_of(key),
                                          .now_mono_ms = 0, /* no table is too old */
                                          .now_wall_ms = clock_wall_ms()};
    assert_int_equal(address_parse(text_of(peer), &question.peer), STATUS_OK);
    return question_judge(admission, NULL, &question, &policy, &client);
}

TEST_WITH(everything_is_read_once_and_then_only_what_changed, set_up, tear_down)
{
    char key[KEY_SIZE];
    (void)fake_add_key(fake_add_customer("192.0.2.0/24"), key);
    struct policies *policies = start_and_wait();
    (void)fake_add_customer("192.0.2.0/24");
    settle(policies);
    (void)fake_add_legacy("192.0.2.1");
    settle(policies);
    struct policies_facts facts = facts_of(policies);
    assert_int_equal(facts.customers, 2);
    assert_int_equal(facts.keys, 1);
    assert_int_equal(facts.addresses, 1);
    policies_destroy(&policies);
    assert_int_equal(fake.asked_all, 1);
}

TEST_WITH(the_age_tells_when_the_table_was_confirmed, set_up, tear_down)
{
    fake_set(&fake.open_status, STATUS_UNAVAILABLE);
    struct policies *policies = start();
    wait_for_error(policies);
    assert_int_equal(facts_of(policies).age_ms, -1);
    fake_set(&fake.open_status, STATUS_OK);
    assert_true(wait_until_ready(policies, PATIENCE_MS));
    assert_true(facts_of(policies).age_ms >= 0);
    policies_destroy(&policies);
}

TEST_WITH(a_store_that_cannot_be_opened_is_tried_until_it_can, set_up, tear_down)
{
    fake_set(&fake.open_status, STATUS_UNAVAILABLE);
    struct policies *policies = start();
    for (int i = 0; i < 3; i++)
        wait_for_error(policies);
    assert_false(wait_until_ready(policies, 1));
    fake_set(&fake.open_status, STATUS_OK);
    assert_true(wait_until_ready(policies, PATIENCE_MS));
    policies_destroy(&policies);
}

TEST_WITH(after_trouble_the_store_is_opened_and_read_anew, set_up, tear_down)
{
    (void)fake_add_legacy("192.0.2.1");
    (void)fake_add_legacy("192.0.2.2");
    struct policies *policies = start_and_wait();
    fake_set(&fake.query_status, STATUS_UNAVAILABLE);
    wait_for_error(policies);
    fake_begin();
    fake.legacy = 1; /* another database, with a later revision, stands there now */
    fake.revision += 10;
    fake.query_status = STATUS_OK;
    fake_end();
    settle(policies);
    assert_int_equal(facts_of(policies).addresses, 1);
    policies_destroy(&policies);
    assert_true(fake.opened >= 2);
}

TEST_WITH(a_store_that_is_only_slow_is_not_opened_again, set_up, tear_down)
{
    struct policies *policies = start_and_wait();
    fake_set(&fake.query_status, STATUS_TIMEOUT);
    wait_for_error(policies);
    fake_set(&fake.query_status, STATUS_OK);
    (void)fake_add_legacy("192.0.2.1");
    settle(policies);
    policies_destroy(&policies);
    assert_int_equal(fake.opened, 1);
}

TEST_WITH(an_older_copy_of_the_store_is_read_from_the_start, set_up, tear_down)
{
    (void)fake_add_legacy("192.0.2.1");
    (void)fake_add_legacy("192.0.2.2");
    struct policies *policies = start_and_wait();
    fake_begin();
    fake.legacy = 1;
    fake.revision = 1;
    fake_end();
    settle(policies);
    assert_int_equal(facts_of(policies).addresses, 1);
    policies_destroy(&policies);
}

TEST_WITH(a_reading_that_breaks_off_is_not_published, set_up, tear_down)
{
    char key[KEY_SIZE];
    (void)fake_add_key(fake_add_customer("192.0.2.0/24"), key);
    struct policies *policies = start_and_wait();
    struct admission *admission = admission_create(policies, (struct cidr_list){0});
    fake_begin();
    fake.customer[0].enabled = false;
    fake.changes_status = STATUS_TIMEOUT;
    fake_commit(&fake.customer[0].revision);
    wait_for_error(policies);
    assert_int_equal(facts_of(policies).revision, 2);
    assert_int_equal(ask(admission, "192.0.2.1", key), DENIAL_NONE);
    fake_set(&fake.changes_status, STATUS_OK);
    settle(policies);
    assert_int_equal(ask(admission, "192.0.2.1", key), DENIAL_CUSTOMER_DISABLED);
    admission_destroy(&admission);
    policies_destroy(&policies);
}

TEST_WITH(uses_are_written_at_the_end_once_a_key, set_up, tear_down)
{
    char used[KEY_SIZE];
    char unused[KEY_SIZE];
    size_t customer = fake_add_customer("192.0.2.0/24");
    size_t number = fake_add_key(customer, used);
    (void)fake_add_key(customer, unused);
    struct policies *policies = start_and_wait();
    struct admission *admission = admission_create(policies, (struct cidr_list){0});
    int64_t began_ms = clock_wall_ms();
    for (int i = 0; i < 10; i++)
        assert_int_equal(ask(admission, "192.0.2.1", used), DENIAL_NONE);
    assert_int_equal(ask(admission, "198.51.100.1", unused),
                     DENIAL_ADDRESS_NOT_LISTED); /* is no use */
    admission_destroy(&admission);
    policies_destroy(&policies);
    assert_int_equal(fake.touched, 1);
    assert_memory_equal(fake.last_touch.digest, fake.key[number].digest, KEY_DIGEST_SIZE);
    assert_true(fake.last_touch.used_ms >= began_ms);
}

TEST_WITH(without_uses_the_store_is_not_opened_to_write_them, set_up, tear_down)
{
    struct policies *policies = start_and_wait();
    policies_destroy(&policies);
    assert_int_equal(fake.opened, 1);
}

TEST_WITH(uses_that_cannot_be_written_do_not_stop_the_end, set_up, tear_down)
{
    char key[KEY_SIZE];
    (void)fake_add_key(fake_add_customer("192.0.2.0/24"), key);
    struct policies *policies = start_and_wait();
    struct admission *admission = admission_create(policies, (struct cidr_list){0});
    assert_int_equal(ask(admission, "192.0.2.1", key), DENIAL_NONE);
    admission_destroy(&admission);
    fake_set(&fake.query_status, STATUS_UNAVAILABLE);
    policies_destroy(&policies);
    assert_int_equal(fake.touched, 0);
}

struct caller {
    pthread_t thread;
    struct policies *policies;
    const char *key;
    bool saw_denied;
};

/* Calls until the key is denied, which happens when its customer is disabled at the end. */
static void *call(void *argument)
{
    struct caller *caller = argument;
    struct admission *admission = admission_create(caller->policies, (struct cidr_list){0});
    uint64_t began_ms = clock_monotonic_ms();
    while (!caller->saw_denied && clock_monotonic_ms() - began_ms < PATIENCE_MS)
        caller->saw_denied = ask(admission, "192.0.2.1", caller->key) == DENIAL_CUSTOMER_DISABLED;
    admission_destroy(&admission);
    return NULL;
}

TEST_WITH(threads_judge_while_the_table_changes, set_up, tear_down)
{
    char key[KEY_SIZE];
    struct caller callers[3];
    size_t customer = fake_add_customer("192.0.2.0/24");
    (void)fake_add_key(customer, key);
    struct policies *policies = start_and_wait();
    for (size_t i = 0; i < 3; i++) {
        callers[i] = (struct caller){.policies = policies, .key = key};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call, &callers[i]), 0);
    }
    for (uint32_t i = 0; i < 50; i++) {
        fake_begin();
        fake.customer[customer].rate = (struct rate_limit){true, i + 1, 60};
        fake_commit(&fake.customer[customer].revision);
        settle(policies);
    }
    fake_begin();
    fake.customer[customer].enabled = false;
    fake_commit(&fake.customer[customer].revision);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(callers[i].thread, NULL), 0);
        assert_true(callers[i].saw_denied);
    }
    policies_destroy(&policies);
}
