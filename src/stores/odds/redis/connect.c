/*
 * How the link gets its connections, and how it knows that they still work. See odds_redis.h.
 *
 * An attempt: ask a sentinel who the master is (by Sentinel); find the server's addresses; greet it
 * on both connections, at one address after the other until it is any good. Both must turn out to
 * be the same server, a master, and no cluster. Then have it report changes from one to the other;
 * see the first heartbeats come back. Then the link is up.
 *
 * Heartbeats. RESP2 sends invalidations to another connection than the one that asked for them, and
 * neither hears of the other's end. So both are asked again and again: PING on the one where
 * invalidations come, whose answer comes after all invalidations of changes before it; on the other
 * whether tracking is still on and redirected to that very connection, whether the server is still
 * the master, and whether databases were swapped, which is no invalidation. What is known is
 * confirmed as long as the last answered questions on both were ASKED less than half of timeout_ms
 * ago: an answer tells of the time when it was asked for, at the latest. A server that leaves them
 * unanswered for timeout_ms is left. A link that does not track has no heartbeats: it leaves a
 * server that does not answer a call.
 *
 * Back-off. A connection that worked and was lost is made again at once, and those who ask
 * meanwhile are let wait for that one attempt. When it fails they are refused at once, and attempts
 * come at growing intervals, up to a second, with jitter; so they do when what works is lost again
 * and again.
 */
#include "stores/odds/redis/link.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/memory.h"

#define NS_PER_MS ((uint64_t)1000000)
#define GREETING_MS_MIN 1000 /* several round trips, over any distance */
#define GREETING_MS_MAX 3000
#define SENTINEL_MS_MIN 250
#define SENTINEL_MS_MAX 1000
#define SENTINEL_LATE_TICKS 3 /* seconds */
#define WINDOW_MS_MAX 500     /* what was known is confirmed for at most that long */
#define BEATS_A_WINDOW 5
#define REST_MS_MIN 25U
#define REST_MS_MAX 1000U
#define STEADY_NS ((uint64_t)1000 * NS_PER_MS) /* up for so long: what was before is forgotten */

static void begin_attempt(struct redis_link *link);
static void ask_sentinel(struct redis_link *link);
static void seek_sentinel(struct redis_link *link);
static void open_sentinel(struct redis_link *link);
static void on_step(uv_timer_t *timer);

static const char *shown(const struct redis_link *link)
{
    return link->options.place->shown.data;
}

static uint32_t between(uint32_t value, uint32_t least, uint32_t most)
{
    return value < least ? least : value > most ? most : value;
}

static uint32_t window_ms(const struct redis_link *link)
{
    return between(link->options.timeout_ms / 2, 1, WINDOW_MS_MAX);
}

/* A number below `limit` that differs from instance to instance. */
static uint32_t jitter(struct redis_link *link, uint32_t limit)
{
    link->random = link->random * 6364136223846793005U + 1442695040888963407U;
    return limit == 0 ? 0 : (uint32_t)(link->random >> 33) % limit;
}

/* ---- letting go ------------------------------------------------------------------------------ */

static void stop_timer(uv_timer_t *timer)
{
    CHECK(uv_timer_stop(timer) == 0);
}

static void forget_addresses(struct redis_link *link)
{
    link->addresses.count = 0;
    link->addresses.next = 0;
    link->told_status = STATUS_OK;
}

/* How long to rest before the next attempt. */
static uint32_t rest_ms(struct redis_link *link)
{
    unsigned doublings = link->failures < 6 ? link->failures : 6;
    uint32_t most_ms = between(REST_MS_MIN << doublings, REST_MS_MIN, REST_MS_MAX);
    return most_ms / 2 + jitter(link, most_ms / 2 + 1);
}

static void complain(struct redis_link *link, const struct error *problem, bool was_up)
{
    bool news = !link->complained || strcmp(problem->text, link->problem.text) != 0;
    link_conclude(link, problem, !redis_lookups_under_way(link->lookups));
    link->complained = true;
    if (was_up)
        log_event(link->options.log, LOG_WARNING,
                  "connection to the odds store is lost; connecting again",
                  LOG_STRING("reason", problem->text));
    else if (news)
        log_event(link->options.log, LOG_ERROR,
                  "odds store cannot be used; trying again until it can",
                  LOG_STRING("reason", problem->text));
}

static void drop_connections(struct redis_link *link)
{
    atomic_store(&link->confirmed_until_ns, 0);
    redis_wire_destroy(&link->data);
    redis_wire_destroy(&link->news);
    stop_timer(&link->beat);
}

