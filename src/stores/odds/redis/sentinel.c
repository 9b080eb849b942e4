/*
 * Asks the sentinels which server is the master; see sentinel.h.
 *
 * The sentinels are asked one after the other, each at each of its addresses, until one names the
 * master. The next question begins with that one. A question every second notices a failover that
 * leaves the former master alive.
 *
 * The nodes of a cluster are asked the same way; "sentinel" means them, too. Each answer also names
 * the other nodes, which are asked from then on beside the configured ones, each in its turn: the
 * present master itself may be the one that is cut off. An answer with a lower epoch than an
 * earlier one comes from a node that does not know the present master yet. It is not followed, up
 * to EPOCH_KEPT_NS: the cluster may have been made again.
 */
#include "stores/odds/redis/sentinel.h"

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/redis/cluster.h"
#include "stores/odds/redis/command.h"
#include "stores/odds/redis/lookup.h"
#include "stores/odds/redis/wire.h"

#define ASK_MS_MIN 250
#define ASK_MS_MAX 1000
#define ASKED_MAX ((size_t)2 * REDIS_HOSTS_MAX)   /* configured ones, and nodes that others named */
#define EPOCH_KEPT_NS (UINT64_C(60) * 1000000000) /* longer than a master that is cut off serves */

/* The addresses of one sentinel. */
struct found {
    struct redis_sentinel *sentinel;
    struct redis_lookup *lookup;      /* NULL: none is under way */
    struct redis_addresses addresses; /* good until none of them answers */
};

struct redis_sentinel {
    struct redis_sentinel_options options;
    struct redis_host hosts[ASKED_MAX]; /* the location's first */
    size_t host_count;
    struct found found[ASKED_MAX];
    uint64_t epoch;    /* the highest that a node named, */
    uint64_t epoch_ns; /* and when that was */
    struct redis_wire *wire;
    uv_timer_t late; /* while asking: the present sentinel takes too long */
    size_t at;       /* the present sentinel */
    size_t asked;    /* sentinels since redis_sentinel_ask */
    struct redis_addresses addresses;
    bool asking;
};

static void open_next(struct redis_sentinel *sentinel);
static void ask_one(struct redis_sentinel *sentinel);

static const struct redis_host *host_of(const struct redis_sentinel *sentinel)
{
    return &sentinel->hosts[sentinel->at];
}

/* Is the name of the present sentinel being looked up? */
static bool is_looked_up(const struct redis_sentinel *sentinel)
{
    return sentinel->asking && sentinel->wire == NULL &&
           sentinel->found[sentinel->at].lookup != NULL;
}

/* ---- one after the other --------------------------------------------------------------------- */

static void stop_asking(struct redis_sentinel *sentinel)
{
    redis_wire_destroy(&sentinel->wire);
    sentinel->asking = false;
    CHECK(uv_timer_stop(&sentinel->late) == 0);
}

static void ask_next(struct redis_sentinel *sentinel, enum status status, const char *why)
{
    const struct redis_host *host = host_of(sentinel);
    struct error error;
    (void)error_set(&error, status, "the %s at %s:%u: %s",
                    sentinel->options.cluster ? "node" : "sentinel", host->name, host->port, why);
    redis_wire_destroy(&sentinel->wire);
    if (sentinel->addresses.next < sentinel->addresses.count) {
        open_next(sentinel);
        return;
    }
    sentinel->found[sentinel->at].addresses.count = 0; /* none is of use, so look up again */
    sentinel->at = (sentinel->at + 1) % sentinel->host_count;
    if (++sentinel->asked < sentinel->host_count) {
        ask_one(sentinel);
        return;
    }
    stop_asking(sentinel);
    sentinel->options.failed(sentinel->options.owner, status, error.text);
}

static void on_late(uv_timer_t *timer)
{
    struct redis_sentinel *sentinel = timer->data;
    ask_next(sentinel, STATUS_TIMEOUT,
             is_looked_up(sentinel) ? "its address is not found in time" : "it does not answer");
}

