/*
 * Racing: a field of runners with strengths that drift; before the off one may be withdrawn, and
 * the others shorten. Horses are bet on while they run; greyhounds are not.
 */
#include <stdio.h>
#include <string.h>

#include "demo/event.h"

enum { WIN, PLACE };

static bool name_is_taken(const struct market *market, const char *name)
{
    for (size_t i = 0; i < market->runner_count; i++)
        if (strstr(market->runners[i].name, name) != NULL)
            return true;
    return false;
}

static void add_runners(struct event *event, size_t count, struct market *win, struct market *place)
{
    struct racing_state *state = &event->racing;
    for (size_t i = 0; i < count; i++) {
        char name[NAME_SIZE];
        do {
            name_runner(&event->chance, event->sport, name);
        } while (name_is_taken(win, name));
        event_add_runner(event, win, "%zu. %s", i + 1, name);
        event_add_runner(event, place, "%zu. %s", i + 1, name);
        place->runners[i].selection_id = win->runners[i].selection_id;
        state->strength[i] = chance_between(&event->chance, -1600, 1600);
        state->draw[i] = (uint32_t)((i * 5 + event->serial) % count + 1);
    }
}

static void racing_create(struct event *event)
{
    struct racing_state *state = &event->racing;
    bool horses = event->sport == SPORT_HORSE_RACING;
    name_place(&event->chance, event->home);
    static const uint32_t yards[] = {1100, 1320, 1540, 1760, 2200, 2640};
    static const uint32_t metres[] = {260, 380, 440, 480, 525};
    if (horses)
        (void)snprintf(event->name, sizeof event->name, "%s Downs R%u %uy", event->home,
                       event->serial % 8 + 1, yards[chance_below(&event->chance, 6)]);
    else
        (void)snprintf(event->name, sizeof event->name, "%s Stadium A%u %um", event->home,
                       event->serial % 10 + 1, metres[chance_below(&event->chance, 5)]);
    (void)snprintf(event->competition, sizeof event->competition, "%s %s", event->home,
                   horses ? "Downs" : "Stadium");
    int64_t length = simulated_event_length_ms(event->sport);
    event->duration_ms = length - length / 6 + chance_below(&event->chance, (uint32_t)length / 3);
    state->in_running = horses;

    size_t runners = horses ? (size_t)chance_between(&event->chance, 6, 14)
                            : (size_t)chance_between(&event->chance, 6, 8);
    state->places = runners >= 8 ? 3 : 2;
    struct market *win = event_add_market(event, MARKET_MATCH, "Win", "WIN");
    struct market *place = event_add_market(event, MARKET_MATCH, "To Be Placed", "PLACE");
    place->winners = state->places;
    add_runners(event, runners, win, place);
    if (chance_below(&event->chance, 5) < 2)
        state->withdrawal_ms = event->start_ms - 15000 - chance_below(&event->chance, 90000);
}

static size_t count_active(const struct market *market)
{
    size_t count = 0;
    for (size_t i = 0; i < market->runner_count; i++)
        count += market->runners[i].status == RUNNER_ACTIVE;
    return count;
}

static void racing_upcoming(struct event *event)
{
    struct racing_state *state = &event->racing;
    if (state->withdrawal_ms == 0 || event->now_ms < state->withdrawal_ms)
        return;
    state->withdrawal_ms = 0;
    if (count_active(&event->markets[WIN]) <= 5)
        return;
    size_t out = chance_below(&event->chance, (uint32_t)event->markets[WIN].runner_count);
    /* A greyhound's trap stays empty; so it does when a horse's draw is not used. */
    enum runner_status status = event->sport == SPORT_GREYHOUND_RACING || event->serial % 2 == 1
                                    ? RUNNER_REMOVED_VACANT
                                    : RUNNER_REMOVED;
    for (size_t m = WIN; m <= PLACE; m++)
        event->markets[m].runners[out].status = status;
    event->changed = true;
    event_suspend(event, 6000, "Non-runner");
}

static void racing_step(struct event *event)
{
    struct racing_state *state = &event->racing;
    int64_t run_ms = event->now_ms - event->start_ms;
    if (run_ms >= event->duration_ms) {
        event_finish(event);
        return;
    }
    int32_t swing = (int32_t)(120 + 400 * run_ms / event->duration_ms);
    for (size_t i = 0; i < event->markets[WIN].runner_count; i++)
        state->strength[i] += chance_between(&event->chance, -swing, swing);
    if (!state->in_running)
        event_suspend(event, 1, "Running");
}

static void racing_price(struct event *event)
{
    const struct racing_state *state = &event->racing;
    static const int32_t percent[] = {[WIN] = 100, [PLACE] = 65};
    for (size_t m = WIN; m <= PLACE; m++) {
        struct market *market = &event->markets[m];
        uint64_t weights[RUNNERS_MAX];
        uint32_t ppm[RUNNERS_MAX];
        for (size_t i = 0; i < market->runner_count; i++)
            weights[i] = market->runners[i].status == RUNNER_ACTIVE
                             ? chance_weight(state->strength[i] * percent[m] / 100)
                             : 0;
        chance_share(weights, market->runner_count, ppm);
        market_set_chances(market, ppm);
    }
}

/* The best of those that ran and are not placed yet. */
static size_t next_past_the_post(const struct event *event, const bool *placed)
{
    const struct market *win = &event->markets[WIN];
    size_t best = win->runner_count;
    for (size_t i = 0; i < win->runner_count; i++)
        if (win->runners[i].status == RUNNER_ACTIVE && !placed[i] &&
            (best == win->runner_count || event->racing.strength[i] > event->racing.strength[best]))
            best = i;
    return best;
}

static void racing_result(struct event *event)
{
    struct market *win = &event->markets[WIN], *place = &event->markets[PLACE];
    bool placed[RUNNERS_MAX] = {false};
    size_t winner = next_past_the_post(event, placed);
    CHECK(winner < win->runner_count);
    for (uint32_t p = 0; p < event->racing.places; p++) {
        size_t next = next_past_the_post(event, placed);
        if (next < win->runner_count)
            placed[next] = true;
    }
    for (size_t i = 0; i < win->runner_count; i++) {
        if (win->runners[i].status != RUNNER_ACTIVE)
            continue;
        win->runners[i].status = i == winner ? RUNNER_WINNER
                                 : placed[i] ? RUNNER_PLACED
                                             : RUNNER_LOSER;
        place->runners[i].status = placed[i] ? RUNNER_WINNER : RUNNER_LOSER;
    }
}

const struct event_model racing_model = {
    .create = racing_create,
    .step = racing_step,
    .price = racing_price,
    .result = racing_result,
    .upcoming = racing_upcoming,
};