/* Whether a name has led to an address of no use, and has others, one of which is tried at once. */
static bool turn_to_next_address(struct redis_link *link, enum status status, const char *why)
{
    if (link->phase != LINK_GREETING || link->addresses.next >= link->addresses.count)
        return false;
    if (link->answered) {
        link->told_status = status;
        (void)error_set(&link->told, status, "%s", why);
    }
    drop_connections(link);
    link->phase = LINK_RESTING;
    link_start_timer(&link->step, on_step, 0);
    return true;
}

/* What a server has said tells more than that at another address there is none. */
static void choose_reason(struct redis_link *link, enum status *status, const char **why)
{
    if (link->phase != LINK_GREETING || link->answered || link->told_status == STATUS_OK)
        return;
    *status = link->told_status;
    *why = link->told.text;
}

/* Whatever there is of connections and attempts ends; the next attempt follows. */
static void let_go(struct redis_link *link, enum status status, const char *why)
{
    if (turn_to_next_address(link, status, why))
        return;
    choose_reason(link, &status, &why);
    bool was_up = link->phase == LINK_UP;
    uint64_t now_ns = clock_monotonic_ns();
    if (was_up && now_ns - link->up_since_ns >= STEADY_NS)
        link->failures = 0;
    bool hope = was_up && status != STATUS_TIMEOUT;
    uint32_t delay_ms = link->failures == 0 && hope ? 0 : rest_ms(link);
    link->failures++;
    struct error problem;
    (void)error_set(&problem, status, "the odds store at %s: %s", shown(link), why);
    drop_connections(link);
    if (link->phase == LINK_ASKING)
        redis_wire_destroy(&link->sentinel);
    link->sentinel_sought = false;
    forget_addresses(link);
    if (hope)
        link_set_standing(link, STANDING_TRYING);
    else
        link_set_standing(link, status == STATUS_TIMEOUT ? STANDING_SILENT : STANDING_DOWN);
    complain(link, &problem, was_up);
    link->phase = LINK_RESTING;
    link_start_timer(&link->step, on_step, delay_ms);
    link_calls_lost(link, status, hope);
}

/* The address is not found in time. Nobody is let wait any longer; but what looks it up goes on,
 * and so does the attempt when it is done. */
static void lose_patience(struct redis_link *link)
{
    struct error problem;
    (void)error_set(&problem, STATUS_TIMEOUT,
                    "the odds store at %s: the address of %s is not found in time", shown(link),
                    link->host);
    link_set_standing(link, STANDING_SILENT);
    complain(link, &problem, false);
    link_calls_lost(link, STATUS_TIMEOUT, false);
}

static void on_lost(void *owner, struct redis_wire *wire, enum status status, const char *why)
{
    struct redis_link *link = owner;
    CHECK(wire == link->data || wire == link->news);
    struct error kept;
    (void)error_set(&kept, status, "%s", why); /* `why` may be the wire's */
    let_go(link, status, kept.text);
}

/* What an error reply says of an attempt, or of a connection that worked. */
static void refuse(struct redis_link *link, const redisReply *reply, const char *what)
{
    struct error error;
    enum status status = redis_error_of_reply(reply, what, &error);
    let_go(link, status == STATUS_TIMEOUT ? status : STATUS_UNAVAILABLE, error.text);
}

/* ---- heartbeats ------------------------------------------------------------------------------ */

static void begin_beat(struct heartbeat *beat)
{
    beat->out = true;
    beat->late_turn = 0;
    beat->sent_ns = clock_monotonic_ns();
}

static void come_up(struct redis_link *link)
{
    link->phase = LINK_UP;
    link->up_since_ns = clock_monotonic_ns();
    stop_timer(&link->step);
    (void)atomic_fetch_add(&link->connected_times, 1);
    link_set_standing(link, STANDING_UP);
    link_conclude(link, NULL, true);
    link->complained = false;
    if (link->options.track)
        log_event(link->options.log, LOG_INFO, "connected to the odds store",
                  LOG_STRING("store", shown(link)), LOG_STRING("server", link->target.name),
                  LOG_INTEGER("port", link->target.port));
    link_pump(link);
}

static void confirm(struct redis_link *link)
{
    uint64_t seen_ns = link->data_beat.seen_ns < link->news_beat.seen_ns ? link->data_beat.seen_ns
                                                                         : link->news_beat.seen_ns;
    if (seen_ns == 0)
        return;
    atomic_store(&link->confirmed_until_ns, seen_ns + window_ms(link) * NS_PER_MS);
    if (link->phase != LINK_UP)
        come_up(link);
}

static void end_beat(struct heartbeat *beat)
{
    beat->out = false;
    beat->seen_ns = beat->sent_ns;
}

