/* admission/policy_table: snapshots that share what did not change. */
#include <malloc.h>

#include "admission/key.h"
#include "admission/policy_table.h"
#include "limits/rate_limit.h"
#include "tests.h"

static int set_up(void **state)
{
    *state = policy_editor_create();
    return 0;
}

static int tear_down(void **state)
{
    struct policy_editor *editor = *state;
    policy_editor_destroy(&editor);
    return 0;
}

static struct customer_record customer(unsigned number)
{
    struct customer_record record = {.enabled = true,
                                     .usable = true,
                                     .sports = SPORT_SET_ALL,
                                     .rate = {true, 100, 60},
                                     .cidr_count = 1};
    (void)snprintf(record.id, sizeof record.id, "cus_%016u", number);
    return record;
}

static struct key_record key(unsigned number, unsigned of_customer)
{
    struct key_record record = {.expires_ms = 0};
    (void)snprintf(record.id, sizeof record.id, "key_%016u", number);
    (void)snprintf(record.customer_id, sizeof record.customer_id, "cus_%016u", of_customer);
    key_digest(text_of(record.id), record.digest);
    return record;
}

static struct legacy_record legacy(const char *address)
{
    struct legacy_record record = {
        .enabled = true, .usable = true, .sports = SPORT_BIT(SPORT_TENNIS), .rate = {true, 5, 1}};
    assert_int_equal(address_parse(text_of(address), &record.address), STATUS_OK);
    return record;
}

static void put_customer(struct policy_editor *editor, unsigned number)
{
    struct customer_record record = customer(number);
    policy_editor_customer(editor, &record);
}

static void put_key(struct policy_editor *editor, unsigned number, unsigned of_customer)
{
    struct key_record record = key(number, of_customer);
    policy_editor_key(editor, &record);
}

static const struct policy *find(const struct policy_table *table, unsigned key_number)
{
    struct key_record record = key(key_number, 0);
    struct policy_entry *entry;
    return policy_table_find_key(table, record.digest, &entry);
}

static struct policy_entry *find_entry(const struct policy_table *table, unsigned key_number)
{
    struct key_record record = key(key_number, 0);
    struct policy_entry *entry;
    (void)policy_table_find_key(table, record.digest, &entry);
    return entry;
}

static struct policies_facts facts_of(const struct policy_table *table)
{
    struct policies_facts facts;
    policy_table_facts(table, &facts);
    return facts;
}

/* What the program has allocated, about: the allocator keeps some of what was freed. */
static size_t memory_held(void)
{
    struct mallinfo2 facts = mallinfo2();
    return facts.uordblks + facts.hblkhd;
}

TEST_WITH(an_empty_table_admits_no_one, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    struct policy_table *table = policy_editor_publish(editor, 0);
    struct legacy_record anyone = legacy("192.0.2.1");
    assert_false(find(table, 1)->admits);
    assert_false(policy_table_find_address(table, &anyone.address)->admits);
    policy_table_destroy(&table);
}

TEST_WITH(a_key_leads_to_its_customers_policy, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    put_customer(editor, 1);
    put_customer(editor, 2);
    put_key(editor, 10, 1);
    put_key(editor, 11, 1);
    put_key(editor, 20, 2);
    struct policy_table *table = policy_editor_publish(editor, 7);
    assert_string_equal(find(table, 10)->customer_id, "cus_0000000000000001");
    assert_ptr_equal(find(table, 10), find(table, 11));
    assert_string_equal(find(table, 20)->customer_id, "cus_0000000000000002");
    assert_true(find(table, 20)->admits);
    assert_null(find_entry(table, 30));
    assert_int_equal(facts_of(table).revision, 7);
    assert_int_equal(facts_of(table).customers, 2);
    assert_int_equal(facts_of(table).keys, 3);
    policy_table_destroy(&table);
}

TEST_WITH(an_address_leads_to_its_policy, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    struct legacy_record v4 = legacy("192.0.2.1");
    struct legacy_record v6 = legacy("2001:db8::1");
    struct legacy_record other = legacy("192.0.2.2");
    policy_editor_legacy(editor, &v4);
    policy_editor_legacy(editor, &v6);
    struct policy_table *table = policy_editor_publish(editor, 1);
    assert_true(policy_table_find_address(table, &v4.address)->admits);
    assert_true(policy_table_find_address(table, &v6.address)->admits);
    assert_false(policy_table_find_address(table, &other.address)->admits);
    assert_false(policy_table_find_address(table, &v4.address)->is_customer);
    assert_string_equal(policy_table_find_address(table, &v4.address)->customer_id, "");
    policy_table_destroy(&table);
}

