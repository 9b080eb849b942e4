/*
 * The contract of the platform store, written against platform_store.h alone and run against every
 * engine: `platform_contract ENGINE`. An engine joins by one row in platform_places.h, which
 * makes a URI of an empty store of its own for each test.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "platform_places.h"
#include "stores/platform.h"
#include "stores/platform_ledger.h"

static const struct factory *factory; /* the engine under test, named on the command line */

/* ---- fixture --------------------------------------------------------------------------------- */

struct fixture {
    struct place place;
    struct platform_store *store;
    struct error error;
};

static struct platform_store *open_store(struct fixture *fixture, bool create)
{
    struct platform_store *store = NULL;
    struct platform_store_options options = {
        .uri = fixture->place.uri, .timeout_ms = 5000, .create = create};
    enum status status = platform_store_open(&store, &options, &fixture->error);
    if (status != STATUS_OK)
        fail_msg("%s", fixture->error.text);
    return store;
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    uint32_t before = 99;
    uint32_t after = 0;
    factory->place(&fixture->place);
    fixture->store = open_store(fixture, true);
    assert_int_equal(platform_store_migrate(fixture->store, &before, &after, &fixture->error),
                     STATUS_OK);
    assert_int_equal(before, 0);
    assert_true(after >= 1);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    platform_store_close(&fixture->store);
    assert_null(fixture->store);
    factory->clear(&fixture->place);
    free(fixture);
    return 0;
}

static struct cidr cidr(const char *text)
{
    struct cidr block;
    assert_int_equal(cidr_parse(text_of(text), &block, NULL), STATUS_OK);
    return block;
}

static struct address address(const char *text)
{
    struct address parsed;
    assert_int_equal(address_parse(text_of(text), &parsed), STATUS_OK);
    return parsed;
}

static struct customer_record customer(const char *id, const char *name)
{
    struct customer_record record = {
        .enabled = true, .usable = true, .sports = SPORT_SET_ALL, .created_ms = 1763700000000};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.name, sizeof record.name, "%s", name);
    return record;
}

static struct key_record key(const char *id, const char *customer_id, uint8_t digest)
{
    struct key_record record = {.created_ms = 1763700000001};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.customer_id, sizeof record.customer_id, "%s", customer_id);
    (void)snprintf(record.prefix, sizeof record.prefix, "crk_%c%c%c%c", 'a', 'b', 'c', 'd');
    memset(record.digest, digest, sizeof record.digest);
    return record;
}

static struct legacy_record legacy(const char *text)
{
    return (struct legacy_record){.address = address(text),
                                  .enabled = true,
                                  .usable = true,
                                  .sports = SPORT_SET_ALL,
                                  .created_ms = 1763700000002};
}

/* What a listing or a look at the changes brought, in order. */
#define SEEN_MAX 16
struct seen {
    size_t customers, keys, addresses;
    size_t stop_after; /* of a listing; 0: never */
    bool customer_after_key;
    struct customer_record customer[SEEN_MAX]; /* cidrs are not kept, but the first is: */
    struct cidr first_cidr[SEEN_MAX];
    struct key_record key[SEEN_MAX];
    struct legacy_record legacy[SEEN_MAX];
};

static bool see_customer(void *context, const struct customer_record *record)
{
    struct seen *seen = context;
    assert_true(seen->customers < SEEN_MAX);
    seen->customer_after_key = seen->keys > 0 || seen->addresses > 0;
    seen->customer[seen->customers] = *record;
    seen->customer[seen->customers].cidrs = NULL;
    if (record->cidr_count > 0)
        seen->first_cidr[seen->customers] = record->cidrs[0];
    return ++seen->customers != seen->stop_after;
}

static bool see_key(void *context, const struct key_record *record)
{
    struct seen *seen = context;
    assert_true(seen->keys < SEEN_MAX);
    seen->key[seen->keys] = *record;
    return ++seen->keys != seen->stop_after;
}

static bool see_legacy(void *context, const struct legacy_record *record)
{
    struct seen *seen = context;
    assert_true(seen->addresses < SEEN_MAX);
    seen->legacy[seen->addresses] = *record;
    return ++seen->addresses != seen->stop_after;
}

static uint64_t look(struct fixture *fixture, struct platform_store *store, uint64_t since,
                     struct seen *seen)
{
    uint64_t revision = 0;
    *seen = (struct seen){0};
    struct record_visitor visit = {
        .customer = see_customer, .key = see_key, .legacy = see_legacy, .context = seen};
    OK(platform_changes_since(store, since, &visit, &revision, &fixture->error));
    return revision;
}

/* ---- the contract ---------------------------------------------------------------------------- */

static void a_new_store_is_empty_at_revision_zero(void **state)
{
    struct fixture *fixture = *state;
    struct seen seen;
    uint64_t revision = 7;
    OK(platform_store_ping(fixture->store, &fixture->error));
    OK(platform_revision(fixture->store, &revision, &fixture->error));
    assert_int_equal(revision, 0);
    assert_int_equal(look(fixture, fixture->store, 0, &seen), 0);
    assert_int_equal(seen.customers + seen.keys + seen.addresses, 0);
}

static void migrating_again_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct customer_record record = customer("cus_1", "One");
    uint32_t before = 0;
    uint32_t after = 0;
    OK(platform_customer_add(fixture->store, &record, &fixture->error));
    OK(platform_store_migrate(fixture->store, &before, &after, &fixture->error));
    assert_true(before == after && before >= 1);
    struct customer_record found;
    OK(platform_customer_get(fixture->store, "cus_1", &found, &fixture->error));
    customer_record_free(&found);
}

static void a_customer_comes_back_as_it_was_stored(void **state)
{
    struct fixture *fixture = *state;
    struct cidr blocks[] = {cidr("192.0.2.0/24"), cidr("2001:db8::/32"), cidr("0.0.0.0/0")};
    struct customer_record record = customer("cus_0123456789abcdef", "Caf\xC3\xA9 \"O'Neill\"; --");
    record.enabled = false;
    record.casino = true;
    record.sports = SPORT_BIT(SPORT_TENNIS) | SPORT_BIT(SPORT_HORSE_RACING);
    record.rate = (struct rate_limit){true, 1000000000, 86400};
    record.cidrs = blocks;
    record.cidr_count = 3;
    OK(platform_customer_add(fixture->store, &record, &fixture->error));

    struct customer_record found;
    OK(platform_customer_get(fixture->store, record.id, &found, &fixture->error));
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
    customer_record_free(&found);
}

static void a_customer_may_have_no_sport_no_limit_no_block_or_the_most(void **state)
{
    struct fixture *fixture = *state;
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
    most.cidrs = blocks;
    most.cidr_count = CIDRS_MAX;
    OK(platform_customer_add(fixture->store, &least, &fixture->error));
    OK(platform_customer_add(fixture->store, &most, &fixture->error));

    struct customer_record found;
    OK(platform_customer_get(fixture->store, "cus_least", &found, &fixture->error));
    assert_true(found.usable);
    assert_int_equal(found.sports, 0);
    assert_false(found.rate.enabled);
    assert_int_equal(found.cidr_count, 0);
    customer_record_free(&found);
    OK(platform_customer_get(fixture->store, "cus_most", &found, &fixture->error));
    assert_true(found.usable);
    assert_int_equal(strlen(found.name), CUSTOMER_NAME_SIZE - 1);
    assert_memory_equal(found.cidrs, blocks, sizeof blocks);
    customer_record_free(&found);
}

