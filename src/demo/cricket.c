/*
 * Cricket: a limited-overs match, a ball every two seconds. Fancies ("sessions") quote a run line
 * that follows the score, and are removed once decided.
 */
#include <stdio.h>
#include <string.h>

#include "demo/event.h"

#define BALL_RUNNING_MS 900
#define BALL_EVERY_MS 1900
#define BREAK_MS 15000
#define RUNS_PER_BALL 136 /* expected, in hundredths */
#define BATTERS 11

static void cricket_create(struct event *event)
{
    struct cricket *state = &event->cricket;
    state->overs = chance_below(&event->chance, 4) == 0 ? 20 : 10;
    event->duration_ms = (int64_t)state->overs * 12 * 2000 + BREAK_MS;
    state->first_to_bat = chance_below(&event->chance, 2);
    event->strength[0] = chance_between(&event->chance, -700, 700);
    state->batters[1].number = 1;
}

/* ---- play ------------------------------------------------------------------------------------ */

static void bowl(struct event *event)
{
    static const char deliveries[] = "00000001111111222446W"; /* all equally likely */
    struct cricket *state = &event->cricket;
    uint32_t *counts = state->counts[state->innings];
    struct batter *batter = &state->batters[state->on_strike];
    char drawn = deliveries[chance_below(&event->chance, sizeof deliveries - 1)];
    if (drawn == 'W') {
        *batter = (struct batter){.number = ++counts[WICKETS] + 1};
        event_suspend(event, 8000, "Wicket");
    } else {
        uint32_t runs = (uint32_t)(drawn - '0');
        counts[RUNS] += runs;
        counts[FOURS] += runs == 4;
        counts[SIXES] += runs == 6;
        counts[BOUNDARIES] += runs >= 4;
        batter->runs += runs;
        state->on_strike ^= runs % 2;
        if (chance_happens(&event->chance, 8000))
            event_suspend(event, 10000, "Review");
    }
    if (++state->balls[state->innings] % 6 == 0)
        state->on_strike ^= 1;
}

static uint32_t balls_left(const struct cricket *state, uint32_t innings)
{
    if (innings < state->innings || state->counts[innings][WICKETS] >= 10)
        return 0;
    return state->overs * 6 - state->balls[innings];
}

static void end_innings(struct event *event)
{
    struct cricket *state = &event->cricket;
    if (state->innings == 1) {
        event_finish(event);
        return;
    }
    state->innings = 1;
    memset(state->batters, 0, sizeof state->batters);
    state->batters[1].number = 1;
    state->on_strike = 0;
    event_suspend(event, BREAK_MS, "Innings break");
}

static void cricket_play(struct event *event)
{
    struct cricket *state = &event->cricket;
    if (event->now_ms < event->next_ms)
        return;
    state->ball_running = !state->ball_running;
    event->next_ms =
        event->now_ms + (state->ball_running ? BALL_RUNNING_MS : BALL_EVERY_MS - BALL_RUNNING_MS);
    if (state->ball_running)
        return;
    bowl(event);
    if (balls_left(state, state->innings) == 0 ||
        (state->innings == 1 && state->counts[1][RUNS] > state->counts[0][RUNS]))
        end_innings(event);
}

/* ---- the scores that are still possible ------------------------------------------------------ */

/* The expected count in the next `balls` of an innings; fewer runs as wickets fall. */
static uint32_t to_come(const struct cricket *state, uint32_t innings, enum cricket_count count,
                        uint32_t balls)
{
    static const uint32_t in_thousand[] = {
        [FOURS] = 120, [SIXES] = 55, [BOUNDARIES] = 170, [WICKETS] = 45};
    uint32_t wickets = state->counts[innings][WICKETS];
    return count == RUNS ? balls * RUNS_PER_BALL * (wickets < 3 ? 16 : 19 - wickets) / 1600
                         : balls * in_thousand[count] / 1000;
}

/* The lead of the side that bats first, in millibits. */
static int32_t lead_of_first(const struct cricket *state)
{
    int32_t left = (int32_t)balls_left(state, state->innings);
    int32_t more = (int32_t)to_come(state, state->innings, RUNS, (uint32_t)left);
    int32_t runs = (int32_t)state->counts[state->innings][RUNS];
    if (state->innings == 0)
        return (runs + more - (int32_t)state->overs * 6 * RUNS_PER_BALL / 100) * 60;
    return ((int32_t)state->counts[0][RUNS] + 1 - runs - more) * 4000 / (left / 2 + 4);
}

