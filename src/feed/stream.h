#pragma once

#include "feed/record.h"
#include "stores/odds_feed.h"

/*
 * A feed as one process: lines in (feed/line.h), lines out, any number of publications.
 *
 * Lines that arrive while the store is busy form a group, which goes to the store at one time
 * (odds_store_publish_each): one commit of the embedded store, or one flight of commands to a
 * server. Each line is answered when its publication is durable and seen (docs/feed.md, "When a
 * publication is seen"). Answers come in the order of the lines. A line that is refused or fails
 * changes nothing and stops nothing.
 *
 * A sign of life (`alive`) renews the time of every value that this stream has published with an
 * expiry and not published otherwise or withdrawn since.
 *
 * At most FEED_QUEUE_BYTES of lines are held. Beyond that, input is not read. The same holds while
 * the output is not read. Blocks until the input ends, with two more threads: one reads lines, one
 * watches interest.
 */

#define FEED_GROUP_LINES 1024U
#define FEED_GROUP_BYTES (16U * 1024 * 1024) /* one line may have more */
#define FEED_QUEUE_BYTES (16U * 1024 * 1024)

struct feed_stream_options {
    struct odds_store *store; /* borrowed */
    int input, output;        /* descriptors, which block */
    uint32_t expires_s;       /* of documents whose line has no expires_s; 0: they stay */
    uint32_t interest_s;      /* tell of events that are polled, each at most once in so many
                                 seconds; 0: do not */
    /* Of the lines that are accepted; NULL: there is none. */
    struct feed_recorder *recorder;
    /* Counts the lines that were not published, and only they are answered; NULL: all are. */
    uint64_t *failed;
};

/* STATUS_INVALID: input or output failed, and `error` says which. Publications that were answered
 * are durable. */
MUST_CHECK enum status feed_stream(const struct feed_stream_options *options, struct error *error);
