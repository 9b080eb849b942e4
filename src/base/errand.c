/*
 * See errand.h. The thread destroys an errand that was abandoned before it had a result; the
 * delivery of the mail destroys all others.
 */
#include "base/errand.h"

#include "base/threads.h"

static void destroy(struct errand *errand)
{
    uv_mutex_destroy(&errand->lock);
    errand->destroy(errand);
}

static void on_mail(struct mail *mail)
{
    struct errand *errand = (struct errand *)(void *)mail;
    uv_mutex_lock(&errand->lock); /* the thread may still hold it */
    bool abandoned = errand->mailbox == NULL;
    uv_mutex_unlock(&errand->lock);
    if (!abandoned)
        errand->done(errand);
    destroy(errand);
}

static void answer(struct errand *errand)
{
    uv_mutex_lock(&errand->lock);
    bool abandoned = errand->mailbox == NULL;
    if (!abandoned)
        mailbox_post(errand->mailbox, &errand->mail);
    uv_mutex_unlock(&errand->lock);
    if (abandoned)
        destroy(errand);
}

static void run(void *argument)
{
    struct errand *errand = argument;
    errand->run(errand);
    answer(errand);
}

void errand_start(struct errand *errand, struct mailbox *mailbox, const char *name)
{
    errand->mail.deliver = on_mail;
    errand->mailbox = mailbox;
    CHECK(uv_mutex_init(&errand->lock) == 0);
    if (!thread_start_detached(name, run, errand))
        answer(errand);
}

void errand_abandon(struct errand *errand)
{
    uv_mutex_lock(&errand->lock);
    errand->mailbox = NULL;
    uv_mutex_unlock(&errand->lock);
}