static void start_late(struct redis_sentinel *sentinel)
{
    uint32_t ms = sentinel->options.link->timeout_ms;
    ms = ms < ASK_MS_MIN ? ASK_MS_MIN : ms > ASK_MS_MAX ? ASK_MS_MAX : ms;
    clock_start_timer(&sentinel->late, on_late, ms, 0);
}

static void on_lost(void *owner, const char *why)
{
    ask_next(owner, STATUS_UNAVAILABLE, why);
}

/* ---- questions and answers ------------------------------------------------------------------- */

static bool read_master(const struct redis_reply *reply, struct redis_host *host)
{
    return reply->type == REDIS_LIST && reply->count == 2 &&
           reply->elements[0].type == REDIS_STRING && reply->elements[1].type == REDIS_STRING &&
           redis_host_set(host, reply->elements[0].text, reply->elements[1].text);
}

static bool is_known(const struct redis_sentinel *sentinel, const struct redis_host *host)
{
    for (size_t i = sentinel->options.link->location->host_count; i < sentinel->host_count; i++)
        if (sentinel->hosts[i].port == host->port &&
            strcmp(sentinel->hosts[i].name, host->name) == 0)
            return true;
    return false;
}

/* From now on these nodes are asked, and those of the location. Nodes name each other in any
 * order; those that are known keep their places, and so the addresses that were looked up. */
static void take_nodes(struct redis_sentinel *sentinel, const struct redis_cluster_view *view)
{
    size_t configured = sentinel->options.link->location->host_count;
    bool news = view->node_count != sentinel->host_count - configured;
    for (size_t i = 0; i < view->node_count && !news; i++)
        news = !is_known(sentinel, &view->nodes[i]);
    for (size_t i = 0; i < view->node_count && news; i++) {
        struct redis_host *host = &sentinel->hosts[configured + i];
        struct found *found = &sentinel->found[configured + i];
        if (strcmp(host->name, view->nodes[i].name) != 0) {
            redis_lookup_abandon(&found->lookup);
            found->addresses.count = 0;
        }
        *host = view->nodes[i];
    }
    sentinel->host_count = configured + view->node_count;
    sentinel->at = (sentinel->at + 1) % sentinel->host_count;
}

static void on_nodes(struct redis_sentinel *sentinel, const struct redis_reply *reply)
{
    struct redis_cluster_view view;
    uint64_t now_ns = clock_monotonic_ns();
    redis_cluster_read(reply->text, sentinel->options.slot, host_of(sentinel),
                       sentinel->options.link->location->tls, &view);
    if (view.master.port == 0) {
        ask_next(sentinel, STATUS_UNAVAILABLE, "it knows no master of the keys' slot");
    } else if (view.epoch < sentinel->epoch && now_ns - sentinel->epoch_ns < EPOCH_KEPT_NS) {
        ask_next(sentinel, STATUS_UNAVAILABLE, "it does not know the present master yet");
    } else {
        sentinel->epoch = view.epoch;
        sentinel->epoch_ns = now_ns;
        stop_asking(sentinel);
        take_nodes(sentinel, &view);
        sentinel->options.found(sentinel->options.owner, &view.master, view.epoch);
    }
}

static void on_reply(void *context, unsigned index, const struct redis_reply *reply)
{
    struct redis_sentinel *sentinel = context;
    struct redis_host master;
    struct error error;
    bool of_auth = index == 0 && sentinel->options.link->location->password != NULL;
    if (of_auth) /* the next reply says more: a sentinel without a password refuses AUTH */
        return;
    if (reply->type == REDIS_ERROR) {
        const char *what = sentinel->options.cluster ? "CLUSTER NODES" : "SENTINEL";
        ask_next(sentinel, redis_error_of_reply(reply, what, &error), error.text);
    } else if (sentinel->options.cluster) {
        on_nodes(sentinel, reply);
    } else if (!read_master(reply, &master)) {
        ask_next(sentinel, STATUS_UNAVAILABLE, "it knows no master of that service");
    } else {
        stop_asking(sentinel);
        sentinel->options.found(sentinel->options.owner, &master, 0);
    }
}

