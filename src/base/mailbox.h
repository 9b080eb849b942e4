#pragma once

#include <sys/queue.h>

#include <uv.h>

#include "base/status.h"

/*
 * How any thread hands something to a thread that runs a libuv loop.
 *
 * A `struct mail` is embedded in whatever is handed over and belongs to the mailbox from post to
 * delivery. `deliver` runs on the loop's thread, once, never inside mailbox_post. Mails of one
 * sender are delivered in order. The bound is the senders': each mail is part of an object that
 * was bounded when it was made.
 */
struct mail {
    STAILQ_ENTRY(mail) link; /* the mailbox's */
    void (*deliver)(struct mail *mail);
};
STAILQ_HEAD(mail_list, mail);

struct mailbox;

/* Made on the loop's thread (or before it runs). The mailbox does not keep the loop alive. */
struct mailbox *mailbox_create(uv_loop_t *loop);

/* The loop that delivers, for a timer beside the mail. */
uv_loop_t *mailbox_loop(struct mailbox *mailbox);

/* Any thread, any time between create and destroy. */
void mailbox_post(struct mailbox *mailbox, struct mail *mail);

/* Posts all of them with one wake-up; they are delivered in one go. The list is empty
 * afterwards. */
void mailbox_post_all(struct mailbox *mailbox, struct mail_list *mails);

/* Call it on the loop's thread, when no post can follow. Delivers the remaining mail first, then
 * closes the handle; the loop must run once more to release it. */
void mailbox_destroy(struct mailbox **mailbox);
