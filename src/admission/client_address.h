#pragma once

#include "base/address.h"

/*
 * Finds the client of a request (docs/configuration.md, `trusted_proxies`). Pure.
 *
 * An untrusted peer is the client, and its X-Forwarded-For is ignored. Behind a trusted peer, the
 * X-Forwarded-For lines form one list; from the right, the first untrusted address is the client.
 * If all addresses are trusted, the client is the leftmost: the request began inside, as a proxy's
 * own health check does. Without X-Forwarded-For, the client is the peer.
 *
 * `lines` are the values of X-Forwarded-For, in order. Returns false when the client is unknown: an
 * element that the search reaches is empty or malformed, or is 0.0.0.0 or ::, which no client has.
 */
bool client_address(const struct address *peer, struct cidr_list trusted_proxies,
                    const struct text *lines, size_t line_count, struct address *client);
