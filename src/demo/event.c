/*
 * The life of a simulated event: stages that follow each other by time, suspensions, and the way
 * from the course's chances to prices. A quote never crosses: the back is the ladder's tick at or
 * below the fair price, and the lay is above it. So the backs of a market sum to at least 100 %,
 * and the lays to at most 100 %.
 */
#include "demo/event.h"

#include "demo/price_ladder.h"

#define STEP_MS 1000
/* Markets open this long before the start; until then an event has none. */
#define OFFERED_BEFORE_MS (20 * 60 * 1000)

/* Quoted prices lie between these: 985,000 ppm is a fair 1.015, 1,005 ppm a fair 995. The others of
 * a market share at least what a favourite at 1.01 leaves of 100 %. */
#define QUOTED_MOST 985000U
#define QUOTED_LEAST 1005U
#define LEFT_BY_FAVOURITE 10000U
#define OPINION_ONE 1443 /* of the market that has none; noise and opinion stay within 850 */

/* ---- prices ---------------------------------------------------------------------------------- */

static int64_t course_ms(const struct event *event)
{
    return (event->now_ms - event->start_ms) * 100 / event->pace;
}

static int64_t frame_ms(struct text frame)
{
    return table_number(frame, "at") * 1000;
}

static struct text next_of(struct json_text_cursor *cursor)
{
    struct text element = {NULL, 0};
    (void)json_text_next_element(cursor, &element);
    return element;
}

/* The next frame of the course that has odds. */
static struct text next_odds(struct event *event)
{
    struct text frame;
    do
        frame = next_of(&event->ahead);
    while (frame.at != NULL && json_text_member(frame, TEXT("odds")).at == NULL);
    return frame;
}

/* Reads results and chances (in ppm) of the runners; returns the number of active ones. */
static uint32_t read_chances(const struct event *event, struct market *market, struct text later,
                             uint64_t *chances)
{
    struct json_text_cursor here = json_text_open(market->odds), there = json_text_open(later);
    int64_t from_ms = frame_ms(event->from), span_ms = frame_ms(event->to) - from_ms;
    uint32_t active = 0;
    for (uint32_t i = 0; i < market->runner_count; i++) {
        struct text now = next_of(&here), result = json_text_inside(now);
        int64_t passed_ms = course_ms(event) - from_ms, chance, then;
        bool moves = json_text_integer(now, &chance),
             known = json_text_integer(next_of(&there), &then);
        market->runners[i].result = result.size > 0 ? result.at[0] : '\0';
        chance *= 1000;
        if (moves && known && passed_ms > 0)
            chance += (then * 1000 - chance) * passed_ms / span_ms;
        chances[i] = (uint64_t)chance;
        active += market->runners[i].result == '\0';
    }
    return active;
}

/* Quotes the chances, adjusted by the market's own opinions. */
static void quote_market(struct event *event, struct market *market, uint64_t *chances,
                         uint32_t active)
{
    uint32_t ppm[RUNNERS_MAX], least = QUOTED_LEAST;
    uint64_t sum = 0;
    for (uint32_t i = 0; i < market->runner_count; i++) {
        struct runner *runner = &market->runners[i];
        sum += chances[i];
        if (runner->result != '\0')
            continue;
        runner->noise += chance_between(&event->chance, -30, 30) - runner->noise / 24;
        int32_t opinion = (int32_t)(chance_mix(market->id + i) % 200) - 100; /* stays the same */
        chances[i] *= (uint64_t)(OPINION_ONE + runner->noise + opinion);
    }
    uint64_t winners = (sum + CHANCE_ONE / 2) / CHANCE_ONE;
    chance_share(chances, market->runner_count, ppm);
    if (active > 1 && LEFT_BY_FAVOURITE / (active - 1) >= least)
        least = LEFT_BY_FAVOURITE / (active - 1) + 1;
    for (uint32_t i = 0; i < market->runner_count; i++) {
        uint64_t chance = ppm[i] * winners;
        chance = chance > QUOTED_MOST ? QUOTED_MOST : chance < least ? least : chance;
        market->runners[i].chance_ppm = (uint32_t)chance;
        market->runners[i].tick =
            price_ladder_floor((uint32_t)(100 * (uint64_t)CHANCE_ONE / chance));
    }
}

