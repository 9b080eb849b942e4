/*
 * The odds store on a Redis or Valkey server: `redis://`, `rediss://`, `unix:`,
 * `redis+sentinel://`, `rediss+sentinel://`. This file is the engine. Each of its parts uses those
 * below it, and calls back to those above:
 *
 *   engine      reads, versions, interest
 *   feed        publications and lists
 *   lease       rate limits that several servers share
 *   rights      what the server's user may do
 *   versions    the versions of stored values
 *   link        the I/O thread: commands of any thread, with deadlines
 *   connection  makes the connection and knows whether it works
 *   sentinel    which server is the master
 *   cluster     what the nodes of a cluster say
 *   lookup      the addresses of a name
 *   wire        one connection on a libuv loop: bytes out, replies in
 *   command     commands as bytes, the meaning of error replies
 *   reply       the protocol
 *   location    the URI
 *
 * Keys, with the configured prefix before each: `catalog:SPORT`, `odds:SPORT:EVENT`,
 * `interest:SPORT`, `rate:CLIENT` (lease.c).
 *
 * A store has one link, which tracks changes; where the server refuses that, no value is current,
 * each request reads its values, and their digests tell which are still the same. The link of a
 * store that feeds is a plain connection, to which Redis reports no changes, so such a store asks
 * for each value.
 *
 * Freshness. A version may be given out of memory while the link confirms that reports of changes
 * arrive (connection.c), and none has named the value. A value that was read is handed on
 * only when its call is settled (link.h): by then all other values that changed before it, in the
 * same transaction too, are known to have changed. Odds are read together with a part of the
 * catalog, so that an answer consists of what was stored together: both keys are watched (WATCH)
 * until an empty transaction shows that neither has changed in between. Reads inside of a
 * transaction would need less, but a server that has reached its maxmemory refuses to queue them. A
 * value that expires is forgotten a moment before it does, since the server may report it late. In
 * a cluster, a value that is not stored is asked for at each request (link.h).
 *
 * Threads. A `reading` belongs to the link's I/O thread.
 */
#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/redis/command.h"
#include "stores/odds/redis/store.h"
#include "stores/odds/redis/wire.h"

#define NS_PER_MS ((uint64_t)1000000)
#define REFUSED_NS (10000 * NS_PER_MS) /* until a value that is too large is asked for again */
#define ASK_MS 100                     /* unless the options say otherwise */

/* ---- reading, on the I/O thread -------------------------------------------------------------- */

/* The commands of a reading, in their order. A reading without a part of the catalog has
 * READING_VALUE and READING_EXPIRY alone. */
enum reading_step {
    READING_WATCH, /* both keys */
    READING_PART,  /* of the catalog */
    READING_VALUE,
    READING_EXPIRY,
    READING_MULTI,
    READING_EXEC,
};
static const char *const reading_names[] = {"WATCH", "GETRANGE", "GET", "PTTL", "MULTI", "EXEC"};

/* While the slot of a cluster is being moved, the two keys may be on two nodes, which WATCH cannot
 * span. Then the part is read before the value and after it: it is of the moment of the value if it
 * is the same. */
enum reading_apart { READING_TOGETHER, READING_BEFORE, READING_BETWEEN, READING_AFTER };

struct reading {
    struct redis_call call; /* first */
    enum reading_apart apart;
    struct redis_store *store;
    struct odds_read *read;
    struct odds_subject subject;
    struct buffer commands;
    uint64_t sent_ns;
    enum status got;
    struct redis_seen seen;
};

static bool has_part(const struct reading *reading)
{
    return reading->read->kind == ODDS_MARKETS && reading->read->catalog.max > 0;
}

static void drop_part(struct reading *reading)
{
    struct odds_part *part = &reading->read->catalog;
    memory_free(part->bytes);
    *part = (struct odds_part){.at = part->at, .max = part->max};
}

static void drop_copies(struct reading *reading)
{
    memory_free(reading->read->value.bytes);
    reading->read->value = (struct odds_value){0};
    drop_part(reading);
}

static void reading_sent(struct redis_call *call)
{
    struct reading *reading = (struct reading *)call;
    if (reading->apart > READING_BEFORE)
        return;
    drop_copies(reading); /* replies of a connection that was lost */
    reading->got = STATUS_OK;
    reading->sent_ns = clock_monotonic_ns();
}

