#ifndef CROUPIER_DEMO_EVENT_H
#define CROUPIER_DEMO_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_writer.h"
#include "demo/chance.h"
#include "demo/price_ladder.h"
#include "records/event_id.h"
#include "records/sport.h"

/*
 * One event of the simulated feed: what happens in it, and what its markets say. Internal to demo/.
 *
 * An event advances by time alone, in steps: publishing changes nothing in it. The same seed and
 * the same times give the same event.
 */

#define NAME_SIZE 48

enum stage {
    STAGE_UPCOMING,
    STAGE_IN_PLAY,
    STAGE_FINISHED, /* over; the result is not official yet: all markets are suspended */
    STAGE_CLOSED,   /* markets CLOSED, with winners */
    STAGE_SETTLED,  /* markets SETTLE */
    STAGE_GONE,     /* leaves the catalog */
};

enum market_type {
    MARKET_MATCH,     /* "match": exchange, three levels of back and lay */
    MARKET_BOOKMAKER, /* "match1": follows the runners of the first market */
    MARKET_FANCY,     /* "fancy", … : sections with a run line */
    MARKET_FANCY1,    /* a yes/no quote in percent */
    MARKET_FANCY2,
    MARKET_ODDEVEN,
};

enum market_status {
    MARKET_OPEN,
    MARKET_SUSPENDED,
    MARKET_CLOSED,
    MARKET_SETTLE,
    MARKET_VOID,
};

enum runner_status {
    RUNNER_ACTIVE,
    RUNNER_WINNER,
    RUNNER_LOSER,
    RUNNER_PLACED,
    RUNNER_REMOVED,
    RUNNER_REMOVED_VACANT,
};

struct runner {
    char name[56];
    uint64_t selection_id;
    enum runner_status status;
    uint32_t chance_ppm;
    uint32_t tick;       /* best back; the best lay is `spread` ticks above */
    uint32_t spread;     /* 1 or 2 */
    uint32_t size_epoch; /* moves when the sizes do */
    int32_t noise;       /* millibits that the market believes on top of the model */
};

enum section_status { SECTION_EMPTY, SECTION_ACTIVE, SECTION_SUSPENDED, SECTION_BALL_RUNNING };

struct section_subject { /* what a section is about; the model's */
    uint8_t kind, side, number;
};
struct section {
    char name[64];
    uint32_t sid;
    struct section_subject subject;
    enum section_status status;
    bool shown;      /* has not been decided, and is offered now */
    uint32_t line;   /* lay; back is one above (or, for percent quotes, the price) */
    uint32_t spread; /* back minus lay */
};

struct market {
    enum market_type type;
    enum market_status status;
    bool decided;       /* by what happened; closes before the event does */
    bool only_upcoming; /* not offered in play */
    uint32_t winners;   /* how many runners win: 1, or the places */
    const char *name;
    const char *native_name; /* "MATCH_ODDS" */
    uint64_t id;
    struct runner *runners; /* owned */
    size_t runner_count;
    struct section *sections; /* owned */
    size_t section_count;
};

#define MARKETS_MAX 16
#define RUNNERS_MAX 17

struct football_state {
    uint32_t goals[2];
    uint32_t half_time_goals[2];
    uint32_t rate[2]; /* goals a match, in thousandths */
    uint32_t minute;
    bool half_time;
    bool second_half;
};

enum cricket_count {
    CRICKET_RUNS,
    CRICKET_FOURS,
    CRICKET_SIXES,
    CRICKET_BOUNDARIES,
    CRICKET_WICKETS,
};
#define CRICKET_COUNTS 5

struct cricket_innings {
    uint32_t balls;
    uint32_t counts[CRICKET_COUNTS];
};
struct cricket_batter {
    uint32_t number; /* 0 to 10; 11: there is no other */
    uint32_t runs, boundaries;
};
struct cricket_state {
    struct cricket_innings innings[2];
    uint32_t current; /* 0 or 1 */
    uint32_t overs;   /* a side */
    uint32_t first_to_bat;
    struct cricket_batter batters_in[2];
    uint32_t on_strike; /* 0, 1 */
    char batters[2][11][NAME_SIZE];
    int64_t next_ball_ms;
    int64_t ball_over_ms;
    bool ball_running;
    int32_t strength; /* of the first runner, millibits */
};

struct tennis_state {
    uint32_t sets[2], games[2], points[2];
    uint32_t set_winner[3]; /* 0, 1 */
    uint32_t sets_played;
    uint32_t games_played;
    uint32_t server;
    uint32_t serve_wins[2]; /* ppm */
    int64_t next_point_ms;
};