/* The word of a flat list of names and values that stands after `name`, or NULL. */
static const redisReply *value_of(const redisReply *reply, const char *name)
{
    for (size_t i = 0; i + 1 < reply->elements; i += 2)
        if (reply->element[i]->type == REDIS_REPLY_STRING &&
            strcmp(reply->element[i]->str, name) == 0)
            return reply->element[i + 1];
    return NULL;
}

static bool has_word(const redisReply *list, const char *word)
{
    for (size_t i = 0; list != NULL && list->type == REDIS_REPLY_ARRAY && i < list->elements; i++)
        if (list->element[i]->type == REDIS_REPLY_STRING &&
            strcmp(list->element[i]->str, word) == 0)
            return true;
    return false;
}

static bool still_tracks(const struct redis_link *link, const redisReply *reply)
{
    if (reply->type != REDIS_REPLY_ARRAY)
        return false;
    const redisReply *flags = value_of(reply, "flags");
    const redisReply *redirect = value_of(reply, "redirect");
    return has_word(flags, "on") && has_word(flags, "bcast") &&
           !has_word(flags, "broken_redirect") && redirect != NULL &&
           redirect->type == REDIS_REPLY_INTEGER && redirect->integer == link->news_id;
}

static bool is_master(const redisReply *reply)
{
    return reply->type == REDIS_REPLY_ARRAY && reply->elements > 0 &&
           reply->element[0]->type == REDIS_REPLY_STRING &&
           strcmp(reply->element[0]->str, "master") == 0;
}

/* What follows `name` in the text of INFO, or NULL. */
static const char *info_value(const redisReply *reply, const char *name)
{
    const char *at = reply->type == REDIS_REPLY_STRING ? strstr(reply->str, name) : NULL;
    return at == NULL ? NULL : at + strlen(name);
}

/* How often the server has carried out the command of that line of INFO; 0: never, or it does not
 * say. */
static uint64_t calls_of(const redisReply *reply, const char *line)
{
    const char *calls = info_value(reply, line);
    return calls == NULL ? 0 : strtoull(calls, NULL, 10);
}

static void all_changed(struct redis_link *link)
{
    link->options.changed(link->options.owner, NULL, 0);
    (void)atomic_fetch_add(&link->invalidations, 1);
}

/*
 * SWAPDB changes every value, and is not reported to those who track. So the server's own count of
 * it is watched. Its counts can be set back (CONFIG RESETSTAT), which might hide one: ROLE, which
 * was asked just before, is counted as well, and a count that has not grown was set back. False: it
 * was let go.
 */
static bool heed_counts(struct redis_link *link, const redisReply *reply)
{
    uint64_t swaps = calls_of(reply, "cmdstat_swapdb:calls=");
    uint64_t roles = calls_of(reply, "cmdstat_role:calls=");
    bool swapped = swaps != link->counted_swaps;
    if (roles == 0) {
        let_go(link, STATUS_UNAVAILABLE,
               "INFO commandstats counts no commands, so a SWAPDB would not be noticed");
        return false;
    }
    if (link->counted_roles != 0 && (swapped || roles <= link->counted_roles)) {
        all_changed(link);
        if (swapped)
            log_event(
                link->options.log, LOG_WARNING,
                "databases of the odds store's server were swapped; all values are read again");
    }
    link->counted_swaps = swaps;
    link->counted_roles = roles;
    return true;
}

static void on_data_beat(void *context, unsigned index, const redisReply *reply)
{
    struct redis_link *link = context;
    if (reply->type == REDIS_REPLY_ERROR) {
        static const char *const names[] = {"CLIENT TRACKINGINFO", "ROLE", "INFO"};
        refuse(link, reply, names[index]);
    } else if (index == 0) {
        if (!still_tracks(link, reply))
            let_go(link, STATUS_UNAVAILABLE, "the server has ceased to report changes");
    } else if (index == 1) {
        if (!is_master(reply))
            let_go(link, STATUS_UNAVAILABLE, "the server is a replica now");
    } else if (heed_counts(link, reply)) {
        end_beat(&link->data_beat);
        confirm(link);
    }
}

static void on_news_beat(void *context, unsigned index, const redisReply *reply)
{
    struct redis_link *link = context;
    (void)index;
    if (reply->type == REDIS_REPLY_ERROR) {
        refuse(link, reply, "PING");
        return;
    }
    uint64_t took_ns = clock_monotonic_ns() - link->news_beat.sent_ns;
    uint64_t before_ns = atomic_load(&link->round_trip_ns);
    atomic_store(&link->round_trip_ns, before_ns == 0 ? took_ns : (before_ns * 7 + took_ns) / 8);
    end_beat(&link->news_beat);
    confirm(link);
}

/* Has it been without an answer for too long? Only if there is none in what came while this thread
 * could not run, which is read first. */
