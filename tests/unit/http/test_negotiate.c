/* Accept-Encoding and If-None-Match: what a request asks for (RFC 9110 sections 12.5.3 and
 * 13.1.2); and the trace that it belongs to. */
#include "http/http.h"
#include "tests.h"

static struct http_request request_with(struct http_field_line *lines, enum http_field field,
                                        const char *first, const char *second)
{
    struct http_request request = {.lines = lines};
    const char *values[2] = {first, second};
    for (int i = 0; i < 2 && values[i] != NULL; i++) {
        lines[i] = (struct http_field_line){text_of(values[i]), field};
        request.line_count++;
        request.field_count[field]++;
    }
    return request;
}

static bool accepts(const char *first, const char *second)
{
    struct http_field_line lines[2];
    struct http_request request = request_with(lines, HTTP_FIELD_ACCEPT_ENCODING, first, second);
    return http_accepted_codings(&request).gzip;
}

static bool matches(const char *first, const char *second)
{
    struct http_field_line lines[2];
    struct http_request request = request_with(lines, HTTP_FIELD_IF_NONE_MATCH, first, second);
    return http_matches_etag(&request, TEXT("\"abc\""));
}

static bool is_encoded(const char *first, const char *second)
{
    struct http_field_line lines[2];
    struct http_request request = request_with(lines, HTTP_FIELD_CONTENT_ENCODING, first, second);
    return http_body_is_encoded(&request);
}

TEST(a_body_is_encoded_by_anything_but_identity)
{
    assert_true(is_encoded("gzip", NULL));
    assert_true(is_encoded("identity, gzip", NULL));
    assert_true(is_encoded("identity", "br"));
    assert_true(is_encoded("identity;q=1", NULL));
    assert_true(is_encoded("\"", NULL));
    assert_false(is_encoded(NULL, NULL));
    assert_false(is_encoded("Identity", "identity\t,"));
    assert_false(is_encoded("", NULL));
}

TEST(gzip_is_sent_to_those_who_ask_for_it)
{
    assert_true(accepts("gzip", NULL));
    assert_true(accepts("GZip", NULL));
    assert_true(accepts("x-gzip", NULL));
    assert_true(accepts("deflate, gzip, br", NULL));
    assert_true(accepts("deflate , gzip;q=0.001", NULL));
    assert_true(accepts("br", "gzip"));
    assert_true(accepts("*", NULL));
    assert_true(accepts("br;q=1.0, *;q=0.5", NULL));
    assert_true(accepts("gzip ; q=1.000", NULL));
    assert_true(accepts("gzip;Q=0.5", NULL));
    assert_true(accepts("gzip;q=0.5, identity;q=0.5", NULL));
    assert_true(accepts("gzip, *;q=0", NULL));
}

TEST(gzip_is_not_sent_to_those_who_do_not)
{
    assert_false(accepts(NULL, NULL));
    assert_false(accepts("", NULL));
    assert_false(accepts("br, deflate", NULL));
    assert_false(accepts("identity", NULL));
    assert_false(accepts("gzip;q=0", NULL));
    assert_false(accepts("gzip;q=0.000, *", NULL));
    assert_false(accepts("*;q=0", NULL));
    assert_false(accepts("gzip;q=0.5, identity", NULL));
    assert_false(accepts("gzip;q=0.5, identity;q=0.8", NULL));
    assert_false(accepts("gzipped", NULL));
    assert_false(accepts("gzip;q=2", NULL));
    assert_false(accepts("gzip;q=1.001", NULL));
    assert_false(accepts("gzip;q=0.0001", NULL));
    assert_false(accepts("gzip;q=", NULL));
    assert_false(accepts("gzip;level=9", NULL));
}

TEST(a_tag_is_found_wherever_it_stands_in_the_list)
{
    assert_true(matches("\"abc\"", NULL));
    assert_true(matches("W/\"abc\"", NULL));
    assert_true(matches("*", NULL));
    assert_true(matches("\"x\", \"abc\"", NULL));
    assert_true(matches("\"x\",W/\"abc\" , \"y\"", NULL));
    assert_true(matches(",, \"abc\"", NULL));
    assert_true(matches("\"x\"", "\"abc\""));
    assert_true(matches("\"a,b\", \"abc\"", NULL));
}

TEST(anything_else_does_not_match)
{
    assert_false(matches(NULL, NULL));
    assert_false(matches("", NULL));
    assert_false(matches("abc", NULL));
    assert_false(matches("\"abcd\"", NULL));
    assert_false(matches("\"ab", NULL));
    assert_false(matches("\"abc", NULL));
    assert_false(matches("w/\"abc\"", NULL));
    assert_false(matches("W/", NULL));
    assert_false(matches("\"x, \"abc", NULL));
    assert_false(matches("*, \"abc\"", NULL));
    assert_false(matches("\"\"", NULL));
}

static uint32_t wait_of(const char *first, const char *second)
{
    struct http_field_line lines[2];
    struct http_request request = request_with(lines, HTTP_FIELD_PREFER, first, second);
    return http_preferred_wait(&request, 55);
}

