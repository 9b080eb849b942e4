/*
 * This file makes the link's connection, and finds out whether it still works. See connection.h.
 *
 * An attempt has these steps. With Sentinel, ask which server is the master. Look the server's name
 * up. Greet the server, at one address after the other. It must be a master. Have it report
 * changes. When the first heartbeat is answered, the connection is up.
 *
 * A server that says it is a node of a cluster begins another attempt, which asks the nodes for the
 * master of the slot that has all keys (sentinel.c). From then on every attempt does.
 *
 * Asking. A server may refuse HELLO 3 or CLIENT TRACKING, for good or to this user. Then values are
 * asked for at each request: nothing is ever confirmed, so redis_connection_now gives
 * STATUS_PENDING. Heartbeats only ask whether the server is still the master. Each new connection
 * asks for both again.
 *
 * Heartbeats. Reports of changes come on the same connection as the replies (RESP3), so a broken
 * connection brings neither, and an answer follows the reports of all changes of earlier turns of
 * the server's event loop. Each heartbeat asks the server whether it still reports changes to this
 * connection, whether it is still the master, and how often databases were swapped (SWAPDB), which
 * no server reports. A node of a cluster is asked for a key that never exists, too: while its slot
 * is being moved it answers ASK, and from then on MOVED. An answer confirms the state of the moment
 * at which the question was sent. Versions count as confirmed for half of timeout_ms after that
 * moment, at most WINDOW_MS_MAX. The connection fails when a heartbeat is not answered within
 * timeout_ms. A connection that does not track has no heartbeats: it fails when a call is not
 * answered in time.
 *
 * Back-off. A connection that worked and failed is made again at once, and calls wait for that one
 * attempt. If the attempt fails, calls are refused at once, and attempts follow at growing
 * intervals of up to a second, with jitter. A connection that fails again and again is treated the
 * same way.
 *
 * Threads. Any thread may use the atomics. The lock guards `problem`. All else belongs to the I/O
 * thread.
 */
#include "stores/odds/redis/connection.h"

#include "base/clock.h"
#include "base/hash.h"
#include "base/memory.h"
#include "stores/odds/redis/cluster.h"
#include "stores/odds/redis/command.h"
#include "stores/odds/redis/lookup.h"
#include "stores/odds/redis/sentinel.h"

#define NS_PER_MS ((uint64_t)1000000)
#define GREETING_MS_MIN 1000 /* several round trips, over any distance */
#define GREETING_MS_MAX 3000
#define WINDOW_MS_MAX 500 /* versions count as confirmed for so long at most */
#define BEATS_A_WINDOW 5
#define SENTINEL_EVERY_NS ((uint64_t)1000 * NS_PER_MS)
#define REST_MS_MIN 25U
#define REST_MS_MAX 1000U
#define STEADY_NS ((uint64_t)1000 * NS_PER_MS) /* after so long, earlier failures do not count */

enum phase {
    PHASE_RESTING,   /* until the next attempt */
    PHASE_ASKING,    /* the sentinels */
    PHASE_RESOLVING, /* the name of the server */
    PHASE_GREETING,  /* connecting, and the first commands */
    PHASE_UP,
};

#define GREETINGS 6 /* commands that a server is sent first, at most */

struct redis_connection {
    struct redis_connection_options options;

    /* Any thread may read these. */
    atomic_uint_fast64_t confirmed_until_ns; /* 0: not confirmed */
    /* STATUS_OK: connected; STATUS_PENDING: being tried; else why calls fail. */
    atomic_int standing;
    atomic_uint_fast64_t connected_times;
    atomic_uint_fast64_t invalidations;
    atomic_uint_fast64_t round_trip_ns;
    atomic_bool asks; /* of this connection, or of the last one while there is none */

    uv_mutex_t lock; /* guards `problem` */
    struct error problem;

    /* The I/O thread's. */
    enum phase phase;
    struct redis_wire *wire;
    struct redis_sentinel *sentinel; /* NULL: there are none, and no cluster */
    atomic_bool cluster;             /* for any thread */
    bool moving;                     /* the slot, at the last heartbeat */
    uint64_t epoch;                  /* of the target */
    bool leaving;                    /* a node has named another master */
    struct redis_target target;
    char host[REDIS_HOST_SIZE]; /* of the target, before the lookup */
    uint16_t port;
    struct redis_lookup *lookup;      /* of the host; NULL: none is under way */
    struct redis_addresses addresses; /* of the host, to be tried one after the other */
    const char *greetings[GREETINGS]; /* the sent ones */
    unsigned greeting_count;
    struct error refusal;  /* of this server: why it cannot report changes; "": it can */
    bool hello_is_refused; /* so it speaks RESP2 */
    bool is_replica;       /* by its answer to ROLE */
    uv_timer_t step;       /* the end of a phase, or of the rest */
    unsigned failures;     /* in a row */
    uint64_t up_since_ns;
    bool complained; /* about `problem` */
    bool asked;      /* the last connection that was up was one that asks */

