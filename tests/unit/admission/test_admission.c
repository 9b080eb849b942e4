/*
 * admission/admission: the verdict, and what a connection remembers of it. Which header has the key
 * and which block holds an address, tests/service/test_contract_admission.py says rule by rule.
 */
#include "admission/admission.h"
#include "fake_platform.h"
#include "limits/rate_limit.h"
#include "question.h"
#include "tests.h"

#define NOW_WALL_MS 1763700000000
#define PATIENCE_MS 60000U

struct scene {
    struct policies *policies;
    struct admission *admission;
    struct admission_memory memory;
    const struct policy *policy; /* of the last request that was admitted */
    struct address client;
    char key[KEY_SIZE]; /* of customer 0, who calls from 192.0.2.0/24 */
};

static void settle(struct policies *policies)
{
    assert_true(fake_settle(policies, PATIENCE_MS));
}

static int set_up(void **state)
{
    fake_reset();
    struct scene *scene = memory_alloc_zeroed(1, sizeof *scene);
    (void)fake_add_key(fake_add_customer("192.0.2.0/24"), scene->key);
    (void)fake_add_legacy("203.0.113.7");
    const struct platform_store_options store = {.uri = "fake:"};
    scene->policies = policies_create(&store, 2);
    static struct cidr proxy;
    assert_int_equal(cidr_parse(TEXT("10.0.0.0/8"), &proxy, NULL), STATUS_OK);
    scene->admission = admission_create(scene->policies, (struct cidr_list){&proxy, 1});
    assert_true(wait_until_ready(scene->policies, PATIENCE_MS));
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    struct scene *scene = *state;
    admission_destroy(&scene->admission);
    policies_destroy(&scene->policies);
    memory_free(scene);
    return 0;
}

/* Asked so early that no table is too old for it, however slow the machine that tests. */
static struct admission_question from(const char *peer)
{
    struct admission_question question = {.now_mono_ms = 0, .now_wall_ms = NOW_WALL_MS};
    assert_int_equal(address_parse(text_of(peer), &question.peer), STATUS_OK);
    return question;
}

static struct admission_question with_api_key(const char *peer, const char *api_key)
{
    struct admission_question question = from(peer);
    question.api_key_count = 1;
    question.api_key = text_trim(text_of(api_key));
    return question;
}

/* Every question is asked three times: without a memory, with a fresh one, and again with that; the
 * verdict must be the same. */
static enum admission_denial judge(struct scene *scene, const struct admission_question *question)
{
    enum admission_denial verdicts[3];
    struct admission_memory memory = {0};
    struct admission_memory *memories[3] = {NULL, &memory, &memory};
    for (size_t i = 0; i < 3; i++)
        verdicts[i] =
            question_judge(scene->admission, memories[i], question, &scene->policy, &scene->client);
    assert_int_equal(verdicts[0], verdicts[1]);
    assert_int_equal(verdicts[1], verdicts[2]);
    return verdicts[0];
}

/* As one connection after another request of its own. */
static enum admission_denial judge_again(struct scene *scene,
                                         const struct admission_question *question)
{
    return question_judge(scene->admission, &scene->memory, question, &scene->policy,
                          &scene->client);
}

static void assert_verdict(struct scene *scene, struct admission_question question,
                           enum admission_denial expected)
{
    assert_int_equal(judge(scene, &question), expected);
}

/* ---- whose key ------------------------------------------------------------------------------- */

TEST_OF(scene, a_key_expires)
{
    fake_begin();
    fake.key[0].expires_ms = NOW_WALL_MS;
    fake_commit(&fake.key[0].revision);
    settle(scene->policies);
    struct admission_question question = with_api_key("192.0.2.1", scene->key);
    question.now_wall_ms = NOW_WALL_MS - 1;
    assert_int_equal(judge_again(scene, &question), DENIAL_NONE);
    question.now_wall_ms = NOW_WALL_MS; /* on the same connection */
    assert_int_equal(judge_again(scene, &question), DENIAL_EXPIRED_KEY);
    assert_verdict(scene, question, DENIAL_EXPIRED_KEY);
}

TEST_OF(scene, a_revoked_key_is_denied_on_a_connection_that_used_it)
{
    char second[KEY_SIZE];
    (void)fake_add_key(0, second);
    settle(scene->policies);
    struct admission_question question = with_api_key("192.0.2.1", scene->key);
    assert_int_equal(judge_again(scene, &question), DENIAL_NONE);
    fake_begin();
    fake.key[0].revoked_ms = 1;
    fake_commit(&fake.key[0].revision);
    settle(scene->policies);
    assert_int_equal(judge_again(scene, &question), DENIAL_REVOKED_KEY);
    assert_string_equal(scene->policy->customer_id, "cus_0000000000000000");
    assert_memory_equal(scene->memory.prefix, scene->key, KEY_PREFIX_SIZE - 1);
    assert_verdict(scene, with_api_key("192.0.2.1", second), DENIAL_NONE);
}

