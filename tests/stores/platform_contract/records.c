/*
 * The contract of customers, keys and addresses: they come back as they were stored, or are
 * refused.
 */
#include "platform_contract/contract.h"

TEST_OF(fixture, a_new_store_is_empty_at_revision_zero)
{
    struct seen seen;
    uint64_t revision = 7;
    OK(platform_store_ping(fixture->store, &fixture->error));
    OK(platform_revision(fixture->store, &revision, &fixture->error));
    assert_int_equal(revision, 0);
    assert_int_equal(look(fixture, fixture->store, 0, &seen), 0);
    assert_int_equal(seen.customers + seen.keys + seen.addresses, 0);
}

TEST_OF(fixture, migrating_again_changes_nothing)
{
    struct customer_record record = customer("cus_1", "One");
    uint32_t before = 0;
    uint32_t after = 0;
    OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
    OK(platform_store_migrate(fixture->store, &before, &after, &fixture->error));
    assert_true(before == after && before >= 1);
    struct customer_record found;
    OK(platform_get(fixture->store, &customer_table, "cus_1", &found, &fixture->error));
}

TEST_OF(fixture, a_customer_comes_back_as_it_was_stored)
{
    struct cidr blocks[] = {cidr("192.0.2.0/24"), cidr("2001:db8::/32"), cidr("0.0.0.0/0")};
    struct customer_record record = customer("cus_0123456789abcdef", "Caf\xC3\xA9 \"O'Neill\"; --");
    record.enabled = false;
    record.casino = true;
    record.sports = SPORT_BIT(SPORT_TENNIS) | SPORT_BIT(SPORT_HORSE_RACING);
    record.rate = (struct rate_limit){true, 1000000000, 86400};
    memcpy(record.cidrs, blocks, sizeof blocks);
    record.cidr_count = 3;
    OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));

    struct customer_record found;
    OK(platform_get(fixture->store, &customer_table, record.id, &found, &fixture->error));
    assert_string_equal(found.id, record.id);
    assert_string_equal(found.name, record.name);
    assert_false(found.enabled);
    assert_true(found.casino);
    assert_true(found.usable);
    assert_int_equal(found.sports, record.sports);
    assert_true(found.rate.enabled);
    assert_int_equal(found.rate.requests, 1000000000);
    assert_int_equal(found.rate.window_seconds, 86400);
    assert_int_equal(found.cidr_count, 3);
    assert_memory_equal(found.cidrs, blocks, sizeof blocks);
    assert_true(found.created_ms == record.created_ms);
    assert_int_equal(found.revision, 1);
}

TEST_OF(fixture, a_customer_may_have_no_sport_no_limit_no_block_or_the_most)
{
    struct cidr blocks[CIDRS_MAX];
    for (size_t i = 0; i < CIDRS_MAX; i++) {
        char text[CIDR_TEXT_SIZE];
        (void)snprintf(text, sizeof text, "2001:db8:1111:2222:3333:4444:%x:%x/128", (unsigned)i,
                       (unsigned)i);
        blocks[i] = cidr(text);
    }
    struct customer_record least = customer("cus_least", "x");
    struct customer_record most = customer("cus_most", "");
    least.sports = 0;
    memset(most.name, 'n', CUSTOMER_NAME_SIZE - 1);
    memcpy(most.cidrs, blocks, sizeof blocks);
    most.cidr_count = CIDRS_MAX;
    OK(platform_add(fixture->store, &customer_table, &least, &fixture->error));
    OK(platform_add(fixture->store, &customer_table, &most, &fixture->error));

    struct customer_record found;
    OK(platform_get(fixture->store, &customer_table, "cus_least", &found, &fixture->error));
    assert_true(found.usable);
    assert_int_equal(found.sports, 0);
    assert_false(found.rate.enabled);
    assert_int_equal(found.cidr_count, 0);
    OK(platform_get(fixture->store, &customer_table, "cus_most", &found, &fixture->error));
    assert_true(found.usable);
    assert_int_equal(strlen(found.name), CUSTOMER_NAME_SIZE - 1);
    assert_memory_equal(found.cidrs, blocks, sizeof blocks);
}

