#pragma once

#include <stdatomic.h>

#include "base/log.h"
#include "base/progress.h"
#include "metrics/metrics.h"
#include "records/records.h"
#include "records/usage.h"
#include "records/verification.h"

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
 * lower than one seen before. A process that has a file open never opens another one in its place.
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
    const char *unsafe; /* why it may lose what it acknowledged ("fsync = off"); NULL: it may not */
    struct statements *statements; /* statements of records (stores/platform/statements.c) */
    struct author {
        char who[TRAIL_WHO_SIZE];
        char command[TRAIL_COMMAND_SIZE];
    } author; /* of changes through this handle; see platform_store_act_as */
    const struct progress_watch *watch; /* of long work; see platform_store_watch; may be NULL */
    bool copying;                       /* see platform_store_begin_copy */
    const atomic_bool *stop;            /* see platform_store_stop_when; may be NULL */
};

/* Counts of all handles of the program, of an engine that is a server. */
struct platform_facts {
    atomic_uint_least64_t round_trips;   /* to the server and back, of any size */
    atomic_uint_least64_t round_trip_ns; /* and how long they took, together */
    atomic_uint_least64_t connections;   /* open now */
    atomic_uint_least64_t connects;      /* successful ones, since the start */
    atomic_uint_least64_t repeats;       /* after a conflict or a lost connection */
    atomic_uint_least64_t timeouts;      /* the server was silent for too long */
    atomic_bool unsafe; /* a server that may lose what it acknowledged was seen, and logged */
};

extern const struct metric platform_metrics[];

struct platform_store_options {
    const char *uri;              /* sqlite:FILE, postgresql://USER:PASSWORD@HOST:PORT/DATABASE */
    uint32_t timeout_ms;          /* how long a call may wait for the store */
    bool create;                  /* make the database when it is not there (migrate, demo) */
    bool reads;                   /* a file on a read-only file system will do; changes then fail */
    struct log *log;              /* borrowed; may be NULL */
    struct platform_facts *facts; /* borrowed, shared by any number of handles; may be NULL */
};

/* Opens and looks at the schema: a schema older or newer than this program's is STATUS_INVALID with
 * a text that says what to do ("run: croupier migrate"), unless `create` is set, which leaves the
 * schema to platform_store_migrate. STATUS_UNAVAILABLE: cannot be reached or opened now, with the
 * path and the reason; STATUS_MALFORMED: it is not a database, or damaged. */
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
MUST_CHECK enum status platform_store_schema(struct platform_store *store,
                                             struct platform_schema *schema, struct error *error);

/* Finds out that the store is sound, and writes all of it, as of one moment, into the new file `to`,
 * which is on disk when this returns. NULL: one beside the store, whose name is then in `path`;
 * memory_free it. Of an engine that is a server: STATUS_INVALID. */
MUST_CHECK enum status platform_store_back_up(struct platform_store *store, const char *to,
                                              char **path, struct error *error);

/* From now on calls of this handle, even one that is under way, end soon with STATUS_UNAVAILABLE
 * once `stop` is true: reading the whole ledger must not hold up the end of a process. `stop`,
 * which any thread may set, lives as long as the handle. */
void platform_store_stop_when(struct platform_store *store, const atomic_bool *stop);

/* Reports progress to `watch` some times a second while this handle migrates or copies a SQLite
 * file, or checks a store's own pages and indexes. `watch` must not use the store. NULL ends the
 * reports. */
void platform_store_watch(struct platform_store *store, const struct progress_watch *watch);

/* Brings the schema up to this program's, one numbered migration after the other, each in its own
 * transaction; safe to repeat and to run twice at once. Out: the versions before and after. */
MUST_CHECK enum status platform_store_migrate(struct platform_store *store, uint32_t *before,
                                              uint32_t *after, struct error *error);

/* Sends a query to the database. */
MUST_CHECK enum status platform_store_ping(struct platform_store *store, struct error *error);
/* The bytes that its database takes. */
MUST_CHECK enum status platform_store_size(struct platform_store *store, int64_t *bytes,
                                           struct error *error);