static void report_problem(struct redis_store *store, const struct error *error)
{
    if (!store->complained)
        log_event(store->log, LOG_WARNING, "values cannot be read from the odds store",
                  LOG_STRING("reason", error->text));
    store->complained = true;
}

/* Logs a value of another type, or one that is too large, once until it can be read. */
static void report_unreadable(const struct reading *reading, const struct error *error)
{
    struct redis_store *store = reading->store;
    struct redis_key key = redis_key_of_value(store->prefix, &reading->subject);
    if (!redis_versions_is_unreadable(store->versions, &reading->subject))
        log_event(store->log, LOG_WARNING, "a key of the odds store cannot be used",
                  LOG_STRING("key", key.text), LOG_STRING("reason", error->text));
}

/* The first error is the result of the reading. */
static void take_error(struct reading *reading, const struct redis_reply *reply, unsigned command)
{
    struct error error;
    if (reading->got != STATUS_OK)
        return;
    reading->got = redis_error_of_reply(reply, reading_names[command], &error);
    if (reading->got == STATUS_MALFORMED) {
        report_unreadable(reading, &error);
        return;
    }
    reading->got = STATUS_UNAVAILABLE;
    report_problem(reading->store, &error);
}

/* The size counts its NUL. */
static char *copy_bytes(const struct redis_reply *reply)
{
    return memory_copy(reply->text.at, reply->text.size + 1);
}

static void take_value(struct reading *reading, const struct redis_reply *reply)
{
    struct redis_store *store = reading->store;
    struct odds_value *value = &reading->read->value;
    value->stamp = redis_versions_stamp(store->versions);
    reading->seen = (struct redis_seen){.stored = reply->type != REDIS_NIL,
                                        .readable = reply->type == REDIS_NIL};
    if (reply->type == REDIS_STRING) {
        value->size = reply->text.size;
        value->bytes = copy_bytes(reply);
        reading->seen.readable = true;
        digest_sha256(value->bytes, value->size, reading->seen.digest);
    } else if (reply->type != REDIS_NIL) {
        take_error(reading, reply, READING_VALUE);
    }
    if (reading->got == STATUS_OK)
        store->complained = false;
}

/* A catalog that is no string has no part. Reading the catalog itself reports that. */
static void take_part(struct reading *reading, const struct redis_reply *reply)
{
    struct odds_part *part = &reading->read->catalog;
    struct error error;
    if (reply->type == REDIS_STRING && reply->text.size <= part->max) {
        part->bytes = copy_bytes(reply);
        part->size = reply->text.size;
    } else if (redis_error_of_reply(reply, "", &error) != STATUS_MALFORMED) {
        take_error(reading, reply, READING_PART);
    }
}

/* Counts the time to live from before the question, so the value is never kept too long. */
static void take_expiry(struct reading *reading, const struct redis_reply *reply)
{
    reading->seen.current = reply->type == REDIS_INTEGER;
    if (reply->type == REDIS_INTEGER && reply->integer >= 0 &&
        (uint64_t)reply->integer < UINT64_MAX / NS_PER_MS / 2)
        reading->seen.expires_ns = reading->sent_ns + (uint64_t)reply->integer * NS_PER_MS;
}

/* By its own clock, this server lets no value live longer than it was known to. Where changes are
 * not reported, a later end is a sign of life. True: its time is over. */
static bool judge_expiry(struct reading *reading)
{
    struct redis_store *store = reading->store;
    struct redis_seen *seen = &reading->seen;
    uint64_t now_ns = clock_monotonic_ns();
    bool limited = !seen->asked && redis_versions_limit(store->versions, &reading->subject, seen);
    if (limited && seen->readable && seen->expires_ns <= now_ns) {
        memory_free(reading->read->value.bytes);
        reading->read->value.bytes = NULL;
        reading->read->value.size = 0;
        seen->stored = false;
        seen->current = false; /* the server has it yet */
    }
    if (seen->stored && seen->expires_ns != 0) {
        uint64_t left_s = seen->expires_ns > now_ns ? (seen->expires_ns - now_ns) / 1000000000U : 0;
        reading->read->value.expires_s =
            left_s == 0 ? 1
                        : (uint32_t)(left_s < ODDS_EXPIRES_MOST_S ? left_s : ODDS_EXPIRES_MOST_S);
    }
    bool over = !seen->stored && redis_versions_is_over(store->versions, &reading->subject, now_ns);
    if (over)
        odds_store_count_expired(&store->base, reading->subject.sport, 1);
    return over;
}