    uv_timer_t beat;
    bool beat_out; /* asked, and not answered yet */
    uint64_t beat_sent_ns;
    unsigned beat_late; /* ticks at which it was overdue */
    uint64_t sentinel_asked_ns;
    uv_timer_t ask; /* runs while the connection is up and asks */
    uint64_t counted_swaps,
        counted_roles; /* of the last heartbeat; counted_roles is 0 before the first */
};

static void on_step(uv_timer_t *timer);

static const char *shown(const struct redis_connection *connection)
{
    return connection->options.link->location->shown.data;
}

static uint32_t between(uint32_t value, uint32_t least, uint32_t most)
{
    return value < least ? least : value > most ? most : value;
}

static uint32_t window_ms(const struct redis_connection *connection)
{
    return between(connection->options.link->timeout_ms / 2, 1, WINDOW_MS_MAX);
}

static uint32_t greeting_ms(const struct redis_connection *connection)
{
    return between(connection->options.link->timeout_ms, GREETING_MS_MIN, GREETING_MS_MAX);
}

static void set_step(struct redis_connection *connection, uint64_t delay_ms)
{
    clock_start_timer(&connection->step, on_step, delay_ms, 0);
}

/* ---- standing -------------------------------------------------------------------------------- */

enum status redis_connection_now(const struct redis_connection *connection)
{
    uint64_t until_ns = atomic_load(&connection->confirmed_until_ns);
    if (until_ns != 0 && clock_monotonic_ns() < until_ns)
        return STATUS_OK;
    enum status standing = (enum status)atomic_load(&connection->standing);
    return standing == STATUS_OK ? STATUS_PENDING : standing;
}

void redis_connection_problem(struct redis_connection *connection, struct error *error)
{
    if (error == NULL)
        return;
    uv_mutex_lock(&connection->lock);
    *error = connection->problem;
    uv_mutex_unlock(&connection->lock);
}

void redis_connection_facts(const struct redis_connection *connection, struct odds_facts *facts)
{
    uint64_t times = atomic_load(&connection->connected_times);
    facts->connected = atomic_load(&connection->standing) == (int)STATUS_OK;
    facts->reopened = times > 0 ? times - 1 : 0;
    facts->invalidations = atomic_load(&connection->invalidations);
    facts->round_trip_ns = atomic_load(&connection->round_trip_ns);
    facts->asks = redis_connection_asks(connection);
}

bool redis_connection_asks(const struct redis_connection *connection)
{
    return atomic_load_explicit(&connection->asks, memory_order_acquire);
}

/* ---- failures -------------------------------------------------------------------------------- */

static void forget_addresses(struct redis_connection *connection)
{
    connection->addresses.count = 0;
    connection->addresses.next = 0;
}

/* Returns how long to rest before the next attempt. */
static uint32_t rest_ms(const struct redis_connection *connection)
{
    unsigned doublings = connection->failures < 6 ? connection->failures : 6;
    uint32_t most_ms = between(REST_MS_MIN << doublings, REST_MS_MIN, REST_MS_MAX);
    return most_ms / 2 + (uint32_t)(hash_random_seed() % (most_ms / 2 + 1));
}

/* A command has time for a resolver that is slow. Its calls wait for it, up to their deadlines. */
static bool waits_for_lookup(const struct redis_connection *connection)
{
    return !connection->options.link->track &&
           (connection->lookup != NULL ||
            (connection->sentinel != NULL && redis_sentinel_looks_up(connection->sentinel)));
}

static void report_problem(struct redis_connection *connection, const struct error *problem,
                           bool was_up)
{
    bool news = !connection->complained || strcmp(problem->text, connection->problem.text) != 0;
    uv_mutex_lock(&connection->lock);
    connection->problem = *problem;
    uv_mutex_unlock(&connection->lock);
    connection->complained = true;
    if (was_up)
        log_event(connection->options.link->log, LOG_WARNING,
                  "connection to the odds store is lost; connecting again",
                  LOG_STRING("reason", problem->text));
    else if (news)
        log_event(connection->options.link->log, LOG_ERROR,
                  "odds store cannot be used; trying again until it can",
                  LOG_STRING("reason", problem->text));
}

static void drop_wire(struct redis_connection *connection)
{
    atomic_store(&connection->confirmed_until_ns, 0);
    redis_wire_destroy(&connection->wire);
    CHECK(uv_timer_stop(&connection->beat) == 0);
    CHECK(uv_timer_stop(&connection->ask) == 0);
}

/* Returns false unless the name has another address, which is tried at once. */
static bool try_next_address(struct redis_connection *connection)
{
    if (connection->phase != PHASE_GREETING ||
        connection->addresses.next >= connection->addresses.count)
        return false;
    drop_wire(connection);
    connection->phase = PHASE_RESTING;
    set_step(connection, 0);
    return true;
}