/* The author of changes through this handle from now on, and the command ("customer set"), for the
 * audit trail. Plain text that fits its field (CHECKed); "unknown" until this is called. */
void platform_store_act_as(struct platform_store *store, const char *who, const char *command);

/* From now on the handle writes a copy of another store. The copy includes the audit trail as it
 * is, so the handle adds no rows to it. */
void platform_store_begin_copy(struct platform_store *store);

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

/* ---- records of any kind --------------------------------------------------------------------- */

/* Every change writes its row of the audit trail (records/trail.h) in its own transaction; one that
 * leaves everything as it was writes none. */

/* `table` is that of the record's kind (records/). Records that are not acceptable (a bad id, a
 * name too long, a rate out of range) are STATUS_INVALID. The caller fills everything but
 * `revision`; ids of customers and keys come from identity_generate (admission/key.h). */

/* EXISTS: there is one with this id (or digest) already; NOT_FOUND: its owner is not there (a key's
 * customer). */
MUST_CHECK enum status platform_add(struct platform_store *store, const struct record_table *table,
                                    const void *record, struct error *error);
/* Replaces all of the record with this id but its COLUMN_FIXED columns. NOT_FOUND. With a
 * `revision` other than 0 only if the stored row still has it, else STATUS_EXISTS: another writer
 * changed it first, so read it again (so that `set` never undoes another's `disable`). */
MUST_CHECK enum status platform_update(struct platform_store *store,
                                       const struct record_table *table, const void *record,
                                       struct error *error);
/* Adds, or replaces all of it; `revision` as above. */
MUST_CHECK enum status platform_put(struct platform_store *store, const struct record_table *table,
                                    const void *record, struct error *error);
/* `id` is what the struct's first field holds: a string, or an address's bytes. */
MUST_CHECK enum status platform_get(struct platform_store *store, const struct record_table *table,
                                    const void *id, void *record, struct error *error);

/* `see` is called for every record in the order of its table (customers, keys and players: as
 * created; addresses: by address, without removed ones), from one snapshot, in constant memory. It
 * must not call the store. `customer_id`: the owner, of a kind that belongs to customers; NULL:
 * all. */
MUST_CHECK enum status platform_list(struct platform_store *store, const struct record_table *table,
                                     const char *customer_id, record_function *see, void *context,
                                     struct error *error);

/* Marks it revoked; STATUS_NOT_FOUND, or STATUS_OK also when it was revoked before. */
MUST_CHECK enum status platform_key_revoke(struct platform_store *store, const char *key_id,
                                           int64_t now_ms, struct error *error);

/* ---- the audit trail ------------------------------------------------------------------------- */

struct trail_search {
    const char *object; /* "": any */
    const char *who;    /* "": any author */
    int64_t since_ms;
    uint64_t before; /* a row's number; 0: from the last one */
    size_t limit;    /* at least 1 */
    bool operators;  /* also rows about operators, their links and sessions */
};
/* The rows that are searched for, the last one first, at most `limit`. Reads them in parts, so that
 * no query takes long; each is a snapshot. `see` must not call the store. */
MUST_CHECK enum status platform_trail_search(struct platform_store *store,
                                             const struct trail_search *search,
                                             record_function *see, void *context,
                                             struct error *error);

/* ---- players --------------------------------------------------------------------------------- */

/*
 * The player of this customer, reference and currency: found, or made. There is one player for each
 * three, for ever, even if several callers ask at the same time; players are never deleted.
 * `exponent` counts only when the currency is used for the first time in this store.
 * STATUS_INVALID: not acceptable; STATUS_NOT_FOUND: no such customer.
 */
MUST_CHECK enum status platform_player_open(struct platform_store *store, const char *customer_id,
                                            const char *reference, const char *currency,
                                            uint8_t exponent, struct player_record *player,
                                            struct error *error);

/* Blocks a player from `now_ms` on, or lets it in again; it is then as in `player`. The ledger's
 * next batch notices, in every process. A player that was blocked before keeps its time.
 * NOT_FOUND. */
