#ifndef CROUPIER_STORES_ODDS_LMDB_LMDB_H
#define CROUPIER_STORES_ODDS_LMDB_LMDB_H

#include <lmdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "records/event_id.h"
#include "records/sport.h"
#include "stores/odds.h"

/*
 * The parts of the embedded engine, for its own files only.
 *
 *   engine.c       the store: life, background thread, who may use what when
 *   values.c       the values environment: snapshots, versions, publishing
 *   records.c      what is in it: records, checksums, the index of events
 *   environment.c  the LMDB environment on disk: opening, writing, noticing change
 *   watch.c        noticing a commit, and what it has changed
 *   verify.c       may LMDB be let near this file? without LMDB, so that no garbage can hurt
 *   interest.c     which events were asked for, in a file of its own, and the queue before it
 *
 * On disk: DIR/values/{data,lock}.mdb and DIR/interest.map. Interest is apart, so that writing it
 * neither moves the stamp nor waits for the feed's commits, and need not be synced.
 */

/* ---- environment.c --------------------------------------------------------------------------- */

struct lmdb_location {
    const char *root; /* DIR */
    bool create;      /* make the folder and its files (not DIR) when they are not there */
    uint32_t wait_ms; /* for others who are opening it */
};

struct lmdb_env {
    MDB_env *env; /* NULL: not open */
    MDB_dbi dbi;
    int folder;   /* its descriptor, for the writer's turn */
    size_t claim; /* on being the only one of this process; 0: none */
    char *data_path;
    char *lock_path;
    struct stat data; /* its size: the largest seen */
    struct stat lock;
};

/* Makes DIR and what is missing above it; that it failed is reported by the opening that
 * follows. */
void lmdb_make_root(const char *root);

/*
 * Opens the environment after its file has been found fit (verify.c), and makes what is missing in
 * it: everything, when it is new, or what an older format did not have. STATUS_UNAVAILABLE,
 * STATUS_MALFORMED (damaged), STATUS_FULL, STATUS_TIMEOUT (others are opening it), with a text that
 * names the path and the reason.
 */
MUST_CHECK enum status lmdb_env_open(struct lmdb_env *env, const struct lmdb_location *location,
                                     struct error *error);

/* It is not used any more; all its transactions have ended. */
void lmdb_env_close(struct lmdb_env *env);

/* Is what is open no longer what is under the path? Says why. One thread at a time. */
bool lmdb_env_changed(struct lmdb_env *env, const char **why);
/* Is its file the one under the path? Any thread. */
bool lmdb_env_in_place(const struct lmdb_env *env);

/* Ends a transaction, which may be NULL, from outside of a guarded body. False: it faults. */
bool lmdb_abort(MDB_txn *txn);

/* What an LMDB result means. STATUS_INTERNAL: the environment is broken and must be opened
 * again. */
enum status lmdb_status(const struct lmdb_env *env, int result);

/* ---- verify.c -------------------------------------------------------------------------------- */

#define LMDB_TRANSACTION_BITS 40 /* a transaction number; the rest of a version is the epoch */

/* Looks at the meta pages alone: enough that LMDB may be asked to open the file. */
MUST_CHECK enum status lmdb_verify_start(int descriptor, struct error *error);

/* Walks everything that a snapshot reaches, which the caller keeps from being reused.
 * STATUS_MALFORMED: damaged, and where; STATUS_NOT_FOUND: its meta page has been overwritten by
 * later commits, take another; STATUS_UNAVAILABLE: the file cannot be read. */
MUST_CHECK enum status lmdb_verify(int descriptor, uint64_t transaction, struct error *error);

/* ---- records.c ------------------------------------------------------------------------------- */

/* Results are LMDB's; MDB_CORRUPTED: what should be here is damaged or missing. All of it inside
 * odds_guard_run; whoever calls frees an edit outside, and ends its transaction. */

#define LMDB_RECORD_MAX ODDS_VALUE_MAX
#define LMDB_BUCKETS 128 /* of the index: part of the format, as is LMDB_SPORTS */
#define LMDB_SPORTS 16
_Static_assert(SPORT_COUNT <= LMDB_SPORTS, "a sport has a place in the root");

struct lmdb_key {
    size_t size;
    char bytes[64];
};
struct lmdb_key lmdb_key_of(enum odds_kind kind, enum sport sport, const struct event_id *event);

