/* IP addresses and CIDR blocks as v6; see address.h. */
#include "base/address.h"

#include <arpa/inet.h>

static const uint8_t v4_mapped_prefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};

static bool is_v4(const struct address *address)
{
    return memcmp(address->bytes, v4_mapped_prefix, sizeof v4_mapped_prefix) == 0;
}

static struct address from_v4(const void *four_bytes)
{
    struct address address;
    memcpy(address.bytes, v4_mapped_prefix, sizeof v4_mapped_prefix);
    memcpy(address.bytes + sizeof v4_mapped_prefix, four_bytes, 4);
    return address;
}

enum status address_parse(struct text text, struct address *address)
{
    char copy[ADDRESS_TEXT_SIZE];
    if (text.size == 0 || text.size >= sizeof copy || memchr(text.at, '\0', text.size) != NULL)
        return STATUS_INVALID;
    memcpy(copy, text.at, text.size);
    copy[text.size] = '\0';
    struct in_addr v4;
    struct in6_addr v6;
    if (inet_pton(AF_INET, copy, &v4) == 1) {
        *address = from_v4(&v4);
        return STATUS_OK;
    }
    if (inet_pton(AF_INET6, copy, &v6) == 1) {
        memcpy(address->bytes, &v6, sizeof address->bytes);
        return STATUS_OK;
    }
    return STATUS_INVALID;
}

static bool is_port(struct text text)
{
    uint64_t port;
    return text.size <= 5 && text_to_u64(text, 65535, &port) == STATUS_OK;
}

enum status address_parse_with_port(struct text text, struct address *address)
{
    if (text.size > 0 && text.at[0] == '[') {
        struct text rest = {text.at + 1, text.size - 1};
        struct text inside = text_cut(&rest, ']');
        if (rest.at == NULL || memchr(inside.at, ':', inside.size) == NULL)
            return STATUS_INVALID;
        if (rest.size > 0 &&
            (rest.at[0] != ':' || !is_port((struct text){rest.at + 1, rest.size - 1})))
            return STATUS_INVALID;
        return address_parse(inside, address);
    }
    struct text rest = text;
    struct text before = text_cut(&rest, ':');
    bool one_colon = rest.at != NULL && (rest.size == 0 || memchr(rest.at, ':', rest.size) == NULL);
    if (one_colon)
        return is_port(rest) ? address_parse(before, address) : STATUS_INVALID;
    return address_parse(text, address);
}

enum status address_from_sockaddr(const struct sockaddr *from, struct address *address)
{
    if (from->sa_family == AF_INET) {
        *address = from_v4(&((const struct sockaddr_in *)(const void *)from)->sin_addr);
        return STATUS_OK;
    }
    if (from->sa_family == AF_INET6) {
        memcpy(address->bytes, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr,
               sizeof address->bytes);
        return STATUS_OK;
    }
    return STATUS_INVALID;
}

static struct address masked(const struct address *address, unsigned prefix)
{
    struct address result = *address;
    for (unsigned i = 0; i < sizeof result.bytes; i++) {
        unsigned bits = prefix >= (i + 1) * 8 ? 8 : prefix <= i * 8 ? 0 : prefix - i * 8;
        result.bytes[i] &= (uint8_t)(0xFF00U >> bits);
    }
    return result;
}

enum status cidr_parse(struct text text, struct cidr *cidr, struct error *error)
{
    struct text rest = text;
    struct text host = text_cut(&rest, '/');
    struct address address;
    if (address_parse(host, &address) != STATUS_OK)
        return error_invalid(error, "'%.*s' is not an address or CIDR block", TEXT_SHOWN(text));
    bool dotted = memchr(host.at, ':', host.size) == NULL;
    uint64_t width = dotted ? 32 : 128;
    uint64_t prefix = width;
    if (rest.at != NULL && text_to_u64(rest, width, &prefix) != STATUS_OK)
        return error_invalid(error, "'%.*s': the prefix length must be 0 to %d", TEXT_SHOWN(text),
                             (int)width);
    if (dotted)
        prefix += 96;
    struct cidr block = {masked(&address, (unsigned)prefix), (uint8_t)prefix};
    if (!address_equals(&block.network, &address)) {
        char meant[CIDR_TEXT_SIZE];
        cidr_format(&block, meant);
        return error_invalid(error, "'%.*s' has bits set beyond its prefix; did you mean %s?",
                             TEXT_SHOWN(text), meant);
    }
    *cidr = block;
    return STATUS_OK;
}

bool address_equals(const struct address *a, const struct address *b)
{
    return memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}

struct address address_client(const struct address *address)
{
    return masked(address, is_v4(address) ? 128 : 64);
}

bool address_is_unspecified(const struct address *address)
{
    struct address none = {{0}};
    struct address v4_none = from_v4(&(struct in_addr){0});
    return address_equals(address, &none) || address_equals(address, &v4_none);
}

bool cidr_is_everyone(const struct cidr *cidr)
{
    struct address v4_first = from_v4(&(struct in_addr){0});
    struct address block = masked(&v4_first, cidr->prefix);
    return cidr->prefix <= 96 && address_equals(&block, &cidr->network);
}

bool cidr_contains(const struct cidr *cidr, const struct address *address)
{
    if (address_is_unspecified(address) || (is_v4(address) && cidr->prefix < 96))
        return false;
    struct address block = masked(address, cidr->prefix);
    return address_equals(&block, &cidr->network);
}

bool cidrs_contain(const struct cidr *cidrs, size_t count, const struct address *address)
{
    for (size_t i = 0; i < count; i++)
        if (cidr_contains(&cidrs[i], address))
            return true;
    return false;
}

void address_format(const struct address *address, char out[ADDRESS_TEXT_SIZE])
{
    const char *written = is_v4(address)
                              ? inet_ntop(AF_INET, address->bytes + 12, out, ADDRESS_TEXT_SIZE)
                              : inet_ntop(AF_INET6, address->bytes, out, ADDRESS_TEXT_SIZE);
    CHECK(written != NULL);
}

void cidr_format(const struct cidr *cidr, char out[CIDR_TEXT_SIZE])
{
    char address[ADDRESS_TEXT_SIZE];
    address_format(&cidr->network, address);
    bool dotted = is_v4(&cidr->network) && cidr->prefix >= 96;
    (void)snprintf(out, CIDR_TEXT_SIZE, "%s/%d", address, cidr->prefix - (dotted ? 96 : 0));
}

bool address_is_loopback(const struct address *address)
{
    struct cidr v4, v6;
    CHECK(cidr_parse(TEXT("127.0.0.0/8"), &v4, NULL) == STATUS_OK &&
          cidr_parse(TEXT("::1/128"), &v6, NULL) == STATUS_OK);
    return cidr_contains(&v4, address) || cidr_contains(&v6, address);
}
