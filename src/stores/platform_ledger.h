#pragma once

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
    bool is_reference;   /* asked for: a request refers to it; else it is the id of one */
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
    bool assumes_new; /* only with `keys_refuse`: begin need not look for facts but references */
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
    bool waits; /* `begin` mostly waits for a server; see `on_wait` of struct platform_store */
    bool keys_refuse; /* `commit` refuses a used id as STATUS_CONFLICT, looked for or not */
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
     * checked. The handle's `watch` hears of it now and then, as it may take
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

/* See check_end. */
MUST_CHECK enum status platform_ledger_check_end(struct platform_store *store,
                                                 struct ledger_end *end, struct error *error);

/* Lets the ledger continue without rows that it has lost, with a row of the audit trail. `last`
 * confirms the ledger's last number. STATUS_MALFORMED, with check_end's text, if it ends with
 * another number; nothing has happened. STATUS_CONFLICT: nothing is known to be lost. */
MUST_CHECK enum status platform_ledger_accept_loss(struct platform_store *store, int64_t last,
                                                   struct ledger_end *end, struct error *error);