TEST_WITH(a_snapshot_does_not_change, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    put_customer(editor, 1);
    put_key(editor, 10, 1);
    struct policy_table *before = policy_editor_publish(editor, 1);
    struct customer_record changed = customer(1);
    changed.enabled = false;
    policy_editor_customer(editor, &changed);
    put_key(editor, 11, 1);
    struct policy_table *after = policy_editor_publish(editor, 2);
    assert_true(find(before, 10)->admits);
    assert_null(find_entry(before, 11));
    assert_false(find(after, 10)->admits);
    assert_non_null(find_entry(after, 11));
    policy_table_destroy(&before);
    assert_false(find(after, 11)->admits);
    policy_table_destroy(&after);
}

TEST_WITH(a_revoked_key_is_known_as_such_and_no_longer_counted, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    put_customer(editor, 1);
    put_key(editor, 10, 1);
    put_key(editor, 11, 1);
    struct key_record revoked = key(10, 1);
    revoked.revoked_ms = 5;
    policy_editor_key(editor, &revoked);
    struct policy_table *table = policy_editor_publish(editor, 1);
    assert_true(policy_entry_key(find_entry(table, 10))->revoked);
    assert_string_equal(find(table, 10)->customer_id, "cus_0000000000000001");
    assert_false(policy_entry_key(find_entry(table, 11))->revoked);
    assert_int_equal(facts_of(table).keys, 1);
    policy_table_destroy(&table);
}

TEST_WITH(revoked_keys_are_never_counted_however_often_they_are_read, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    struct key_record revoked = key(10, 1);
    struct key_record gone = key(10, 2);
    revoked.revoked_ms = gone.revoked_ms = 5;
    for (unsigned reading = 0; reading < 2; reading++) {
        policy_editor_restart(editor);
        put_customer(editor, 1);
        put_key(editor, 10, 1);
        put_key(editor, 11, 1);
        for (unsigned i = 0; i < 3; i++) {
            revoked.expires_ms = i; /* another row */
            policy_editor_key(editor, &revoked);
            policy_editor_key(editor, &revoked);
        }
        struct policy_table *table = policy_editor_publish(editor, 1);
        assert_true(policy_entry_key(find_entry(table, 10))->revoked);
        assert_int_equal(facts_of(table).keys, 1);
        policy_table_destroy(&table);
    }
    policy_editor_key(editor, &gone); /* of a customer that is not there */
    struct policy_table *table = policy_editor_publish(editor, 2);
    assert_null(find_entry(table, 10));
    assert_int_equal(facts_of(table).keys, 1);
    policy_table_destroy(&table);
}

TEST_WITH(what_narrows_a_key_is_kept_with_it_and_follows_a_change, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    struct key_record record = key(10, 1);
    record.areas = KEY_CASINO;
    record.cidr_count = 1;
    assert_int_equal(cidr_parse(TEXT("192.0.2.0/24"), &record.cidrs[0], NULL), STATUS_OK);
    put_customer(editor, 1);
    policy_editor_key(editor, &record);
    struct policy_table *first = policy_editor_publish(editor, 1);
    const struct policy_key *narrowed = policy_entry_key(find_entry(first, 10));
    assert_int_equal(narrowed->areas, KEY_CASINO);
    assert_int_equal(narrowed->cidr_count, 1);
    assert_memory_equal(narrowed->cidrs, record.cidrs, sizeof record.cidrs[0]);
    assert_int_equal(cidr_parse(TEXT("192.0.3.0/24"), &record.cidrs[0], NULL), STATUS_OK);
    policy_editor_key(editor, &record);
    struct policy_table *second = policy_editor_publish(editor, 2);
    assert_memory_equal(policy_entry_key(find_entry(second, 10))->cidrs, record.cidrs,
                        sizeof record.cidrs[0]);
    policy_table_destroy(&first);
    policy_table_destroy(&second);
}