static void send_question(struct redis_sentinel *sentinel)
{
    const struct redis_location *location = sentinel->options.link->location;
    struct buffer commands = {0};
    if (location->password != NULL)
        redis_command_auth(&commands, location);
    if (sentinel->options.cluster)
        redis_command(&commands, "CLUSTER NODES");
    else
        redis_command(&commands, "SENTINEL GET-MASTER-ADDR-BY-NAME %s", location->service);
    (void)redis_wire_send(sentinel->wire, buffer_text(&commands),
                          location->password != NULL ? 2 : 1, on_reply, sentinel);
    explicit_bzero(commands.data, commands.size);
    buffer_free(&commands);
}

static void open_next(struct redis_sentinel *sentinel)
{
    const struct redis_wire_events events = {.owner = sentinel, .lost = on_lost};
    struct redis_addresses *addresses = &sentinel->addresses;
    struct redis_target target = {.port = host_of(sentinel)->port, .host = host_of(sentinel)->name};
    struct error error;
    (void)snprintf(target.name, sizeof target.name, "%s", addresses->list[addresses->next++]);
    start_late(sentinel);
    if (redis_wire_open(&sentinel->wire, sentinel->options.loop, &target,
                        sentinel->options.link->location->trust, &events, &error) != STATUS_OK)
        ask_next(sentinel, STATUS_UNAVAILABLE, error.text);
    else
        send_question(sentinel);
}

static void on_looked_up(void *owner, const struct redis_addresses *addresses, const char *problem)
{
    struct found *found = owner;
    struct redis_sentinel *sentinel = found->sentinel;
    bool wanted = is_looked_up(sentinel) && found == &sentinel->found[sentinel->at];
    found->lookup = NULL;
    found->addresses = *addresses;
    if (wanted && problem != NULL)
        ask_next(sentinel, STATUS_UNAVAILABLE, problem);
    else if (wanted)
        ask_one(sentinel);
}

static void ask_one(struct redis_sentinel *sentinel)
{
    struct found *found = &sentinel->found[sentinel->at];
    redis_wire_destroy(&sentinel->wire);
    sentinel->addresses = found->addresses;
    start_late(sentinel);
    if (sentinel->addresses.count > 0)
        open_next(sentinel);
    else if (found->lookup == NULL)
        found->lookup = redis_lookup_start(sentinel->options.mailbox, host_of(sentinel)->name,
                                           found, on_looked_up);
}

/* ---- asking ---------------------------------------------------------------------------------- */

void redis_sentinel_ask(struct redis_sentinel *sentinel)
{
    if (sentinel->asking)
        return;
    sentinel->asking = true;
    sentinel->asked = 0;
    ask_one(sentinel);
}

bool redis_sentinel_looks_up(const struct redis_sentinel *sentinel)
{
    for (size_t i = 0; i < ASKED_MAX; i++)
        if (sentinel->found[i].lookup != NULL)
            return true;
    return false;
}

/* ---- life ------------------------------------------------------------------------------------ */

struct redis_sentinel *redis_sentinel_create(const struct redis_sentinel_options *options)
{
    struct redis_sentinel *sentinel = memory_alloc_zeroed(1, sizeof *sentinel);
    sentinel->options = *options;
    clock_make_timer(options->loop, &sentinel->late, sentinel);
    memcpy(sentinel->hosts, options->link->location->hosts, sizeof options->link->location->hosts);
    sentinel->host_count = options->link->location->host_count;
    for (size_t i = 0; i < ASKED_MAX; i++)
        sentinel->found[i].sentinel = sentinel;
    return sentinel;
}

static void on_closed(uv_handle_t *handle)
{
    memory_free(handle->data);
}

void redis_sentinel_destroy(struct redis_sentinel **sentinel)
{
    struct redis_sentinel *mine = memory_take(sentinel);
    if (mine == NULL)
        return;
    redis_wire_destroy(&mine->wire);
    for (size_t i = 0; i < ASKED_MAX; i++)
        redis_lookup_abandon(&mine->found[i].lookup);
    uv_close((uv_handle_t *)&mine->late, on_closed);
}
