#pragma once

#include <string.h>

#include "records/ledger_entry.h"
#include "stores/platform.h"

/*
 * The ledger's verbs of the platform store (platform.h, whose rules on handles and threads hold
 * here too).
 *
 * A batch is one transaction of the database. Begin takes the ledger's write lock and loads the
 * facts about the players and ids of its requests. The caller decides. Commit writes the decisions.
 * Between the two the handle can do nothing else.
 *
 * An embedded engine has one writer at a time, in whatever process. A server engine has many, and
 * keeps them apart by locks and keys: no two of them decide on the same player. If another writer
 * has changed facts that a batch decided on, the batch is refused as STATUS_CONFLICT, and nothing
 * is written. The caller then begins the same requests again, with fresh facts, and decides them
 * again. It does so a bounded number of times.
 */

#define LEDGER_BATCH_MAX 256

struct ledger_batch_player {
    char player_id[TRANSACTION_ID_SIZE]; /* asked for: any text */
    bool found;
    bool changed;                  /* the caller's: `account` is to be written back */
    bool declined;                 /* the caller's: its declines are to be written back too */
    struct ledger_account account; /* when found */
    size_t clearing;               /* which of the batch's clearing accounts is the other side */
};

struct ledger_fact {
    char owner_id[LEDGER_OWNER_SIZE]; /* asked for: the owner of the id, a customer or a provider */
    char transaction_id[TRANSACTION_ID_SIZE];
    bool counts_credits; /* asked for: id.standing_credits, which may else be anything */
    struct ledger_id id;
};

/* Asks for an id: not for its standing credits. The caller makes sure that both texts fit. */
static inline void ledger_ask(struct ledger_fact *fact, const char *owner_id,
                              const char *transaction_id)
{
    *fact = (struct ledger_fact){0};
    memcpy(fact->owner_id, owner_id, strlen(owner_id) + 1);
    memcpy(fact->transaction_id, transaction_id, strlen(transaction_id) + 1);
}

struct ledger_clearing {
    char customer_id[CUSTOMER_ID_SIZE];
    char currency[CURRENCY_SIZE];
    int64_t balance_minor; /* at most 0: minus the players' balances */
    bool changed;          /* the caller's */
};

/* A player and a clearing account as they are stored, loaded by begin. */
struct ledger_stored {
    int64_t player_number;   /* 0: there is none */
    int64_t customer_number; /* SQLite's alone, as the rest but for account.sequence */
    int64_t last_number;     /* of the last entry; 0: there is none */
    struct ledger_account account;
};
struct ledger_stored_clearing {
    int64_t customer_number;
    int64_t balance_minor;
    bool found;
};

/* The rows that begin loads for commit, in the order of the batch; the engine's alone. */
struct ledger_loaded {
    struct ledger_stored players[LEDGER_BATCH_MAX];
    struct ledger_stored_clearing clearings[LEDGER_BATCH_MAX];
    int64_t first_number; /* of the first transaction that will be kept */
    int64_t last_day;     /* SQLite: of the last transaction before it */
    int64_t transaction;  /* PostgreSQL: the server's number of the batch */
};

/* The caller names the players and facts, each one once, and appends to `kept`. For a provider's
 * transaction the id must be among the facts. */
struct ledger_batch {
    struct ledger_batch_player players[LEDGER_BATCH_MAX];
    size_t player_count;
    struct ledger_fact facts[2 * LEDGER_BATCH_MAX]; /* ids and references */
    size_t fact_count;
    struct ledger_clearing clearings[LEDGER_BATCH_MAX]; /* of the players; by begin */
    size_t clearing_count;
    struct ledger_transaction kept[LEDGER_BATCH_MAX]; /* in order of decision */
    /* Each kept transaction has here its player, and the facts of its id and reference. These are
     * hints: an engine checks them, and searches if they are wrong. */
    struct {
        uint16_t player, fact, reference;
    } kept_of[LEDGER_BATCH_MAX];
    size_t kept_count;
    struct ledger_loaded loaded;
};