MUST_CHECK enum status platform_player_block(struct platform_store *store, const char *player_id,
                                             bool blocked, int64_t now_ms,
                                             struct player_record *player, struct error *error);

/* The players that a customer calls by this reference, one for each currency, as created: at most
 * `most`, into `players`. */
MUST_CHECK enum status platform_players_named(struct platform_store *store, const char *customer_id,
                                              const char *reference, struct player_record *players,
                                              size_t most, size_t *count, struct error *error);

/* Players, the last active first: those of the newest 20,000 operations, then the others, the newest
 * first. `customer_id` "": of all customers. `words` "": any; else whose reference has them, or whose
 * id, launch or id at a provider is just that. `found`: how many there are. One snapshot. */
#define PLAYERS_PAGE_MAX 200
struct players_page {
    char ids[PLAYERS_PAGE_MAX][PLAYER_ID_SIZE];
    size_t count;
    uint64_t found;
};
MUST_CHECK enum status platform_players_active(struct platform_store *store,
                                               const char *customer_id, const char *words,
                                               uint64_t offset, uint64_t limit,
                                               struct players_page *page, struct error *error);

/* Adds players as they are, id and time included, in one transaction: for copying a store (croupier
 * platform copy). EXISTS: one is there; INVALID: a record is not acceptable; NOT_FOUND: no such
 * customer. A currency that is there already keeps its exponent. */
MUST_CHECK enum status platform_player_put(struct platform_store *store,
                                           const struct player_record *records, size_t count,
                                           struct error *error);

/* ---- operators' credentials ------------------------------------------------------------------ */

/* The sessions that are live, those that end first before the others; no more is read than `see`,
 * which must not call the store, wants to see. */
MUST_CHECK enum status platform_sessions_list(struct platform_store *store, int64_t now_ms,
                                              record_function *see, void *context,
                                              struct error *error);
/* Deletes links and sessions that were good until before then. */
MUST_CHECK enum status platform_credentials_delete(struct platform_store *store, int64_t before_ms,
                                                   struct error *error);

/* ---- usage ----------------------------------------------------------------------------------- */

/* Adds to the stored counts of each customer, day and group, in one transaction, at most
 * PLATFORM_USAGE_MAX records. It takes no revision. */
#define PLATFORM_USAGE_MAX 256U
MUST_CHECK enum status platform_usage_add(struct platform_store *store,
                                          const struct usage_record *records, size_t count,
                                          struct error *error);

/* The stored counts of the days from `from_day` to `to_day`, both included, by customer, day and
 * group; of one customer, or of all (NULL). One snapshot, constant memory; `see` returns false to
 * see no more, and must not call the store. */
typedef bool usage_function(void *context, const struct usage_record *record);
MUST_CHECK enum status platform_usage_list(struct platform_store *store, const char *customer_id,
                                           int64_t from_day, int64_t to_day, usage_function *see,
                                           void *context, struct error *error);

/* ---- proofs of the ledger -------------------------------------------------------------------- */

/* Stores the verification in place of the last one of its scope. A sound verification of the whole
 * also deletes one of the recent entries that ended before it began. The call adds a row to the
 * trail, and takes no revision. */
MUST_CHECK enum status platform_verification_put(struct platform_store *store,
                                                 const struct verification_record *record,
                                                 struct error *error);

/* The stored verifications, by scope; `started_ms` 0: there is none. */
struct verifications {
    struct verification_record of[VERIFICATION_SCOPE_COUNT];
};
MUST_CHECK enum status platform_verifications(struct platform_store *store,
                                              struct verifications *found, struct error *error);
/* A number that changes when the verifications may have changed: one cheap query. */
MUST_CHECK enum status platform_verifications_revision(struct platform_store *store,
                                                       uint64_t *revision, struct error *error);

/* ---- launches -------------------------------------------------------------------------------- */

/* Adds launches, all or none, in one transaction. NOT_FOUND: a customer, player, provider or game
 * is not there; EXISTS: an id is. */
MUST_CHECK enum status platform_launches_add(struct platform_store *store,
                                             const struct launch_record *records, size_t count,
                                             struct error *error);