/* Ends the connection or the attempt. The next attempt follows. `status` is STATUS_UNAVAILABLE or
 * STATUS_TIMEOUT. */
static void fail_connection(struct redis_connection *connection, enum status status,
                            const char *why)
{
    if (try_next_address(connection))
        return;
    bool was_up = connection->phase == PHASE_UP;
    uint64_t now_ns = clock_monotonic_ns();
    if (was_up && now_ns - connection->up_since_ns >= STEADY_NS)
        connection->failures = 0;
    bool hope = (was_up && status != STATUS_TIMEOUT) || waits_for_lookup(connection);
    uint32_t delay_ms = connection->failures == 0 && hope ? 0 : rest_ms(connection);
    connection->failures++;
    struct error problem;
    (void)error_set(&problem, status, "the odds store at %s: %s", shown(connection), why);
    drop_wire(connection);
    forget_addresses(connection);
    atomic_store(&connection->standing, (int)(hope ? STATUS_PENDING : status));
    report_problem(connection, &problem, was_up);
    connection->phase = PHASE_RESTING;
    set_step(connection, delay_ms);
    connection->options.lost(connection->options.owner, status, hope);
}

/* The lookup goes on. The next attempt waits for it too. */
static void fail_slow_lookup(struct redis_connection *connection)
{
    char why[REDIS_HOST_SIZE + 64];
    (void)snprintf(why, sizeof why, "the address of %s is not found in time", connection->host);
    fail_connection(connection, STATUS_TIMEOUT, why);
}

void redis_connection_moved(struct redis_connection *connection)
{
    if (connection->phase == PHASE_UP || connection->phase == PHASE_GREETING)
        fail_connection(connection, STATUS_UNAVAILABLE,
                        "the keys have moved to another node of the cluster");
}

static void on_lost(void *owner, const char *why)
{
    fail_connection(owner, STATUS_UNAVAILABLE, why);
}

/* Fails the connection or the attempt because of an error reply. */
static void fail_by_error(struct redis_connection *connection, const struct redis_reply *reply,
                          const char *what)
{
    struct error error;
    (void)redis_error_of_reply(reply, what, &error);
    fail_connection(connection, STATUS_UNAVAILABLE, error.text);
}

/* ---- reports of changes ---------------------------------------------------------------------- */

static void all_changed(struct redis_connection *connection)
{
    connection->options.link->changed(connection->options.link->owner, NULL, 0);
    (void)atomic_fetch_add(&connection->invalidations, 1);
}

/* The message is "invalidate" and a list of keys. Without a list it means all keys. */
static void on_message(void *owner, const struct redis_reply *message)
{
    struct redis_connection *connection = owner;
    if (message->count != 2 || !redis_reply_is(&message->elements[0], "invalidate"))
        return;
    const struct redis_reply *keys = &message->elements[1];
    if (keys->type != REDIS_LIST) {
        all_changed(connection);
        return;
    }
    for (size_t i = 0; i < keys->count; i++)
        if (keys->elements[i].type == REDIS_STRING)
            connection->options.link->changed(connection->options.link->owner,
                                              keys->elements[i].text.at,
                                              keys->elements[i].text.size);
    (void)atomic_fetch_add(&connection->invalidations, keys->count);
}

/* ---- heartbeats ------------------------------------------------------------------------------ */

static void report_connected(struct redis_connection *connection)
{
    struct log *log = connection->options.link->log;
    bool asks = redis_connection_asks(connection);
    if (!connection->options.link->track)
        return;
    log_event(log, LOG_INFO, "connected to the odds store", LOG_STRING("store", shown(connection)),
              LOG_STRING("server", connection->target.name),
              LOG_INTEGER("port", connection->target.port),
              LOG_STRING("mode", asks ? "asking" : "tracking"));
    if (asks && !connection->asked)
        log_event(log, LOG_WARNING,
                  "the odds store does not report changes; values are asked for at each request",
                  LOG_STRING("reason", connection->refusal.text));
    connection->asked = asks;
}

static void mark_connected(struct redis_connection *connection)
{
    connection->phase = PHASE_UP;
    connection->up_since_ns = clock_monotonic_ns();
    CHECK(uv_timer_stop(&connection->step) == 0);
    (void)atomic_fetch_add(&connection->connected_times, 1);
    atomic_store(&connection->standing, (int)STATUS_OK);
    connection->complained = false;
    report_connected(connection);
    connection->options.up(connection->options.owner);
}

static bool has_word(const struct redis_reply *list, const char *word)
{
    for (size_t i = 0; list != NULL && i < list->count; i++)
        if (redis_reply_is(&list->elements[i], word))
            return true;
    return false;
}

