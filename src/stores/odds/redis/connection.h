#ifndef CROUPIER_STORES_ODDS_REDIS_CONNECTION_H
#define CROUPIER_STORES_ODDS_REDIS_CONNECTION_H

#include <stdbool.h>
#include <uv.h>

#include "base/mailbox.h"
#include "base/status.h"
#include "stores/odds.h"
#include "stores/odds/redis/options.h"
#include "stores/odds/redis/wire.h"

/*
 * The connection to the server that is the master now. When it is lost, or does not answer, or is
 * not what it was, it is let go, everything that was known is forgotten, and another is made. The
 * functions without a word on threads are the I/O thread's.
 */
struct redis_connection;

struct redis_connection_options {
    const struct redis_link_options *link; /* borrowed, as are all pointers here */
    uv_loop_t *loop;
    struct mailbox *mailbox;
    void *owner;
    void (*up)(void *owner); /* commands may be sent */
    /* They may not, until `up`, and those that were sent are not answered. `hope`: it is tried
     * again at once. */
    void (*lost)(void *owner, enum status status, bool hope);
};

struct redis_connection *
redis_connection_create(const struct redis_connection_options *options); /* any thread */
void redis_connection_start(struct redis_connection *connection);        /* the first attempt */
void redis_connection_stop(struct redis_connection *connection);         /* for good */
void redis_connection_destroy(struct redis_connection **connection); /* when the loop has ended */

void redis_connection_second(struct redis_connection *connection); /* about once a second */
/* At the end of a turn of the loop, when all that had come was read. */
void redis_connection_turn(struct redis_connection *connection);
/* A call was not answered in time, by which alone one that does not track knows that it leads
 * nowhere. */
void redis_connection_silent(struct redis_connection *connection);
bool redis_connection_is_up(const struct redis_connection *connection);
void redis_connection_send(struct redis_connection *connection, struct text commands,
                           unsigned replies, redis_answered *answered, void *context);

/* Any thread; as redis_link_now and redis_link_wait below. `problem`: why it is not connected. */
enum status redis_connection_now(const struct redis_connection *connection);
enum status redis_connection_wait(struct redis_connection *connection, struct error *error);
void redis_connection_problem(struct redis_connection *connection, struct error *error);
void redis_connection_facts(const struct redis_connection *connection, struct odds_facts *facts);

#endif
