#pragma once

#include "stores/platform.h"

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
extern const struct enum_names verification_scopes; /* "whole" */

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
