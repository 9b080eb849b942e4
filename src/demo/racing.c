/*
 * Racing: a field of runners with strengths that drift; before the off one may be withdrawn, and
 * the others shorten. Horses are bet on while they run; greyhounds are not.
 */
#include "demo/event.h"

void racing_create(struct event *event)
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

void racing_upcoming(struct event *event)
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

void racing_play(struct event *event)
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

void racing_score(const struct event *event, struct buffer *out)
{
    buffer_append_string(out, event->stage == STAGE_IN_PLAY ? "Off" : "Finished");
}
