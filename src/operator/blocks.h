#pragma once

#include "operator/resource.h"

/*
 * Blocks of players who must not play (records/player.h), as an operator sets and takes them away:
 * by resource_change with the settings `blocked`, `reason`, `until` and `early`. A block needs no
 * row before: resource_get of a player, or of a customer's reference, that was never blocked is a
 * block that is not in force.
 *
 * A block ends by itself when its `until` is over, by the clock of the machine that asks. An
 * operator takes it away only with `early` and a reason, also where it has no end, and never brings
 * its end forward nor gives it one. A setting that is not given leaves a block that is in force as
 * it is; `until` without a text takes its end away.
 */
struct block_view {
    struct block_record record;
    bool blocked; /* in force */
    /* Another block that is in force: of the player's reference, or its customer's own; beside the
     * customer's own also that of a player. "" of one that is listed. */
    char standing[BLOCK_ID_SIZE];
    /* For a change: */
    struct block_record before; /* as stored; zeros: it was not */
    int64_t now_ms;
    bool early, explained; /* as was given */
    bool by_customer;      /* an editor sets it: the customer changes its own block */
};

/* Of struct block_view. Listed are those in force; the owner is a customer. */
extern const struct resource block_resource;

/* The id of the block of a customer's reference, for resource_get. INVALID: they are not sound. */
MUST_CHECK enum status block_id_of(const char *customer_id, const char *reference,
                                   char id[BLOCK_ID_SIZE], struct error *error);
