/*
 * Looks a name up without waiting; see lookup.h.
 *
 * getaddrinfo may take half a minute when the name servers are silent, and cannot be called off. In
 * libuv's pool it would delay everything else there, the close of the loop and the end of the
 * process.
 */
#include "stores/odds/redis/lookup.h"

#include "base/errand.h"
#include "base/memory.h"
#include "stores/odds/redis/location.h"

struct redis_lookup {
    struct errand errand; /* first */
    char name[REDIS_HOST_SIZE];
    void *owner;
    redis_looked_up *answered;
    int result; /* of getaddrinfo */
    struct redis_addresses addresses;
};

static void look_up(struct errand *errand)
{
    struct redis_lookup *lookup = (struct redis_lookup *)errand;
    struct redis_addresses *addresses = &lookup->addresses;
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    lookup->result = getaddrinfo(lookup->name, NULL, &hints, &list);
    for (struct addrinfo *each = list; each != NULL && addresses->count < REDIS_ADDRESSES_MAX;
         each = each->ai_next)
        if (getnameinfo(each->ai_addr, each->ai_addrlen, addresses->list[addresses->count],
                        REDIS_ADDRESS_SIZE, NULL, 0, NI_NUMERICHOST) == 0)
            addresses->count++;
    if (list != NULL)
        freeaddrinfo(list);
}

static void tell(struct errand *errand)
{
    struct redis_lookup *lookup = (struct redis_lookup *)errand;
    struct error error;
    bool found = lookup->addresses.count > 0;
    if (!found)
        (void)error_set(&error, STATUS_UNAVAILABLE, "the address of %s cannot be found: %s",
                        lookup->name,
                        gai_strerror(lookup->result != 0 ? lookup->result : EAI_NONAME));
    lookup->answered(lookup->owner, &lookup->addresses, found ? NULL : error.text);
}

static void destroy(struct errand *errand)
{
    memory_free(errand);
}

struct redis_lookup *redis_lookup_start(struct mailbox *mailbox, const char *name, void *owner,
                                        redis_looked_up *answered)
{
    struct redis_lookup *lookup = memory_alloc_zeroed(1, sizeof *lookup);
    (void)snprintf(lookup->name, sizeof lookup->name, "%s", name);
    lookup->errand.run = look_up;
    lookup->errand.done = tell;
    lookup->errand.destroy = destroy;
    lookup->owner = owner;
    lookup->answered = answered;
    lookup->result = EAI_AGAIN; /* where there is no thread */
    errand_start(&lookup->errand, mailbox, "odds-lookup");
    return lookup;
}

void redis_lookup_abandon(struct redis_lookup **lookup)
{
    if (*lookup != NULL)
        errand_abandon(&(*lookup)->errand);
    *lookup = NULL;
}