/* Notes the version of the value, current or not. A change that is reported before the call is
 * settled makes it outdated. */
static void remember(struct reading *reading)
{
    struct redis_store *store = reading->store;
    struct redis_versions *versions = store->versions;
    struct odds_value *value = &reading->read->value;
    reading->seen.asked = redis_link_asks(reading->call.link);
    /* A stamp that has moved: a report came, perhaps of this value. */
    if (reading->seen.asked || redis_versions_stamp(versions) != value->stamp)
        reading->seen.current = false;
    if (reading->apart || reading->call.asked ||
        (!reading->seen.stored && redis_link_is_cluster(reading->call.link)))
        reading->seen.current = false; /* the node of the link may not report a change of it */
    bool over = judge_expiry(reading);
    value->version = redis_versions_note(versions, &reading->subject, &reading->seen);
    if (reading->seen.published && !over)
        relaxed_store(&store->published_ms[reading->subject.sport], clock_wall_ms());
}

/* Drops the part unless it is the same again. */
static void compare_part(struct reading *reading, const struct redis_reply *reply)
{
    const struct odds_part *part = &reading->read->catalog;
    if (reply->type != REDIS_STRING || part->bytes == NULL ||
        !text_equals(reply->text, (struct text){part->bytes, part->size}))
        drop_part(reading);
}

static void reading_reply(struct redis_call *call, unsigned index, const struct redis_reply *reply)
{
    struct reading *reading = (struct reading *)call;
    unsigned step = !has_part(reading) || reading->apart == READING_BETWEEN
                        ? index + READING_VALUE
                        : index + (reading->apart == READING_BEFORE ? READING_PART : READING_WATCH);
    if (reading->apart == READING_AFTER) {
        compare_part(reading, reply);
        return;
    }
    if (step == READING_PART)
        take_part(reading, reply);
    else if (step == READING_VALUE)
        take_value(reading, reply);
    else if (step == READING_EXPIRY)
        take_expiry(reading, reply);
    else if (reply->type == REDIS_ERROR)
        take_error(reading, reply, step);
    /* An empty list means that no watched key has changed. */
    if (step == READING_EXEC && reply->type != REDIS_LIST) {
        drop_part(reading);
        reading->seen.current = false;
    }
    if (index + 1 == call->replies && reading->apart != READING_BEFORE &&
        (reading->got == STATUS_OK || reading->got == STATUS_MALFORMED))
        remember(reading);
}

/* The connection, which all values share, was lost over this one; the log has the reason. */
static void refuse(const struct reading *reading)
{
    struct redis_store *store = reading->store;
    struct redis_key key = redis_key_of_value(store->prefix, &reading->subject);
    redis_versions_refuse(store->versions, &reading->subject, clock_monotonic_ns() + REFUSED_NS);
    log_event(store->log, LOG_WARNING,
              "connection to the odds store was lost over a value, which has a pause now",
              LOG_STRING("key", key.text));
}

static void reading_done(struct redis_call *call, enum status status)
{
    struct reading *reading = (struct reading *)call;
    struct redis_store *store = reading->store;
    struct odds_read *read = reading->read;
    if (call->losses > 1)
        refuse(reading);
    read->result = odds_store_counted(&store->base, status != STATUS_OK ? status : reading->got);
    if (read->result == STATUS_OK)
        read->value.published_ms = redis_versions_published_ms(store->versions, &reading->subject);
    else
        drop_copies(reading);
    buffer_free(&reading->commands);
    memory_free(reading);
    read->done(read);
}

/* ---- reports of changes ---------------------------------------------------------------------- */

static void on_changed(void *owner, const char *key, size_t size)
{
    struct redis_store *store = owner;
    struct text prefix = text_of(store->prefix);
    struct odds_subject subject;
    if (key == NULL) {
        redis_versions_forget_all(store->versions);
    } else {
        if (!text_starts_with((struct text){key, size}, prefix) ||
            !odds_name_read((struct text){key + prefix.size, size - prefix.size}, &subject))
            return;
        /* The end of a value's time is no publication. */
        if (!redis_versions_is_over(store->versions, &subject, clock_monotonic_ns()))
            relaxed_store(&store->published_ms[subject.sport], clock_wall_ms());
        redis_versions_forget(store->versions, &subject);
    }
    odds_store_tell(&store->base, &subject, key == NULL ? 0 : 1);
}