static void records_that_are_not_acceptable_are_refused(void **state)
{
    struct fixture *fixture = *state;
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
        assert_int_equal(platform_customer_add(store, &wrong[i], &fixture->error), STATUS_INVALID);
    struct legacy_record address_record = legacy("192.0.2.1");
    address_record.rate = (struct rate_limit){true, 1, 86401};
    assert_int_equal(platform_legacy_put(store, &address_record, &fixture->error), STATUS_INVALID);
    struct key_record key_record = key("key_1", "cus_1", 1);
    key_record.label[0] = '\x07';
    assert_int_equal(platform_key_add(store, &key_record, &fixture->error), STATUS_INVALID);
    struct seen seen;
    assert_int_equal(look(fixture, store, 0, &seen), 0);
}

static void ids_are_unique(void **state)
{
    struct fixture *fixture = *state;
    struct customer_record record = customer("cus_1", "One");
    struct key_record key_record = key("key_1", "cus_1", 1);
    uint64_t revision;
    OK(platform_customer_add(fixture->store, &record, &fixture->error));
    OK(platform_key_add(fixture->store, &key_record, &fixture->error));
    assert_int_equal(platform_customer_add(fixture->store, &record, &fixture->error),
                     STATUS_EXISTS);
    assert_int_equal(platform_key_add(fixture->store, &key_record, &fixture->error), STATUS_EXISTS);
    key_record = key("key_2", "cus_1", 1); /* another id, the same key */
    assert_int_equal(platform_key_add(fixture->store, &key_record, &fixture->error), STATUS_EXISTS);
    OK(platform_revision(fixture->store, &revision, &fixture->error));
    assert_int_equal(revision, 2); /* what failed took none */
}

static void an_update_replaces_everything_but_id_and_creation(void **state)
{
    struct fixture *fixture = *state;
    struct cidr blocks[] = {cidr("192.0.2.0/24"), cidr("198.51.100.7/32")};
    struct customer_record record = customer("cus_1", "One");
    record.cidrs = blocks;
    record.cidr_count = 2;
    record.rate = (struct rate_limit){true, 5, 1};
    OK(platform_customer_add(fixture->store, &record, &fixture->error));
    struct customer_record update = customer("cus_1", "Uno");
    update.enabled = false;
    update.casino = true;
    update.sports = SPORT_BIT(SPORT_CRICKET);
    update.cidrs = &blocks[1];
    update.cidr_count = 1;
    update.created_ms = 5;
    OK(platform_customer_update(fixture->store, &update, &fixture->error));

    struct customer_record found;
    OK(platform_customer_get(fixture->store, "cus_1", &found, &fixture->error));
    assert_string_equal(found.name, "Uno");
    assert_false(found.enabled);
    assert_true(found.casino);
    assert_int_equal(found.sports, SPORT_BIT(SPORT_CRICKET));
    assert_false(found.rate.enabled);
    assert_int_equal(found.cidr_count, 1);
    assert_memory_equal(found.cidrs, &blocks[1], sizeof blocks[1]);
    assert_true(found.created_ms == record.created_ms);
    assert_int_equal(found.revision, 2);
    customer_record_free(&found);
}

static void an_update_of_a_revision_that_has_passed_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct customer_record record = customer("cus_1", "One");
    OK(platform_customer_add(fixture->store, &record, &fixture->error));
    struct customer_record first;
    struct customer_record second;
    OK(platform_customer_get(fixture->store, "cus_1", &first, &fixture->error));
    OK(platform_customer_get(fixture->store, "cus_1", &second, &fixture->error));
    first.enabled = false;
    OK(platform_customer_update(fixture->store, &first, &fixture->error));
    assert_int_equal(platform_customer_update(fixture->store, &second, &fixture->error),
                     STATUS_EXISTS);
    customer_record_free(&first);
    customer_record_free(&second);
    struct customer_record found;
    OK(platform_customer_get(fixture->store, "cus_1", &found, &fixture->error));
    assert_false(found.enabled);
    customer_record_free(&found);

    struct legacy_record put = legacy("192.0.2.1");
    OK(platform_legacy_put(fixture->store, &put, &fixture->error));
    put.revision = 2; /* that of another row */
    assert_int_equal(platform_legacy_put(fixture->store, &put, &fixture->error), STATUS_EXISTS);
    put.revision = 3;
    OK(platform_legacy_put(fixture->store, &put, &fixture->error));
}

static void what_is_not_there_is_not_found(void **state)
{
    struct fixture *fixture = *state;
    struct customer_record record = customer("cus_none", "None");
    struct customer_record untouched = {.name = "untouched"};
    struct key_record key_record = key("key_1", "cus_none", 1);
    struct legacy_record legacy_record;
    struct address nobody = address("192.0.2.1");
    struct platform_store *store = fixture->store;
    assert_int_equal(platform_customer_get(store, "cus_none", &untouched, &fixture->error),
                     STATUS_NOT_FOUND);
    assert_string_equal(untouched.name, "untouched");
    assert_int_equal(platform_customer_get(store, "", &untouched, NULL), STATUS_NOT_FOUND);
    assert_int_equal(platform_customer_update(store, &record, &fixture->error), STATUS_NOT_FOUND);
    record.revision = 5;
    assert_int_equal(platform_customer_update(store, &record, &fixture->error), STATUS_NOT_FOUND);
    assert_int_equal(platform_key_add(store, &key_record, &fixture->error), STATUS_NOT_FOUND);
    assert_int_equal(platform_key_revoke(store, "key_1", 1, &fixture->error), STATUS_NOT_FOUND);
    assert_int_equal(platform_legacy_get(store, &nobody, &legacy_record, &fixture->error),
                     STATUS_NOT_FOUND);
    uint64_t revision;
    OK(platform_revision(store, &revision, &fixture->error));
    assert_int_equal(revision, 0);
}

static void a_key_comes_back_as_it_was_stored(void **state)
{
    struct fixture *fixture = *state;
    struct customer_record owner = customer("cus_1", "One");
    struct key_record record = key("key_0123456789abcdef", "cus_1", 0xA5);
    record.expires_ms = 1800000000000;
    (void)snprintf(record.label, sizeof record.label, "b\xC3\xBCro");
    OK(platform_customer_add(fixture->store, &owner, &fixture->error));
    OK(platform_key_add(fixture->store, &record, &fixture->error));
    struct seen seen = {0};
    OK(platform_key_list(fixture->store, "cus_1", see_key, &seen, &fixture->error));
    assert_int_equal(seen.keys, 1);
    assert_string_equal(seen.key[0].id, record.id);
    assert_string_equal(seen.key[0].customer_id, "cus_1");
    assert_string_equal(seen.key[0].label, record.label);
    assert_string_equal(seen.key[0].prefix, record.prefix);
    assert_memory_equal(seen.key[0].digest, record.digest, KEY_DIGEST_SIZE);
    assert_true(seen.key[0].created_ms == record.created_ms);
    assert_true(seen.key[0].expires_ms == record.expires_ms);
    assert_true(seen.key[0].last_used_ms == 0 && seen.key[0].revoked_ms == 0);
    assert_int_equal(seen.key[0].revision, 2);
}

static void revoking_keeps_the_first_time_and_is_seen_as_a_change(void **state)
{
    struct fixture *fixture = *state;
    struct customer_record owner = customer("cus_1", "One");
    struct key_record record = key("key_1", "cus_1", 1);
    struct seen seen;
    OK(platform_customer_add(fixture->store, &owner, &fixture->error));
    OK(platform_key_add(fixture->store, &record, &fixture->error));
    OK(platform_key_revoke(fixture->store, "key_1", 1000, &fixture->error));
    uint64_t revision = look(fixture, fixture->store, 2, &seen);
    assert_int_equal(revision, 3);
    assert_int_equal(seen.customers, 0);
    assert_int_equal(seen.keys, 1);
    assert_true(seen.key[0].revoked_ms == 1000);
    OK(platform_key_revoke(fixture->store, "key_1", 2000, &fixture->error));
    look(fixture, fixture->store, 0, &seen);
    assert_true(seen.key[0].revoked_ms == 1000);
}

