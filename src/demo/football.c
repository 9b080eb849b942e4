/*
 * Football: ninety minutes in about six. Goals come as two Poisson processes; every market is read
 * off the distribution of the final score, so that they agree with each other at any minute.
 */
#include <string.h>

#include "demo/event.h"

enum {
    MATCH_ODDS,
    BOOKMAKER,
    GOALS_FIRST, /* over/under 0.5, 1.5, 2.5, 3.5, 4.5 */
    BOTH_SCORE = GOALS_FIRST + 5,
    DRAW_NO_BET,
    HALF_TIME,
    CORRECT_SCORE,
    ODD_EVEN,
};

#define GOALS_MAX 9 /* more goals to come than 8 are counted as 8 */
#define SCORES_SIDE 4
#define SCORE_OTHER (SCORES_SIDE * SCORES_SIDE)
#define HALF_TIME_MS 12000

static void football_create(struct event *event)
{
    struct football_state *state = &event->football;
    event_name_match(event);
    event->duration_ms = 1000 * (int64_t)chance_between(&event->chance, 300, 420);
    state->rate[0] = (uint32_t)chance_between(&event->chance, 900, 2600);
    state->rate[1] = (uint32_t)chance_between(&event->chance, 700, 2100);

    static const struct market_plan markets[] = {
        {MARKET_MATCH, "Match Odds", "MATCH_ODDS", "@home|The Draw|@away"},
        {MARKET_BOOKMAKER, "Bookmaker", "Bookmaker", "@home|The Draw|@away"},
        {MARKET_MATCH, "Over/Under 0.5 Goals", "OVER_UNDER_05", "Under 0.5 Goals|Over 0.5 Goals"},
        {MARKET_MATCH, "Over/Under 1.5 Goals", "OVER_UNDER_15", "Under 1.5 Goals|Over 1.5 Goals"},
        {MARKET_MATCH, "Over/Under 2.5 Goals", "OVER_UNDER_25", "Under 2.5 Goals|Over 2.5 Goals"},
        {MARKET_MATCH, "Over/Under 3.5 Goals", "OVER_UNDER_35", "Under 3.5 Goals|Over 3.5 Goals"},
        {MARKET_MATCH, "Over/Under 4.5 Goals", "OVER_UNDER_45", "Under 4.5 Goals|Over 4.5 Goals"},
        {MARKET_MATCH, "Both Teams to Score", "BOTH_TEAMS_TO_SCORE", "Yes|No"},
        {MARKET_MATCH, "Draw No Bet", "DRAW_NO_BET", "@home|@away"},
        {MARKET_MATCH, "Half Time", "HALF_TIME", "@home|The Draw|@away"},
        {MARKET_MATCH, "Correct Score", "CORRECT_SCORE",
         "0 - 0|0 - 1|0 - 2|0 - 3|1 - 0|1 - 1|1 - 2|1 - 3|2 - 0|2 - 1|2 - 2|2 - 3|"
         "3 - 0|3 - 1|3 - 2|3 - 3|Any Other Score"},
        {MARKET_ODDEVEN, "oddeven", "oddeven", ""},
        {0},
    };
    event_add_markets(event, markets);
    (void)event_add_section(&event->markets[ODD_EVEN], "Total Goals Odd");
}

/* Whole minutes played of ninety, and how much of the playing time is left, in ppm. */
static uint32_t left_ppm(const struct event *event)
{
    const struct football_state *state = &event->football;
    if (event->stage == STAGE_UPCOMING)
        return CHANCE_ONE;
    return CHANCE_ONE / 90 * (90 - (state->minute < 90 ? state->minute : 90));
}

static void decide_early(struct event *event)
{
    const struct football_state *state = &event->football;
    uint32_t total = state->goals[0] + state->goals[1];
    for (uint32_t line = 0; line < 5 && line < total; line++)
        market_decide(&event->markets[GOALS_FIRST + line], 1);
    if (state->goals[0] > 0 && state->goals[1] > 0)
        market_decide(&event->markets[BOTH_SCORE], 0);
    struct market *scores = &event->markets[CORRECT_SCORE];
    for (size_t i = 0; i < SCORE_OTHER; i++)
        if (i / SCORES_SIDE < state->goals[0] || i % SCORES_SIDE < state->goals[1])
            scores->runners[i].status = RUNNER_LOSER;
}

/* Home, draw, away: where the order of the goals puts the winner in a three-way market. */
static size_t outcome(uint32_t home, uint32_t away)
{
    return home > away ? 0 : home == away ? 1 : 2;
}

