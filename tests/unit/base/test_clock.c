/* base/clock: times as texts, and back. */
#include <unistd.h>

#include "base/clock.h"
#include "tests.h"

static void expect_parsed(const char *text, int64_t expected)
{
    int64_t wall_ms = -1;
    if (clock_parse_rfc3339(text_of(text), &wall_ms) != STATUS_OK)
        fail_msg("'%s' was refused", text);
    if (wall_ms != expected)
        fail_msg("'%s' is %lld", text, (long long)wall_ms);
}

TEST(rfc_3339_is_read)
{
    expect_parsed("1970-01-01T00:00:00Z", 0);
    expect_parsed("1970-01-01", 0);
    expect_parsed("2026-11-21T04:53:17Z", 1795236797000);
    expect_parsed("2026-11-21t04:53:17z", 1795236797000);
    expect_parsed("2026-11-21 04:53:17Z", 1795236797000);
    expect_parsed("2026-11-21T04:53:17.042Z", 1795236797042);
    expect_parsed("2026-11-21T04:53:17.0429999999999999999Z", 1795236797042);
    expect_parsed("2026-11-21T04:53:17.5Z", 1795236797500);
    expect_parsed("2026-11-21T10:23:17+05:30", 1795236797000);
    expect_parsed("2026-11-20T23:53:17-05:00", 1795236797000);
    expect_parsed("2024-02-29", 1709164800000);
    expect_parsed("2038-01-19T03:14:08Z", 2147483648000);
    expect_parsed("9999-12-31T23:59:59.999Z", 253402300799999);
}

TEST(a_leap_second_is_the_last_of_a_day_in_utc)
{
    expect_parsed("2016-12-31T23:59:60Z", 1483228800000);
    expect_parsed("2016-12-31T15:59:60-08:00", 1483228800000);
    expect_parsed("2017-01-01T05:29:60+05:30", 1483228800000);
}

TEST(what_is_no_time_is_refused)
{
    const char *wrong[] = {
        "",
        "now",
        "2026",
        "2026-11",
        "2026-11-21T",
        "2026-11-21T04:53",
        "2026-11-21T04:53Z",
        "2026-11-21T04:53:17",
        "2026-11-21T04:53:17.Z",
        "2026-11-21T04:53:17ZZ",
        "2026-11-21T04:53:17Z ",
        " 2026-11-21",
        "2026-11-21T24:00:00Z",
        "2026-11-21T04:60:00Z",
        "2026-11-21T04:53:61Z",
        "2026-11-21T12:30:60Z",
        "2026-11-21T23:59:60+01:00",
        "2026-11-21T04:53:17+5:30",
        "9999-12-31T23:59:59-05:00", /* the year 10000 */
        "2026-11-21T04:53:17+24:00",
        "2026-11-21T04:53:17+05:60",
        "2026-11-21T04:53:17+0530",
        "2026-00-21",
        "2026-13-21",
        "2026-11-00",
        "2026-11-31",
        "2026-02-29",
        "2100-02-29",
        "1969-12-31",
        "-2026-11-21",
        "+2026-11-21",
        "2026-1-21",
        "20261121",
        "2026-11-21T04:53:17,5Z",
    };
    int64_t wall_ms = 7;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (clock_parse_rfc3339(text_of(wrong[i]), &wall_ms) != STATUS_INVALID)
            fail_msg("'%s' was read", wrong[i]);
    assert_int_equal(clock_parse_rfc3339((struct text){NULL, 0}, &wall_ms), STATUS_INVALID);
    assert_int_equal(wall_ms, 7);
}

TEST(the_end_of_the_text_is_the_end)
{
    int64_t wall_ms;
    assert_int_equal(clock_parse_rfc3339((struct text){"2026-11-21T04:53:17Z", 10}, &wall_ms),
                     STATUS_OK);
    assert_true(wall_ms == 1795219200000);
    assert_int_equal(clock_parse_rfc3339((struct text){"2026-11-21T04:53:17Z", 19}, &wall_ms),
                     STATUS_INVALID);
}

TEST(times_are_written_in_both_forms)
{
    char out[CLOCK_TEXT_SIZE];
    clock_format_rfc3339(1795236797042, out);
    assert_string_equal(out, "2026-11-21T04:53:17.042Z");
    clock_format_http(1795236797042, out);
    assert_string_equal(out, "Sat, 21 Nov 2026 04:53:17 GMT");
    clock_format_rfc3339(0, out);
    assert_string_equal(out, "1970-01-01T00:00:00.000Z");
    clock_format_http(784111777000, out);
    assert_string_equal(out, "Sun, 06 Nov 1994 08:49:37 GMT");
    clock_format_rfc3339(-1, out);
    assert_string_equal(out, "1969-12-31T23:59:59.999Z");
}

TEST(what_is_written_is_read_again)
{
    for (int64_t wall_ms = 0; wall_ms < 253402300800000; wall_ms += 86400000LL * 17 + 12345678) {
        char out[CLOCK_TEXT_SIZE];
        clock_format_rfc3339(wall_ms, out);
        expect_parsed(out, wall_ms);
    }
}

TEST(clocks_do_not_run_backwards)
{
    uint64_t before = clock_monotonic_ns();
    assert_true(clock_monotonic_ns() >= before);
    assert_true(clock_monotonic_ms() >= before / 1000000);
    assert_true(clock_wall_ms() > 1700000000000);
}
