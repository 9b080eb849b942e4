/* The error table against docs/interface.md. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "http/http.h"

static void every_code_has_the_status_that_the_interface_gives_it(void **state)
{
    (void)state;
    static const struct {
        enum http_error error;
        int status;
        const char *code;
    } wanted[] = {
        {HTTP_ERROR_BAD_REQUEST, 400, "bad_request"},
        {HTTP_ERROR_HTTPS_REQUIRED, 400, "https_required"},
        {HTTP_ERROR_REQUEST_TIMEOUT, 408, "request_timeout"},
        {HTTP_ERROR_PAYLOAD_TOO_LARGE, 413, "payload_too_large"},
        {HTTP_ERROR_URI_TOO_LONG, 414, "uri_too_long"},
        {HTTP_ERROR_UNSUPPORTED_MEDIA_TYPE, 415, "unsupported_media_type"},
        {HTTP_ERROR_HEADERS_TOO_LARGE, 431, "headers_too_large"},
        {HTTP_ERROR_NOT_IMPLEMENTED, 501, "not_implemented"},
        {HTTP_ERROR_VERSION_NOT_SUPPORTED, 505, "version_not_supported"},
        {HTTP_ERROR_INVALID_SPORT, 400, "invalid_sport"},
        {HTTP_ERROR_INVALID_EVENT_ID, 400, "invalid_event_id"},
        {HTTP_ERROR_IP_NOT_ALLOWED, 403, "ip_not_allowed"},
        {HTTP_ERROR_SPORT_NOT_ALLOWED, 403, "sport_not_allowed"},
        {HTTP_ERROR_NOT_FOUND, 404, "not_found"},
        {HTTP_ERROR_EVENT_NOT_FOUND, 404, "event_not_found"},
        {HTTP_ERROR_ODDS_NOT_FOUND, 404, "odds_not_found"},
        {HTTP_ERROR_METHOD_NOT_ALLOWED, 405, "method_not_allowed"},
        {HTTP_ERROR_RATE_LIMITED, 429, "rate_limited"},
        {HTTP_ERROR_INTERNAL_ERROR, 500, "internal_error"},
        {HTTP_ERROR_MALFORMED_UPSTREAM_DATA, 502, "malformed_upstream_data"},
        {HTTP_ERROR_CATALOG_UNAVAILABLE, 503, "catalog_unavailable"},
        {HTTP_ERROR_CACHE_UNAVAILABLE, 503, "cache_unavailable"},
        {HTTP_ERROR_SECURITY_CONFIG_UNAVAILABLE, 503, "security_config_unavailable"},
        {HTTP_ERROR_CACHE_TIMEOUT, 504, "cache_timeout"},
        {HTTP_ERROR_OVERLOADED, 503, "overloaded"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        const struct http_error_row *row = http_error_row(wanted[i].error);
        assert_int_equal(row->status, wanted[i].status);
        assert_string_equal(row->code, wanted[i].code);
    }
}

static void messages_are_those_that_the_interface_quotes(void **state)
{
    (void)state;
    assert_string_equal(http_error_row(HTTP_ERROR_INVALID_SPORT)->message,
                        "Unsupported sport. Supported sports: cricket, football, tennis, "
                        "horse-racing, greyhound-racing");
    assert_string_equal(http_error_row(HTTP_ERROR_IP_NOT_ALLOWED)->message,
                        "Client address is not allowed.");
    assert_string_equal(http_error_row(HTTP_ERROR_SPORT_NOT_ALLOWED)->message,
                        "This sport is not enabled for your IP.");
    assert_string_equal(http_error_row(HTTP_ERROR_EVENT_NOT_FOUND)->message, "Event not found");
}

static void every_row_is_filled_and_no_code_occurs_twice(void **state)
{
    (void)state;
    for (int i = 0; i < HTTP_ERROR_COUNT; i++) {
        const struct http_error_row *row = http_error_row((enum http_error)i);
        assert_true(row->status >= 400 && row->status <= 599 && row->message[0] != '\0');
        for (int j = 0; j < i; j++)
            assert_string_not_equal(row->code, http_error_row((enum http_error)j)->code);
    }
}

static void a_failing_store_is_told_by_what_went_wrong(void **state)
{
    (void)state;
    assert_int_equal(http_error_of_status(STATUS_UNAVAILABLE), HTTP_ERROR_CACHE_UNAVAILABLE);
    assert_int_equal(http_error_of_status(STATUS_TIMEOUT), HTTP_ERROR_CACHE_TIMEOUT);
    assert_int_equal(http_error_of_status(STATUS_MALFORMED), HTTP_ERROR_MALFORMED_UPSTREAM_DATA);
    assert_int_equal(http_error_of_status(STATUS_FULL), HTTP_ERROR_OVERLOADED);
    assert_int_equal(http_error_of_status(STATUS_INTERNAL), HTTP_ERROR_INTERNAL_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_the_status_that_the_interface_gives_it),
        cmocka_unit_test(messages_are_those_that_the_interface_quotes),
        cmocka_unit_test(every_row_is_filled_and_no_code_occurs_twice),
        cmocka_unit_test(a_failing_store_is_told_by_what_went_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