TEST_OF(fixture, records_that_are_not_acceptable_are_refused)
{
    struct platform_store *store = fixture->store;
    struct customer_record wrong[8];
    for (size_t i = 0; i < 8; i++)
        wrong[i] = customer("cus_1", "One");
    wrong[0].id[0] = '\0';
    wrong[1].id[0] = 'k';
    wrong[2].name[0] = '\0';
    wrong[3].name[1] = '\n';
    wrong[4].name[1] = '\xFF';
    memset(wrong[5].name, 'n', sizeof wrong[5].name);
    wrong[6].sports = 1U << SPORT_COUNT;
    wrong[7].rate = (struct rate_limit){true, 0, 1};
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(platform_add(store, &customer_table, &wrong[i], &fixture->error),
                         STATUS_INVALID);
    struct legacy_record address_record = legacy("192.0.2.1");
    address_record.rate = (struct rate_limit){true, 1, 86401};
    assert_int_equal(platform_put(store, &legacy_table, &address_record, &fixture->error),
                     STATUS_INVALID);
    struct key_record key_record = key("key_1", "cus_1", 1);
    key_record.label[0] = '\x07';
    assert_int_equal(platform_add(store, &key_table, &key_record, &fixture->error), STATUS_INVALID);
    struct seen seen;
    assert_int_equal(look(fixture, store, 0, &seen), 0);
}

TEST_OF(fixture, ids_are_unique)
{
    struct customer_record record = customer("cus_1", "One");
    struct key_record key_record = key("key_1", "cus_1", 1);
    uint64_t revision;
    OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
    OK(platform_add(fixture->store, &key_table, &key_record, &fixture->error));
    assert_int_equal(platform_add(fixture->store, &customer_table, &record, &fixture->error),
                     STATUS_EXISTS);
    assert_int_equal(platform_add(fixture->store, &key_table, &key_record, &fixture->error),
                     STATUS_EXISTS);
    key_record = key("key_2", "cus_1", 1); /* another id, the same key */
    assert_int_equal(platform_add(fixture->store, &key_table, &key_record, &fixture->error),
                     STATUS_EXISTS);
    OK(platform_revision(fixture->store, &revision, &fixture->error));
    assert_int_equal(revision, 2); /* what failed took none */
}

TEST_OF(fixture, an_update_replaces_everything_but_id_and_creation)
{
    struct cidr blocks[] = {cidr("192.0.2.0/24"), cidr("198.51.100.7/32")};
    struct customer_record record = customer("cus_1", "One");
    memcpy(record.cidrs, blocks, sizeof blocks);
    record.cidr_count = 2;
    record.rate = (struct rate_limit){true, 5, 1};
    OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
    struct customer_record update = customer("cus_1", "Uno");
    update.enabled = false;
    update.casino = true;
    update.sports = SPORT_BIT(SPORT_CRICKET);
    update.cidrs[0] = blocks[1];
    update.cidr_count = 1;
    update.created_ms = 5;
    OK(platform_update(fixture->store, &customer_table, &update, &fixture->error));

    struct customer_record found;
    OK(platform_get(fixture->store, &customer_table, "cus_1", &found, &fixture->error));
    assert_string_equal(found.name, "Uno");
    assert_false(found.enabled);
    assert_true(found.casino);
    assert_int_equal(found.sports, SPORT_BIT(SPORT_CRICKET));
    assert_false(found.rate.enabled);
    assert_int_equal(found.cidr_count, 1);
    assert_memory_equal(found.cidrs, &blocks[1], sizeof blocks[1]);
    assert_true(found.created_ms == record.created_ms);
    assert_int_equal(found.revision, 2);
}

