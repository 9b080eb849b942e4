#pragma once

#include "stores/platform_ledger.h"

/* Reading the ledger of the platform store, entry by entry (stores/platform/ledger). */

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

/* When one entry of a player was made; `made_ms` stays as it is where there is none. */
MUST_CHECK enum status platform_ledger_entry_made(struct platform_store *store,
                                                  const char *player_id, uint64_t sequence,
                                                  int64_t *made_ms, struct error *error);

/* A time, from `from_ms` until before `to_ms`; of a customer or a provider, or of all (NULL). */
struct ledger_scope {
    int64_t from_ms, to_ms;
    const char *customer_id, *provider_id;
    /* For platform_ledger_entered alone, where "" is a provider or a game that there is not. */
    const char *game_id;
    /* "stake", "win", "promo" …, "paid_in" or "paid_out", or "" for all of them. Unless it is NULL,
     * or a customer is given, entries of sandbox customers are left out. */
    const char *figure;
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
    /* NULL: all entries are visited, LEDGER_PAGE a page. Else a page visits those of a customer
     * among the next few thousand, at most `limit`. */
    const char *customer_id;
    size_t limit;
    int64_t place;                  /* number of the last entry that was visited; 0: none */
    bool known;                     /* `hash` is that entry's */
    uint8_t hash[LEDGER_HASH_SIZE]; /* checked by the next page */
    bool more;                      /* there may be more at once */
    bool lost;                      /* the entry at `place` is not there, or is another one */
    bool whole;     /* all has been visited that was committed when the tail began */
    int64_t until;  /* where that ends; 0: not known yet */
    int64_t looked; /* up to where all entries have been visited; 0: not known */
    struct ledger_horizon horizon;
};
typedef bool ledger_numbered_visitor(void *context, int64_t number,
                                     const struct ledger_transaction *entry);
/* The next page. STATUS_MALFORMED: the entry at `place` is not there,
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
