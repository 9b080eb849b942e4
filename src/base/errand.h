#pragma once

#include "base/mailbox.h"

/*
 * A call that may never return (a name server that is silent, a mount that hangs) runs on a
 * detached thread: neither a loop nor the end of the process waits for it.
 *
 * A `struct errand` is embedded in what the call needs and gives, which belongs to the errand from
 * errand_start until `destroy`.
 */
struct errand {
    struct mail mail;                       /* the errand's, as the next two */
    uv_mutex_t lock;                        /* guards `mailbox` */
    struct mailbox *mailbox;                /* NULL: abandoned */
    void (*run)(struct errand *errand);     /* on the thread; not called when there is no thread */
    void (*done)(struct errand *errand);    /* by the mailbox, never inside of errand_start */
    void (*destroy)(struct errand *errand); /* on either thread */
};

/* The caller has set the three functions. `name` shows in top and gdb. Signals are blocked on the
 * thread. */
void errand_start(struct errand *errand, struct mailbox *mailbox, const char *name);

/* `done` is not called any more. Call it on the thread of the mailbox, before the mailbox is
 * destroyed. */
void errand_abandon(struct errand *errand);
