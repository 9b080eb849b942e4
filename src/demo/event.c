/*
 * The life of a simulated event of any sport: stages that follow each other by time, suspensions,
 * and the way from the scores that are still possible to prices and results. A quote never crosses:
 * the back is the ladder's tick at or below the fair price, and the lay is above it. So the backs
 * of a market sum to at least 100 %, and the lays to at most 100 %.
 */
#include "demo/event.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

#define STEP_MS 1000
/* Markets open this long before the start; until then an event has none. */
#define OFFERED_BEFORE_MS (20 * 60 * 1000)
#define START_SUSPENSION_MS 3000

/* Quoted prices lie between these: 985,000 ppm is a fair 1.015, 1,005 ppm a fair 995. The others of
 * a market share at least what a favourite at 1.01 leaves of 100 %. */
#define QUOTED_MOST 985000U
#define QUOTED_LEAST 1005U
#define LEFT_BY_FAVOURITE 10000U

#define PLACED_PERCENT 65 /* of the strengths count for a place: fields are closer there */

/* ---- results --------------------------------------------------------------------------------- */

/* The runner that wins with this score; the market's runner_count if the score voids the market. */
static uint32_t winner_of(const struct market *market, uint32_t home, uint32_t away)
{
    uint32_t count = market->runner_count, line = market->plan->line;
    switch (market->plan->question) {
    case ASK_WINNER:
        return home > away ? 0 : home < away ? count - 1 : count == 3 ? 1 : count;
    case ASK_DRAW:
        return home == away ? 0 : 1;
    case ASK_OVER:
        return home + away > line ? 1 : 0;
    case ASK_BOTH:
        return home > 0 && away > 0 ? 0 : 1;
    case ASK_SCORE:
        return home < 4 && away < 4 ? home * 4 + away : count - 1;
    case ASK_SETS:
        return home > away ? away : 2 + home;
    default:
        return count;
    }
}

static void close_market(struct market *market, enum market_status status)
{
    market->decided = true;
    market->status = status;
}

/* Decides a finished race: the strongest runners that were not removed win. */
static void decide_race(const struct event *event, struct market *market)
{
    bool first_wins = market->plan->question == ASK_FIRST;
    uint32_t ranks[RUNNERS_MAX] = {0};
    for (uint32_t i = 0; i < market->runner_count; i++)
        for (uint32_t j = 0; j < market->runner_count; j++)
            ranks[i] += market->runners[j].status == RUNNER_ACTIVE && i != j &&
                        event->strength[j] >= event->strength[i] + (i < j);
    for (uint32_t i = 0; i < market->runner_count; i++)
        if (market->runners[i].status == RUNNER_ACTIVE)
            market->runners[i].status = ranks[i] >= event->racing.places ? RUNNER_LOSER
                                        : first_wins && ranks[i] > 0     ? RUNNER_PLACED
                                                                         : RUNNER_WINNER;
    close_market(market, MARKET_CLOSED);
}

/* A runner without a possible score has lost; the only one left has won. */
static void decide(struct market *market, const uint64_t *weights)
{
    uint32_t possible = 0;
    for (uint32_t i = 0; i < market->runner_count; i++) {
        possible += weights[i] > 0;
        if (weights[i] == 0)
            market->runners[i].status = RUNNER_LOSER;
    }
    if (possible > 1)
        return;
    for (uint32_t i = 0; i < market->runner_count; i++)
        market->runners[i].status = possible == 0     ? RUNNER_REMOVED
                                    : weights[i] == 0 ? RUNNER_LOSER
                                                      : RUNNER_WINNER;
    close_market(market, possible == 0 ? MARKET_VOID : MARKET_CLOSED);
}

/* ---- prices ---------------------------------------------------------------------------------- */

static void weigh(const struct event *event, const struct market *market,
                  const struct scores *scores, uint64_t *weights)
{
    int32_t percent = market->plan->question == ASK_PLACED ? PLACED_PERCENT : 100;
    if (event->table->race != NULL) {
        for (uint32_t i = 0; i < market->runner_count; i++)
            if (market->runners[i].status == RUNNER_ACTIVE)
                weights[i] = chance_weight(event->strength[i] * percent / 100);
        return;
    }
    for (uint32_t home = 0; home < SCORE_SIZE; home++)
        for (uint32_t away = 0; away < SCORE_SIZE; away++) {
            uint32_t winner = winner_of(market, home, away);
            if (winner < market->runner_count)
                weights[winner] += scores->weight[home][away];
        }
}

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

