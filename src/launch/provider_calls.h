#pragma once

#include "base/log.h"
#include "base/mailbox.h"
#include "base/relaxed.h"
#include "launch/document.h"
#include "launch/outgoing.h"

/*
 * Calls of providers' launch endpoints, on a thread of their own.
 *
 * Each provider has a lane: so many calls at once, so many more waiting, and the rest is refused at
 * once. In all there is a bound too, and where it is felt, who has the fewest calls under way is
 * next: a slow provider delays its own players only.
 *
 * A `struct provider_call` is embedded in whatever asks. It is this module's from submit until its
 * mail is delivered, once, within the time-out of the call, which counts from submit, and half of
 * which it may wait to begin. An asker that is no longer interested sets `abandoned`: a call that
 * has not begun is then not made; one that has is left to end.
 */
enum provider_outcome {
    PROVIDER_LAUNCHED,    /* `answer` is filled in */
    PROVIDER_REFUSED,     /* another status than 200 */
    PROVIDER_MALFORMED,   /* 200, and the answer is not what it should be */
    PROVIDER_TIMEOUT,     /* not answered in time, or not begun in time */
    PROVIDER_UNREACHABLE, /* no such name, or no server there */
    PROVIDER_UNTRUSTED,   /* its certificate, or TLS otherwise */
    PROVIDER_BROKEN,      /* the connection ended, or what came was no HTTP */
    PROVIDER_OVERLOADED,  /* too many calls wait; this one was not made */
    PROVIDER_ABANDONED,   /* its request had gone; it was not made */
    PROVIDER_CANCELLED,   /* the service ends */
};
#define PROVIDER_OUTCOME_COUNT (PROVIDER_CANCELLED + 1)
extern const struct enum_names provider_outcomes; /* "launched" … */

/* The outcome of a posted call. `answer` is set for PROVIDER_LAUNCHED; otherwise the post's reason
 * names the fault. */
enum provider_outcome provider_outcome_of(struct outgoing_post *post, struct launch_answer *answer);

/* A post of a signed document, without its time-out, `done` and context. Borrows its arguments
 * until it is done. */
struct outgoing_post provider_post(const char *url, struct text document,
                                   const struct launch_fields *fields);

#define PROVIDER_CALLS_MAX 1024U    /* submitted and not yet delivered, of all providers */
#define PROVIDER_CALLS_AT_ONCE 256U /* under way, of all providers */
#define PROVIDER_LANE_AT_ONCE 32U   /* under way, of one */
#define PROVIDER_LANE_WAITING 64U   /* waiting, of one */

struct provider_call {
    struct mail mail; /* first */
    /* the asker's */
    struct mailbox *mailbox;
    void (*delivered)(struct mail *mail);
    atomic_bool abandoned;
    char provider_id[PROVIDER_ID_SIZE];
    char url[GAME_URL_SIZE];
    struct buffer document; /* freed by its owner */
    struct launch_fields fields;

    /* when delivered */
    enum provider_outcome outcome;
    struct launch_answer answer;

    /* this module's */
    struct provider_calls *calls;
    struct provider_lane *lane;
    STAILQ_ENTRY(provider_call) link;
    struct outgoing_post post;
    uint64_t submitted_ns, begin_by_ns, deadline_ns;
};

/* `ca_file` (copied) is used in place of the system's certificates; "": those. `log` is borrowed
 * and may be NULL. */
struct provider_calls *provider_calls_create(uint32_t timeout_ms, const char *ca_file,
                                             struct log *log);
/* Delivers calls under way as cancelled, so call it before the mailboxes end. No submit may
 * follow. */
void provider_calls_destroy(struct provider_calls **calls);

/* Any thread. STATUS_FULL at once when there are too many: the call stays the asker's. */
MUST_CHECK enum status provider_calls_submit(struct provider_calls *calls,
                                             struct provider_call *call);

/* For the metrics. Any thread. Buckets hold what is at most their bound; the last has none. */
#define PROVIDER_CALL_BUCKETS 8
extern const uint32_t provider_call_bounds_ms[PROVIDER_CALL_BUCKETS - 1];

struct provider_calls_facts {
    uint64_t outcomes[PROVIDER_OUTCOME_COUNT];
    uint64_t in_flight, waiting;
    uint64_t durations[PROVIDER_CALL_BUCKETS]; /* of calls that were made, from submit */
    uint64_t duration_ns;                      /* in all */
};
void provider_calls_facts(struct provider_calls *calls, struct provider_calls_facts *facts);
