/* operator/customers and policy_text: what an operator can do to customers. */
#include "platform_fixture.h"

#include "operator/customers.h"

static struct customer_record add(struct fixture *fixture, const struct customer_settings *settings)
{
    struct customer_record record = {0};
    OK(customers_add(fixture->store, settings, NOW_MS, &record, &fixture->error));
    return record;
}

static void a_new_customer_has_all_sports_no_limit_and_no_casino(void **state)
{
    struct fixture *fixture = *state;
    struct customer_record record = add(fixture, &(struct customer_settings){.name = "Acme"});
    assert_memory_equal(record.id, "cus_", 4);
    assert_int_equal(strlen(record.id), 20);
    assert_true(record.enabled && record.usable && !record.casino && !record.rate.enabled);
    assert_int_equal(record.sports, SPORT_SET_ALL);
    assert_int_equal(record.cidr_count, 0);
    assert_true(record.created_ms == NOW_MS);
    struct customer_record found;
    OK(customers_get(fixture->store, record.id, &found, &fixture->error));
    assert_string_equal(found.name, "Acme");
    customer_record_free(&found);
}

static void blocks_may_be_listed_and_are_kept_once(void **state)
{
    struct fixture *fixture = *state;
    const char *cidrs[] = {"192.0.2.0/24, 198.51.100.7", "192.0.2.0/24"};
    struct customer_record record = add(
        fixture, &(struct customer_settings){
                     .name = "n", .cidr_values = cidrs, .cidr_count = 2, .replace_cidrs = true});
    assert_int_equal(record.cidr_count, 2);
    customer_record_free(&record);
}