static void touching_keys_moves_forward_only_and_takes_no_revision(void **state)
{
    struct fixture *fixture = *state;
    struct customer_record owner = customer("cus_1", "One");
    struct key_record first = key("key_1", "cus_1", 1);
    struct key_record second = key("key_2", "cus_1", 2);
    OK(platform_customer_add(fixture->store, &owner, &fixture->error));
    OK(platform_key_add(fixture->store, &first, &fixture->error));
    OK(platform_key_add(fixture->store, &second, &fixture->error));
    struct key_use uses[3] = {{.used_ms = 500}, {.used_ms = 600}, {.used_ms = 700}};
    memset(uses[0].digest, 1, KEY_DIGEST_SIZE);
    memset(uses[1].digest, 9, KEY_DIGEST_SIZE); /* nobody's */
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

static void a_legacy_address_is_added_replaced_and_removed_but_never_gone(void **state)
{
    struct fixture *fixture = *state;
    struct address wanted = address("203.0.113.9");
    struct legacy_record record = legacy("203.0.113.9");
    struct legacy_record found;
    struct seen seen = {0};
    record.rate = (struct rate_limit){true, 10, 60};
    OK(platform_legacy_put(fixture->store, &record, &fixture->error));
    OK(platform_legacy_get(fixture->store, &wanted, &found, &fixture->error));
    assert_memory_equal(&found.address, &wanted, sizeof wanted);
    assert_true(found.enabled && found.usable && !found.removed);
    assert_int_equal(found.rate.requests, 10);
    assert_int_equal(found.rate.window_seconds, 60);
    assert_true(found.created_ms == record.created_ms);

    record.sports = SPORT_BIT(SPORT_GREYHOUND_RACING);
    record.rate.enabled = false;
    record.enabled = false;
    OK(platform_legacy_put(fixture->store, &record, &fixture->error));
    OK(platform_legacy_get(fixture->store, &wanted, &found, &fixture->error));
    assert_false(found.enabled);
    assert_false(found.rate.enabled);
    assert_int_equal(found.sports, SPORT_BIT(SPORT_GREYHOUND_RACING));

    record.removed = true;
    OK(platform_legacy_put(fixture->store, &record, &fixture->error));
    OK(platform_legacy_list(fixture->store, see_legacy, &seen, &fixture->error));
    assert_int_equal(seen.addresses, 0);
    assert_int_equal(look(fixture, fixture->store, 2, &seen), 3);
    assert_int_equal(seen.addresses, 1);
    assert_true(seen.legacy[0].removed);
    OK(platform_legacy_get(fixture->store, &wanted, &found, &fixture->error));
    assert_true(found.removed);
}

static void both_spellings_of_a_v4_address_are_one(void **state)
{
    struct fixture *fixture = *state;
    struct legacy_record record = legacy("192.0.2.1");
    struct address mapped = address("::ffff:192.0.2.1");
    struct legacy_record found;
    OK(platform_legacy_put(fixture->store, &record, &fixture->error));
    OK(platform_legacy_get(fixture->store, &mapped, &found, &fixture->error));
}

static void lists_keep_their_order_and_stop_when_told(void **state)
{
    struct fixture *fixture = *state;
    static const char *const ids[] = {"cus_c", "cus_a", "cus_b"};
    static const char *const key_ids[] = {"key_z", "key_x", "key_y"};
    static const char *const addresses[] = {"2001:db8::1", "192.0.2.10", "192.0.2.9"};
    for (size_t i = 0; i < 3; i++) {
        struct customer_record record = customer(ids[i], "n");
        struct key_record key_record = key(key_ids[i], i == 1 ? "cus_a" : "cus_c", (uint8_t)i);
        struct legacy_record legacy_record = legacy(addresses[i]);
        OK(platform_customer_add(fixture->store, &record, &fixture->error));
        OK(platform_key_add(fixture->store, &key_record, &fixture->error));
        OK(platform_legacy_put(fixture->store, &legacy_record, &fixture->error));
    }
    struct customer_record update = customer("cus_c", "changed last");
    OK(platform_customer_update(fixture->store, &update, &fixture->error));

    struct seen seen = {0};
    OK(platform_customer_list(fixture->store, see_customer, &seen, &fixture->error));
    OK(platform_key_list(fixture->store, NULL, see_key, &seen, &fixture->error));
    OK(platform_legacy_list(fixture->store, see_legacy, &seen, &fixture->error));
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
    OK(platform_key_list(fixture->store, "cus_c", see_key, &seen, &fixture->error));
    assert_int_equal(seen.keys, 2);
    OK(platform_key_list(fixture->store, "cus_nobody", see_key, &seen, &fixture->error));
    assert_int_equal(seen.keys, 2);

    seen = (struct seen){.stop_after = 2};
    OK(platform_customer_list(fixture->store, see_customer, &seen, &fixture->error));
    assert_int_equal(seen.customers, 2);
    OK(platform_customer_add(fixture->store, &(struct customer_record){.id = "cus_d", .name = "d"},
                             &fixture->error)); /* a stopped list leaves nothing open */
}

static void changes_are_what_is_above_the_revision_customers_first(void **state)
{
    struct fixture *fixture = *state;
    struct cidr block = cidr("198.51.100.0/24");
    struct seen seen;
    struct legacy_record legacy_record = legacy("192.0.2.1");
    struct customer_record one = customer("cus_1", "One");
    struct customer_record two = customer("cus_2", "Two");
    struct key_record key_record = key("key_1", "cus_1", 1);
    two.cidrs = &block;
    two.cidr_count = 1;
    OK(platform_legacy_put(fixture->store, &legacy_record, &fixture->error)); /* 1 */
    OK(platform_customer_add(fixture->store, &one, &fixture->error));         /* 2 */
    OK(platform_key_add(fixture->store, &key_record, &fixture->error));       /* 3 */
    OK(platform_customer_add(fixture->store, &two, &fixture->error));         /* 4 */

    assert_int_equal(look(fixture, fixture->store, 0, &seen), 4);
    assert_int_equal(seen.customers, 2);
    assert_int_equal(seen.keys, 1);
    assert_int_equal(seen.addresses, 1);
    assert_false(seen.customer_after_key);
    assert_int_equal(seen.customer[1].cidr_count, 1);
    assert_memory_equal(&seen.first_cidr[1], &block, sizeof block);

    assert_int_equal(look(fixture, fixture->store, 3, &seen), 4);
    assert_int_equal(seen.customers, 1);
    assert_string_equal(seen.customer[0].id, "cus_2");
    assert_int_equal(seen.keys + seen.addresses, 0);

    assert_int_equal(look(fixture, fixture->store, 4, &seen), 4);
    assert_int_equal(seen.customers + seen.keys + seen.addresses, 0);
    /* A revision from the future (the store was replaced): nothing, and the lower number tells. */
    assert_int_equal(look(fixture, fixture->store, 1000, &seen), 4);
    assert_int_equal(seen.customers + seen.keys + seen.addresses, 0);

    OK(platform_customer_update(fixture->store, &one, &fixture->error)); /* 5 */
    assert_int_equal(look(fixture, fixture->store, 4, &seen), 5);
    assert_int_equal(seen.customers, 1);
    assert_string_equal(seen.customer[0].id, "cus_1");
    assert_int_equal(seen.customer[0].revision, 5);
}

/* A visitor that has another handle write while the changes are being read. */
struct meddler {
    struct fixture *fixture;
    struct platform_store *writer;
    size_t customers;
    size_t keys;
};

static bool meddle(void *context, const struct customer_record *record)
{
    struct meddler *meddler = context;
    struct fixture *fixture = meddler->fixture;
    struct key_record late = key("key_late", record->id, 77);
    meddler->customers++;
    OK(platform_key_add(meddler->writer, &late, &fixture->error));
    return true;
}

static bool count_key(void *context, const struct key_record *record)
{
    (void)record;
    ((struct meddler *)context)->keys++;
    return true;
}

static bool ignore_legacy(void *context, const struct legacy_record *record)
{
    (void)context;
    (void)record;
    return true;
}

static void changes_come_from_one_snapshot_and_block_no_writer(void **state)
{
    struct fixture *fixture = *state;
    struct meddler meddler = {.fixture = fixture, .writer = open_store(fixture, false)};
    struct customer_record record = customer("cus_1", "One");
    uint64_t revision = 0;
    OK(platform_customer_add(fixture->store, &record, &fixture->error));
    struct record_visitor visit = {
        .customer = meddle, .key = count_key, .legacy = ignore_legacy, .context = &meddler};
    OK(platform_changes_since(fixture->store, 0, &visit, &revision, &fixture->error));
    assert_int_equal(meddler.customers, 1);
    assert_int_equal(meddler.keys, 0); /* written after the snapshot was taken */
    assert_int_equal(revision, 1);
    struct seen seen;
    assert_int_equal(look(fixture, fixture->store, revision, &seen), 2);
    assert_int_equal(seen.keys, 1);
    platform_store_close(&meddler.writer);
}

static void another_handle_sees_a_change_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct platform_store *reader = open_store(fixture, false);
    struct customer_record record = customer("cus_1", "One");
    uint64_t revision = 0;
    OK(platform_revision(reader, &revision, &fixture->error));
    assert_int_equal(revision, 0);
    OK(platform_customer_add(fixture->store, &record, &fixture->error));
    OK(platform_revision(reader, &revision, &fixture->error));
    assert_int_equal(revision, 1);
    struct customer_record found;
    OK(platform_customer_get(reader, "cus_1", &found, &fixture->error));
    customer_record_free(&found);
    platform_store_close(&reader);
}