/* Facts about an index of ids that an engine keeps beside the store. */
struct ledger_index_facts {
    uint64_t ids;
    uint64_t files;
    uint64_t memory_bytes;
    uint64_t made_again;     /* files that were damaged or not the ledger's */
    uint64_t write_failures; /* files that could not be written */
};

/* Numbers of transactions. */
struct ledger_end {
    int64_t last;         /* the newest that is there */
    int64_t acknowledged; /* the newest that is known to have been acknowledged */
};

/* It tells how far the ledger is complete, where batches commit in another order than that of their
 * numbers (docs/decisions/tails.md). Zeroed at first, and after a failure. */
#define LEDGER_OPEN_SIZE 4096
struct ledger_horizon {
    int64_t complete; /* no entry up to this number is still to come */
    int64_t awaited;  /* the same, once the transactions of `open` have ended; 0: none is awaited */
    char open[LEDGER_OPEN_SIZE]; /* the engine's names of them */
};

/* The verbs of an engine for the ledger: `store->ledger->begin(store, batch, error)`. */
struct ledger_verbs {
    bool waits; /* `begin` mostly waits for a server; see platform_store_on_wait */
    /* On failure nothing is left open and nothing has happened; STATUS_CONFLICT as above.
     * `standing_credits` is exact up to LEDGER_BATCH_MAX, beyond which a batch cannot bring it
     * to 0. */
    MUST_CHECK enum status (*begin)(struct platform_store *store, struct ledger_batch *batch,
                                    struct error *error);

    /*
     * Writes the kept transactions and the changed accounts, and commits: when this returns
     * STATUS_OK all of it is durable. Otherwise nothing was applied, unless `unknown` is set: then
     * the commit itself failed, and its outcome is unknown until the handle has been closed and
     * opened again and `recover` has succeeded. (A server whose connection breaks is asked first,
     * for a bounded time.) STATUS_CONFLICT as above. A batch that keeps nothing writes nothing;
     * STATUS_OK says that the rows that begin loaded are durable. With `unknown` they may not be,
     * and no answer may be repeated from them.
     */
    MUST_CHECK enum status (*commit)(struct platform_store *store, const struct ledger_batch *batch,
                                     bool *unknown, struct error *error);

    /*
     * Call it before the first batch of a handle. A crash or a failed sync may have left rows
     * visible that are not durable: they are made durable, because answers are made from them. The
     * newest entries are checked against their chain and their accounts. STATUS_MALFORMED: they do
     * not fit; do not go on.
     */
    MUST_CHECK enum status (*recover)(struct platform_store *store, struct error *error);

    /*
     * May be NULL. Call it after `recover` and before the first batch of a handle. It makes the
     * index that batches need, which may take long. Other handles can read balances at the same
     * time. Without this call the first `begin` does it, before it takes the write lock.
     */
    MUST_CHECK enum status (*prepare)(struct platform_store *store, struct error *error);

    /*
     * Both may be NULL. Upkeep beside the batches: SQLite brings its log into the file. After a
     * batch its handle says whether that is wanted. Another handle on another thread then does most
     * of it, beside the batches; and then the handle of the batches, between two of them, does the
     * rest, which is short. Nothing is lost when it is not done, but batches will take longer.
     */
    MUST_CHECK bool (*wants_upkeep)(struct platform_store *store);
    MUST_CHECK enum status (*upkeep)(struct platform_store *store, struct error *error);

    /* May be NULL: there is none. Call it in the thread of the handle's batches. */
    void (*index_facts)(struct platform_store *store, struct ledger_index_facts *facts);

    /* The players that `players` name, found or not, with their accounts as of the last commit, in
     * one look-up where that is cheaper; waits for no batch. There are at most LEDGER_BATCH_MAX. */
    MUST_CHECK enum status (*balances)(struct platform_store *store,
                                       struct ledger_batch_player *players, size_t count,
                                       struct error *error);

    /* Loads all facts about one id. STATUS_OK also for an id that was never used, of which nothing
     * is known. */
    MUST_CHECK enum status (*id)(struct platform_store *store, struct ledger_fact *fact,
                                 struct error *error);

