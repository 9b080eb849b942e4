#pragma once

#include "base/mailbox.h"
#include "stores/odds.h"
#include "stores/odds/redis/cluster.h"
#include "stores/odds/redis/options.h"
#include "stores/odds/redis/wire.h"

/* A link: an I/O thread with a connection to the present master. */
struct redis_link;

/* Starts the thread, which connects and never gives up. */
struct redis_link *redis_link_create(const struct redis_link_options *options);
/* Waits until all calls have ended, at the latest by their deadlines. */
void redis_link_destroy(struct redis_link **link);

/* Waits until the server answers, the first attempt to connect has failed, or that takes too
 * long. */
enum status redis_link_wait(struct redis_link *link, struct error *error);

/*
 * In place, wait-free. STATUS_OK: all changes up to a moment ago were reported, so versions are
 * right. STATUS_PENDING: not certain, or the first attempt after a loss is under way: a call may be
 * submitted. STATUS_UNAVAILABLE, STATUS_TIMEOUT: a call would fail.
 */
enum status redis_link_now(const struct redis_link *link);

/* Any thread. Is the server a node of a cluster? Then it reports every change of a key that it has,
 * and may not report a new key, which another node gets while the slot is being moved. */
bool redis_link_is_cluster(const struct redis_link *link);
/* Any thread. Does the server report no changes? Then redis_link_now never says STATUS_OK. */
bool redis_link_asks(const struct redis_link *link);

/* Any thread. `work` is called soon. */
void redis_link_wake(struct redis_link *link);

/* Sets connected, reopened, invalidations, round_trip_ns and asks. */
void redis_link_facts(const struct redis_link *link, struct odds_facts *facts);

/*
 * Commands, from any thread.
 *
 * The struct is the caller's, who embeds it in another one. It belongs to the link from
 * redis_link_submit until `done` is called, once, on the I/O thread, never inside submit. `bytes`
 * must stay until then. A call ends within its deadline, whatever the server does. At most
 * REDIS_CALLS_MAX are under way; then submit returns STATUS_FULL.
 *
 * The status of `done`: STATUS_OK: all replies have come, error replies too (`reply` got them).
 * STATUS_TIMEOUT, or STATUS_UNAVAILABLE because the connection was lost: the server may or may not
 * have carried out the commands.
 *
 * Settling. Redis reports the changes of one turn of its event loop after the replies of that turn,
 * so a reply may come before the report of an earlier change. A call is settled when a PING that
 * was sent after its last reply is answered. By then the link has read the reports of all changes
 * before the reply, and Redis has sent them to all other clients that track. Where the server
 * reports no changes to this link, there is nothing to settle.
 *
 * In a cluster a command may be redirected: it was not carried out. A call with `again` is then
 * sent whole to the node that has its keys, or once more a moment later, until its deadline. It
 * must be about one key, or watch its keys first. Without `again` and `more` its error replies say
 * so. While a call of a link that feeds is sent again, no later one is sent.
 */
#define REDIS_CALLS_MAX 4096

struct redis_call {
    struct mail mail;               /* first; the link's */
    TAILQ_ENTRY(redis_call) others; /* the link's, like the next four */
    struct redis_link *link;
    struct redis_expected *expected; /* of a sent call: the replies that have to come */
    void *asking;                    /* redis_link_ask's */
    uint64_t deadline_ns;
    enum redis_redirect redirect; /* of the replies that came since it was sent */
    bool redirected;              /* for `reply`: the reply is a redirection */
    bool asked;                   /* sent, or to be sent, to the node that gets the slot; */
    struct buffer kinds;          /* of its replies then, of which */
    unsigned came;                /* so many came */

    struct text bytes;
    unsigned replies; /* to those commands; at least 1 */
    bool again;       /* send it once more when the connection is lost: reads only */
    /* May be NULL. The link calls it when all replies have come, which may be redirections. True:
     * `bytes` and `replies` are what is still to be sent; after REDIS_ASK to the node that gets the
     * slot, which may get redirected commands only. */
    bool (*more)(struct redis_call *call, enum redis_redirect redirect);
    bool settle; /* `done` waits until the call is settled */
    /* Of a call with `again`: a server with a client-output-buffer-limit ends the connection over a
     * reply that is too large. A call that was under way is therefore sent again alone, and ends
     * if the connection is lost once more. `losses` is the caller's to begin with: 1 sends it alone
     * at once. In `done` more than 1 means that the connection was lost because of it. */
    bool may_be_large;
    unsigned losses;
    uint32_t timeout_ms; /* 0: the store's */
    /* May be NULL. The commands are being sent, for the first time or once more. */
    void (*sent)(struct redis_call *call);
    /* May be NULL. The reply is borrowed. */
    void (*reply)(struct redis_call *call, unsigned index, const struct redis_reply *reply);
    void (*done)(struct redis_call *call, enum status status);
};

/* STATUS_PENDING, or why `done` will not be called: STATUS_FULL, STATUS_UNAVAILABLE or
 * STATUS_TIMEOUT. */
MUST_CHECK enum status redis_link_submit(struct redis_link *link, struct redis_call *call);

/* Says why a call failed: redis_link_submit or `done` gave this status. `what` could not be done;
 * `error` may be NULL. */
void redis_link_explain(struct redis_link *link, enum status status, const char *what,
                        struct error *error);

/* Submits the call and waits until it is over; not on the I/O thread. Sets `done`. `error` says why
 * the call failed, as redis_link_explain; error replies are for `reply`. */
MUST_CHECK enum status redis_link_ask(struct redis_link *link, struct redis_call *call,
                                      const char *what, struct error *error);
