/* base/address: addresses and CIDR blocks, v4 as v4-mapped v6. */
#include <unistd.h>

#include <netinet/in.h>

#include "base/address.h"
#include "tests.h"

static struct address parsed(const char *text)
{
    struct address address;
    if (address_parse(text_of(text), &address) != STATUS_OK)
        fail_msg("'%s' was refused", text);
    return address;
}

static struct cidr block_of(const char *text)
{
    struct cidr block;
    struct error error = {0};
    if (cidr_parse(text_of(text), &block, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    return block;
}

static void expect_text(const char *text, const char *canonical)
{
    struct address address = parsed(text);
    char out[ADDRESS_TEXT_SIZE];
    address_format(&address, out);
    assert_string_equal(out, canonical);
}

TEST(addresses_have_one_canonical_text)
{
    expect_text("192.0.2.1", "192.0.2.1");
    expect_text("::ffff:192.0.2.1", "192.0.2.1");
    expect_text("::FFFF:c000:0201", "192.0.2.1");
    expect_text("2001:DB8:0:0:0:0:0:1", "2001:db8::1");
    expect_text("::", "::");
    expect_text("::1", "::1");
    expect_text("0.0.0.0", "0.0.0.0");
    expect_text("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
                "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
}

TEST(both_spellings_of_one_client_are_equal)
{
    struct address plain = parsed("192.0.2.1");
    struct address mapped = parsed("::ffff:192.0.2.1");
    struct address compatible = parsed("::192.0.2.1");
    assert_true(address_equals(&plain, &mapped));
    assert_false(address_equals(&plain, &compatible));
}

TEST(what_is_no_address_is_refused)
{
    const char *wrong[] = {
        "",         "1.2.3",           "1.2.3.4.5",        "1.2.3.256", "01.2.3.4",  "0x1.2.3.4",
        "1.2.3.4 ", " 1.2.3.4",        "1.2.3.4:80",       "[::1]",     "::1%eth0",  "fe80::1%1",
        ":::",      "1::2::3",         "12345::",          "localhost", "1.2.3.4/8", "2130706433",
        "::1/128",  "1.2.3.4,5.6.7.8", "::ffff:1.2.3.4.5", "-1.2.3.4"};
    struct address address;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (address_parse(text_of(wrong[i]), &address) != STATUS_INVALID)
            fail_msg("'%s' was read", wrong[i]);
    assert_int_equal(address_parse((struct text){"1.2.3.4\0", 8}, &address), STATUS_INVALID);
    assert_int_equal(address_parse((struct text){NULL, 0}, &address), STATUS_INVALID);
}

TEST(forwarded_forms_may_have_ports_and_brackets)
{
    static const char *const right[][2] = {
        {"192.0.2.1", "192.0.2.1"},          {"192.0.2.1:5678", "192.0.2.1"},
        {"2001:db8::1", "2001:db8::1"},      {"[2001:db8::1]", "2001:db8::1"},
        {"[2001:db8::1]:80", "2001:db8::1"}, {"[::ffff:192.0.2.1]:65535", "192.0.2.1"},
        {"192.0.2.1:0", "192.0.2.1"},
    };
    struct address address;
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        assert_int_equal(address_parse_with_port(text_of(right[i][0]), &address), STATUS_OK);
        char out[ADDRESS_TEXT_SIZE];
        address_format(&address, out);
        assert_string_equal(out, right[i][1]);
    }
    const char *wrong[] = {"192.0.2.1:",
                           "192.0.2.1:65536",
                           "192.0.2.1:000080",
                           "192.0.2.1:x",
                           "[192.0.2.1]",
                           "[192.0.2.1]:80",
                           "[2001:db8::1",
                           "[2001:db8::1]80",
                           "[2001:db8::1]:",
                           "[]",
                           "[",
                           "",
                           ":80",
                           "unknown",
                           "_hidden",
                           "[::1]:80:80"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (address_parse_with_port(text_of(wrong[i]), &address) != STATUS_INVALID)
            fail_msg("'%s' was read", wrong[i]);
    assert_int_equal(address_parse_with_port((struct text){NULL, 0}, &address), STATUS_INVALID);
}

static bool contains(const char *block, const char *address)
{
    struct cidr cidr = block_of(block);
    struct address inside = parsed(address);
    return cidr_contains(&cidr, &inside);
}

TEST(blocks_contain_what_shares_their_prefix)
{
    assert_true(contains("192.0.2.0/24", "192.0.2.255"));
    assert_false(contains("192.0.2.0/24", "192.0.3.0"));
    assert_true(contains("192.0.2.128/25", "192.0.2.128"));
    assert_false(contains("192.0.2.128/25", "192.0.2.127"));
    assert_true(contains("192.0.2.7", "192.0.2.7"));
    assert_true(contains("192.0.2.7/32", "::ffff:192.0.2.7"));
    assert_false(contains("192.0.2.7/32", "192.0.2.6"));
    assert_true(contains("0.0.0.0/0", "203.0.113.9"));
    assert_false(contains("0.0.0.0/0", "2001:db8::1"));
    assert_true(contains("::ffff:10.0.0.0/104", "10.1.2.3"));
    assert_true(contains("2001:db8::/33", "2001:db8:7fff::1"));
    assert_false(contains("2001:db8::/33", "2001:db8:8000::1"));
    assert_true(contains("::/0", "2001:db8::1"));
    assert_true(contains("2001:db8::1", "2001:db8::1"));
}

TEST(a_block_contains_no_address_of_the_other_family)
{
    static const char *const wide[] = {"::/0", "::/8", "::/64", "::/80"};
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        assert_false(contains(wide[i], "203.0.113.9"));
    assert_true(contains("::ffff:0:0/96", "203.0.113.9"));
    assert_false(contains("0.0.0.0/0", "::1"));
}

TEST(no_block_contains_the_address_that_could_not_be_read)
{
    static const char *const blocks[] = {"::/0", "::/8", "::/128", "0.0.0.0/0", "0.0.0.0/32"};
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        assert_false(contains(blocks[i], "::"));
        assert_false(contains(blocks[i], "0.0.0.0"));
    }
}

TEST(every_prefix_length_cuts_where_it_says)
{
    for (unsigned prefix = 1; prefix <= 128; prefix++) {
        struct cidr block = {.prefix = (uint8_t)prefix};
        struct address last_bit = {{0}};
        struct address next_bit = {{0}};
        last_bit.bytes[(prefix - 1) / 8] = (uint8_t)(0x80U >> ((prefix - 1) % 8));
        assert_false(cidr_contains(&block, &last_bit));
        if (prefix == 128)
            continue; /* the block has no address but ::, which no client has */
        next_bit.bytes[prefix / 8] = (uint8_t)(0x80U >> (prefix % 8));
        assert_true(cidr_contains(&block, &next_bit));
    }
}

static void expect_block_refused(const char *text, const char *expected)
{
    struct cidr block;
    struct error error = {0};
    assert_int_equal(cidr_parse(text_of(text), &block, &error), STATUS_INVALID);
    if (strstr(error.text, expected) == NULL)
        fail_msg("'%s' does not say '%s'", error.text, expected);
}

TEST(blocks_are_refused_with_what_was_meant)
{
    expect_block_refused("10.0.0.1/8", "did you mean 10.0.0.0/8?");
    expect_block_refused("2001:db8::1/32", "did you mean 2001:db8::/32?");
    expect_block_refused("10.0.0.0/33", "must be 0 to 32");
    expect_block_refused("2001:db8::/129", "must be 0 to 128");
    expect_block_refused("10.0.0.0/", "must be 0 to 32");
    expect_block_refused("10.0.0.0/-1", "must be 0 to 32");
    expect_block_refused("10.0.0.0/8/8", "must be 0 to 32");
    expect_block_refused("10.0.0.0/8 ", "must be 0 to 32");
    expect_block_refused("example.com", "'example.com' is not an address or CIDR block");
    expect_block_refused("", "'' is not an address");
    expect_block_refused("10.0.0/8", "is not an address");
}

TEST(blocks_are_written_as_they_are_read)
{
    static const char *const texts[][2] = {
        {"10.0.0.0/8", "10.0.0.0/8"},         {"192.0.2.1", "192.0.2.1/32"},
        {"0.0.0.0/0", "0.0.0.0/0"},           {"::/0", "::/0"},
        {"2001:db8::/32", "2001:db8::/32"},   {"::1", "::1/128"},
        {"::ffff:10.0.0.0/104", "10.0.0.0/8"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct cidr block = block_of(texts[i][0]);
        char out[CIDR_TEXT_SIZE];
        cidr_format(&block, out);
        assert_string_equal(out, texts[i][1]);
    }
}

TEST(socket_addresses_are_read)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0xC0000201)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    struct sockaddr local = {.sa_family = AF_UNIX};
    struct address address;
    struct address expected = parsed("192.0.2.1");
    assert_int_equal(address_from_sockaddr((struct sockaddr *)&v4, &address), STATUS_OK);
    assert_true(address_equals(&address, &expected));
    expected = parsed("::1");
    assert_int_equal(address_from_sockaddr((struct sockaddr *)&v6, &address), STATUS_OK);
    assert_true(address_equals(&address, &expected));
    assert_int_equal(address_from_sockaddr(&local, &address), STATUS_INVALID);
}

TEST(some_blocks_are_everyone)
{
    const char *everyone[] = {"0.0.0.0/0", "::/0", "::/64", "::ffff:0:0/96"};
    const char *others[] = {"0.0.0.0/1", "128.0.0.0/1", "0.0.0.0", "::1",
                            "2000::/3",  "10.0.0.0/8",  "8000::/1"};
    struct cidr block;
    for (size_t i = 0; i < sizeof everyone / sizeof everyone[0]; i++) {
        assert_int_equal(cidr_parse(text_of(everyone[i]), &block, NULL), STATUS_OK);
        assert_true(cidr_is_everyone(&block));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(cidr_parse(text_of(others[i]), &block, NULL), STATUS_OK);
        assert_false(cidr_is_everyone(&block));
    }
}

TEST(no_one_has_the_unspecified_address)
{
    struct address address;
    const char *unspecified[] = {"0.0.0.0", "::", "::ffff:0.0.0.0"};
    const char *others[] = {"0.0.0.1", "::1", "255.255.255.255", "::fffe:0:0"};
    for (size_t i = 0; i < sizeof unspecified / sizeof unspecified[0]; i++) {
        assert_int_equal(address_parse(text_of(unspecified[i]), &address), STATUS_OK);
        assert_true(address_is_unspecified(&address));
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(address_parse(text_of(others[i]), &address), STATUS_OK);
        assert_false(address_is_unspecified(&address));
    }
}
