/*
 * Football, tennis and racing, and the table of all sports (cricket.c has the fifth).
 *
 * Football is ninety minutes in about six; goals come as two Poisson processes, so that all markets
 * agree with each other at any minute. Tennis is the best of three sets, a point every two seconds.
 * A race is a field of runners with strengths that drift. Before the off a runner may be withdrawn,
 * and the prices of the others shorten. Horse races have markets in play; greyhound races do not.
 */
#include <string.h>

#include "demo/event.h"

/* ---- football -------------------------------------------------------------------------------- */

#define HALF_TIME_MS 12000

static void football_create(struct event *event)
{
    event->football.rate[0] = (uint32_t)chance_between(&event->chance, 900, 2600);
    event->football.rate[1] = (uint32_t)chance_between(&event->chance, 700, 2100);
}

/* True: the side scored. */
static bool play_side(struct event *event, size_t side)
{
    struct football *state = &event->football;
    state->rate[side] += (uint32_t)chance_between(&event->chance, 0, 12);
    state->rate[side] -= state->rate[side] > 306 ? 6 : 0;
    uint64_t goal_ppm = (uint64_t)state->rate[side] * 1000 * (uint64_t)event->elapsed_ms /
                        (uint64_t)event->duration_ms;
    if (!chance_happens(&event->chance, (uint32_t)goal_ppm))
        return false;
    state->goals[side]++;
    event_suspend(event, 8000, "Goal");
    return true;
}

static void football_play(struct event *event)
{
    struct football *state = &event->football;
    int64_t played_ms = event->now_ms - event->start_ms - (state->second_half ? HALF_TIME_MS : 0);
    uint32_t minute = (uint32_t)(played_ms * 90 / event->duration_ms);
    state->minute = minute < 90 ? minute : 90;
    if (!state->second_half && minute >= 45) {
        state->minute = 45;
        state->second_half = true;
        memcpy(state->half_time_goals, state->goals, sizeof state->goals);
        event_suspend(event, HALF_TIME_MS, "Half time");
    } else if (minute >= 90) {
        event_finish(event);
    } else if (!play_side(event, 0) && !play_side(event, 1) &&
               chance_happens(&event->chance, (uint32_t)(2500 * event->elapsed_ms / 1000))) {
        event_suspend(event, 10000, "VAR review");
    }
}

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* While time is left, any number of goals stays possible, if only with one in a million. */
static void expect_goals(const struct football *state, const uint32_t *goals, uint32_t minutes,
                         struct scores *scores)
{
    uint32_t chances[2][SCORE_SIZE], last = SCORE_SIZE - 1, least = minutes > 0 ? 1 : 0;
    for (size_t side = 0; side < 2; side++)
        chance_poisson(state->rate[side] * minutes / 90, chances[side], SCORE_SIZE);
    for (uint32_t i = 0; i <= last; i++)
        for (uint32_t j = 0; j <= last; j++)
            scores->weight[least_of(goals[0] + i, last)][least_of(goals[1] + j, last)] +=
                (uint64_t)(chances[0][i] + least) * (chances[1][j] + least);
}

static void football_expect(const struct event *event, struct scores *scores)
{
    const struct football *state = &event->football;
    expect_goals(state, state->goals, 90 - state->minute, &scores[0]);
    if (state->second_half)
        expect_goals(state, state->half_time_goals, 0, &scores[1]);
    else
        expect_goals(state, state->goals, 45 - least_of(state->minute, 45), &scores[1]);
}

static size_t football_lines(const struct event *event, uint32_t market, struct section *sections)
{
    struct scores scores[SCORES_MAX] = {0};
    uint64_t odd_and_even[2] = {0};
    (void)market; /* there is one */
    football_expect(event, scores);
    for (uint32_t i = 0; i < SCORE_SIZE; i++)
        for (uint32_t j = 0; j < SCORE_SIZE; j++)
            odd_and_even[(i + j) % 2] += scores[0].weight[i][j];
    uint64_t percent = odd_and_even[1] * 100 / (odd_and_even[0] + odd_and_even[1]);
    sections[0] = (struct section){"Total Goals Odd", 1, (uint32_t)percent, 2};
    return 1;
}

