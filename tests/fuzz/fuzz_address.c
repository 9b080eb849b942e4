/*
 * Fuzzes what reads addresses: bare ones, blocks, and the walk through X-Forwarded-For.
 *
 * Holds for every input: what is accepted is what inet_pton(3) makes of it, is written so that it
 * is read as the same, and is in the block of itself; who an untrusted peer claims to be does not
 * matter; behind a trusted peer the client is that peer or one of those named.
 */
#include <arpa/inet.h>
#include <string.h>

#include "admission/client_address.h"

#define LINES_MAX 4
#define PROXIES 2

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_address(struct text text)
{
    struct address address;
    struct address again;
    char plain[ADDRESS_TEXT_SIZE];
    char written[ADDRESS_TEXT_SIZE];
    if (address_parse(text, &address) != STATUS_OK)
        return;
    CHECK(text.size < sizeof plain);
    memcpy(plain, text.at, text.size);
    plain[text.size] = '\0';
    struct in_addr four;
    struct in6_addr six;
    if (inet_pton(AF_INET, plain, &four) == 1)
        CHECK(memcmp(address.bytes + 12, &four, 4) == 0);
    else
        CHECK(inet_pton(AF_INET6, plain, &six) == 1 && memcmp(address.bytes, &six, 16) == 0);
    address_format(&address, written);
    CHECK(address_parse(text_of(written), &again) == STATUS_OK && address_equals(&address, &again));
    CHECK(address_parse_with_port(text, &again) == STATUS_OK && address_equals(&address, &again));
}

static void check_block(struct text text)
{
    struct cidr block;
    struct cidr again;
    struct error error = {.text = ""};
    char written[CIDR_TEXT_SIZE];
    if (cidr_parse(text, &block, &error) != STATUS_OK) {
        CHECK(error.text[0] != '\0');
        return;
    }
    CHECK(block.prefix <= 128);
    CHECK(cidr_contains(&block, &block.network) != address_is_unspecified(&block.network));
    cidr_format(&block, written);
    CHECK(cidr_parse(text_of(written), &again, &error) == STATUS_OK);
    CHECK(again.prefix == block.prefix && address_equals(&again.network, &block.network));
}

static void must_parse(const char *text, struct cidr *block)
{
    struct error error;
    CHECK(cidr_parse(text_of(text), block, &error) == STATUS_OK);
}

/* Is it one of the elements of the lines? */
static bool is_named(const struct address *client, const struct text *lines, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct text rest = lines[i];
        while (rest.at != NULL) {
            struct address named;
            struct text element = text_trim(text_cut(&rest, ','));
            if (address_parse_with_port(element, &named) == STATUS_OK &&
                address_equals(&named, client))
                return true;
        }
    }
    return false;
}

static void check_walk(struct text rest)
{
    struct cidr trusted[PROXIES];
    struct text lines[LINES_MAX];
    size_t count = 0;
    must_parse("10.0.0.0/8", &trusted[0]);
    must_parse("2001:db8::/32", &trusted[1]);
    while (rest.at != NULL && count < LINES_MAX)
        lines[count++] = text_cut(&rest, '\n');
    const struct cidr_list proxies = {trusted, PROXIES};
    struct address stranger;
    struct address proxy;
    struct address client;
    CHECK(address_parse(TEXT("192.0.2.9"), &stranger) == STATUS_OK);
    CHECK(address_parse(TEXT("10.1.2.3"), &proxy) == STATUS_OK);
    CHECK(client_address(&stranger, proxies, lines, count, &client) &&
          address_equals(&client, &stranger));
    if (client_address(&proxy, proxies, lines, count, &client))
        CHECK((count == 0 && address_equals(&client, &proxy)) || is_named(&client, lines, count));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct text all = {(const char *)bytes, size};
    struct text rest = all;
    struct text first = text_cut(&rest, '\n');
    check_address(first);
    check_block(first);
    check_walk(all);
    return 0;
}
