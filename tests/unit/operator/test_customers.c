/* operator/customers, resource and field: what an operator can do to customers. */
#include "platform_fixture.h"

#include "operator/customers.h"
#include "stores/platform_changes.h"

static struct customer_record add(struct fixture *fixture, const struct resource_edit *edit)
{
    struct customer_view view = {0};
    OK(resource_add(&customer_resource, fixture->store, edit, NOW_MS, &view, &fixture->error));
    return view.record;
}

static struct customer_view get(struct fixture *fixture, const char *id)
{
    struct customer_view view = {0};
    OK(resource_get(&customer_resource, fixture->store, id, &view, &fixture->error));
    return view;
}

TEST_OF(fixture, blocks_may_be_listed_and_are_kept_once)
{
    struct customer_record record =
        add(fixture, EDIT({"name", "n"}, {"cidrs", "192.0.2.0/24, 198.51.100.7,192.0.2.0/24"}));
    assert_int_equal(record.cidr_count, 2);
}

TEST_OF(fixture, what_is_not_acceptable_is_refused_and_nothing_is_added)
{
    struct customer_view view = {0};
    char long_name[CUSTOMER_NAME_SIZE + 1];
    memset(long_name, 'n', sizeof long_name);
    long_name[CUSTOMER_NAME_SIZE] = '\0';
    const struct {
        const char *field, *text, *words;
    } wrong[] = {
        {"name", "", "name: must be 1 to 128 bytes"},
        {"name", long_name, "name: must be 1 to 128 bytes"},
        {"name", "two\nlines", "control characters"},
        {"name", "\xC3", "UTF-8"},
        {"sports", "chess", "'chess' is not a sport"},
        {"sports", "cricket,", "not a sport"},
        {"rate", "0/1", "not a rate"},
        {"rate", "1/0", "not a rate"},
        {"rate", "1000000001/1", "not a rate"},
        {"rate", "1/86401", "not a rate"},
        {"rate", "10", "not a rate"},
        {"rate", "10/5/2", "not a rate"},
        {"rate", "", "not a rate"},
        {"cidrs", "192.0.2.1/24", "did you mean 192.0.2.0/24"},
        {"cidrs", "", "CIDR"},
        {"casino", "perhaps", "casino: must be yes or no"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        const struct resource_edit *edit = EDIT({"name", "n"}, {wrong[i].field, wrong[i].text});
        REFUSED(
            resource_add(&customer_resource, fixture->store, edit, NOW_MS, &view, &fixture->error),
            STATUS_INVALID, wrong[i].words);
        REFUSED(resource_check(&customer_resource, "cus_any", edit->settings, &fixture->error),
                STATUS_INVALID, wrong[i].words);
    }
    uint64_t revision = 9;
    OK(platform_revision(fixture->store, &revision, &fixture->error));
    assert_int_equal(revision, 0);
}

TEST_OF(fixture, more_blocks_than_a_customer_may_have_are_refused)
{
    struct buffer list = {0};
    struct customer_view view = {0};
    for (int i = 0; i <= CIDRS_MAX; i++)
        buffer_append_format(&list, "%s10.0.%d.%d", i == 0 ? "" : ",", i / 256, i % 256);
    const struct resource_edit *edit = EDIT({"name", "n"}, {"cidrs", buffer_string(&list)});
    REFUSED(resource_add(&customer_resource, fixture->store, edit, NOW_MS, &view, &fixture->error),
            STATUS_INVALID, "at most 256");
    *strrchr(list.data, ',') = '\0';
    struct customer_record record = add(fixture, edit);
    assert_int_equal(record.cidr_count, CIDRS_MAX);
    buffer_free(&list);
}

TEST_OF(fixture, a_change_that_is_refused_changes_nothing)
{
    struct customer_record record = add(fixture, EDIT({"name", "Acme"}));
    struct customer_view view = {0};
    REFUSED(resource_change(&customer_resource, fixture->store, record.id,
                            EDIT({"name", "Other"}, {"rate", "much"}), &view, &fixture->error),
            STATUS_INVALID, "'much' is not a rate");
    view = get(fixture, record.id);
    assert_string_equal(view.record.name, "Acme");
    REFUSED(resource_change(&customer_resource, fixture->store, "cus_nobody",
                            EDIT({"enabled", "yes"}), &view, &fixture->error),
            STATUS_NOT_FOUND, "there is no customer 'cus_nobody'");
}

TEST_OF(fixture, a_document_has_every_field)
{
    struct customer_view view = {
        add(fixture, EDIT({"name", "A \"b\" \xC3\xA9"}, {"sports", "tennis,cricket"},
                          {"rate", "5/60"}, {"cidrs", "192.0.2.0/24,2001:db8::1"})),
        3};
    strcpy(view.record.id, "cus_1");
    struct buffer text = document_of(&customer_resource, &view);
    assert_string_equal(
        text.data, "{\"id\":\"cus_1\",\"name\":\"A \\\"b\\\" \xC3\xA9\",\"enabled\":true,"
                   "\"cidrs\":[\"192.0.2.0/24\",\"2001:db8::1/128\"],"
                   "\"sports\":[\"cricket\",\"tennis\"],"
                   "\"rate\":{\"requests\":5,\"window_seconds\":60},\"casino\":false,"
                   "\"sandbox\":false,\"keys\":3,\"created_at\":\"2025-11-21T04:40:00.000Z\"}");
    buffer_free(&text);
    view.record.sports = SPORT_SET_ALL;
    view.record.rate.enabled = false;
    view.record.usable = false;
    view.record.cidr_count = 0;
    text = document_of(&customer_resource, &view);
    assert_non_null(strstr(text.data, "\"sports\":\"all\""));
    assert_non_null(strstr(text.data, "\"rate\":null"));
    assert_non_null(strstr(text.data, "\"cidrs\":[]"));
    assert_non_null(strstr(text.data, "\"usable\":false"));
    buffer_free(&text);
}

TEST(rates_are_shown_as_they_are_set)
{
    static const char *const texts[] = {"off", "1/1", "1000000000/86400"};
    const struct field *field = field_find(customer_resource.fields, "rate");
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct customer_view view = {.record.rate = {true, 9, 9}};
        struct buffer text = {0};
        assert_int_equal(field_setter_of(field)(field, text_of(texts[i]), &view, NULL), STATUS_OK);
        assert_true(field->type->write(field, &view, &(struct field_output){.text = &text}));
        assert_string_equal(buffer_string(&text), texts[i]);
        buffer_free(&text);
    }
}
