#pragma once

#include "base/mailbox.h"
#include "http/http.h"
#include "limits/client_limits.h"
#include "records/key.h"
#include "stores/platform.h"

/*
 * /api/v1/account…: what a customer sees of its own, and changes of it (docs/account.md).
 *
 * The requests of all serving threads go to threads of their own, which block as the store does: no
 * bet and no poll waits for them. They are bounded: ACCOUNT_AT_ONCE of a customer, ACCOUNT_QUEUE of
 * all; and one that waited for a thread for ACCOUNT_WAIT_MS is refused without the store.
 */
#define ACCOUNT_THREADS 2
#define ACCOUNT_AT_ONCE 8
#define ACCOUNT_QUEUE 128
#define ACCOUNT_WAIT_MS 5000

struct account;

/* The threads open the store by `platform`, and read the file when a cursor is first needed; both are
 * borrowed, as are the limits. */
struct account *account_create(const struct platform_store_options *platform,
                               const char *secrets_key_file, const struct client_limits *limits);
/* Call it when no request is left, before the mailboxes end. */
void account_destroy(struct account **account);

/* What a route does: a constant of the file that does it (account/call.h). */
struct account_act;
/* The area that a key must have for it. */
key_areas account_area(const struct account_act *act);
/* Does its route answer DELETE as well? NULL: no. */
bool account_deletes(const struct account_act *act);

struct account_caller {
    char customer_id[CUSTOMER_ID_SIZE];
    char key_prefix[KEY_PREFIX_SIZE];
    uint8_t key_digest[KEY_DIGEST_SIZE];
};

/* Replies now, or later through the thread's mailbox. */
void account_route(struct account *account, struct mailbox *mailbox, struct http_request *request,
                   const struct account_caller *caller, const struct account_act *act);

/* The acts of the routes. */
extern const struct account_act account_show, account_block, account_key_make;