static const struct policy *recall(struct scene *scene, const struct admission_question *question)
{
    return admission_recall(scene->admission, &scene->memory, question->now_mono_ms,
                            question->now_wall_ms);
}

TEST_OF(scene, a_verdict_is_recalled_until_something_it_depends_on_changes)
{
    fake_begin();
    fake.key[0].expires_ms = NOW_WALL_MS + 1;
    fake_commit(&fake.key[0].revision);
    settle(scene->policies);
    struct admission_question question = with_api_key("192.0.2.1", scene->key);
    assert_null(recall(scene, &question)); /* nothing was judged */
    assert_int_equal(judge_again(scene, &question), DENIAL_NONE);
    assert_ptr_equal(recall(scene, &question), scene->policy);
    struct admission_question late = question;
    late.now_wall_ms++;
    assert_null(recall(scene, &late)); /* the key has expired */
    late = question;
    late.now_mono_ms = UINT64_MAX / 2000000;
    assert_null(recall(scene, &late)); /* the table was not confirmed for long */
    assert_ptr_equal(recall(scene, &question), scene->policy);

    static struct cidr proxy;
    assert_int_equal(cidr_parse(TEXT("192.0.2.0/24"), &proxy, NULL), STATUS_OK);
    /* The client may be another now. */
    admission_set_trusted_proxies(scene->admission, (struct cidr_list){&proxy, 1});
    assert_null(recall(scene, &question));
    assert_int_equal(judge_again(scene, &question), DENIAL_NONE);
    assert_ptr_equal(recall(scene, &question), scene->policy);

    fake_begin();
    fake.key[0].revoked_ms = 1;
    fake_commit(&fake.key[0].revision);
    settle(scene->policies);
    assert_null(recall(scene, &question));
    assert_int_equal(judge_again(scene, &question), DENIAL_REVOKED_KEY);
    assert_null(recall(scene, &question)); /* a denial is judged each time */
}

/* Changes the first key as the store has it. */
static void narrow_key(struct scene *scene, key_areas areas, const char *block)
{
    fake_begin();
    fake.key[0].areas = areas;
    fake.key[0].cidr_count = block == NULL ? 0 : 1;
    if (block != NULL)
        assert_int_equal(cidr_parse(text_of(block), &fake.key[0].cidrs[0], NULL), STATUS_OK);
    fake_commit(&fake.key[0].revision);
    settle(scene->policies);
}

TEST_OF(scene, a_key_may_be_for_sports_or_for_the_casino_only)
{
    struct admission_question question = with_api_key("192.0.2.1", scene->key);
    fake_begin();
    fake.customer[0].casino = true;
    fake_commit(&fake.customer[0].revision);
    settle(scene->policies);
    assert_int_equal(judge_again(scene, &question), DENIAL_NONE);
    assert_int_equal(scene->memory.sports, scene->policy->sports);
    assert_true(scene->memory.casino);
    narrow_key(scene, KEY_SPORTS, NULL);
    assert_int_equal(judge_again(scene, &question), DENIAL_NONE);
    assert_int_equal(scene->memory.sports, scene->policy->sports);
    assert_false(scene->memory.casino);
    narrow_key(scene, KEY_CASINO, NULL);
    assert_int_equal(judge_again(scene, &question), DENIAL_NONE);
    assert_int_equal(scene->memory.sports, 0);
    assert_true(scene->memory.casino);
}

TEST_OF(scene, a_disabled_customer_is_denied_until_enabled_again)
{
    struct admission_question question = with_api_key("192.0.2.1", scene->key);
    for (int enabled = 0; enabled < 2; enabled++) {
        fake_begin();
        fake.customer[0].enabled = enabled == 1;
        fake_commit(&fake.customer[0].revision);
        settle(scene->policies);
        assert_int_equal(judge_again(scene, &question),
                         enabled == 1 ? DENIAL_NONE : DENIAL_CUSTOMER_DISABLED);
    }
}

TEST_OF(scene, an_unusable_customer_is_denied)
{
    fake_begin();
    fake.customer[0].usable = false;
    fake_commit(&fake.customer[0].revision);
    settle(scene->policies);
    assert_verdict(scene, with_api_key("192.0.2.1", scene->key), DENIAL_CUSTOMER_DISABLED);
}