/* ---- several writers ------------------------------------------------------------------------- */

#define WRITERS 3
#define ROWS_EACH 20

struct writer {
    struct fixture *fixture;
    struct platform_store *store;
    unsigned number;
    enum status status; /* asserted by the main thread: cmocka's own stay there */
    struct error error;
    pthread_t thread;
};

static void *write_rows(void *context)
{
    struct writer *writer = context;
    for (unsigned i = 0; i < ROWS_EACH && writer->status == STATUS_OK; i++) {
        struct customer_record record = {.enabled = true, .created_ms = 1};
        (void)snprintf(record.id, sizeof record.id, "cus_%ux%u", writer->number, i);
        (void)snprintf(record.name, sizeof record.name, "n");
        writer->status = platform_customer_add(writer->store, &record, &writer->error);
    }
    return NULL;
}

struct follower {
    uint64_t revision; /* of the last row seen */
    size_t rows;
    bool in_order;
};

static bool follow_customer(void *context, const struct customer_record *record)
{
    struct follower *follower = context;
    if (record->revision <= follower->revision)
        follower->in_order = false;
    follower->revision = record->revision;
    follower->rows++;
    return true;
}

static bool ignore_key(void *context, const struct key_record *record)
{
    (void)context;
    (void)record;
    return true;
}

static void a_follower_of_several_writers_sees_every_row_once(void **state)
{
    struct fixture *fixture = *state;
    struct writer writers[WRITERS];
    struct follower follower = {.in_order = true};
    struct record_visitor visit = {.customer = follow_customer,
                                   .key = ignore_key,
                                   .legacy = ignore_legacy,
                                   .context = &follower};
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] =
            (struct writer){.fixture = fixture, .store = open_store(fixture, false), .number = i};
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_rows, &writers[i]), 0);
    }
    uint64_t revision = 0;
    enum status status = STATUS_OK;
    for (int look_count = 0; look_count < 200 && status == STATUS_OK; look_count++)
        status =
            platform_changes_since(fixture->store, revision, &visit, &revision, &fixture->error);
    for (unsigned i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(writers[i].thread, NULL), 0);
    OK(status);
    OK(platform_changes_since(fixture->store, revision, &visit, &revision, &fixture->error));
    for (unsigned i = 0; i < WRITERS; i++) {
        if (writers[i].status != STATUS_OK)
            fail_msg("%s", writers[i].error.text);
        platform_store_close(&writers[i].store);
    }
    assert_true(follower.in_order);
    assert_int_equal(follower.rows, WRITERS * ROWS_EACH);
    assert_int_equal(revision, WRITERS * ROWS_EACH);
}

static struct player_record open_player(struct fixture *fixture, const char *customer_id,
                                        const char *reference, const char *currency,
                                        uint8_t exponent)
{
    struct player_record player = {0};
    OK(platform_player_open(fixture->store, customer_id, reference, currency, exponent, &player,
                            &fixture->error));
    return player;
}

static void add_two_customers(struct fixture *fixture)
{
    struct customer_record first = customer("cus_One", "One");
    struct customer_record second = customer("cus_Two", "Two");
    OK(platform_customer_add(fixture->store, &first, &fixture->error));
    OK(platform_customer_add(fixture->store, &second, &fixture->error));
}

static void one_customer_reference_and_currency_is_one_player_for_ever(void **state)
{
    struct fixture *fixture = *state;
    add_two_customers(fixture);
    struct player_record player = open_player(fixture, "cus_One", "alice", "EUR", 2);
    assert_int_equal(strlen(player.id), 20);
    assert_memory_equal(player.id, "ply_", 4);
    assert_string_equal(player.customer_id, "cus_One");
    assert_string_equal(player.reference, "alice");
    assert_string_equal(player.currency, "EUR");
    assert_int_equal(player.currency_exponent, 2);
    assert_true(player.created_ms > 0);
    struct player_record again = open_player(fixture, "cus_One", "alice", "EUR", 2);
    assert_memory_equal(&again, &player, sizeof player);
    struct player_record other[] = {
        open_player(fixture, "cus_Two", "alice", "EUR", 2),
        open_player(fixture, "cus_One", "alice", "USD", 2),
        open_player(fixture, "cus_One", "Alice", "EUR", 2),
    };
    for (size_t i = 0; i < 3; i++)
        assert_string_not_equal(other[i].id, player.id);
    struct player_record got = {0};
    OK(platform_player_get(fixture->store, player.id, &got, &fixture->error));
    assert_memory_equal(&got, &player, sizeof player);
    uint64_t revision = 99;
    OK(platform_revision(fixture->store, &revision, &fixture->error));
    assert_int_equal(revision, 2); /* of the two customers: a player takes none */
}

static void a_currency_keeps_the_exponent_of_its_first_use(void **state)
{
    struct fixture *fixture = *state;
    add_two_customers(fixture);
    assert_int_equal(open_player(fixture, "cus_One", "a", "ISK", 2).currency_exponent, 2);
    assert_int_equal(open_player(fixture, "cus_Two", "b", "ISK", 0).currency_exponent, 2);
    assert_int_equal(open_player(fixture, "cus_One", "a", "ISK", 4).currency_exponent, 2);
    assert_int_equal(open_player(fixture, "cus_One", "a", "JPY", 0).currency_exponent, 0);
}

