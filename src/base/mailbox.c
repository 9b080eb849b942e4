/*
 * A list under a mutex and one uv_async_t. libuv folds several sends into one wake-up, so delivery
 * takes the whole list at once and walks it without the lock.
 */
#include "base/mailbox.h"

#include "base/memory.h"

struct mailbox {
    uv_async_t wake;
    uv_mutex_t lock; /* guards the list */
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

static void on_wake(uv_async_t *wake)
{
    (void)deliver_all(wake->data);
}

struct mailbox *mailbox_create(uv_loop_t *loop)
{
    struct mailbox *mailbox = memory_alloc_zeroed(1, sizeof *mailbox);
    STAILQ_INIT(&mailbox->mails);
    CHECK(uv_mutex_init(&mailbox->lock) == 0);
    CHECK(uv_async_init(loop, &mailbox->wake, on_wake) == 0);
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
    uv_mutex_lock(&mailbox->lock);
    STAILQ_CONCAT(&mailbox->mails, mails);
    /* The sender wakes under the lock: a receiver may destroy this mailbox because of the mail, so
     * the mail is taken only after the sender has released the handle. */
    CHECK(uv_async_send(&mailbox->wake) == 0);
    uv_mutex_unlock(&mailbox->lock);
}

static void on_closed(uv_handle_t *handle)
{
    struct mailbox *mailbox = handle->data;
    uv_mutex_destroy(&mailbox->lock);
    memory_free(mailbox);
}

void mailbox_destroy(struct mailbox **mailbox)
{
    if (*mailbox == NULL)
        return;
    while (deliver_all(*mailbox)) /* a delivered mail may post again */
        ;
    uv_close((uv_handle_t *)&(*mailbox)->wake, on_closed);
    *mailbox = NULL;
}
