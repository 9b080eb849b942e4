#pragma once

#include "stores/odds/redis/link.h"
#include "stores/odds/redis/location.h"
#include "stores/odds/redis/versions.h"
#include "stores/odds_engine.h"

/*
 * The store of the Redis engine, and those of its verbs that have a file of their own. Only
 * engine.c uses what is the I/O thread's.
 */
struct redis_store {
    struct odds_store base; /* first */
    struct redis_location *location;
    char *prefix;
    struct log *log;

    _Atomic(struct redis_link *) link; /* NULL until its thread has begun */
    bool feeds;
    struct redis_versions *versions;
    atomic_bool lease_complained; /* the log has said that no rate limit could be leased */

    /* The I/O thread's. */
    bool complained; /* a failed read was logged */
    struct redis_call interest;
    struct buffer interest_commands;
    const struct odds_note *interest_notes; /* of the call that is under way */
    size_t interest_count;
    bool interest_is_out;
    size_t interest_failed;     /* of those notes */
    sport_set interest_refused; /* sports whose interest could not be recorded, which was logged */
    uint64_t pruned_ms;

    atomic_int_fast64_t published_ms[SPORT_COUNT];
};

static inline struct redis_store *redis_store_of(struct odds_store *base)
{
    return (struct redis_store *)base;
}

static inline struct redis_link *redis_link_of(const struct redis_store *store)
{
    return relaxed_load(&store->link);
}

/* lease.lua and renewal.lua (tools/embed_texts.py) */
extern const char redis_lease_script[], redis_renewal_script[];

/* feed.c */
enum status redis_publish(struct odds_store *, const struct odds_change *, size_t, struct error *);
enum status redis_publish_each(struct odds_store *, struct odds_publishing *);
enum status redis_list_interest(struct odds_store *, enum sport, int64_t, struct odds_interest **,
                                size_t *, struct error *);
enum status redis_list_events(struct odds_store *, enum sport, struct event_id **, size_t *,
                              struct error *);
/* lease.c: one key a client, `rate:CLIENT`, and one script that does all of it. The commands that a
 * user of the server needs for it: EVAL, TIME, GET, SET. */
enum status redis_lease(struct odds_store *, struct odds_lease *);
/* rights.c: the error names the command that Redis refused, with Redis's own error. */
enum status redis_ping(struct odds_store *, enum odds_need, struct error *);
