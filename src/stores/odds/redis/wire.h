#pragma once

#include <uv.h>

#include "stores/odds/redis/location.h"
#include "stores/odds/redis/reply.h"

/*
 * One connection, on the thread of its loop. Replies come in the order of the commands. `lost` is
 * called once, by the loop and never inside of a function; the owner then destroys the wire. A
 * callback may destroy the wire that calls it.
 */
struct redis_wire;

struct redis_wire_events {
    void *owner;
    void (*lost)(void *owner, const char *why);
    /* A push; NULL: none is expected. */
    void (*message)(void *owner, const struct redis_reply *message);
};

struct redis_target {
    bool local;                 /* `name` is the path of a socket */
    char name[REDIS_HOST_SIZE]; /* or a numeric address */
    uint16_t port;
    const char *host; /* TLS: the name that the certificate must have */
};

/* Reads the certificates to trust from this file, or the system's when it is NULL. STATUS_INVALID:
 * they cannot be read. */
MUST_CHECK enum status redis_tls_create(SSL_CTX **trust, const char *ca, struct error *error);

/* `trust` is NULL without TLS. STATUS_UNAVAILABLE: refused at once. */
MUST_CHECK enum status redis_wire_open(struct redis_wire **wire, uv_loop_t *loop,
                                       const struct redis_target *target, SSL_CTX *trust,
                                       const struct redis_wire_events *events, struct error *error);
/* Commands that were sent are not answered any more. */
void redis_wire_destroy(struct redis_wire **wire);

/* `index` counts the replies to what was sent together. */
typedef void redis_answered(void *context, unsigned index, const struct redis_reply *reply);

/* Sends commands that bring `replies` replies. The result is valid until the last of them. */
struct redis_expected *redis_wire_send(struct redis_wire *wire, struct text commands,
                                       unsigned replies, redis_answered *answered, void *context);
/* `answered` is not called any more for these commands. */
void redis_wire_ignore(struct redis_expected *expected);
