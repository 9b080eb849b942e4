#pragma once

#include "records/ledger_entry.h"

/*
 * The wallet's decision (docs/decisions/wallet.md): one pure function of the known facts and the
 * request. No I/O, no clock, no allocation; the same for every store. wallet/ledger.h makes the
 * batches around it. Threads: any.
 *
 * The rules, in the order in which they are judged:
 *
 *  1. An id that is known already: the same request gets the first answer, even if the facts have
 *     changed since (replayed); another one is WALLET_TRANSACTION_CONFLICT, and the first is kept.
 *  2. WALLET_PLAYER_NOT_FOUND, also for another customer's. WALLET_CURRENCY_MISMATCH.
 *  3. An id that was rolled back before it came is never applied: TRANSACTION_ROLLED_BACK.
 *  4. A reference that is another player's: WALLET_REFERENCE_CONFLICT, not kept.
 *  5. A stake of a player that is blocked: WALLET_PLAYER_BLOCKED, not kept. A stake is a DEBIT of a
 *     provider, or one that names a game or a round; other DEBITs pay out. DEBIT of a provider
 *     whose launch does not entitle it: WALLET_SESSION_IS_OVER, not kept. DEBIT that names a
 *     game: WALLET_GAME_NOT_FOUND when the customer does not see it, which is not kept either. So
 *     none of these refusals blocks a retry, nor a later CREDIT or ROLLBACK.
 *     Then INSUFFICIENT_FUNDS. CREDIT that refers to an id:
 *     TRANSACTION_ROLLED_BACK when that was rolled back; REFERENCE_NOT_FOUND unless it is an
 *     applied DEBIT. Then BALANCE_LIMIT_EXCEEDED. ROLLBACK of an id that was rolled back:
 *     ALREADY_ROLLED_BACK. Of a ROLLBACK: NOT_ROLLBACKABLE. Of an unknown or declined id: voided.
 *     Of a DEBIT with a standing CREDIT: ALREADY_SETTLED. Else all of it is reversed, if the
 *     balance allows it: INSUFFICIENT_FUNDS, BALANCE_LIMIT_EXCEEDED.
 */

/*
 * A request as decoded (wallet/request.h). Fields that its operation does not have are "" and 0.
 * Zeroed before it is filled in.
 *
 * A provider names the player by its own id, the subject. The ledger looks up the player and fills
 * in `player_id`, which is "" if there is none.
 */
struct wallet_request {
    enum ledger_operation operation;
    /* The owner of the request, never from the body: one of these, the other is "". */
    char customer_id[CUSTOMER_ID_SIZE];
    char provider_id[PROVIDER_ID_SIZE];
    bool sandbox;                      /* its owner is one; never from the body */
    char subject[TRANSACTION_ID_SIZE]; /* a provider's */
    char launch_id[LAUNCH_ID_SIZE];    /* a provider's */
    char player_id[TRANSACTION_ID_SIZE];
    char transaction_id[TRANSACTION_ID_SIZE];
    char reference[TRANSACTION_ID_SIZE];
    char game_id[GAME_REFERENCE_SIZE];
    char round_id[GAME_REFERENCE_SIZE];
    char currency[CURRENCY_SIZE];
    int64_t amount_minor;
    enum ledger_kind kind; /* a provider's, as the next */
    bool round_ended;
};

/* The state of the game that a request names. */
enum wallet_game {
    WALLET_GAME_VISIBLE,   /* the customer sees it; or none is named */
    WALLET_GAME_INVISIBLE, /* there is no such game, or the customer does not see it */
    WALLET_GAME_UNKNOWN,   /* there is no confirmed table of games to look it up in */
};

/* The session of the launch that a provider's DEBIT names. */
enum wallet_session {
    WALLET_SESSION_OPEN,    /* or none is needed */
    WALLET_SESSION_EXPIRED, /* or there is no such launch of this player and provider, for money */
};

/* A provider takes a stake in a session that a launch has begun. `launched`: the launch that the
 * request names exists; `age_ms` is its age. A session is good for `session_ms`. No other request
 * needs one. */
enum wallet_session wallet_session_at(const struct wallet_request *request, bool launched,
                                      int64_t age_ms, int64_t session_ms);

/* The facts from which a request is decided. */
struct wallet_state {
    const struct ledger_account *account; /* NULL: there is no such player */
    const struct ledger_id *id;           /* of the request's transaction_id */
    const struct ledger_id *reference;    /* of its reference; NULL when it has none */
    int64_t clearing_minor; /* balance of the clearing account of the customer and currency */
    enum wallet_session session;
    bool blocked;          /* the player is, now */
    enum wallet_game game; /* as of when the request came */
};

enum wallet_verdict {
    WALLET_KEPT,     /* decided: the ledger keeps `outcome` and the movement */
    WALLET_REPLAYED, /* decided before: the answer is state.id->transaction's */
    /* Refused and not kept: the same id may come again. */
    WALLET_TRANSACTION_CONFLICT,
    WALLET_REFERENCE_CONFLICT,
    WALLET_PLAYER_NOT_FOUND,
    WALLET_CURRENCY_MISMATCH,
    WALLET_SESSION_IS_OVER, /* of WALLET_SESSION_EXPIRED */
    WALLET_PLAYER_BLOCKED,
    WALLET_GAME_NOT_FOUND,
    WALLET_GAMES_UNAVAILABLE, /* of WALLET_GAME_UNKNOWN */
};

struct wallet_decision {
    enum wallet_verdict verdict;
    /* Of WALLET_KEPT: */
    enum ledger_outcome outcome;
    int64_t amount_minor;   /* to be shown and kept */
    int64_t movement_minor; /* on the player's account; 0 unless applied */
    bool rolls_back;        /* the reference is rolled back from now on */
};

/* May the request see the player's account at all? `player` may be NULL. */
bool wallet_may_see(const struct player_record *player, const struct wallet_request *request);

/* For every operation but BALANCE. */
struct wallet_decision wallet_decide(const struct wallet_state *state,
                                     const struct wallet_request *request);
