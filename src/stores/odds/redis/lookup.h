#pragma once

#include "base/mailbox.h"

#define REDIS_ADDRESSES_MAX 16 /* of one name; there may be more, which are not used */
#define REDIS_ADDRESS_SIZE 64  /* numeric, with a scope and its NUL */

struct redis_addresses {
    char list[REDIS_ADDRESSES_MAX][REDIS_ADDRESS_SIZE];
    size_t count;
    size_t next; /* for the owner: the next one to try */
};

/* One lookup of a name or a numeric address. Nothing waits for it, however long it takes. */
struct redis_lookup;

/* `problem` is NULL when there are addresses. The lookup is freed after this call. */
typedef void redis_looked_up(void *owner, const struct redis_addresses *addresses,
                             const char *problem);
/* `answered` is called once, by the mailbox, never inside of this function. */
struct redis_lookup *redis_lookup_start(struct mailbox *mailbox, const char *name, void *owner,
                                        redis_looked_up *answered);
/* `answered` is not called any more. Call it on the thread of the mailbox, before the mailbox is
 * destroyed. */
void redis_lookup_abandon(struct redis_lookup **lookup);
