#ifndef CROUPIER_STORES_ODDS_REDIS_REDIS_H
#define CROUPIER_STORES_ODDS_REDIS_REDIS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include <openssl/types.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/mailbox.h"
#include "base/status.h"
#include "base/text.h"
#include "records/event_id.h"
#include "records/sport.h"
#include "stores/odds.h"
#include "stores/odds/redis/reply.h"

/*
 * The parts of the Redis/Valkey engine, for its own files only.
 *
 *   engine.c      the engine: reading, versions, interest
 *   feed.c        the feed's side: publishing and listing
 *   lease.c       rate limits that several servers share
 *   rights.c      what the server's user has to be permitted
 *   known.c       which version of what is known to be stored
 *   link.c        the I/O thread: commands from any thread, with deadlines
 *   connection.c  how the link gets and keeps its connection, and whether that works
 *   sentinel.c    which server is the master
 *   lookup.c      the addresses of names
 *   wire.c        one connection on a libuv loop: bytes out, replies in
 *   reply.c       the protocol (reply.h)
 *   location.c    the URI
 *
 * Each uses those below it; what it has to tell goes up by callbacks.
 *
 * Keys, with the configured prefix before each: `catalog:SPORT`, `odds:SPORT:EVENT`,
 * `interest:SPORT`, `rate:CLIENT` (lease.c).
 */

/* ---- location.c ------------------------------------------------------------------------------ */

enum redis_way { REDIS_BY_TCP, REDIS_BY_UNIX, REDIS_BY_SENTINEL };

#define REDIS_HOSTS_MAX 16
#define REDIS_HOST_SIZE 256 /* of a name, with its NUL */

struct redis_host {
    char name[REDIS_HOST_SIZE]; /* a name or a numeric address, without brackets */
    uint16_t port;
};

struct redis_location {
    enum redis_way way;
    bool tls;
    struct redis_host hosts[REDIS_HOSTS_MAX]; /* one, or the sentinels */
    size_t host_count;
    char *path;     /* BY_UNIX */
    char *service;  /* BY_SENTINEL: what the sentinels call it */
    char *user;     /* NULL: the default user */
    char *password; /* NULL: none is sent */
    char *tls_ca;   /* a file of certificates to trust instead of the system's; may be NULL */
    SSL_CTX *trust; /* by TLS; not parse's, but freed with the rest */
    uint32_t database;
    struct buffer shown; /* as it may be shown: without user and password */
};

/* STATUS_INVALID with a text that says what is wrong and quotes no part that could be secret. */
MUST_CHECK enum status redis_location_parse(struct redis_location **location, const char *uri,
                                            struct error *error);
void redis_location_destroy(struct redis_location **location);

/* ---- wire.c ---------------------------------------------------------------------------------- */

/*
 * One connection, on the thread of its loop. Replies come in the order of what was sent. A wire
 * that is lost says so once, from the loop and never inside a call; its owner then destroys it. A
 * callback may destroy the wire that calls it.
 */
struct redis_wire;

struct redis_wire_events {
    void *owner;
    void (*lost)(void *owner, struct redis_wire *wire, enum status status, const char *why);
    /* A push; NULL: none is expected. */
    void (*message)(void *owner, const struct redis_reply *message);
};

struct redis_target {
    bool local;                 /* `name` is the path of a socket */
    char name[REDIS_HOST_SIZE]; /* or a numeric address */
    uint16_t port;
    const char *host; /* what the certificate has to be of; TLS only */
};

/* Whom to trust: the certificates in this file, or the system's when it is NULL. STATUS_INVALID:
 * they cannot be read. */
MUST_CHECK enum status redis_tls_create(SSL_CTX **trust, const char *ca, struct error *error);

/* `trust` is NULL without TLS. STATUS_UNAVAILABLE: refused at once. */
MUST_CHECK enum status redis_wire_open(struct redis_wire **wire, uv_loop_t *loop,
                                       const struct redis_target *target, SSL_CTX *trust,
                                       const struct redis_wire_events *events, struct error *error);
/* What was sent is not answered any more. */
void redis_wire_destroy(struct redis_wire **wire);

/* `index` counts the replies to what was sent together. */
typedef void redis_answered(void *context, unsigned index, const struct redis_reply *reply);

/* Sends commands that bring `replies` replies. */
void redis_wire_send(struct redis_wire *wire, struct text commands, unsigned replies,
                     redis_answered *answered, void *context);

/* Writes one command: words that follow are appended with redis_command_word, exactly `words` of
 * them. */
