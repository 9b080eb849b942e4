#ifndef CROUPIER_DEMO_EVENT_H
#define CROUPIER_DEMO_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"
#include "demo/chance.h"
#include "demo/price_ladder.h"
#include "records/event_id.h"
#include "records/sport.h"

/*
 * One event of the simulated feed. Internal to demo/.
 *
 * event.c is the model that all sports share: the stages of an event, suspensions, and the way from
 * the scores that are still possible to prices, results and quotes. A struct sport_table describes
 * each sport to it: names, markets, length, the play of a step, and the scores that are still
 * possible after it. cricket.c has the table of cricket, sports.c those of the other four.
 *
 * A market is a question about a score. Each score that is still possible makes one runner win, so
 * the weights of the scores give the prices. When only one runner can win, the market is decided; a
 * runner that cannot win any more has lost. Nothing else settles a market.
 *
 * An event advances only by time, in steps; publishing it does not change it. The same seed and the
 * same times give the same event.
 */

#define NAME_SIZE 48
#define SIDES_MAX 14
#define RUNNERS_MAX 17
#define MARKETS_MAX 12
#define SECTIONS_MAX 64

enum stage {
    STAGE_UPCOMING,
    STAGE_IN_PLAY,
    STAGE_FINISHED, /* over, but the result is not official yet: all markets are suspended */
    STAGE_CLOSED,   /* markets CLOSED, with winners */
    STAGE_SETTLED,  /* markets SETTLE */
    STAGE_GONE,     /* leaves the catalog */
};

enum market_type {
    MARKET_MATCH,     /* "match": exchange, three levels of back and lay */
    MARKET_BOOKMAKER, /* "match1": follows the runners of the first market */
    MARKET_FANCY,     /* "fancy", … : sections with a run line */
    MARKET_FANCY1,    /* a yes/no quote in percent */
    MARKET_FANCY2,    /* quoted one way */
    MARKET_ODDEVEN,
};
enum market_status { MARKET_OPEN, MARKET_SUSPENDED, MARKET_CLOSED, MARKET_SETTLE, MARKET_VOID };
enum runner_status {
    RUNNER_ACTIVE,
    RUNNER_WINNER,
    RUNNER_LOSER,
    RUNNER_PLACED,
    RUNNER_REMOVED,
    RUNNER_REMOVED_VACANT,
};

enum question {
    ASK_LINES,  /* no runners: sections */
    ASK_WINNER, /* home, away; or home, the draw, away. Without the draw, it voids the market */
    ASK_DRAW,   /* yes, no */
    ASK_OVER,   /* under, over `line` and a half */
    ASK_BOTH,   /* do both sides score? yes, no */
    ASK_SCORE,  /* 0 - 0 to 3 - 3, any other */
    ASK_SETS,   /* home 2 - 0, 2 - 1, away 2 - 0, 2 - 1 */
    ASK_FIRST,  /* of a race */
    ASK_PLACED, /* of a race; several win */
};

/* Scores that are still possible, with the weight of each. Their sum is below 2^44. */
#define SCORE_SIZE 9
#define SCORES_MAX 4 /* of an event: the match, its first half, … */
struct scores {
    uint64_t weight[SCORE_SIZE][SCORE_SIZE]; /* [home][away] */
};

struct market_plan {
    enum market_type type;
    enum question question;
    const char *name, *native_name; /* native: "MATCH_ODDS" */
    const char *runners; /* separated by '|'; '@' and '#' are home and away. NULL: all sides */
    uint32_t scores;     /* index into the event's scores */
    uint32_t line;
};

struct section { /* of a fancy market */
    char name[64];
    uint32_t sid, line, spread; /* the lay line, and how far the back is above it */
};

struct runner {
    enum runner_status status;
    uint32_t chance_ppm;
    uint32_t tick;       /* best back; the best lay is `spread` ticks above */
    uint32_t spread;     /* 1 or 2 */
    uint32_t size_epoch; /* changes when the sizes do */
    int32_t noise;       /* millibits of the market's own opinion, added to the model */
};

struct market {
    const struct market_plan *plan;
    uint64_t id;
    enum market_status status;
    bool decided; /* by the play, perhaps before the event is over */
    struct runner runners[RUNNERS_MAX];
    uint32_t runner_count;
};