static void price_market(struct event *event, struct market *market, struct text later)
{
    uint64_t chances[RUNNERS_MAX] = {0};
    if (market->runner_count == 0 || market->decided)
        return;
    if (is_bookmaker(market)) {
        market->decided = event->markets[0].decided;
        market->status = event->markets[0].status;
        return;
    }
    uint32_t active = read_chances(event, market, later, chances);
    if (active > 0) {
        quote_market(event, market, chances, active);
        return;
    }
    market->decided = true;
    market->status = market->runners[0].result == 'R' ? MARKET_VOID : MARKET_CLOSED;
}

static void price_markets(struct event *event)
{
    while (event->to.at != NULL && frame_ms(event->to) <= course_ms(event)) {
        event->from = event->to;
        event->to = next_odds(event);
    }
    struct json_text_cursor here = json_text_open(json_text_member(event->from, TEXT("odds")));
    struct json_text_cursor there = json_text_open(json_text_member(event->to, TEXT("odds")));
    for (uint32_t m = 0; m < event->market_count; m++) {
        event->markets[m].odds = next_of(&here);
        price_market(event, &event->markets[m], next_of(&there));
    }
}

/* ---- status ---------------------------------------------------------------------------------- */

/* A bookmaker stops quoting an event that is nearly decided. */
static bool bookmaker_shuts(const struct event *event)
{
    const struct market *first = &event->markets[0];
    for (uint32_t i = 0; i < first->runner_count; i++)
        if (first->runners[i].result == '\0' && first->runners[i].chance_ppm > 960000)
            return true;
    return false;
}

static void set_statuses(struct event *event)
{
    bool all = event->stage >= STAGE_FINISHED || event->now_ms < event->suspended_until_ms;
    for (uint32_t m = 0; m < event->market_count; m++) {
        struct market *market = &event->markets[m];
        bool suspended = all || (is_bookmaker(market) && bookmaker_shuts(event));
        if (!market->decided)
            market->status = suspended ? MARKET_SUSPENDED : MARKET_OPEN;
        else if (event->stage >= STAGE_SETTLED && market->status == MARKET_CLOSED)
            market->status = MARKET_SETTLE;
    }
    if (!all)
        event->remark = TEXT("");
}

/* ---- life ------------------------------------------------------------------------------------ */

static void enter(struct event *event, enum stage stage, struct text remark)
{
    event->stage = stage;
    event->stage_ms = event->now_ms;
    event->changed = true;
    event->remark = remark;
}

static void add_market(struct event *event, struct text plan)
{
    CHECK(event->market_count < MARKETS_MAX);
    struct market *market = &event->markets[event->market_count++];
    market->plan = plan;
    market->id = 200000000 + chance_mix(event->salt + event->market_count) % 100000000;
    market->runner_count = event->is_race
                               ? event->side_count
                               : (uint32_t)json_text_count(json_text_member(plan, TEXT("runners")));
    CHECK(market->runner_count <= RUNNERS_MAX);
    for (uint32_t i = 0; i < market->runner_count; i++)
        market->runners[i].noise = chance_between(&event->chance, -60, 60);
}

static void make_name(struct event *event, const char *pattern, char out[NAME_SIZE])
{
    sports_name(event->sports, event->sport, &event->chance, table_string(event->table, pattern),
                NULL, event->serial % 8 + 1, out);
}

/* Gives the sides names that are easy to tell apart: their first letters differ. */
static void name_sides(struct event *event)
{
    for (uint32_t i = 0; i < event->side_count; i++) {
        uint32_t other;
        do {
            make_name(event, "side", event->sides[i]);
            other = 0;
            while (strncmp(event->sides[i], event->sides[other], 6) != 0)
                other++;
        } while (other < i);
    }
}

