/*
 * Which server is the master, and when that changes, as Redis Sentinel tells; see redis.h.
 *
 * One sentinel is asked after the other, at each of its addresses, until one knows the master. That
 * one is kept, and asked to report when another server is made the master (+switch-master). It is
 * asked every second whether it is still there; one that may not report is asked for the master
 * instead.
 */
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/redis/redis.h"

#define ASK_MS_MIN 250
#define ASK_MS_MAX 1000
#define LATE_SECONDS 3

/* The addresses of one sentinel. */
struct found {
    struct redis_sentinel *sentinel;
    struct redis_lookup *lookup;      /* NULL: none is under way */
    struct redis_addresses addresses; /* that came late, for the next time */
};

struct redis_sentinel {
    struct redis_sentinel_options options;
    struct found found[REDIS_HOSTS_MAX];
    struct redis_wire *wire;
    uv_timer_t late;          /* while asking: the one that was asked takes too long */
    struct redis_host master; /* as it was found last */
    size_t at;                /* the one that was asked last */
    size_t asked;             /* how many, since redis_sentinel_ask */
    struct redis_addresses addresses;
    bool asking;  /* the owner waits for a master */
    bool secret;  /* it wants the password as well */
    bool watches; /* it will say when the master changes */
    bool refused; /* it refuses to, which was logged */
    bool owes;    /* an answer */
    unsigned late_seconds;
};

static void open_next(struct redis_sentinel *sentinel);
static void ask_one(struct redis_sentinel *sentinel);

static const struct redis_host *host_of(const struct redis_sentinel *sentinel)
{
    return &sentinel->options.link->location->hosts[sentinel->at];
}

/* Are the addresses of the one that is asked being looked up? */
static bool is_looked_up(const struct redis_sentinel *sentinel)
{
    return sentinel->wire == NULL && sentinel->found[sentinel->at].lookup != NULL;
}

/* ---- one after the other --------------------------------------------------------------------- */

static void leave(struct redis_sentinel *sentinel)
{
    redis_wire_destroy(&sentinel->wire);
    sentinel->watches = false;
    sentinel->secret = false; /* one that has no password refuses it */
    sentinel->refused = false;
}

static void turn_to_next(struct redis_sentinel *sentinel, enum status status, const char *why)
{
    const struct redis_host *host = host_of(sentinel);
    struct error error;
    (void)error_set(&error, status, "the sentinel at %s:%u: %s", host->name, host->port, why);
    leave(sentinel);
    if (sentinel->addresses.next < sentinel->addresses.count) {
        open_next(sentinel);
        return;
    }
    sentinel->at = (sentinel->at + 1) % sentinel->options.link->location->host_count;
    if (!sentinel->asking)
        return; /* the next second asks again */
    if (++sentinel->asked < sentinel->options.link->location->host_count) {
        ask_one(sentinel);
        return;
    }
    sentinel->asking = false;
    CHECK(uv_timer_stop(&sentinel->late) == 0);
    sentinel->options.failed(sentinel->options.owner, status, error.text);
}

static void on_late(uv_timer_t *timer)
{
    struct redis_sentinel *sentinel = timer->data;
    if (sentinel->asking)
        turn_to_next(sentinel, STATUS_TIMEOUT,
                     is_looked_up(sentinel) ? "its address is not found in time"
                                            : "it does not answer");
}

/* What is awaited of it now is late after a moment, while the owner waits: others may be
 * quicker. */
static void expect(struct redis_sentinel *sentinel)
{
    uint32_t ms = sentinel->options.link->timeout_ms;
    ms = ms < ASK_MS_MIN ? ASK_MS_MIN : ms > ASK_MS_MAX ? ASK_MS_MAX : ms;
    sentinel->owes = true;
    sentinel->late_seconds = 0;
    if (!sentinel->asking)
        return;
    clock_refresh_loop(sentinel->late.loop);
    CHECK(uv_timer_start(&sentinel->late, on_late, ms, 0) == 0);
}

static void on_lost(void *owner, struct redis_wire *wire, enum status status, const char *why)
{
    struct error kept;
    (void)wire;
    (void)error_set(&kept, status, "%s", why); /* it may be the wire's */
    turn_to_next(owner, status, kept.text);
}

/* ---- questions and answers ------------------------------------------------------------------- */

