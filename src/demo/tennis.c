/* Tennis: best of three sets, point by point, a point every two seconds. */
#include "demo/event.h"

#define POINT_EVERY_MS 1900
#define GAMES_LINE 20 /* over/under 20.5 */

void tennis_create(struct event *event)
{
    for (size_t i = 0; i < 2; i++)
        event->tennis.serve_wins[i] = (uint32_t)chance_between(&event->chance, 560000, 680000);
}

/* ---- what happens ---------------------------------------------------------------------------- */

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

void tennis_play(struct event *event)
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

/* ---- what it leaves possible ----------------------------------------------------------------- */

/* Never certain. */
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
void tennis_expect(const struct event *event, struct scores *scores)
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

void tennis_score(const struct event *event, struct buffer *out)
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