TEST_OF(fixture, an_update_of_a_revision_that_has_passed_is_refused)
{
    struct customer_record record = customer("cus_1", "One");
    OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
    struct customer_record first;
    struct customer_record second;
    OK(platform_get(fixture->store, &customer_table, "cus_1", &first, &fixture->error));
    OK(platform_get(fixture->store, &customer_table, "cus_1", &second, &fixture->error));
    first.enabled = false;
    OK(platform_update(fixture->store, &customer_table, &first, &fixture->error));
    assert_int_equal(platform_update(fixture->store, &customer_table, &second, &fixture->error),
                     STATUS_EXISTS);
    struct customer_record found;
    OK(platform_get(fixture->store, &customer_table, "cus_1", &found, &fixture->error));
    assert_false(found.enabled);

    struct legacy_record put = legacy("192.0.2.1");
    OK(platform_put(fixture->store, &legacy_table, &put, &fixture->error));
    put.revision = 2; /* that of another row */
    assert_int_equal(platform_put(fixture->store, &legacy_table, &put, &fixture->error),
                     STATUS_EXISTS);
    put.revision = 3;
    OK(platform_put(fixture->store, &legacy_table, &put, &fixture->error));
}

TEST_OF(fixture, what_is_not_there_is_not_found)
{
    struct customer_record record = customer("cus_none", "None");
    struct customer_record untouched = {.name = "untouched"};
    struct key_record key_record = key("key_1", "cus_none", 1);
    struct legacy_record legacy_record;
    struct address no_one = address("192.0.2.1");
    struct platform_store *store = fixture->store;
    assert_int_equal(platform_get(store, &customer_table, "cus_none", &untouched, &fixture->error),
                     STATUS_NOT_FOUND);
    assert_string_equal(untouched.name, "untouched");
    assert_int_equal(platform_get(store, &customer_table, "", &untouched, NULL), STATUS_NOT_FOUND);
    assert_int_equal(platform_update(store, &customer_table, &record, &fixture->error),
                     STATUS_NOT_FOUND);
    record.revision = 5;
    assert_int_equal(platform_update(store, &customer_table, &record, &fixture->error),
                     STATUS_NOT_FOUND);
    assert_int_equal(platform_add(store, &key_table, &key_record, &fixture->error),
                     STATUS_NOT_FOUND);
    assert_int_equal(platform_key_revoke(store, "key_1", 1, &fixture->error), STATUS_NOT_FOUND);
    assert_int_equal(platform_get(store, &legacy_table, &no_one, &legacy_record, &fixture->error),
                     STATUS_NOT_FOUND);
    uint64_t revision;
    OK(platform_revision(store, &revision, &fixture->error));
    assert_int_equal(revision, 0);
}

TEST_OF(fixture, a_key_comes_back_as_it_was_stored)
{
    struct customer_record owner = customer("cus_1", "One");
    struct key_record record = key("key_0123456789abcdef", "cus_1", 0xA5);
    record.expires_ms = 1800000000000;
    record.areas = KEY_CASINO | KEY_MANAGE;
    record.may_issue = KEY_AREAS_USUAL;
    record.cidrs[0] = cidr("192.0.2.0/24");
    record.cidrs[1] = cidr("2001:db8::/32");
    record.cidr_count = 2;
    (void)snprintf(record.label, sizeof record.label, "b\xC3\xBCro");
    OK(platform_add(fixture->store, &customer_table, &owner, &fixture->error));
    OK(platform_add(fixture->store, &key_table, &record, &fixture->error));
    struct seen seen = {0};
    OK(platform_list(fixture->store, &key_table, "cus_1", see_key, &seen, &fixture->error));
    assert_int_equal(seen.keys, 1);
    assert_string_equal(seen.key[0].id, record.id);
    assert_string_equal(seen.key[0].customer_id, "cus_1");
    assert_string_equal(seen.key[0].label, record.label);
    assert_string_equal(seen.key[0].prefix, record.prefix);
    assert_memory_equal(seen.key[0].digest, record.digest, KEY_DIGEST_SIZE);
    assert_true(seen.key[0].created_ms == record.created_ms);
    assert_true(seen.key[0].expires_ms == record.expires_ms);
    assert_true(seen.key[0].last_used_ms == 0 && seen.key[0].revoked_ms == 0);
    assert_int_equal(seen.key[0].areas, KEY_CASINO | KEY_MANAGE);
    assert_int_equal(seen.key[0].may_issue, KEY_AREAS_USUAL);
    assert_int_equal(seen.key[0].cidr_count, 2);
    assert_memory_equal(seen.key[0].cidrs, record.cidrs, sizeof record.cidrs);
    assert_int_equal(seen.key[0].revision, 2);
}

