/* operator/addresses: what an operator can do to legacy addresses. */
#include "platform_fixture.h"

#include "operator/tables.h"

static enum status add(struct fixture *fixture, const struct resource_edit *edit, int64_t now_ms,
                       struct legacy_record *record)
{
    return resource_add(&address_resource, fixture->store, edit, now_ms, record, &fixture->error);
}

static enum status change(struct fixture *fixture, const char *address,
                          const struct resource_edit *edit, struct legacy_record *record)
{
    return resource_change(&address_resource, fixture->store, address, edit, record,
                           &fixture->error);
}

TEST_OF(fixture, an_address_is_added_once_in_whatever_spelling)
{
    struct legacy_record record = {0};
    OK(add(fixture, EDIT({"address", "192.0.2.1"}), NOW_MS, &record));
    assert_true(record.enabled && !record.removed && !record.rate.enabled);
    assert_int_equal(record.sports, SPORT_SET_ALL);
    REFUSED(add(fixture, EDIT({"address", "::ffff:192.0.2.1"}), NOW_MS, &record), STATUS_EXISTS,
            "there is an address '192.0.2.1' already");
}

TEST_OF(fixture, only_one_exact_address_is_taken)
{
    struct legacy_record record = {0};
    static const char *const wrong[] = {"",        "192.0.2.0/24", "192.0.2.1:80",
                                        "[::1]",   "localhost",    "192.0.2.1 ",
                                        "192.0.2", "fe80::1%eth0"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        REFUSED(add(fixture, EDIT({"address", wrong[i]}), NOW_MS, &record), STATUS_INVALID,
                "not one exact IP address");
    static const char *const no_one[] = {"0.0.0.0", "::", "::ffff:0.0.0.0", "0:0:0:0:0:0:0:0"};
    for (size_t i = 0; i < sizeof no_one / sizeof no_one[0]; i++)
        REFUSED(add(fixture, EDIT({"address", no_one[i]}), NOW_MS, &record), STATUS_INVALID,
                "no address that a client can have");
}

TEST_OF(fixture, a_change_leaves_what_is_not_mentioned)
{
    struct legacy_record record = {0};
    OK(add(fixture, EDIT({"address", "2001:db8::1"}, {"sports", "tennis"}, {"rate", "5/60"}),
           NOW_MS, &record));
    OK(change(fixture, "2001:DB8::1", EDIT({"enabled", "no"}), &record));
    assert_false(record.enabled);
    assert_int_equal(record.sports, SPORT_BIT(SPORT_TENNIS));
    assert_int_equal(record.rate.requests, 5);
    OK(change(fixture, "2001:db8::1", EDIT({"rate", "off"}), &record));
    assert_false(record.enabled);
    assert_false(record.rate.enabled);
    assert_true(record.created_ms == NOW_MS);
}

TEST_OF(fixture, a_removed_address_is_gone_until_it_is_added_afresh)
{
    const struct resource_edit removal = {.remove = true};
    struct legacy_record record = {0};
    OK(add(fixture, EDIT({"address", "192.0.2.1"}, {"sports", "tennis"}, {"rate", "5/60"}), NOW_MS,
           &record));
    OK(change(fixture, "192.0.2.1", &removal, &record));
    assert_true(record.removed && !record.enabled);
    REFUSED(change(fixture, "192.0.2.1", &removal, &record), STATUS_NOT_FOUND,
            "there is no address '192.0.2.1'");
    REFUSED(change(fixture, "192.0.2.1", EDIT({"enabled", "yes"}), &record), STATUS_NOT_FOUND,
            "there is no address '192.0.2.1'");
    OK(add(fixture, EDIT({"address", "192.0.2.1"}), NOW_MS + 1, &record));
    assert_int_equal(record.sports, SPORT_SET_ALL);
    assert_false(record.rate.enabled);
    assert_true(record.enabled && record.created_ms == NOW_MS + 1);
}

TEST_OF(fixture, a_document_has_every_field)
{
    struct legacy_record record = {0};
    OK(add(fixture, EDIT({"address", "192.0.2.1"}, {"sports", "none"}, {"rate", "5/60"}), NOW_MS,
           &record));
    struct buffer text = document_of(&address_resource, &record);
    assert_string_equal(text.data, "{\"address\":\"192.0.2.1\",\"enabled\":true,\"sports\":[],"
                                   "\"rate\":{\"requests\":5,\"window_seconds\":60},"
                                   "\"created_at\":\"2025-11-21T04:40:00.000Z\"}");
    buffer_free(&text);
}
