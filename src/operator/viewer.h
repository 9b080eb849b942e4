#pragma once

#include "stores/platform_sums.h"
#include "stores/platform_usage.h"

/*
 * Decides what a reader may see of the ledger and of usage. Commands and the console read as the
 * operator, who sees every customer. A viewer that is a customer sees its own players, rounds and
 * usage, and of others' it learns nothing: they are STATUS_NOT_FOUND, as if they did not exist.
 */
struct viewer {
    const char *customer_id; /* NULL: the operator */
};
extern const struct viewer viewer_operator;

/* The account of a player. */
MUST_CHECK enum status viewer_account(struct platform_store *store, const struct viewer *viewer,
                                      const char *player_id, struct ledger_account *account,
                                      struct error *error);

/* Entries of a player in order. */
struct viewer_statement {
    const char *player_id;
    uint64_t before;        /* until before which sequence; 0: all */
    int64_t from_ms, to_ms; /* to_ms 0: any */
    const char *kind;       /* NULL: any */
    bool newest_first;
};
/* "" (anything), operations, and the kinds of providers' CREDITs; NULL ends them. */
extern const char *const viewer_kinds[];
bool viewer_is_of_kind(const char *kind, const struct ledger_transaction *entry);

/* Visits the newest entries of a statement, at most `limit`, the oldest first or not; `next` is
 * `before` of the page of older ones (0: there is none). The work is bounded, so a page may have
 * fewer entries than there are, or none. */
#define VIEWER_PAGE_MAX 1000
MUST_CHECK enum status viewer_read_page(struct platform_store *store, const struct viewer *viewer,
                                        const struct viewer_statement *asked, uint64_t limit,
                                        uint64_t *next, ledger_transaction_visitor *visit,
                                        void *context, struct error *error);

/* The fate of an id of an owner, a customer or a provider. STATUS_NOT_FOUND: it was never used,
 * or for a player that the viewer may not see. */
MUST_CHECK enum status viewer_find_transaction(struct platform_store *store,
                                               const struct viewer *viewer, const char *owner_id,
                                               const char *id, struct ledger_fact *fact,
                                               struct error *error);

/* A page of a tail that has what was committed before the call, but for a batch that takes longer
 * than 0.1 s. `tail` has a place and a limit. */
MUST_CHECK enum status viewer_read_tail(struct platform_store *store, const struct viewer *viewer,
                                        struct ledger_tail *tail, ledger_numbered_visitor *visit,
                                        void *context, struct error *error);

/* Days, as people ask for them; NULL or "": not given. */
struct viewer_days {
    const char *customer_id, *provider_id;
    const char *from, *to; /* dates (UTC), both included; `to` is else today */
    int64_t before;        /* so many days before `to`, if there is no `from` */
    int64_t most;          /* days; 0: any number */
};
/* Reads the words above at `now_ms`. STATUS_INVALID: `error` begins with the name of the wrong
 * field. */
MUST_CHECK enum status viewer_ask_days(const struct viewer_days *given, int64_t now_ms,
                                       struct ledger_scope *scope, struct error *error);

/* Usage and money of whole days: the counts of requests; sums by day, then, if `lines`, by provider
 * and game, of one snapshot; and the entries that these are of, in order of time. */
MUST_CHECK enum status viewer_read_requests(struct platform_store *store,
                                            const struct viewer *viewer,
                                            const struct ledger_scope *asked, usage_function *see,
                                            void *context, struct error *error);
MUST_CHECK enum status viewer_read_sums(struct platform_store *store, const struct viewer *viewer,
                                        const struct ledger_scope *asked, bool lines,
                                        ledger_sum_visitor *visit, void *context,
                                        struct error *error);
MUST_CHECK enum status viewer_read_entries(struct platform_store *store,
                                           const struct viewer *viewer,
                                           const struct ledger_scope *asked,
                                           ledger_transaction_visitor *visit, void *context,
                                           struct error *error);

/* Narrows rounds to those that began before a time, as time_parse_past reads it: `older_than`,
 * unless it is NULL or "". */
#define VIEWER_ROUND_DAYS 30 /* before the last, if no first day is given */
MUST_CHECK enum status viewer_ask_older(const char *older_than, int64_t now_ms,
                                        struct ledger_scope *scope, struct error *error);
/* It reads in a snapshot of its own. */
MUST_CHECK enum status viewer_read_rounds(struct platform_store *store, const struct viewer *viewer,
                                          const struct ledger_rounds_asked *asked,
                                          ledger_round_visitor *visit, void *context,
                                          struct error *error);
