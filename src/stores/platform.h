#pragma once

#include "base/log.h"
#include "base/progress.h"
#include "metrics/metrics.h"
#include "records/trail.h"

/*
 * The platform store: customers, their keys, legacy address policies (and, with the casino, games,
 * players and the ledger). One interface, several engines: `sqlite:FILE`
 * (stores/platform/sqlite/engine.c) and `postgresql://…` (stores/platform/postgres/engine.c; a
 * connection a handle). Calls block, up to the store's timeout: they are for the command line and
 * for background threads, never for a thread that serves requests. A call that hands on rows waits
 * so long for each, and not for all of them together.
 *
 * Revisions. Every change of a customer, key or address takes the next revision number of the store
 * and stamps the row with it, in the same transaction, and becomes visible in revision order. So
 * "what changed since R" is a range scan, and rows are never deleted: a revoked key and a removed
 * address stay as marked rows.
 *
 * A database that is gone or failed with an I/O error, and a connection that was lost or timed out,
 * is opened again by the next call on the same handle; a caller just calls again. A server's
 * database that was replaced (a standby that took over) fails one call with STATUS_UNAVAILABLE: a
 * caller with a copy of the rows starts again from revision 0, and does so when the revision is
 * lower than one seen before. A process that has a file open never opens another one in its place
 * (but see `any_file`).
 *
 * Threads: one thread at a time may use a `struct platform_store`; open one for each thread.
 */

struct platform_engine;
struct ledger_verbs;

/* The head of every engine's own struct. */
struct platform_store {
    const struct platform_engine *engine; /* for files in stores/ alone */
    const struct ledger_verbs *ledger;    /* stores/platform_ledger.h */
    const char *location; /* for texts: the file, or the server and database; never a secret */
    const char *server;   /* the one of several that answered last; NULL: there is one */
    const char *unsafe; /* why it may lose what it acknowledged ("fsync = off"); NULL: it may not */
    /* Of a server, when the handle connected: its timeline (0: it takes no changes), when it was
     * started by its own clock, that less this machine's, and whether it names no synchronous
     * standby. */
    uint32_t timeline;
    int64_t started_us, clock_off_ms;
    bool alone;
    struct statements *statements; /* statements of records (stores/platform/statements.c) */
    struct author {
        char who[TRAIL_WHO_SIZE];
        char command[TRAIL_COMMAND_SIZE];
    } author; /* of changes through this handle; see platform_store_act_as */
    /* The user of the handle may set what follows. */
    /* Hears some times a second of progress while the handle migrates or copies a SQLite file, or
     * checks a store's own pages and indexes. It must not use the store. May be NULL. */
    const struct progress_watch *watch;
    /* The handle writes a copy of another store. The copy includes the audit trail as it is, so the
     * handle adds no rows to it. */
    bool copying;
    /* Once it is true, calls of this handle, even one that is under way, end soon with
     * STATUS_UNAVAILABLE: reading the whole ledger must not hold up the end of a process. Any
     * thread may set it, and it lives as long as the handle. May be NULL. */
    const atomic_bool *stop;
    /* Of an engine that is a server: called on the handle's thread whenever the handle has sent
     * something and waits for the server. It must not use the store. May be NULL. */
    void (*on_wait)(void *context);
    void *on_wait_context;
};

/* Counts of all handles of the program. All but the last are of an engine that is a server. */
struct platform_facts {
    atomic_uint_least64_t round_trips;    /* to the server and back, of any size */
    atomic_uint_least64_t round_trip_ns;  /* and how long they took, together */
    atomic_uint_least64_t connections;    /* open now */
    atomic_uint_least64_t connects;       /* successful ones, since the start */
    atomic_uint_least64_t repeats;        /* after a conflict or a lost connection */
    atomic_uint_least64_t timeouts;       /* the server was silent for too long */
    atomic_uint_least64_t read_only;      /* 1: it took no changes when it was last seen */
    atomic_uint_least64_t log_held_bytes; /* of SQLite's log: could not be copied, as readers are
                                             at what comes before them */
    /* The highest timeline of a PostgreSQL that was seen, below a hash of its system identifier. */
    atomic_uint_least64_t timeline;
    atomic_bool unsafe; /* a server that may lose what it acknowledged was seen, and logged */
};