static void players_that_are_not_acceptable_are_refused(void **state)
{
    struct fixture *fixture = *state;
    add_two_customers(fixture);
    static const char longest[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    static const struct {
        const char *customer, *reference, *currency;
        uint8_t exponent;
        enum status status;
    } cases[] = {
        {"cus_One", "", "EUR", 2, STATUS_INVALID},
        {"cus_One", "a b", "EUR", 2, STATUS_INVALID},
        {"cus_One", "a/b", "EUR", 2, STATUS_INVALID},
        {"cus_One", "\xc3\xa9", "EUR", 2, STATUS_INVALID},
        {"cus_One", "a", "eur", 2, STATUS_INVALID},
        {"cus_One", "a", "EU", 2, STATUS_INVALID},
        {"cus_One", "a", "EURO", 2, STATUS_INVALID},
        {"cus_One", "a", "EUR", 5, STATUS_INVALID},
        {"ply_One", "a", "EUR", 2, STATUS_INVALID},
        {"cus_None", "a", "EUR", 2, STATUS_NOT_FOUND},
    };
    struct player_record player = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(platform_player_open(fixture->store, cases[i].customer, cases[i].reference,
                                              cases[i].currency, cases[i].exponent, &player,
                                              &fixture->error),
                         cases[i].status);
    char over[66];
    (void)snprintf(over, sizeof over, "%sX", longest);
    assert_int_equal(
        platform_player_open(fixture->store, "cus_One", over, "EUR", 2, &player, &fixture->error),
        STATUS_INVALID);
    (void)open_player(fixture, "cus_One", longest, "EUR", 2);
    (void)open_player(fixture, "cus_One", "A.z_9:-", "EUR", 2);
    assert_int_equal(platform_player_get(fixture->store, "ply_none", &player, &fixture->error),
                     STATUS_NOT_FOUND);
}

#define OPENERS 4
#define PLAYERS_EACH 25
struct opener {
    struct platform_store *store;
    char ids[PLAYERS_EACH][PLAYER_ID_SIZE];
    enum status status;
};

static void *open_many(void *argument)
{
    struct opener *opener = argument;
    for (unsigned i = 0; i < PLAYERS_EACH && opener->status == STATUS_OK; i++) {
        char reference[16];
        struct player_record player = {0};
        (void)snprintf(reference, sizeof reference, "player-%u", i);
        opener->status =
            platform_player_open(opener->store, "cus_One", reference, "EUR", 2, &player, NULL);
        memcpy(opener->ids[i], player.id, sizeof player.id);
    }
    return NULL;
}

static void players_opened_at_once_are_the_same_for_everybody(void **state)
{
    struct fixture *fixture = *state;
    add_two_customers(fixture);
    pthread_t threads[OPENERS];
    static struct opener openers[OPENERS];
    for (unsigned i = 0; i < OPENERS; i++) {
        openers[i] = (struct opener){.store = open_store(fixture, false)};
        assert_int_equal(pthread_create(&threads[i], NULL, open_many, &openers[i]), 0);
    }
    for (unsigned i = 0; i < OPENERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < OPENERS; i++) {
        assert_int_equal(openers[i].status, STATUS_OK);
        assert_memory_equal(openers[i].ids, openers[0].ids, sizeof openers[0].ids);
        platform_store_close(&openers[i].store);
    }
}

/* ---- providers and games --------------------------------------------------------------------- */

static struct provider_record provider(const char *id)
{
    struct provider_record record = {
        .enabled = true, .usable = true, .secret_size = 60, .created_ms = 1763700000000};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.name, sizeof record.name, "Provider %s", id);
    (void)snprintf(record.launch_url, sizeof record.launch_url, "https://%s.example/play?a=1", id);
    (void)snprintf(record.return_url, sizeof record.return_url, "https://back.example/#x");
    (void)snprintf(record.audience, sizeof record.audience, "%s", id);
    memset(record.secret, 0xA5, record.secret_size);
    return record;
}

static struct game_record game(const char *id, const char *provider_id)
{
    struct game_record record = {
        .rtp_bps = 9612, .volatility = GAME_HIGH, .demo = true, .enabled = true, .usable = true};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.provider_id, sizeof record.provider_id, "%s", provider_id);
    (void)snprintf(record.name, sizeof record.name, "Game %s \xC3\xA9", id);
    (void)snprintf(record.category, sizeof record.category, "slots");
    (void)snprintf(record.features, sizeof record.features, "free spins\nbuy bonus");
    (void)snprintf(record.currencies, sizeof record.currencies, "EUR\nJPY");
    (void)snprintf(record.languages, sizeof record.languages, "en");
    (void)snprintf(record.thumbnail_url, sizeof record.thumbnail_url, "https://cdn.example/a.png");
    return record;
}

static void put_games(struct fixture *fixture, const struct game_record *records, size_t count,
                      int64_t now_ms, struct games_put_result *result)
{
    const bool set_enabled[8] = {false};
    OK(platform_games_put(fixture->store, records, set_enabled, count, now_ms, result,
                          &fixture->error));
}

static void assert_same_game(const struct game_record *a, const struct game_record *b)
{
    assert_string_equal(a->id, b->id);
    assert_string_equal(a->provider_id, b->provider_id);
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->category, b->category);
    assert_string_equal(a->features, b->features);
    assert_int_equal(a->rtp_bps, b->rtp_bps);
    assert_int_equal(a->volatility, b->volatility);
    assert_string_equal(a->thumbnail_url, b->thumbnail_url);
    assert_int_equal(a->demo, b->demo);
    assert_string_equal(a->currencies, b->currencies);
    assert_string_equal(a->languages, b->languages);
    assert_string_equal(a->devices, b->devices);
    assert_int_equal(a->enabled, b->enabled);
}

static void a_provider_comes_back_as_it_was_stored_and_changed(void **state)
{
    struct fixture *fixture = *state;
    struct provider_record record = provider("acme");
    struct provider_record read = {0};
    OK(platform_provider_add(fixture->store, &record, &fixture->error));
    assert_int_equal(platform_provider_add(fixture->store, &record, &fixture->error),
                     STATUS_EXISTS);
    OK(platform_provider_get(fixture->store, "acme", &read, &fixture->error));
    assert_true(read.usable && read.enabled);
    assert_string_equal(read.name, record.name);
    assert_string_equal(read.launch_url, record.launch_url);
    assert_string_equal(read.return_url, record.return_url);
    assert_string_equal(read.audience, record.audience);
    assert_int_equal(read.secret_size, record.secret_size);
    assert_memory_equal(read.secret, record.secret, record.secret_size);
    assert_int_equal(read.created_ms, record.created_ms);
    assert_false(read.launch_call);

    uint64_t seen = read.revision;
    read.enabled = false;
    read.launch_call = true;
    read.return_url[0] = '\0';
    OK(platform_provider_update(fixture->store, &read, &fixture->error));
    assert_int_equal(platform_provider_update(fixture->store, &read, &fixture->error),
                     STATUS_EXISTS); /* its revision has passed */
    OK(platform_provider_get(fixture->store, "acme", &read, &fixture->error));
    assert_false(read.enabled);
    assert_true(read.launch_call);
    assert_string_equal(read.return_url, "");
    assert_true(read.revision > seen);
    struct provider_record called = provider("called");
    called.launch_call = true;
    OK(platform_provider_add(fixture->store, &called, &fixture->error));
    OK(platform_provider_get(fixture->store, "called", &read, &fixture->error));
    assert_true(read.usable && read.launch_call);
    assert_int_equal(platform_provider_get(fixture->store, "nobody", &read, &fixture->error),
                     STATUS_NOT_FOUND);
    record = provider("nobody");
    assert_int_equal(platform_provider_update(fixture->store, &record, &fixture->error),
                     STATUS_NOT_FOUND);
}

