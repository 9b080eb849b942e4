#pragma once

#include "stores/platform_entries.h"

/*
 * Sums of the entries of the platform store's ledger, and its rounds.
 *
 * Sums are in integers of the minor unit. A field that does not group is "" or 0.
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
    char customer_name[CUSTOMER_NAME_SIZE];
    bool sandbox;                      /* of a sandbox customer: not the house's money */
    struct ledger_movements play;      /* stakes and wins */
    struct ledger_movements transfers; /* all other entries */
    struct ledger_movements all;       /* of both */
    struct ledger_kind_sum kinds[LEDGER_KIND_COUNT]; /* a part of `play`; LEDGER_WIN is the rest */
};

/* A sum that would be larger stops at LEDGER_SUM_MOST. A difference of such a sum is not known,
 * unless only its first part stopped. */
int64_t ledger_less(int64_t minor, int64_t less);

/* Return how far the players' accounts moved, and how far ROLLBACKs alone moved them. */
int64_t ledger_movement_minor(const struct ledger_movements *movements);
int64_t ledger_rollbacks_minor(const struct ledger_movements *movements);
uint64_t ledger_entries(const struct ledger_movements *movements);

void ledger_sum_add(struct ledger_sum *to, const struct ledger_sum *more);

/* Call it before platform_ledger_sums, and in no snapshot. It keeps the sums of the entries that
 * have come, if these are `least` or more, so that sums of whole days, not by round, read few
 * entries. It may take as long as reading all of them, once. (PostgreSQL's numbers have gaps, which
 * count: there, any `least` above 1 is LEDGER_SUMS_WORTH_KEEPING at least.) False: it failed, which
 * costs time alone. */
#define LEDGER_SUMS_WORTH_KEEPING 32768
bool platform_ledger_keep_sums(struct platform_store *store, int64_t least);

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
    bool bet_after_end, sandbox;
    enum ledger_round_state state;
};

struct ledger_rounds_asked {
    /* Rounds that began in this time. Entries from before are not read, later ones are. */
    struct ledger_scope scope;
    const char *player_id; /* NULL or "": of all */
    bool open;             /* only those that are open */
    bool newest_first;     /* else the oldest */
};
/* The cost depends on the number of entries since the time began. */
typedef bool ledger_round_visitor(void *context, const struct ledger_round *round);
MUST_CHECK enum status platform_ledger_rounds(struct platform_store *store,
                                              const struct ledger_rounds_asked *asked,
                                              ledger_round_visitor *visit, void *context,
                                              struct error *error);
