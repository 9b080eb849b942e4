#pragma once

#include <sys/queue.h>

#include "base/digest.h"
#include "stores/odds.h"

/*
 * The odds store for feeds and operators (the rules on threads in odds.h hold here too):
 * publications, the lists of events, and a copy of the whole.
 */

struct odds_change {
    enum odds_kind kind;
    enum sport sport;
    struct event_id event; /* for ODDS_MARKETS */
    const char *bytes;     /* NULL: withdraw the value, or `renew` */
    size_t size;           /* at most ODDS_VALUE_MAX */
    uint32_t expires_s;    /* after so long it is as withdrawn; 0: it stays */
    /* Let the stored value expire `expires_s` from now, if it expires, has not expired, and its
     * bytes have the SHA-1 `renewed`. */
    bool renew;
    uint8_t renewed[DIGEST_SHA1_SIZE];
};
#define ODDS_EXPIRES_MOST_S 86400U

/* Publishes all changes durably before it returns; the embedded engine does all of them or none.
 * The next request sees them (with Redis see docs/feed.md, "When a publication is seen"). Blocks.
 * STATUS_FULL: the disk is full. A value that is not there may be withdrawn. */
MUST_CHECK enum status odds_store_publish(struct odds_store *store,
                                          const struct odds_change *changes, size_t count,
                                          struct error *error);

/* Changes that are stored together: all of them or none, on every engine, and seen at once. */
struct odds_publication {
    STAILQ_ENTRY(odds_publication) others;
    const struct odds_change *changes; /* in bounds */
    size_t count;                      /* at least 1 */
    enum status status;                /* the store's, when it is over */
    char *reason;                      /* why it failed, for people: memory_free it; else NULL */
};
STAILQ_HEAD(odds_publications, odds_publication);

/* Publications that go to the store at one time, each with a result of its own. The caller's, as
 * all that it leads to, until they are over. */
struct odds_publishing {
    struct odds_publications list; /* not empty */
    void (*done)(struct odds_publishing *publishing);
    void *owner; /* for the caller's use */
};

/*
 * Publishes them in their order, each durably. One that fails changes nothing and does not hinder
 * the others, unless the store is away.
 *
 * STATUS_OK: they are over, and `done` is not called. STATUS_PENDING: `done` will be called, once,
 * by a thread of the engine, perhaps before this returns; it must not block. The same thread may
 * publish more before `done` is called; those are carried out after these.
 */
MUST_CHECK enum status odds_store_publish_each(struct odds_store *store,
                                               struct odds_publishing *publishing);

struct odds_interest {
    struct event_id event;
    int64_t requested_ms; /* wall clock of the last request */
};

/* Events asked for at or after `since_ms`, latest first. memory_free the list. */
MUST_CHECK enum status odds_store_list_interest(struct odds_store *store, enum sport sport,
                                                int64_t since_ms, struct odds_interest **list,
                                                size_t *count, struct error *error);

/* The events of a sport that have odds, in no particular order. Publications and withdrawals during
 * the call may be missing. Blocks. memory_free the list. */
MUST_CHECK enum status odds_store_list_events(struct odds_store *store, enum sport sport,
                                              struct event_id **list, size_t *count,
                                              struct error *error);

/* Writes the whole store, as of one moment, into a new file of mode 0600, whose bytes (not its
 * name) are on disk when this returns. Feeds go on. STATUS_INVALID: the engine is a server.
 * STATUS_FULL: there is no room for it. Blocks. */
MUST_CHECK enum status odds_store_back_up(struct odds_store *store, const char *path,
                                          struct error *error);