/* "SERVICE OLD-HOST OLD-PORT NEW-HOST NEW-PORT" */
static void on_message(void *owner, const struct redis_reply *message)
{
    struct redis_sentinel *sentinel = owner;
    if (message->count != 3 || message->elements[2].type != REDIS_STRING || sentinel->asking)
        return;
    struct text rest = message->elements[2].text;
    if (text_equals(text_cut(&rest, ' '), text_of(sentinel->options.link->location->service)))
        sentinel->options.moved(sentinel->options.owner);
}

static void on_watching(void *context, unsigned index, const struct redis_reply *reply)
{
    struct redis_sentinel *sentinel = context;
    bool known = sentinel->refused;
    (void)index;
    sentinel->watches = reply->type != REDIS_ERROR;
    sentinel->refused = !sentinel->watches;
    sentinel->owes = false;
    if (known || sentinel->watches)
        return;
    log_event(sentinel->options.link->log, LOG_WARNING,
              "a sentinel refuses to report failovers; asking it for the master every second",
              LOG_STRING("sentinel", host_of(sentinel)->name),
              LOG_INTEGER("port", host_of(sentinel)->port));
}

static bool read_master(const struct redis_reply *reply, struct redis_host *host)
{
    uint64_t port = 0;
    if (reply->type != REDIS_LIST || reply->count != 2)
        return false;
    struct text name = reply->elements[0].text;
    if (reply->elements[0].type != REDIS_STRING || reply->elements[1].type != REDIS_STRING ||
        name.size == 0 || name.size >= REDIS_HOST_SIZE || strlen(name.at) != name.size ||
        text_to_u64(reply->elements[1].text, UINT16_MAX, &port) != STATUS_OK || port == 0)
        return false;
    memset(host, 0, sizeof *host);
    memcpy(host->name, name.at, name.size);
    host->port = (uint16_t)port;
    return true;
}

static void send_question(struct redis_sentinel *sentinel);

static void found(struct redis_sentinel *sentinel, const struct redis_host *master)
{
    struct buffer commands = {0};
    bool asking = sentinel->asking;
    bool moved =
        strcmp(master->name, sentinel->master.name) != 0 || master->port != sentinel->master.port;
    redis_command(&commands, "SUBSCRIBE", "+switch-master", NULL);
    redis_wire_send(sentinel->wire, buffer_text(&commands), 1, on_watching, sentinel);
    buffer_free(&commands);
    sentinel->master = *master;
    sentinel->asking = false;
    CHECK(uv_timer_stop(&sentinel->late) == 0);
    if (asking)
        sentinel->options.found(sentinel->options.owner, &sentinel->master);
    else if (moved)
        sentinel->options.moved(sentinel->options.owner);
}

static void on_master(void *context, unsigned index, const struct redis_reply *reply)
{
    struct redis_sentinel *sentinel = context;
    struct redis_host master;
    struct error error;
    bool of_auth = index == 0 && sentinel->secret;
    if (of_auth && reply->type != REDIS_ERROR)
        return;
    if (!of_auth && reply->type == REDIS_ERROR && !sentinel->secret &&
        strncmp(reply->text.at, "NOAUTH", 6) == 0 &&
        sentinel->options.link->location->password != NULL) {
        sentinel->secret = true; /* the same as for the servers */
        send_question(sentinel);
    } else if (reply->type == REDIS_ERROR) {
        enum status status = redis_error_of_reply(reply, of_auth ? "AUTH" : "SENTINEL", &error);
        turn_to_next(sentinel, status, error.text);
    } else if (!read_master(reply, &master)) {
        turn_to_next(sentinel, STATUS_UNAVAILABLE, "it knows no master of that service");
    } else {
        found(sentinel, &master);
    }
}

static void send_question(struct redis_sentinel *sentinel)
{
    struct buffer commands = {0};
    if (sentinel->secret)
        redis_command_auth(&commands, sentinel->options.link->location);
    redis_command(&commands, "SENTINEL", "GET-MASTER-ADDR-BY-NAME",
                  sentinel->options.link->location->service, NULL);
    redis_wire_send(sentinel->wire, buffer_text(&commands), sentinel->secret ? 2 : 1, on_master,
                    sentinel);
    explicit_bzero(commands.data, commands.size);
    buffer_free(&commands);
}