TEST_OF(fixture, revoking_keeps_the_first_time_and_is_seen_as_a_change)
{
    struct customer_record owner = customer("cus_1", "One");
    struct key_record record = key("key_1", "cus_1", 1);
    struct seen seen;
    OK(platform_add(fixture->store, &customer_table, &owner, &fixture->error));
    OK(platform_add(fixture->store, &key_table, &record, &fixture->error));
    OK(platform_key_revoke(fixture->store, "key_1", 1000, &fixture->error));
    uint64_t revision = look(fixture, fixture->store, 2, &seen);
    assert_true(revision >= 3); /* one is taken to lock out other changes of keys */
    assert_int_equal(seen.customers, 0);
    assert_int_equal(seen.keys, 1);
    assert_true(seen.key[0].revoked_ms == 1000);
    OK(platform_key_revoke(fixture->store, "key_1", 2000, &fixture->error));
    look(fixture, fixture->store, 0, &seen);
    assert_true(seen.key[0].revoked_ms == 1000);
}

TEST_OF(fixture, touching_keys_moves_forward_only_and_takes_no_revision)
{
    struct customer_record owner = customer("cus_1", "One");
    struct key_record first = key("key_1", "cus_1", 1);
    struct key_record second = key("key_2", "cus_1", 2);
    OK(platform_add(fixture->store, &customer_table, &owner, &fixture->error));
    OK(platform_add(fixture->store, &key_table, &first, &fixture->error));
    OK(platform_add(fixture->store, &key_table, &second, &fixture->error));
    struct key_use uses[3] = {{.used_ms = 500}, {.used_ms = 600}, {.used_ms = 700}};
    memset(uses[0].digest, 1, KEY_DIGEST_SIZE);
    memset(uses[1].digest, 9, KEY_DIGEST_SIZE); /* no one's */
    memset(uses[2].digest, 2, KEY_DIGEST_SIZE);
    OK(platform_key_touch(fixture->store, uses, 3, &fixture->error));
    uses[0].used_ms = 400;
    OK(platform_key_touch(fixture->store, uses, 1, &fixture->error));
    OK(platform_key_touch(fixture->store, NULL, 0, &fixture->error));
    struct seen seen;
    assert_int_equal(look(fixture, fixture->store, 0, &seen), 3);
    assert_int_equal(seen.key[0].last_used_ms, 500);
    assert_int_equal(seen.key[1].last_used_ms, 700);
}

TEST_OF(fixture, a_legacy_address_is_added_replaced_and_removed_but_never_gone)
{
    struct address wanted = address("203.0.113.9");
    struct legacy_record record = legacy("203.0.113.9");
    struct legacy_record found;
    struct seen seen = {0};
    record.rate = (struct rate_limit){true, 10, 60};
    OK(platform_put(fixture->store, &legacy_table, &record, &fixture->error));
    OK(platform_get(fixture->store, &legacy_table, &wanted, &found, &fixture->error));
    assert_memory_equal(&found.address, &wanted, sizeof wanted);
    assert_true(found.enabled && found.usable && !found.removed);
    assert_int_equal(found.rate.requests, 10);
    assert_int_equal(found.rate.window_seconds, 60);
    assert_true(found.created_ms == record.created_ms);

    record.sports = SPORT_BIT(SPORT_GREYHOUND_RACING);
    record.rate.enabled = false;
    record.enabled = false;
    OK(platform_put(fixture->store, &legacy_table, &record, &fixture->error));
    OK(platform_get(fixture->store, &legacy_table, &wanted, &found, &fixture->error));
    assert_false(found.enabled);
    assert_false(found.rate.enabled);
    assert_int_equal(found.sports, SPORT_BIT(SPORT_GREYHOUND_RACING));

    record.removed = true;
    OK(platform_put(fixture->store, &legacy_table, &record, &fixture->error));
    OK(platform_list(fixture->store, &legacy_table, NULL, see_legacy, &seen, &fixture->error));
    assert_int_equal(seen.addresses, 0);
    assert_int_equal(look(fixture, fixture->store, 2, &seen), 3);
    assert_int_equal(seen.addresses, 1);
    assert_true(seen.legacy[0].removed);
    OK(platform_get(fixture->store, &legacy_table, &wanted, &found, &fixture->error));
    assert_true(found.removed);
}

