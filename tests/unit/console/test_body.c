/* console/body: JSON as settings of a resource. */
#include "console/body.h"
#include "operator/customers.h"
#include "operator/providers.h"
#include "tests.h"

static enum status read(const struct resource *resource, bool add, const char *body,
                        struct console_settings *settings, char field[64])
{
    struct error error;
    return console_settings_read(resource, add, text_of(body), settings, field, &error);
}

static void assert_setting(const struct resource *resource, const char *body, const char *text)
{
    struct console_settings settings;
    char field[64];
    assert_int_equal(read(resource, false, body, &settings, field), STATUS_OK);
    assert_int_equal(settings.count, 1);
    if (text == NULL)
        assert_null(settings.list[0].text);
    else
        assert_string_equal(settings.list[0].text, text);
    assert_null(settings.list[1].name);
    console_settings_free(&settings);
}

TEST(a_value_is_the_text_that_a_person_would_write)
{
    const struct resource *customer = &customer_resource;
    assert_setting(customer, "{\"name\":\"A \\u0041\"}", "A A");
    assert_setting(customer, "{\"casino\":true}", "yes");
    assert_setting(customer, "{\"enabled\":false}", "no");
    assert_setting(customer, "{\"sports\":[\"cricket\",\"tennis\"]}", "cricket,tennis");
    assert_setting(customer, "{\"sports\":[]}", "none");
    assert_setting(customer, "{\"rate\":{\"requests\":600,\"window_seconds\":60}}", "600/60");
    assert_setting(customer, "{\"rate\":null}", "off");
    assert_setting(customer, "{\"cidrs\":[]}", NULL);
    assert_setting(&provider_resource, "{\"return_url\":null}", NULL);
}

TEST(null_leaves_what_cannot_be_without)
{
    struct console_settings settings;
    char field[64];
    const char *shown = "{\"launch_url\":null,\"launch_endpoint\":\"https://a/\"}";
    assert_int_equal(read(&provider_resource, false, shown, &settings, field), STATUS_OK);
    assert_int_equal(settings.count, 1);
    assert_string_equal(settings.list[0].name, "launch_endpoint");
    console_settings_free(&settings);
}

TEST(what_is_no_setting_is_refused)
{
    static const struct {
        const char *body, *field;
    } wrong[] = {
        {"", ""},
        {"[]", ""},
        {"{", ""},
        {"{\"unknown\":1}", ""},
        {"{\"id\":\"cus_1\"}", ""},
        {"{\"created_at\":null}", ""},
        {"{\"name\":\"a\\u0000b\"}", "name"},
        {"{\"name\":\"a\",\"name\":\"b\"}", "name"},
        {"{\"cidrs\":[1]}", "cidrs"},
        {"{\"cidrs\":[\"a,b\"]}", "cidrs"},
        {"{\"cidrs\":[[]]}", "cidrs"},
        {"{\"casino\":{}}", "casino"},
    };
    struct console_settings settings;
    char field[64];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        assert_int_equal(read(&customer_resource, false, wrong[i].body, &settings, field),
                         STATUS_INVALID);
        assert_string_equal(field, wrong[i].field);
        console_settings_free(&settings);
    }
    assert_int_equal(read(&customer_resource, true, "{\"enabled\":true}", &settings, field),
                     STATUS_INVALID);
    console_settings_free(&settings);
}
