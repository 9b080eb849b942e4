#pragma once

#include "stores/platform/engine.h"
#include "stores/platform/postgres/fact_cache.h"
#include "stores/platform/postgres/uri.h"

/*
 * The PostgreSQL engine's connection, shared by the files that put statements through it:
 * session.c owns connecting and transactions; wire.c the conversation with the server, its
 * deadlines and failures; the others hold statements. Queries are those of stores/platform/sql.h.
 * One connection, one thread at a time.
 *
 * A call is: postgres_ready (or postgres_transact, which begins with it), then postgres_run any
 * number of times. All queries of one postgres_run go out together (libpq's pipeline mode) and cost
 * one round trip. `timeout_ms` counts from postgres_ready or postgres_resume, over everything up to
 * the next of them, connecting included; rows that are streamed renew it as they arrive.
 *
 * A connection that was lost or that timed out is closed at once, which also ends the transaction
 * in it, and `connection` is NULL until the next postgres_ready.
 */

#define POSTGRES_VERSION_MIN 150000
#define POSTGRES_STATEMENTS_MAX 128
#define POSTGRES_IDENTITY_SIZE 160
#define POSTGRES_PATIENCE_MS 600000U /* without a sound, in an audit or a migration */

#define POSTGRES_STORE_MAGIC 0x50475351U

/* Settings, prepared statements and locks belong to a session, which a pooler hands to others. */
#define POSTGRES_POOLER                                                         \
    "a pooler such as PgBouncer answers there, and croupier needs sessions of " \
    "its own; name PostgreSQL itself in [platform] store"

struct postgres_store {
    struct platform_store base;
    uint32_t magic;     /* POSTGRES_STORE_MAGIC: it is one of this engine's */
    PGconn *connection; /* NULL: to be opened by the next call */
    struct postgres_target *target;
    const char *location; /* for texts: "postgresql://host:5432/database", never with a secret */
    uint32_t timeout_ms;
    bool create;
    bool dismissed;   /* the server has said that it ends the connection */
    bool counted;     /* in facts->connections */
    bool failed;      /* while a conversation runs: the connection is to be closed when it ends */
    bool snapshot;    /* between snapshot_begin and snapshot_end */
    bool patient;     /* silence is allowed for POSTGRES_PATIENCE_MS and not for timeout_ms */
    bool commit_sent; /* since postgres_ready or postgres_resume, and not yet refused */
    bool warned;      /* the server warned while it committed: the commit is not to be trusted */
    bool unknown;     /* whether the commit that was sent happened is not known */
    bool doubtful;    /* a session that was left may still be at its commit: to be looked for */
    bool repeatable;  /* the last failure changed nothing, and goes away by doing it again */
    char sqlstate
        [6]; /* of the last error that the server answered; "" when it was none of its own */
    uint64_t deadline_ms;                  /* monotonic */
    char identity[POSTGRES_IDENTITY_SIZE]; /* of the database that was connected last; "": none */
    uint64_t timeline;                     /* of that: as in struct platform_facts */
    size_t host;                           /* the one that answered last */
    size_t only;                           /* from 1, the one to use; 0: any */
    uint32_t connects;                     /* of this handle */
    struct log *log;
    struct platform_facts *facts; /* `own` where the program counts nothing */
    struct platform_facts own;
    struct { /* kept between batches of the ledger */
        struct fact_cache players, owners;
        uint32_t connects;   /* the connection that these are of */
        bool lock_clearings; /* a limit was met: lock them first */
    } ledger;
    struct {
        const char *sql;
        enum { POSTGRES_NEW, POSTGRES_SENT, POSTGRES_PREPARED } state;
    } statements[POSTGRES_STATEMENTS_MAX];
    size_t statement_count;
};

static inline struct postgres_store *postgres_store_of(struct platform_store *store)
{
    struct postgres_store *mine = (struct postgres_store *)(void *)store; /* `base` comes first */
    CHECK(mine != NULL && mine->magic == POSTGRES_STORE_MAGIC);
    return mine;
}

/* ---- session.c ------------------------------------------------------------------------------- */

/*
 * Call it before anything else in a call: it makes sure of a connection without an open
 * transaction, and sets the deadline. A connection that died while it was idle is opened again
 * without a word, unless what answers is another database than before: STATUS_UNAVAILABLE, once.
 * Inside a snapshot the connection must still be the one it began on.
 */
MUST_CHECK enum status postgres_ready(struct postgres_store *store, struct error *error);

/* Inside a transaction that an earlier call left open: sets the deadline again. STATUS_UNAVAILABLE
 * when the connection is gone, and the transaction with it. */
MUST_CHECK enum status postgres_resume(struct postgres_store *store, struct error *error);

