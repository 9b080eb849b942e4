/* operator/addresses: what an operator can do to legacy addresses. */
#include "platform_fixture.h"

#include "operator/addresses.h"

static const struct address_settings nothing = {0};

static void an_address_is_added_once_in_whatever_spelling(void **state)
{
    struct fixture *fixture = *state;
    struct legacy_record record = {0};
    OK(addresses_add(fixture->store, "192.0.2.1", &nothing, NOW_MS, &record, &fixture->error));
    assert_true(record.enabled && !record.removed && !record.rate.enabled);
    assert_int_equal(record.sports, SPORT_SET_ALL);
    REFUSED(addresses_add(fixture->store, "::ffff:192.0.2.1", &nothing, NOW_MS, &record,
                          &fixture->error),
            STATUS_EXISTS, "croupier ip set 192.0.2.1");
}

static void only_one_exact_address_is_taken(void **state)
{
    struct fixture *fixture = *state;
    struct legacy_record record = {0};
    static const char *const wrong[] = {"",        "192.0.2.0/24", "192.0.2.1:80",
                                        "[::1]",   "localhost",    "192.0.2.1 ",
                                        "192.0.2", "fe80::1%eth0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        REFUSED(addresses_add(fixture->store, wrong[i], &nothing, NOW_MS, &record, &fixture->error),
                STATUS_INVALID, "not one exact IP address");
    static const char *const nobody[] = {"0.0.0.0", "::", "::ffff:0.0.0.0", "0:0:0:0:0:0:0:0"};
    for (size_t i = 0; i < sizeof nobody / sizeof nobody[0]; i++)
        REFUSED(
            addresses_add(fixture->store, nobody[i], &nothing, NOW_MS, &record, &fixture->error),
            STATUS_INVALID, "no address that a client can have");
}

static void a_change_leaves_what_is_not_mentioned(void **state)
{
    struct fixture *fixture = *state;
    struct legacy_record record = {0};
    OK(addresses_add(fixture->store, "2001:db8::1",
                     &(struct address_settings){.sports = "tennis", .rate = "5/60"}, NOW_MS,
                     &record, &fixture->error));
    OK(addresses_change(fixture->store, "2001:DB8::1",
                        &(struct address_settings){.enabled = SETTING_OFF}, &record,
                        &fixture->error));
    assert_false(record.enabled);
    assert_int_equal(record.sports, SPORT_BIT(SPORT_TENNIS));
    assert_int_equal(record.rate.requests, 5);
    OK(addresses_change(fixture->store, "2001:db8::1", &(struct address_settings){.rate = "off"},
                        &record, &fixture->error));
    assert_false(record.enabled);
    assert_false(record.rate.enabled);
    assert_true(record.created_ms == NOW_MS);
}

static void a_removed_address_is_gone_until_it_is_added_afresh(void **state)
{
    struct fixture *fixture = *state;
    struct legacy_record record = {0};
    OK(addresses_add(fixture->store, "192.0.2.1",
                     &(struct address_settings){.sports = "tennis", .rate = "5/60"}, NOW_MS,
                     &record, &fixture->error));
    OK(addresses_remove(fixture->store, "192.0.2.1", &record, &fixture->error));
    assert_true(record.removed && !record.enabled);
    REFUSED(addresses_remove(fixture->store, "192.0.2.1", &record, &fixture->error),
            STATUS_NOT_FOUND, "croupier ip add 192.0.2.1");
    REFUSED(addresses_change(fixture->store, "192.0.2.1",
                             &(struct address_settings){.enabled = SETTING_ON}, &record,
                             &fixture->error),
            STATUS_NOT_FOUND, "there is no address 192.0.2.1");
    OK(addresses_add(fixture->store, "192.0.2.1", &nothing, NOW_MS + 1, &record, &fixture->error));
    assert_int_equal(record.sports, SPORT_SET_ALL);
    assert_false(record.rate.enabled);
    assert_true(record.enabled && record.created_ms == NOW_MS + 1);
}

static void json_has_every_field(void **state)
{
    struct fixture *fixture = *state;
    struct legacy_record record = {0};
    OK(addresses_add(fixture->store, "192.0.2.1",
                     &(struct address_settings){.sports = "none", .rate = "5/60"}, NOW_MS, &record,
                     &fixture->error));
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    char *text = JSON_OF(doc, address_json(doc, &record));
    assert_string_equal(text, "{\"address\":\"192.0.2.1\",\"enabled\":true,\"sports\":[],"
                              "\"rate\":{\"requests\":5,\"window_seconds\":60},"
                              "\"created_at\":\"2025-11-21T04:40:00.000Z\"}");
    free(text);
    yyjson_mut_doc_free(doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(an_address_is_added_once_in_whatever_spelling),
        WITH_STORE(only_one_exact_address_is_taken),
        WITH_STORE(a_change_leaves_what_is_not_mentioned),
        WITH_STORE(a_removed_address_is_gone_until_it_is_added_afresh),
        WITH_STORE(json_has_every_field),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