TEST_OF(fixture, both_spellings_of_a_v4_address_are_one)
{
    struct legacy_record record = legacy("192.0.2.1");
    struct address mapped = address("::ffff:192.0.2.1");
    struct legacy_record found;
    OK(platform_put(fixture->store, &legacy_table, &record, &fixture->error));
    OK(platform_get(fixture->store, &legacy_table, &mapped, &found, &fixture->error));
}

TEST_OF(fixture, lists_keep_their_order_and_stop_when_told)
{
    static const char *const ids[] = {"cus_c", "cus_a", "cus_b"};
    static const char *const key_ids[] = {"key_z", "key_x", "key_y"};
    static const char *const addresses[] = {"2001:db8::1", "192.0.2.10", "192.0.2.9"};
    for (size_t i = 0; i < 3; i++) {
        struct customer_record record = customer(ids[i], "n");
        struct key_record key_record = key(key_ids[i], i == 1 ? "cus_a" : "cus_c", (uint8_t)i);
        struct legacy_record legacy_record = legacy(addresses[i]);
        OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
        OK(platform_add(fixture->store, &key_table, &key_record, &fixture->error));
        OK(platform_put(fixture->store, &legacy_table, &legacy_record, &fixture->error));
    }
    struct customer_record update = customer("cus_c", "changed last");
    OK(platform_update(fixture->store, &customer_table, &update, &fixture->error));

    struct seen seen = {0};
    OK(platform_list(fixture->store, &customer_table, NULL, see_customer, &seen, &fixture->error));
    OK(platform_list(fixture->store, &key_table, NULL, see_key, &seen, &fixture->error));
    OK(platform_list(fixture->store, &legacy_table, NULL, see_legacy, &seen, &fixture->error));
    assert_int_equal(seen.customers, 3);
    assert_int_equal(seen.keys, 3);
    assert_int_equal(seen.addresses, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(seen.customer[i].id, ids[i]);
        assert_string_equal(seen.key[i].id, key_ids[i]);
        struct address expected = address(addresses[2 - i]);
        assert_memory_equal(&seen.legacy[i].address, &expected, sizeof expected);
    }
    seen = (struct seen){0};
    OK(platform_list(fixture->store, &key_table, "cus_c", see_key, &seen, &fixture->error));
    assert_int_equal(seen.keys, 2);
    OK(platform_list(fixture->store, &key_table, "cus_nobody", see_key, &seen, &fixture->error));
    assert_int_equal(seen.keys, 2);

    seen = (struct seen){.stop_after = 2};
    OK(platform_list(fixture->store, &customer_table, NULL, see_customer, &seen, &fixture->error));
    assert_int_equal(seen.customers, 2);
    OK(platform_add(fixture->store, &customer_table,
                    &(struct customer_record){.id = "cus_d", .name = "d"},
                    &fixture->error)); /* a stopped list leaves nothing open */
}

TEST_OF(fixture, an_unknown_kind_of_store_is_refused_without_repeating_it)
{
    struct platform_store *store = NULL;
    static const char *const wrong[] = {"", "platform.db", "mysql://user:secret@host/db",
                                        "sqlite:"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct platform_store_options options = {.uri = wrong[i], .timeout_ms = 1000};
        assert_int_equal(platform_store_open(&store, &options, &fixture->error), STATUS_INVALID);
        assert_null(store);
        assert_null(strstr(fixture->error.text, "secret"));
    }
}
