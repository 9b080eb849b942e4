/*
 * A list under a mutex and an eventfd that the loop polls. Delivery takes the whole list at once
 * and walks it without the lock.
 *
 * It is no uv_async_t: libuv 1.44 (Debian 12) lets the receiver spin and yield until the sender is
 * back from waking it, and on one processor it is the receiver that keeps the sender from going on.
 */
#include "base/mailbox.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/memory.h"

struct mailbox {
    uv_poll_t wake;
    int event;
    atomic_uint posting; /* senders that are not done with the mailbox */
    uv_mutex_t lock;     /* guards the list */
    struct mail_list mails;
};

/* Returns whether there was any. */
static bool deliver_all(struct mailbox *mailbox)
{
    struct mail_list taken = STAILQ_HEAD_INITIALIZER(taken);
    uv_mutex_lock(&mailbox->lock);
    STAILQ_CONCAT(&taken, &mailbox->mails);
    uv_mutex_unlock(&mailbox->lock);
    bool any = !STAILQ_EMPTY(&taken);
    while (!STAILQ_EMPTY(&taken)) {
        struct mail *mail = STAILQ_FIRST(&taken);
        STAILQ_REMOVE_HEAD(&taken, link); /* delivery may free it, or post it again */
        mail->deliver(mail);
    }
    return any;
}

static void on_wake(uv_poll_t *wake, int status, int events)
{
    struct mailbox *mailbox = wake->data;
    uint64_t wakes;
    (void)events;
    CHECK(status == 0 && read(mailbox->event, &wakes, sizeof wakes) == sizeof wakes);
    (void)deliver_all(mailbox);
}

struct mailbox *mailbox_create(uv_loop_t *loop)
{
    struct mailbox *mailbox = memory_alloc_zeroed(1, sizeof *mailbox);
    STAILQ_INIT(&mailbox->mails);
    CHECK(uv_mutex_init(&mailbox->lock) == 0);
    mailbox->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    CHECK(mailbox->event >= 0 && uv_poll_init(loop, &mailbox->wake, mailbox->event) == 0);
    CHECK(uv_poll_start(&mailbox->wake, UV_READABLE, on_wake) == 0);
    mailbox->wake.data = mailbox;
    uv_unref((uv_handle_t *)&mailbox->wake);
    return mailbox;
}

uv_loop_t *mailbox_loop(struct mailbox *mailbox)
{
    return mailbox->wake.loop;
}

void mailbox_post(struct mailbox *mailbox, struct mail *mail)
{
    struct mail_list mails = STAILQ_HEAD_INITIALIZER(mails);
    STAILQ_INSERT_TAIL(&mails, mail, link);
    mailbox_post_all(mailbox, &mails);
}

void mailbox_post_all(struct mailbox *mailbox, struct mail_list *mails)
{
    (void)atomic_fetch_add(&mailbox->posting, 1);
    uv_mutex_lock(&mailbox->lock);
    bool first = STAILQ_EMPTY(&mailbox->mails);
    STAILQ_CONCAT(&mailbox->mails, mails);
    uv_mutex_unlock(&mailbox->lock);
    if (first) /* else the sender of the first wakes */
        CHECK(write(mailbox->event, &(uint64_t){1}, sizeof(uint64_t)) == sizeof(uint64_t));
    (void)atomic_fetch_sub(&mailbox->posting, 1);
}

static void on_closed(uv_handle_t *handle)
{
    struct mailbox *mailbox = handle->data;
    (void)close(mailbox->event);
    uv_mutex_destroy(&mailbox->lock);
    memory_free(mailbox);
}

void mailbox_destroy(struct mailbox **mailbox)
{
    if (*mailbox == NULL)
        return;
    while (deliver_all(*mailbox)) /* a delivered mail may post again */
        ;
    while (atomic_load(&(*mailbox)->posting) > 0) /* the sender of that mail, on its way out */
        (void)sched_yield();
    uv_close((uv_handle_t *)&(*mailbox)->wake, on_closed);
    *mailbox = NULL;
}
