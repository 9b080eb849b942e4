#ifndef CROUPIER_STORES_ODDS_REDIS_LINK_H
#define CROUPIER_STORES_ODDS_REDIS_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/mailbox.h"
#include "base/status.h"
#include "base/text.h"
#include "stores/odds.h"
#include "stores/odds/redis/options.h"
#include "stores/odds/redis/reply.h"

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

#endif
