/*
 * Looks a name up without waiting; see lookup.h.
 *
 * getaddrinfo may take half a minute when the name servers are silent, and cannot be called off. In
 * libuv's pool it would delay everything else there, the close of the loop and the end of the
 * process. So each lookup has a thread that is not joined.
 *
 * The lock guards `mailbox` and `owner`. The thread frees a lookup that was abandoned before it had
 * a result; the delivery of the mail frees all others.
 */
#include "stores/odds/redis/lookup.h"

#include <netdb.h>
#include <pthread.h>

#include <uv.h>

#include "base/memory.h"
#include "stores/odds/redis/location.h"

struct redis_lookup {
    struct mail mail; /* first */
    char name[REDIS_HOST_SIZE];
    uv_mutex_t lock;
    struct mailbox *mailbox; /* NULL: abandoned before there was a result */
    void *owner;             /* NULL: abandoned */
    redis_looked_up *answered;
    int result; /* of getaddrinfo; it and the addresses are the thread's until the mail is posted */
    struct redis_addresses addresses;
};

static void destroy(struct redis_lookup *lookup)
{
    uv_mutex_destroy(&lookup->lock);
    memory_free(lookup);
}

static void on_mail(struct mail *mail)
{
    struct redis_lookup *lookup = (struct redis_lookup *)mail;
    struct error error;
    bool found = lookup->addresses.count > 0;
    uv_mutex_lock(&lookup->lock); /* the thread may still hold it */
    void *owner = lookup->owner;
    uv_mutex_unlock(&lookup->lock);
    if (!found)
        (void)error_set(&error, STATUS_UNAVAILABLE, "the address of %s cannot be found: %s",
                        lookup->name,
                        gai_strerror(lookup->result != 0 ? lookup->result : EAI_NONAME));
    if (owner != NULL)
        lookup->answered(owner, &lookup->addresses, found ? NULL : error.text);
    destroy(lookup);
}

static void answer(struct redis_lookup *lookup)
{
    uv_mutex_lock(&lookup->lock);
    bool abandoned = lookup->mailbox == NULL;
    if (!abandoned)
        mailbox_post(lookup->mailbox, &lookup->mail);
    uv_mutex_unlock(&lookup->lock);
    if (abandoned)
        destroy(lookup);
}

static void *look_up(void *argument)
{
    struct redis_lookup *lookup = argument;
    struct redis_addresses *addresses = &lookup->addresses;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    (void)pthread_setname_np(pthread_self(), "odds-lookup");
    lookup->result = getaddrinfo(lookup->name, NULL, &hints, &list);
    for (struct addrinfo *each = list; each != NULL && addresses->count < REDIS_ADDRESSES_MAX;
         each = each->ai_next)
        if (getnameinfo(each->ai_addr, each->ai_addrlen, addresses->list[addresses->count],
                        REDIS_ADDRESS_SIZE, NULL, 0, NI_NUMERICHOST) == 0)
            addresses->count++;
    if (list != NULL)
        freeaddrinfo(list);
    answer(lookup);
    return NULL;
}

struct redis_lookup *redis_lookup_start(struct mailbox *mailbox, const char *name, void *owner,
                                        redis_looked_up *answered)
{
    struct redis_lookup *lookup = memory_alloc_zeroed(1, sizeof *lookup);
    pthread_t thread;
    (void)snprintf(lookup->name, sizeof lookup->name, "%s", name);
    lookup->mail.deliver = on_mail;
    lookup->mailbox = mailbox;
    lookup->owner = owner;
    lookup->answered = answered;
    CHECK(uv_mutex_init(&lookup->lock) == 0);
    /* It inherits that this thread takes no signals. */
    if (pthread_create(&thread, NULL, look_up, lookup) == 0) {
        CHECK(pthread_detach(thread) == 0);
    } else {
        lookup->result = EAI_AGAIN;
        answer(lookup);
    }
    return lookup;
}

void redis_lookup_abandon(struct redis_lookup **lookup)
{
    struct redis_lookup *mine = *lookup;
    *lookup = NULL;
    if (mine == NULL)
        return;
    uv_mutex_lock(&mine->lock);
    mine->owner = NULL;
    mine->mailbox = NULL;
    uv_mutex_unlock(&mine->lock);
}
