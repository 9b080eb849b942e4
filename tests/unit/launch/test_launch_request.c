/* What a launch may say, and the token that is made of it. */
#include "launch/document.h"
#include "tests.h"

#define JSON TEXT("application/json")

static struct strict_json_fault fault; /* of the last request that was refused */

TEST(a_launch_says_who_plays_for_what)
{
    struct launch_request launch;
    assert_int_equal(
        launch_request_decode(
            JSON,
            TEXT(" {\"mode\":\"real\",\"player_reference\":\"a.B_1:-\",\"curr\\u0065ncy\":\"EUR\","
                 "\"language\":\"en\",\"device\":\"desktop\",\"country\":\"GB\","
                 "\"player_ip\":\"2001:DB8:0:0::1\"} "),
            &launch, &fault),
        STRICT_JSON_OK);
    assert_true(launch.real);
    assert_string_equal(launch.player_reference, "a.B_1:-");
    assert_string_equal(launch.currency, "EUR");
    assert_string_equal(launch.language, "en");
    assert_string_equal(launch.device, "desktop");
    assert_string_equal(launch.country, "GB");
    assert_string_equal(launch.player_ip, "2001:db8::1");
    assert_int_equal(launch_request_decode(JSON, TEXT("{\"mode\":\"demo\"}"), &launch, &fault),
                     STRICT_JSON_OK);
    assert_false(launch.real);
    assert_string_equal(launch.device, "");
    assert_string_equal(launch.country, "");
    assert_string_equal(launch.player_ip, "");
}

TEST(what_is_wrong_is_refused)
{
    static const struct {
        const char *body;
        enum strict_json wrong;
    } cases[] = {
        {"", STRICT_JSON_INVALID},
        {"[]", STRICT_JSON_INVALID},
        {"{}", STRICT_JSON_INVALID},
        {"{\"mode\":\"demo\"", STRICT_JSON_INVALID},
        {"{\"mode\":\"Demo\"}", STRICT_JSON_INVALID},
        {"{\"mode\":null}", STRICT_JSON_INVALID},
        {"{\"mode\":\"demo\",\"mode\":\"demo\"}", STRICT_JSON_INVALID},
        {"{\"mode\":\"demo\",\"\\u006dode\":\"demo\"}", STRICT_JSON_INVALID},
        {"{\"mode\":\"demo\",\"currency\":\"EUR\"}", STRICT_JSON_INVALID},
        {"{\"mode\":\"demo\",\"player_reference\":\"a\"}", STRICT_JSON_INVALID},
        {"{\"mode\":\"real\",\"player_reference\":\"a\"}", STRICT_JSON_INVALID},
        {"{\"mode\":\"real\",\"currency\":\"EUR\"}", STRICT_JSON_INVALID},
        {"{\"mode\":\"real\",\"player_reference\":\"a b\",\"currency\":\"EUR\"}",
         STRICT_JSON_INVALID},
        {"{\"mode\":\"real\",\"player_reference\":7,\"currency\":\"EUR\"}", STRICT_JSON_INVALID},
        {"{\"mode\":\"real\",\"player_reference\":\"a\",\"currency\":\"eur\"}",
         STRICT_JSON_INVALID},
        {"{\"mode\":\"real\",\"player_reference\":\"a\",\"currency\":\"EURO\"}",
         STRICT_JSON_INVALID},
        {"{\"mode\":\"demo\",\"language\":null}", STRICT_JSON_INVALID},
        {"{\"mode\":\"demo\",\"device\":\"\"}", STRICT_JSON_INVALID},
        {"{\"mode\":\"demo\",\"country\":\"UK\"}", STRICT_JSON_INVALID},
        {"{\"mode\":\"demo\",\"country\":\"DEU\"}", STRICT_JSON_INVALID},
        {"{\"mode\":\"demo\",\"player_ip\":\"203.0.113\"}", STRICT_JSON_INVALID},
        {"{\"mode\":\"demo\",\"player_ip\":1}", STRICT_JSON_INVALID},
        {"{\"mode\":\"demo\",\"return_url\":\"https://x\"}", STRICT_JSON_UNKNOWN_FIELD},
        {"{\"customer_id\":\"x\"}", STRICT_JSON_UNKNOWN_FIELD},
        {"{\"x\":1,\"\\u0078\":1,\"mode\":\"demo\"}", STRICT_JSON_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct launch_request launch;
        enum strict_json decoded =
            launch_request_decode(JSON, text_of(cases[i].body), &launch, &fault);
        if (decoded != cases[i].wrong)
            fail_msg("%s: %d", cases[i].body, (int)decoded);
    }
}

TEST(a_refusal_names_the_field)
{
    static const struct {
        const char *body, *message;
    } cases[] = {
        {"{}", "The field mode is missing."},
        {"{\"mode\":true}", "The field mode must be real or demo."},
        {"{\"mode\":\"real\",\"currency\":\"EUR\"}", "The field player_reference is missing."},
        {"{\"mode\":\"demo\",\"currency\":\"EUR\"}",
         "The field currency does not go with this mode."},
        {"{\"mode\":\"real\",\"player_reference\":\"a\",\"currency\":\"eur\"}",
         "The field currency must be a string of three capital letters."},
        {"{\"mode\":\"demo\",\"return_url\":\"x\"}",
         "The request has an unknown field. It may have mode, language, device, "
         "country, player_ip."},
        {"{\"return_url\":\"x\"}",
         "The request has an unknown field. It may have mode, "
         "player_reference, currency, language, device, country, player_ip."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct launch_request launch;
        assert_int_not_equal(launch_request_decode(JSON, text_of(cases[i].body), &launch, &fault),
                             STRICT_JSON_OK);
        assert_string_equal(fault.message, cases[i].message);
    }
}

TEST(another_content_type_is_refused)
{
    static const char *const types[] = {"", "text/plain"};
    struct launch_request launch;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        assert_int_equal(
            launch_request_decode(text_of(types[i]), TEXT("{\"mode\":\"demo\"}"), &launch, &fault),
            STRICT_JSON_INVALID);
    assert_string_equal(fault.message, "The Content-Type must be application/json.");
}

TEST(a_token_is_a_jwt_that_others_can_verify)
{
    struct buffer token = {0};
    /* Made with Python's hmac and base64. */
    launch_token_append(&token, TEXT("{\"sub\":\"1234567890\"}"), "", TEXT("secret"));
    assert_string_equal(buffer_string(&token),
                        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0."
                        "Rq8IxqeX7eA6GgYxlcHdPFVRNFFZc5rEI3MQTZZbK3I");
    buffer_free(&token);
}
