/* The search in X-Forwarded-For; see client_address.h. */
#include "admission/client_address.h"

/* Cuts the last element of a list off and returns it; `rest->at` is NULL when it was the first
 * one. */
static struct text cut_last(struct text *rest)
{
    size_t start = rest->size;
    while (start > 0 && rest->at[start - 1] != ',')
        start--;
    struct text last = {start > 0 ? rest->at + start : rest->at, rest->size - start};
    *rest = start > 0 ? (struct text){rest->at, start - 1} : (struct text){NULL, 0};
    return last;
}

bool client_address(const struct address *peer, struct cidr_list trusted_proxies,
                    const struct text *lines, size_t line_count, struct address *client)
{
    struct address nearest = *peer;
    if (address_is_unspecified(peer)) /* the kernel no longer knew the address */
        return false;
    bool ended = !cidrs_contain(trusted_proxies.blocks, trusted_proxies.count, &nearest);
    for (size_t i = line_count; i-- > 0 && !ended;) {
        struct text rest = lines[i];
        do {
            if (address_parse_with_port(text_trim(cut_last(&rest)), &nearest) != STATUS_OK ||
                address_is_unspecified(&nearest))
                return false;
            ended = !cidrs_contain(trusted_proxies.blocks, trusted_proxies.count, &nearest);
        } while (rest.at != NULL && !ended);
    }
    *client = nearest;
    return true;
}
