#ifndef CROUPIER_ADMISSION_CLIENT_ADDRESS_H
#define CROUPIER_ADMISSION_CLIENT_ADDRESS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/address.h"

/*
 * Whose request is this? (docs/configuration.md, `trusted_proxies`) Pure.
 *
 * An untrusted peer is the client, whatever it says. Behind a trusted peer, the X-Forwarded-For
 * lines are one list, walked from the right past trusted addresses to the first untrusted one. If
 * all are trusted, it is the leftmost: a request that began inside (a proxy's own health check);
 * without any X-Forwarded-For line it is the peer.
 *
 * Returns false when the client is unknown: something on that walk cannot be read, or is 0.0.0.0
 * or ::, which no client has. An empty element cannot be read either: a hop that does not say who
 * called it is no evidence of anything.
 */
struct forwarding {
    const struct cidr *trusted_proxies;
    size_t trusted_proxy_count;
    const struct text *lines; /* the values of X-Forwarded-For, in order */
    size_t line_count;
};
bool client_address(const struct address *peer, const struct forwarding *forwarding,
                    struct address *client);

#endif
