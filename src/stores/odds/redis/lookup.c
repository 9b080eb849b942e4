/*
 * The addresses of names, found without waiting. See redis.h.
 *
 * getaddrinfo may take half a minute when the network's name servers are silent, and cannot be
 * called off. In libuv's pool of four threads, abandoned lookups would hold up those that are
 * waited for, and a loop cannot be closed before all of its own have ended. So each has a thread of
 * its own, which is not joined, and a name is never looked up twice at once: whoever asks again
 * waits for the lookup that is under way.
 *
 * A lookup lives as long as it is referred to: the list it stands in, its thread, its mail.
 * `mailbox` is guarded by the lock; the result is the thread's until the mail is posted; all else
 * is the I/O thread's.
 */
#include <netdb.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include <uv.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds/redis/redis.h"

#define LOOKUPS_MAX (2 * REDIS_HOSTS_MAX)
#define KEPT_NS ((uint64_t)10 * 1000 * 1000 * 1000) /* an answer that was not asked for yet */

struct lookup {
    struct mail mail; /* first */
    atomic_uint references;
    char name[REDIS_HOST_SIZE];

    uv_mutex_t lock;
    struct mailbox *mailbox; /* NULL: the answer is not wanted any more */

    int result; /* of getaddrinfo */
    struct redis_addresses addresses;

    struct redis_lookups *lookups; /* NULL: they are gone */
    struct lookup *next;
    uint64_t answered_ns; /* 0: not yet */
};

struct redis_lookups {
    struct mailbox *mailbox;
    void *owner;
    void (*answered)(void *owner, const char *name);
    struct lookup *first;
    size_t count;
};

/* ---- life ------------------------------------------------------------------------------------ */

struct redis_lookups *redis_lookups_create(struct mailbox *mailbox, void *owner,
                                           void (*answered)(void *owner, const char *name))
{
    struct redis_lookups *lookups = memory_alloc_zeroed(1, sizeof *lookups);
    lookups->mailbox = mailbox;
    lookups->owner = owner;
    lookups->answered = answered;
    return lookups;
}

static void release(struct lookup *lookup)
{
    if (atomic_fetch_sub(&lookup->references, 1) > 1)
        return;
    uv_mutex_destroy(&lookup->lock);
    memory_free(lookup);
}

/* Takes it out of the list. Its thread may still be busy. */
static void drop(struct lookup *lookup)
{
    struct lookup **place = &lookup->lookups->first;
    while (*place != lookup)
        place = &(*place)->next;
    *place = lookup->next;
    lookup->lookups->count--;
    lookup->lookups = NULL;
    uv_mutex_lock(&lookup->lock);
    lookup->mailbox = NULL;
    uv_mutex_unlock(&lookup->lock);
    release(lookup);
}

void redis_lookups_destroy(struct redis_lookups **lookups)
{
    if (*lookups == NULL)
        return;
    while ((*lookups)->first != NULL)
        drop((*lookups)->first);
    memory_free(*lookups);
    *lookups = NULL;
}

/* ---- the thread of a lookup ------------------------------------------------------------------ */

static bool is_there(const struct redis_addresses *addresses, const char *numeric)
{
    for (size_t i = 0; i < addresses->count; i++)
        if (strcmp(addresses->list[i], numeric) == 0)
            return true;
    return false;
}

static void take_addresses(struct redis_addresses *addresses, const struct addrinfo *list)
{
    for (; list != NULL && addresses->count < REDIS_ADDRESSES_MAX; list = list->ai_next) {
        char *numeric = addresses->list[addresses->count];
        if (getnameinfo(list->ai_addr, list->ai_addrlen, numeric, REDIS_ADDRESS_SIZE, NULL, 0,
                        NI_NUMERICHOST) == 0 &&
            !is_there(addresses, numeric))
            addresses->count++;
    }
}

static void on_mail(struct mail *mail)
{
    struct lookup *lookup = (struct lookup *)mail;
    struct redis_lookups *lookups = lookup->lookups;
    if (lookups != NULL) {
        lookup->answered_ns = clock_monotonic_ns();
        lookups->answered(lookups->owner, lookup->name);
    }
    release(lookup);
}