extern const struct metric platform_metrics[];

struct platform_store_options {
    const char *uri;     /* sqlite:FILE, postgresql://USER:PASSWORD@HOST:PORT/DATABASE */
    uint32_t timeout_ms; /* how long a call may wait for the store */
    uint32_t host;       /* of several servers, the one to use, from 1; 0: any */
    bool create;         /* make the database when it is not there (migrate, demo) */
    bool reads;          /* a file on a read-only file system will do; changes then fail */
    bool gives_way;  /* calls that only read let other threads have the processor often (SQLite) */
    bool any_file;   /* of a reader: after a close, the next open takes whichever file is there */
    struct log *log; /* borrowed; may be NULL */
    struct platform_facts *facts; /* borrowed, shared by any number of handles; may be NULL */
};

/* Opens, unless `*store` is open (not NULL), and looks at the schema: a schema older or newer than
 * this program's is STATUS_INVALID with a text that says what to do ("run: croupier migrate"),
 * unless `create` is set, which leaves the schema to platform_store_migrate. STATUS_UNAVAILABLE: it
 * cannot be reached or opened now, with the path and the reason; STATUS_MALFORMED: it is not a
 * database, or damaged; STATUS_NOT_FOUND: the URI has fewer servers than `host`. */
MUST_CHECK enum status platform_store_open(struct platform_store **store,
                                           const struct platform_store_options *options,
                                           struct error *error);
void platform_store_close(struct platform_store **store);

struct platform_schema {
    uint32_t version; /* 0: there is nothing yet */
    uint32_t newest;  /* platform_store_migrate would bring it to this */
    bool can_back_up; /* platform_store_back_up can */
};

/* The schema as it is; of a store that was opened with `create`. */
/* MALFORMED: somebody has changed a check, a trigger or an index by hand; the error names it.
 * `compared` is false where the server does not let this user compare them. */
MUST_CHECK enum status platform_store_check_shape(struct platform_store *store, bool *compared,
                                                  struct error *error);
MUST_CHECK enum status platform_store_schema(struct platform_store *store,
                                             struct platform_schema *schema, struct error *error);

/* Finds out that the store is sound, and writes all of it, as of one moment, into the new file
 * `to`, which is on disk when this returns. NULL: one beside the store, whose name is then in
 * `path`; memory_free it. Of an engine that is a server: STATUS_INVALID. */
MUST_CHECK enum status platform_store_back_up(struct platform_store *store, const char *to,
                                              char **path, struct error *error);

/* Brings the schema up to this program's, one numbered migration after the other, each in its own
 * transaction; safe to repeat and to run twice at once. Out: the versions before and after. */
MUST_CHECK enum status platform_store_migrate(struct platform_store *store, uint32_t *before,
                                              uint32_t *after, struct error *error);

/* Sends a query to the database. */
MUST_CHECK enum status platform_store_ping(struct platform_store *store, struct error *error);
/* The bytes that its database takes. */
MUST_CHECK enum status platform_store_size(struct platform_store *store, int64_t *bytes,
                                           struct error *error);

/* STATUS_READ_ONLY: it answers, and takes no changes. */
MUST_CHECK enum status platform_store_check_writes(struct platform_store *store,
                                                   struct error *error);

/* The author of changes through this handle from now on, and the command ("customer set"), for the
 * audit trail. Plain text that fits its field (CHECKed); "unknown" until this is called. */
void platform_store_act_as(struct platform_store *store, const char *who, const char *command);

/* Numbers that change with every write: revisions, and counts of rows that take none. Players,
 * launches and transactions are counted, which takes long in a snapshot alone. */
#define PLATFORM_STATE_COUNT 7
struct platform_state {
    int64_t counts[PLATFORM_STATE_COUNT]; /* all 0 in a new store */
};
MUST_CHECK enum status platform_state(struct platform_store *store, struct platform_state *state,
                                      struct error *error);
/* The kind that differs between the two ("players"); NULL: they are equal. */
const char *platform_state_difference(const struct platform_state *one,
                                      const struct platform_state *other);