void redis_command_begin(struct buffer *out, size_t words);
void redis_command_word(struct buffer *out, struct text word);
/* All of them at once; a NULL ends the list. */
void redis_command(struct buffer *out, const char *first, ...) __attribute__((sentinel));
/* AUTH, of a server that has a password. */
void redis_command_auth(struct buffer *out, const struct redis_location *location);

/* The user may not do it. */
bool redis_reply_is_refusal(const struct redis_reply *reply);

/* What an error reply means, and a text for people: `what` could not be done, and what the server
 * says. */
enum status redis_error_of_reply(const struct redis_reply *reply, const char *what,
                                 struct error *error);

/* ---- lookup.c -------------------------------------------------------------------------------- */

#define REDIS_ADDRESSES_MAX 16 /* of one name; there may be more, which are not used */
#define REDIS_ADDRESS_SIZE 64  /* numeric, with a scope and its NUL */

struct redis_addresses {
    char list[REDIS_ADDRESSES_MAX][REDIS_ADDRESS_SIZE];
    size_t count;
    size_t next; /* for the owner's use: the one to be tried next */
};

/* One lookup of a name (or numeric address), which is not waited for however long it takes. */
struct redis_lookup;

/* `problem` is NULL when there are addresses. The lookup is gone after it. */
typedef void redis_looked_up(void *owner, const struct redis_addresses *addresses,
                             const char *problem);
/* `answered` is called once, by the mailbox, never inside of this. */
struct redis_lookup *redis_lookup_start(struct mailbox *mailbox, const char *name, void *owner,
                                        redis_looked_up *answered);
/* `answered` is not called any more. On the mailbox's thread, before the mailbox is destroyed. */
void redis_lookup_abandon(struct redis_lookup **lookup);

/* ---- what a link is for ---------------------------------------------------------------------- */

struct redis_link_options {
    const struct redis_location *location; /* borrowed */
    uint32_t timeout_ms;
    const char *prefix; /* of the keys */
    bool track;
    struct log *log;
    /* All on the I/O thread; those that will not be called may be NULL: the first three when it
     * does not track; `second` and `closing` when there is nothing to do. */
    void *owner;
    void (*begun)(void *owner); /* connected again: forget everything */
    void (*changed)(void *owner, const char *key, size_t size); /* NULL: all keys */
    void (*alarm)(void *owner);   /* redis_link_set_alarm's time has come */
    void (*woken)(void *owner);   /* redis_link_wake was called */
    void (*second)(void *owner);  /* about once a second, connected or not */
    void (*closing)(void *owner); /* the last moment to submit a call; */
};

/* ---- sentinel.c ------------------------------------------------------------------------------ */

/*
 * Which server is the master; on the I/O thread. The callbacks may ask again.
 */
struct redis_sentinel;

struct redis_sentinel_options {
    const struct redis_link_options *link; /* borrowed, as are the next two */
    uv_loop_t *loop;
    struct mailbox *mailbox;
    void *owner;
    void (*found)(void *owner, const struct redis_host *master);
    void (*failed)(void *owner, enum status status, const char *why); /* none of them knows */
};

struct redis_sentinel *redis_sentinel_create(const struct redis_sentinel_options *options);
void redis_sentinel_destroy(struct redis_sentinel **sentinel); /* while the loop runs */

/* `found` or `failed` will be called, perhaps from inside of this. */
void redis_sentinel_ask(struct redis_sentinel *sentinel);
/* Is the address of a sentinel still being looked up? */
bool redis_sentinel_looks_up(const struct redis_sentinel *sentinel);

/* ---- connection.c ---------------------------------------------------------------------------- */

/*
 * The connection to the server that is the master now. When it is lost, or does not answer, or is
 * not what it was, it is let go, everything that was known is forgotten, and another is made. The
 * functions without a word on threads are the I/O thread's.
 */
struct redis_connection;

struct redis_connection_options {
    const struct redis_link_options *link; /* borrowed, as are all pointers here */
    uv_loop_t *loop;
    struct mailbox *mailbox;
    void *owner;
    void (*up)(void *owner); /* commands may be sent */
    /* They may not, until `up`, and those that were sent are not answered. `hope`: it is tried
     * again at once. */
    void (*lost)(void *owner, enum status status, bool hope);
};

struct redis_connection *
redis_connection_create(const struct redis_connection_options *options); /* any thread */
void redis_connection_start(struct redis_connection *connection);        /* the first attempt */
void redis_connection_stop(struct redis_connection *connection);         /* for good */
void redis_connection_destroy(struct redis_connection **connection); /* when the loop has ended */