static void football_score(const struct event *event, struct buffer *out)
{
    const struct football *state = &event->football;
    buffer_append_format(out, "%u-%u (%u')", state->goals[0], state->goals[1], state->minute);
}

static const struct market_plan football_markets[] = {
    {MARKET_MATCH, ASK_WINNER, "Match Odds", "MATCH_ODDS", "@|The Draw|#", 0, 0},
    {MARKET_BOOKMAKER, ASK_WINNER, "Bookmaker", "Bookmaker", "@|The Draw|#", 0, 0},
    {MARKET_MATCH, ASK_OVER, "Over/Under 0.5 Goals", "OVER_UNDER_05",
     "Under 0.5 Goals|Over 0.5 Goals", 0, 0},
    {MARKET_MATCH, ASK_OVER, "Over/Under 1.5 Goals", "OVER_UNDER_15",
     "Under 1.5 Goals|Over 1.5 Goals", 0, 1},
    {MARKET_MATCH, ASK_OVER, "Over/Under 2.5 Goals", "OVER_UNDER_25",
     "Under 2.5 Goals|Over 2.5 Goals", 0, 2},
    {MARKET_MATCH, ASK_OVER, "Over/Under 3.5 Goals", "OVER_UNDER_35",
     "Under 3.5 Goals|Over 3.5 Goals", 0, 3},
    {MARKET_MATCH, ASK_OVER, "Over/Under 4.5 Goals", "OVER_UNDER_45",
     "Under 4.5 Goals|Over 4.5 Goals", 0, 4},
    {MARKET_MATCH, ASK_BOTH, "Both Teams to Score", "BOTH_TEAMS_TO_SCORE", "Yes|No", 0, 0},
    {MARKET_MATCH, ASK_WINNER, "Draw No Bet", "DRAW_NO_BET", "@|#", 0, 0},
    {MARKET_MATCH, ASK_WINNER, "Half Time", "HALF_TIME", "@|The Draw|#", 1, 0},
    {MARKET_MATCH, ASK_SCORE, "Correct Score", "CORRECT_SCORE",
     "0 - 0|0 - 1|0 - 2|0 - 3|1 - 0|1 - 1|1 - 2|1 - 3|2 - 0|2 - 1|2 - 2|2 - 3|"
     "3 - 0|3 - 1|3 - 2|3 - 3|Any Other Score",
     0, 0},
    {MARKET_ODDEVEN, ASK_LINES, "oddeven", "oddeven", NULL, 0, 0},
    {0},
};

/* ---- tennis ---------------------------------------------------------------------------------- */

#define POINT_EVERY_MS 1900
#define GAMES_LINE 20 /* over/under 20.5 */

static void tennis_create(struct event *event)
{
    for (size_t i = 0; i < 2; i++)
        event->tennis.serve_wins[i] = (uint32_t)chance_between(&event->chance, 560000, 680000);
}

/* ---- play ------------------------------------------------------------------------------------ */

static void win_game(struct event *event, uint32_t winner)
{
    struct tennis *state = &event->tennis;
    bool broken = state->server != winner;
    state->points[0] = state->points[1] = 0;
    state->server = 1 - state->server;
    state->games[winner]++;
    state->games_played++;
    if (state->games[winner] == 7 || (state->games[winner] == 6 && state->games[1 - winner] <= 4)) {
        state->won[state->sets[0] + state->sets[1]] = winner;
        state->games[0] = state->games[1] = 0;
        state->sets[winner]++;
        if (state->sets[winner] == 2)
            event_finish(event);
        else
            event_suspend(event, 6000, "Set over");
    } else if (broken) {
        event_suspend(event, 4000, "Break of serve");
    }
}

static void tennis_play(struct event *event)
{
    struct tennis *state = &event->tennis;
    if (event->now_ms < event->next_ms)
        return;
    event->next_ms = event->now_ms + POINT_EVERY_MS;
    if (chance_happens(&event->chance, 2500)) {
        event_suspend(event, 12000, "Medical time-out");
        return;
    }
    bool held = chance_happens(&event->chance, state->serve_wins[state->server]);
    uint32_t winner = held ? state->server : 1 - state->server;
    uint32_t target = state->games[0] == 6 && state->games[1] == 6 ? 7 : 4;
    uint32_t points = ++state->points[winner];
    if (points >= target && points >= state->points[1 - winner] + 2)
        win_game(event, winner);
}