/* The record `root`, as stored. Times are of a sport's last publication. */
struct lmdb_root {
    uint64_t identity; /* of this store, random */
    int64_t published_ms[LMDB_SPORTS];
    uint64_t catalogs[LMDB_SPORTS]; /* the transaction that wrote it; 0: there is none */
    uint64_t buckets[LMDB_BUCKETS]; /* the same */
};

/* A snapshot, with its root once that has been read. */
struct lmdb_view {
    MDB_txn *txn;
    MDB_dbi dbi;
    struct lmdb_root root;
    uint64_t root_checksum; /* as stored; 0: no root has been read */
};
int lmdb_root_read(struct lmdb_view *view, uint64_t transaction);

/* Which transaction wrote the event's odds; 0: it has none. */
int lmdb_index_find(const struct lmdb_view *view, enum sport sport, const struct event_id *event,
                    uint64_t *transaction);
/* Calls for every event that has odds; MDB_CORRUPTED when there may be more. */
typedef void lmdb_index_visit(void *context, enum sport sport, const struct event_id *event,
                              uint64_t transaction);
int lmdb_index_each(const struct lmdb_view *view, lmdb_index_visit *visit, void *context);

/* What the index said when it was looked at last. Zeroed: nothing was. */
struct lmdb_seen {
    uint64_t transaction;
    uint64_t catalogs[LMDB_SPORTS];
    uint64_t buckets[LMDB_BUCKETS];
    struct buffer entries[LMDB_BUCKETS]; /* the buckets' bytes */
};
/* Calls for what differs from `seen`, and makes `seen` what the snapshot says. NULL: the part of
 * the index that would tell is damaged. */
typedef void lmdb_change_visit(void *context, const struct odds_subject *subject);
void lmdb_index_changes(const struct lmdb_view *view, struct lmdb_seen *seen,
                        lmdb_change_visit *visit, void *context);
void lmdb_seen_clear(struct lmdb_seen *seen);

struct lmdb_record {
    uint64_t checksum;
    uint64_t transaction;
    int64_t published_ms;
    const char *bytes; /* in the map: valid while the snapshot is kept */
    size_t size;
};
/* The record under a key that this transaction wrote. Its bytes are not checked yet. */
int lmdb_record_find(const struct lmdb_view *view, const struct lmdb_key *key, uint64_t transaction,
                     struct lmdb_record *record);
/* Are `bytes` (the record's, or a copy of them) what was published under this key? */
bool lmdb_record_is_whole(const struct lmdb_record *record, uint64_t identity,
                          const struct lmdb_key *key, const char *bytes);

/* A write transaction. Zeroed at first. */
struct lmdb_edit {
    struct lmdb_view view; /* its txn is NULL when there is nothing to abort */
    struct buffer buckets[LMDB_BUCKETS];
    bool changed[LMDB_BUCKETS];
    struct buffer older_keys; /* for upgrading */
    struct buffer older_value;
};
/* What a write transaction is for: the result is LMDB's; 0: it is finished and committed then. */
typedef int lmdb_edit_body(struct lmdb_edit *edit, void *context);
int lmdb_edit_put(struct lmdb_edit *edit, const struct odds_change *change, int64_t now_ms);
int lmdb_edit_finish(struct lmdb_edit *edit); /* writes the index */
void lmdb_edit_free(struct lmdb_edit *edit);

/* The body that marks the store as one of this format, and writes what a new one begins with or an
 * older one lacks. */
int lmdb_edit_make(struct lmdb_edit *edit, void *context);

/* A write transaction of its own (environment.c): STATUS_TIMEOUT: it is another process's turn for
 * longer than that. STATUS_MALFORMED: the file faults. Else what `result`, which is LMDB's, means.
 * Nothing is written unless STATUS_OK. */
MUST_CHECK enum status lmdb_env_write(struct lmdb_env *env, uint32_t wait_ms, lmdb_edit_body *body,
                                      void *context, int *result);

enum lmdb_format { LMDB_NO_FORMAT, LMDB_THIS_FORMAT, LMDB_OLDER_FORMAT, LMDB_OTHER_FORMAT };
int lmdb_format_read(MDB_txn *txn, MDB_dbi dbi, enum lmdb_format *format);

/* ---- values.c -------------------------------------------------------------------------------- */

struct lmdb_values;

MUST_CHECK enum status lmdb_values_open(struct lmdb_values **values, const char *root, bool create,
                                        uint64_t epoch, uint32_t wait_ms, struct error *error);