static void *look_up(void *argument)
{
    struct lookup *lookup = argument;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    (void)pthread_setname_np(pthread_self(), "odds-lookup");
    lookup->result = getaddrinfo(lookup->name, NULL, &hints, &list);
    if (lookup->result == 0) {
        take_addresses(&lookup->addresses, list);
        freeaddrinfo(list);
    }
    uv_mutex_lock(&lookup->lock);
    if (lookup->mailbox != NULL) {
        (void)atomic_fetch_add(&lookup->references, 1); /* the mail's */
        lookup->mail.deliver = on_mail;
        mailbox_post(lookup->mailbox, &lookup->mail);
    }
    uv_mutex_unlock(&lookup->lock);
    release(lookup);
    return NULL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* NULL: the machine has no thread to spare. */
static struct lookup *begin(struct redis_lookups *lookups, const char *name)
{
    struct lookup *lookup = memory_alloc_zeroed(1, sizeof *lookup);
    pthread_t thread;
    (void)snprintf(lookup->name, sizeof lookup->name, "%s", name);
    lookup->lookups = lookups;
    lookup->mailbox = lookups->mailbox;
    atomic_init(&lookup->references, 2); /* the list's and the thread's */
    CHECK(uv_mutex_init(&lookup->lock) == 0);
    lookup->next = lookups->first;
    lookups->first = lookup;
    lookups->count++;
    /* It inherits that this thread takes no signals. */
    if (pthread_create(&thread, NULL, look_up, lookup) == 0) {
        CHECK(pthread_detach(thread) == 0);
        return lookup;
    }
    drop(lookup);
    release(lookup);
    return NULL;
}

static struct lookup *find(struct redis_lookups *lookups, const char *name)
{
    uint64_t now_ns = clock_monotonic_ns();
    struct lookup *found = NULL;
    struct lookup *next;
    for (struct lookup *lookup = lookups->first; lookup != NULL; lookup = next) {
        next = lookup->next;
        if (lookup->answered_ns != 0 && now_ns - lookup->answered_ns > KEPT_NS)
            drop(lookup);
        else if (strcmp(lookup->name, name) == 0)
            found = lookup;
    }
    return found;
}

static bool is_numeric(const char *name)
{
    struct sockaddr_in6 address;
    return strlen(name) < REDIS_ADDRESS_SIZE &&
           (uv_ip4_addr(name, 0, (struct sockaddr_in *)(void *)&address) == 0 ||
            uv_ip6_addr(name, 0, &address) == 0);
}

enum status redis_lookups_find(struct redis_lookups *lookups, const char *name,
                               struct redis_addresses *addresses, struct error *error)
{
    if (is_numeric(name)) {
        *addresses = (struct redis_addresses){.count = 1};
        (void)snprintf(addresses->list[0], REDIS_ADDRESS_SIZE, "%s", name);
        return STATUS_OK;
    }
    struct lookup *lookup = find(lookups, name);
    if (lookup == NULL && lookups->count < LOOKUPS_MAX)
        lookup = begin(lookups, name);
    if (lookup == NULL)
        return error_set(error, STATUS_UNAVAILABLE,
                         "the address of %s cannot be looked up: too much is under way", name);
    if (lookup->answered_ns == 0)
        return STATUS_PENDING;
    enum status status = STATUS_OK;
    if (lookup->addresses.count > 0)
        *addresses = lookup->addresses;
    else
        status = error_set(error, STATUS_UNAVAILABLE, "the address of %s cannot be found: %s", name,
                           gai_strerror(lookup->result != 0 ? lookup->result : EAI_NONAME));
    drop(lookup); /* an answer is good for one question */
    return status;
}

bool redis_lookups_under_way(const struct redis_lookups *lookups)
{
    for (const struct lookup *lookup = lookups->first; lookup != NULL; lookup = lookup->next)
        if (lookup->answered_ns == 0)
            return true;
    return false;
}
