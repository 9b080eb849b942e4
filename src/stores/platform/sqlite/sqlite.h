#pragma once

#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#include "stores/platform/engine.h"

/*
 * The SQLite engine's connection, shared by the files that run statements on it. connection.c owns
 * the file, failures, transactions and the schema's version; the others hold statements. One
 * connection, one thread at a time.
 *
 *   engine.c          opening and migrating, and the verbs; backup.c copies
 *   connection.c      the file, statements, transactions, failures
 *   in_use.c          the lock of a process that has the file open
 *   file_identity.c   whether the files are still those that were opened
 *   record_queries.c  customers, keys, players and so on, by their tables of columns
 *   ledger_load.c     begins a batch: its accounts, clearing accounts and ids
 *   ledger.c          writes the decisions, and commits
 *   ids.c             from ids to rows; the index behind it, in files, is ids/id_index.h
 *   cache.c           accounts, numbers and rows that were used lately
 *   rows.c            reads rows of the ledger and verifies their hashes
 *   audit.c           checks the file; ids_audit.c the ids of the rows
 *   ledger_end.c      whether the newest rows are there, by the mark of the end
 *   checkpoint.c      copies the write-ahead log into the file beside the batches
 */

#define SQLITE_APPLICATION_ID 0x63727570 /* "crup" */
#define SQLITE_STATEMENTS_MAX 128

#define SQLITE_STORE_MAGIC 0x53514C54U

struct sqlite_store {
    struct platform_store base;
    uint32_t magic;    /* SQLITE_STORE_MAGIC: it is one of this engine's */
    sqlite3 *database; /* NULL: to be opened again by the next call */
    char *path;
    uint32_t timeout_ms;
    uint64_t busy_since_ms;  /* it waits for another handle's lock */
    uint64_t yields_from_ns; /* not before; of one that gives way */
    bool reads;              /* a read-only file system will do: */
    bool gives_way;          /* see platform_store_options */
    bool any_file;           /* the process may go on in other files once this handle is closed */
    bool immutable;          /* it is on one, so there are no locks, no log and no files to watch */
    bool sound;              /* found so just now, for a backup before a migration */
    bool failed;             /* an error after which the connection is not to be trusted */
    void (*add_functions)(struct sqlite_store *store); /* of SQL, to each connection */
    const char *work; /* the name of a long step, for the store's watch; NULL: none runs */
    struct log *log;
    struct platform_facts *facts;       /* may be NULL */
    struct file_use *use;               /* in_use.h; NULL: no file is open */
    struct open_files *files;           /* file_identity.h; NULL: it is not attached */
    const volatile uint32_t *log_index; /* SQLite's mapping of -shm, while it is */
    off_t size;                         /* of the file when its head was last looked at, */
    struct timespec written; /* to notice that something else than SQLite wrote into it, */
    uint32_t change;         /* and the number of changes that its head had then */
    int log_pages;           /* in the log after the last batch of the ledger, */
    int log_attempted;       /* and when upkeep was attempted last; 0: it was restarted since */
    struct {
        const char *sql; /* by address: each text is a constant at one place */
        sqlite3_stmt *statement;
    } statements[SQLITE_STATEMENTS_MAX];
    size_t statement_count;
    /* The ledger's own; each is made when it is first needed. */
    struct ledger_cache *cache; /* cache.h */
    struct id_index *index;     /* ids/id_index.h */
    int64_t asked_number;       /* the newest row when it was asked for an id outside of batches */
    uint8_t ledger[16];  /* which one it is, since it was last asked how far it goes (ids.c) */
    int64_t last_number; /* the newest transaction that cache and index know of; -1: unknown */
    int64_t last_day;    /* and its day, of ledger_day */
    int mark;            /* descriptor of the mark of its end (ledger_end.c); -1: not open */
    uint64_t marked_ms;  /* when that was synced */
};

static inline struct sqlite_store *sqlite_store_of(struct platform_store *store)
{
    struct sqlite_store *mine = (struct sqlite_store *)(void *)store; /* `base` comes first */
    CHECK(mine != NULL && mine->magic == SQLITE_STORE_MAGIC);
    return mine;
}

/* Call it before anything else: it makes sure of the connection, and that the file is the one it
 * was. */
MUST_CHECK enum status sqlite_ready(struct sqlite_store *store, struct error *error);

/* Writes the whole database, as of one moment, into a new file, or one beside it (backup.c). */
MUST_CHECK enum status sqlite_copy_to(struct sqlite_store *store, const char *path,
                                      struct error *error);
MUST_CHECK enum status sqlite_copy_beside(struct sqlite_store *store, uint32_t version, char **path,
                                          struct error *error);

/* The prepared statement of a constant SQL text, reset, without bindings. */
MUST_CHECK enum status sqlite_statement(struct sqlite_store *store, const char *sql,
                                        sqlite3_stmt **statement, struct error *error);

/* Runs a statement that returns no row, and resets it. */
MUST_CHECK enum status sqlite_run(struct sqlite_store *store, sqlite3_stmt *statement,
                                  struct error *error);

/* Runs a statement to its first row: true in `found` when there is one, which is valid until the
 * statement is reset (sqlite3_reset) by the caller. */
MUST_CHECK enum status sqlite_first(struct sqlite_store *store, sqlite3_stmt *statement,
                                    bool *found, struct error *error);

/* The row that a statement is at; it borrows the pointer. */
struct sql_row sqlite_sql_row(sqlite3_stmt *const *statement);

/* The prepared statement of a constant SQL text, with as many of the values as it has
 * parameters. */
