#pragma once

#include "base/mailbox.h"
#include "stores/odds.h"
#include "stores/odds/redis/options.h"
#include "stores/odds/redis/wire.h"

/*
 * The connection to the present master. When it fails, all versions are forgotten and another
 * connection is made. All functions are for the I/O thread unless a comment says otherwise.
 */
struct redis_connection;

struct redis_connection_options {
    const struct redis_link_options *link; /* borrowed, as are all pointers here */
    uv_loop_t *loop;
    struct mailbox *mailbox;
    bool aimed; /* only at the server that redis_connection_aim names; it may be any node */
    void *owner;
    void (*up)(void *owner); /* commands may be sent */
    /* No commands may be sent until `up`, and sent commands are not answered. `hope`: the next
     * attempt begins at once. */
    void (*lost)(void *owner, enum status status, bool hope);
};

struct redis_connection *
redis_connection_create(const struct redis_connection_options *options); /* any thread */
void redis_connection_start(struct redis_connection *connection);        /* the first attempt */
void redis_connection_stop(struct redis_connection *connection);         /* for good */
void redis_connection_destroy(struct redis_connection **connection); /* when the loop has ended */

/* The node of a cluster says that another one has the keys. The connection fails because of it. */
void redis_connection_moved(struct redis_connection *connection);
/* Connects to this server, unless it does so already. An attempt that fails is reported by `lost`,
 * and no other follows. */
void redis_connection_aim(struct redis_connection *connection, const struct redis_host *host);
/* Any thread. Is the server a node of a cluster? */
bool redis_connection_is_cluster(const struct redis_connection *connection);
/* The server's name, NUL-terminated, as it was found. */
const char *redis_connection_host(const struct redis_connection *connection);

/* A call was not answered in time. A connection that does not track fails because of it. */
void redis_connection_silent(struct redis_connection *connection);
bool redis_connection_is_up(const struct redis_connection *connection);
/* As redis_wire_send. */
struct redis_expected *redis_connection_send(struct redis_connection *connection,
                                             struct text commands, unsigned replies,
                                             redis_answered *answered, void *context);

/* Any thread. As redis_link_now. `problem`: why it is not connected. */
enum status redis_connection_now(const struct redis_connection *connection);
/* Does the server report no changes, so that values are asked for? */
bool redis_connection_asks(const struct redis_connection *connection);
void redis_connection_problem(struct redis_connection *connection, struct error *error);
void redis_connection_facts(const struct redis_connection *connection, struct odds_facts *facts);