TEST(a_preference_to_wait_is_found_however_it_is_written)
{
    assert_int_equal(wait_of("wait=10", NULL), 10);
    assert_int_equal(wait_of("WAIT = 10", NULL), 10);
    assert_int_equal(wait_of("wait=\"10\"", NULL), 10);
    assert_int_equal(wait_of("respond-async, wait=10;x=1", NULL), 10);
    assert_int_equal(wait_of("a=\"b, wait=3\\\", wait=4\", wait=10", NULL), 10);
    assert_int_equal(wait_of("respond-async", "wait=10"), 10);
    assert_int_equal(wait_of("wait=10", "wait=20"), 10);
    assert_int_equal(wait_of("wait=00010", NULL), 10);
    assert_int_equal(wait_of("wait=56", NULL), 55);
    assert_int_equal(wait_of("wait=99999999999999999999999999", NULL), 55);
}

TEST(anything_else_is_no_preference_to_wait)
{
    static const char *const texts[] = {
        "",          "wait",    "wait=", "wait=0", "wait=-1",    "wait=1s",  "wait=+1", "wait=1.5",
        "waiting=5", "await=5", ",,;=",  "\"",     "a=\"wait=5", "wait=\"5", "wait=a\""};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_int_equal(wait_of(texts[i], NULL), 0);
    assert_int_equal(wait_of(NULL, NULL), 0);
}

static bool names_form(const char *first, const char *second)
{
    struct http_field_line lines[2];
    struct http_request request = request_with(lines, HTTP_FIELD_IF_NONE_MATCH, first, second);
    return http_names_form(&request, TEXT("\"abc"));
}

TEST(any_tag_is_matched_by_a_star_which_names_no_form)
{
    assert_true(matches("*", NULL));
    assert_false(names_form("*", NULL));
    assert_true(names_form("*", "W/\"abc\""));
}

TEST(a_form_is_named_by_each_tag_that_begins_with_its_content)
{
    assert_true(names_form("\"abc-gz\"", NULL));
    assert_true(names_form("\"x,\", \"abc-dcz-01234567\"", NULL));
    assert_false(names_form("\"xabc\"", "\"ab\""));
    assert_false(names_form("\"abc", NULL));
}

static bool takes_differences(const char *first, const char *second)
{
    struct http_field_line lines[2];
    struct http_request request = request_with(lines, HTTP_FIELD_ACCEPT_ENCODING, first, second);
    return http_accepted_codings(&request).dcz;
}

TEST(differences_are_sent_to_those_who_name_them)
{
    assert_true(takes_differences("gzip, dcz", NULL));
    assert_true(takes_differences("br", "DCZ;q=0.001"));
    assert_true(takes_differences("identity, dcz;q=0.1", NULL));
    assert_false(takes_differences("*", NULL));
    assert_false(takes_differences("gzip, dcz;q=0", NULL));
    assert_false(takes_differences("dcb, zstd", NULL));
    assert_false(takes_differences(NULL, NULL));
}

static const char *trace_of(const char *first, const char *second)
{
    static char trace[HTTP_TRACE_SIZE];
    struct http_field_line lines[2];
    struct http_request request = request_with(lines, HTTP_FIELD_TRACEPARENT, first, second);
    return http_request_trace(&request, trace) ? trace : "none";
}

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"
#define ZEROS "0000000000000000"

TEST(a_trace_is_passed_on_as_version_00_whatever_later_versions_add)
{
    const char *sampled = "00-" TRACE "-" PARENT "-01";
    assert_string_equal(trace_of(sampled, NULL), sampled);
    assert_string_equal(trace_of("00-" TRACE "-" PARENT "-00", NULL), "00-" TRACE "-" PARENT "-00");
    assert_string_equal(trace_of("00-" TRACE "-" PARENT "-03", NULL), "00-" TRACE "-" PARENT "-03");
    assert_string_equal(trace_of("00-" TRACE "-" PARENT "-fd", NULL), sampled);
    assert_string_equal(trace_of("01-" TRACE "-" PARENT "-01", NULL), sampled);
    assert_string_equal(trace_of("cc-" TRACE "-" PARENT "-01-what-the-future-will-be", NULL),
                        sampled);
    assert_string_equal(trace_of("fe-" TRACE "-" PARENT "-01-", NULL), sampled);
}

TEST(a_malformed_trace_is_none)
{
    static const char *const values[] = {
        "",
        "00",
        "00-" TRACE "-" PARENT,
        "00-" TRACE "-" PARENT "-1",
        "00-" TRACE "-" PARENT "-011",
        "00-" TRACE "-" PARENT "-01-more",
        "01-" TRACE "-" PARENT "-011",
        "cc-" TRACE "-" PARENT "-01.more",
        "ff-" TRACE "-" PARENT "-01",
        "0F-" TRACE "-" PARENT "-01",
        "00-" ZEROS ZEROS "-" PARENT "-01",
        "00-" TRACE "-" ZEROS "-01",
        "00-4BF92F3577B34DA6A3CE929D0E0E4736-" PARENT "-01",
        "00-" TRACE "-00F067AA0BA902B7-01",
        "00-" TRACE "-" PARENT "-0x",
        "00-" TRACE "_" PARENT "-01",
        "00-4bf92f3577b34da6a3ce929d0e0e473-" PARENT "-01 ",
        "0g-" TRACE "-" PARENT "-01",
        "00-" TRACE "-" PARENT "-01,"
        "00-" TRACE "-" PARENT "-01",
    };
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        assert_string_equal(trace_of(values[i], NULL), "none");
    assert_string_equal(trace_of(NULL, NULL), "none");
    assert_string_equal(trace_of("00-" TRACE "-" PARENT "-01", "00-" TRACE "-" PARENT "-01"),
                        "none");
}