static void on_ask(void *owner)
{
    struct redis_store *store = owner;
    odds_store_tell(&store->base, NULL, 0);
}

/* ---- interest, on the I/O thread ------------------------------------------------------------- */

static void append_interest(struct redis_store *store, const struct odds_note *note)
{
    /* GT keeps the latest time of all instances. */
    redis_command(&store->interest_commands, "ZADD %s GT %lld %s",
                  redis_key_of_interest(store->prefix, note->sport).text,
                  (long long)note->requested_ms, note->event.digits);
}

static unsigned append_pruning(struct redis_store *store)
{
    uint64_t now_ms = clock_monotonic_ms();
    if (store->pruned_ms != 0 && now_ms - store->pruned_ms < ODDS_NOTES_PRUNE_EVERY_MS)
        return 0;
    store->pruned_ms = now_ms;
    for (unsigned sport = 0; sport < SPORT_COUNT; sport++)
        redis_command(&store->interest_commands, "ZREMRANGEBYSCORE %s -inf (%lld",
                      redis_key_of_interest(store->prefix, (enum sport)sport).text,
                      (long long)(clock_wall_ms() - ODDS_NOTES_KEEP_MS));
    return SPORT_COUNT;
}

static struct redis_store *store_of_interest(struct redis_call *call)
{
    return CONTAINER_OF(call, struct redis_store, interest);
}

/* Logs why interest in a sport is not recorded, once until it is. */
static void report_interest(struct redis_store *store, enum sport sport, const char *command,
                            const struct redis_reply *reply)
{
    struct error error;
    if ((store->interest_refused & SPORT_BIT(sport)) != 0)
        return;
    store->interest_refused |= SPORT_BIT(sport);
    (void)redis_error_of_reply(reply, command, &error);
    log_event(store->log, LOG_WARNING, "interest in events is not recorded",
              LOG_STRING("sport", sport_key(sport)), LOG_STRING("reason", error.text));
}

/* The replies to the notes come first, then one for each sport to the pruning. */
static void interest_reply(struct redis_call *call, unsigned index, const struct redis_reply *reply)
{
    struct redis_store *store = store_of_interest(call);
    bool noted = index < store->interest_count;
    enum sport sport = noted ? store->interest_notes[index].sport
                             : (enum sport)(index - (unsigned)store->interest_count);
    if (call->redirected) {
        store->interest_failed += noted ? 1 : 0; /* the next request notes it again */
    } else if (reply->type == REDIS_ERROR) {
        report_interest(store, sport, noted ? "ZADD" : "ZREMRANGEBYSCORE", reply);
        store->interest_failed += noted ? 1 : 0;
    } else if (noted) {
        store->interest_refused &= ~SPORT_BIT(sport);
    }
}

static void write_interest(struct redis_store *store);

static void interest_done(struct redis_call *call, enum status status)
{
    struct redis_store *store = store_of_interest(call);
    size_t lost = status == STATUS_OK ? store->interest_failed : store->interest_count;
    (void)atomic_fetch_add(&store->base.interest_written, store->interest_count - lost);
    odds_notes_lost(store->base.notes, lost);
    store->interest_is_out = false;
    write_interest(store); /* notes that came in between */
}

/* While the server is away, notes wait in their table as far as there is room. */
static void write_interest(struct redis_store *store)
{
    struct redis_link *link = atomic_load(&store->link);
    if (store->interest_is_out || link == NULL)
        return;
    enum status now = redis_link_now(link);
    if (now != STATUS_OK && !(now == STATUS_PENDING && redis_link_asks(link)))
        return;
    store->interest_count = odds_notes_take(store->base.notes, &store->interest_notes);
    buffer_clear(&store->interest_commands);
    if (store->interest_count == 0)
        return;
    for (size_t i = 0; i < store->interest_count; i++)
        append_interest(store, &store->interest_notes[i]);
    unsigned commands = (unsigned)store->interest_count + append_pruning(store);
    store->interest_failed = 0;
    store->interest = (struct redis_call){.bytes = buffer_text(&store->interest_commands),
                                          .replies = commands,
                                          .reply = interest_reply,
                                          .done = interest_done};
    store->interest_is_out = redis_link_submit(link, &store->interest) == STATUS_PENDING;
    if (!store->interest_is_out)
        odds_notes_lost(store->base.notes, store->interest_count);
}

