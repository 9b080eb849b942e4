#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/log.h"
#include "base/status.h"
#include "metrics/metrics.h"
#include "records/event_id.h"
#include "records/sport.h"

/*
 * The odds store: the feed publishes into it, the server reads it. One interface, several engines:
 * `embedded:DIR` (LMDB, stores/odds/lmdb/engine.c); Redis or Valkey by `redis://`, `rediss://`,
 * `unix:` and `redis+sentinel://` (stores/odds/redis/engine.c).
 *
 * For each sport it holds one catalog, for each event one odds document, both JSON text exactly as
 * the feed wrote it; the store neither parses nor checks them. For each sport it also holds which
 * events were asked for lately ("interest").
 *
 * Freshness (docs/decisions/freshness.md). A server keeps ready-made answers in memory.
 * They are right only while the store still holds the values that they were made of. Two functions
 * tell, in place and without I/O that can block:
 *
 *   odds_store_stamp      a number that moves whenever anything in the store may have changed
 *                         (LMDB: the last committed transaction; Redis: reported changes, while
 *                         reports are known to arrive);
 *   odds_store_versions   the versions of one event's two values, asked when the stamp has moved.
 *
 * An answer made from versions (c, o) may be sent if the stamp is one under which (c, o) were
 * confirmed. A version is never reused for other bytes; 0 means "not stored".
 *
 * Threads: any.
 */

struct odds_store;

#define ODDS_VALUE_MAX (32U * 1024 * 1024) /* the largest document, in bytes */

struct odds_store_options {
    const char *uri; /* embedded:DIR | redis://… | rediss://… | unix:… | redis+sentinel://… */
    uint32_t timeout_ms; /* the deadline of one call */
    const char
        *prefix;     /* of key names; engines that share a server with others use it. May be NULL */
    bool create;     /* make the (embedded) store when it is not there at first; never later */
    bool patient;    /* for servers: see odds_store_open */
    bool feeds;      /* it is for publishing: Redis is not asked to report changes, which costs it a
                        message for each publication, so each value that is read is asked for */
    struct log *log; /* borrowed; may be NULL */
};

/*
 * STATUS_INVALID: the URI is unknown or malformed. A fault that may end while the process runs (a
 * directory that is missing, unreadable, full or corrupt) is STATUS_UNAVAILABLE or STATUS_MALFORMED
 * with a text that names the path and the reason.
 *
 * A patient store is opened although it cannot be used now: every call returns STATUS_UNAVAILABLE,
 * the reason is logged once, and the engine tries again in the background, at least once a second.
 * It also notices a store that is replaced on disk under its path. Only STATUS_INVALID is still
 * returned.
 *
 * With `create` or `patient`, a new embedded store is begun in the place of a damaged one, which is
 * logged (docs/decisions/embedded-odds.md). If `error` was empty, it then says so although the
 * status is STATUS_OK.
 */
MUST_CHECK enum status odds_store_open(struct odds_store **store,
                                       const struct odds_store_options *options,
                                       struct error *error);

/* No read may be outstanding. */
void odds_store_close(struct odds_store **store);

/* ---- serving --------------------------------------------------------------------------------- */

/* In place, wait-free. STATUS_PENDING: no saying at present, so nothing in memory may be served
 * without asking: odds_store_read will tell. STATUS_UNAVAILABLE or STATUS_TIMEOUT: nothing may be
 * served now. */
MUST_CHECK enum status odds_store_stamp(struct odds_store *store, uint64_t *stamp);

#define ODDS_VERSION_UNKNOWN UINT64_MAX /* this engine cannot tell without asking */

struct odds_versions {
    uint64_t stamp;   /* the stamp under which the two are right */
    uint64_t catalog; /* 0: never published */
    uint64_t odds;    /* 0: no odds payload, or no event was asked for */
};

/* In place, does not block. `event` may be NULL. STATUS_PENDING: this engine can tell neither
 * without asking; use odds_store_read, whose result carries the version. It may also be able to
 * tell one and not the other, which is ODDS_VERSION_UNKNOWN then. */
