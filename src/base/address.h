#pragma once

#include <sys/socket.h>

#include "base/text.h"

/*
 * IP addresses and CIDR blocks. Everything is kept as IPv6; an IPv4 address is its v4-mapped form
 * (::ffff:a.b.c.d), so that both spellings of one client are one client.
 */
struct address {
    uint8_t bytes[16];
};

struct cidr {
    struct address network; /* bits beyond the prefix are zero */
    uint8_t prefix;         /* 0 to 128; a v4 block /N is stored as /(96 + N) */
};

struct cidr_list {
    struct cidr *blocks;
    size_t count;
};

/* A bare address: "192.0.2.1", "2001:db8::1", "::ffff:192.0.2.1". Nothing else: no port, brackets,
 * zone, space, octal or short forms. */
MUST_CHECK enum status address_parse(struct text text, struct address *address);

/* The same, and also "192.0.2.1:5678" and "[2001:db8::1]" and "[2001:db8::1]:80", the forms that
 * occur in X-Forwarded-For. A port must be 1 to 5 digits and at most 65535. */
MUST_CHECK enum status address_parse_with_port(struct text text, struct address *address);

MUST_CHECK enum status address_from_sockaddr(const struct sockaddr *from, struct address *address);

/* "192.0.2.0/24", "2001:db8::/32", or a bare address (a block of one). Host bits must be zero: the
 * error says which block was probably meant. */
MUST_CHECK enum status cidr_parse(struct text text, struct cidr *cidr, struct error *error);

bool address_equals(const struct address *a, const struct address *b);
/* The block of one client: an IPv4 address, or the network of 64 bits that an IPv6 address is in
 * (RFC 6177). */
struct address address_client(const struct address *address);
/* Is it 0.0.0.0 or ::? No client has it (RFC 6890 section 2.2: not forwardable, no destination). */
bool address_is_unspecified(const struct address *address);

/* A block of one family contains no address of the other: ::/0 contains no IPv4 client. No block
 * contains 0.0.0.0 or ::, which stands for a client address that could not be read. */
bool cidr_contains(const struct cidr *cidr, const struct address *address);
/* Is it of 127.0.0.0/8, or ::1? */
bool address_is_loopback(const struct address *address);
bool cidrs_contain(const struct cidr *cidrs, size_t count, const struct address *address);
/* Does the block span the whole of IPv4, be it written as IPv4 or as a wider block of IPv6? */
bool cidr_is_everyone(const struct cidr *cidr);

/* Canonical text (RFC 5952), v4 as dotted quad; NUL-terminated. */
#define ADDRESS_TEXT_SIZE 46
#define CIDR_TEXT_SIZE 50
void address_format(const struct address *address, char out[ADDRESS_TEXT_SIZE]);
void cidr_format(const struct cidr *cidr, char out[CIDR_TEXT_SIZE]);