void lmdb_values_close(struct lmdb_values **values); /* no thread uses it any more */

/* Which store this is, and how new: the latest transaction that was read. */
struct lmdb_state {
    uint64_t identity; /* 0: of none */
    uint64_t transaction;
};
struct lmdb_state lmdb_values_state(const struct lmdb_values *values);
uint64_t lmdb_values_damaged(const struct lmdb_values *values); /* when it was opened */
bool lmdb_values_changed(struct lmdb_values *values, const char **why);
bool lmdb_values_in_place(const struct lmdb_values *values); /* any thread */
void lmdb_values_clear_dead_readers(struct lmdb_values *values);

/* A number below LMDB_THREADS by which what threads use is spread, so that few of them share. */
#define LMDB_THREADS 64U
size_t lmdb_thread_number(void);

/* Of all that follow, STATUS_INTERNAL means: broken, retire it. Each does what the verb of its name
 * in stores/odds.h says. Any thread. */
MUST_CHECK enum status lmdb_values_stamp(struct lmdb_values *values, uint64_t *stamp);
MUST_CHECK enum status lmdb_values_versions(struct lmdb_values *values, enum sport sport,
                                            const struct event_id *event,
                                            struct odds_versions *versions);
MUST_CHECK enum status lmdb_values_read(struct lmdb_values *values, struct odds_read *read);
MUST_CHECK enum status lmdb_values_ping(struct lmdb_values *values);
MUST_CHECK enum status lmdb_values_published(struct lmdb_values *values,
                                             int64_t published_ms[SPORT_COUNT]);
MUST_CHECK enum status lmdb_values_back_up(struct lmdb_values *values, const char *path,
                                           struct error *error);
MUST_CHECK enum status lmdb_values_odds_published(struct lmdb_values *values, enum sport sport,
                                                  const struct event_id *event,
                                                  int64_t *published_ms);
MUST_CHECK enum status lmdb_values_list_events(struct lmdb_values *values, enum sport sport,
                                               struct event_id **list, size_t *count,
                                               struct error *error);

/* The same for what has changed since; on one thread. `behind`: something newer is being committed,
 * which cannot be read yet. */
MUST_CHECK enum status lmdb_values_changes(struct lmdb_values *values, struct lmdb_seen *seen,
                                           lmdb_change_visit *visit, void *context, bool *behind);
const char *lmdb_values_path(const struct lmdb_values *values); /* of the data file */

/* One writer of this process at a time. */
MUST_CHECK enum status lmdb_values_write(struct lmdb_values *values,
                                         const struct odds_change *changes, size_t count,
                                         struct error *error);

/* ---- watch.c --------------------------------------------------------------------------------- */

/*
 * The background thread's way of waiting, for whatever comes first: a wake-up, a commit of any
 * process, or the time. A commit writes the data file, of which the kernel tells (inotify).
 */
struct lmdb_watch;

struct lmdb_watch *lmdb_watch_create(struct odds_store *store);
void lmdb_watch_destroy(struct lmdb_watch **watch);

/* Any thread: ends the wait that is under way, or the next one. */
void lmdb_watch_wake(struct lmdb_watch *watch);
/* At most that long. */
void lmdb_watch_wait(struct lmdb_watch *watch, uint64_t ms);
/* Tells the store's watch, if there is one, what has changed in `values`, which the caller keeps
 * from being closed; NULL: there are none. `epoch`: of the opening. */
void lmdb_watch_look(struct lmdb_watch *watch, struct lmdb_values *values, uint64_t epoch);

/* ---- interest.c ------------------------------------------------------------------------------ */

struct lmdb_interest;

struct lmdb_interest *lmdb_interest_create(const char *root, struct log *log);
void lmdb_interest_destroy(struct lmdb_interest **interest); /* writes what is waiting */

/* True: lmdb_interest_tick is wanted soon. */
bool lmdb_interest_note(struct lmdb_interest *interest, enum sport sport,
                        const struct event_id *event);
/* On the background thread, as often as that is wanted and several times a second, while the values
 * are usable. */
void lmdb_interest_tick(struct lmdb_interest *interest);
MUST_CHECK enum status lmdb_interest_list(struct lmdb_interest *interest, enum sport sport,
                                          int64_t since_ms, struct odds_interest **list,
                                          size_t *count, struct error *error);
void lmdb_interest_facts(struct lmdb_interest *interest, struct odds_facts *facts);

#endif