/*
 * A server session that waits for a synchronous standby does not notice that its client has gone.
 * While the standby is away, each further attempt would leave one more such session behind, until
 * the server has no more. So croupier commits nothing while one of this user's sessions waits for
 * longer than is usual: STATUS_UNAVAILABLE. Call it before the first change of a handle, which may
 * replace one that was closed, and after a commit that timed out (`doubtful`).
 */
MUST_CHECK enum status postgres_may_commit(struct postgres_store *store, struct error *error);

/*
 * One call that reads: ready, and the queries; once more when the connection turns out to be dead
 * before anything was streamed.
 */
MUST_CHECK enum status postgres_read(struct postgres_store *store, struct sql_query *queries,
                                     size_t count, struct error *error);

/* The same with all queries, at most FLIGHT_MAX, in one snapshot of the store, however long they
 * take. */
MUST_CHECK enum status postgres_read_snapshot(struct postgres_store *store,
                                              struct sql_query *queries, size_t count,
                                              struct error *error);

/*
 * One call that changes something: ready, `body`, commit (or rollback when the body fails). The
 * body's first query is postgres_begin, in the same postgres_run as what follows it; its last may
 * be postgres_commit, when nothing has to be decided before. It is run again from its start, a
 * bounded number of times and within the deadline, after a serialization failure, a deadlock, or a
 * connection that was lost before a commit was sent; so it must set all that it returns.
 */
MUST_CHECK enum status postgres_transact(struct platform_store *base, sql_body *body, void *context,
                                         struct error *error);

/* Ends the transaction that is open, if one is: commits when `status` is STATUS_OK, else rolls
 * back. Returns `status`, or the commit's. Not STATUS_OK with `unknown` set: whether the commit
 * happened is not known; without it, nothing was changed. */
MUST_CHECK enum status postgres_end(struct postgres_store *store, enum status status,
                                    struct error *error);

/* Everything read between these two comes from one snapshot. */
enum status postgres_snapshot_begin(struct platform_store *base, struct error *error);
void postgres_snapshot_end(struct platform_store *base);

/* For engine.c: connects to any host when there is no connection; and forgets the outcome that the
 * last call noted. */
MUST_CHECK enum status postgres_connect_any(struct postgres_store *store, bool create,
                                            struct error *error);
void postgres_forget_outcome(struct postgres_store *store);

/* ---- wire.c ---------------------------------------------------------------------------------- */

/* The texts that begin and end transactions; by address, as every other statement. */
extern const char postgres_begin[]; /* read committed: for changes, which lock what they read */
extern const char postgres_begin_snapshot[]; /* repeatable read, read only */
extern const char postgres_commit[];
extern const char postgres_rollback[];

/* The deadline, from now on. */
void postgres_renew(struct postgres_store *store);

/* Connects to one host by the deadline, and configures the connection. */
MUST_CHECK enum status postgres_connect(struct postgres_store *store, size_t host,
                                        struct error *error);
void postgres_disconnect(struct postgres_store *store);

/* Is the idle connection still there, as far as can be known without asking? */
bool postgres_is_alive(struct postgres_store *store);

/*
 * Sends the queries in one go and reads all answers. When all have succeeded, the rows of those
 * that are no streams are handed on. On failure the first error is reported, later queries were not
 * executed, and a transaction that is open can only be rolled back (postgres_end does).
 */
MUST_CHECK enum status postgres_run(struct postgres_store *store, struct sql_query *queries,
                                    size_t count, struct error *error);

/* Executes a script of several statements without parameters or rows. */
MUST_CHECK enum status postgres_execute(struct postgres_store *store, const char *script,
                                        struct error *error);

/* ---- statements ------------------------------------------------------------------------------ */

/* record_queries.c */
extern const struct sql_verbs postgres_sql;

/* ledger_load.c, ledger.c, ledger_read.c */
enum status postgres_ledger_begin(struct platform_store *, struct ledger_batch *, struct error *);
enum status postgres_ledger_commit(struct platform_store *, const struct ledger_batch *, bool *,
                                   struct error *);
void postgres_ledger_forget(struct postgres_store *); /* the facts that it keeps between batches */
enum status postgres_ledger_recover(struct platform_store *, struct error *);
enum status postgres_ledger_balances(struct platform_store *, struct ledger_batch_player *, size_t,
                                     struct error *);
enum status postgres_ledger_id(struct platform_store *, struct ledger_fact *, struct error *);
enum status postgres_ledger_advance(struct platform_store *, struct ledger_horizon *,
                                    struct error *);
/* platform/postgres/audit.c */
enum status postgres_ledger_integrity(struct platform_store *, const char **, struct error *);
