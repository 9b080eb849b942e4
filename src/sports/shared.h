#pragma once

#include "http/answer.h"
#include "sports/catalog.h"
#include "sports/changes.h"
#include "sports/event_table.h"
#include "sports/sports.h"

/*
 * The state that the caches share: the newest entry of every catalog and of every event that
 * clients ask for, and the jobs that make new ones. Private to src/sports.
 *
 * A cache looks for an entry that the store confirms. If there is none, it asks for one with a
 * completion. There is one job at a time for each value, whichever caches ask; when it ends, each
 * completion comes home as mail. A job never decides what a request is answered: it only leaves
 * entries behind, and the cache looks again (cache.c says when an entry is fresh enough).
 *
 *   cache.c     where a request comes in: a thread's answers and its deferred requests.
 *   waiting.c   polls that wait for a change; changes.c reports the changes to it.
 *   sports.c    the life of the shared state.
 *   table.c     which entry is the newest of a value, and which job makes the next one; joins a
 *               request to the job for a missing entry.
 *   job.c       reads a value on a pool's thread and makes its entry.
 *   entry.c     a value that was read, with its catalog.c or event.c, and its answer.
 *   ages.c      the age of that value.
 *
 * reader.c makes the same for callers that may block, and shares nothing with these.
 */

/* The counters of a serving thread, in sports_counted_metrics. */
enum {
    SPORTS_ODDS_UNAVAILABLE, /* answers 503 cache_unavailable */
    SPORTS_ODDS_TIMEOUT,     /* answers 504 */
    SPORTS_ODDS_MALFORMED,   /* answers 502 */
    SPORTS_READY_HITS,
    SPORTS_READY_MISSES,
    SPORTS_READY_REBUILDS,
    SPORTS_GZIP_REBUILDS,
    SPORTS_DIFFERENCES,
    SPORTS_WAITS,         /* polls that began to wait */
    SPORTS_WAITS_REFUSED, /* polls answered at once because too many waited */
    SPORTS_WAITS_LOOKS,   /* waiting polls judged again */
    SPORTS_WAITS_GONE,    /* waiting polls whose client went away */
};

/* ---- entries (entry.c) ---------------------------------------------------------------------- */

/*
 * The result of one version of a stored value: of a sport's catalog, or of an event's odds together
 * with its catalog row. It is reference-counted. A holder may answer from it for as long as the
 * store confirms its version.
 */
struct entry {
    atomic_uint references;
    struct answer_counts *counts;
    uint64_t version;   /* of the catalog, or of the odds; 0: nothing was stored */
    enum status status; /* OK, NOT_FOUND (version 0), or MALFORMED */

    /* The store held this version at this monotonic time or later. Only ever moves forward. */
    atomic_uint_fast64_t checked_ns;
    /* When a serving thread last answered from it, up to a second late; monotonic. */
    atomic_uint_fast64_t asked_ms;

    /* Wall clock: when it was last published; 0: the store does not know. */
    atomic_int_fast64_t published_ms;

    struct catalog *catalog; /* OK, of a catalog */
    struct text row;         /* OK, of an event: its catalog row, inside the answer's body */
    /* OK: of an event, from the start; the list of a catalog is made when it is first asked for. */
    _Atomic(struct answer *) answer;
    struct answer *list_before; /* held: of a catalog before, for differences; may be NULL */

    struct job *job; /* one that completes the answer; guarded by the lock of struct sports */
};

/* Starts with one reference, without catalog, row and answer. The counts is borrowed. */
struct entry *entry_create(enum status status, uint64_t version, uint64_t checked_ns,
                           struct answer_counts *counts);
struct entry *entry_hold(struct entry *entry);
void entry_release(struct entry **entry);

/* Both take over the reference; each is set once, before others see the entry, or by its job. */
void entry_set_catalog(struct entry *entry, struct catalog *catalog);
void entry_set_answer(struct entry *entry, struct answer *answer);
struct answer *entry_answer(const struct entry *entry); /* borrowed; NULL: not made yet */

/* The store still held it at `checked_ns`. */
void entry_confirm(struct entry *entry, uint64_t checked_ns);

/* ---- requests for jobs ----------------------------------------------------------------------- */

/* A cache's request for a job, which comes back as mail. Its owner sets mailbox and mail.deliver,
 * and may not use it again until its mail has come. */
struct completion {
    struct mail mail; /* first */
    struct mailbox *mailbox;
    /* OK: look again. CONFLICT: look again for an entry newer than all that the owner saw (an
     * event's row and its odds were not stored together). Else the reason why there is no new
     * entry. */
    enum status result;
    struct job *job; /* this and the rest: guarded by the lock; NULL: no mail is to be posted */
    struct completion *next;
    bool here; /* its owner is inside sports_want, so that a result needs no mail */
};

