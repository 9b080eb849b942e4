/* admission/client_address: whose request is this, behind which proxies. */
#include "admission/client_address.h"
#include "tests.h"

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

TEST(an_untrusted_peer_is_the_client)
{
    assert_client("203.0.113.9", NULL, "203.0.113.9");
}

TEST(the_header_of_an_untrusted_peer_is_ignored)
{
    assert_client("203.0.113.9", "198.51.100.1", "203.0.113.9");
    assert_client("203.0.113.9", "rubbish", "203.0.113.9");
}

TEST(behind_a_proxy_the_client_is_what_the_proxy_saw)
{
    assert_client("10.0.0.1", "198.51.100.1", "198.51.100.1");
}

TEST(what_the_client_claims_itself_is_not_believed)
{
    assert_client("10.0.0.1", "192.0.2.66, 198.51.100.1", "198.51.100.1");
    assert_client("10.0.0.1", "rubbish, 198.51.100.1", "198.51.100.1");
    assert_client("10.0.0.1", ", 198.51.100.1", "198.51.100.1");
}

TEST(the_walk_goes_past_trusted_proxies)
{
    assert_client("10.0.0.1", "192.0.2.66, 198.51.100.1, 10.9.9.9 ,\t10.0.0.2", "198.51.100.1");
}

TEST(several_lines_are_one_list)
{
    char found[ADDRESS_TEXT_SIZE];
    const struct text lines[] = {TEXT("192.0.2.66"), TEXT("198.51.100.1, 10.0.0.7"),
                                 TEXT("10.0.0.2")};
    assert_true(find("10.0.0.1", lines, 3, found));
    assert_string_equal(found, "198.51.100.1");
}

TEST(ports_and_brackets_are_accepted)
{
    assert_client("10.0.0.1", "198.51.100.1:5678", "198.51.100.1");
    assert_client("10.0.0.1", "[2001:db8::1]:80", "2001:db8::1");
    assert_client("10.0.0.1", "2001:db8::1, [2001:db8:feed::2]", "2001:db8::1");
}

TEST(mapped_v6_is_v4)
{
    assert_client("::ffff:10.0.0.1", "::ffff:198.51.100.1", "198.51.100.1");
}

TEST(anything_unreadable_on_the_walk_makes_the_client_unknown)
{
    const char *unreadable[] = {"unknown",   "_hidden",         "198.51.100.1, rubbish",
                                "1.2.3",     "1.2.3.4:",        "1.2.3.4:99999",
                                "[::1",      "fe80::1%eth0",    "198.51.100.1, unknown, 10.0.0.2",
                                "1.2.3.4 5", "198.51.100.1;x=y"};
    for (size_t i = 0; i < sizeof unreadable / sizeof unreadable[0]; i++)
        assert_client("10.0.0.1", unreadable[i], "unknown");
}

TEST(what_no_client_has_is_no_address)
{
    const char *no_one[] = {"0.0.0.0", "0.0.0.0:80",     "::",
                            "[::]:80", "::ffff:0.0.0.0", "198.51.100.1, 0.0.0.0, 10.0.0.2"};
    for (size_t i = 0; i < sizeof no_one / sizeof no_one[0]; i++)
        assert_client("10.0.0.1", no_one[i], "unknown");
    assert_client("0.0.0.0", NULL, "unknown");
    assert_client("::", "198.51.100.1", "unknown");
    assert_client("10.0.0.1", "0.0.0.0, 198.51.100.1", "198.51.100.1");
    assert_client("10.0.0.1", "0.0.0.1", "0.0.0.1");
}

TEST(an_empty_element_cannot_be_read)
{
    assert_client("10.0.0.1", "", "unknown");
    assert_client("10.0.0.1", "198.51.100.1,", "unknown");
    assert_client("10.0.0.1", "198.51.100.1, , 10.0.0.2", "unknown");
}

TEST(without_a_header_a_trusted_peer_is_the_client)
{
    assert_client("10.0.0.1", NULL, "10.0.0.1");
}

TEST(when_all_are_trusted_the_leftmost_is_the_client)
{
    assert_client("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3");
}
