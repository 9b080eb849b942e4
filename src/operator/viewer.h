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

/* Entries of a player in order (struct ledger_whose: from, before). */
struct viewer_statement {
    const char *player_id;
    uint64_t from, before;
};
MUST_CHECK enum status viewer_read_statement(struct platform_store *store,
                                             const struct viewer *viewer,
                                             const struct viewer_statement *asked,
                                             ledger_transaction_visitor *visit, void *context,
                                             struct error *error);

/* Usage of the days from `from_day` to `to_day`, both included, of a customer or of all (NULL): the
 * counts of requests, and what was moved. */
struct viewer_usage {
    const char *customer_id;
    int64_t from_day, to_day;
};
MUST_CHECK enum status viewer_read_requests(struct platform_store *store,
                                            const struct viewer *viewer,
                                            const struct viewer_usage *asked, usage_function *see,
                                            void *context, struct error *error);
MUST_CHECK enum status viewer_read_movements(struct platform_store *store,
                                             const struct viewer *viewer,
                                             const struct viewer_usage *asked,
                                             ledger_sum_visitor *visit, void *context,
                                             struct error *error);

/* Rounds, as people ask for them; NULL or "": not given. Without `from` they are those of the
 * VIEWER_ROUND_DAYS days before the end of the time. */
#define VIEWER_ROUND_DAYS 30
struct viewer_rounds {
    const char *customer_id, *provider_id;
    const char *from, *to;  /* dates (UTC), both included: when rounds began */
    const char *older_than; /* a time as time_parse_past reads it: rounds that began before it */
    bool open;
};
/* Reads the words above at `now_ms`. STATUS_INVALID: `error` begins with the name of the wrong
 * field. */
MUST_CHECK enum status viewer_ask_rounds(const struct viewer_rounds *given, int64_t now_ms,
                                         struct ledger_rounds_asked *asked, struct error *error);
/* It reads in a snapshot of its own. */
MUST_CHECK enum status viewer_read_rounds(struct platform_store *store, const struct viewer *viewer,
                                          const struct ledger_rounds_asked *asked,
                                          ledger_round_visitor *visit, void *context,
                                          struct error *error);