/* Quotes the chances, adjusted by the market's own opinions. */
static void quote_market(struct event *event, struct market *market, uint64_t *weights)
{
    uint32_t winners = market->plan->question == ASK_PLACED ? event->racing.places : 1;
    uint32_t ppm[RUNNERS_MAX], active = 0;
    chance_share(weights, market->runner_count, ppm);
    for (uint32_t i = 0; i < market->runner_count; i++) {
        struct runner *runner = &market->runners[i];
        if (runner->status != RUNNER_ACTIVE)
            continue;
        runner->noise += chance_between(&event->chance, -30, 30);
        runner->noise -= runner->noise / 24;
        if (chance_happens(&event->chance, 600000))
            runner->size_epoch++;
        weights[i] = ((uint64_t)ppm[i] + 1) * chance_weight(runner->noise);
        active++;
    }
    uint32_t share = active > 1 ? LEFT_BY_FAVOURITE / (active - 1) + 1 : QUOTED_LEAST;
    uint32_t least = share > QUOTED_LEAST ? share : QUOTED_LEAST;
    chance_share(weights, market->runner_count, ppm);
    for (uint32_t i = 0; i < market->runner_count; i++)
        if (market->runners[i].status == RUNNER_ACTIVE)
            quote_runner(&market->runners[i], ppm[i] * winners, least,
                         chance_mix(event->salt + i + market->runners[i].size_epoch / 8));
}

static void price_market(struct event *event, struct market *market, const struct scores *scores)
{
    const struct market *first = &event->markets[0];
    uint64_t weights[RUNNERS_MAX] = {0};
    if (market->decided)
        return;
    if (market->plan->type == MARKET_BOOKMAKER) {
        if (first->decided)
            close_market(market, first->status);
        return;
    }
    if (market->plan->question == ASK_LINES)
        return;
    if (event->table->race != NULL && event->stage >= STAGE_FINISHED) {
        decide_race(event, market);
        return;
    }
    weigh(event, market, &scores[market->plan->scores], weights);
    if (event->table->race == NULL)
        decide(market, weights);
    if (!market->decided)
        quote_market(event, market, weights);
}

static void price_markets(struct event *event)
{
    struct scores scores[SCORES_MAX] = {0};
    if (event->table->expect != NULL)
        event->table->expect(event, scores);
    for (uint32_t m = 0; m < event->market_count; m++)
        price_market(event, &event->markets[m], scores);
    /* Trading never stops, so no two seconds of a market look the same. */
    event->markets[0].runners[0].size_epoch++;
}

/* ---- status ---------------------------------------------------------------------------------- */

/* A bookmaker stops quoting an event that is nearly decided. */
static bool bookmaker_shuts(const struct event *event)
{
    const struct market *first = &event->markets[0];
    for (uint32_t i = 0; i < first->runner_count; i++)
        if (first->runners[i].status == RUNNER_ACTIVE && first->runners[i].chance_ppm > 960000)
            return true;
    return false;
}

static void set_statuses(struct event *event)
{
    bool all = event->stage >= STAGE_FINISHED || event->now_ms < event->suspended_until_ms;
    for (uint32_t m = 0; m < event->market_count; m++) {
        struct market *market = &event->markets[m];
        bool suspended = all || (market->plan->type == MARKET_BOOKMAKER && bookmaker_shuts(event));
        if (!market->decided)
            market->status = suspended ? MARKET_SUSPENDED : MARKET_OPEN;
        else if (event->stage >= STAGE_SETTLED && market->status == MARKET_CLOSED)
            market->status = MARKET_SETTLE;
    }
    if (!all)
        event->remark = "";
}

