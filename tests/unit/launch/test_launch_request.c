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
    enum http_error error;
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
        enum http_error error;
    } cases[] = {
        {"", HTTP_ERROR_INVALID_REQUEST},
        {"[]", HTTP_ERROR_INVALID_REQUEST},
        {"{}", HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"demo\"", HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"Demo\"}", HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":null}", HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"demo\",\"mode\":\"demo\"}", HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"demo\",\"\\u006dode\":\"demo\"}", HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"demo\",\"currency\":\"EUR\"}", HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"demo\",\"player_reference\":\"a\"}", HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"real\",\"player_reference\":\"a\"}", HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"real\",\"currency\":\"EUR\"}", HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"real\",\"player_reference\":\"a b\",\"currency\":\"EUR\"}",
         HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"real\",\"player_reference\":7,\"currency\":\"EUR\"}",
         HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"real\",\"player_reference\":\"a\",\"currency\":\"eur\"}",
         HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"real\",\"player_reference\":\"a\",\"currency\":\"EURO\"}",
         HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"demo\",\"language\":null}", HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"demo\",\"device\":\"\"}", HTTP_ERROR_INVALID_REQUEST},
        {"{\"mode\":\"demo\",\"return_url\":\"https://x\"}", HTTP_ERROR_UNKNOWN_FIELD},
        {"{\"customer_id\":\"x\"}", HTTP_ERROR_UNKNOWN_FIELD},
        {"{\"x\":1,\"\\u0078\":1,\"mode\":\"demo\"}", HTTP_ERROR_INVALID_REQUEST},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct launch_request launch;
        enum http_error error = HTTP_ERROR_NOT_FOUND;
        if (launch_request_decode(JSON, text_of(cases[i].body), &launch, &error))
            fail_msg("taken: %s", cases[i].body);
        if (error != cases[i].error)
            fail_msg("%s: %s", cases[i].body, http_error_row(error)->code);
    }
}

static void another_content_type_is_refused(void **state)
{
    struct launch_request launch;
    enum http_error error;
    (void)state;
    assert_false(launch_request_decode(TEXT(""), TEXT("{\"mode\":\"demo\"}"), &launch, &error));
    assert_int_equal(error, HTTP_ERROR_INVALID_REQUEST);
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