/* The shared state of one value. */
struct slot {
    struct event_node node; /* first; unused for catalogs */
    struct entry *current;
    struct job *job;
    bool damaged; /* the stored value could not be read the last time; only its job uses this */
};

struct sports {
    struct odds_store *odds;
    uint32_t read_ms; /* deadline of a read */
    struct work_pool *pool;
    void (*run_job)(struct work *work); /* job_run: table.c is below job.c */
    struct log *log;
    struct answer_counts counts;
    struct changes *changes;
    atomic_uint waiting; /* polls, of all caches */
    atomic_uint waiting_max;
    atomic_uint stale_after_s;               /* 0: off */
    bool stale_logged[SPORT_COUNT];          /* sports_look_at_ages' */
    struct answer *lists[1U << SPORT_COUNT]; /* GET /sports, by the set of allowed sports */

    uv_mutex_t lock; /* guards all below, and `job` of every slot, entry and completion */
    struct slot catalogs[SPORT_COUNT];
    struct event_table events; /* of struct slot; only events that were in their catalog */
    size_t job_count;
    uv_cond_t no_jobs;
};

/* How long an entry stays that no request asks for, and how much memory all of them may take. */
#define SPORTS_KEEP_MS 60000U
#define SPORTS_EVENTS_MAX 65536U
#define SPORTS_BYTES_MAX ((uint64_t)1024 * 1024 * 1024)

enum job_kind { JOB_CATALOG, JOB_EVENT, JOB_ANSWER };

struct job {
    struct work work; /* first */
    struct sports *sports;
    metrics_cell *counters; /* where the work is counted */
    enum job_kind kind;
    enum sport sport;
    struct job **place;            /* where other requests find it: in the slot or the entry */
    struct slot *slot;             /* CATALOG, EVENT: where the entry goes */
    struct entry *source;          /* held. EVENT: the catalog; ANSWER: what to complete */
    const struct catalog_row *row; /* EVENT: in the source's catalog, or in `read_catalog` */
    bool here;                     /* the thread that wants it runs it, instead of the pool */
    bool both;                     /* EVENT: reads the catalog as well, as of the same moment: it
                                    * moves too fast to be read first */
    struct catalog *read_catalog;  /* the one it read; may be NULL */
    uint64_t expected;             /* the version that the store was seen to hold */
    uint64_t started_ns;           /* before anything was read */
    bool reading;
    struct odds_read read;
    struct completion *completions; /* guarded by the lock */
};

/* The newest entry there is, held, or NULL. The value is a catalog when `event` is NULL. */
struct entry *sports_newest(struct sports *sports, enum sport sport, const struct event_id *event,
                            uint64_t now_ms);

/*
 * Starts a job, or joins the one that is under way for the same value. The caller sets in the
 * draft: counters, kind; sport, expected; EVENT: source, row, both; ANSWER: source.
 * STATUS_PENDING: mail will come. STATUS_OK: the job ran here and has ended, the completion has its
 * result, and no mail comes. STATUS_FULL: the pool is busy, and no mail comes. Any thread.
 * A job that ends between the caller's look and this call runs twice, which costs a read.
 */
MUST_CHECK enum status sports_want(struct sports *sports, struct job draft,
                                   struct completion *completion, uint64_t now_ms);

/* Takes the completion back. False: its mail is on its way already. */
bool sports_forget(struct sports *sports, struct completion *completion);

/* ---- jobs (job.c) and the tables (table.c) --------------------------------------------------- */

/* Runs a job and ends in sports_finish. On a pool thread. */
void job_run(struct work *work);

void sports_drop_event(struct sports *sports, struct slot *slot); /* with the lock held */

/* ---- ages.c ---------------------------------------------------------------------------------- */
void sports_ages(struct sports *sports, struct sports_ages ages[SPORT_COUNT]);
void sports_write_ages(const struct metric *metric, const void *facts, struct buffer *out);

/* The lock is held. */
uint64_t sports_slot_used_ms(const struct slot *slot);

bool sports_too_large(const struct sports *sports);

/* Puts the entry into the slot in place of the one before, and takes over the reference. */
void sports_publish(struct sports *sports, struct slot *slot, struct entry *entry);
struct entry *sports_hold_current(struct sports *sports, struct slot *slot);

/* Takes the job from its place, posts all completions with `result`, frees it. */
void sports_finish(struct job *job, enum status result);
