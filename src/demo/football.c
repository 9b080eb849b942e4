/*
 * Football: ninety minutes in about six. Goals come as two Poisson processes, so that all markets
 * agree with each other at any minute.
 */
#include <string.h>

#include "demo/event.h"

#define HALF_TIME_MS 12000

void football_create(struct event *event)
{
    event->football.rate[0] = (uint32_t)chance_between(&event->chance, 900, 2600);
    event->football.rate[1] = (uint32_t)chance_between(&event->chance, 700, 2100);
}

/* True: there was a goal. */
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

void football_play(struct event *event)
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

/* While there is time, any number of goals is possible, if by one in a million. */
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

void football_expect(const struct event *event, struct scores *scores)
{
    const struct football *state = &event->football;
    expect_goals(state, state->goals, 90 - state->minute, &scores[0]);
    if (state->second_half)
        expect_goals(state, state->half_time_goals, 0, &scores[1]);
    else
        expect_goals(state, state->goals, 45 - least_of(state->minute, 45), &scores[1]);
}

size_t football_lines(const struct event *event, uint32_t market, struct section *sections)
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

void football_score(const struct event *event, struct buffer *out)
{
    const struct football *state = &event->football;
    buffer_append_format(out, "%u-%u (%u')", state->goals[0], state->goals[1], state->minute);
}
