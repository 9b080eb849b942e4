#ifndef CROUPIER_FEED_STREAM_H
#define CROUPIER_FEED_STREAM_H

#include <stdint.h>

#include "base/status.h"
#include "stores/odds.h"

/*
 * A feed as one process: lines in (feed/line.h), lines out, any number of publications.
 *
 * What has come while the store was busy is a group, which goes to the store at one time
 * (odds_store_publish_each): one commit of the embedded store, one flight of commands to a server,
 * beside which the next group is made. Each line is answered when what it publishes is durable and
 * seen by the next request. Answers come in the order of the lines. A line that is refused, or
 * fails, changes nothing and stops nothing.
 *
 * At most FEED_QUEUE_BYTES of lines are held: beyond that input is not read (back-pressure), as
 * when the output is not read. Blocks until the input ends, with two threads of its own, one
 * that reads lines and one that watches interest.
 */

#define FEED_GROUP_LINES 1024U
#define FEED_GROUP_BYTES (16U * 1024 * 1024) /* one line may have more */
#define FEED_QUEUE_BYTES (16U * 1024 * 1024)

struct feed_stream_options {
    struct odds_store *store; /* borrowed */
    int input, output;        /* descriptors, which block */
    uint32_t interest_s;      /* tell of events that are polled, each at most once in so many
                                 seconds; 0: do not */
};

/* STATUS_INVALID: input or output failed, and `error` says which. What was answered is durable. */
MUST_CHECK enum status feed_stream(const struct feed_stream_options *options, struct error *error);

#endif