MUST_CHECK enum status odds_store_versions(struct odds_store *store, enum sport sport,
                                           const struct event_id *event,
                                           struct odds_versions *versions);

enum odds_kind { ODDS_CATALOG, ODDS_MARKETS };

struct odds_value {
    uint64_t stamp;       /* the stamp under which `version` is right */
    uint64_t version;     /* 0: not stored, bytes is NULL */
    int64_t published_ms; /* wall clock; 0 when the engine does not know */
    char *bytes;          /* memory_free it; one NUL beyond `size` */
    size_t size;
};

/*
 * Reads one value. An engine that has it at hand returns STATUS_OK and fills `value` at once (also
 * when nothing is stored: version 0). An engine that must ask returns STATUS_PENDING; then `done`
 * is called once, later, on a thread of the engine's, within the store's deadline, with `result`
 * set: STATUS_OK, STATUS_UNAVAILABLE, STATUS_TIMEOUT, or STATUS_MALFORMED (a stored value of the
 * wrong type, too large, or damaged: that key alone). `done` is not called when anything but
 * STATUS_PENDING is returned. The struct stays the caller's, and must live until then.
 */
struct odds_part {
    size_t at, max; /* wanted: at most `max` bytes, from `at` on; `max` 0: none */
    char *bytes;    /* NULL: not known, as when something was changed in between. memory_free it */
    size_t size;    /* less than `max` where the document ends before */
};

struct odds_read {
    enum odds_kind kind;
    enum sport sport;
    struct event_id event; /* for ODDS_MARKETS */
    /* For ODDS_MARKETS: this part of the sport's catalog, as of the moment of the value. It proves
     * that an answer made of both holds values that were stored together. */
    struct odds_part catalog;
    void (*done)(struct odds_read *read);
    enum status result;
    struct odds_value value;
};
MUST_CHECK enum status odds_store_read(struct odds_store *store, struct odds_read *read);
/* For commands, which have time: returns the result, never STATUS_PENDING. Sets `done` itself. */
MUST_CHECK enum status odds_store_read_and_wait(struct odds_store *store, struct odds_read *read);

/* When an event's odds were last published, by the wall clock, if the store has the time in memory;
 * 0: it has not, or there are no odds. Returns at once, does not block. */
int64_t odds_store_published_ms(struct odds_store *store, enum sport sport,
                                const struct event_id *event);

/* Asks the store itself whether the caller may read odds (health), or do all that a server does
 * (`croupier check`). Blocks up to the deadline of the store; changes nothing. The error's text
 * names the missing right. */
enum odds_need { ODDS_TO_READ, ODDS_TO_SERVE };
MUST_CHECK enum status odds_store_ping(struct odds_store *store, enum odds_need need,
                                       struct error *error);

/* Records that a client asks for an event now. Never blocks, never fails: the record goes to a
 * bounded queue (dropped and counted when full). The engine writes it in the background, at most
 * once a second for an event. */
void odds_store_note_interest(struct odds_store *store, enum sport sport,
                              const struct event_id *event);

/* ---- what changes ---------------------------------------------------------------------------- */

struct odds_subject {
    enum odds_kind kind;
    enum sport sport;
    struct event_id event; /* for ODDS_MARKETS */
};

/*
 * Reports changes when the store itself announces them (LMDB: a commit; Redis: an invalidation),
 * after the stamp has moved; croupier does not poll for them. A report may be wrong (the value has
 * not changed), and several changes may share one report. But each change is reported, or
 * everything is. On a thread of the engine's, one call at a time; it must return soon.
 */
struct odds_watch {
    /* `subject` NULL: the changed value is not known; perhaps everything. */
    void (*changed)(struct odds_watch *watch, const struct odds_subject *subject);
};

/* Replaces the watch before, which is not called any more. NULL: there is no watch. Of a patient
 * store. */
void odds_store_watch(struct odds_store *store, struct odds_watch *watch);

