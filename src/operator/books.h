#ifndef CROUPIER_OPERATOR_BOOKS_H
#define CROUPIER_OPERATOR_BOOKS_H

#include "records/game.h"
#include "stores/platform_ledger.h"

/*
 * What the ledger's entries come to: sums by customer and currency and, where it is wanted, by day,
 * by provider and game, and by round. From one snapshot, in bounded memory, beside a running
 * server. Everything is added up from the entries themselves, in integers of the minor unit, so the
 * sums are the ledger's to the cent.
 *
 * What an entry belongs to. A debit names its game and round, or neither. A credit that names none
 * belongs where the debit belongs that it refers to, and a ROLLBACK, which names none, where what
 * it rolled back does. The provider is who moved it, else the game's. What leads to neither has ""
 * for both.
 */

/* One sum. What its lines do not differ by is "" or 0. */
struct books_line {
    int64_t day; /* UTC, since 1970-01-01 */
    char customer_id[CUSTOMER_ID_SIZE];
    char currency[CURRENCY_SIZE];
    char provider_id[PROVIDER_ID_SIZE];
    char game_id[GAME_REFERENCE_SIZE];
    char round_id[GAME_REFERENCE_SIZE];
    uint8_t currency_exponent;
    uint64_t entries[LEDGER_OPERATION_COUNT];
    int64_t debits_minor, credits_minor;           /* what was bet and won, in all */
    int64_t debits_back_minor, credits_back_minor; /* of that or of earlier: rolled back */
};

/* How far the players' accounts moved, and ROLLBACKs alone moved them. */
int64_t books_movement_minor(const struct books_line *line);
int64_t books_rollbacks_minor(const struct books_line *line);
uint64_t books_entries(const struct books_line *line);

/* Adds the one to the other. False: a sum would leave int64_t, and nothing was added. */
MUST_CHECK bool books_add(struct books_line *sum, const struct books_line *line);

struct books_options {
    /* Another handle of the store, to look up what a ROLLBACK or a credit refers to; NULL where
     * neither games nor rounds nor a provider are asked for. */
    struct platform_store *beside;
    const char *customer_id; /* only this one's entries; NULL: all */
    const char *provider_id; /* only those of its games; NULL: all */
    bool timed;              /* only what was entered from `from_ms` until before `to_ms` */
    int64_t from_ms, to_ms;
    bool by_day, by_game, by_round; /* a round belongs to a game: by both */
    /* May be NULL: each entry, once; of a time in order of time and decision, else by player (as
     * created) and sequence. On a thread of its own, and none is under way when books_read returns
     * or `line` is called. */
    ledger_transaction_visitor *entry;
    /* May be NULL: each sum, by customer, currency, day, provider, game and round. */
    bool (*line)(void *context, const struct books_line *line);
    /* May be NULL: now and then, how many entries have been read, of how many (0: not known). */
    void (*progress)(void *context, uint64_t done, uint64_t total);
    void *context;
    size_t lines_at_once; /* that are kept in memory; 0: as many as fit into some 30 MB. Of more,
                           * the entries are read again */
};

/* The visitors return false to stop early, which is STATUS_OK. STATUS_MALFORMED: a sum is beyond
 * any that a ledger can come to. Else the store failed. */
MUST_CHECK enum status books_read(struct platform_store *store, const struct books_options *options,
                                  struct error *error);

#endif