TEST_OF(scene, what_the_customer_may_do_comes_with_the_verdict)
{
    fake_begin();
    fake.customer[0].sports = SPORT_BIT(SPORT_TENNIS);
    fake.customer[0].casino = false;
    fake.customer[0].rate = (struct rate_limit){true, 7, 60};
    fake_commit(&fake.customer[0].revision);
    settle(scene->policies);
    assert_verdict(scene, with_api_key("192.0.2.1", scene->key), DENIAL_NONE);
    assert_int_equal(scene->policy->sports, SPORT_BIT(SPORT_TENNIS));
    assert_false(scene->policy->casino);
    assert_int_equal(scene->policy->rate.requests, 7);
}

static void assert_why(struct scene *scene, struct admission_question question,
                       enum admission_denial expected, const char *customer)
{
    assert_int_equal(judge(scene, &question), expected);
    assert_string_equal(scene->policy == NULL ? "" : scene->policy->customer_id, customer);
}

TEST_OF(scene, the_operator_can_be_told_why_it_was_denied)
{
    const char *customer = "cus_0000000000000000";
    char unknown[KEY_SIZE];
    key_generate(unknown);
    struct admission_question proxied = with_api_key("10.0.0.1", scene->key);
    proxied.forwarded = &TEXT("garbage");
    proxied.forwarded_count = 1;
    assert_why(scene, with_api_key("192.0.2.1", scene->key), DENIAL_NONE, customer);
    assert_why(scene, from("192.0.2.1"), DENIAL_NO_POLICY, "");
    assert_why(scene, with_api_key("192.0.2.1", ""), DENIAL_UNUSABLE_KEY, "");
    assert_why(scene, with_api_key("192.0.2.1", "crk_misspelt"), DENIAL_UNUSABLE_KEY, "");
    assert_why(scene, with_api_key("192.0.2.1", unknown), DENIAL_UNKNOWN_KEY, "");
    assert_why(scene, with_api_key("192.0.3.1", scene->key), DENIAL_ADDRESS_NOT_LISTED, customer);
    assert_why(scene, proxied, DENIAL_UNKNOWN_ADDRESS, "");
    fake_begin();
    fake.customer[0].enabled = false;
    fake_commit(&fake.customer[0].revision);
    settle(scene->policies);
    assert_why(scene, with_api_key("192.0.2.1", scene->key), DENIAL_CUSTOMER_DISABLED, customer);
    fake_begin();
    fake.key[0].expires_ms = NOW_WALL_MS;
    fake_commit(&fake.key[0].revision);
    settle(scene->policies);
    assert_why(scene, with_api_key("192.0.2.1", scene->key), DENIAL_EXPIRED_KEY, customer);
}

/* ---- from where ------------------------------------------------------------------------------ */

TEST_OF(scene, a_connection_that_moves_to_another_address_is_judged_anew)
{
    struct text forwarded = TEXT("192.0.2.9");
    struct admission_question question = with_api_key("10.0.0.1", scene->key);
    question.forwarded = &forwarded;
    question.forwarded_count = 1;
    assert_int_equal(judge_again(scene, &question), DENIAL_NONE);
    char client[ADDRESS_TEXT_SIZE];
    address_format(&scene->client, client);
    assert_string_equal(client, "192.0.2.9");
    forwarded = TEXT("198.51.100.1");
    assert_int_equal(judge_again(scene, &question), DENIAL_ADDRESS_NOT_LISTED);
    forwarded = TEXT("192.0.2.10");
    assert_int_equal(judge_again(scene, &question), DENIAL_NONE);
}

TEST_OF(scene, a_connection_that_changes_its_key_is_judged_anew)
{
    char key[KEY_SIZE];
    (void)fake_add_key(fake_add_customer("192.0.2.0/24"), key);
    settle(scene->policies);
    struct admission_question question = with_api_key("192.0.2.1", scene->key);
    assert_int_equal(judge_again(scene, &question), DENIAL_NONE);
    question = with_api_key("192.0.2.1", key);
    assert_int_equal(judge_again(scene, &question), DENIAL_NONE);
    assert_string_equal(scene->policy->customer_id, "cus_0000000000000001");
    question = from("192.0.2.1");
    assert_int_equal(judge_again(scene, &question), DENIAL_NO_POLICY);
}