    /*
     * Checks that the store is as its engine left it: its pages, and its indexes against its
     * tables. STATUS_MALFORMED: `error` names the fault. `how` says in a few words how the engine
     * checked. The handle's watch (platform_store_watch) hears of it now and then, as it may take
     * long.
     */
    MUST_CHECK enum status (*integrity)(struct platform_store *store, const char **how,
                                        struct error *error);

    /*
     * Checks that every row of the ledger and of its players has its counterparts and agrees with
     * them: entries, declines, ids, rollbacks, accounts and players, in both directions.
     * STATUS_MALFORMED: `error` names the first row that does not.
     */
    MUST_CHECK enum status (*counterparts)(struct platform_store *store, struct error *error);

    /* Both may be NULL: the engine keeps its newest rows by other means. In no snapshot.
     * STATUS_MALFORMED: the ledger has lost rows that it had acknowledged; `error` says so. Then
     * batches are refused until a backup replaces the store, or until `accept_end` gets the number
     * of the transaction that the ledger ends with (STATUS_CONFLICT: it ends with another). */
    MUST_CHECK enum status (*check_end)(struct platform_store *store, struct ledger_end *end,
                                        struct error *error);
    MUST_CHECK enum status (*accept_end)(struct platform_store *store, int64_t last,
                                         struct error *error);

    /* NULL: entries become visible in the order of their numbers. Otherwise moves the horizon on;
     * see struct ledger_horizon. */
    MUST_CHECK enum status (*advance)(struct platform_store *store, struct ledger_horizon *horizon,
                                      struct error *error);

    /* Everything read between these two comes from one snapshot. */
    MUST_CHECK enum status (*snapshot_begin)(struct platform_store *store, struct error *error);
    void (*snapshot_end)(struct platform_store *store);
};

/* Lets the ledger continue without rows that it has lost, with a row of the audit trail. `last`
 * confirms the ledger's last number. STATUS_MALFORMED, with check_end's text, if it ends with
 * another number; nothing has happened. STATUS_CONFLICT: nothing is known to be lost. */
MUST_CHECK enum status platform_ledger_accept_loss(struct platform_store *store, int64_t last,
                                                   struct ledger_end *end, struct error *error);

/* ---- reading (stores/platform/ledger) -------------------------------------------------------- */

/* The account of one player, as `balances` reads it. STATUS_NOT_FOUND. */
MUST_CHECK enum status platform_ledger_balance(struct platform_store *store, const char *player_id,
                                               struct ledger_account *account, struct error *error);

/* Visitors return false to stop early, and must not use the store. Everything is read in constant
 * memory. */
typedef bool ledger_transaction_visitor(void *context,
                                        const struct ledger_transaction *transaction);

/* A selection of entries: a player's, else a customer's, else all. Unused fields are NULL. */
struct ledger_whose {
    const char *customer_id;
    const char *player_id;
    const char *provider_id; /* only those of this provider (struct ledger_sum says which) */
    /* Of a player: from the entry with this sequence on, until before the other. 0: all. */
    uint64_t from, before;
};
/* Entries in order of player (as created) and sequence. Those of more than one player are from one
 * snapshot where the caller has begun one. For one player, entries outside `from` and `before` cost
 * next to nothing. */
MUST_CHECK enum status platform_ledger_entries(struct platform_store *store,
                                               struct ledger_whose whose,
                                               ledger_transaction_visitor *visit, void *context,
                                               struct error *error);

/* A time, from `from_ms` until before `to_ms`; of a customer or a provider, or of all (NULL). */
struct ledger_scope {
    int64_t from_ms, to_ms;
    const char *customer_id, *provider_id;
};
/* The entries of a time, in order of time and decision. The cost depends on their number, not on
 * the length of the ledger. */
MUST_CHECK enum status platform_ledger_entered(struct platform_store *store,
                                               const struct ledger_scope *scope,
                                               ledger_transaction_visitor *visit, void *context,
                                               struct error *error);