static bool is_silent(const struct redis_link *link, struct heartbeat *beat)
{
    if (!beat->out || clock_monotonic_ns() - beat->sent_ns < link->options.timeout_ms * NS_PER_MS)
        return false;
    if (beat->late_turn == 0)
        beat->late_turn = link->turns;
    return beat->late_turn != link->turns;
}

static void ask_beats(struct redis_link *link)
{
    struct buffer commands = {0};
    if (!link->data_beat.out) {
        redis_command(&commands, "CLIENT", "TRACKINGINFO", NULL);
        redis_command(&commands, "ROLE", NULL);
        redis_command(&commands, "INFO", "commandstats", NULL);
        begin_beat(&link->data_beat);
        redis_wire_send(link->data, buffer_text(&commands), 3, on_data_beat, link);
        buffer_clear(&commands);
    }
    if (!link->news_beat.out) {
        redis_command(&commands, "PING", NULL);
        begin_beat(&link->news_beat);
        redis_wire_send(link->news, buffer_text(&commands), 1, on_news_beat, link);
    }
    buffer_free(&commands);
}

static void on_beat(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;
    bool silent = is_silent(link, &link->data_beat);
    if (is_silent(link, &link->news_beat) || silent)
        let_go(link, STATUS_TIMEOUT, "the server does not answer");
    else
        ask_beats(link);
}

static void start_beats(struct redis_link *link)
{
    uint64_t every_ms = between(window_ms(link) / BEATS_A_WINDOW, 1, WINDOW_MS_MAX);
    link->data_beat = (struct heartbeat){0};
    link->news_beat = (struct heartbeat){0};
    link->counted_roles = 0;
    ask_beats(link);
    clock_refresh_loop(&link->loop);
    CHECK(uv_timer_start(&link->beat, on_beat, every_ms, every_ms) == 0);
}

/* ---- invalidations --------------------------------------------------------------------------- */

static void on_message(void *owner, const redisReply *message)
{
    struct redis_link *link = owner;
    if (message->elements != 3 || message->element[1]->type != REDIS_REPLY_STRING ||
        strcmp(message->element[1]->str, "__redis__:invalidate") != 0)
        return;
    const redisReply *keys = message->element[2];
    uint64_t count = 0;
    if (keys->type == REDIS_REPLY_ARRAY) {
        count = keys->elements;
        for (size_t i = 0; i < keys->elements; i++)
            if (keys->element[i]->type == REDIS_REPLY_STRING)
                link->options.changed(link->options.owner, keys->element[i]->str,
                                      keys->element[i]->len);
    } else {
        all_changed(link);
        return;
    }
    (void)atomic_fetch_add(&link->invalidations, count);
}

/* ---- greeting -------------------------------------------------------------------------------- */

/* Commands of the two greetings, in the order they are sent. */
enum greeting {
    GREET_AUTH,
    GREET_SELECT,
    GREET_NAME,
    GREET_ID,
    GREET_PING,
    GREET_ROLE,
    GREET_INFO,
    GREET_SUBSCRIBE
};
#define GREETINGS 8

static bool belongs(const struct redis_link *link, enum greeting greeting, bool news)
{
    switch (greeting) {
    case GREET_AUTH:
        return link->options.place->password != NULL;
    case GREET_SELECT:
        return !news && link->options.place->database != 0;
    case GREET_ID:
    case GREET_SUBSCRIBE:
        return news;
    case GREET_PING:
    case GREET_ROLE:
        return !news;
    case GREET_NAME:
    case GREET_INFO:
        break;
    }
    return true;
}

static void append_auth(const struct redis_link *link, struct buffer *commands)
{
    const struct redis_place *place = link->options.place;
    if (place->user != NULL)
        redis_command(commands, "AUTH", place->user, place->password, NULL);
    else
        redis_command(commands, "AUTH", place->password, NULL);
}

static void append_greeting(const struct redis_link *link, enum greeting greeting,
                            struct buffer *commands)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%u", link->options.place->database);
    switch (greeting) {
    case GREET_AUTH:
        append_auth(link, commands);
        break;
    case GREET_SELECT:
        redis_command(commands, "SELECT", number, NULL);
        break;
    case GREET_NAME:
        redis_command(commands, "CLIENT", "SETNAME", "croupier", NULL);
        break;
    case GREET_ID:
        redis_command(commands, "CLIENT", "ID", NULL);
        break;
    case GREET_PING:
        redis_command(commands, "PING", NULL);
        break;
    case GREET_ROLE:
        redis_command(commands, "ROLE", NULL);
        break;
    case GREET_INFO:
        redis_command(commands, "INFO", "server", NULL);
        break;
    case GREET_SUBSCRIBE:
        redis_command(commands, "SUBSCRIBE", "__redis__:invalidate", NULL);
        break;
    }
}