static void providers_and_games_that_are_not_acceptable_are_refused(void **state)
{
    struct fixture *fixture = *state;
    static const char *const ids[] = {"", "-a", "A", "a_b", "a b"};
    static const char *const urls[] = {"",           "ftp://x",     "https://",
                                       "https:///x", "https://a b", "https://a/#f"};
    static const char *const endpoints[] = {
        "http://a.example/",           "http://127.0.0.1.example/",
        "http://localhost@a.example/", "http://localhost:80@a.example/",
        "https://u@a.example",         "http://a.example/@localhost",
        "http://[::1].example/"};
    struct provider_record wrong;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        wrong = provider(ids[i]);
        assert_int_equal(platform_provider_add(fixture->store, &wrong, &fixture->error),
                         STATUS_INVALID);
    }
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        wrong = provider("acme");
        (void)snprintf(wrong.launch_url, sizeof wrong.launch_url, "%s", urls[i]);
        assert_int_equal(platform_provider_add(fixture->store, &wrong, &fixture->error),
                         STATUS_INVALID);
    }
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        wrong = provider("acme");
        wrong.launch_call = true;
        (void)snprintf(wrong.launch_url, sizeof wrong.launch_url, "%s", endpoints[i]);
        assert_int_equal(platform_provider_add(fixture->store, &wrong, &fixture->error),
                         STATUS_INVALID);
    }
    struct game_record games[4] = {game("a", "acme"), game("b", "acme"), game("c", "acme"),
                                   game("d", "acme")};
    games[0].rtp_bps = 10001;
    (void)snprintf(games[1].currencies, sizeof games[1].currencies, "EUR\nEu");
    (void)snprintf(games[2].features, sizeof games[2].features, "a\n");
    (void)snprintf(games[3].id, sizeof games[3].id, "D");
    struct games_put_result result;
    const bool set_enabled[4] = {false};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(platform_games_put(fixture->store, &games[i], set_enabled, 1, 1, &result,
                                            &fixture->error),
                         STATUS_INVALID);
}

static void an_import_adds_changes_and_leaves_alone_or_does_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct provider_record host = provider("acme");
    struct game_record games[3] = {game("aa", "acme"), game("bb", "acme"), game("cc", "acme")};
    struct game_record read = {0};
    struct games_put_result result = {0};
    const bool set_enabled[3] = {false};
    OK(platform_provider_add(fixture->store, &host, &fixture->error));
    games[1].rtp_bps = -1;
    games[1].volatility = GAME_VOLATILITY_NONE;
    games[1].thumbnail_url[0] = '\0';
    games[1].features[0] = '\0';
    put_games(fixture, games, 2, 1000, &result);
    assert_int_equal(result.added, 2);
    for (size_t i = 0; i < 2; i++) {
        OK(platform_game_get(fixture->store, games[i].id, &read, &fixture->error));
        assert_true(read.usable);
        assert_same_game(&read, &games[i]);
        assert_int_equal(read.updated_ms, 1000);
    }
    games[1].rtp_bps = 9000;
    put_games(fixture, games, 3, 2000, &result);
    assert_int_equal(result.added, 1);
    assert_int_equal(result.changed, 1);
    assert_int_equal(result.unchanged, 1);
    OK(platform_game_get(fixture->store, "aa", &read, &fixture->error));
    assert_int_equal(read.updated_ms, 1000);

    games[0].rtp_bps = 1;
    (void)snprintf(games[2].provider_id, sizeof games[2].provider_id, "nobody");
    assert_int_equal(
        platform_games_put(fixture->store, games, set_enabled, 3, 3000, &result, &fixture->error),
        STATUS_NOT_FOUND);
    OK(platform_game_get(fixture->store, "aa", &read, &fixture->error));
    assert_int_equal(read.rtp_bps, 9612);
}

static void an_import_keeps_a_disabled_game_disabled_unless_it_says_otherwise(void **state)
{
    struct fixture *fixture = *state;
    struct provider_record host = provider("acme");
    struct game_record record = game("aa", "acme");
    struct game_record read = {0};
    struct games_put_result result = {0};
    const bool set_enabled = true;
    OK(platform_provider_add(fixture->store, &host, &fixture->error));
    put_games(fixture, &record, 1, 1000, &result);
    OK(platform_game_enable(fixture->store, "aa", false, 2000, &fixture->error));
    OK(platform_game_enable(fixture->store, "aa", false, 3000, &fixture->error));
    record.rtp_bps = 1;
    put_games(fixture, &record, 1, 4000, &result);
    OK(platform_game_get(fixture->store, "aa", &read, &fixture->error));
    assert_false(read.enabled);
    OK(platform_games_put(fixture->store, &record, &set_enabled, 1, 5000, &result,
                          &fixture->error));
    OK(platform_game_get(fixture->store, "aa", &read, &fixture->error));
    assert_true(read.enabled);
    assert_int_equal(read.updated_ms, 5000);
    assert_int_equal(platform_game_enable(fixture->store, "zz", true, 1, &fixture->error),
                     STATUS_NOT_FOUND);
}

struct games_seen {
    char text[256];
};

static void see(struct games_seen *seen, const char *kind, const char *what)
{
    size_t used = strlen(seen->text);
    (void)snprintf(seen->text + used, sizeof seen->text - used, "%s:%s ", kind, what);
}

static bool see_provider(void *context, const struct provider_record *record)
{
    see(context, "provider", record->id);
    return true;
}

static bool see_game(void *context, const struct game_record *record)
{
    see(context, "game", record->id);
    return true;
}

static bool see_policy(void *context, const struct game_policy_record *record)
{
    char games[64];
    (void)snprintf(games, sizeof games, "%s=%s%.*s", record->customer_id,
                   record->every_game ? "all" : "", (int)record->games.size,
                   record->games.size > 0 ? record->games.at : "");
    see(context, "policy", games);
    return true;
}

