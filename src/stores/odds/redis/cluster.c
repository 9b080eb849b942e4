/*
 * The words of a cluster's nodes; see cluster.h. A line of CLUSTER NODES:
 *
 *   ID ADDRESS:PORT@BUS[,HOSTNAME] FLAGS MASTER PING PONG EPOCH LINK [SLOT|FIRST-LAST|[MOVING]]…
 */
#include "stores/odds/redis/cluster.h"

#define SLOTS 16384U

/* ---- the slot -------------------------------------------------------------------------------- */

/* CRC-16/XMODEM, as the cluster specification wants. */
static uint16_t checksum(const char *bytes, size_t size)
{
    uint16_t crc = 0;
    for (size_t i = 0; i < size; i++) {
        crc = (uint16_t)(crc ^ (uint16_t)((uint8_t)bytes[i] << 8));
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)((crc << 1) ^ ((crc & 0x8000) != 0 ? 0x1021 : 0));
    }
    return crc;
}

bool redis_cluster_slot(const char *prefix, uint32_t *slot)
{
    const char *open = strchr(prefix, '{');
    const char *close = open == NULL ? NULL : strchr(open, '}');
    if (close == NULL || close == open + 1)
        return false;
    *slot = checksum(open + 1, (size_t)(close - open - 1)) % SLOTS;
    return true;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* The port follows the last colon: an IPv6 address has no brackets here. A node that does not know
 * its own address leaves it out, or writes "?". */
static bool read_address(struct text address, struct text hostname, const char *asked,
                         struct redis_host *host)
{
    const char *colon = address.size == 0 ? NULL : memrchr(address.at, ':', address.size);
    if (colon == NULL)
        return false;
    struct text name = {address.at, (size_t)(colon - address.at)};
    struct text port = {colon + 1, address.size - name.size - 1};
    if (hostname.size > 0)
        name = hostname;
    if (name.size == 0 || text_equals(name, TEXT("?")))
        name = text_of(asked);
    return redis_host_set(host, name, port);
}

/* ---- CLUSTER NODES --------------------------------------------------------------------------- */

static bool has_flag(struct text flags, struct text flag)
{
    while (flags.at != NULL)
        if (text_equals(text_cut(&flags, ','), flag))
            return true;
    return false;
}

static bool has_slot(struct text slots, uint32_t slot)
{
    while (slots.at != NULL) {
        struct text last = text_cut(&slots, ' ');
        struct text first = text_cut(&last, '-');
        uint64_t from = 0;
        uint64_t to = 0;
        if (text_to_u64(first, SLOTS, &from) == STATUS_OK &&
            text_to_u64(last.at == NULL ? first : last, SLOTS, &to) == STATUS_OK && from <= slot &&
            slot <= to)
            return true;
    }
    return false;
}

static void read_node(struct text line, uint32_t slot, const struct redis_host *asked, bool names,
                      struct redis_cluster_view *view)
{
    enum { ID, ADDRESS, FLAGS, MASTER, PING, PONG, EPOCH, LINK, FIELDS };
    struct text fields[FIELDS];
    struct redis_host host;
    uint64_t epoch = 0;
    for (int i = 0; i < FIELDS; i++)
        fields[i] = line.at == NULL ? (struct text){0} : text_cut(&line, ' ');
    struct text hostname = fields[ADDRESS];
    struct text address = text_cut(&hostname, '@');
    (void)text_cut(&hostname, ','); /* the port of the bus */
    hostname = names && hostname.at != NULL ? text_cut(&hostname, ',') : (struct text){0};
    if (has_flag(fields[FLAGS], TEXT("noaddr")) || has_flag(fields[FLAGS], TEXT("handshake")) ||
        !read_address(address, hostname, asked->name, &host) ||
        text_to_u64(fields[EPOCH], UINT64_MAX, &epoch) != STATUS_OK)
        return;
    if (view->node_count < REDIS_HOSTS_MAX)
        view->nodes[view->node_count++] = host;
    if (has_flag(fields[FLAGS], TEXT("master")) && has_slot(line, slot)) {
        view->master = host;
        view->epoch = epoch;
    }
}

void redis_cluster_read(struct text nodes, uint32_t slot, const struct redis_host *asked,
                        bool names, struct redis_cluster_view *view)
{
    memset(view, 0, sizeof *view);
    while (nodes.at != NULL)
        read_node(text_cut(&nodes, '\n'), slot, asked, names, view);
}

/* ---- redirections ---------------------------------------------------------------------------- */

enum redis_redirect redis_redirect_read(const struct redis_reply *reply, const char *asked,
                                        struct redis_host *host)
{
    if (reply->type != REDIS_ERROR)
        return REDIS_NOT_REDIRECTED;
    struct text address = reply->text;
    struct text code = text_cut(&address, ' ');
    if (text_equals(code, TEXT("MOVED")))
        return REDIS_MOVED;
    if (text_equals(code, TEXT("TRYAGAIN")))
        return REDIS_LATER;
    if (!text_equals(code, TEXT("ASK")) || address.at == NULL)
        return REDIS_NOT_REDIRECTED;
    (void)text_cut(&address, ' '); /* the slot */
    return read_address(address, (struct text){0}, asked, host) ? REDIS_ASK : REDIS_LATER;
}