static const char *greeting_name(enum greeting greeting)
{
    static const char *const names[GREETINGS] = {"AUTH", "SELECT", "CLIENT SETNAME", "CLIENT ID",
                                                 "PING", "ROLE",   "INFO",           "SUBSCRIBE"};
    return names[greeting];
}

/* False: it cannot be used, and has been let go. */
static bool read_info(struct redis_link *link, const redisReply *reply, char run[41])
{
    const char *version = info_value(reply, "redis_version:");
    const char *mode = info_value(reply, "redis_mode:");
    const char *id = info_value(reply, "run_id:");
    if (version == NULL || id == NULL || strcspn(id, "\r\n") != 40) {
        let_go(link, STATUS_UNAVAILABLE, "what answers is neither Redis nor Valkey");
        return false;
    }
    char *end = NULL;
    unsigned long major = strtoul(version, &end, 10);
    if (major < 6 || (major == 6 && strncmp(end, ".0", 2) == 0)) {
        let_go(link, STATUS_UNAVAILABLE, "the server is older than Redis 6.2");
        return false;
    }
    if (mode != NULL && strncmp(mode, "cluster", 7) == 0) {
        let_go(link, STATUS_UNAVAILABLE,
               "the server is a node of a Redis Cluster, which is not supported");
        return false;
    }
    memcpy(run, id, 40);
    run[40] = '\0';
    return true;
}

static void on_tracking(void *context, unsigned index, const redisReply *reply)
{
    struct redis_link *link = context;
    (void)index;
    if (reply->type == REDIS_REPLY_ERROR) {
        refuse(link, reply, "CLIENT TRACKING");
        return;
    }
    link->options.begun(link->options.owner); /* all that changes from here on is heard of */
    start_beats(link);
}

static void track(struct redis_link *link)
{
    char id[24];
    struct buffer commands = {0};
    struct buffer catalog = {0};
    struct buffer odds = {0};
    (void)snprintf(id, sizeof id, "%lld", link->news_id);
    buffer_append_format(&catalog, "%scatalog:", link->options.prefix);
    buffer_append_format(&odds, "%sodds:", link->options.prefix);
    redis_command(&commands, "CLIENT", "TRACKING", "ON", "REDIRECT", id, "BCAST", "PREFIX",
                  buffer_string(&catalog), "PREFIX", buffer_string(&odds), NULL);
    redis_wire_send(link->data, buffer_text(&commands), 1, on_tracking, link);
    buffer_free(&commands);
    buffer_free(&catalog);
    buffer_free(&odds);
}

static void greeted(struct redis_link *link)
{
    if (!link->data_ready || (link->options.track && !link->news_ready))
        return;
    if (!link->options.track) {
        come_up(link);
    } else if (strcmp(link->data_run, link->news_run) != 0) {
        let_go(link, STATUS_UNAVAILABLE, "two connections lead to two servers");
    } else {
        track(link);
    }
}

/* Which greeting the reply number `step` is to. */
static enum greeting greeting_at(const struct redis_link *link, unsigned step, bool news)
{
    for (unsigned greeting = 0, at = 0; greeting < GREETINGS; greeting++)
        if (belongs(link, (enum greeting)greeting, news) && at++ == step)
            return (enum greeting)greeting;
    CHECK(false);
    return GREET_AUTH;
}

/* A server that knows or permits no names will do: they are for people who list its clients. Any
 * other error is one of the connection, as that the server has its maximum of clients. */
static bool is_without_names(const redisReply *reply)
{
    static const char *const texts[] = {"ERR unknown command", "ERR unknown subcommand", "NOPERM "};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strncasecmp(reply->str, texts[i], strlen(texts[i])) == 0)
            return true;
    return false;
}

/* False: it was let go. */
static bool heed(struct redis_link *link, enum greeting greeting, const redisReply *reply,
                 bool news)
{
    if (reply->type == REDIS_REPLY_ERROR && greeting == GREET_NAME && is_without_names(reply))
        return true;
    if (reply->type == REDIS_REPLY_ERROR) {
        refuse(link, reply, greeting_name(greeting));
        return false;
    }
    if (greeting == GREET_ROLE && !is_master(reply)) {
        let_go(link, STATUS_UNAVAILABLE, "the server is a replica, whose data may lag behind");
        return false;
    }
    if (greeting == GREET_INFO)
        return read_info(link, reply, news ? link->news_run : link->data_run);
    if (greeting == GREET_ID)
        link->news_id = reply->type == REDIS_REPLY_INTEGER ? reply->integer : -1;
    return true;
}

static void on_data_greeting(void *context, unsigned index, const redisReply *reply)
{
    struct redis_link *link = context;
    enum greeting greeting = greeting_at(link, index, false);
    link->answered = true;
    if (!heed(link, greeting, reply, false) || greeting != GREET_INFO)
        return;
    link->data_ready = true;
    greeted(link);
}

