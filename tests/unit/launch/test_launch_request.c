/* What a launch may say, and the token that is made of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "launch/request.h"

#define JSON TEXT("application/json")

static void a_launch_says_who_plays_for_what(void **state)
{
    struct launch_request launch;
    const struct http_error *error;
    (void)state;
    assert_true(launch_request_decode(
        JSON,
        TEXT(" {\"mode\":\"real\",\"player_reference\":\"a.B_1:-\",\"curr\\u0065ncy\":\"EUR\","
             "\"language\":\"en\",\"device\":\"desktop\"} "),
        &launch, &error));
    assert_true(launch.real);
    assert_string_equal(launch.player_reference, "a.B_1:-");
    assert_string_equal(launch.currency, "EUR");
    assert_string_equal(launch.language, "en");
    assert_string_equal(launch.device, "desktop");
    assert_true(launch_request_decode(JSON, TEXT("{\"mode\":\"demo\"}"), &launch, &error));
    assert_false(launch.real);
    assert_string_equal(launch.device, "");
}

static void what_is_wrong_is_refused(void **state)
{
    static const struct {
        const char *body;
        const char *error;
    } cases[] = {
        {"", "invalid_request"},
        {"[]", "invalid_request"},
        {"{}", "invalid_request"},
        {"{\"mode\":\"demo\"", "invalid_request"},
        {"{\"mode\":\"Demo\"}", "invalid_request"},
        {"{\"mode\":null}", "invalid_request"},
        {"{\"mode\":\"demo\",\"mode\":\"demo\"}", "invalid_request"},
        {"{\"mode\":\"demo\",\"\\u006dode\":\"demo\"}", "invalid_request"},
        {"{\"mode\":\"demo\",\"currency\":\"EUR\"}", "invalid_request"},
        {"{\"mode\":\"demo\",\"player_reference\":\"a\"}", "invalid_request"},
        {"{\"mode\":\"real\",\"player_reference\":\"a\"}", "invalid_request"},
        {"{\"mode\":\"real\",\"currency\":\"EUR\"}", "invalid_request"},
        {"{\"mode\":\"real\",\"player_reference\":\"a b\",\"currency\":\"EUR\"}",
         "invalid_request"},
        {"{\"mode\":\"real\",\"player_reference\":7,\"currency\":\"EUR\"}", "invalid_request"},
        {"{\"mode\":\"real\",\"player_reference\":\"a\",\"currency\":\"eur\"}", "invalid_request"},
        {"{\"mode\":\"real\",\"player_reference\":\"a\",\"currency\":\"EURO\"}", "invalid_request"},
        {"{\"mode\":\"demo\",\"language\":null}", "invalid_request"},
        {"{\"mode\":\"demo\",\"device\":\"\"}", "invalid_request"},
        {"{\"mode\":\"demo\",\"return_url\":\"https://x\"}", "unknown_field"},
        {"{\"customer_id\":\"x\"}", "unknown_field"},
        {"{\"x\":1,\"\\u0078\":1,\"mode\":\"demo\"}", "invalid_request"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct launch_request launch;
        const struct http_error *error = NULL;
        if (launch_request_decode(JSON, text_of(cases[i].body), &launch, &error))
            fail_msg("taken: %s", cases[i].body);
        if (strcmp(error->code, cases[i].error) != 0)
            fail_msg("%s: %s", cases[i].body, error->code);
    }
}

static void another_content_type_is_refused(void **state)
{
    struct launch_request launch;
    const struct http_error *error;
    (void)state;
    assert_false(launch_request_decode(TEXT(""), TEXT("{\"mode\":\"demo\"}"), &launch, &error));
    assert_string_equal(error->code, "invalid_request");
    assert_false(
        launch_request_decode(TEXT("text/plain"), TEXT("{\"mode\":\"demo\"}"), &launch, &error));
}

static void a_token_is_a_jwt_that_others_can_verify(void **state)
{
    struct buffer token = {0};
    (void)state;
    /* Made with Python's hmac and base64. */
    launch_token_append(&token, TEXT("{\"sub\":\"1234567890\"}"), TEXT("secret"));
    assert_string_equal(buffer_string(&token),
                        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0."
                        "Rq8IxqeX7eA6GgYxlcHdPFVRNFFZc5rEI3MQTZZbK3I");
    buffer_free(&token);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_launch_says_who_plays_for_what),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(another_content_type_is_refused),
        cmocka_unit_test(a_token_is_a_jwt_that_others_can_verify),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