TEST_WITH(a_key_of_an_unknown_customer_is_not_taken, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    put_key(editor, 10, 99);
    struct policy_table *table = policy_editor_publish(editor, 1);
    assert_null(find_entry(table, 10));
    policy_table_destroy(&table);
}

TEST_WITH(a_removed_address_is_gone_and_can_come_back, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    struct legacy_record record = legacy("192.0.2.1");
    policy_editor_legacy(editor, &record);
    record.removed = true;
    policy_editor_legacy(editor, &record);
    struct policy_table *without = policy_editor_publish(editor, 2);
    record.removed = false;
    policy_editor_legacy(editor, &record);
    put_customer(editor, 1); /* must not get the address's place */
    put_key(editor, 10, 1);
    struct policy_table *with = policy_editor_publish(editor, 3);
    assert_false(policy_table_find_address(without, &record.address)->admits);
    assert_int_equal(facts_of(without).addresses, 0);
    assert_true(policy_table_find_address(with, &record.address)->admits);
    assert_true(find(with, 10)->is_customer);
    assert_int_equal(facts_of(with).addresses, 1);
    policy_table_destroy(&without);
    policy_table_destroy(&with);
}

TEST_WITH(a_limit_that_cannot_be_applied_admits_no_one, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    struct customer_record record = customer(1);
    record.rate = (struct rate_limit){true, 10, 0};
    policy_editor_customer(editor, &record);
    put_key(editor, 10, 1);
    struct policy_table *table = policy_editor_publish(editor, 1);
    assert_false(find(table, 10)->admits);
    policy_table_destroy(&table);
}

TEST_WITH(a_budget_outlives_its_policy, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    put_customer(editor, 1);
    put_key(editor, 10, 1);
    struct policy_table *before = policy_editor_publish(editor, 1);
    struct rate_budget *budget = find(before, 10)->budget;
    struct customer_record changed = customer(1);
    changed.rate.requests = 1000;
    policy_editor_customer(editor, &changed);
    struct policy_table *after = policy_editor_publish(editor, 2);
    policy_table_destroy(&before);
    assert_ptr_equal(find(after, 10)->budget, budget);
    assert_int_equal(find(after, 10)->rate.requests, 1000);
    policy_table_destroy(&after);
}

TEST_WITH(reading_everything_anew_keeps_budgets_and_forgets_what_is_gone, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    struct legacy_record address = legacy("192.0.2.1");
    policy_editor_legacy(editor, &address);
    for (unsigned i = 1; i <= 2; i++) {
        put_customer(editor, i);
        put_key(editor, i * 10, i);
    }
    struct policy_table *before = policy_editor_publish(editor, 9);
    policy_editor_restart(editor); /* this reading fails half-way … */
    put_customer(editor, 2);
    policy_editor_restart(editor); /* … and this one comes through */
    put_customer(editor, 2);
    put_key(editor, 20, 2);
    policy_editor_legacy(editor, &address);
    struct policy_table *after = policy_editor_publish(editor, 3);
    assert_null(find_entry(after, 10));
    assert_int_equal(facts_of(after).customers, 1);
    assert_ptr_equal(find(after, 20)->budget, find(before, 20)->budget);
    assert_ptr_equal(policy_table_find_address(after, &address.address)->budget,
                     policy_table_find_address(before, &address.address)->budget);
    policy_table_destroy(&before);
    policy_table_destroy(&after);
}

static size_t collect(const struct policy_table *table, struct key_use *uses)
{
    uint32_t cursor = 0;
    size_t count = policy_table_collect_uses(table, &cursor, uses, 4);
    assert_int_equal(cursor, POLICY_USES_END);
    return count;
}

TEST_WITH(a_use_is_collected_until_it_is_written, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    struct key_use uses[4];
    put_customer(editor, 1);
    put_key(editor, 10, 1);
    put_key(editor, 11, 1);
    struct policy_table *table = policy_editor_publish(editor, 1);
    assert_int_equal(collect(table, uses), 0);
    policy_entry_note_use(find_entry(table, 10), 5000);
    policy_entry_note_use(find_entry(table, 10), 5999); /* within the second: not worth a write */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(collect(table, uses), 1);
        assert_int_equal(uses[0].used_ms, 5000);
        assert_memory_equal(uses[0].digest, key(10, 1).digest, KEY_DIGEST_SIZE);
    }
    policy_table_mark_written(table, uses, 1);
    assert_int_equal(collect(table, uses), 0);
    policy_table_destroy(&table);
}

