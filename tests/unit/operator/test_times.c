/* operator/times: times as operators write them. */
#include "operator/times.h"
#include "tests.h"

#define NOW_MS 1763700000000LL /* 2025-11-21T04:40:00Z */
#define DAY_MS 86400000LL

TEST(an_expiry_is_a_date_a_time_or_a_duration)
{
    static const struct {
        const char *text;
        int64_t expected_ms;
    } right[] = {
        {"90d", NOW_MS + 90 * DAY_MS},
        {"2w", NOW_MS + 14 * DAY_MS},
        {"12h", NOW_MS + DAY_MS / 2},
        {"30m", NOW_MS + 1800000},
        {"1s", NOW_MS + 1000},
        {"2026-01-01", 1767225600000},
        {"2026-01-01T00:00:00Z", 1767225600000},
        {"2026-01-01T01:00:00+01:00", 1767225600000},
    };
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        int64_t expires_ms = 0;
        assert_int_equal(time_parse_ahead(text_of(right[i].text), NOW_MS, &expires_ms, NULL),
                         STATUS_OK);
        assert_true(expires_ms == right[i].expected_ms);
    }
}

TEST(an_expiry_that_is_past_or_no_time_is_refused)
{
    static const char *const wrong[] = {"",
                                        "d",
                                        "90",
                                        "-1d",
                                        "0d",
                                        "1.5h",
                                        "90 d",
                                        "2025-11-20",
                                        "tomorrow",
                                        "2026-02-30",
                                        "9999999999w",
                                        "99999999999999999999d",
                                        "2025-11-21T04:40:00Z"};
    struct error error;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        int64_t expires_ms = 7;
        if (time_parse_ahead(text_of(wrong[i]), NOW_MS, &expires_ms, &error) != STATUS_INVALID)
            fail_msg("'%s' was taken", wrong[i]);
        assert_true(expires_ms == 7);
    }
}

TEST(a_time_that_is_past_is_a_date_a_time_or_so_long_ago)
{
    int64_t time_ms = 0;
    assert_int_equal(time_parse_past(TEXT("12h"), NOW_MS, &time_ms, NULL), STATUS_OK);
    assert_true(time_ms == NOW_MS - DAY_MS / 2);
    assert_int_equal(time_parse_past(TEXT("2025-01-01"), NOW_MS, &time_ms, NULL), STATUS_OK);
    assert_true(time_ms == 1735689600000);
    assert_int_equal(time_parse_past(TEXT("yesterday"), NOW_MS, &time_ms, NULL), STATUS_INVALID);
    assert_int_equal(time_parse_past(TEXT(""), NOW_MS, &time_ms, NULL), STATUS_INVALID);
    assert_true(time_ms == 1735689600000);
}
