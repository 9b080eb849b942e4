/* The tables of errors against docs/interface.md. */
#include "account/error_rows.h"
#include "admission/error_rows.h"
#include "api/error_rows.h"
#include "api/reasons.h"
#include "games/errors.h"
#include "launch/error_rows.h"
#include "sports/errors.h"
#include "tests.h"
#include "wallet/error_rows.h"

TEST(every_code_has_the_status_that_the_interface_gives_it)
{
    static const struct {
        const struct http_error *error;
        int status;
        const char *code;
    } wanted[] = {
        {&error_malformed_line, 400, "bad_request"},
        {&error_https_required, 400, "https_required"},
        {&error_request_timeout, 408, "request_timeout"},
        {&error_precondition_failed, 412, "precondition_failed"},
        {&error_payload_too_large, 413, "payload_too_large"},
        {&error_uri_too_long, 414, "uri_too_long"},
        {&error_unsupported_media_type, 415, "unsupported_media_type"},
        {&error_headers_too_large, 431, "headers_too_large"},
        {&error_unknown_method, 501, "not_implemented"},
        {&error_version_not_supported, 505, "version_not_supported"},
        {&error_invalid_sport, 400, "invalid_sport"},
        {&error_invalid_event_id, 400, "invalid_event_id"},
        {&error_unknown_key, 403, "ip_not_allowed"},
        {&error_sport_not_allowed, 403, "sport_not_allowed"},
        {&error_not_found, 404, "not_found"},
        {&error_event_not_found, 404, "event_not_found"},
        {&error_odds_not_found, 404, "odds_not_found"},
        {&error_method_not_allowed, 405, "method_not_allowed"},
        {&error_rate_limited, 429, "rate_limited"},
        {&error_bug, 500, "internal_error"},
        {&error_malformed_upstream_data, 502, "malformed_upstream_data"},
        {&error_catalog_unavailable, 503, "catalog_unavailable"},
        {&error_cache_unavailable, 503, "cache_unavailable"},
        {&error_policies_unconfirmed, 503, "security_config_unavailable"},
        {&error_cache_timeout, 504, "cache_timeout"},
        {&error_too_many_connections, 503, "overloaded"},
    };
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        assert_int_equal(wanted[i].error->status, wanted[i].status);
        assert_string_equal(wanted[i].error->code, wanted[i].code);
    }
}

TEST(messages_are_those_that_the_interface_quotes)
{
    assert_string_equal(error_invalid_sport.message,
                        "Unsupported sport. Supported sports: cricket, football, tennis, "
                        "horse-racing, greyhound-racing");
    assert_string_equal(error_no_policy.message, "Client address is not allowed.");
    assert_string_equal(error_sport_not_allowed.message, "This sport is not enabled for your IP.");
    assert_string_equal(error_event_not_found.message, "Event not found");
}

TEST(every_row_is_filled_and_each_cause_has_a_word_of_its_own)
{
    size_t codes = 0;
    for (size_t i = 0; reason_at(i) != NULL; i++) {
        const struct http_error *error = reason_at(i);
        bool is_known = false;
        assert_int_equal(reason_number(error), i);
        assert_true(error->reason[0] != '\0');
        assert_true(error->status == 304 || (error->status >= 400 && error->status <= 599));
        const bool own_body = error->status == 304 || error == &error_health_degraded;
        assert_int_equal(error->code[0] == '\0', own_body);
        assert_int_equal(error->message[0] == '\0', own_body);
        for (size_t j = 0; j < i; j++) {
            const struct http_error *other = reason_at(j);
            assert_string_not_equal(error->reason, other->reason);
            if (own_body || strcmp(error->code, other->code) != 0)
                continue;
            assert_int_equal(error->status, other->status);
            if (error != &error_account_busy && other != &error_account_busy) /* no budget */
                assert_string_equal(error->message, other->message);
            is_known = true;
        }
        codes += !is_known;
    }
    assert_true(codes > 40 && reason_at(codes) != NULL && reason_at(REASONS_MAX) == NULL);
}

TEST(a_failing_store_is_told_by_what_went_wrong)
{
    assert_ptr_equal(sports_error_of(STATUS_NOT_FOUND, &error_event_not_found),
                     &error_event_not_found);
    assert_ptr_equal(sports_error_of(STATUS_UNAVAILABLE, &error_event_not_found),
                     &error_cache_unavailable);
    assert_ptr_equal(sports_error_of(STATUS_TIMEOUT, &error_event_not_found), &error_cache_timeout);
    assert_ptr_equal(sports_error_of(STATUS_MALFORMED, &error_event_not_found),
                     &error_malformed_upstream_data);
    assert_ptr_equal(sports_error_of(STATUS_FULL, &error_event_not_found), &error_odds_queue_full);
    assert_ptr_equal(sports_error_of(STATUS_INTERNAL, &error_event_not_found), &error_bug);
}