/* The newest launches of a player, newest first: at most `most`, into `launches`. */
MUST_CHECK enum status platform_launches_newest(struct platform_store *store, const char *player_id,
                                                struct launch_record *launches, size_t most,
                                                size_t *count, struct error *error);

/*
 * The player that a provider means. A launch is stored before its provider gets it and never
 * changes, so a found one stays valid for ever, and one not found was not launched before the
 * question. So the ledger's thread may ask on the handle of its batches, before it begins one: once
 * a batch, one round trip. Demo launches count for nothing here.
 */
#define LAUNCH_LOOK_UPS_MAX 256U
struct launch_look_up {
    const char *provider_id, *subject; /* asked for: any names (is_outside_name); borrowed */
    const char *launch_id;             /* asked for, likewise; "": none */
    bool known;                        /* the provider has launched this player; then: */
    bool launched;                     /* and by that very launch; then: */
    char player_id[PLAYER_ID_SIZE];
    char game_id[GAME_ID_SIZE]; /* the launch's */
    int64_t launched_ms;
};
MUST_CHECK enum status platform_launches_find(struct platform_store *store,
                                              struct launch_look_up *look_ups, size_t count,
                                              struct error *error);

/* ---- for the policy table ------------------------------------------------------------- */

/* The store's revision now: one cheap query. */
MUST_CHECK enum status platform_revision(struct platform_store *store, uint64_t *revision,
                                         struct error *error);

/* Every customer, key and address, as far as the visitor wants them, whose revision is above
 * `since`: revoked and removed ones too, customers first, from one snapshot of the store, whose
 * revision is then stored in `revision`. since = 0 reads everything. */
MUST_CHECK enum status platform_changes_since(struct platform_store *store, uint64_t since,
                                              const struct record_visitor *visitor,
                                              uint64_t *revision, struct error *error);

/* Records when keys were last used (never moving it back; unknown digests are skipped): one
 * transaction, takes no revision. */
struct key_use {
    uint8_t digest[KEY_DIGEST_SIZE];
    int64_t used_ms;
};
MUST_CHECK enum status platform_key_touch(struct platform_store *store, const struct key_use *uses,
                                          size_t count, struct error *error);

/* ---- providers and games --------------------------------------------------------------------- */

/*
 * Every change of a provider, a game or a list of games takes the next number of a counter of its
 * own (platform_games_revision). The whole is small (thousands of games), so a copy is read
 * again as a whole when the number has moved: platform_games_read, from one snapshot.
 */

/* The result of an import; an unchanged game is left alone, updated_ms included. */
struct games_put_result {
    size_t added, changed, unchanged;
};
/* Adds or replaces by id, in one transaction: all or none. `enabled` of a game that is there stays
 * as it is unless the same index of `set_enabled` is true. NOT_FOUND: a provider that is not there.
 * FULL: there would be more than GAMES_MAX. */
MUST_CHECK enum status platform_games_put(struct platform_store *store,
                                          const struct game_record *records,
                                          const bool *set_enabled, size_t count, int64_t now_ms,
                                          struct games_put_result *result, struct error *error);
/* Changes `enabled` and updated_ms only if the game was not so before. NOT_FOUND. */
MUST_CHECK enum status platform_game_enable(struct platform_store *store, const char *id,
                                            bool enabled, int64_t now_ms, struct error *error);

/* Replaces the customer's list. NOT_FOUND: no such customer, or a game that is not there
 * (named). */
MUST_CHECK enum status platform_game_policy_put(struct platform_store *store,
                                                const struct game_policy_record *record,
                                                struct error *error);

MUST_CHECK enum status platform_games_revision(struct platform_store *store, uint64_t *revision,
                                               struct error *error);

/* Everything that the visitor wants, from one snapshot whose revision is then stored: providers
 * by id, then games by id, then customers' lists. It must not call the store. */
MUST_CHECK enum status platform_games_read(struct platform_store *store,
                                           const struct record_visitor *visitor, uint64_t *revision,
                                           struct error *error);
