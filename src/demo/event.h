#pragma once

#include "demo/sports.h"
#include "records/event_id.h"

/*
 * One event of the simulated feed. Internal to demo/.
 *
 * An event follows a course of its sport's table (demo/sports.h) from its start on, a little faster
 * or slower than written. The course has the scores, suspensions, chances and results; the event
 * adds names, the market's own opinion of each chance, and prices.
 *
 * An event advances only by time, in steps; publishing it does not change it. The same seed and the
 * same times give the same event.
 */

#define SIDES_MAX 14
#define RUNNERS_MAX 17
#define MARKETS_MAX 12

enum stage {
    STAGE_UPCOMING,
    STAGE_IN_PLAY,
    STAGE_FINISHED, /* over, but the result is not official yet: all markets are suspended */
    STAGE_CLOSED,   /* markets CLOSED, with winners */
    STAGE_SETTLED,  /* markets SETTLE */
    STAGE_GONE,     /* leaves the catalog */
};
enum market_status { MARKET_OPEN, MARKET_SUSPENDED, MARKET_CLOSED, MARKET_SETTLE, MARKET_VOID };

struct runner {
    char result;         /* of the course; 0: active */
    uint32_t chance_ppm; /* as quoted */
    uint32_t tick;       /* best back */
    int32_t noise;       /* the market's own opinion, in parts of OPINION_ONE */
};

struct market {
    struct text plan;
    struct text odds; /* its entry in the last frame with odds */
    uint64_t id;
    enum market_status status;
    bool decided; /* perhaps before the event is over */
    struct runner runners[RUNNERS_MAX];
    uint32_t runner_count;
};

/* A bookmaker follows the first market: it has null in place of odds. */
static inline bool is_bookmaker(const struct market *market)
{
    return market->odds.at == NULL || market->odds.at[0] == 'n';
}

struct event {
    const struct sports *sports;
    struct text table;
    enum sport sport;
    bool is_race;
    uint32_t serial; /* counts the sport's events; selects the irregularities of its documents */
    struct event_id id;
    char name[3 * NAME_SIZE], competition[NAME_SIZE];
    char sides[SIDES_MAX][NAME_SIZE]; /* home and away, or the runners of a race */
    uint32_t side_count;
    struct chance chance;
    uint64_t salt; /* for values that look random but must not change */

    struct json_text_cursor frames, ahead; /* of the course */
    struct text next;                      /* the next frame; at == NULL after the result */
    struct text from, to; /* the frames with odds on both sides of now; there may be no `to` */
    int32_t pace;         /* percent of the course's seconds */
    struct text score;    /* for people; "" before the start */

    enum stage stage;
    bool changed; /* its status changed since it was last published */
    bool offered; /* markets are open (early events have none yet) */
    int64_t start_ms;
    int64_t clock_shift_ms; /* added to its times to get the time of day */
    int64_t now_ms;         /* the time it was advanced to */
    int64_t stage_ms;       /* when the stage began */
    int64_t suspended_until_ms;
    struct text remark; /* the reason for the suspension, or "" */

    struct market markets[MARKETS_MAX];
    uint32_t market_count;
};

/* Begins a zeroed event of which the caller has set sports (borrowed as long as the event lives),
 * sport, serial, id, chance (by a seed), start_ms, now_ms (when it appears), clock_shift_ms, and
 * `offered` if its markets are open from the beginning, however late the start is. */
void simulated_event_begin(struct event *event);

/* Advances it to `now_ms`, in steps of a second. */
void simulated_event_advance(struct event *event, int64_t now_ms);

void simulated_event_write_row(const struct event *event, struct buffer *out);
void simulated_event_write_markets(const struct event *event, struct buffer *out);