static bool still_tracks(const struct redis_reply *reply)
{
    const struct redis_reply *flags = redis_reply_value(reply, "flags");
    const struct redis_reply *redirect = redis_reply_value(reply, "redirect");
    return has_word(flags, "on") && has_word(flags, "bcast") && redirect != NULL &&
           redirect->type == REDIS_INTEGER && redirect->integer <= 0; /* to no other connection */
}

static bool is_master(const struct redis_reply *reply)
{
    return reply->count > 0 && redis_reply_is(&reply->elements[0], "master");
}

/* The count of calls of a command, by its line of INFO. 0: none, or the line is missing. */
static uint64_t calls_of(const struct redis_reply *reply, const char *line)
{
    const char *calls = reply->type == REDIS_STRING ? strstr(reply->text.at, line) : NULL;
    return calls == NULL ? 0 : strtoull(calls + strlen(line), NULL, 10);
}

/*
 * SWAPDB changes every value, and Redis does not report it to clients that track. So the server's
 * own count of SWAPDB is compared. CONFIG RESETSTAT sets the counts back, which might hide a swap.
 * Therefore the count of ROLE, which each heartbeat sends just before, is compared as well: if it
 * has not grown, the counts were set back. Returns false when the connection has failed.
 */
static bool check_swapdb(struct redis_connection *connection, const struct redis_reply *reply)
{
    uint64_t swaps = calls_of(reply, "cmdstat_swapdb:calls=");
    uint64_t roles = calls_of(reply, "cmdstat_role:calls=");
    bool swapped = swaps != connection->counted_swaps;
    if (roles == 0) {
        fail_connection(connection, STATUS_UNAVAILABLE,
                        "INFO commandstats counts no commands, so a SWAPDB would not be noticed");
        return false;
    }
    if (connection->counted_roles != 0 && (swapped || roles <= connection->counted_roles)) {
        all_changed(connection);
        if (swapped)
            log_event(
                connection->options.link->log, LOG_WARNING,
                "databases of the odds store's server were swapped; all values are read again");
    }
    connection->counted_swaps = swaps;
    connection->counted_roles = roles;
    return true;
}

static void end_beat(struct redis_connection *connection)
{
    uint64_t took_ns = clock_monotonic_ns() - connection->beat_sent_ns;
    uint64_t before_ns = atomic_load(&connection->round_trip_ns);
    atomic_store(&connection->round_trip_ns,
                 before_ns == 0 ? took_ns : (before_ns * 7 + took_ns) / 8);
    connection->beat_out = false;
    bool confirms = !connection->moving && !redis_connection_asks(connection);
    atomic_store(&connection->confirmed_until_ns,
                 confirms ? connection->beat_sent_ns + window_ms(connection) * NS_PER_MS : 0);
    if (connection->phase != PHASE_UP)
        mark_connected(connection);
}

/*
 * The reply about a key that never exists. While the slot is being moved, the next node gets new
 * keys and the changes of keys that it has, and does not report them here. So nothing is confirmed,
 * each request reads the store, and everything may have changed since the heartbeat before. Returns
 * false when the connection has failed.
 */
static bool check_slot(struct redis_connection *connection, const struct redis_reply *reply)
{
    struct redis_host host;
    enum redis_redirect redirect = redis_redirect_read(reply, connection->host, &host);
    bool moving = redirect == REDIS_ASK || redirect == REDIS_LATER;
    if (redirect == REDIS_MOVED)
        redis_connection_moved(connection);
    else if (reply->type == REDIS_ERROR && !moving)
        fail_by_error(connection, reply, "PTTL");
    if (!moving && reply->type == REDIS_ERROR)
        return false;
    if (moving && !connection->moving)
        log_event(connection->options.link->log, LOG_INFO,
                  "the keys of the odds store are being moved to another node of the cluster; "
                  "values are read at each request until they are there");
    if (moving || connection->moving)
        connection->options.link->changed(connection->options.link->owner, NULL, 0);
    connection->moving = moving;
    return true;
}

/* The commands of a heartbeat, in their order. Where values are asked for, those in the middle are
 * left out; BEAT_SLOT is for a cluster. */
enum beat_step { BEAT_ROLE, BEAT_TRACKING, BEAT_SWAPS, BEAT_SLOT };
static const char *const beat_names[] = {"ROLE", "CLIENT TRACKINGINFO", "INFO commandstats"};