/* The I/O thread calls this at each heartbeat, and when it is woken. */
static void work(void *owner)
{
    struct redis_store *store = owner;
    if (redis_versions_expire(store->versions, clock_monotonic_ns()))
        odds_store_tell(&store->base, NULL, 0);
    write_interest(store);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void redis_close(struct odds_store *base)
{
    struct redis_store *store = redis_store_of(base);
    struct redis_link *link = redis_link_of(redis_store_of(base));
    redis_link_destroy(&link);
    redis_versions_destroy(&store->versions);
    redis_location_destroy(&store->location);
    buffer_free(&store->interest_commands);
    memory_free(store->prefix);
    odds_store_end(&store->base);
    memory_free(store);
}

static enum status redis_open(struct odds_store **store, const struct odds_store_options *options,
                              const char *rest, struct error *error)
{
    (void)rest; /* the scheme says what it is of */
    struct redis_location *location = NULL;
    enum status status = redis_location_parse(&location, options->uri, error);
    if (status == STATUS_OK && location->tls)
        status = redis_tls_create(&location->trust, location->tls_ca, error);
    if (status != STATUS_OK) {
        redis_location_destroy(&location);
        return status;
    }
    struct redis_store *opening = memory_alloc_zeroed(1, sizeof *opening);
    odds_store_begin(&opening->base);
    opening->location = location;
    opening->prefix = memory_copy_string(options->prefix != NULL ? options->prefix : "");
    opening->log = options->log;
    opening->feeds = options->feeds;
    opening->versions = redis_versions_create();
    const struct redis_link_options link = {.location = location,
                                            .timeout_ms = options->timeout_ms,
                                            .prefix = opening->prefix,
                                            .track = !options->feeds,
                                            .ask_ms =
                                                options->ask_ms != 0 ? options->ask_ms : ASK_MS,
                                            .log = options->feeds ? NULL : options->log,
                                            .owner = opening,
                                            .changed = on_changed,
                                            .ask = on_ask,
                                            .work = work};
    atomic_store(&opening->link, redis_link_create(&link));
    status = redis_link_wait(redis_link_of(opening), error);
    if (!options->patient && status != STATUS_OK) {
        redis_close(&opening->base);
        return status;
    }
    *store = &opening->base;
    return STATUS_OK;
}

/* ---- serving --------------------------------------------------------------------------------- */

static enum status redis_stamp(struct odds_store *base, uint64_t *stamp)
{
    struct redis_store *store = redis_store_of(base);
    enum status status = redis_link_now(redis_link_of(redis_store_of(base)));
    uint64_t now_stamp = redis_versions_stamp(store->versions);
    if (status == STATUS_OK && redis_versions_is_overdue(store->versions, clock_monotonic_ns()))
        status = STATUS_PENDING;
    if (status == STATUS_OK)
        *stamp = now_stamp;
    return status;
}

static bool redis_asks(struct odds_store *base)
{
    return redis_link_asks(redis_link_of(redis_store_of(base)));
}

static enum status redis_versions(struct odds_store *base, enum sport sport,
                                  const struct event_id *event, struct odds_versions *versions)
{
    struct redis_store *store = redis_store_of(base);
    uint64_t stamp = 0;
    enum status status = redis_stamp(base, &stamp);
    if (status != STATUS_OK)
        return status;
    struct odds_versions known = {.stamp = stamp};
    struct odds_subject subject = odds_subject_of(ODDS_CATALOG, sport, NULL);
    known.catalog = redis_versions_find(store->versions, &subject);
    if (event != NULL) {
        subject = odds_subject_of(ODDS_MARKETS, sport, event);
        known.odds = redis_versions_find(store->versions, &subject);
    }
    if (known.catalog == ODDS_VERSION_UNKNOWN &&
        (event == NULL || known.odds == ODDS_VERSION_UNKNOWN))
        return STATUS_PENDING;
    *versions = known;
    return STATUS_OK;
}

/* The functions by the kind of reading: they send all of it, or its next commands. */
static void append_reading(struct reading *reading, const struct redis_store *store)
{
    struct odds_subject catalog = odds_subject_of(ODDS_CATALOG, reading->subject.sport, NULL);
    const struct odds_part *part = &reading->read->catalog;
    struct buffer *out = &reading->commands;
    struct redis_key catalog_key = redis_key_of_value(store->prefix, &catalog);
    struct redis_key key = redis_key_of_value(store->prefix, &reading->subject);
    bool together = has_part(reading) && reading->apart == READING_TOGETHER;
    bool value = reading->apart == READING_TOGETHER || reading->apart == READING_BETWEEN;
    buffer_clear(out);
    if (together)
        redis_command(out, "WATCH %s %s", catalog_key.text, key.text);
    if (together || !value)
        redis_command(out, "GETRANGE %s %zu %zu", catalog_key.text, part->at,
                      part->at + part->max - 1);
    if (value) {
        redis_command(out, "GET %s", key.text);
        redis_command(out, "PTTL %s", key.text);
    }
    if (together) {
        redis_command(out, "MULTI");
        redis_command(out, "EXEC");
    }
    reading->call.bytes = buffer_text(out);
    reading->call.replies = together ? READING_EXEC + 1 : value ? 2 : 1;
}

static bool reading_more(struct redis_call *call, enum redis_redirect redirect)
{
    struct reading *reading = (struct reading *)call;
    bool begins = reading->apart == READING_TOGETHER && redirect == REDIS_LATER;
    bool goes_on = reading->apart != READING_TOGETHER && redirect == REDIS_NOT_REDIRECTED;
    if (goes_on && reading->apart == READING_AFTER)
        return false;
    if ((begins && has_part(reading)) || goes_on) {
        reading->apart++;
        append_reading(reading, reading->store);
        return true;
    }
    return redirect != REDIS_NOT_REDIRECTED;
}

static enum status redis_read(struct odds_store *base, struct odds_read *read)
{
    struct redis_store *store = redis_store_of(base);
    struct odds_subject subject = odds_subject_of(read->kind, read->sport, &read->event);
    uint64_t refused_until_ns = redis_versions_refused(store->versions, &subject);
    read->value.bytes = NULL;
    read->catalog.bytes = NULL;
    if (refused_until_ns > clock_monotonic_ns())
        return STATUS_UNAVAILABLE;
    struct reading *reading = memory_alloc_zeroed(1, sizeof *reading);
    reading->store = store;
    reading->read = read;
    reading->subject = subject;
    reading->call = (struct redis_call){.again = true,
                                        .settle = true,
                                        .may_be_large = true,
                                        .losses = refused_until_ns != 0,
                                        .more = reading_more,
                                        .sent = reading_sent,
                                        .reply = reading_reply,
                                        .done = reading_done};
    append_reading(reading, store);
    enum status status = redis_link_submit(redis_link_of(redis_store_of(base)), &reading->call);
    if (status != STATUS_PENDING) {
        buffer_free(&reading->commands);
        memory_free(reading);
    }
    return status;
}

static void redis_wake(struct odds_store *base)
{
    redis_link_wake(redis_link_of(redis_store_of(base))); /* the link writes the notes */
}

static void redis_facts(struct odds_store *base, struct odds_facts *facts)
{
    struct redis_store *store = redis_store_of(base);
    redis_link_facts(redis_link_of(redis_store_of(base)), facts);
    for (size_t i = 0; i < SPORT_COUNT; i++)
        facts->published_ms[i] = relaxed_load(&store->published_ms[i]);
}

/* Knows values that were read lately, or whose change was reported. */
static int64_t redis_published_ms(struct odds_store *base, enum sport sport,
                                  const struct event_id *event)
{
    const struct odds_subject subject = odds_subject_of(ODDS_MARKETS, sport, event);
    return redis_versions_published_ms(redis_store_of(base)->versions, &subject);
}

const struct odds_engine odds_engine_redis = {
    .schemes = {"redis://", "rediss://", "unix:", "redis+sentinel://", "rediss+sentinel://"},
    .open = redis_open,
    .close = redis_close,
    .stamp = redis_stamp,
    .asks = redis_asks,
    .versions = redis_versions,
    .read = redis_read,
    .published_ms = redis_published_ms,
    .ping = redis_ping,
    .wake = redis_wake,
    .lease = redis_lease,
    .facts = redis_facts,
    .publish = redis_publish,
    .publish_each = redis_publish_each,
    .list_interest = redis_list_interest,
    .list_events = redis_list_events,
};