/* The possible scores are 1 to 0, 0 to 1, and 0 to 0 for a tie. */
static void cricket_expect(const struct event *event, struct scores *scores)
{
    const struct cricket *state = &event->cricket;
    uint32_t first = state->counts[0][RUNS], second = state->counts[1][RUNS];
    if (event->stage >= STAGE_FINISHED) {
        bool home = (first > second) == (state->first_to_bat == 0);
        scores->weight[first != second && home][first != second && !home] = 1;
        return;
    }
    int32_t lead = lead_of_first(state), gap = lead < 0 ? -lead : lead;
    int32_t left = (int32_t)(balls_left(state, 0) + balls_left(state, 1));
    int32_t home = (state->first_to_bat == 0 ? lead : -lead) +
                   event->strength[0] * left / (int32_t)(state->overs * 12);
    uint32_t ppm = chance_of_stronger(home);
    uint32_t tie =
        gap > 4000 ? 2000 : 15000 + (uint32_t)(4000 - gap) * 2 / (uint32_t)(left / 20 + 1);
    scores->weight[0][0] = tie;
    scores->weight[1][0] = 1 + (uint64_t)ppm * (CHANCE_ONE - tie) / CHANCE_ONE;
    scores->weight[0][1] = 1 + (uint64_t)(CHANCE_ONE - ppm) * (CHANCE_ONE - tie) / CHANCE_ONE;
}

/* ---- fancies --------------------------------------------------------------------------------- */

enum window {              /* in which a fancy is quoted, of an innings that is played */
              BEFORE_OVER, /* `number` has ended */
              SOON,        /* this over and the next */
              NOW,         /* this over */
              BEFORE_WICKET,
              BATTER_IN,
              INNINGS,
              MATCH,
};

static const struct fancy {
    uint32_t market; /* of cricket_markets */
    enum window window;
    uint32_t every; /* one for each number divisible by this; 0: a single one */
    enum cricket_count count;
    uint32_t base, balls; /* the line without the score, and the further balls that count */
    const char *name;     /* '#' is the number; the side follows, or the batter is before it */
} fancies[] = {
    {3, BEFORE_OVER, 1, RUNS, 0, 0, "# over runs"},
    {3, BEFORE_WICKET, 1, RUNS, 0, 9, "Fall of wkt #"},
    {3, BATTER_IN, 1, RUNS, 0, 13, "runs"},
    {3, INNINGS, 0, FOURS, 0, 0, "Total fours"},
    {3, INNINGS, 0, SIXES, 0, 0, "Total sixes"},
    {3, INNINGS, 0, BOUNDARIES, 0, 0, "Total boundaries"},
    {3, INNINGS, 0, WICKETS, 0, 0, "Total wickets"},
    {3, MATCH, 0, RUNS, 0, 0, "Match runs"},
    {3, MATCH, 0, FOURS, 0, 0, "Match fours"},
    {3, MATCH, 0, SIXES, 0, 0, "Match sixes"},
    {3, MATCH, 0, BOUNDARIES, 0, 0, "Match boundaries"},
    {3, MATCH, 0, WICKETS, 0, 0, "Match wickets"},
    {4, SOON, 1, RUNS, 7, 0, "Only # over run"},
    {5, NOW, 1, RUNS, 1, 0, "Next ball runs, over #"},
    {6, SOON, 1, RUNS, 80, 0, "Boundary in over #"},
    {7, SOON, 1, RUNS, 85, 0, "Only # over odd run"},
    {8, BEFORE_OVER, 5, RUNS, 0, 0, "# over khado"},
    {9, BEFORE_OVER, 5, RUNS, 0, 0, "# over meter"},
};

/* The count so far plus that expected of `balls` more; 0: of all balls that are left. */
static uint32_t line_of(const struct cricket *state, uint32_t innings, enum cricket_count count,
                        uint32_t balls)
{
    uint32_t left = balls_left(state, innings);
    return state->counts[innings][count] +
           to_come(state, innings, count, balls == 0 || balls > left ? left : balls);
}

