/*
 * The life of a simulated event. What happens in a match is its model's business; here is what all
 * have in common: stages that follow each other by time, suspensions, and how a probability becomes
 * a quoted price. A quote never crosses: the back is the ladder's tick at or below the fair price,
 * the lay is above it, so the backs of a market sum to at least 100 % and the lays to at most that.
 */
#include "demo/event.h"

#include "base/memory.h"

/* Markets open this long before the start; before that an event has none. */
#define OFFERED_BEFORE_MS (20 * 60 * 1000)
#define START_SUSPENSION_MS 3000
#define RESULT_AFTER_MS 5000
#define SETTLED_AFTER_MS 20000
#define GONE_AFTER_MS 40000

/* Prices quoted are between these: 985,000 ppm is a fair 1.015, 1,005 ppm a fair 995. What a
 * favourite at 1.01 leaves of 100 %, the others of its market share at least. */
#define QUOTED_MOST 985000U
#define QUOTED_LEAST 1005U
#define LEFT_BY_FAVOURITE 10000U

static const struct event_model *model_of(enum sport sport)
{
    static const struct event_model *const models[SPORT_COUNT] = {
        [SPORT_CRICKET] = &cricket_model,         [SPORT_FOOTBALL] = &football_model,
        [SPORT_TENNIS] = &tennis_model,           [SPORT_HORSE_RACING] = &racing_model,
        [SPORT_GREYHOUND_RACING] = &racing_model,
    };
    return models[sport];
}

/* ---- prices ---------------------------------------------------------------------------------- */

static void quote_runner(struct runner *runner, uint32_t chance_ppm, uint32_t least_ppm,
                         uint64_t flutter)
{
    uint32_t chance = chance_ppm > QUOTED_MOST ? QUOTED_MOST
                      : chance_ppm < least_ppm ? least_ppm
                                               : chance_ppm;
    runner->chance_ppm = chance;
    runner->tick = price_ladder_floor((uint32_t)((uint64_t)100 * CHANCE_ONE / chance));
    runner->spread = flutter % 4 == 0 ? 2 : 1;
    if (runner->tick + runner->spread >= PRICE_LADDER_TICKS)
        runner->tick = PRICE_LADDER_TICKS - 1 - runner->spread;
}

/* The model's chances, as a market with opinions of its own sees them. */
static void quote_market(struct event *event, struct market *market)
{
    uint64_t weights[RUNNERS_MAX] = {0};
    uint32_t ppm[RUNNERS_MAX];
    uint32_t active = 0;
    for (size_t i = 0; i < market->runner_count; i++) {
        struct runner *runner = &market->runners[i];
        if (!runner_is_in_play(runner))
            continue;
        runner->noise += chance_between(&event->chance, -30, 30);
        runner->noise -= runner->noise / 24;
        if (chance_happens(&event->chance, 600000))
            runner->size_epoch++;
        weights[i] = ((uint64_t)runner->chance_ppm + 1) * chance_weight(runner->noise);
        active++;
    }
    if (active == 0)
        return;
    uint32_t share = active > 1 ? LEFT_BY_FAVOURITE / (active - 1) + 1 : QUOTED_LEAST;
    uint32_t least = share > QUOTED_LEAST ? share : QUOTED_LEAST;
    chance_share(weights, market->runner_count, ppm);
    for (size_t i = 0; i < market->runner_count; i++)
        if (runner_is_in_play(&market->runners[i]))
            quote_runner(&market->runners[i], ppm[i] * market->winners, least,
                         chance_mix(event->salt + i + (uint64_t)market->runners[i].size_epoch / 8));
}

/* A bookmaker follows the exchange, runner by runner. */
static void follow_first_market(struct event *event, struct market *market)
{
    const struct market *first = &event->markets[0];
    CHECK(market->runner_count == first->runner_count);
    for (size_t i = 0; i < market->runner_count; i++) {
        market->runners[i].chance_ppm = first->runners[i].chance_ppm;
        market->runners[i].status = first->runners[i].status;
        market->runners[i].size_epoch = first->runners[i].size_epoch / 4;
    }
}

static void move_prices(struct event *event)
{
    model_of(event->sport)->price(event);
    for (size_t m = 0; m < event->market_count; m++) {
        struct market *market = &event->markets[m];
        if (market->decided)
            continue;
        if (market->type == MARKET_MATCH)
            quote_market(event, market);
        else if (market->type == MARKET_BOOKMAKER)
            follow_first_market(event, market);
    }
    /* Somebody always trades: no two seconds of a market are the same. */
    for (size_t i = 0; i < event->markets[0].runner_count; i++)
        if (runner_is_in_play(&event->markets[0].runners[i])) {
            event->markets[0].runners[i].size_epoch++;
            break;
        }
}

/* ---- status ---------------------------------------------------------------------------------- */

