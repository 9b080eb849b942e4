#pragma once

#include "records/ledger_entry.h"

/*
 * A fact: croupier saw this of one request of a sandbox caller. The store keeps facts, and judges
 * them when they are read (sql/statements/conduct.sql). A hash is a SipHash without a secret, so
 * that all instances agree; it is 0 where there is nothing to hash. Plain data. Threads: any.
 */

#define CONDUCT_REQUEST_SIZE 24 /* X-Request-Id, with the NUL */
#define CONDUCT_REASON_SIZE 32
#define CONDUCT_FACTS_MAX 10000 /* of one caller: the newest */
#define CONDUCT_NUMBERS 17

enum { CONDUCT_OTHER = LEDGER_BALANCE, CONDUCT_POLL = WALLET_OPERATION_COUNT };
enum { CONDUCT_FIRST = 1, CONDUCT_KEPT };

struct conduct_fact {
    char caller[PROVIDER_ID_SIZE]; /* a customer or a provider */
    char request_id[CONDUCT_REQUEST_SIZE];
    char reason[CONDUCT_REASON_SIZE]; /* of an error (docs/reasons.md); "": it was none */
    union {
        struct {
            int64_t from_ms, until_ms;   /* when it arrived, and when its answer was out */
            int64_t act;                 /* an operation that has an id, or one of the above */
            int64_t status;              /* 0: there was no whole answer */
            int64_t wanted_s, waited_ms; /* of a poll that may wait */
            int64_t pause_s;             /* of Retry-After */
            int64_t connection; /* whether it was the first on its own; 0: it came by a proxy */
            int64_t names_tag;  /* it had If-None-Match or If-Match */
            int64_t ends_round;
            /* Hashes of key and address; of the transaction id, else of what was asked for; of a
             * wallet request, as decoded, and of names in it; a player has its launch with it: */
            int64_t client, subject, content, reference, player, round;
            int64_t lost; /* requests of sandbox callers before it that were not looked at */
        };
        int64_t numbers[CONDUCT_NUMBERS];
    };
};

/* A verdict from the facts of a caller on one rule (sql/statements/conduct.sql): its name, "pass",
 * "fail" or "not seen", the rule, and the ids of requests that show it, separated by LF. */
enum { CONDUCT_CHECK, CONDUCT_RESULT, CONDUCT_MEANING, CONDUCT_REQUESTS, CONDUCT_TEXTS };
struct conduct_verdict {
    char texts[CONDUCT_TEXTS][4 * CONDUCT_REQUEST_SIZE];
};
