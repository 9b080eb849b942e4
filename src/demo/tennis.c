/* Tennis: best of three sets, point by point, a point every two seconds. */
#include "demo/event.h"

enum { MATCH_ODDS, BOOKMAKER, SET_1, SET_2, SET_BETTING, TOTAL_GAMES };

#define POINT_EVERY_MS 1900
#define GAMES_LINE 20 /* over/under 20.5 */

static void tennis_create(struct event *event)
{
    struct tennis_state *state = &event->tennis;
    event_name_match(event);
    event->duration_ms = simulated_event_length_ms(event->sport);
    for (size_t i = 0; i < 2; i++)
        state->serve_wins[i] = (uint32_t)chance_between(&event->chance, 560000, 680000);

    static const struct market_plan markets[] = {
        {MARKET_MATCH, "Match Odds", "MATCH_ODDS", "@home|@away"},
        {MARKET_BOOKMAKER, "Bookmaker", "Bookmaker", "@home|@away"},
        {MARKET_MATCH, "Set 1 Winner", "SET_WINNER", "@home|@away"},
        {MARKET_MATCH, "Set 2 Winner", "SET_WINNER", "@home|@away"},
        {MARKET_MATCH, "Set Betting", "SET_BETTING",
         "@home 2 - 0|@home 2 - 1|@away 2 - 0|@away 2 - 1"},
        {MARKET_MATCH, "Total Games 20.5", "NUMBER_OF_GAMES", "Under 20.5 Games|Over 20.5 Games"},
        {0},
    };
    event_add_markets(event, markets);
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void win_set(struct event *event, uint32_t winner)
{
    struct tennis_state *state = &event->tennis;
    state->set_winner[state->sets_played] = winner;
    if (state->sets_played < 2)
        market_decide(&event->markets[SET_1 + state->sets_played], winner);
    state->sets_played++;
    state->sets[winner]++;
    state->games[0] = state->games[1] = 0;
    if (state->sets[winner] == 2)
        event_finish(event);
    else
        event_suspend(event, 6000, "Set over");
}

static void win_game(struct event *event, uint32_t winner)
{
    struct tennis_state *state = &event->tennis;
    uint32_t loser = 1 - winner;
    state->points[0] = state->points[1] = 0;
    state->games[winner]++;
    state->games_played++;
    bool broken = state->server != winner;
    state->server = 1 - state->server;
    if (state->games_played > GAMES_LINE)
        market_decide(&event->markets[TOTAL_GAMES], 1);
    if (state->games[winner] == 7 || (state->games[winner] == 6 && state->games[loser] <= 4))
        win_set(event, winner);
    else if (broken)
        event_suspend(event, 4000, "Break of serve");
}

static void tennis_step(struct event *event)
{
    struct tennis_state *state = &event->tennis;
    if (event->now_ms < state->next_point_ms)
        return;
    state->next_point_ms = event->now_ms + POINT_EVERY_MS;
    if (chance_happens(&event->chance, 2500)) {
        event_suspend(event, 12000, "Medical time-out");
        return;
    }
    bool held = chance_happens(&event->chance, state->serve_wins[state->server]);
    uint32_t winner = held ? state->server : 1 - state->server;
    state->points[winner]++;
    uint32_t target = state->games[0] == 6 && state->games[1] == 6 ? 7 : 4;
    if (state->points[winner] >= target && state->points[winner] >= state->points[1 - winner] + 2)
        win_game(event, winner);
}

/* ---- what it makes likely -------------------------------------------------------------------- */

static uint32_t both(uint32_t a, uint32_t b)
{
    return (uint32_t)((uint64_t)a * b / CHANCE_ONE);
}

static void price_sets(struct event *event, uint32_t this_set, uint32_t other_set)
{
    const struct tennis_state *state = &event->tennis;
    uint32_t first, second;
    if (state->sets_played == 0) {
        first = this_set;
        second = other_set;
    } else {
        first = state->set_winner[0] == 0 ? CHANCE_ONE : 0;
        second = state->sets_played == 1 ? this_set : state->set_winner[1] == 0 ? CHANCE_ONE : 0;
    }
    uint32_t third = state->sets_played == 2 ? this_set : other_set;
    uint32_t not_first = CHANCE_ONE - first, not_second = CHANCE_ONE - second;
    uint32_t split = both(first, not_second) + both(not_first, second);
    uint32_t scores[4] = {both(first, second), both(split, third), both(not_first, not_second),
                          both(split, CHANCE_ONE - third)};
    market_set_chances(&event->markets[SET_BETTING], scores);
    market_set_chances(&event->markets[MATCH_ODDS],
                       (const uint32_t[]){scores[0] + scores[1], scores[2] + scores[3]});
    market_set_two_chances(&event->markets[SET_1], first);
    market_set_two_chances(&event->markets[SET_2], second);
}

static void tennis_price(struct event *event)
{
    const struct tennis_state *state = &event->tennis;
    int32_t better = ((int32_t)state->serve_wins[0] - (int32_t)state->serve_wins[1]) / 90;
    int32_t games = (int32_t)state->games[0] - (int32_t)state->games[1];
    int32_t played = (int32_t)(state->games[0] + state->games[1]);
    int32_t points = (int32_t)state->points[0] - (int32_t)state->points[1];
    int32_t serving = state->server == 0 ? 150 : -150;
    uint32_t this_set = chance_of_stronger(better + games * (300 + 60 * played) +
                                           points * (60 + 12 * played) + serving);
    price_sets(event, this_set, chance_of_stronger(better));

    struct market *betting = &event->markets[SET_BETTING];
    if (state->sets[1] > 0)
        betting->runners[0].status = RUNNER_LOSER;
    if (state->sets[0] > 0)
        betting->runners[2].status = RUNNER_LOSER;
    uint32_t sets_to_come = state->sets[0] == 1 && state->sets[1] == 1 ? 10
                            : state->sets_played == 0                  ? 23
                                                                       : 14;
    int32_t expected = (int32_t)state->games_played + (int32_t)sets_to_come - played;
    uint32_t over = chance_of_stronger((expected - GAMES_LINE) * 350);
    market_set_two_chances(&event->markets[TOTAL_GAMES], CHANCE_ONE - over);
}

static void tennis_result(struct event *event)
{
    const struct tennis_state *state = &event->tennis;
    uint32_t winner = state->sets[0] == 2 ? 0 : 1;
    market_decide(&event->markets[MATCH_ODDS], winner);
    market_decide(&event->markets[SET_BETTING], winner * 2 + state->sets[1 - winner]);
    market_decide(&event->markets[TOTAL_GAMES], 0);
}

const struct event_model tennis_model = {
    .create = tennis_create,
    .step = tennis_step,
    .price = tennis_price,
    .result = tennis_result,
};
