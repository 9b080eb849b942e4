#pragma once

#include "stores/odds.h"

/*
 * The odds store for servers (the rules on threads in odds.h hold here too): values, and whether
 * ready-made answers still hold.
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
 */

/* In place, wait-free. STATUS_PENDING: no saying at present, so nothing in memory may be served
 * without asking: odds_store_read will tell. STATUS_UNAVAILABLE or STATUS_TIMEOUT: nothing may be
 * served now. */
MUST_CHECK enum status odds_store_stamp(struct odds_store *store, uint64_t *stamp);

/* In place, wait-free. True: the store cannot report changes at present (Redis without CLIENT
 * TRACKING). Then odds_store_stamp gives STATUS_PENDING while all is well too, and the watch hears
 * every ask_ms that all values may be new. */
bool odds_store_asks(struct odds_store *store);

#define ODDS_VERSION_UNKNOWN UINT64_MAX /* this engine cannot tell without asking */

struct odds_versions {
    uint64_t stamp;   /* the stamp under which the two are right */
    uint64_t catalog; /* 0: never published */
    uint64_t odds;    /* 0: no odds payload, or no event was asked for */
};

/* Answers in place, without blocking. `event` may be NULL. STATUS_PENDING: this engine can tell
 * neither without asking; use odds_store_read, whose result carries the version. It may also be
 * able to tell one and not the other, which is ODDS_VERSION_UNKNOWN then. */
MUST_CHECK enum status odds_store_versions(struct odds_store *store, enum sport sport,
                                           const struct event_id *event,
                                           struct odds_versions *versions);

struct odds_value {
    uint64_t stamp;       /* the stamp under which `version` is right */
    uint64_t version;     /* 0: not stored, bytes is NULL */
    int64_t published_ms; /* wall clock; 0 when the engine does not know */
    char *bytes;          /* memory_free it; one NUL beyond `size` */
    size_t size;
    uint32_t expires_s; /* the time that is left, at least 1; 0: it stays */
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
    /* ODDS_MARKETS also returns this part of the sport's catalog, as of the moment of the value. It
     * proves that an answer made of both holds values that were stored together. */
    struct odds_part catalog;
    /* The version that the caller has that part of; 0: none. A store that sees it at the moment of
     * the value may set `same_catalog` and leave the part out. */
    uint64_t catalog_version;
    bool same_catalog;
    void (*done)(struct odds_read *read);
    enum status result;
    struct odds_value value;
};
MUST_CHECK enum status odds_store_read(struct odds_store *store, struct odds_read *read);
/* Commands, which have time, use this: it returns the result, never STATUS_PENDING. Sets `done`
 * itself. */
MUST_CHECK enum status odds_store_read_and_wait(struct odds_store *store, struct odds_read *read);

/* When an event's odds were last published, by the wall clock, if the store has the time in memory;
 * 0: it has not, or there are no odds. Returns at once, does not block. */
int64_t odds_store_published_ms(struct odds_store *store, enum sport sport,
                                const struct event_id *event);

/* Records that a client asks for an event now. Never blocks, never fails: the record goes to a
 * bounded queue (dropped and counted when full). The engine writes it in the background, at most
 * once a second for an event. */
void odds_store_note_interest(struct odds_store *store, enum sport sport,
                              const struct event_id *event);

/*
 * Reports changes when the store itself announces them (LMDB: a commit; Redis: an invalidation),
 * after the stamp has moved; croupier does not poll for them. A report may be wrong (the value has
 * not changed), and several changes may share one report. But each change is reported, or
 * everything is. On a thread of the engine's, one call at a time; it must return soon.
 */
struct odds_watch {
    /* The values that changed together. `count` 0: they are not known; perhaps everything. */
    void (*changed)(struct odds_watch *watch, const struct odds_subject *subjects, size_t count);
};

/* Replaces the watch before, which is not called any more. NULL: there is no watch. The store is a
 * patient one. */
void odds_store_watch(struct odds_store *store, struct odds_watch *watch);