/* ---- the scores that are still possible ------------------------------------------------------ */

/* A probability that is never 0 or 1. */
static uint32_t likely(int32_t millibits)
{
    uint32_t ppm = chance_of_stronger(millibits);
    return ppm < 1000 ? 1000 : ppm > CHANCE_ONE - 1000 ? CHANCE_ONE - 1000 : ppm;
}

static void expect_sets(struct scores *scores, uint32_t home, uint32_t away, uint64_t weight,
                        uint32_t this_ppm, uint32_t next_ppm)
{
    if (home == 2 || away == 2) {
        scores->weight[home][away] += weight;
        return;
    }
    expect_sets(scores, home + 1, away, weight * this_ppm / CHANCE_ONE, next_ppm, next_ppm);
    expect_sets(scores, home, away + 1, weight * (CHANCE_ONE - this_ppm) / CHANCE_ONE, next_ppm,
                next_ppm);
}

static void expect_games(const struct tennis *state, struct scores *scores)
{
    uint32_t sets = state->sets[0] + state->sets[1];
    int32_t to_come = sets == 0 ? 23 : sets == 1 ? 14 : 10;
    bool ended = state->sets[0] == 2 || state->sets[1] == 2;
    bool over = state->games_played > GAMES_LINE;
    int32_t before = (int32_t)(state->games_played - state->games[0] - state->games[1]);
    uint32_t ppm = over ? CHANCE_ONE : ended ? 0 : likely((before + to_come - GAMES_LINE) * 350);
    scores->weight[1][0] = ppm;
    scores->weight[0][0] = CHANCE_ONE - ppm;
}

/* The sets of the match, its first and second set, and whether there are more games than the
 * line. */
static void tennis_expect(const struct event *event, struct scores *scores)
{
    const struct tennis *state = &event->tennis;
    int32_t better = ((int32_t)state->serve_wins[0] - (int32_t)state->serve_wins[1]) / 90;
    int32_t games = (int32_t)state->games[0] - (int32_t)state->games[1];
    int32_t played = (int32_t)(state->games[0] + state->games[1]);
    int32_t points = (int32_t)state->points[0] - (int32_t)state->points[1];
    int32_t serving = state->server == 0 ? 150 : -150;
    uint32_t sets = state->sets[0] + state->sets[1], next_ppm = likely(better);
    uint32_t this_ppm =
        likely(better + games * (300 + 60 * played) + points * (60 + 12 * played) + serving);
    expect_sets(&scores[0], state->sets[0], state->sets[1], (uint64_t)1 << 40, this_ppm, next_ppm);
    for (uint32_t set = 0; set < 2; set++) {
        uint32_t ppm = set > sets ? next_ppm : set == sets ? this_ppm : CHANCE_ONE;
        uint32_t winner = set < sets ? state->won[set] : 0;
        scores[1 + set].weight[1 - winner][winner] = ppm;
        scores[1 + set].weight[winner][1 - winner] = CHANCE_ONE - ppm;
    }
    expect_games(state, &scores[3]);
}

static void tennis_score(const struct event *event, struct buffer *out)
{
    static const char *const names[] = {"0", "15", "30", "40"};
    const struct tennis *state = &event->tennis;
    const uint32_t *points = state->points;
    buffer_append_format(out, "%u-%u, %u-%u, ", state->sets[0], state->sets[1], state->games[0],
                         state->games[1]);
    if (points[0] <= 3 && points[1] <= 3)
        buffer_append_format(out, "%s-%s", names[points[0]], names[points[1]]);
    else
        buffer_append_string(out, points[0] == points[1]  ? "Deuce"
                                  : points[0] > points[1] ? "Ad-40"
                                                          : "40-Ad");
}

