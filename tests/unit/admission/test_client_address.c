/* admission/client_address: whose request is this, behind which proxies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "admission/client_address.h"

/* 10.0.0.0/8 and 2001:db8:feed::/48 are our proxies. */
static bool find(const char *peer_text, const struct text *lines, size_t line_count, char *found)
{
    struct cidr proxies[2];
    struct address peer;
    struct address client;
    assert_int_equal(cidr_parse(TEXT("10.0.0.0/8"), &proxies[0], NULL), STATUS_OK);
    assert_int_equal(cidr_parse(TEXT("2001:db8:feed::/48"), &proxies[1], NULL), STATUS_OK);
    assert_int_equal(address_parse(text_of(peer_text), &peer), STATUS_OK);
    struct forwarding forwarding = {proxies, 2, lines, line_count};
    if (!client_address(&peer, &forwarding, &client))
        return false;
    address_format(&client, found);
    return true;
}

static void assert_client(const char *peer, const char *line, const char *expected)
{
    char found[ADDRESS_TEXT_SIZE] = "unknown";
    struct text one = text_of(line);
    (void)find(peer, &one, line == NULL ? 0 : 1, found);
    assert_string_equal(found, expected);
}

static void an_untrusted_peer_is_the_client(void **state)
{
    (void)state;
    assert_client("203.0.113.9", NULL, "203.0.113.9");
}

static void the_header_of_an_untrusted_peer_is_ignored(void **state)
{
    (void)state;
    assert_client("203.0.113.9", "198.51.100.1", "203.0.113.9");
    assert_client("203.0.113.9", "rubbish", "203.0.113.9");
}

static void behind_a_proxy_the_client_is_what_the_proxy_saw(void **state)
{
    (void)state;
    assert_client("10.0.0.1", "198.51.100.1", "198.51.100.1");
}

static void what_the_client_claims_itself_is_not_believed(void **state)
{
    (void)state;
    assert_client("10.0.0.1", "192.0.2.66, 198.51.100.1", "198.51.100.1");
    assert_client("10.0.0.1", "rubbish, 198.51.100.1", "198.51.100.1");
    assert_client("10.0.0.1", ", 198.51.100.1", "198.51.100.1");
}

static void the_walk_goes_past_trusted_proxies(void **state)
{
    (void)state;
    assert_client("10.0.0.1", "192.0.2.66, 198.51.100.1, 10.9.9.9 ,\t10.0.0.2", "198.51.100.1");
}

static void several_lines_are_one_list(void **state)
{
    (void)state;
    char found[ADDRESS_TEXT_SIZE];
    const struct text lines[] = {TEXT("192.0.2.66"), TEXT("198.51.100.1, 10.0.0.7"),
                                 TEXT("10.0.0.2")};
    assert_true(find("10.0.0.1", lines, 3, found));
    assert_string_equal(found, "198.51.100.1");
}

static void ports_and_brackets_are_accepted(void **state)
{
    (void)state;
    assert_client("10.0.0.1", "198.51.100.1:5678", "198.51.100.1");
    assert_client("10.0.0.1", "[2001:db8::1]:80", "2001:db8::1");
    assert_client("10.0.0.1", "2001:db8::1, [2001:db8:feed::2]", "2001:db8::1");
}

static void mapped_v6_is_v4(void **state)
{
    (void)state;
    assert_client("::ffff:10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1");
}

static void anything_unreadable_on_the_walk_makes_the_client_unknown(void **state)
{
    (void)state;
    const char *unreadable[] = {"unknown",   "_hidden",         "198.51.100.1, rubbish",
                                "1.2.3",     "1.2.3.4:",        "1.2.3.4:99999",
                                "[::1",      "fe80::1%eth0",    "198.51.100.1, unknown, 10.0.0.2",
                                "1.2.3.4 5", "198.51.100.1;x=y"};
    for (size_t i = 0; i < sizeof unreadable / sizeof unreadable[0]; i++)
        assert_client("10.0.0.1", unreadable[i], "unknown");
}

static void what_no_client_has_is_no_address(void **state)
{
    (void)state;
    const char *no_one[] = {"0.0.0.0", "0.0.0.0:80",     "::",
                            "[::]:80", "::ffff:0.0.0.0", "198.51.100.1, 0.0.0.0, 10.0.0.2"};
    for (size_t i = 0; i < sizeof no_one / sizeof no_one[0]; i++)
        assert_client("10.0.0.1", no_one[i], "unknown");
    assert_client("0.0.0.0", NULL, "unknown");
    assert_client("::", "198.51.100.1", "unknown");
    assert_client("10.0.0.1", "0.0.0.0, 198.51.100.1", "198.51.100.1");
    assert_client("10.0.0.1", "0.0.0.1", "0.0.0.1");
}

static void an_empty_element_cannot_be_read(void **state)
{
    (void)state;
    assert_client("10.0.0.1", "", "unknown");
    assert_client("10.0.0.1", "198.51.100.1,", "unknown");
    assert_client("10.0.0.1", "198.51.100.1, , 10.0.0.2", "unknown");
}

static void without_a_header_a_trusted_peer_is_the_client(void **state)
{
    (void)state;
    assert_client("10.0.0.1", NULL, "10.0.0.1");
}

static void when_all_are_trusted_the_leftmost_is_the_client(void **state)
{
    (void)state;
    assert_client("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_untrusted_peer_is_the_client),
        cmocka_unit_test(the_header_of_an_untrusted_peer_is_ignored),
        cmocka_unit_test(behind_a_proxy_the_client_is_what_the_proxy_saw),
        cmocka_unit_test(what_the_client_claims_itself_is_not_believed),
        cmocka_unit_test(the_walk_goes_past_trusted_proxies),
        cmocka_unit_test(several_lines_are_one_list),
        cmocka_unit_test(ports_and_brackets_are_accepted),
        cmocka_unit_test(mapped_v6_is_v4),
        cmocka_unit_test(anything_unreadable_on_the_walk_makes_the_client_unknown),
        cmocka_unit_test(what_no_client_has_is_no_address),
        cmocka_unit_test(an_empty_element_cannot_be_read),
        cmocka_unit_test(without_a_header_a_trusted_peer_is_the_client),
        cmocka_unit_test(when_all_are_trusted_the_leftmost_is_the_client),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