static void everything_about_games_is_read_at_a_revision_that_moves_with_every_change(void **state)
{
    struct fixture *fixture = *state;
    struct games_seen seen = {{0}};
    const struct record_visitor visit = {
        .provider = see_provider, .game = see_game, .policy = see_policy, .context = &seen};
    struct provider_record hosts[2] = {provider("beta"), provider("acme")};
    struct game_record games[2] = {game("bb", "acme"), game("aa", "beta")};
    struct customer_record owner = customer("cus_0000000000000001", "One");
    struct game_policy_record policy = {.games = TEXT("aa\nbb")};
    struct games_put_result result = {0};
    uint64_t before = 99;
    uint64_t after = 0;
    uint64_t customers_before = 0;
    uint64_t customers_after = 1;
    OK(platform_games_revision(fixture->store, &before, &fixture->error));
    assert_int_equal(before, 0);
    OK(platform_customer_add(fixture->store, &owner, &fixture->error));
    OK(platform_revision(fixture->store, &customers_before, &fixture->error));
    OK(platform_provider_add(fixture->store, &hosts[0], &fixture->error));
    OK(platform_provider_add(fixture->store, &hosts[1], &fixture->error));
    put_games(fixture, games, 2, 1000, &result);
    memcpy(policy.customer_id, owner.id, sizeof policy.customer_id);
    OK(platform_games_revision(fixture->store, &before, &fixture->error));
    OK(platform_game_policy_put(fixture->store, &policy, &fixture->error));
    OK(platform_games_read(fixture->store, &visit, &after, &fixture->error));
    assert_true(after > before);
    assert_string_equal(seen.text, "provider:acme provider:beta game:aa game:bb "
                                   "policy:cus_0000000000000001=aa\nbb ");
    OK(platform_revision(fixture->store, &customers_after, &fixture->error));
    assert_int_equal(customers_before, customers_after); /* a counter of its own */

    policy.games = TEXT("aa\nzz");
    assert_int_equal(platform_game_policy_put(fixture->store, &policy, &fixture->error),
                     STATUS_NOT_FOUND);
    assert_non_null(strstr(fixture->error.text, "'zz'"));
    policy.every_game = true;
    policy.games = TEXT("");
    OK(platform_game_policy_put(fixture->store, &policy, &fixture->error));
    memcpy(policy.customer_id, "cus_0000000000000009", 21);
    assert_int_equal(platform_game_policy_put(fixture->store, &policy, &fixture->error),
                     STATUS_NOT_FOUND);
    seen.text[0] = '\0';
    OK(platform_games_read(fixture->store, &visit, &after, &fixture->error));
    assert_non_null(strstr(seen.text, "policy:cus_0000000000000001=all"));
}

/* The first entry of a player, as wallet/ledger.c makes one. */
static void enter_first(struct ledger_batch *batch, const char *id, int64_t amount_minor)
{
    struct ledger_place *place = &batch->places[0];
    struct ledger_transaction *kept = &batch->kept[batch->kept_count++];
    *kept = (struct ledger_transaction){.operation = LEDGER_CREDIT,
                                        .outcome = LEDGER_APPLIED,
                                        .currency_exponent = 2,
                                        .amount_minor = amount_minor,
                                        .movement_minor = amount_minor,
                                        .balance_minor = amount_minor,
                                        .sequence = 1,
                                        .created_ms = 5};
    memcpy(kept->customer_id, place->account.player.customer_id, sizeof kept->customer_id);
    memcpy(kept->player_id, place->account.player.id, sizeof kept->player_id);
    memcpy(kept->currency, "EUR", 4);
    (void)snprintf(kept->transaction_id, sizeof kept->transaction_id, "%s", id);
    ledger_entry_hash(kept, place->account.head, kept->hash);
    memcpy(place->account.head, kept->hash, sizeof kept->hash);
    place->account.balance_minor = amount_minor;
    place->account.sequence = 1;
    place->changed = true;
    batch->clearings[place->clearing].balance_minor -= amount_minor;
    batch->clearings[place->clearing].changed = true;
}

static void a_batch_of_the_ledger_is_there_when_it_was_committed(void **state)
{
    struct fixture *fixture = *state;
    static struct ledger_batch batch;
    struct ledger_account account;
    bool unknown = true;
    add_two_customers(fixture);
    struct player_record player = open_player(fixture, "cus_One", "alice", "EUR", 2);
    memset(&batch, 0, sizeof batch);
    batch.place_count = 2;
    memcpy(batch.places[0].player_id, player.id, sizeof player.id);
    memcpy(batch.places[1].player_id, "ply_nobody", 11);
    batch.fact_count = 1;
    memcpy(batch.facts[0].customer_id, "cus_One", 8);
    memcpy(batch.facts[0].transaction_id, "t-1", 4);
    OK(fixture->store->ledger->begin(fixture->store, &batch, &fixture->error));
    assert_true(batch.places[0].found);
    assert_false(batch.places[1].found);
    assert_false(batch.facts[0].id.known || batch.facts[0].id.rolled_back);
    assert_int_equal(batch.places[0].account.sequence, 0);
    enter_first(&batch, "t-1", 70);
    struct platform_store *other = open_store(fixture, false);
    OK(platform_ledger_balance(other, player.id, &account, &fixture->error));
    assert_int_equal(account.balance_minor, 0); /* not before the commit, and without waiting */
    OK(fixture->store->ledger->commit(fixture->store, &batch, &unknown, &fixture->error));
    assert_false(unknown);
    OK(platform_ledger_balance(other, player.id, &account, &fixture->error));
    assert_int_equal(account.balance_minor, 70);
    OK(other->ledger->id(other, &batch.facts[0], &fixture->error));
    assert_true(batch.facts[0].id.known);
    assert_memory_equal(&batch.facts[0].id.transaction, &batch.kept[0], sizeof batch.kept[0]);
    OK(other->ledger->recover(other, &fixture->error));
    platform_store_close(&other);
}

struct players_seen {
    size_t count, most;
    struct player_record players[4];
};

static bool see_player(void *context, const struct player_record *record)
{
    struct players_seen *seen = context;
    seen->players[seen->count++] = *record;
    return seen->count < seen->most;
}

static void players_are_listed_as_created_and_can_be_put_into_another_store(void **state)
{
    struct fixture *fixture = *state;
    struct players_seen seen = {.most = 4};
    struct player_record found;
    add_two_customers(fixture);
    struct player_record zoe = open_player(fixture, "cus_Two", "zoe", "EUR", 2);
    struct player_record bob = open_player(fixture, "cus_One", "bob", "JPY", 0);
    OK(platform_player_list(fixture->store, see_player, &seen, &fixture->error));
    assert_int_equal(seen.count, 2);
    assert_memory_equal(&seen.players[0], &zoe, sizeof zoe);
    assert_memory_equal(&seen.players[1], &bob, sizeof bob);
    seen = (struct players_seen){.most = 1};
    OK(platform_player_list(fixture->store, see_player, &seen, &fixture->error));
    assert_int_equal(seen.count, 1); /* stopped early */

    struct player_record put[2] = {zoe, zoe};
    memcpy(put[0].id, "ply_00000000000000A1", 21);
    memcpy(put[0].reference, "ann", 4);
    put[0].created_ms = 7;
    memcpy(put[1].id, "ply_00000000000000A2", 21);
    memcpy(put[1].reference, "zoe", 4);
    assert_int_equal(platform_player_put(fixture->store, put, 2, &fixture->error), STATUS_EXISTS);
    assert_int_equal(platform_player_get(fixture->store, put[0].id, &found, &fixture->error),
                     STATUS_NOT_FOUND); /* none, when one is refused */
    memcpy(put[1].currency, "GBP", 4);
    put[1].currency_exponent = 3; /* first use: frozen as given */
    OK(platform_player_put(fixture->store, put, 2, &fixture->error));
    OK(platform_player_get(fixture->store, put[0].id, &found, &fixture->error));
    assert_memory_equal(&found, &put[0], sizeof found);
    OK(platform_player_get(fixture->store, put[1].id, &found, &fixture->error));
    assert_memory_equal(&found, &put[1], sizeof found);
    memcpy(put[0].id, "ply_00000000000000A3", 21);
    memcpy(put[0].reference, "eve", 4);
    put[0].currency_exponent = 3; /* EUR has 2 */
    assert_int_equal(platform_player_put(fixture->store, put, 1, &fixture->error), STATUS_INVALID);
    put[0].currency_exponent = 2;
    memcpy(put[0].customer_id, "cus_Nobody", 11);
    assert_int_equal(platform_player_put(fixture->store, put, 1, &fixture->error),
                     STATUS_NOT_FOUND);
}

struct transactions_seen {
    size_t count;
    struct ledger_transaction transactions[4];
};