/*
 * A tail: the entries of the whole ledger in the order of their numbers. The number of an entry is
 * higher than those of all entries that were committed before it was decided. A page has no entry
 * unless all with lower numbers were in it or in pages before it.
 *
 * Zeroed at first, with the number of the last known entry in `place`. Each page looks whether that
 * entry is still there, so that a tail never goes on in another ledger, or in one that has lost
 * entries, without saying so.
 */
#define LEDGER_PAGE 1000
struct ledger_tail {
    int64_t place;                  /* number of the last entry that was visited; 0: none */
    bool known;                     /* `hash` is that entry's */
    uint8_t hash[LEDGER_HASH_SIZE]; /* checked by the next page */
    bool more;                      /* the page was full: there may be more at once */
    bool whole;     /* all has been visited that was committed when the tail began */
    int64_t until;  /* where that ends; 0: not known yet */
    int64_t looked; /* up to where all entries have been visited; 0: not known */
    struct ledger_horizon horizon;
};
typedef bool ledger_numbered_visitor(void *context, int64_t number,
                                     const struct ledger_transaction *entry);
/* The next page, at most LEDGER_PAGE entries. STATUS_MALFORMED: the entry at `place` is not there,
 * or is another one. */
MUST_CHECK enum status platform_ledger_tail(struct platform_store *store, struct ledger_tail *tail,
                                            ledger_numbered_visitor *visit, void *context,
                                            struct error *error);

/* Every transaction that is kept, declines included, in order of decision (as far as one player's
 * go; several instances decide for different players at once). For copying a ledger: a
 * visited transaction may be put into the `kept` of another store's batch as it is. */
MUST_CHECK enum status platform_ledger_transactions(struct platform_store *store,
                                                    ledger_transaction_visitor *visit,
                                                    void *context, struct error *error);

/* The declines that are kept, with position and hash, in order of player and position. `before` is
 * the hash of the decline before it; NULL: there is none. */
typedef bool ledger_decline_visitor(void *context, const struct ledger_transaction *decline,
                                    const uint8_t *before);
MUST_CHECK enum status platform_ledger_declines(struct platform_store *store,
                                                ledger_decline_visitor *visit, void *context,
                                                struct error *error);

/* The clearing accounts, each with the sum of its players' accounts. If players hold money and
 * there is no clearing account, it counts as 0. */
typedef bool ledger_clearing_visitor(void *context, const struct ledger_clearing *clearing,
                                     int64_t players_minor);
MUST_CHECK enum status platform_ledger_clearings(struct platform_store *store,
                                                 ledger_clearing_visitor *visit, void *context,
                                                 struct error *error);

/* Counts the entries, for a progress line. */
MUST_CHECK enum status platform_ledger_count(struct platform_store *store, uint64_t *count,
                                             struct error *error);

/* ---- sums ------------------------------------------------------------------------------------ */

/*
 * Sums of entries, in integers of the minor unit. A field that does not group is "" or 0.
 *
 * Each entry belongs to a game and a round, or to neither ("" for both). A debit names its own. A
 * credit that names none has those of the debit that it refers to. A ROLLBACK has those of the
 * transaction that it rolled back. The provider is the one that moved the money, else the game's.
 * An entry without a provider, a game and a round is a transfer: money that a customer pays in or
 * out.
 */
struct ledger_movements {
    uint64_t entries[LEDGER_OPERATION_COUNT];
    int64_t debits_minor, credits_minor;
    int64_t debits_back_minor, credits_back_minor; /* rolled back, of these or of earlier ones */
};

/* The CREDITs of one kind. A ROLLBACK has the kind of the CREDIT that it rolled back. */
struct ledger_kind_sum {
    uint64_t entries;
    int64_t credits_minor, credits_back_minor;
};