void event_suspend(struct event *event, int64_t for_ms, const char *remark)
{
    event->suspended_until_ms = event->now_ms + for_ms;
    event->remark = remark;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void enter(struct event *event, enum stage stage, const char *remark)
{
    event->stage = stage;
    event->stage_ms = event->now_ms;
    event->changed = true;
    event->remark = remark;
}

void event_finish(struct event *event)
{
    enter(event, STAGE_FINISHED, "Result awaited");
}

static void add_market(struct event *event, const struct market_plan *plan)
{
    CHECK(event->market_count < MARKETS_MAX);
    struct market *market = &event->markets[event->market_count++];
    market->plan = plan;
    market->id = 200000000 + chance_mix(event->salt + event->market_count) % 100000000;
    if (plan->runners == NULL && plan->question != ASK_LINES)
        market->runner_count = event->side_count;
    for (const char *at = plan->runners; at != NULL; at = strchr(at + 1, '|'))
        market->runner_count++;
    CHECK(market->runner_count <= RUNNERS_MAX);
    for (uint32_t i = 0; i < market->runner_count; i++)
        market->runners[i].noise = chance_between(&event->chance, -60, 60);
}

/* Gives the sides names that are easy to tell apart: their first letters differ. */
static void name_sides(struct event *event)
{
    for (uint32_t i = 0; i < event->side_count; i++) {
        uint32_t other;
        do {
            name_make(&event->chance, event->table->side, 0, event->sides[i], NAME_SIZE);
            other = 0;
            while (strncmp(event->sides[i], event->sides[other], 6) != 0)
                other++;
        } while (other < i);
    }
}

struct event *simulated_event_create(const struct event_plan *plan)
{
    struct event *event = memory_alloc_zeroed(1, sizeof *event);
    const struct sport_table *table = plan->table;
    event->sport = plan->sport;
    event->table = table;
    event->serial = plan->serial;
    event->id = plan->id;
    event->chance.state = plan->seed;
    event->salt = chance_mix(plan->seed ^ 0x5EEDU);
    event->start_ms = plan->start_ms;
    event->now_ms = plan->born_ms < plan->start_ms ? plan->born_ms : plan->start_ms;
    event->stage_ms = event->now_ms;
    event->remark = "";
    event->changed = true;
    event->offered = plan->standing || event->start_ms - event->now_ms <= OFFERED_BEFORE_MS;
    event->duration_ms = table->length_ms * chance_between(&event->chance, 85, 115) / 100;
    event->side_count = 2;
    table->create(event);
    name_sides(event);
    name_make(&event->chance, table->competition, 0, event->competition, sizeof event->competition);
    char race[NAME_SIZE] = "";
    if (table->race != NULL)
        name_make(&event->chance, table->race, plan->serial % 8 + 1, race, sizeof race);
    (void)snprintf(event->name, sizeof event->name, "%s%s%s",
                   table->race != NULL ? event->competition : event->sides[0],
                   table->race != NULL ? race : " v ", table->race != NULL ? "" : event->sides[1]);
    for (const struct market_plan *market = table->markets; market->name != NULL; market++)
        add_market(event, market);
    price_markets(event);
    set_statuses(event);
    return event;
}

static void step_upcoming(struct event *event)
{
    if (!event->offered && event->start_ms - event->now_ms <= OFFERED_BEFORE_MS)
        event->offered = event->changed = true;
    if (event->table->upcoming != NULL)
        event->table->upcoming(event);
    if (event->now_ms < event->start_ms)
        return;
    enter(event, STAGE_IN_PLAY, "");
    event_suspend(event, START_SUSPENSION_MS, "Going in play");
}

static void step_finished(struct event *event)
{
    static const int64_t lasts_ms[] = {
        [STAGE_FINISHED] = 5000, [STAGE_CLOSED] = 20000, [STAGE_SETTLED] = 40000};
    if (event->now_ms - event->stage_ms < lasts_ms[event->stage])
        return;
    enter(event, event->stage + 1, "Result");
    if (event->stage != STAGE_CLOSED)
        return;
    price_markets(event); /* of the one score that is still possible */
    for (uint32_t m = 0; m < event->market_count; m++)
        if (!event->markets[m].decided)
            close_market(&event->markets[m], MARKET_CLOSED);
}

void simulated_event_advance(struct event *event, int64_t now_ms)
{
    while (event->now_ms < now_ms && event->stage != STAGE_GONE) {
        int64_t left_ms = now_ms - event->now_ms;
        event->elapsed_ms = left_ms < STEP_MS ? left_ms : STEP_MS;
        event->now_ms += event->elapsed_ms;
        if (event->stage == STAGE_UPCOMING)
            step_upcoming(event);
        else if (event->stage != STAGE_IN_PLAY)
            step_finished(event);
        else if (event->now_ms >= event->suspended_until_ms)
            event->table->play(event);
        if (event->stage <= STAGE_IN_PLAY && event->offered)
            price_markets(event);
        set_statuses(event);
    }
}