static bool see_transaction(void *context, const struct ledger_transaction *transaction)
{
    struct transactions_seen *seen = context;
    seen->transactions[seen->count++] = *transaction;
    return seen->count < 4;
}

static bool see_decline(void *context, const struct ledger_transaction *decline,
                        const struct ledger_account *account)
{
    assert_int_equal(account->declines, decline->decline);
    assert_memory_equal(account->declines_head, decline->hash, sizeof decline->hash);
    return see_transaction(context, decline);
}

static void transactions_are_read_in_order_of_decision_declines_included(void **state)
{
    struct fixture *fixture = *state;
    static struct ledger_batch batch;
    struct transactions_seen seen = {0};
    bool unknown = true;
    add_two_customers(fixture);
    struct player_record player = open_player(fixture, "cus_One", "alice", "EUR", 2);
    memset(&batch, 0, sizeof batch);
    batch.place_count = 1;
    memcpy(batch.places[0].player_id, player.id, sizeof player.id);
    OK(fixture->store->ledger->begin(fixture->store, &batch, &fixture->error));
    enter_first(&batch, "t-9", 70);
    struct ledger_transaction *declined = &batch.kept[batch.kept_count++];
    *declined = batch.kept[0];
    memcpy(declined->transaction_id, "t-1", 4);
    memcpy(declined->game_id, "book", 5);
    declined->operation = LEDGER_DEBIT;
    declined->outcome = LEDGER_INSUFFICIENT_FUNDS;
    declined->amount_minor = 71;
    declined->sequence = 0;
    declined->movement_minor = declined->balance_minor = 0;
    ledger_chain_decline(&batch.places[0].account, declined);
    batch.places[0].declined = true;
    OK(fixture->store->ledger->commit(fixture->store, &batch, &unknown, &fixture->error));
    OK(fixture->store->ledger->declines(fixture->store, see_decline, &seen, &fixture->error));
    assert_int_equal(seen.count, 1);
    assert_memory_equal(&seen.transactions[0], declined, sizeof *declined);
    seen.count = 0;
    memset(declined->hash, 0,
           sizeof declined->hash); /* which only that walk tells, and the position */
    declined->decline = 0;
    OK(fixture->store->ledger->transactions(fixture->store, see_transaction, &seen,
                                            &fixture->error));
    assert_int_equal(seen.count, 2);
    assert_memory_equal(&seen.transactions[0], &batch.kept[0], sizeof batch.kept[0]);
    assert_memory_equal(&seen.transactions[1], &batch.kept[1], sizeof batch.kept[1]);

    seen.count = 0; /* and what was entered at a time: from and until before */
    OK(fixture->store->ledger->entered(fixture->store, 0, 5, see_transaction, &seen,
                                       &fixture->error));
    OK(fixture->store->ledger->entered(fixture->store, 6, 9, see_transaction, &seen,
                                       &fixture->error));
    assert_int_equal(seen.count, 0);
    OK(fixture->store->ledger->entered(fixture->store, 5, 6, see_transaction, &seen,
                                       &fixture->error));
    assert_int_equal(seen.count, 1);
    assert_memory_equal(&seen.transactions[0], &batch.kept[0], sizeof batch.kept[0]);
    OK(fixture->store->ledger->upkeep(fixture->store, &fixture->error)); /* changes nothing of it */
    OK(fixture->store->ledger->entered(fixture->store, 5, 6, see_transaction, &seen,
                                       &fixture->error));
    assert_int_equal(seen.count, 2);
}

static void a_batch_that_does_not_follow_is_refused_whole(void **state)
{
    struct fixture *fixture = *state;
    static struct ledger_batch batch;
    struct ledger_account account;
    bool unknown = true;
    add_two_customers(fixture);
    struct player_record player = open_player(fixture, "cus_One", "alice", "EUR", 2);
    memset(&batch, 0, sizeof batch);
    batch.place_count = 1;
    memcpy(batch.places[0].player_id, player.id, sizeof player.id);
    OK(fixture->store->ledger->begin(fixture->store, &batch, &fixture->error));
    enter_first(&batch, "t-1", 70);
    enter_first(&batch, "t-2", 70); /* sequence 1 once more */
    assert_int_not_equal(
        fixture->store->ledger->commit(fixture->store, &batch, &unknown, &fixture->error),
        STATUS_OK);
    assert_false(unknown);
    OK(platform_ledger_balance(fixture->store, player.id, &account, &fixture->error));
    assert_int_equal(account.sequence, 0);
    assert_int_equal(account.balance_minor, 0);
}

static void an_unknown_kind_of_store_is_refused_without_repeating_it(void **state)
{
    struct fixture *fixture = *state;
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

int main(int argc, char **argv)
{
    const char *engine = argc == 2 ? argv[1] : "";
    factory = factory_of(engine);
    if (factory == NULL) {
        (void)fprintf(stderr, "usage: platform_contract ENGINE\n");
        return 2;
    }
#define CONTRACT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CONTRACT(a_new_store_is_empty_at_revision_zero),
        CONTRACT(migrating_again_changes_nothing),
        CONTRACT(a_customer_comes_back_as_it_was_stored),
        CONTRACT(a_customer_may_have_no_sport_no_limit_no_block_or_the_most),
        CONTRACT(records_that_are_not_acceptable_are_refused),
        CONTRACT(ids_are_unique),
        CONTRACT(an_update_replaces_everything_but_id_and_creation),
        CONTRACT(an_update_of_a_revision_that_has_passed_is_refused),
        CONTRACT(what_is_not_there_is_not_found),
        CONTRACT(a_key_comes_back_as_it_was_stored),
        CONTRACT(revoking_keeps_the_first_time_and_is_seen_as_a_change),
        CONTRACT(touching_keys_moves_forward_only_and_takes_no_revision),
        CONTRACT(a_legacy_address_is_added_replaced_and_removed_but_never_gone),
        CONTRACT(both_spellings_of_a_v4_address_are_one),
        CONTRACT(lists_keep_their_order_and_stop_when_told),
        CONTRACT(changes_are_what_is_above_the_revision_customers_first),
        CONTRACT(changes_come_from_one_snapshot_and_block_no_writer),
        CONTRACT(another_handle_sees_a_change_at_once),
        CONTRACT(a_follower_of_several_writers_sees_every_row_once),
        CONTRACT(one_customer_reference_and_currency_is_one_player_for_ever),
        CONTRACT(a_currency_keeps_the_exponent_of_its_first_use),
        CONTRACT(players_that_are_not_acceptable_are_refused),
        CONTRACT(players_opened_at_once_are_the_same_for_everybody),
        CONTRACT(a_provider_comes_back_as_it_was_stored_and_changed),
        CONTRACT(providers_and_games_that_are_not_acceptable_are_refused),
        CONTRACT(an_import_adds_changes_and_leaves_alone_or_does_nothing),
        CONTRACT(an_import_keeps_a_disabled_game_disabled_unless_it_says_otherwise),
        CONTRACT(everything_about_games_is_read_at_a_revision_that_moves_with_every_change),
        CONTRACT(players_are_listed_as_created_and_can_be_put_into_another_store),
        CONTRACT(a_batch_of_the_ledger_is_there_when_it_was_committed),
        CONTRACT(transactions_are_read_in_order_of_decision_declines_included),
        CONTRACT(a_batch_that_does_not_follow_is_refused_whole),
        CONTRACT(an_unknown_kind_of_store_is_refused_without_repeating_it),
    };
    return cmocka_run_group_tests_name(engine, tests, NULL, NULL);
}