struct ledger_sum {
    int64_t day; /* UTC, since 1970-01-01 */
    char customer_id[CUSTOMER_ID_SIZE];
    char currency[CURRENCY_SIZE];
    char provider_id[PROVIDER_ID_SIZE];
    char game_id[GAME_REFERENCE_SIZE];
    char round_id[GAME_REFERENCE_SIZE];
    uint8_t currency_exponent;
    struct ledger_movements play;                    /* stakes and wins */
    struct ledger_movements transfers;               /* all other entries */
    struct ledger_movements all;                     /* of both */
    struct ledger_kind_sum kinds[LEDGER_KIND_COUNT]; /* a part of `play`; LEDGER_WIN is the rest */
};

/* A sum that would be larger stops at LEDGER_SUM_MOST. A difference of such a sum is not known, unless only its
 * first part stopped. */
int64_t ledger_less(int64_t minor, int64_t less);

/* Return how far the players' accounts moved, and how far ROLLBACKs alone moved them. */
int64_t ledger_movement_minor(const struct ledger_movements *movements);
int64_t ledger_rollbacks_minor(const struct ledger_movements *movements);
uint64_t ledger_entries(const struct ledger_movements *movements);

void ledger_sum_add(struct ledger_sum *to, const struct ledger_sum *more);

/* Call it before platform_ledger_sums, and in no snapshot. It keeps the sums of the entries that
 * have come, if these are `least` or more, so that sums of whole days, not by round, read few
 * entries. It may take as long as reading all of them, once. (PostgreSQL's numbers have gaps, which
 * count.) */
#define LEDGER_SUMS_WORTH_KEEPING 32768
void platform_ledger_keep_sums(struct platform_store *store, int64_t least);

struct ledger_grouping {
    bool by_day, by_game, by_round; /* a round belongs to a game: by both */
};
/* Sums come by customer, currency, day, provider, game and round, in this order. */
typedef bool ledger_sum_visitor(void *context, const struct ledger_sum *sum);
MUST_CHECK enum status platform_ledger_sums(struct platform_store *store,
                                            const struct ledger_scope *scope,
                                            struct ledger_grouping grouping,
                                            ledger_sum_visitor *visit, void *context,
                                            struct error *error);

/* ---- rounds ---------------------------------------------------------------------------------- */

/*
 * A round is all that one player did under one round_id of one provider (struct ledger_sum says
 * which; also what a customer moved under a round_id). It is open while a bet of it is neither
 * rolled back nor referred to by a standing CREDIT, and no later entry of it says that the round
 * ended. An end that was rolled back is none. Nothing depends on the state: rounds are shown, and
 * settled by their providers alone.
 */
enum ledger_round_state { LEDGER_ROUND_OPEN, LEDGER_ROUND_ENDED, LEDGER_ROUND_SETTLED };
#define LEDGER_ROUND_STATE_COUNT 3
extern const struct enum_names ledger_round_states;

struct ledger_round {
    char player_id[PLAYER_ID_SIZE];
    char customer_id[CUSTOMER_ID_SIZE];
    char reference[PLAYER_REFERENCE_SIZE];
    char currency[CURRENCY_SIZE];
    uint8_t currency_exponent;
    char provider_id[PROVIDER_ID_SIZE]; /* "": it is not known */
    char game_id[GAME_REFERENCE_SIZE];
    char round_id[GAME_REFERENCE_SIZE];
    int64_t began_ms, last_ms;      /* its first and its last entry */
    int64_t ended_ms;               /* its first end; 0: there is none */
    uint64_t ends, bets, wins;      /* entries; bets and wins also where they were rolled back */
    int64_t stake_minor, win_minor; /* without what was rolled back */
    bool bet_after_end;
    enum ledger_round_state state;
};

struct ledger_rounds_asked {
    /* Rounds that began in this time. Entries from before are not read, later ones are. */
    struct ledger_scope scope;
    bool open; /* only those that are open */
};
/* The oldest first. The cost depends on the number of entries since the time began. */
typedef bool ledger_round_visitor(void *context, const struct ledger_round *round);
MUST_CHECK enum status platform_ledger_rounds(struct platform_store *store,
                                              const struct ledger_rounds_asked *asked,
                                              ledger_round_visitor *visit, void *context,
                                              struct error *error);