struct racing_state {
    int32_t strength[RUNNERS_MAX]; /* millibits */
    uint32_t draw[RUNNERS_MAX];
    uint32_t places;
    int64_t withdrawal_ms; /* 0: none to come */
    bool in_running;       /* is bet on while it runs */
};

struct event {
    enum sport sport;
    uint32_t serial; /* counts the sport's events; decides which dirt this one carries */
    struct event_id id;
    char name[100];
    char competition[56];
    char home[48], away[48];
    struct chance chance;
    uint64_t salt; /* for what must look random but stay */

    enum stage stage;
    bool changed; /* its status has, since the catalog was last published */
    int64_t start_ms;
    int64_t clock_shift_ms; /* what to add to its times to get the time of day */
    int64_t duration_ms;    /* planned, in play */
    int64_t now_ms;         /* how far it has been advanced */
    int64_t elapsed_ms;     /* by the last step */
    int64_t stage_ms;       /* when the stage began */
    int64_t suspended_until_ms;
    const char *remark; /* why it is suspended: a constant, or "" */
    bool offered;       /* markets are open (early events have none yet) */

    struct market markets[MARKETS_MAX];
    size_t market_count;

    union {
        struct football_state football;
        struct cricket_state cricket;
        struct tennis_state tennis;
        struct racing_state racing;
    };
};

struct event_plan {
    enum sport sport;
    uint32_t serial;
    struct event_id id;
    uint64_t seed;
    int64_t start_ms;
    int64_t born_ms;
};

/* How long an event of the sport lasts in play, about; races start every minute or so. */
int64_t simulated_event_length_ms(enum sport sport);

struct event *simulated_event_create(const struct event_plan *plan);
void simulated_event_destroy(struct event **event);

/* Moves it on to `now_ms` (later than where it is) in one step. */
void simulated_event_step(struct event *event, int64_t now_ms);

/* ---- for the models -------------------------------------------------------------------------- */

struct event_model {
    void (*create)(struct event *event); /* names, markets */
    void (*step)(struct event *event); /* something may happen; only while in play, not suspended */
    void (*price)(struct event *event);    /* chance_ppm of every runner; lines of every section */
    void (*result)(struct event *event);   /* decides every market that is not decided */
    void (*upcoming)(struct event *event); /* before the start; may be NULL */
};
extern const struct event_model football_model, cricket_model, tennis_model, racing_model;

/* A market of every match: its runners are separated by '|', and begin with "@home" or "@away"
 * where the side's name stands. A table ends with zeros. */
struct market_plan {
    enum market_type type;
    const char *name, *native_name;
    const char *runners;
};
void event_add_markets(struct event *event, const struct market_plan *plans);
/* One without runners and sections; its names are constants. */
struct market *event_add_market(struct event *event, enum market_type type, const char *name,
                                const char *native_name);
void event_add_runner(struct event *event, struct market *market, const char *format, ...)
    PRINTF_LIKE(3, 4);
/* Returns its subject, to be set. */
struct section_subject *event_add_section(struct market *market, const char *format, ...)
    PRINTF_LIKE(2, 3);
void event_suspend(struct event *event, int64_t for_ms, const char *remark);
/* Home, away, name and competition. */
void event_name_match(struct event *event);
void event_enter(struct event *event, enum stage stage);
/* Ends it: suspended, then closed, then settled. */
void event_finish(struct event *event);
bool runner_is_in_play(const struct runner *runner);
/* The runner with this index wins (index == runner_count: none), the others lose, unless the market
 * has been decided. */
void market_decide(struct market *market, size_t winner);
void market_void(struct market *market);
void market_set_chances(struct market *market, const uint32_t *ppm);
/* Of a market of two runners: the chance of the first, which leaves the rest to the second. */
void market_set_two_chances(struct market *market, uint32_t ppm);

/* ---- documents ------------------------------------------------------------------------------- */

void simulated_event_write_row(const struct event *event, struct json_writer *json);
void simulated_event_write_markets(const struct event *event, struct buffer *out);

/* ---- names ----------------------------------------------------------------------------------- */

void name_place(struct chance *chance, char out[NAME_SIZE]);
void name_team(struct chance *chance, enum sport sport, char out[NAME_SIZE]);
void name_player(struct chance *chance, char out[NAME_SIZE]); /* "Ilan Torvek" */
void name_runner(struct chance *chance, enum sport sport, char out[NAME_SIZE]);
const char *name_competition(struct chance *chance, enum sport sport); /* of matches */

#endif