static void open_next(struct redis_sentinel *sentinel)
{
    const struct redis_wire_events events = {
        .owner = sentinel, .lost = on_lost, .message = on_message};
    struct redis_addresses *addresses = &sentinel->addresses;
    struct redis_target target = {.port = host_of(sentinel)->port};
    struct error error;
    (void)snprintf(target.name, sizeof target.name, "%s", addresses->list[addresses->next++]);
    expect(sentinel);
    if (redis_wire_open(&sentinel->wire, sentinel->options.loop, &target, NULL, &events, &error) !=
        STATUS_OK)
        turn_to_next(sentinel, STATUS_UNAVAILABLE, error.text);
    else
        send_question(sentinel);
}

static void on_looked_up(void *owner, const struct redis_addresses *addresses, const char *problem)
{
    struct found *found = owner;
    struct redis_sentinel *sentinel = found->sentinel;
    bool wanted = is_looked_up(sentinel) && found == &sentinel->found[sentinel->at];
    found->lookup = NULL;
    if (!wanted) {
        found->addresses = *addresses;
    } else if (problem != NULL) {
        turn_to_next(sentinel, STATUS_UNAVAILABLE, problem);
    } else {
        sentinel->addresses = *addresses;
        open_next(sentinel);
    }
}

static void ask_one(struct redis_sentinel *sentinel)
{
    struct found *found = &sentinel->found[sentinel->at];
    redis_wire_destroy(&sentinel->wire);
    sentinel->watches = false;
    sentinel->addresses = found->addresses;
    found->addresses.count = 0;
    expect(sentinel);
    if (sentinel->addresses.count > 0)
        open_next(sentinel);
    else if (found->lookup == NULL)
        found->lookup = redis_lookup_start(sentinel->options.mailbox, host_of(sentinel)->name,
                                           found, on_looked_up);
}

/* ---- what its owner asks --------------------------------------------------------------------- */

void redis_sentinel_ask(struct redis_sentinel *sentinel)
{
    sentinel->asking = true;
    sentinel->asked = 0;
    ask_one(sentinel);
}

bool redis_sentinel_looks_up(const struct redis_sentinel *sentinel)
{
    for (size_t i = 0; i < REDIS_HOSTS_MAX; i++)
        if (sentinel->found[i].lookup != NULL)
            return true;
    return false;
}

static void on_beat(void *context, unsigned index, const struct redis_reply *reply)
{
    struct redis_sentinel *sentinel = context;
    (void)index;
    (void)reply;
    sentinel->owes = false;
}

void redis_sentinel_second(struct redis_sentinel *sentinel)
{
    struct buffer commands = {0};
    if (sentinel->wire == NULL && !is_looked_up(sentinel)) {
        ask_one(sentinel);
    } else if (sentinel->owes) {
        if (++sentinel->late_seconds >= LATE_SECONDS)
            turn_to_next(sentinel, STATUS_TIMEOUT, "it does not answer");
    } else if (sentinel->watches) {
        redis_command(&commands, "PING", NULL);
        expect(sentinel);
        redis_wire_send(sentinel->wire, buffer_text(&commands), 1, on_beat, sentinel);
        buffer_free(&commands);
    } else if (sentinel->wire != NULL) {
        expect(sentinel);
        send_question(sentinel); /* it may name another master, or report failovers by now */
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

struct redis_sentinel *redis_sentinel_create(const struct redis_sentinel_options *options)
{
    struct redis_sentinel *sentinel = memory_alloc_zeroed(1, sizeof *sentinel);
    sentinel->options = *options;
    CHECK(uv_timer_init(options->loop, &sentinel->late) == 0);
    sentinel->late.data = sentinel;
    for (size_t i = 0; i < REDIS_HOSTS_MAX; i++)
        sentinel->found[i].sentinel = sentinel;
    return sentinel;
}

static void on_closed(uv_handle_t *handle)
{
    memory_free(handle->data);
}

void redis_sentinel_destroy(struct redis_sentinel **sentinel)
{
    struct redis_sentinel *mine = *sentinel;
    *sentinel = NULL;
    if (mine == NULL)
        return;
    redis_wire_destroy(&mine->wire);
    for (size_t i = 0; i < REDIS_HOSTS_MAX; i++)
        redis_lookup_abandon(&mine->found[i].lookup);
    uv_close((uv_handle_t *)&mine->late, on_closed);
}
