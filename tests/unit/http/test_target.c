/* Request targets and Host: what is a path, and what is refused. */
#include "http/intake.h"
#include "tests.h"

static char bytes[256];
static struct text path;
static struct text query;

static enum status split(enum http_method method, const char *target)
{
    size_t size = strlen(target);
    memcpy(bytes, target, size);
    path = query = (struct text){NULL, 0};
    return http_target_split(bytes, size, method, &path, &query);
}

static void assert_split(const char *target, const char *wanted_path, const char *wanted_query)
{
    assert_int_equal(split(METHOD_GET, target), STATUS_OK);
    if (!text_equals(path, text_of(wanted_path)) || !text_equals(query, text_of(wanted_query)))
        fail_msg("%s: got '%.*s' and '%.*s'", target, (int)path.size, path.at, (int)query.size,
                 query.size > 0 ? query.at : "");
}

TEST(a_target_is_a_path_and_perhaps_a_query)
{
    assert_split("/", "/", "");
    assert_split("/api/v1/sports", "/api/v1/sports", "");
    assert_split("/a?b=c", "/a", "b=c");
    assert_split("/a?b?c=%41", "/a", "b?c=%41");
    assert_split("/a?", "/a", "");
    assert_split("//a", "//a", "");
    assert_split("/a/../b", "/a/../b", "");
}

TEST(only_unreserved_characters_are_decoded)
{
    assert_split("/%61pi/v1", "/api/v1", "");
    assert_split("/%7E%2d%2E%5f%41%7a%30", "/~-._Az0", "");
    assert_split("/a%2Fb", "/a%2Fb", "");
    assert_split("/a%20b%00%ff", "/a%20b%00%ff", "");
    assert_split("/%2561", "/%2561", "");
    assert_split("/%2541", "/%2541", ""); /* decoded once */
    assert_split("/%c3%A4?%c3", "/%c3%A4", "%c3");
}

TEST(an_absolute_target_is_reduced_to_its_path)
{
    assert_split("http://example.com/a?b", "/a", "b");
    assert_split("HTTPS://example.com:8443/a", "/a", "");
    assert_split("http://example.com", "/", "");
    assert_split("http://[::1]:80?x", "/", "x");
}

TEST(what_is_no_target_is_refused)
{
    const char *bad[] = {"",        "a",           "*",          "/a#b",        "/a b",
                         "/\x7f",   "/\xc3\xa4",   "http://",    "http:///a",   "ftp://a/b",
                         "http:/a", "http://a b/", "?a",         "http://u@h/", "/%",
                         "/%6",     "/%6g",        "/%g6",       "/%zz",        "/a?%",
                         "/a?b=%4", "/%%361",      "http://h/%z"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (split(METHOD_GET, bad[i]) != STATUS_INVALID)
            fail_msg("'%s' was taken", bad[i]);
}

TEST(only_what_rfc_3986_has_is_part_of_a_target)
{
    for (int byte = 1; byte < 256; byte++) {
        const char good[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~"
                            ":/?@!$&'()*+,;=[]";
        char target[] = {'/', 'a', (char)byte, 'b', '\0'};
        char question[] = {'/', '?', (char)byte, 'b', '\0'};
        char authority[] = {'a', (char)byte, 'b', ':', '1', '\0'};
        enum status wanted = strchr(good, byte) != NULL ? STATUS_OK : STATUS_INVALID;
        assert_int_equal(split(METHOD_GET, target), wanted);
        assert_int_equal(split(METHOD_GET, question), wanted);
        assert_int_equal(split(METHOD_CONNECT, authority), wanted);
    }
}

TEST(asterisk_and_authority_belong_to_their_methods)
{
    assert_int_equal(split(METHOD_OPTIONS, "*"), STATUS_OK);
    assert_true(text_equals(path, TEXT("*")));
    assert_int_equal(split(METHOD_CONNECT, "example.com:443"), STATUS_OK);
    assert_true(text_equals(path, TEXT("example.com:443")));
    assert_int_equal(split(METHOD_CONNECT, "/api"), STATUS_INVALID);
}

TEST(a_host_is_a_name_or_an_address_and_perhaps_a_port)
{
    const char *good[] = {
        "example.com",     "example.com:8080", "a",     "127.0.0.1:1",   "[::1]",
        "[::1]:65535",     "a_b-c.d",          "x%41y", "example.com:0", "example.com:",
        "[::ffff:1.2.3.4]"};
    const char *bad[] = {"",     ":80",    "a b",      "a/b",      "a:65536", "a:x",  "a:80:80",
                         "[::1", "[::1]x", "[::1]a",   "[]",       "[zz]",    "u@h",  "a,b c",
                         "a?b",  "a#b",    "a:000080", "\xc3\xa4", "a%4",     "a%zz", "[1]"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        if (!http_host_is_valid(text_of(good[i])))
            fail_msg("'%s' was refused", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (http_host_is_valid(text_of(bad[i])))
            fail_msg("'%s' was taken", bad[i]);
}