static void on_beat_reply(void *context, unsigned index, const struct redis_reply *reply)
{
    struct redis_connection *connection = context;
    bool asks = redis_connection_asks(connection);
    enum beat_step last = atomic_load(&connection->cluster) ? BEAT_SLOT
                          : asks                            ? BEAT_ROLE
                                                            : BEAT_SWAPS;
    enum beat_step step = asks && index > BEAT_ROLE ? BEAT_SLOT : (enum beat_step)index;
    if (step != BEAT_SLOT && reply->type == REDIS_ERROR)
        fail_by_error(connection, reply, beat_names[step]);
    else if (step == BEAT_ROLE && !is_master(reply))
        fail_connection(connection, STATUS_UNAVAILABLE, "the server is a replica now");
    else if (step == BEAT_TRACKING && !still_tracks(reply))
        fail_connection(connection, STATUS_UNAVAILABLE, "the server has ceased to report changes");
    else if ((step != BEAT_SWAPS || check_swapdb(connection, reply)) &&
             (step != BEAT_SLOT || check_slot(connection, reply)) && step == last)
        end_beat(connection);
}

static void ask_beat(struct redis_connection *connection)
{
    struct buffer commands = {0};
    unsigned count = redis_connection_asks(connection) ? BEAT_ROLE + 1 : BEAT_SWAPS + 1;
    for (unsigned i = 0; i < count; i++)
        redis_command(&commands, "%s", beat_names[i]);
    if (atomic_load(&connection->cluster)) {
        redis_command_probe(&commands, connection->options.link->prefix);
        count++;
    }
    connection->beat_out = true;
    connection->beat_late = 0;
    connection->beat_sent_ns = clock_monotonic_ns();
    (void)redis_wire_send(connection->wire, buffer_text(&commands), count, on_beat_reply,
                          connection);
    buffer_free(&commands);
}

static void ask_sentinel(struct redis_connection *connection)
{
    uint64_t now_ns = clock_monotonic_ns();
    if (connection->sentinel == NULL || connection->phase != PHASE_UP ||
        now_ns - connection->sentinel_asked_ns < SENTINEL_EVERY_NS)
        return;
    connection->sentinel_asked_ns = now_ns;
    redis_sentinel_ask(connection->sentinel);
}

/* A server is silent if a heartbeat is overdue at two ticks. Between them the loop reads replies
 * that arrived while this thread could not run. */
static void beat(struct redis_connection *connection)
{
    uint64_t out_ns = clock_monotonic_ns() - connection->beat_sent_ns;
    if (!connection->beat_out)
        ask_beat(connection);
    else if (out_ns >= connection->options.link->timeout_ms * NS_PER_MS &&
             connection->beat_late++ > 0)
        fail_connection(connection, STATUS_TIMEOUT, "the server does not answer");
}

static void on_beat(uv_timer_t *timer)
{
    struct redis_connection *connection = timer->data;
    const struct redis_link_options *link = connection->options.link;
    if (link->track) {
        link->work(link->owner);
        beat(connection);
    }
    ask_sentinel(connection);
}

/* No report will wake the waiting polls. */
static void on_ask(uv_timer_t *timer)
{
    struct redis_connection *connection = timer->data;
    connection->options.link->ask(connection->options.link->owner);
}

static void start_beats(struct redis_connection *connection)
{
    uint64_t every_ms = between(window_ms(connection) / BEATS_A_WINDOW, 1, WINDOW_MS_MAX);
    uint64_t ask_ms = connection->options.link->ask_ms;
    clock_start_timer(&connection->beat, on_beat, every_ms, every_ms);
    if (redis_connection_asks(connection))
        clock_start_timer(&connection->ask, on_ask, ask_ms, ask_ms);
}

/* ---- greeting -------------------------------------------------------------------------------- */

static void append_greetings(struct redis_connection *connection, struct buffer *commands)
{
    const struct redis_location *location = connection->options.link->location;
    const char **next = connection->greetings;
    if (location->password != NULL) {
        redis_command_auth(commands, location);
        *next++ = "AUTH";
    }
    if (location->database != 0) {
        redis_command(commands, "SELECT %u", location->database);
        *next++ = "SELECT";
    }
    redis_command(commands, "PING");
    *next++ = "PING";
    redis_command(commands, "HELLO 3 SETNAME croupier");
    *next++ = "HELLO"; /* before ROLE: a replica of a cluster names the master */
    redis_command(commands, "ROLE");
    *next++ = "ROLE";
    if (connection->options.link->track) {
        const char *prefix = connection->options.link->prefix;
        redis_command(commands, "CLIENT TRACKING ON BCAST PREFIX %scatalog: PREFIX %sodds:", prefix,
                      prefix);
        *next++ = "CLIENT TRACKING";
    }
    connection->greeting_count = (unsigned)(next - connection->greetings);
}

static bool is_too_old(struct text version)
{
    uint64_t major = 0;
    uint64_t minor = 0;
    struct text number = text_cut(&version, '.');
    if (text_to_u64(number, 1000, &major) != STATUS_OK ||
        text_to_u64(text_cut(&version, '.'), 1000, &minor) != STATUS_OK)
        return true;
    return major < 6 || (major == 6 && minor < 2);
}