static const struct market_plan tennis_markets[] = {
    {MARKET_MATCH, ASK_WINNER, "Match Odds", "MATCH_ODDS", "@|#", 0, 0},
    {MARKET_BOOKMAKER, ASK_WINNER, "Bookmaker", "Bookmaker", "@|#", 0, 0},
    {MARKET_MATCH, ASK_WINNER, "Set 1 Winner", "SET_WINNER", "@|#", 1, 0},
    {MARKET_MATCH, ASK_WINNER, "Set 2 Winner", "SET_WINNER", "@|#", 2, 0},
    {MARKET_MATCH, ASK_SETS, "Set Betting", "SET_BETTING", "@ 2 - 0|@ 2 - 1|# 2 - 0|# 2 - 1", 0, 0},
    {MARKET_MATCH, ASK_OVER, "Total Games 20.5", "NUMBER_OF_GAMES",
     "Under 20.5 Games|Over 20.5 Games", 3, 0},
    {0},
};

/* ---- racing ---------------------------------------------------------------------------------- */

static void racing_create(struct event *event)
{
    struct racing *state = &event->racing;
    int32_t most = event->sport == SPORT_HORSE_RACING ? SIDES_MAX : 8;
    event->side_count = (uint32_t)chance_between(&event->chance, 6, most);
    state->places = event->side_count >= 8 ? 3 : 2;
    for (uint32_t i = 0; i < event->side_count; i++)
        event->strength[i] = chance_between(&event->chance, -1600, 1600);
    if (chance_below(&event->chance, 5) < 2)
        state->withdrawal_ms = event->start_ms - 15000 - chance_below(&event->chance, 90000);
}

static void racing_upcoming(struct event *event)
{
    struct racing *state = &event->racing;
    if (state->withdrawal_ms == 0 || event->now_ms < state->withdrawal_ms)
        return;
    state->withdrawal_ms = 0;
    uint32_t out = chance_below(&event->chance, event->side_count);
    /* A greyhound's trap stays empty; so it does when a horse's draw is not used. */
    enum runner_status status = event->sport == SPORT_GREYHOUND_RACING || event->serial % 2 == 1
                                    ? RUNNER_REMOVED_VACANT
                                    : RUNNER_REMOVED;
    for (uint32_t m = 0; m < event->market_count; m++)
        event->markets[m].runners[out].status = status;
    event->changed = true;
    event_suspend(event, 6000, "Non-runner");
}

static void racing_play(struct event *event)
{
    int64_t run_ms = event->now_ms - event->start_ms;
    int32_t swing = (int32_t)(120 + 400 * run_ms / event->duration_ms);
    for (uint32_t i = 0; i < event->side_count; i++)
        event->strength[i] += chance_between(&event->chance, -swing, swing);
    if (run_ms >= event->duration_ms)
        event_finish(event);
    else if (event->sport == SPORT_GREYHOUND_RACING)
        event_suspend(event, 1, "Running");
}

static void racing_score(const struct event *event, struct buffer *out)
{
    buffer_append_string(out, event->stage == STAGE_IN_PLAY ? "Off" : "Finished");
}

static const struct market_plan racing_markets[] = {
    {MARKET_MATCH, ASK_FIRST, "Win", "WIN", NULL, 0, 0},
    {MARKET_MATCH, ASK_PLACED, "To Be Placed", "PLACE", NULL, 0, 0},
    {0},
};

/* ---- all of them ----------------------------------------------------------------------------- */

const struct sport_table *const sport_tables[SPORT_COUNT] = {
    [SPORT_CRICKET] = &cricket_table,
    [SPORT_FOOTBALL] = &(const struct sport_table){1, 360000, "@p @u", "@F", NULL, football_markets,
                                                   football_create, NULL, football_play,
                                                   football_expect, football_lines, football_score},
    [SPORT_TENNIS] =
        &(const struct sport_table){2, 300000, "@f @s@e", "@T", NULL, tennis_markets, tennis_create,
                                    NULL, tennis_play, tennis_expect, NULL, tennis_score},
    [SPORT_HORSE_RACING] =
        &(const struct sport_table){7, 90000, "@a @n", "@p Downs", " R# @yy", racing_markets,
                                    racing_create, racing_upcoming, racing_play, NULL, NULL,
                                    racing_score},
    [SPORT_GREYHOUND_RACING] =
        &(const struct sport_table){4339, 35000, "@h @i", "@p Stadium", " A# @mm", racing_markets,
                                    racing_create, racing_upcoming, racing_play, NULL, NULL,
                                    racing_score},
};
