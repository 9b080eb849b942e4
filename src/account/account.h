#pragma once

#include "limits/client_limits.h"
#include "records/key.h"
#include "sports/sports.h"
#include "stores/platform.h"

/*
 * /api/v1/account…: a customer sees its own, and changes it (docs/account.md).
 *
 * The requests of all serving threads go to threads of their own, which block as the store does: no
 * bet and no poll waits for them. They are bounded: ACCOUNT_AT_ONCE of a customer, and as many that
 * change something, so that readers hold up no block; ACCOUNT_QUEUE of all; and one that waited for
 * a thread for ACCOUNT_WAIT_MS is refused without the store.
 *
 * One that finds nothing new may wait for it (`Prefer: wait=N`): parked, and judged again every
 * ACCOUNT_LOOK_MS, as if it had come now. ACCOUNT_WAITS of these wait of a customer,
 * ACCOUNT_WAITS_MAX of all, so that their looks leave room in the queue; others are answered at
 * once.
 */
#define ACCOUNT_THREADS 2
#define ACCOUNT_AT_ONCE 8
#define ACCOUNT_QUEUE 128
#define ACCOUNT_WAIT_MS 5000
#define ACCOUNT_WAITS 2
#define ACCOUNT_WAITS_MAX 64
#define ACCOUNT_LOOK_MS 1000

struct account;

/* The threads open the store by `platform`, and read the file when a cursor is first needed; both
 * are borrowed, as are the limits. */
struct account *account_create(const struct platform_store_options *platform,
                               const char *secrets_key_file, const struct client_limits *limits);
/* Call it when no request is left, before the mailboxes end. */
void account_destroy(struct account **account);

struct account_call;
struct http_parameter;
struct strict_json_form;

/* STATUS_INVALID is 400 and begins the error with the wrong parameter or member ("from: must …");
 * with a `refusal` any status is that; STATUS_OK is `answer`; any other is 503, or 500. */
typedef enum status account_handler(struct account_call *call, struct error *error);

/* The acts of a route: a constant of the file that does it. */
#define ACCOUNT_PARAMETERS_MAX 8
struct account_act {
    const char *name; /* the last word of its route */
    key_areas area;
    account_handler *handle;
    const struct http_parameter *parameters[ACCOUNT_PARAMETERS_MAX + 1];
    const struct http_parameter *required; /* of them; NULL: none */
    const struct http_error *missing;      /* what STATUS_NOT_FOUND is; NULL: a bug */
    const struct strict_json_form *form;   /* of the body; NULL: it takes none */
    const struct account_act *on_delete;   /* for DELETE of its route; NULL: there is none */
};

struct account_caller {
    char customer_id[CUSTOMER_ID_SIZE];
    char key_prefix[KEY_PREFIX_SIZE];
    uint8_t key_digest[KEY_DIGEST_SIZE];
};

/* Replies now, or later through the thread's mailbox. `waits` is copied. */
void account_route(struct account *account, struct mailbox *mailbox,
                   const struct sports_waits *waits, struct http_request *request,
                   const struct account_caller *caller, const struct account_act *act);

/* For the console: the answer to a GET of this customer, without its budget. It blocks.
 * STATUS_INVALID: the query; STATUS_CONFLICT: it is refused at present. */
struct account_sight {
    const struct account_act *act; /* that reads */
    struct platform_store *store;
    int64_t now_ms;
    const char *customer_id; /* of one that there is */
    struct text query;
    struct buffer *answer;
};
MUST_CHECK enum status account_see(struct account *account, const struct account_sight *sight,
                                   struct error *error);

/* The acts of the routes. */
extern const struct account_act account_show, account_block, account_key_make, account_transactions,
    account_players, account_statement, account_entries, account_days_act, account_usage,
    account_rounds;