static void on_news_greeting(void *context, unsigned index, const redisReply *reply)
{
    struct redis_link *link = context;
    enum greeting greeting = greeting_at(link, index, true);
    link->answered = true;
    if (!heed(link, greeting, reply, true) || greeting != GREET_SUBSCRIBE)
        return;
    link->news_ready = true;
    greeted(link);
}

static bool open_one(struct redis_link *link, struct redis_wire **wire, bool news)
{
    const struct redis_wire_events events = {.owner = link, .lost = on_lost, .message = on_message};
    struct error error;
    if (redis_wire_open(wire, &link->loop, &link->target, link->tls, &events, &error) !=
        STATUS_OK) {
        let_go(link, STATUS_UNAVAILABLE, error.text);
        return false;
    }
    struct buffer commands = {0};
    unsigned replies = 0;
    for (unsigned greeting = 0; greeting < GREETINGS; greeting++) {
        if (!belongs(link, (enum greeting)greeting, news))
            continue;
        append_greeting(link, (enum greeting)greeting, &commands);
        replies++;
    }
    redis_wire_send(*wire, buffer_text(&commands), replies,
                    news ? on_news_greeting : on_data_greeting, link);
    explicit_bzero(commands.data, commands.size); /* a password */
    buffer_free(&commands);
    return true;
}

static void greet(struct redis_link *link)
{
    link->phase = LINK_GREETING;
    link->answered = false;
    link->data_ready = false;
    link->news_ready = false;
    link->target.host = link->host;
    link_start_timer(&link->step, on_step,
                     between(link->options.timeout_ms, GREETING_MS_MIN, GREETING_MS_MAX));
    if (open_one(link, &link->data, false) && link->options.track)
        (void)open_one(link, &link->news, true);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void set_target(struct redis_link *link, const char *name, uint16_t port, bool local)
{
    link->target = (struct redis_target){.local = local, .port = port};
    (void)snprintf(link->target.name, sizeof link->target.name, "%s", name);
}

static void greet_next_address(struct redis_link *link)
{
    set_target(link, link->addresses.list[link->addresses.next++], link->port, false);
    greet(link);
}

static void seek_server(struct redis_link *link)
{
    struct error error;
    enum status status = redis_lookups_find(link->lookups, link->host, &link->addresses, &error);
    if (status == STATUS_OK)
        greet_next_address(link);
    else if (status != STATUS_PENDING)
        let_go(link, status, error.text);
}

static void find_server(struct redis_link *link, const struct redis_host *host)
{
    memcpy(link->host, host->name, sizeof link->host);
    link->port = host->port;
    link->phase = LINK_RESOLVING;
    forget_addresses(link);
    link_start_timer(&link->step, on_step,
                     between(link->options.timeout_ms, GREETING_MS_MIN, GREETING_MS_MAX));
    seek_server(link);
}

static void on_looked_up(void *owner, const char *name)
{
    struct redis_link *link = owner;
    if (link->phase == LINK_RESOLVING && strcmp(name, link->host) == 0)
        seek_server(link);
    else if (link->sentinel_sought &&
             strcmp(name, link->options.place->hosts[link->sentinel_at].name) == 0)
        seek_sentinel(link);
}

/* ---- sentinels ------------------------------------------------------------------------------- */

static void next_sentinel(struct redis_link *link, enum status status, const char *why)
{
    const struct redis_place *place = link->options.place;
    redis_wire_destroy(&link->sentinel);
    link->sentinel_watches = false;
    link->sentinel_secret = false; /* one that has no password refuses it */
    link->sentinel_refused = false;
    link->sentinel_sought = false;
    bool needed = link->phase == LINK_ASKING || link->phase == LINK_UP;
    if (needed && link->sentinel_addresses.next < link->sentinel_addresses.count) {
        open_sentinel(link);
        return;
    }
    struct error error;
    (void)error_set(&error, status, "the sentinel at %s:%u: %s",
                    place->hosts[link->sentinel_at].name, place->hosts[link->sentinel_at].port,
                    why);
    link->sentinel_at = (link->sentinel_at + 1) % place->host_count;
    if (link->phase != LINK_ASKING)
        return; /* the next second asks again */
    if (++link->sentinels_asked < place->host_count)
        ask_sentinel(link);
    else
        let_go(link, status, error.text);
}

static void on_sentinel_lost(void *owner, struct redis_wire *wire, enum status status,
                             const char *why)
{
    struct redis_link *link = owner;
    struct error kept;
    (void)wire;
    (void)error_set(&kept, status, "%s", why);
    next_sentinel(link, status, kept.text);
}

static void leave_master(struct redis_link *link)
{
    forget_addresses(link); /* its others are no better */
    let_go(link, STATUS_UNAVAILABLE, "the sentinels have made another server the master");
}

/* "SERVICE OLD-HOST OLD-PORT NEW-HOST NEW-PORT" */
static void on_sentinel_message(void *owner, const redisReply *message)
{
    struct redis_link *link = owner;
    if (message->elements != 3 || message->element[2]->type != REDIS_REPLY_STRING)
        return;
    struct text rest_of_it = {message->element[2]->str, message->element[2]->len};
    if (!text_equals(text_cut(&rest_of_it, ' '), text_of(link->options.place->service)))
        return;
    if (link->phase == LINK_RESTING) {
        forget_addresses(link);
        link_start_timer(&link->step, on_step, 0);
    } else if (link->phase != LINK_ASKING) {
        leave_master(link);
    }
}

static void on_watching(void *context, unsigned index, const redisReply *reply)
{
    struct redis_link *link = context;
    const struct redis_host *host = &link->options.place->hosts[link->sentinel_at];
    (void)index;
    link->sentinel_watches = reply->type != REDIS_REPLY_ERROR;
    link->sentinel_beat = (struct heartbeat){0};
    bool told = link->sentinel_refused;
    link->sentinel_refused = !link->sentinel_watches;
    if (told || link->sentinel_watches)
        return;
    log_event(link->options.log, LOG_WARNING,
              "a sentinel refuses to report failovers; asking it for the master every second",
              LOG_STRING("sentinel", host->name), LOG_INTEGER("port", host->port));
}

static bool read_master(const redisReply *reply, struct redis_host *host)
{
    uint64_t port = 0;
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_STRING || reply->element[0]->len == 0 ||
        reply->element[0]->len >= REDIS_HOST_SIZE ||
        strlen(reply->element[0]->str) != reply->element[0]->len ||
        text_to_u64(text_of(reply->element[1]->str), UINT16_MAX, &port) != STATUS_OK || port == 0)
        return false;
    memset(host, 0, sizeof *host);
    memcpy(host->name, reply->element[0]->str, reply->element[0]->len);
    host->port = (uint16_t)port;
    return true;
}