MUST_CHECK enum status sqlite_bind(struct sqlite_store *store, const char *sql,
                                   const struct column_value *values, sqlite3_stmt **statement,
                                   struct error *error);

/* Its first row, as sqlite_first; and the first column of that row, where there is one. */
MUST_CHECK enum status sqlite_find(struct sqlite_store *store, const char *sql,
                                   const struct column_value *values, sqlite3_stmt **statement,
                                   bool *found, struct error *error);
MUST_CHECK enum status sqlite_look_up(struct sqlite_store *store, const char *sql,
                                      const struct column_value *values, bool *found,
                                      int64_t *number, struct error *error);

/* sqlite_ready, and a transaction that has the write lock from its beginning. */
MUST_CHECK enum status sqlite_begin(struct sqlite_store *store, struct error *error);

/* The first column of a constant query's one row. */
MUST_CHECK enum status sqlite_number(struct sqlite_store *store, const char *sql, int64_t *value,
                                     struct error *error);

/* Executes texts without parameters or rows. */
MUST_CHECK enum status sqlite_execute(struct sqlite_store *store, const char *sql,
                                      struct error *error);

/* Does this errno say that the disk, or the quota, is full? */
bool sqlite_is_full(int reason);
/* The meaning of the last failed call on the connection: status, and a text with path and
 * remedy. */
enum status sqlite_failure(struct sqlite_store *store, struct error *error);

/* Ends a transaction: commits when `status` is STATUS_OK, else rolls back. Returns `status`, or the
 * commit's. */
MUST_CHECK enum status sqlite_end(struct sqlite_store *store, enum status status,
                                  struct error *error);

/* For engine.c. `create`: accepts any schema, and makes the file when there is none. */
MUST_CHECK enum status sqlite_connect(struct sqlite_store *store, bool create, struct error *error);
void sqlite_disconnect(struct sqlite_store *store);
MUST_CHECK enum status sqlite_check_names(struct sqlite_store *store, struct stat *facts,
                                          struct error *error);
/* The version of a schema that this program knows (schema.h); `current`: and that is its own. */
MUST_CHECK enum status sqlite_check_schema(struct sqlite_store *store, bool current,
                                           uint32_t *version, struct error *error);

/* record_queries.c */
extern const struct sql_verbs sqlite_sql;
enum status sqlite_snapshot_begin(struct platform_store *, struct error *);
void sqlite_snapshot_end(struct platform_store *);

/* ledger_load.c */
enum status sqlite_ledger_begin(struct platform_store *, struct ledger_batch *, struct error *);
enum status sqlite_ledger_recover(struct platform_store *, struct error *);
enum status sqlite_ledger_prepare(struct platform_store *, struct error *);
enum status sqlite_ledger_balances(struct platform_store *, struct ledger_batch_player *, size_t,
                                   struct error *);
enum status sqlite_ledger_id(struct platform_store *, struct ledger_fact *, struct error *);

/* ids.c */
void sqlite_ledger_index_facts(struct platform_store *, struct ledger_index_facts *);

/* audit.c */
/* Asks SQLite whether its file is sound, by a pragma. STATUS_MALFORMED: it is not; its own words go
 * between `before` and `after`. */
MUST_CHECK enum status sqlite_ask_soundness(struct sqlite_store *store, const char *question,
                                            const char *work, const char *before, const char *after,
                                            struct error *error);
enum status sqlite_ledger_integrity(struct platform_store *, const char **, struct error *);
enum status sqlite_ledger_counterparts(struct platform_store *, struct error *);

/* ledger.c */
enum status sqlite_ledger_commit(struct platform_store *, const struct ledger_batch *, bool *,
                                 struct error *);

/* ledger_end.c */
/* sqlite_files_content; where the file's time of change alone was set, the ledger itself is
 * audited, outside of a transaction, and goes on when all of it fits. */
MUST_CHECK enum status sqlite_check_content(struct sqlite_store *store, struct error *error);
enum status sqlite_ledger_check_end(struct platform_store *, struct ledger_end *, struct error *);
enum status sqlite_ledger_accept_end(struct platform_store *, int64_t, struct error *);
/* A handle calls it before it writes to the ledger, under the write lock. It checks that the ledger
 * ends where it should, and sets the mark. */
MUST_CHECK enum status sqlite_mark_begin(struct sqlite_store *store, struct error *error);
/* Call it after a commit, with its last transaction. */
MUST_CHECK enum status sqlite_mark(struct sqlite_store *store, int64_t number,
                                   const uint8_t hash[LEDGER_HASH_SIZE], struct error *error);

/* A number as SQLite's file formats have it. */
static inline uint32_t sqlite_big_endian(const unsigned char bytes[4])
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* checkpoint.c */
#define SQLITE_LOG_IS_LONG 4000 /* pages: time for upkeep */
/* Has the log grown by `pages` since the last attempt at upkeep? An attempt may shorten nothing, as
 * pages that a reader may still need stay in the log. It costs more the longer the log is, so the
 * next one waits until the log has grown by an eighth. */
static inline bool sqlite_log_has_grown_by(const struct sqlite_store *store, int pages)
{
    int eighth = store->log_attempted / 8;
    return store->log_pages - store->log_attempted >= (eighth > pages ? eighth : pages);
}

bool sqlite_ledger_wants_upkeep(struct platform_store *);
enum status sqlite_ledger_upkeep(struct platform_store *, struct error *);

/* The handle that writes the ledger calls it when it begins. It makes the whole log durable; */
MUST_CHECK enum status sqlite_log_renew(struct sqlite_store *store, struct error *error);
/* and from now on upkeep copies the log into the file. */
MUST_CHECK enum status sqlite_log_adopt(struct sqlite_store *store, struct error *error);
