/*
 * Cricket: a limited-overs match, a ball every two seconds. Fancies ("sessions") quote a run line
 * that follows the score, and disappear when they have been decided.
 */
#include <stdio.h>
#include <string.h>

#include "demo/event.h"

#define BALL_RUNNING_MS 900
#define BALL_EVERY_MS 1900
#define BREAK_MS 15000
#define RUNS_PER_BALL 136 /* expected, in hundredths */
#define BATTERS 11

void cricket_create(struct event *event)
{
    struct cricket *state = &event->cricket;
    state->overs = chance_below(&event->chance, 4) == 0 ? 20 : 10;
    event->duration_ms = (int64_t)state->overs * 12 * 2000 + BREAK_MS;
    state->first_to_bat = chance_below(&event->chance, 2);
    event->strength[0] = chance_between(&event->chance, -700, 700);
    state->batters[1].number = 1;
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void fall_of_wicket(struct event *event, uint32_t *counts)
{
    struct cricket *state = &event->cricket;
    uint32_t next = ++counts[WICKETS] + 1;
    state->batters[state->on_strike].number = next < BATTERS ? next : BATTERS; /* BATTERS: none */
    state->batters[state->on_strike].runs = 0;
    event_suspend(event, 8000, "Wicket");
}

static void score(struct event *event, uint32_t *counts, uint32_t runs)
{
    struct cricket *state = &event->cricket;
    counts[RUNS] += runs;
    counts[FOURS] += runs == 4;
    counts[SIXES] += runs == 6;
    counts[BOUNDARIES] += runs >= 4;
    state->batters[state->on_strike].runs += runs;
    state->on_strike ^= runs % 2;
    if (chance_happens(&event->chance, 8000))
        event_suspend(event, 10000, "Review");
}

static void bowl(struct event *event)
{
    struct cricket *state = &event->cricket;
    uint32_t *counts = state->counts[state->innings];
    static const struct {
        uint32_t ppm, runs;
    } outcomes[] = {{350000, 0}, {330000, 1}, {90000, 2}, {10000, 3}, {120000, 4}, {55000, 6}};
    uint32_t drawn = chance_below(&event->chance, CHANCE_ONE);
    size_t i = 0, count = sizeof outcomes / sizeof outcomes[0];
    for (; i < count && drawn >= outcomes[i].ppm; i++)
        drawn -= outcomes[i].ppm;
    if (i < count)
        score(event, counts, outcomes[i].runs);
    else
        fall_of_wicket(event, counts);
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

void cricket_play(struct event *event)
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

/* ---- what it leaves possible ----------------------------------------------------------------- */

/* Expected of so many balls of an innings; fewer runs as wickets fall. */
static uint32_t to_come(const struct cricket *state, uint32_t innings, enum cricket_count count,
                        uint32_t balls)
{
    static const uint32_t in_thousand[] = {
        [FOURS] = 120, [SIXES] = 55, [BOUNDARIES] = 170, [WICKETS] = 45};
    uint32_t wickets = state->counts[innings][WICKETS];
    return count == RUNS ? balls * RUNS_PER_BALL * (wickets < 3 ? 16 : 19 - wickets) / 1600
                         : balls * in_thousand[count] / 1000;
}

/* How far the side that bats first is ahead, in millibits. */
static int32_t lead_of_first(const struct cricket *state)
{
    int32_t left = (int32_t)balls_left(state, state->innings);
    int32_t more = (int32_t)to_come(state, state->innings, RUNS, (uint32_t)left);
    int32_t runs = (int32_t)state->counts[state->innings][RUNS];
    if (state->innings == 0)
        return (runs + more - (int32_t)state->overs * 6 * RUNS_PER_BALL / 100) * 60;
    return ((int32_t)state->counts[0][RUNS] + 1 - runs - more) * 4000 / (left / 2 + 4);
}

/* 1 to 0, 0 to 1, or 0 to 0 for a tie. */
void cricket_expect(const struct event *event, struct scores *scores)
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

enum span {
    TO_OVER,   /* at the end of over `number` */
    IN_OVER,   /* in over `number` */
    NEXT_BALL, /* of over `number` */
    YES_NO,    /* of over `number`, in percent */
    AT_WICKET, /* at the fall of wicket `number` */
    OF_BATTER, /* of batter `number` - 1 */
    OF_INNINGS,
    OF_MATCH,
};

static const struct fancy {
    uint32_t market; /* of cricket_markets */
    enum span span;
    uint32_t every; /* every so many numbers has one; 0: there is one */
    enum cricket_count count;
    const char *name; /* '#' is the number; behind it goes the side, or before it the batter */
} fancies[] = {
    {3, TO_OVER, 1, RUNS, "# over runs"},
    {3, AT_WICKET, 1, RUNS, "Fall of wkt #"},
    {3, OF_BATTER, 1, RUNS, "runs"},
    {3, OF_INNINGS, 0, FOURS, "Total fours"},
    {3, OF_INNINGS, 0, SIXES, "Total sixes"},
    {3, OF_INNINGS, 0, BOUNDARIES, "Total boundaries"},
    {3, OF_INNINGS, 0, WICKETS, "Total wickets"},
    {3, OF_MATCH, 0, RUNS, "Match runs"},
    {3, OF_MATCH, 0, FOURS, "Match fours"},
    {3, OF_MATCH, 0, SIXES, "Match sixes"},
    {3, OF_MATCH, 0, BOUNDARIES, "Match boundaries"},
    {3, OF_MATCH, 0, WICKETS, "Match wickets"},
    {4, IN_OVER, 1, RUNS, "Only # over run"},
    {5, NEXT_BALL, 1, RUNS, "Next ball runs, over #"},
    {6, YES_NO, 1, RUNS, "Boundary in over #"},
    {7, YES_NO, 1, RUNS, "Only # over odd run"},
    {8, TO_OVER, 5, RUNS, "# over khado"},
    {9, TO_OVER, 5, RUNS, "# over meter"},
};

/* Whether the fancy is quoted now, and its line if so. */
static bool quote_fancy(const struct event *event, const struct fancy *fancy, uint32_t innings,
                        uint32_t number, uint32_t *line)
{
    const struct cricket *state = &event->cricket;
    const uint32_t *counts = state->counts[innings];
    uint32_t balls = state->balls[innings], left = balls_left(state, innings), over = balls / 6;
    uint32_t flutter =
        (uint32_t)(chance_mix(event->salt + balls * 1024 + number * 8 + innings) % 3);
    bool batting = innings == state->innings && left > 0; /* else `left` is 0 at the end */
    bool soon = batting && number <= state->overs && (number == over + 1 || number == over + 2);
    switch (fancy->span) {
    case TO_OVER:
        *line = counts[RUNS] + to_come(state, innings, RUNS, number * 6 - balls) + flutter % 2;
        return batting && over < number && (number <= 10 || number % 5 == 0);
    case IN_OVER:
        *line = 7 + flutter;
        return soon;
    case NEXT_BALL:
        *line = 1;
        return soon && event->stage == STAGE_IN_PLAY && number == over + 1;
    case YES_NO:
        *line = 80 + flutter * 9;
        return soon;
    case AT_WICKET:
        *line = counts[RUNS] + 12 + flutter;
        return batting && number == counts[WICKETS] + 1;
    case OF_BATTER:
        for (size_t i = 0; i < 2; i++)
            if (batting && state->batters[i].number == number - 1) {
                *line = state->batters[i].runs + (left < 28 ? left * 3 / 5 : 17);
                return true;
            }
        return false;
    case OF_INNINGS:
        *line = counts[fancy->count] + to_come(state, innings, fancy->count, left);
        return batting;
    case OF_MATCH:
        *line = 0;
        for (uint32_t i = 0; i < 2; i++)
            *line += state->counts[i][fancy->count] +
                     to_come(state, i, fancy->count, balls_left(state, i));
        return innings == 0 && balls_left(state, 1) > 0;
    }
    return false;
}

static void name_fancy(const struct event *event, const struct fancy *fancy, uint32_t innings,
                       uint32_t number, struct section *section)
{
    const char *team = event->sides[event->cricket.first_to_bat ^ innings];
    struct chance names = {event->salt + innings * BATTERS + number};
    char name[NAME_SIZE], batter[NAME_SIZE];
    name_make(&names, fancy->name, number, name, sizeof name);
    name_make(&names, "@f @s@e", 0, batter, sizeof batter);
    if (fancy->span == OF_BATTER)
        (void)snprintf(section->name, sizeof section->name, "%.40s %.20s", batter, name);
    else
        (void)snprintf(section->name, sizeof section->name, "%.30s%s%.32s", name,
                       fancy->span == OF_MATCH ? "" : " ", fancy->span == OF_MATCH ? "" : team);
}

size_t cricket_lines(const struct event *event, uint32_t market, struct section *sections)
{
    size_t count = 0;
    uint32_t sid = 0, overs = event->cricket.overs < BATTERS ? BATTERS : event->cricket.overs;
    for (size_t f = 0; f < sizeof fancies / sizeof fancies[0]; f++)
        for (uint32_t innings = 0; innings < 2 && fancies[f].market == market; innings++)
            for (uint32_t number = 1; number <= overs; number++) {
                uint32_t line;
                bool there = fancies[f].every == 0 ? number == 1 : number % fancies[f].every == 0;
                sid += there;
                if (!there || !quote_fancy(event, &fancies[f], innings, number, &line))
                    continue;
                CHECK(count < SECTIONS_MAX);
                sections[count].sid = sid;
                sections[count].line = line;
                sections[count].spread = fancies[f].span == YES_NO ? 5 : 1;
                name_fancy(event, &fancies[f], innings, number, &sections[count++]);
            }
    return count;
}

void cricket_score(const struct event *event, struct buffer *out)
{
    const struct cricket *state = &event->cricket;
    for (uint32_t i = 0; i <= state->innings; i++)
        buffer_append_format(out, "%s%u/%u (%u.%u)", i == 0 ? "" : ", ", state->counts[i][RUNS],
                             state->counts[i][WICKETS], state->balls[i] / 6, state->balls[i] % 6);
}
