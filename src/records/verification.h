#pragma once

#include <stdbool.h>
#include <stdint.h>

/*
 * The end of a verification of the ledger (`croupier wallet verify`). The store keeps the last one
 * of each scope. One that came to no end, because the store failed, is none. Plain data. Threads:
 * any.
 */

enum verification_scope {
    VERIFICATION_WHOLE,
    VERIFICATION_RECENT, /* the entries since a day */
};
#define VERIFICATION_SCOPE_COUNT 2
const char *verification_scope_name(enum verification_scope scope); /* "whole" */

#define VERIFICATION_REASON_SIZE 256

struct verification_record {
    enum verification_scope scope;
    int64_t started_ms, ended_ms; /* wall clock */
    int64_t since_ms;             /* of the recent: from when on; else 0 */
    bool sound;
    uint64_t entries, players;             /* proved so far */
    char reason[VERIFICATION_REASON_SIZE]; /* the break, in printable ASCII; "": none */
};

/* It holds as much of the text as fits. */
void verification_set_reason(struct verification_record *record, const char *reason);