static void take_course(struct event *event)
{
    struct text courses = json_text_member(event->table, TEXT("courses"));
    uint32_t count = (uint32_t)json_text_count(courses);
    struct text course = json_text_element(courses, chance_below(&event->chance, count));
    event->pace = chance_between(&event->chance, 85, 115);
    event->side_count = (uint32_t)table_number(course, "sides");
    event->frames = event->ahead = json_text_open(json_text_member(course, TEXT("frames")));
    event->next = next_of(&event->frames);
    event->from = next_odds(event);
    event->to = next_odds(event);
    CHECK(event->side_count <= SIDES_MAX && event->to.at != NULL);
}

void simulated_event_begin(struct event *event)
{
    event->table = event->sports->tables[event->sport];
    event->is_race = json_text_member(event->table, TEXT("race")).at != NULL;
    event->salt = chance_mix(event->chance.state ^ 0x5EEDU);
    event->now_ms = event->now_ms < event->start_ms ? event->now_ms : event->start_ms;
    event->stage_ms = event->now_ms;
    event->score = event->remark = TEXT("");
    event->changed = true;
    event->offered |= event->start_ms - event->now_ms <= OFFERED_BEFORE_MS;
    take_course(event);
    name_sides(event);
    make_name(event, "competition", event->competition);
    char race[NAME_SIZE];
    make_name(event, "race", race);
    (void)snprintf(event->name, sizeof event->name, "%s%s%s",
                   event->is_race ? event->competition : event->sides[0],
                   event->is_race ? race : " v ", event->is_race ? "" : event->sides[1]);
    struct json_text_cursor markets =
        json_text_open(json_text_member(event->table, TEXT("markets")));
    struct text market;
    while (json_text_next_element(&markets, &market))
        add_market(event, market);
    price_markets(event);
    set_statuses(event);
}

static void take_frame(struct event *event)
{
    struct text frame = event->next, score = json_text_member(frame, TEXT("score"));
    event->next = next_of(&event->frames);
    if (event->stage == STAGE_UPCOMING && frame_ms(frame) >= 0)
        enter(event, STAGE_IN_PLAY, TEXT(""));
    if (score.at != NULL)
        event->score = json_text_inside(score);
    if (json_text_member(frame, TEXT("halt")).at != NULL) {
        event->suspended_until_ms = event->now_ms + table_number(frame, "halt") * 1000;
        event->remark = table_string(frame, "remark");
        event->changed |= event->stage == STAGE_UPCOMING; /* a runner was withdrawn */
    }
    if (event->next.at == NULL)
        enter(event, STAGE_FINISHED, TEXT("Result awaited"));
}

static void step_course(struct event *event)
{
    if (!event->offered && event->start_ms - event->now_ms <= OFFERED_BEFORE_MS)
        event->offered = event->changed = true;
    while (event->next.at != NULL && frame_ms(event->next) <= course_ms(event))
        take_frame(event);
    if (event->stage <= STAGE_IN_PLAY && event->offered)
        price_markets(event);
}

static void step_finished(struct event *event)
{
    static const int64_t lasts_ms[] = {
        [STAGE_FINISHED] = 5000, [STAGE_CLOSED] = 20000, [STAGE_SETTLED] = 40000};
    if (event->now_ms - event->stage_ms < lasts_ms[event->stage])
        return;
    enter(event, event->stage + 1, TEXT("Result"));
    if (event->stage != STAGE_CLOSED)
        return;
    price_markets(event); /* the course's last frame: the result */
    for (uint32_t m = 0; m < event->market_count; m++)
        if (!event->markets[m].decided) { /* sections */
            event->markets[m].decided = true;
            event->markets[m].status = MARKET_CLOSED;
        }
}

void simulated_event_advance(struct event *event, int64_t now_ms)
{
    while (event->now_ms < now_ms && event->stage != STAGE_GONE) {
        int64_t left_ms = now_ms - event->now_ms;
        event->now_ms += left_ms < STEP_MS ? left_ms : STEP_MS;
        if (event->stage <= STAGE_IN_PLAY)
            step_course(event);
        else
            step_finished(event);
        set_statuses(event);
    }
}