static void on_master_found(void *owner, const struct redis_host *master, uint64_t epoch);
static void on_no_master(void *owner, enum status status, const char *why);

static void ask_for_master(struct redis_connection *connection, bool cluster, uint32_t slot)
{
    const struct redis_sentinel_options options = {.link = connection->options.link,
                                                   .loop = connection->options.loop,
                                                   .mailbox = connection->options.mailbox,
                                                   .cluster = cluster,
                                                   .slot = slot,
                                                   .owner = connection,
                                                   .found = on_master_found,
                                                   .failed = on_no_master};
    connection->sentinel = redis_sentinel_create(&options);
}

/* The server is a node of a cluster. The next attempt begins at once, and asks for the master of
 * the slot. Returns NULL, or why that cannot be. */
static const char *join_cluster(struct redis_connection *connection)
{
    uint32_t slot = 0;
    if (connection->options.link->location->way != REDIS_BY_TCP)
        return "the server is a node of a Redis Cluster, which is reached by redis:// or rediss://";
    if (!redis_cluster_slot(connection->options.link->prefix, &slot))
        return "the server is a node of a Redis Cluster: the prefix of the keys needs a hash tag, "
               "as in prefix = {croupier}:, so that all keys are in one slot";
    ask_for_master(connection, true, slot);
    atomic_store(&connection->cluster, true);
    drop_wire(connection);
    forget_addresses(connection);
    connection->phase = PHASE_RESTING;
    set_step(connection, 0);
    return NULL;
}

/* Returns false when the connection has failed, or another attempt begins. */
static bool check_server(struct redis_connection *connection, struct text version, bool cluster)
{
    const char *why = NULL;
    if (version.size == 0)
        why = "what answers is neither Redis nor Valkey";
    else if (is_too_old(version))
        why = "the server is older than Redis 6.2";
    else if (connection->options.aimed || atomic_load(&connection->cluster))
        return true;
    else if (cluster)
        why = join_cluster(connection);
    else if (connection->options.link->location->host_count > 1 && connection->sentinel == NULL)
        why = "several servers are nodes of a cluster, and this one is none";
    if (why != NULL)
        fail_connection(connection, STATUS_UNAVAILABLE, why);
    return why == NULL && connection->wire != NULL;
}

static bool read_hello(struct redis_connection *connection, const struct redis_reply *reply)
{
    const struct redis_reply *version = redis_reply_value(reply, "version");
    const struct redis_reply *mode = redis_reply_value(reply, "mode");
    bool known = version != NULL && version->type == REDIS_STRING && mode != NULL;
    return check_server(connection, known ? version->text : TEXT(""),
                        known && redis_reply_is(mode, "cluster"));
}

/* Is it the server's word that this command is not to be had, now and later? An error that passes
 * begins with another word, such as LOADING. */
static bool is_refused(const struct redis_reply *reply)
{
    return redis_reply_is_refusal(reply) || text_starts_with(reply->text, TEXT("ERR ")) ||
           text_starts_with(reply->text, TEXT("NOPROTO"));
}

/* A server that refuses HELLO 3 or CLIENT TRACKING is asked instead. */
static void take_refusal(struct redis_connection *connection, const char *greeting,
                         const struct redis_reply *reply)
{
    if (connection->refusal.text[0] == '\0')
        (void)redis_error_of_reply(reply, greeting, &connection->refusal);
    if (strcmp(greeting, "HELLO") == 0)
        connection->hello_is_refused = true;
}

/* Returns false when the connection has failed. */
static bool check_role(struct redis_connection *connection)
{
    if (connection->is_replica)
        fail_connection(connection, STATUS_UNAVAILABLE,
                        "the server is a replica, whose data may lag behind");
    return !connection->is_replica;
}

/* Returns false when the connection has failed. */
static bool check_greeting(struct redis_connection *connection, const char *greeting,
                           const struct redis_reply *reply)
{
    bool hello = strcmp(greeting, "HELLO") == 0;
    bool optional = hello || strcmp(greeting, "CLIENT TRACKING") == 0;
    if (reply->type == REDIS_ERROR && optional && is_refused(reply)) {
        take_refusal(connection, greeting, reply);
    } else if (reply->type == REDIS_ERROR) {
        fail_by_error(connection, reply, greeting);
        return false;
    } else if (hello) {
        return read_hello(connection, reply);
    } else if (strcmp(greeting, "ROLE") == 0) {
        connection->is_replica = !is_master(reply);
        /* A replica of a cluster names the master, but without HELLO it is not known to be one. */
        return connection->hello_is_refused || check_role(connection);
    }
    return true;
}