TEST_WITH(a_use_survives_a_changed_key_and_a_new_reading, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    struct key_use uses[4];
    put_customer(editor, 1);
    put_key(editor, 10, 1);
    struct policy_table *first = policy_editor_publish(editor, 1);
    policy_entry_note_use(find_entry(first, 10), 5000);
    struct key_record changed = key(10, 1);
    changed.expires_ms = 9999;
    policy_editor_key(editor, &changed);
    struct policy_table *second = policy_editor_publish(editor, 2);
    assert_int_equal(collect(second, uses), 1);
    assert_int_equal(policy_entry_key(find_entry(second, 10))->expires_ms, 9999);
    policy_editor_restart(editor);
    put_customer(editor, 1);
    put_key(editor, 10, 1);
    struct policy_table *third = policy_editor_publish(editor, 2);
    assert_int_equal(collect(third, uses), 1);
    assert_int_equal(uses[0].used_ms, 5000);
    policy_table_destroy(&first);
    policy_table_destroy(&second);
    policy_table_destroy(&third);
}

TEST_WITH(more_uses_than_room_are_collected_in_turns, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    struct key_use uses[16];
    put_customer(editor, 1);
    for (unsigned i = 0; i < 1000; i++)
        put_key(editor, i, 1);
    struct policy_table *table = policy_editor_publish(editor, 1);
    for (unsigned i = 0; i < 1000; i++)
        policy_entry_note_use(find_entry(table, i), 5000);
    size_t total = 0;
    for (uint32_t cursor = 0; cursor != POLICY_USES_END;) {
        size_t count = policy_table_collect_uses(table, &cursor, uses, 16);
        policy_table_mark_written(table, uses, count);
        total += count;
    }
    assert_int_equal(total, 1000);
    policy_table_destroy(&table);
}

TEST_WITH(a_hundred_thousand_customers_fit_and_one_change_touches_one, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    const unsigned many = 100000 / tests_sample();
    size_t empty = memory_held();
    for (unsigned i = 0; i < many; i++)
        put_customer(editor, i);
    for (unsigned i = 0; i < many; i++)
        put_key(editor, i, i);
    struct policy_table *before = policy_editor_publish(editor, 1);
    for (unsigned i = 0; i < many; i += 997)
        assert_string_equal(find(before, i)->customer_id, customer(i).id);
    assert_int_equal(facts_of(before).customers, many);
    assert_int_equal(facts_of(before).keys, many);
    assert_true(memory_held() < empty + 60U * 1000 * 1000);

    size_t held = memory_held();
    struct customer_record changed = customer(4711);
    changed.enabled = false;
    policy_editor_customer(editor, &changed);
    struct policy_table *after = policy_editor_publish(editor, 2);
    assert_true(memory_held() < held + 131072); /* pointers to shards, and one shard */

    struct key_record revoked = key(815, 815);
    revoked.revoked_ms = 1;
    policy_editor_key(editor, &revoked);
    struct policy_table *last = policy_editor_publish(editor, 3);
    assert_true(memory_held() < held + 262144);
    policy_table_destroy(&before);
    policy_table_destroy(&last);
    policy_table_destroy(&after);
}

/* An old table that an idle thread holds costs what has changed since, not what has been done
 * since. */
TEST_WITH(ten_thousand_changes_of_one_row_leave_nothing_behind, set_up, tear_down)
{
    struct policy_editor *editor = *state;
    for (unsigned i = 0; i < 1000; i++)
        put_customer(editor, i);
    struct policy_table *held = policy_editor_publish(editor, 1);
    struct policy_table *current = policy_editor_publish(editor, 1);
    put_customer(editor, 5);
    policy_table_destroy(&current);
    current = policy_editor_publish(editor, 1);
    size_t before = memory_held();
    for (unsigned i = 0; i < 10000 / tests_sample(); i++) {
        put_customer(editor, 5);
        struct policy_table *next = policy_editor_publish(editor, 2 + i);
        policy_table_destroy(&current);
        current = next;
    }
    assert_true(memory_held() < before + 65536);
    policy_table_destroy(&held);
    policy_table_destroy(&current);
}