TEST_OF(scene, an_unknown_address_matches_nothing)
{
    char key[KEY_SIZE];
    struct text forwarded = TEXT("unknown");
    (void)fake_add_key(fake_add_customer("::/0,10.0.0.1"), key);
    settle(scene->policies);
    struct admission_question question = with_api_key("10.0.0.1", key);
    assert_verdict(scene, question, DENIAL_NONE);
    question.forwarded = &forwarded;
    question.forwarded_count = 1;
    assert_verdict(scene, question, DENIAL_UNKNOWN_ADDRESS);
}

TEST_OF(scene, trusted_proxies_can_change)
{
    struct text forwarded = TEXT("192.0.2.9");
    struct admission_question question = with_api_key("10.0.0.1", scene->key);
    question.forwarded = &forwarded;
    question.forwarded_count = 1;
    assert_int_equal(judge_again(scene, &question), DENIAL_NONE);
    admission_set_trusted_proxies(scene->admission, (struct cidr_list){0});
    assert_int_equal(judge_again(scene, &question), DENIAL_ADDRESS_NOT_LISTED);
}

/* ---- without a key --------------------------------------------------------------------------- */

TEST_OF(scene, a_disabled_unusable_or_removed_legacy_address_is_denied)
{
    bool *switches[] = {&fake.address[0].enabled, &fake.address[0].usable,
                        &fake.address[0].removed};
    for (size_t i = 0; i < 3; i++) {
        for (int times = 0; times < 2; times++) {
            fake_begin();
            *switches[i] = !*switches[i];
            fake_commit(&fake.address[0].revision);
            settle(scene->policies);
            assert_verdict(scene, from("203.0.113.7"), times == 0 ? DENIAL_NO_POLICY : DENIAL_NONE);
        }
    }
}

/* ---- the table's age ------------------------------------------------------------------------- */

TEST_OF(scene, a_table_that_is_not_confirmed_for_a_second_decides_nothing)
{
    fake_set(&fake.query_status, STATUS_TIMEOUT);
    struct policies_facts facts;
    do
        policies_facts(scene->policies, &facts);
    while (facts.errors == 0);
    struct admission_question question = with_api_key("192.0.2.1", scene->key);
    assert_int_equal(judge_again(scene, &question), DENIAL_NONE);
    question.now_mono_ms = clock_monotonic_ms() + 1001;
    assert_int_equal(judge_again(scene, &question), DENIAL_UNAVAILABLE);
    assert_verdict(scene, question, DENIAL_UNAVAILABLE);
    question.api_key = TEXT(""); /* not even that there is no key */
    assert_verdict(scene, question, DENIAL_UNAVAILABLE);
}

TEST(without_any_table_nothing_is_decided)
{
    fake_reset();
    fake_set(&fake.open_status, STATUS_UNAVAILABLE);
    const struct platform_store_options store = {.uri = "fake:"};
    struct scene scene = {.policies = policies_create(&store, 2)};
    scene.admission = admission_create(scene.policies, (struct cidr_list){0});
    assert_false(wait_until_ready(scene.policies, 20));
    assert_verdict(&scene, from("203.0.113.7"), DENIAL_UNAVAILABLE);
    admission_destroy(&scene.admission);
    policies_destroy(&scene.policies);
}

/* ---- budgets --------------------------------------------------------------------------------- */

TEST_OF(scene, all_keys_and_addresses_of_a_customer_share_one_budget)
{
    char second[KEY_SIZE];
    (void)fake_add_key(0, second);
    settle(scene->policies);
    assert_verdict(scene, with_api_key("192.0.2.1", scene->key), DENIAL_NONE);
    struct rate_budget *budget = scene->policy->budget;
    assert_verdict(scene, with_api_key("192.0.2.2", second), DENIAL_NONE);
    assert_ptr_equal(scene->policy->budget, budget);
    assert_verdict(scene, from("203.0.113.7"), DENIAL_NONE);
    assert_ptr_not_equal(scene->policy->budget, budget);
}

TEST_OF(scene, a_refresh_gives_no_one_his_requests_back)
{
    struct rate_verdict verdict;
    for (uint32_t i = 1; i <= 3; i++) {
        fake_begin();
        fake.customer[0].rate = (struct rate_limit){true, 10 + i, 60};
        fake_commit(&fake.customer[0].revision);
        settle(scene->policies);
        assert_verdict(scene, with_api_key("192.0.2.1", scene->key), DENIAL_NONE);
        rate_limit_take(&(struct rate_claim){scene->policy->rate, scene->policy->budget},
                        NOW_WALL_MS, &verdict);
        assert_int_equal(verdict.remaining, 10 + i - i);
    }
}