struct football {
    uint32_t goals[2], half_time_goals[2];
    uint32_t rate[2]; /* goals a match, in thousandths */
    uint32_t minute;
    bool second_half;
};
enum cricket_count { RUNS, FOURS, SIXES, BOUNDARIES, WICKETS, CRICKET_COUNTS };
struct cricket {
    uint32_t counts[2][CRICKET_COUNTS], balls[2]; /* of an innings */
    uint32_t innings, overs, first_to_bat;
    struct batter {
        uint32_t number, runs;
    } batters[2]; /* the two at the crease; number 11: none is left */
    uint32_t on_strike;
    bool ball_running;
};
struct tennis {
    uint32_t sets[2], games[2], points[2];
    uint32_t won[3]; /* the winner of each set: 0, 1 */
    uint32_t games_played, server;
    uint32_t serve_wins[2]; /* ppm */
};
struct racing {
    uint32_t places;
    int64_t withdrawal_ms; /* 0: none to come */
};

struct event {
    enum sport sport;
    const struct sport_table *table;
    uint32_t serial; /* counts the sport's events; selects the irregularities of its documents */
    struct event_id id;
    char name[160], competition[56];
    char sides[SIDES_MAX][NAME_SIZE]; /* home and away, or the runners of a race */
    int32_t strength[SIDES_MAX];      /* millibits */
    uint32_t side_count;
    struct chance chance;
    uint64_t salt; /* for values that look random but must not change */

    enum stage stage;
    bool changed; /* its status changed since it was last published */
    bool offered; /* markets are open (early events have none yet) */
    int64_t start_ms;
    int64_t clock_shift_ms; /* added to its times to get the time of day */
    int64_t duration_ms;    /* planned, in play */
    int64_t now_ms;         /* the time it was advanced to */
    int64_t elapsed_ms;     /* by the last step */
    int64_t stage_ms;       /* when the stage began */
    int64_t next_ms;        /* when the next ball or point is due */
    int64_t suspended_until_ms;
    const char *remark; /* the reason for the suspension: a constant, or "" */

    struct market markets[MARKETS_MAX];
    uint32_t market_count;
    union {
        struct football football;
        struct cricket cricket;
        struct tennis tennis;
        struct racing racing;
    };
};

/* ---- one sport ------------------------------------------------------------------------------- */

struct sport_table {
    uint32_t id;                           /* as upstream numbers the sports */
    int64_t length_ms;                     /* in play, about */
    const char *side, *competition, *race; /* patterns of name_make; race: NULL for matches */
    const struct market_plan *markets;     /* ends with zeros; the first is of type match */
    void (*create)(struct event *event);   /* before the markets; may be NULL */
    void (*upcoming)(struct event *event); /* a step before the start; may be NULL */
    void (*play)(struct event *event);     /* a step in play, unless suspended */
    void (*expect)(const struct event *event, struct scores *scores); /* NULL: of a race */
    size_t (*lines)(const struct event *event, uint32_t market, struct section *sections);
    void (*score)(const struct event *event, struct buffer *out); /* for people, once begun */
};
extern const struct sport_table *const sport_tables[SPORT_COUNT];
extern const struct sport_table cricket_table;

/* ---- the model ------------------------------------------------------------------------------- */

struct event_plan {
    enum sport sport;
    const struct sport_table *table; /* of sport_tables */
    uint32_t serial;
    struct event_id id;
    uint64_t seed;
    int64_t start_ms;
    int64_t born_ms;
    bool standing; /* its markets are open from the beginning, however late the start is */
};
struct event *simulated_event_create(const struct event_plan *plan); /* memory_free it */

/* Advances it to `now_ms`, in steps of a second. */
void simulated_event_advance(struct event *event, int64_t now_ms);

/* For the sports. */
void event_suspend(struct event *event, int64_t for_ms, const char *remark);
void event_finish(struct event *event); /* suspended, then closed, then settled */

/* ---- documents and names --------------------------------------------------------------------- */

void simulated_event_write_row(const struct event *event, struct buffer *out);
void simulated_event_write_markets(const struct event *event, struct buffer *out);

/* A pattern: '@' and a letter is a word of that list (names.c), '#' is `number`. */
void name_make(struct chance *chance, const char *pattern, uint32_t number, char *out, size_t size);

#endif
