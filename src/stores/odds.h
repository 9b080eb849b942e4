#pragma once

#include "base/log.h"
#include "metrics/metrics.h"
#include "records/event_id.h"
#include "records/sport.h"

/*
 * The odds store: the feed publishes into it, the server reads it. One interface, several engines:
 * `embedded:DIR` (LMDB, stores/odds/lmdb/engine.c); Redis or Valkey by `redis://`, `rediss://`,
 * `unix:`, `redis+sentinel://` and `rediss+sentinel://` (stores/odds/redis/engine.c).
 *
 * For each sport it holds one catalog, for each event one odds document, both JSON text exactly as
 * the feed wrote it; the store neither parses nor checks them. For each sport it also holds which
 * events were asked for lately ("interest").
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
    uint32_t ask_ms; /* between looks at a store that reports no changes; 0: 100 */
    bool feeds;      /* it is for publishing: Redis is not asked to report changes, which costs it a
                        message for each publication, so each value that is read is asked for */
    struct log *log; /* borrowed; may be NULL */
};

/*
 * STATUS_INVALID: the URI is unknown or malformed. A fault that may end while the process runs (a
 * directory that is missing, unreadable, full or corrupt) is STATUS_UNAVAILABLE or STATUS_MALFORMED
 * with a text that names the path and the reason.
 *
 * While an open store cannot be used, every call returns STATUS_UNAVAILABLE, the reason is logged
 * once, and the engine tries again in the background, at least once a second. It also notices a
 * store that is replaced on disk under its path. A patient store is opened even if it cannot be
 * used at first. Then only STATUS_INVALID is returned.
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

/* Asks the store itself whether the caller may read odds (health), or do all that a server does
 * (`croupier check`). Blocks up to the deadline of the store; changes nothing. The error's text
 * names the missing right; with STATUS_OK, a setting of the server by which odds may be lost.
 * STATUS_READ_ONLY, to serve: it has the rights and takes no writes; `error` says why. */
enum odds_need { ODDS_TO_READ, ODDS_TO_SERVE };
MUST_CHECK enum status odds_store_ping(struct odds_store *store, enum odds_need need,
                                       struct error *error);

enum odds_kind { ODDS_CATALOG, ODDS_MARKETS };

struct odds_subject {
    enum odds_kind kind;
    enum sport sport;
    struct event_id event; /* for ODDS_MARKETS */
};

/* For /metrics. */
struct odds_facts {
    int64_t
        published_ms[SPORT_COUNT]; /* last publication of anything of the sport; 0: never seen */
    uint64_t reads;                /* values read */
    uint64_t errors;               /* calls that failed */
    uint64_t reopened;             /* times the store was opened or connected again */
    uint64_t interest_written;
    uint64_t interest_dropped;
    /* Values whose time was over without a new publication. Redis: those that were read before. */
    uint64_t expired[SPORT_COUNT];
    int64_t expired_ms[SPORT_COUNT]; /* wall clock, of the last of them; 0: there was none */
    uint64_t connected;              /* 1: connected or open; else 0 */
    uint64_t invalidations;          /* changes that a server has reported */
    uint64_t round_trip_ns;          /* to a server and back, of late; 0: not known */
    uint64_t asks;                   /* as odds_store_asks: 1 or 0 */
};
void odds_store_facts(struct odds_store *store, struct odds_facts *facts);
/* Logs how many values of each sport have expired since the last call. One thread, now and then. */
void odds_store_report_expired(struct odds_store *store, struct log *log);
extern const struct metric odds_metrics[];