static void send_question(struct redis_link *link);

static void on_master(void *context, unsigned index, const redisReply *reply)
{
    struct redis_link *link = context;
    if (index == 0 && link->sentinel_secret) {
        if (reply->type == REDIS_REPLY_ERROR) {
            struct error error;
            enum status status = redis_error_of_reply(reply, "AUTH", &error);
            next_sentinel(link, status, error.text);
        }
        return;
    }
    struct redis_host master;
    if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "NOAUTH", 6) == 0 &&
        !link->sentinel_secret && link->options.place->password != NULL) {
        link->sentinel_secret = true; /* the same as for the servers */
        send_question(link);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        struct error error;
        enum status status = redis_error_of_reply(reply, "SENTINEL", &error);
        next_sentinel(link, status, error.text);
    } else if (!read_master(reply, &master)) {
        next_sentinel(link, STATUS_UNAVAILABLE, "it knows no master of that service");
    } else {
        struct buffer commands = {0};
        redis_command(&commands, "SUBSCRIBE", "+switch-master", NULL);
        redis_wire_send(link->sentinel, buffer_text(&commands), 1, on_watching, link);
        buffer_free(&commands);
        if (link->phase == LINK_ASKING)
            find_server(link, &master);
        else if (strcmp(master.name, link->host) != 0 || master.port != link->port)
            leave_master(link);
    }
}

static void send_question(struct redis_link *link)
{
    struct buffer commands = {0};
    if (link->sentinel_secret)
        append_auth(link, &commands);
    redis_command(&commands, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", link->options.place->service,
                  NULL);
    redis_wire_send(link->sentinel, buffer_text(&commands), link->sentinel_secret ? 2 : 1,
                    on_master, link);
    explicit_bzero(commands.data, commands.size);
    buffer_free(&commands);
}

/* What is awaited of it now is late after a moment, in an attempt: others may be quicker. */
static void expect_sentinel(struct redis_link *link)
{
    link->sentinel_beat = (struct heartbeat){.out = true}; /* it owes an answer */
    if (link->phase == LINK_ASKING)
        link_start_timer(&link->step, on_step,
                         between(link->options.timeout_ms, SENTINEL_MS_MIN, SENTINEL_MS_MAX));
}