void redis_connection_second(struct redis_connection *connection); /* about once a second */
/* At the end of a turn of the loop, when all that had come was read. */
void redis_connection_turn(struct redis_connection *connection);
/* A call was not answered in time, by which alone one that does not track knows that it leads
 * nowhere. */
void redis_connection_silent(struct redis_connection *connection);
bool redis_connection_is_up(const struct redis_connection *connection);
void redis_connection_send(struct redis_connection *connection, struct text commands,
                           unsigned replies, redis_answered *answered, void *context);

/* Any thread; as redis_link_now and redis_link_wait below. `problem`: why it is not connected. */
enum status redis_connection_now(const struct redis_connection *connection);
enum status redis_connection_wait(struct redis_connection *connection, struct error *error);
void redis_connection_problem(struct redis_connection *connection, struct error *error);
void redis_connection_facts(const struct redis_connection *connection, struct odds_facts *facts);

/* ---- link.c ---------------------------------------------------------------------------------- */

/* The link: an I/O thread with a connection to the server that is the master now. */
struct redis_link;

/* Starts the thread, which connects at once and for ever. */
struct redis_link *redis_link_create(const struct redis_link_options *options);
/* Waits until all calls are over, which their deadlines see to. */
void redis_link_destroy(struct redis_link **link);

/* Waits until the first attempt to connect has ended, within reason. The status of redis_link_now,
 * and the reason when it is not STATUS_OK. */
enum status redis_link_wait(struct redis_link *link, struct error *error);

/*
 * In place, wait-free. STATUS_OK: the connection was seen to work so lately that what was known is
 * still known. STATUS_PENDING: no saying, or connecting for the first time since it worked: a
 * call may be submitted and will tell. STATUS_UNAVAILABLE, STATUS_TIMEOUT: neither.
 */
enum status redis_link_now(const struct redis_link *link);

/* Any thread: has `woken` called soon. */
void redis_link_wake(struct redis_link *link);

/* On the I/O thread: has `alarm` called at that time, instead of at the one that was set before. */
void redis_link_set_alarm(struct redis_link *link, uint64_t at_ns);

/* Sets what it knows: connected, reopened, invalidations, round_trip_ns. */
void redis_link_facts(const struct redis_link *link, struct odds_facts *facts);

/*
 * Commands, from any thread.
 *
 * The struct is the caller's, which embeds it in its own and finds that again from `done`. It
 * belongs to the link from redis_link_submit until `done` is called, once, on the I/O thread, never
 * inside submit. `bytes` (redis_command…) must stay until then. Calls are answered within their
 * deadline, whatever the server does. At most REDIS_CALLS_MAX are under way; then submit says
 * STATUS_FULL at once.
 *
 * `done`'s status: STATUS_OK: all replies have come (error replies too: they were given to
 * `reply`); STATUS_TIMEOUT; STATUS_UNAVAILABLE: not connected, or no longer. After the last two
 * it is not known whether the commands were carried out.
 */
#define REDIS_CALLS_MAX 4096

struct redis_call {
    struct mail mail;               /* first; the link's */
    TAILQ_ENTRY(redis_call) others; /* the link's, as the next three */
    struct redis_link *link;
    void *asking; /* redis_link_ask's */
    uint64_t deadline_ns;

    struct text bytes;
    unsigned replies;    /* that they bring; at least 1 */
    bool again;          /* send it once more when the connection is lost meanwhile: reads only */
    bool settle;         /* `done` waits until the call is settled, see above */
    uint32_t timeout_ms; /* 0: the store's */
    /* May be NULL: it is being handed to the connection now (once more, after a loss). */
    void (*sent)(struct redis_call *call);
    /* May be NULL. The reply is borrowed. */
    void (*reply)(struct redis_call *call, unsigned index, const struct redis_reply *reply);
    void (*done)(struct redis_call *call, enum status status);
};

/* Redis reports the changes of one turn of its event loop after the replies of that turn, so a reply
 * may come before the report of an earlier change. A call is settled when a PING that was sent after
 * its last reply is answered. By then the link has seen every change that was made before the reply,
 * and Redis has sent it to every other client that tracks. */

/* STATUS_PENDING, or why `done` will not be called: STATUS_FULL, STATUS_UNAVAILABLE,
 * STATUS_TIMEOUT. */
MUST_CHECK enum status redis_link_submit(struct redis_link *link, struct redis_call *call);

/* Why a call failed, for people: redis_link_submit did not take it, or `done` had this status.
 * `what` could not be done; `error` may be NULL. */
void redis_link_say(struct redis_link *link, enum status status, const char *what,
                    struct error *error);