static void what_is_not_acceptable_is_refused_and_nothing_is_added(void **state)
{
    struct fixture *fixture = *state;
    struct customer_record record = {0};
    char long_name[CUSTOMER_NAME_SIZE + 1];
    memset(long_name, 'n', sizeof long_name);
    long_name[CUSTOMER_NAME_SIZE] = '\0';
    const char *wrong_block[] = {"192.0.2.1/24"};
    const struct {
        struct customer_settings settings;
        const char *words;
    } wrong[] = {
        {{.name = ""}, "a name is 1 to 128 bytes"},
        {{.name = long_name}, "a name is 1 to 128 bytes"},
        {{.name = "two\nlines"}, "control characters"},
        {{.name = "\xC3"}, "UTF-8"},
        {{.name = "n", .sports = "chess"}, "'chess' is not a sport"},
        {{.name = "n", .sports = "cricket,"}, "not a sport"},
        {{.name = "n", .rate = "0/1"}, "not a rate"},
        {{.name = "n", .rate = "1/0"}, "not a rate"},
        {{.name = "n", .rate = "1000000001/1"}, "not a rate"},
        {{.name = "n", .rate = "1/86401"}, "not a rate"},
        {{.name = "n", .rate = "10"}, "not a rate"},
        {{.name = "n", .rate = "10/5/2"}, "not a rate"},
        {{.name = "n", .rate = ""}, "not a rate"},
        {{.name = "n", .cidr_values = wrong_block, .cidr_count = 1, .replace_cidrs = true},
         "did you mean 192.0.2.0/24"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        REFUSED(customers_add(fixture->store, &wrong[i].settings, NOW_MS, &record, &fixture->error),
                STATUS_INVALID, wrong[i].words);
    uint64_t revision = 9;
    OK(platform_revision(fixture->store, &revision, &fixture->error));
    assert_int_equal(revision, 0);
}

static void more_blocks_than_a_customer_may_have_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct buffer list = {0};
    struct customer_record record = {0};
    for (int i = 0; i <= CIDRS_MAX; i++)
        buffer_append_format(&list, "%s10.0.%d.%d", i == 0 ? "" : ",", i / 256, i % 256);
    const char *cidrs[] = {buffer_string(&list)};
    struct customer_settings settings = {
        .name = "n", .cidr_values = cidrs, .cidr_count = 1, .replace_cidrs = true};
    REFUSED(customers_add(fixture->store, &settings, NOW_MS, &record, &fixture->error),
            STATUS_INVALID, "at most 256");
    *strrchr(list.data, ',') = '\0';
    record = add(fixture, &settings);
    assert_int_equal(record.cidr_count, CIDRS_MAX);
    customer_record_free(&record);
    buffer_free(&list);
}

static void a_change_leaves_what_is_not_mentioned(void **state)
{
    struct fixture *fixture = *state;
    const char *cidrs[] = {"192.0.2.0/24"};
    struct customer_record record = add(fixture, &(struct customer_settings){.name = "Acme",
                                                                             .sports = "tennis",
                                                                             .rate = "5/60",
                                                                             .cidr_values = cidrs,
                                                                             .cidr_count = 1,
                                                                             .replace_cidrs = true,
                                                                             .casino = SETTING_ON});
    struct customer_record changed = {0};
    OK(customers_change(fixture->store, record.id,
                        &(struct customer_settings){.enabled = SETTING_OFF}, &changed,
                        &fixture->error));
    assert_false(changed.enabled);
    assert_string_equal(changed.name, "Acme");
    assert_int_equal(changed.sports, SPORT_BIT(SPORT_TENNIS));
    assert_int_equal(changed.rate.requests, 5);
    assert_int_equal(changed.cidr_count, 1);
    assert_true(changed.casino);
    customer_record_free(&changed);

    OK(customers_change(
        fixture->store, record.id,
        &(struct customer_settings){
            .name = "Zenith", .rate = "off", .replace_cidrs = true, .casino = SETTING_OFF},
        &changed, &fixture->error));
    customer_record_free(&changed);
    OK(customers_get(fixture->store, record.id, &changed, &fixture->error));
    assert_string_equal(changed.name, "Zenith");
    assert_false(changed.enabled);
    assert_false(changed.rate.enabled);
    assert_false(changed.casino);
    assert_int_equal(changed.cidr_count, 0);
    assert_int_equal(changed.sports, SPORT_BIT(SPORT_TENNIS));
    customer_record_free(&changed);
    customer_record_free(&record);
}

static void a_change_that_is_refused_changes_nothing(void **state)
{
    struct fixture *fixture = *state;
    struct customer_record record = add(fixture, &(struct customer_settings){.name = "Acme"});
    struct customer_record changed = {0};
    REFUSED(customers_change(fixture->store, record.id,
                             &(struct customer_settings){.name = "Other", .rate = "much"}, &changed,
                             &fixture->error),
            STATUS_INVALID, "'much' is not a rate");
    OK(customers_get(fixture->store, record.id, &changed, &fixture->error));
    assert_string_equal(changed.name, "Acme");
    customer_record_free(&changed);
    REFUSED(customers_change(fixture->store, "cus_nobody",
                             &(struct customer_settings){.enabled = SETTING_ON}, &changed,
                             &fixture->error),
            STATUS_NOT_FOUND, "there is no customer 'cus_nobody'");
}

static void json_has_every_field(void **state)
{
    struct fixture *fixture = *state;
    const char *cidrs[] = {"192.0.2.0/24", "2001:db8::1"};
    struct customer_record record =
        add(fixture, &(struct customer_settings){.name = "A \"b\" \xC3\xA9",
                                                 .sports = "tennis,cricket",
                                                 .rate = "5/60",
                                                 .cidr_values = cidrs,
                                                 .cidr_count = 2,
                                                 .replace_cidrs = true});
    strcpy(record.id, "cus_1");
    yyjson_mut_doc *doc = yyjson_mut_doc_new(NULL);
    char *text = JSON_OF(doc, customer_json(doc, &record, 3));
    assert_string_equal(text,
                        "{\"id\":\"cus_1\",\"name\":\"A \\\"b\\\" \xC3\xA9\",\"enabled\":true,"
                        "\"cidrs\":[\"192.0.2.0/24\",\"2001:db8::1/128\"],"
                        "\"sports\":[\"cricket\",\"tennis\"],"
                        "\"rate\":{\"requests\":5,\"window_seconds\":60},\"casino\":false,"
                        "\"keys\":3,\"created_at\":\"2025-11-21T04:40:00.000Z\"}");
    free(text);
    customer_record_free(&record);
    record.sports = SPORT_SET_ALL;
    record.rate.enabled = false;
    record.usable = false;
    text = JSON_OF(doc, customer_json(doc, &record, 0));
    assert_non_null(strstr(text, "\"sports\":\"all\""));
    assert_non_null(strstr(text, "\"rate\":null"));
    assert_non_null(strstr(text, "\"cidrs\":[]"));
    assert_non_null(strstr(text, "\"usable\":false"));
    free(text);
    yyjson_mut_doc_free(doc);
}

static void rates_are_written_as_they_are_read(void **state)
{
    (void)state;
    static const char *const texts[] = {"off", "1/1", "1000000000/86400"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct rate_limit rate = {true, 9, 9};
        struct buffer text = {0};
        assert_int_equal(rate_parse(text_of(texts[i]), &rate, NULL), STATUS_OK);
        rate_append(&text, &rate);
        assert_string_equal(buffer_string(&text), texts[i]);
        buffer_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(a_new_customer_has_all_sports_no_limit_and_no_casino),
        WITH_STORE(blocks_may_be_listed_and_are_kept_once),
        WITH_STORE(what_is_not_acceptable_is_refused_and_nothing_is_added),
        WITH_STORE(more_blocks_than_a_customer_may_have_are_refused),
        WITH_STORE(a_change_leaves_what_is_not_mentioned),
        WITH_STORE(a_change_that_is_refused_changes_nothing),
        WITH_STORE(json_has_every_field),
        cmocka_unit_test(rates_are_written_as_they_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