/* A bookmaker stops quoting what is as good as over. */
static bool bookmaker_shuts(const struct market *market)
{
    for (size_t i = 0; i < market->runner_count; i++)
        if (runner_is_in_play(&market->runners[i]) && market->runners[i].chance_ppm > 960000)
            return true;
    return false;
}

static void set_section_status(const struct event *event, struct section *section, bool suspended)
{
    bool ball_running = event->sport == SPORT_CRICKET && event->cricket.ball_running;
    if (suspended)
        section->status = SECTION_SUSPENDED;
    else if (ball_running)
        section->status = SECTION_BALL_RUNNING;
    else
        section->status = section->sid % 5 == 0 ? SECTION_ACTIVE : SECTION_EMPTY;
}

static void set_statuses(struct event *event)
{
    bool all_suspended =
        event->stage >= STAGE_FINISHED || event->now_ms < event->suspended_until_ms;
    for (size_t m = 0; m < event->market_count; m++) {
        struct market *market = &event->markets[m];
        bool suspended =
            all_suspended || (market->type == MARKET_BOOKMAKER && bookmaker_shuts(market));
        for (size_t i = 0; i < market->section_count; i++)
            set_section_status(event, &market->sections[i], suspended || market->decided);
        if (!market->decided)
            market->status = suspended ? MARKET_SUSPENDED : MARKET_OPEN;
        else if (event->stage >= STAGE_SETTLED && market->status == MARKET_CLOSED)
            market->status = MARKET_SETTLE;
    }
    if (!all_suspended)
        event->remark = "";
}

/* ---- life ------------------------------------------------------------------------------------ */

struct event *simulated_event_create(const struct event_plan *plan)
{
    struct event *event = memory_alloc_zeroed(1, sizeof *event);
    event->sport = plan->sport;
    event->serial = plan->serial;
    event->id = plan->id;
    event->chance.state = plan->seed;
    event->salt = chance_mix(plan->seed ^ 0x5EEDU);
    event->start_ms = plan->start_ms;
    event->now_ms = plan->born_ms < plan->start_ms ? plan->born_ms : plan->start_ms;
    event->stage_ms = event->now_ms;
    event->remark = "";
    event->changed = true;
    model_of(plan->sport)->create(event);
    CHECK(event->market_count > 0 && event->markets[0].type == MARKET_MATCH);
    event->offered = event->start_ms - event->now_ms <= OFFERED_BEFORE_MS;
    move_prices(event);
    set_statuses(event);
    return event;
}

void simulated_event_destroy(struct event **event)
{
    if (*event == NULL)
        return;
    for (size_t m = 0; m < (*event)->market_count; m++) {
        memory_free((*event)->markets[m].runners);
        memory_free((*event)->markets[m].sections);
    }
    memory_free(*event);
    *event = NULL;
}

static void step_upcoming(struct event *event)
{
    const struct event_model *model = model_of(event->sport);
    if (!event->offered && event->start_ms - event->now_ms <= OFFERED_BEFORE_MS) {
        event->offered = true;
        event->changed = true;
    }
    if (model->upcoming != NULL)
        model->upcoming(event);
    if (event->now_ms < event->start_ms)
        return;
    event_enter(event, STAGE_IN_PLAY);
    event_suspend(event, START_SUSPENSION_MS, "Going in play");
}

static void step_finished(struct event *event)
{
    int64_t in_stage_ms = event->now_ms - event->stage_ms;
    if (event->stage == STAGE_FINISHED && in_stage_ms >= RESULT_AFTER_MS) {
        model_of(event->sport)->result(event);
        for (size_t m = 0; m < event->market_count; m++) {
            struct market *market = &event->markets[m];
            if (!market->decided && market->type == MARKET_BOOKMAKER)
                follow_first_market(event, market);
            if (!market->decided)
                market->status = MARKET_CLOSED;
            market->decided = true;
        }
        event->remark = "Result";
        event_enter(event, STAGE_CLOSED);
    } else if (event->stage == STAGE_CLOSED && in_stage_ms >= SETTLED_AFTER_MS) {
        event_enter(event, STAGE_SETTLED);
    } else if (event->stage == STAGE_SETTLED && in_stage_ms >= GONE_AFTER_MS) {
        event_enter(event, STAGE_GONE);
    }
}

void simulated_event_step(struct event *event, int64_t now_ms)
{
    CHECK(now_ms > event->now_ms);
    event->elapsed_ms = now_ms - event->now_ms;
    event->now_ms = now_ms;
    if (event->stage == STAGE_UPCOMING)
        step_upcoming(event);
    else if (event->stage != STAGE_IN_PLAY)
        step_finished(event);
    else if (event->now_ms >= event->suspended_until_ms)
        model_of(event->sport)->step(event);
    if (event->stage <= STAGE_IN_PLAY && event->offered)
        move_prices(event);
    set_statuses(event);
}
