#pragma once

#include "records/launch.h"

/*
 * The ledger's records, the same for every engine (docs/decisions/ledger.md).
 *
 * A *transaction* is a wallet request that is kept for ever under its customer and its id, with
 * what was answered: applied, voided, or one of the declines that are kept. Applied and voided ones
 * are also *entries* of the player's account: they take its next sequence number (1, 2, 3 …), move
 * money between it and the clearing account of its customer and currency (a voided one moves
 * nothing), and are chained to the player's previous entry by SHA-256.
 *
 * The others are *declines*. They move nothing and take no sequence number, but their ids are used
 * up, so each is chained too: to the player's previous decline, under a position of its own (1, 2,
 * 3 …). Altering or removing one breaks that chain.
 *
 * Money is moved by the player's customer, or by the provider of the game that the player plays.
 * An id is that of its *owner*: unique for ever among the ids of one customer, or of one provider,
 * whichever player it is of. Nothing of one owner's ids can be seen or touched by another.
 *
 * An id can be *rolled back*, once, whether it is a transaction's or not used yet: then it will
 * never be applied. Everything here is plain data and pure functions. Threads: any.
 */

#define TRANSACTION_ID_SIZE \
    65 /* 1 to 64 of [A-Za-z0-9._:-], NUL-terminated; "" where there is none */
#define GAME_REFERENCE_SIZE 65 /* 1 to 64 bytes of plain UTF-8; "" where there is none */
#define LEDGER_HASH_SIZE 32
/* A customer's id or a provider's. No text is both: only customers' have an underscore. */
#define LEDGER_OWNER_SIZE PROVIDER_ID_SIZE

#define LEDGER_BALANCE_MAX 9007199254740991LL     /* 2^53 - 1 */
#define LEDGER_AMOUNT_MAX 1000000000000LL         /* 10^12 */
#define LEDGER_CLEARING_MAX 4611686018427387904LL /* 2^62: far from where int64_t would overflow */
#define LEDGER_SUM_MOST LEDGER_CLEARING_MAX       /* where sums of amounts stop */
#define LEDGER_SUM_UNKNOWN INT64_MIN              /* a difference of sums that stopped */

/* A request to the wallet. A BALANCE is answered and never kept. */
enum ledger_operation { LEDGER_DEBIT, LEDGER_CREDIT, LEDGER_ROLLBACK, LEDGER_BALANCE };
#define LEDGER_OPERATION_COUNT 3 /* the kept ones */
#define WALLET_OPERATION_COUNT 4 /* with BALANCE */
extern const struct enum_names ledger_operations, ledger_outcomes;
const char *ledger_operation_name(enum ledger_operation operation); /* "DEBIT" */
/* Reads the name of an operation that the ledger keeps. */
MUST_CHECK bool ledger_operation_parse(struct text name, enum ledger_operation *operation);

enum ledger_outcome {
    LEDGER_APPLIED,
    LEDGER_VOIDED,
    LEDGER_REFERENCE_NOT_FOUND,
    LEDGER_TRANSACTION_ROLLED_BACK,
    LEDGER_ALREADY_ROLLED_BACK,
    LEDGER_ALREADY_SETTLED,
    LEDGER_NOT_ROLLBACKABLE,
    LEDGER_INSUFFICIENT_FUNDS,
    LEDGER_BALANCE_LIMIT_EXCEEDED,
};
#define LEDGER_OUTCOME_COUNT 9
const char *ledger_outcome_name(enum ledger_outcome outcome); /* "insufficient_funds" */

/* The reason of a provider's CREDIT. All other transactions are LEDGER_WIN. */
enum ledger_kind { LEDGER_WIN, LEDGER_PROMO, LEDGER_JACKPOT, LEDGER_ADJUSTMENT };
#define LEDGER_KIND_COUNT 4
extern const struct enum_names ledger_kinds;

