#ifndef CROUPIER_SPORTS_SHARED_H
#define CROUPIER_SPORTS_SHARED_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/mailbox.h"
#include "sports/entry.h"
#include "sports/event_table.h"
#include "sports/sports.h"

/*
 * What the caches share: the newest entry of every catalog and of every event that is asked for,
 * and the jobs that make new ones. Private to src/sports.
 *
 * A cache looks for an entry that the store confirms; when there is none, it asks for one with an
 * completion. There is one job at a time for each value, whichever caches ask; when it is over,
 * each completion comes home as mail. A job never decides what a request is answered: it only
 * leaves entries behind, and the cache looks again (cache.c says when an entry is fresh enough).
 */

/* What a serving thread counts, in sports_counted_metrics. */
enum {
    SPORTS_ODDS_UNAVAILABLE, /* answers 503 cache_unavailable */
    SPORTS_ODDS_TIMEOUT,     /* answers 504 */
    SPORTS_ODDS_MALFORMED,   /* answers 502 */
    SPORTS_READY_HITS,
    SPORTS_READY_MISSES,
    SPORTS_READY_REBUILDS,
    SPORTS_GZIP_REBUILDS,
};

/* One waiting party. Its owner sets mailbox and mail.deliver; it must not be asked for anything
 * else until its mail has come. */
struct completion {
    struct mail mail; /* first */
    struct mailbox *mailbox;
    /* OK: look again. CONFLICT: look again for what is newer than all that was seen (an event's row
     * and its odds were not stored together). Else why there is nothing new to look at */
    enum status result;
    struct job *job; /* this and `next`: guarded by the lock; NULL: no mail is to be posted */
    struct completion *next;
};

/* The place of one value. */
struct slot {
    struct event_node node; /* first; unused for catalogs */
    struct entry *current;
    struct job *job;
    bool damaged; /* the stored value could not be read the last time; its job's alone */
};

struct sports {
    struct odds_store *odds;
    uint32_t read_ms; /* deadline of a read */
    struct work_pool *pool;
    struct log *log;
    struct answer_counts counts;
    struct answer *lists[1U << SPORT_COUNT]; /* GET /sports, by the set of allowed sports */

    uv_mutex_t lock; /* guards all below, and `job` of every slot, entry and completion */
    struct slot catalogs[SPORT_COUNT];
    struct event_table events; /* of struct slot; only events that were in their catalog */
    size_t job_count;
    uv_cond_t no_jobs;
};

/* How long an entry that is not asked for is kept, and how much all of them may take. */
#define SPORTS_KEEP_MS 60000U
#define SPORTS_EVENTS_MAX 65536U
#define SPORTS_BYTES_MAX ((uint64_t)1024 * 1024 * 1024)

/* The newest entry there is, held, or NULL. */
struct entry *sports_newest_catalog(struct sports *sports, enum sport sport);
struct entry *sports_newest_event(struct sports *sports, enum sport sport,
                                  const struct event_id *id, uint64_t now_ms);

/*
 * These three set the completion on its way: STATUS_PENDING, and mail will come. STATUS_FULL: the
 * pool is busy, and no mail will come. STATUS_OK: nor will it, for what was wanted has come
 * meanwhile: look again. `expected` is the version that the store was seen to hold, or 0. Any
 * thread.
 */
struct completion_for {
    struct completion *completion;
    metrics_cell *counters; /* where the work is counted */
    /* The newest entry that its owner has seen, and when that had been checked then. Without them a
     * job that ends between the owner's look and its completion would be done twice. */
    const struct entry *seen; /* may be NULL */
    uint64_t seen_checked_ns;
    bool both; /* of an event: the catalog moves too fast to be read first; see struct job */
};
MUST_CHECK enum status sports_want_catalog(struct sports *sports, enum sport sport,
                                           uint64_t expected, struct completion_for whom);
/* An event of this catalog entry (held by the job); `row` is one of its rows. */
MUST_CHECK enum status sports_want_event(struct sports *sports, enum sport sport,
                                         struct entry *catalog, const struct catalog_row *row,
                                         uint64_t expected, uint64_t now_ms,
                                         struct completion_for whom);
/* The answer of this entry (held by the job): the list of a catalog; gzipped too when `gzip`. */
MUST_CHECK enum status sports_want_answer(struct sports *sports, struct entry *entry, bool gzip,
                                          struct completion_for whom);

/* Calls the completion back. False: its mail is on its way already. */
bool sports_forget(struct sports *sports, struct completion *completion);

/* ---- jobs (job.c) and the tables (table.c) --------------------------------------------------- */

enum job_kind { JOB_CATALOG, JOB_EVENT, JOB_ANSWER };

struct job {
    struct work work; /* first */
    struct sports *sports;
    metrics_cell *counters;
    enum job_kind kind;
    enum sport sport;
    struct job **place;            /* where others find this job: the slot's or the entry's */
    struct slot *slot;             /* CATALOG, EVENT: where the entry goes */
    struct entry *source;          /* held. EVENT: the catalog; ANSWER: what to complete */
    struct entry *before;          /* held, may be NULL. ANSWER: the entry that `source` replaced */
    const struct catalog_row *row; /* EVENT: in the source's catalog, or in `read_catalog` */
    bool both;                     /* EVENT: reads the catalog as well, as of the same moment */
    struct catalog *read_catalog;  /* that one; may be NULL */
    uint64_t expected;             /* version, or 0 */
    uint64_t started_ns;           /* before anything was read */
    bool gzip;                     /* ANSWER */
    bool reading;
    struct odds_read read;
    struct completion *completions; /* guarded by the lock */
};

/* The work; ends in sports_finish. On a pool thread. */
void job_run(struct work *work);

/* For a few look-ups; nothing slow happens between the two. */
void sports_lock(struct sports *sports);
void sports_unlock(struct sports *sports);

/* With the lock held. A job that was started is in its draft's place until sports_finish or, when
 * it could not be submitted, sports_cancel_job. */
struct job *sports_start_job(const struct job *draft);
void sports_cancel_job(struct job *job);
void sports_drop_event(struct sports *sports, struct slot *slot);
void sports_drop_old_events(struct sports *sports, uint64_t now_ms);

bool sports_too_large(const struct sports *sports);

/* Puts the entry into the slot (the reference is taken over) in place of the one that is there. */
void sports_publish(struct sports *sports, struct slot *slot, struct entry *entry);
struct entry *sports_hold_current(struct sports *sports, struct slot *slot);

/* A job without completions, run by the calling thread. NULL: there is one already. */
struct job *sports_follow_up(struct sports *sports, const struct job *draft);

/* Takes the job from its place, posts all completions with `result`, frees it. */
void sports_finish(struct job *job, enum status result);

#endif
