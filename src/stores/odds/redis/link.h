#ifndef CROUPIER_STORES_ODDS_REDIS_LINK_H
#define CROUPIER_STORES_ODDS_REDIS_LINK_H

#include <stdatomic.h>

#include <uv.h>

#include "stores/odds/redis/redis.h"

/*
 * What odds_redis_link.c (the thread, the calls) and odds_redis_connect.c (the connections) share,
 * and nobody else looks at.
 */

enum link_phase {
    LINK_RESTING,   /* until the next attempt */
    LINK_ASKING,    /* a sentinel */
    LINK_RESOLVING, /* the name of the server */
    LINK_GREETING,  /* connecting, and all that comes before a connection may be used */
    LINK_UP,
};

/* What others are told. */
enum link_standing { STANDING_TRYING, STANDING_UP, STANDING_DOWN, STANDING_SILENT };

struct heartbeat {
    bool out;            /* asked, and not answered yet */
    unsigned late_ticks; /* it has been overdue for */
    uint64_t late_turn;  /* in which it was found to be overdue; 0: it was not */
    uint64_t sent_ns;
    uint64_t seen_ns; /* when the last one that was answered had been sent; 0: none was */
};

struct link_sent;

struct redis_link {
    struct redis_link_options options;
    struct redis_tls *tls;
    uv_loop_t loop;
    struct mailbox *mailbox;
    uv_thread_t thread;
    struct mail stop;

    /* For any thread. */
    atomic_uint_fast64_t confirmed_until_ns; /* 0: not confirmed */
    atomic_int standing;
    atomic_uint under_way; /* calls */
    atomic_uint_fast64_t connected_times;
    atomic_uint_fast64_t invalidations;
    atomic_uint_fast64_t round_trip_ns;

    uv_mutex_t lock; /* guards the two */
    uv_cond_t concluded;
    bool first_over; /* the first attempt has ended */
    struct error problem;

    /* The I/O thread's: calls. */
    struct redis_call *newest, *oldest; /* waiting to be sent */
    struct link_sent *first_sent, *last_sent;
    size_t sent_count;
    uv_timer_t deadline;
    uint64_t deadline_ns;   /* the timer's; 0: it does not run */
    uint64_t deadline_turn; /* it came in this one, and is heeded in the next; 0: it has not come */
    uint64_t due_ns;        /* when it came */
    uv_check_t turn;
    uint64_t turns; /* how often all connections have been looked at */
    uv_timer_t second, alarm;
    bool stopping;

    /* The I/O thread's: connections. */
    enum link_phase phase;
    struct redis_wire *data, *news, *sentinel;
    struct redis_target target;
    char host[REDIS_HOST_SIZE]; /* of the target, as it was named */
    uint16_t port;
    struct redis_lookups *lookups;
    struct redis_addresses addresses; /* of the host, to be tried one after the other */
    bool answered;                    /* what the target is has said something */
    enum status told_status;          /* of an address before that answered; OK: none did */
    struct error told;
    uv_timer_t step; /* the end of a phase, or of the rest */
    uv_timer_t beat;
    unsigned failures; /* in a row */
    uint64_t up_since_ns;
    uint64_t random;
    bool complained; /* about `problem` */

    bool data_ready, news_ready;
    long long news_id;
    char data_run[41], news_run[41];
    struct heartbeat data_beat, news_beat;
    uint64_t counted_swaps,
        counted_roles; /* by the server, at the last beat; no roles: at none yet */

    size_t sentinel_at;     /* the one that was asked last */
    size_t sentinels_asked; /* in this attempt */
    struct redis_addresses sentinel_addresses;
    bool sentinel_sought;  /* its addresses are being looked up */
    bool sentinel_secret;  /* it wants the password as well */
    bool sentinel_watches; /* it will say when the master changes */
    bool sentinel_refused; /* it refuses to, which was logged */
    struct heartbeat sentinel_beat;
};

/* ---- odds_redis_connect.c -------------------------------------------------------------------- */

void link_connect_start(struct redis_link *link); /* makes its timers, begins the first attempt */
void link_connect_second(struct redis_link *link);
/* A call was not answered in time, by which alone a link without heartbeats knows that it leads
 * nowhere. */
void link_connect_silent(struct redis_link *link);
void link_connect_stop(struct redis_link *link); /* lets go of everything */

/* ---- odds_redis_link.c ----------------------------------------------------------------------- */

void link_set_standing(struct redis_link *link, enum link_standing standing);
/* What came of an attempt; `problem` may be NULL. `over`: no more is to be expected of it soon. */
void link_conclude(struct redis_link *link, const struct error *problem, bool over);
/* Sends what waits, as far as it may be sent now. */
void link_pump(struct redis_link *link);
/* The connection is gone. What may be sent again waits again when there is hope; all else ends. */
void link_calls_lost(struct redis_link *link, enum status status, bool hope);

void link_start_timer(uv_timer_t *timer, uv_timer_cb callback, uint64_t delay_ms);

#endif