/* Is the fancy quoted now? If so, sets its line. */
static bool quote_fancy(const struct event *event, const struct fancy *fancy, uint32_t innings,
                        uint32_t number, uint32_t *line)
{
    const struct cricket *state = &event->cricket;
    uint32_t balls = state->balls[innings], over = balls / 6;
    bool batting = innings == state->innings && balls_left(state, innings) > 0;
    bool soon = batting && number > over && number <= over + 2 && number <= state->overs;
    uint64_t flutter = chance_mix(event->salt + balls * 1024 + number) % (fancy->base / 4 + 1);
    *line = fancy->base != 0 ? fancy->base + (uint32_t)flutter
                             : line_of(state, innings, fancy->count, fancy->balls);
    switch (fancy->window) {
    case BEFORE_OVER:
        if (batting && number > over)
            *line = line_of(state, innings, RUNS, number * 6 - balls);
        return batting && number > over && number <= state->overs &&
               (number <= 10 || number % 5 == 0);
    case SOON:
        return soon;
    case NOW:
        return soon && event->stage == STAGE_IN_PLAY && number == over + 1;
    case BEFORE_WICKET:
        return batting && number == state->counts[innings][WICKETS] + 1;
    case BATTER_IN:
        for (size_t i = 0; i < 2; i++)
            if (batting && state->batters[i].number == number - 1) {
                *line += state->batters[i].runs - state->counts[innings][RUNS];
                return true;
            }
        return false;
    case INNINGS:
        return batting;
    default:
        *line += line_of(state, 1, fancy->count, 0);
        return innings == 0 && balls_left(state, 1) > 0;
    }
}

static void name_fancy(const struct event *event, const struct fancy *fancy, uint32_t innings,
                       uint32_t number, struct section *section)
{
    const char *team = event->sides[event->cricket.first_to_bat ^ innings];
    struct chance names = {event->salt + innings * BATTERS + number};
    char name[NAME_SIZE], batter[NAME_SIZE];
    name_make(&names, fancy->name, number, name, sizeof name);
    name_make(&names, "@f @s@e", 0, batter, sizeof batter);
    bool personal = fancy->window == BATTER_IN, match = fancy->window == MATCH;
    (void)snprintf(section->name, sizeof section->name, "%.30s%s%.32s", personal ? batter : name,
                   match ? "" : " ",
                   match      ? ""
                   : personal ? name
                              : team);
}

static size_t cricket_lines(const struct event *event, uint32_t market, struct section *sections)
{
    size_t count = 0;
    uint32_t sid = 0, numbers = event->cricket.overs < BATTERS ? BATTERS : event->cricket.overs;
    for (const struct fancy *fancy = fancies; fancy < fancies + sizeof fancies / sizeof *fancies;
         fancy++)
        for (uint32_t innings = 0; innings < 2 && fancy->market == market; innings++)
            for (uint32_t number = 1; number <= numbers; number++) {
                uint32_t line;
                bool there = fancy->every == 0 ? number == 1 : number % fancy->every == 0;
                sid += there;
                if (!there || !quote_fancy(event, fancy, innings, number, &line))
                    continue;
                CHECK(count < SECTIONS_MAX);
                sections[count].sid = sid;
                sections[count].line = line;
                sections[count].spread = fancy->base >= 80 ? 5 : 1; /* in percent */
                name_fancy(event, fancy, innings, number, &sections[count++]);
            }
    return count;
}

static void cricket_score(const struct event *event, struct buffer *out)
{
    const struct cricket *state = &event->cricket;
    for (uint32_t i = 0; i <= state->innings; i++)
        buffer_append_format(out, "%s%u/%u (%u.%u)", i == 0 ? "" : ", ", state->counts[i][RUNS],
                             state->counts[i][WICKETS], state->balls[i] / 6, state->balls[i] % 6);
}

static const struct market_plan cricket_markets[] = {
    {MARKET_MATCH, ASK_WINNER, "Match Odds", "MATCH_ODDS", "@|#", 0, 0},
    {MARKET_BOOKMAKER, ASK_WINNER, "Bookmaker", "Bookmaker", "@|#", 0, 0},
    {MARKET_MATCH, ASK_DRAW, "Tied Match", "TIED_MATCH", "Yes|No", 0, 0},
    {MARKET_FANCY, ASK_LINES, "Normal", "Normal", NULL, 0, 0},
    {MARKET_FANCY, ASK_LINES, "Over By Over", "Over By Over", NULL, 0, 0},
    {MARKET_FANCY, ASK_LINES, "Ball By Ball", "Ball By Ball", NULL, 0, 0},
    {MARKET_FANCY1, ASK_LINES, "fancy1", "fancy1", NULL, 0, 0},
    {MARKET_ODDEVEN, ASK_LINES, "oddeven", "oddeven", NULL, 0, 0},
    {MARKET_FANCY2, ASK_LINES, "khado", "khado", NULL, 0, 0},
    {MARKET_FANCY2, ASK_LINES, "meter", "meter", NULL, 0, 0},
    {0},
};

const struct sport_table cricket_table = {4,
                                          360000,
                                          "@p @c",
                                          "@C",
                                          NULL,
                                          cricket_markets,
                                          cricket_create,
                                          NULL,
                                          cricket_play,
                                          cricket_expect,
                                          cricket_lines,
                                          cricket_score};