static void end_greeting(struct redis_connection *connection)
{
    const struct redis_link_options *link = connection->options.link;
    bool asks = link->track && connection->refusal.text[0] != '\0';
    atomic_store_explicit(&connection->asks, asks, memory_order_release);
    start_beats(connection);
    if (link->track) {
        /* From here on every change is reported, or asked for; all before it is outdated. */
        link->changed(link->owner, NULL, 0);
        connection->counted_roles = 0;
        connection->moving = false;
        ask_beat(connection);
    } else {
        mark_connected(connection);
    }
}

/* INFO tells it where HELLO is refused. */
static void on_server_info(void *context, unsigned index, const struct redis_reply *reply)
{
    static const char version_line[] = "\nredis_version:";
    struct redis_connection *connection = context;
    if (index > 0) /* the name is for people; it may be refused */
        return;
    if (reply->type == REDIS_ERROR) {
        fail_by_error(connection, reply, "INFO server");
        return;
    }
    const char *info = reply->type == REDIS_STRING ? reply->text.at : "";
    const char *at = strstr(info, version_line);
    struct text version = text_of(at == NULL ? "" : at + strlen(version_line));
    if (check_server(connection, text_cut(&version, '\r'), strstr(info, "_mode:cluster") != NULL) &&
        check_role(connection))
        end_greeting(connection);
}

static void ask_server_info(struct redis_connection *connection)
{
    struct buffer commands = {0};
    redis_command(&commands, "INFO server");
    redis_command(&commands, "CLIENT SETNAME croupier");
    (void)redis_wire_send(connection->wire, buffer_text(&commands), 2, on_server_info, connection);
    buffer_free(&commands);
}

static void on_greeting(void *context, unsigned index, const struct redis_reply *reply)
{
    struct redis_connection *connection = context;
    bool last = index + 1 == connection->greeting_count;
    if (!check_greeting(connection, connection->greetings[index], reply) || !last)
        return;
    if (connection->hello_is_refused)
        ask_server_info(connection);
    else
        end_greeting(connection);
}

