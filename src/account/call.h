#pragma once

#include "account/account.h"
#include "account/error_rows.h"
#include "base/clock.h"
#include "base/json_writer.h"
#include "base/strict_json.h"
#include "http/query.h"
#include "operator/resource.h"
#include "operator/viewer.h"
#include "records/records.h"
#include "sealing/secrets.h"

/*
 * One request of /api/v1/account, as its handler sees it on a thread of the account's: the caller,
 * the question and the answer. A handler blocks as the store does, and knows no HTTP.
 */

#define ACCOUNT_DAYS_MAX 31
#define ACCOUNT_POSITION_SIZE 192 /* where a cursor leads on from: plain text with its NUL */
#define ACCOUNT_CURSOR_SIZE 352   /* of its text, with the NUL */
#define ACCOUNT_TIME_SIZE 40

/* The possible questions: parameters of a query, and members of a body. A text that was not given
 * is "". */
struct account_asked {
    char id[TRANSACTION_ID_SIZE], provider[PROVIDER_ID_SIZE];
    char reference[PLAYER_REFERENCE_SIZE], player_id[PLAYER_ID_SIZE];
    char state[8];
    char from[CLOCK_DAY_SIZE], to[CLOCK_DAY_SIZE], day[CLOCK_DAY_SIZE];
    char prefix[KEY_PREFIX_SIZE];
    uint32_t limit;
    char cursor[ACCOUNT_CURSOR_SIZE];
    /* of bodies alone: */
    bool blocked, early;
    char until[ACCOUNT_TIME_SIZE], reason[BLOCK_REASON_SIZE];
    char label[KEY_LABEL_SIZE], expires_at[ACCOUNT_TIME_SIZE];
    key_areas only;
};

/* Parameters; an act lists those that it takes, ended by NULL. */
extern const struct http_parameter account_id, account_provider, account_reference,
    account_player_id, account_state, account_from, account_to, account_day, account_prefix,
    account_limit, account_cursor;

struct account_call {
    struct platform_store *store;
    const struct account_act *act;
    const struct client_limits *limits;
    atomic_bool *reads_rounds; /* a thread does, which takes long: one at a time */
    struct secrets *secrets;   /* that seal cursors; NULL: the act takes none */
    struct account_caller caller;
    struct viewer viewer; /* the customer */
    int64_t now_ms;
    struct account_asked asked;
    /* Where the given cursor leads on from: a number, and what is behind its colon. */
    uint64_t from; /* 0: there is no cursor, or it leads on from the beginning */
    char position[ACCOUNT_POSITION_SIZE];
    struct text beside; /* of `position` */
    /* The answer. */
    int status;              /* 200, unless the handler says otherwise */
    struct buffer answer;    /* JSON: one object, */
    struct json_writer json; /* the handler writes its members, and next_cursor comes last */
    char next[ACCOUNT_POSITION_SIZE]; /* where that leads on from; "": null, as this is the end */
    const struct http_error *refusal; /* in place of what the status means; NULL: that */
    bool is_empty;                    /* it may wait until there is something in it */
};

/* ---- for handlers ---------------------------------------------------------------------------- */

/* Refuses the request with this error. */
enum status account_refuse(struct account_call *call, const struct http_error *refusal,
                           struct error *error);

/* The days from `from` to `to`, at most ACCOUNT_DAYS_MAX; `to` is today if it was not given, and
 * `from` so many days before. */
MUST_CHECK enum status account_days(const struct account_call *call, int64_t before,
                                    struct ledger_scope *scope, struct error *error);

/* Reads a time of a body, which must be in the future; "": 0. */
MUST_CHECK enum status account_ahead(const struct account_call *call, const char *name,
                                     const char *text, int64_t *time_ms, struct error *error);

/* A member of a body, whose form has one case. `read_` NULL: it is a text. */
#define ACCOUNT_MEMBER(name_, is_required_, sound_, read_, rule_)                            \
    {                                                                                        \
        TEXT_INIT(#name_), is_required_, 1, STRICT_JSON_FIELD(account_asked, name_), sound_, \
            read_, rule_, !(is_required_)                                                    \
    }
#define ACCOUNT_AHEAD "must be a time in the future, as 2027-01-31T18:00:00Z"
#define ACCOUNT_OUTSIDE_NAME "must be 1 to 64 letters, digits, '.', '_', ':' or '-'"

/* The given cursor is of another customer or query. */
enum status account_refuse_cursor(struct error *error);

/* Writes the members that a resource has for operators, by their names. */
void account_write_fields(struct json_writer *json, const struct resource *resource,
                          const char *const *names, const void *record);

/* ---- for account.c --------------------------------------------------------------------------- */

/* Reads a query; `fault` says what is wrong with it. */
MUST_CHECK bool account_read_query(struct text query, const struct account_act *act,
                                   struct account_asked *asked, struct strict_json_fault *fault);
/* Opens the cursor that was given. False: it is of another customer or query. */
MUST_CHECK bool account_read_cursor(struct account_call *call);
/* Writes next_cursor. */
void account_write_cursor(struct account_call *call);