/* ---- budgets of requests that several servers share ------------------------------------------ */

/*
 * A lease: a part of a client's budget for the current window, drawn from the store for this server
 * alone. Windows are fixed and aligned to the epoch by the store's clock. All leases of one window
 * together never exceed the budget, even if the servers' clocks differ. Units that are not spent by
 * the window's end are void. The engine chooses how much it grants: at least `demand` if so much is
 * left, else a share that shrinks towards the end. So little is stranded with a server that goes
 * idle, and one server alone can draw the whole budget in a few dozen leases.
 *
 * The server reports its knowledge, in case the store has lost its own (restarted empty, failed
 * over): the use that it saw last, and the units that it has admitted without the store, which the
 * store adds. Both hold for the window that began at `since`, and the store ignores them in any
 * other.
 *
 * Always asynchronous. Returns STATUS_PENDING; then `done` is called once, later, on a thread of
 * the engine's, within the store's deadline. `result` is STATUS_OK, STATUS_UNAVAILABLE,
 * STATUS_TIMEOUT (the store may or may not have granted) or STATUS_MALFORMED (the value under that
 * name, or the answer, is malformed). Any other returned status: the request was not sent, and
 * `done` is not called. The struct stays the caller's, and must live until `done`.
 */
#define ODDS_LEASE_CLIENT_SIZE 64

struct odds_lease {
    char client[ODDS_LEASE_CLIENT_SIZE]; /* whose budget; no spaces; NUL-terminated */
    uint32_t window_seconds;             /* above 0 */
    uint32_t limit;                      /* the budget of a window, above 0 */
    uint32_t demand;                     /* requests that wait for it now, above 0 */
    uint32_t since;                      /* start of a window, seconds since the epoch */
    uint32_t since_used;                 /* drawn units, as the store reported */
    uint32_t since_spent;                /* admitted in it without the store, not reported yet */
    void (*done)(struct odds_lease *lease);
    /* the answer */
    enum status result;
    uint32_t granted;     /* may be 0 */
    int64_t left;         /* to draw after that; negative: more was drawn than `limit` */
    uint32_t start;       /* since when draws are counted: tells one window from the next */
    uint64_t left_us;     /* from the moment the store answered to the end of the window */
    int64_t store_ms;     /* the store's wall clock at that moment */
    uint64_t answered_ns; /* our monotonic clock when the answer came */
};

/* Whether this engine has leases; without, each server limits for itself. */
bool odds_store_has_leases(const struct odds_store *store);
MUST_CHECK enum status odds_store_lease(struct odds_store *store, struct odds_lease *lease);

/* For /metrics. */
struct odds_facts {
    int64_t
        published_ms[SPORT_COUNT]; /* last publication of anything of the sport; 0: never seen */
    uint64_t reads;                /* values read */
    uint64_t errors;               /* calls that failed */
    uint64_t reopened;             /* times the store was opened or connected again */
    uint64_t interest_written;
    uint64_t interest_dropped;
    bool connected;         /* or open */
    uint64_t invalidations; /* changes that a server has reported */
    uint64_t round_trip_ns; /* to a server and back, of late; 0: not known */
};
void odds_store_facts(struct odds_store *store, struct odds_facts *facts);
extern const struct metric odds_metrics[];

/* ---- feeding --------------------------------------------------------------------------------- */

struct odds_change {
    enum odds_kind kind;
    enum sport sport;
    struct event_id event; /* for ODDS_MARKETS */
    const char *bytes;     /* NULL: withdraw the value */
    size_t size;           /* at most ODDS_VALUE_MAX */
};

/* Publishes all changes durably before it returns; the embedded engine does all of them or none.
 * Blocks. STATUS_FULL: the disk is full. A value that is not there may be withdrawn. */
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
 * name) are on disk when this returns. Feeds go on. Of an engine that is a server: STATUS_INVALID.
 * STATUS_FULL: there is no room for it. Blocks. */
MUST_CHECK enum status odds_store_back_up(struct odds_store *store, const char *path,
                                          struct error *error);