static void greet(struct redis_connection *connection)
{
    const struct redis_wire_events events = {
        .owner = connection, .lost = on_lost, .message = on_message};
    struct error error;
    connection->phase = PHASE_GREETING;
    connection->target.host = connection->host;
    connection->refusal.text[0] = '\0';
    connection->hello_is_refused = false;
    set_step(connection, greeting_ms(connection));
    if (redis_wire_open(&connection->wire, connection->options.loop, &connection->target,
                        connection->options.link->location->trust, &events, &error) != STATUS_OK) {
        fail_connection(connection, STATUS_UNAVAILABLE, error.text);
        return;
    }
    struct buffer commands = {0};
    append_greetings(connection, &commands);
    (void)redis_wire_send(connection->wire, buffer_text(&commands), connection->greeting_count,
                          on_greeting, connection);
    explicit_bzero(commands.data, commands.size); /* a password */
    buffer_free(&commands);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void set_target(struct redis_connection *connection, const char *name, uint16_t port,
                       bool local)
{
    connection->target = (struct redis_target){.local = local, .port = port};
    (void)snprintf(connection->target.name, sizeof connection->target.name, "%s", name);
}

static void greet_next_address(struct redis_connection *connection)
{
    set_target(connection, connection->addresses.list[connection->addresses.next++],
               connection->port, false);
    greet(connection);
}

static void on_looked_up(void *owner, const struct redis_addresses *addresses, const char *problem)
{
    struct redis_connection *connection = owner;
    connection->lookup = NULL;
    connection->addresses = *addresses; /* of use for the next attempt, too */
    if (connection->phase != PHASE_RESOLVING)
        return;
    if (problem == NULL)
        greet_next_address(connection);
    else
        fail_connection(connection, STATUS_UNAVAILABLE, problem);
}

static void find_server(struct redis_connection *connection, const struct redis_host *host,
                        uint64_t epoch)
{
    if (strcmp(host->name, connection->host) != 0)
        redis_lookup_abandon(&connection->lookup);
    memcpy(connection->host, host->name, sizeof connection->host);
    connection->port = host->port;
    connection->epoch = epoch;
    connection->phase = PHASE_RESOLVING;
    forget_addresses(connection);
    set_step(connection, greeting_ms(connection));
    if (connection->lookup == NULL)
        connection->lookup = redis_lookup_start(connection->options.mailbox, connection->host,
                                                connection, on_looked_up);
}

/* ---- sentinels ------------------------------------------------------------------------------- */

/*
 * Nodes of a cluster may give a server different names, but masters have different epochs. The
 * outcome of a publication that is under way would be unknown, so a link that feeds leaves for the
 * second such answer only: before that, a master that was replaced answers MOVED, unless it is cut
 * off.
 */
static void on_master_found(void *owner, const struct redis_host *master, uint64_t epoch)
{
    struct redis_connection *connection = owner;
    bool cluster = atomic_load(&connection->cluster);
    bool moved = strcmp(master->name, connection->host) != 0 || master->port != connection->port;
    moved = moved && (!cluster || epoch != connection->epoch);
    bool leaves = !cluster || connection->options.link->track || connection->leaving;
    connection->leaving = moved && connection->phase == PHASE_UP;
    if (connection->phase == PHASE_ASKING)
        find_server(connection, master, epoch);
    else if (connection->phase == PHASE_UP && moved && leaves)
        fail_connection(connection, STATUS_UNAVAILABLE,
                        cluster ? "another node of the cluster has the keys now"
                                : "the sentinels have made another server the master");
}

static void on_no_master(void *owner, enum status status, const char *why)
{
    struct redis_connection *connection = owner;
    if (connection->phase == PHASE_ASKING)
        fail_connection(connection, status, why);
}

/* ---- attempts -------------------------------------------------------------------------------- */

static void begin_attempt(struct redis_connection *connection)
{
    const struct redis_location *location = connection->options.link->location;
    if (connection->options.aimed) /* rests until it is aimed again */
        return;
    if (connection->sentinel != NULL) {
        connection->phase = PHASE_ASKING;
        redis_sentinel_ask(connection->sentinel);
    } else if (location->way == REDIS_BY_UNIX) {
        set_target(connection, location->path, 0, true);
        greet(connection);
    } else {
        find_server(connection, &location->hosts[0], 0);
    }
}

static void on_step(uv_timer_t *timer)
{
    struct redis_connection *connection = timer->data;
    switch (connection->phase) {
    case PHASE_RESTING:
        if (connection->addresses.next < connection->addresses.count)
            greet_next_address(connection);
        else
            begin_attempt(connection);
        break;
    case PHASE_RESOLVING:
        fail_slow_lookup(connection);
        break;
    case PHASE_GREETING:
        fail_connection(connection, STATUS_TIMEOUT, "the server does not answer");
        break;
    case PHASE_ASKING: /* sentinel.c has its own timer */
    case PHASE_UP:
        break;
    }
}

void redis_connection_silent(struct redis_connection *connection)
{
    if (connection->phase == PHASE_UP && !connection->options.link->track)
        fail_connection(connection, STATUS_TIMEOUT, "the server does not answer");
}

void redis_connection_aim(struct redis_connection *connection, const struct redis_host *host)
{
    bool same = strcmp(host->name, connection->host) == 0 && host->port == connection->port;
    if (same && connection->phase != PHASE_RESTING)
        return;
    drop_wire(connection);
    if (connection->phase != PHASE_RESTING)
        connection->options.lost(connection->options.owner, STATUS_UNAVAILABLE, false);
    find_server(connection, host, 0);
}

bool redis_connection_is_cluster(const struct redis_connection *connection)
{
    return relaxed_load(&connection->cluster);
}

const char *redis_connection_host(const struct redis_connection *connection)
{
    return connection->host;
}

bool redis_connection_is_up(const struct redis_connection *connection)
{
    return connection->phase == PHASE_UP;
}

struct redis_expected *redis_connection_send(struct redis_connection *connection,
                                             struct text commands, unsigned replies,
                                             redis_answered *answered, void *context)
{
    CHECK(connection->phase == PHASE_UP);
    return redis_wire_send(connection->wire, commands, replies, answered, context);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct redis_connection *redis_connection_create(const struct redis_connection_options *options)
{
    struct redis_connection *made = memory_alloc_zeroed(1, sizeof *made);
    made->options = *options;
    atomic_init(&made->standing, (int)STATUS_PENDING);
    CHECK(uv_mutex_init(&made->lock) == 0);
    return made;
}

void redis_connection_start(struct redis_connection *connection)
{
    clock_make_timer(connection->options.loop, &connection->step, connection);
    clock_make_timer(connection->options.loop, &connection->beat, connection);
    clock_make_timer(connection->options.loop, &connection->ask, connection);
    const struct redis_location *location = connection->options.link->location;
    if (location->way == REDIS_BY_SENTINEL)
        ask_for_master(connection, false, 0);
    if (location->way != REDIS_BY_TCP || location->host_count == 1 ||
        join_cluster(connection) != NULL) /* then the first host will say why */
        begin_attempt(connection);
}

void redis_connection_stop(struct redis_connection *connection)
{
    connection->phase = PHASE_RESTING;
    redis_wire_destroy(&connection->wire);
    redis_sentinel_destroy(&connection->sentinel);
    redis_lookup_abandon(&connection->lookup);
    uv_close((uv_handle_t *)&connection->step, NULL);
    uv_close((uv_handle_t *)&connection->beat, NULL);
    uv_close((uv_handle_t *)&connection->ask, NULL);
}

void redis_connection_destroy(struct redis_connection **connection)
{
    struct redis_connection *mine = memory_take(connection);
    if (mine == NULL)
        return;
    uv_mutex_destroy(&mine->lock);
    memory_free(mine);
}