static void football_step(struct event *event)
{
    struct football_state *state = &event->football;
    int64_t played_ms = event->now_ms - event->start_ms;
    if (state->second_half)
        played_ms -= HALF_TIME_MS;
    state->minute = (uint32_t)(played_ms * 90 / event->duration_ms);
    if (!state->second_half && state->minute >= 45) {
        state->minute = 45;
        state->second_half = true;
        memcpy(state->half_time_goals, state->goals, sizeof state->goals);
        market_decide(&event->markets[HALF_TIME], outcome(state->goals[0], state->goals[1]));
        event_suspend(event, HALF_TIME_MS, "Half time");
        return;
    }
    if (state->minute >= 90) {
        event_finish(event);
        return;
    }
    for (size_t side = 0; side < 2; side++) {
        state->rate[side] += (uint32_t)chance_between(&event->chance, 0, 12);
        state->rate[side] -= state->rate[side] > 306 ? 6 : 0;
        uint64_t goal_ppm = (uint64_t)state->rate[side] * 1000 * (uint64_t)event->elapsed_ms /
                            (uint64_t)event->duration_ms;
        if (!chance_happens(&event->chance, (uint32_t)goal_ppm))
            continue;
        state->goals[side]++;
        decide_early(event);
        event_suspend(event, 8000, "Goal");
        return;
    }
    if (chance_happens(&event->chance, (uint32_t)(2500 * event->elapsed_ms / 1000)))
        event_suspend(event, 10000, "VAR review");
}

/* How likely each side scores so many more goals. */
static void goals_to_come(const struct football_state *state, uint32_t left,
                          uint32_t chances[2][GOALS_MAX])
{
    for (size_t side = 0; side < 2; side++)
        chance_poisson((uint32_t)((uint64_t)state->rate[side] * left / CHANCE_ONE), chances[side],
                       GOALS_MAX);
}

static void price_half_time(struct event *event, uint32_t left)
{
    const struct football_state *state = &event->football;
    struct market *market = &event->markets[HALF_TIME];
    if (market->decided)
        return;
    uint32_t chances[2][GOALS_MAX], ppm[3] = {0};
    goals_to_come(state, left > CHANCE_ONE / 2 ? left - CHANCE_ONE / 2 : 0, chances);
    for (uint32_t i = 0; i < GOALS_MAX; i++)
        for (uint32_t j = 0; j < GOALS_MAX; j++)
            ppm[outcome(state->goals[0] + i, state->goals[1] + j)] +=
                (uint32_t)((uint64_t)chances[0][i] * chances[1][j] / CHANCE_ONE);
    market_set_chances(market, ppm);
}

static void football_price(struct event *event)
{
    const struct football_state *state = &event->football;
    uint32_t left = left_ppm(event), chances[2][GOALS_MAX];
    goals_to_come(state, left, chances);
    uint32_t match[3] = {0}, score[SCORE_OTHER + 1] = {0}, under[5] = {0}, both = 0, odd = 0;
    for (uint32_t i = 0; i < GOALS_MAX; i++) {
        for (uint32_t j = 0; j < GOALS_MAX; j++) {
            uint32_t home = state->goals[0] + i, away = state->goals[1] + j;
            uint32_t ppm = (uint32_t)((uint64_t)chances[0][i] * chances[1][j] / CHANCE_ONE);
            match[outcome(home, away)] += ppm;
            score[home < SCORES_SIDE && away < SCORES_SIDE ? home * SCORES_SIDE + away
                                                           : SCORE_OTHER] += ppm;
            for (uint32_t line = 0; line < 5; line++)
                under[line] += home + away <= line ? ppm : 0;
            both += home > 0 && away > 0 ? ppm : 0;
            odd += (home + away) % 2 == 1 ? ppm : 0;
        }
    }
    market_set_chances(&event->markets[MATCH_ODDS], match);
    market_set_chances(&event->markets[CORRECT_SCORE], score);
    for (size_t line = 0; line < 5; line++)
        market_set_two_chances(&event->markets[GOALS_FIRST + line], under[line]);
    market_set_two_chances(&event->markets[BOTH_SCORE], both);
    market_set_chances(&event->markets[DRAW_NO_BET], (const uint32_t[]){match[0], match[2]});
    price_half_time(event, left);
    struct section *section = &event->markets[ODD_EVEN].sections[0];
    section->shown = true;
    section->line = odd / (CHANCE_ONE / 100);
    section->spread = 2;
}

static void football_result(struct event *event)
{
    const struct football_state *state = &event->football;
    uint32_t home = state->goals[0], away = state->goals[1];
    market_decide(&event->markets[MATCH_ODDS], outcome(home, away));
    for (size_t line = 0; line < 5; line++)
        market_decide(&event->markets[GOALS_FIRST + line], 0);
    market_decide(&event->markets[BOTH_SCORE], 1);
    if (home == away)
        market_void(&event->markets[DRAW_NO_BET]);
    else
        market_decide(&event->markets[DRAW_NO_BET], home > away ? 0 : 1);
    market_decide(&event->markets[CORRECT_SCORE], home < SCORES_SIDE && away < SCORES_SIDE
                                                      ? home * SCORES_SIDE + away
                                                      : SCORE_OTHER);
}

const struct event_model football_model = {
    .create = football_create,
    .step = football_step,
    .price = football_price,
    .result = football_result,
};