struct ledger_transaction {
    char customer_id[CUSTOMER_ID_SIZE];
    char player_id[PLAYER_ID_SIZE];
    char transaction_id[TRANSACTION_ID_SIZE];
    char reference[TRANSACTION_ID_SIZE];
    char game_id[GAME_REFERENCE_SIZE];
    char round_id[GAME_REFERENCE_SIZE];
    char provider_id[PROVIDER_ID_SIZE]; /* who moved it; "": the customer */
    char launch_id[LAUNCH_ID_SIZE];     /* from a provider's request */
    char currency[CURRENCY_SIZE];       /* the player's */
    uint8_t currency_exponent;
    enum ledger_operation operation;
    enum ledger_outcome outcome;
    enum ledger_kind kind;
    bool round_ended;     /* the provider said that its round ends with this */
    bool sandbox;         /* the customer is one; not hashed */
    int64_t amount_minor; /* asked for; of a ROLLBACK what it reversed, 0 when nothing */
    int64_t created_ms;
    /* Of an entry (applied, voided); else zeros. */
    uint64_t sequence;
    int64_t movement_minor; /* on the player's account; the clearing account's is its negative */
    int64_t balance_minor;  /* afterwards */
    uint8_t hash[LEDGER_HASH_SIZE];
    /* Of a decline that is to be written, or that a walk through declines visits; else 0. It has
     * `hash` then. */
    uint64_t decline;
};

/* "win" of a provider's CREDIT; "": it is none. */
const char *ledger_kind_name(const struct ledger_transaction *transaction);

bool ledger_is_entry(const struct ledger_transaction *transaction);
/* Is it a CREDIT that was applied and settles the DEBIT that it refers to? */
bool ledger_settles(const struct ledger_transaction *transaction);
/* Is it a ROLLBACK that rolled back what it refers to, or the id before its transaction came? */
bool ledger_rolls_back(const struct ledger_transaction *transaction);

/* The owner of its id. */
const char *ledger_owner(const struct ledger_transaction *transaction);
bool ledger_owner_is_provider(const char *owner_id);

/* "lau_…", as launches have it. */
MUST_CHECK bool launch_id_is_sound(struct text id);

/* The hash that an entry must have after the player's previous entry (zeros before the first): the
 * SHA-256 of `previous` and the entry's fields, each in a line of its own. A provider's has lines
 * more than a customer's, and one with a kind other than LEDGER_WIN or with the end of a round has
 * further lines. */
void ledger_entry_hash(const struct ledger_transaction *entry,
                       const uint8_t previous[LEDGER_HASH_SIZE], uint8_t hash[LEDGER_HASH_SIZE]);

/* A player's account. */
struct ledger_account {
    struct player_record player;
    int64_t balance_minor;
    uint64_t sequence; /* of its last entry; 0 before the first */
    uint8_t head[LEDGER_HASH_SIZE];
    uint64_t declines;                       /* position of its last decline; 0 before the first */
    uint8_t declines_head[LEDGER_HASH_SIZE]; /* hash of that */
};

/* The first fault of an entry of a player who has `account`: it must be chained to `previous`, the
 * hash of the entry before it (NULL: there is none), and be what the account says where it is the
 * last. NULL: nothing. */
const char *ledger_entry_flaw(const struct ledger_transaction *entry,
                              const struct ledger_account *account, const uint8_t *previous);

/* The hash of a decline: of `previous`, its position and its fields. */
void ledger_decline_hash(const struct ledger_transaction *decline,
                         const uint8_t previous[LEDGER_HASH_SIZE], uint8_t hash[LEDGER_HASH_SIZE]);

/* Makes it the account's last decline: gives it position and hash. */
void ledger_chain_decline(struct ledger_account *account, struct ledger_transaction *decline);

/* The ledger's knowledge of one id of one owner. */
struct ledger_id {
    int64_t number; /* the store's own name of it; 0: none, or the store needs none */
    bool known;     /* there is a transaction of that id */
    struct ledger_transaction transaction;
    bool rolled_back;
    char rolled_back_player[PLAYER_ID_SIZE];  /* of that ROLLBACK, */
    char rolled_back_by[TRANSACTION_ID_SIZE]; /* and its id */
    uint32_t standing_credits; /* of a DEBIT: applied CREDITs that refer to it, not rolled back */
    char settled_by[TRANSACTION_ID_SIZE]; /* the first of them; of a batch's facts perhaps "" */
};