static void open_sentinel(struct redis_link *link)
{
    const struct redis_wire_events events = {
        .owner = link, .lost = on_sentinel_lost, .message = on_sentinel_message};
    struct redis_addresses *addresses = &link->sentinel_addresses;
    struct redis_target target = {.port = link->options.place->hosts[link->sentinel_at].port};
    struct error error;
    (void)snprintf(target.name, sizeof target.name, "%s", addresses->list[addresses->next++]);
    expect_sentinel(link);
    if (redis_wire_open(&link->sentinel, &link->loop, &target, NULL, &events, &error) != STATUS_OK)
        next_sentinel(link, STATUS_UNAVAILABLE, error.text);
    else
        send_question(link);
}

static void seek_sentinel(struct redis_link *link)
{
    const struct redis_host *host = &link->options.place->hosts[link->sentinel_at];
    struct error error;
    enum status status =
        redis_lookups_find(link->lookups, host->name, &link->sentinel_addresses, &error);
    link->sentinel_sought = status == STATUS_PENDING;
    if (status == STATUS_OK)
        open_sentinel(link);
    else if (status != STATUS_PENDING)
        next_sentinel(link, status, error.text);
}

/* In an attempt, or to have one that watches again while all is well. */
static void ask_sentinel(struct redis_link *link)
{
    redis_wire_destroy(&link->sentinel);
    link->sentinel_watches = false;
    link->sentinel_addresses.count = 0;
    link->sentinel_addresses.next = 0;
    expect_sentinel(link);
    seek_sentinel(link);
}

static void on_sentinel_beat(void *context, unsigned index, const redisReply *reply)
{
    struct redis_link *link = context;
    (void)index;
    (void)reply;
    link->sentinel_beat = (struct heartbeat){0};
}

void link_connect_second(struct redis_link *link)
{
    if (link->options.place->way != REDIS_BY_SENTINEL || link->phase != LINK_UP)
        return;
    if (link->sentinel == NULL && !link->sentinel_sought) {
        ask_sentinel(link);
    } else if (link->sentinel_beat.out) {
        if (++link->sentinel_beat.late_ticks >= SENTINEL_LATE_TICKS)
            next_sentinel(link, STATUS_TIMEOUT, "it does not answer");
    } else if (link->sentinel_watches) {
        struct buffer commands = {0};
        redis_command(&commands, "PING", NULL);
        link->sentinel_beat = (struct heartbeat){.out = true};
        redis_wire_send(link->sentinel, buffer_text(&commands), 1, on_sentinel_beat, link);
        buffer_free(&commands);
    } else if (link->sentinel != NULL) {
        link->sentinel_beat = (struct heartbeat){.out = true};
        send_question(link); /* it may name another master, or report failovers by now */
    }
}

/* ---- attempts -------------------------------------------------------------------------------- */

static void begin_attempt(struct redis_link *link)
{
    const struct redis_place *place = link->options.place;
    switch (place->way) {
    case REDIS_BY_UNIX:
        set_target(link, place->path, 0, true);
        greet(link);
        break;
    case REDIS_BY_TCP:
        find_server(link, &place->hosts[0]);
        break;
    case REDIS_BY_SENTINEL:
        link->phase = LINK_ASKING;
        link->sentinels_asked = 0;
        ask_sentinel(link);
        break;
    }
}

static void on_step(uv_timer_t *timer)
{
    struct redis_link *link = timer->data;
    switch (link->phase) {
    case LINK_RESTING:
        if (link->addresses.next < link->addresses.count)
            greet_next_address(link);
        else
            begin_attempt(link);
        break;
    case LINK_ASKING:
        next_sentinel(link, STATUS_TIMEOUT,
                      link->sentinel_sought ? "its address is not found in time"
                                            : "it does not answer");
        break;
    case LINK_RESOLVING:
        lose_patience(link);
        break;
    case LINK_GREETING:
        let_go(link, STATUS_TIMEOUT, "the server does not answer");
        break;
    case LINK_UP:
        break;
    }
}

void link_connect_start(struct redis_link *link)
{
    CHECK(getrandom(&link->random, sizeof link->random, 0) == (ssize_t)sizeof link->random);
    CHECK(uv_timer_init(&link->loop, &link->step) == 0);
    CHECK(uv_timer_init(&link->loop, &link->beat) == 0);
    link->step.data = link;
    link->beat.data = link;
    link->lookups = redis_lookups_create(link->mailbox, link, on_looked_up);
    begin_attempt(link);
}

void link_connect_silent(struct redis_link *link)
{
    if (link->phase == LINK_UP)
        let_go(link, STATUS_TIMEOUT, "the server does not answer");
}

void link_connect_stop(struct redis_link *link)
{
    redis_wire_destroy(&link->data);
    redis_wire_destroy(&link->news);
    redis_wire_destroy(&link->sentinel);
    redis_lookups_destroy(&link->lookups);
    uv_close((uv_handle_t *)&link->step, NULL);
    uv_close((uv_handle_t *)&link->beat, NULL);
}