/* Submits the call and waits until it is over; not on the I/O thread. Sets `done`. `error` says why
 * the call failed, as redis_link_say; error replies are for `reply`. */
MUST_CHECK enum status redis_link_ask(struct redis_link *link, struct redis_call *call,
                                      const char *what, struct error *error);

/* ---- rights.c -------------------------------------------------------------------------------- */

/* Has the user the rights that serving needs: to read, or `all`? If not, `error` is the command that
 * Redis refused, and Redis's own error. Waits as redis_link_ask. */
MUST_CHECK enum status redis_rights_ask(struct redis_link *link, const char *prefix, bool all,
                                        struct error *error);

/* ---- lease.c --------------------------------------------------------------------------------- */

/*
 * Leases of shared rate budgets: one key a client, `rate:CLIENT`, and one script that does all of
 * it. The commands that a user of the server needs for it: EVAL, TIME, GET, SET.
 */
struct redis_leases {
    const char *prefix;
    struct log *log;
    atomic_bool complained;
};

/* What odds_store_lease says. */
MUST_CHECK enum status redis_lease_ask(struct redis_leases *leases, struct redis_link *link,
                                       struct odds_lease *lease);

/* ---- feed.c ---------------------------------------------------------------------------------- */

/* The verbs of the same names in stores/odds.h. */
MUST_CHECK enum status redis_feed_publish(struct redis_link *link, const char *prefix,
                                          const struct odds_change *changes, size_t count,
                                          struct error *error);
/* `over`: each has its result; it is called before `done`, or in place when that will not be. It may
 * be NULL. */
MUST_CHECK enum status redis_feed_publish_each(struct redis_link *link, const char *prefix,
                                               struct odds_publishing *publishing, void *owner,
                                               void (*over)(void *owner,
                                                            struct odds_publishing *publishing));
MUST_CHECK enum status redis_feed_list_interest(struct redis_link *link, const char *prefix,
                                                enum sport sport, int64_t since_ms,
                                                struct odds_interest **list, size_t *count,
                                                struct error *error);
MUST_CHECK enum status redis_feed_list_events(struct redis_link *link, const char *prefix,
                                              enum sport sport, struct event_id **list,
                                              size_t *count, struct error *error);

/* "PREFIXcatalog:SPORT", "PREFIXodds:SPORT:EVENT", "PREFIXinterest:SPORT" */
void redis_key_of_value(struct buffer *out, const char *prefix, const struct odds_subject *subject);
void redis_key_of_interest(struct buffer *out, const char *prefix, enum sport sport);

/* ---- known.c --------------------------------------------------------------------------------- */

/*
 * What is known of the stored values: which version each had when it was read last, and whether
 * nothing has been heard of it since. Bounded; what is not in it is not known. Any thread may look;
 * the rest is the I/O thread's.
 */
struct redis_known;

struct redis_known *redis_known_create(void);
void redis_known_destroy(struct redis_known **known);

uint64_t redis_known_stamp(const struct redis_known *known);
/* Was it of the wrong type or too large when it was read last? */
bool redis_known_is_unreadable(struct redis_known *known, const struct odds_subject *subject);
/* The version, or ODDS_VERSION_UNKNOWN. To be right under a stamp, the stamp is read first. */
uint64_t redis_known_version(struct redis_known *known, const struct odds_subject *subject);

/* Wall clock: when it was learned that the value was published last; 0: not known. */
int64_t redis_known_published_ms(struct redis_known *known, const struct odds_subject *subject);

/* Each moves the stamp. redis_known_forget may be called by any thread. */
void redis_known_forget(struct redis_known *known, const struct odds_subject *subject);
void redis_known_forget_all(struct redis_known *known);
/* Has something expired at `now_ns` that is not forgotten yet, because the I/O thread is late? Then
 * nothing that is known may be used. Any thread. */
bool redis_known_is_overdue(const struct redis_known *known, uint64_t now_ns);
/* Forgets what has expired at `now_ns`; returns when the next does, 0: never. */
uint64_t redis_known_expire(struct redis_known *known, uint64_t now_ns);

/* A value was read: returns its version, the one from before when the digest is that from before.
 * `current`: it is known to be stored from now on, until `expires_ns` (0: for good). */
struct redis_seen {
    bool stored;
    bool readable; /* false: of the wrong type or too large; it has a version, but no digest */
    uint8_t digest[DIGEST_SIZE];
    bool current;
    uint64_t expires_ns;
};
uint64_t redis_known_see(struct redis_known *known, const struct odds_subject *subject,
                         const struct redis_seen *seen);

#endif
