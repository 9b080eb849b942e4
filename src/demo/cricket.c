/*
 * Cricket: a limited-overs match, a ball every two seconds. Fancies ("sessions") quote a run line
 * that follows the score, say `Ball Running` while a ball is bowled, and disappear when they have
 * been decided.
 */
#include <stdio.h>
#include <string.h>

#include "demo/event.h"

enum {
    MATCH_ODDS,
    BOOKMAKER,
    TIED_MATCH,
    NORMAL,
    OVER_BY_OVER,
    BALL_BY_BALL,
    FANCY1,
    ODDEVEN,
    KHADO,
    METER
};

#define BALL_RUNNING_MS 900
#define BALL_EVERY_MS 1900
#define BREAK_MS 15000
#define RUNS_PER_BALL 136 /* expected, in hundredths */
#define SECTIONS_MAX 110

enum section_kind {
    SECTION_OVER_RUNS, /* runs at the end of over `number` */
    SECTION_ONE_OVER,  /* runs in over `number` */
    SECTION_WICKET,    /* runs at the fall of wicket `number` */
    SECTION_BATTER,
    SECTION_BATTER_BOUNDARIES,
    SECTION_FOURS,
    SECTION_SIXES,
    SECTION_BOUNDARIES,
    SECTION_WICKETS,
    SECTION_MATCH_RUNS,
    SECTION_MATCH_FOURS,
    SECTION_MATCH_SIXES,
    SECTION_MATCH_WICKETS,
    SECTION_MATCH_BOUNDARIES,
    SECTION_YES_NO, /* percent */
    SECTION_BALL,
};

static const char *team(const struct event *event, uint32_t innings)
{
    uint32_t side = event->cricket.first_to_bat ^ innings;
    return side == 0 ? event->home : event->away;
}

static struct section *add_section(struct market *market, size_t *count, enum section_kind kind,
                                   uint32_t side, uint32_t number)
{
    CHECK(*count < market->section_count);
    struct section *section = &market->sections[(*count)++];
    section->kind = (uint8_t)kind;
    section->side = (uint8_t)side;
    section->number = (uint8_t)number;
    section->sid = (uint32_t)*count;
    section->spread = kind == SECTION_YES_NO ? 5 : 1;
    return section;
}

#define NAME_SECTION(section, ...) \
    ((void)snprintf((section)->name, sizeof(section)->name, __VA_ARGS__))

static void add_innings_sections(struct event *event, struct market *market, size_t *count,
                                 uint32_t innings)
{
    static const struct {
        enum section_kind kind;
        const char *name;
    } totals[] = {{SECTION_FOURS, "Total fours"},
                  {SECTION_SIXES, "Total sixes"},
                  {SECTION_BOUNDARIES, "Total boundaries"},
                  {SECTION_WICKETS, "Total wickets"}};
    const struct cricket_state *state = &event->cricket;
    const char *name = team(event, innings);
    for (uint32_t over = 1; over <= state->overs; over++) {
        if (over <= 10 || over % 5 == 0)
            NAME_SECTION(add_section(market, count, SECTION_OVER_RUNS, innings, over),
                         "%u over runs %.40s", over, name);
    }
    for (uint32_t wicket = 1; wicket <= 10; wicket++)
        NAME_SECTION(add_section(market, count, SECTION_WICKET, innings, wicket),
                     "Fall of wkt %u %.40s", wicket, name);
    for (uint32_t batter = 0; batter < 11; batter++) {
        const char *who = state->batters[innings][batter];
        NAME_SECTION(add_section(market, count, SECTION_BATTER, innings, batter), "%.40s runs",
                     who);
        NAME_SECTION(add_section(market, count, SECTION_BATTER_BOUNDARIES, innings, batter),
                     "%.40s boundaries", who);
    }
    for (size_t i = 0; i < sizeof totals / sizeof totals[0]; i++)
        NAME_SECTION(add_section(market, count, totals[i].kind, innings, 0), "%s %.40s",
                     totals[i].name, name);
}

static void add_match_sections(struct market *market, size_t *count)
{
    static const char *const names[] = {"Match runs", "Match fours", "Match sixes", "Match wickets",
                                        "Match boundaries"};
    for (uint32_t i = 0; i < 5; i++)
        NAME_SECTION(
            add_section(market, count, (enum section_kind)(SECTION_MATCH_RUNS + (int)i), 0, 0),
            "%s", names[i]);
}

static void add_normal_market(struct event *event)
{
    struct market *market =
        event_add_market(event, MARKET_FANCY, "Normal", "Normal", 0, SECTIONS_MAX);
    size_t count = 0;
    for (uint32_t innings = 0; innings < 2; innings++)
        add_innings_sections(event, market, &count, innings);
    add_match_sections(market, &count);
    market->section_count = count;
}

/* The smaller fancy markets: one section an over and side, or a single one. */
static void add_small_markets(struct event *event)
{
    static const struct {
        const char *name;
        enum market_type type;
        enum section_kind kind;
        const char *format;
    } kinds[] = {
        {"Over By Over", MARKET_FANCY, SECTION_ONE_OVER, "Only %u over run %.40s"},
        {"Ball By Ball", MARKET_FANCY, SECTION_BALL, "Next ball runs, over %u %.34s"},
        {"fancy1", MARKET_FANCY1, SECTION_YES_NO, "Boundary in over %u %.38s"},
        {"oddeven", MARKET_ODDEVEN, SECTION_YES_NO, "Only %u over odd run %.36s"},
        {"khado", MARKET_FANCY2, SECTION_OVER_RUNS, "%u over khado %.40s"},
        {"meter", MARKET_FANCY2, SECTION_OVER_RUNS, "%u over meter %.40s"},
    };
    const struct cricket_state *state = &event->cricket;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct market *market = event_add_market(event, kinds[k].type, kinds[k].name, kinds[k].name,
                                                 0, (size_t)state->overs * 2);
        size_t count = 0;
        for (uint32_t innings = 0; innings < 2; innings++)
            for (uint32_t over = 1; over <= state->overs; over++) {
                if (kinds[k].type == MARKET_FANCY2 && over % 5 != 0)
                    continue;
                struct section *section = add_section(market, &count, kinds[k].kind, innings, over);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
                NAME_SECTION(section, kinds[k].format, over, team(event, innings));
#pragma GCC diagnostic pop
            }
        market->section_count = count;
    }
}

static void cricket_create(struct event *event)
{
    struct cricket_state *state = &event->cricket;
    event_name_match(event);
    state->overs = chance_below(&event->chance, 4) == 0 ? 20 : 10;
    event->duration_ms = (int64_t)state->overs * 12 * 2000 + BREAK_MS;
    state->first_to_bat = chance_below(&event->chance, 2);
    state->strength = chance_between(&event->chance, -700, 700);
    state->batter_number[1] = 1;
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < 11; i++)
            name_player(&event->chance, state->batters[side][i]);

    struct market *odds = event_add_market(event, MARKET_MATCH, "Match Odds", "MATCH_ODDS", 2, 0);
    struct market *bookmaker =
        event_add_market(event, MARKET_BOOKMAKER, "Bookmaker", "Bookmaker", 2, 0);
    struct market *tied = event_add_market(event, MARKET_MATCH, "Tied Match", "TIED_MATCH", 2, 0);
    for (size_t i = 0; i < 2; i++) {
        const char *name = i == 0 ? event->home : event->away;
        event_name_runner(event, odds, i, "%s", name);
        event_name_runner(event, bookmaker, i, "%s", name);
        event_name_runner(event, tied, i, "%s", i == 0 ? "Yes" : "No");
    }
    add_normal_market(event);
    add_small_markets(event);
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void fall_of_wicket(struct event *event, struct cricket_innings *innings)
{
    struct cricket_state *state = &event->cricket;
    innings->wickets++;
    uint32_t out = state->on_strike;
    uint32_t next = innings->wickets + 1;
    state->batter_number[out] = next < 11 ? next : 11;
    state->batter_runs[out] = 0;
    state->batter_boundaries[out] = 0;
    event_suspend(event, 8000, "Wicket");
}

static void bowl(struct event *event)
{
    struct cricket_state *state = &event->cricket;
    struct cricket_innings *innings = &state->innings[state->current];
    static const struct {
        uint32_t ppm, runs;
    } outcomes[] = {{350000, 0}, {330000, 1}, {90000, 2}, {10000, 3}, {120000, 4}, {55000, 6}};
    innings->balls++;
    uint32_t drawn = chance_below(&event->chance, CHANCE_ONE), runs = 0;
    size_t i = 0;
    for (; i < sizeof outcomes / sizeof outcomes[0] && drawn >= outcomes[i].ppm; i++)
        drawn -= outcomes[i].ppm;
    if (i == sizeof outcomes / sizeof outcomes[0]) {
        fall_of_wicket(event, innings);
    } else {
        runs = outcomes[i].runs;
        innings->runs += runs;
        innings->fours += runs == 4;
        innings->sixes += runs == 6;
        state->batter_runs[state->on_strike] += runs;
        state->batter_boundaries[state->on_strike] += runs >= 4;
        if (runs % 2 == 1)
            state->on_strike ^= 1;
        if (chance_happens(&event->chance, 8000))
            event_suspend(event, 10000, "Review");
    }
    if (innings->balls % 6 == 0)
        state->on_strike ^= 1;
}

static bool innings_over(const struct event *event)
{
    const struct cricket_state *state = &event->cricket;
    const struct cricket_innings *innings = &state->innings[state->current];
    if (innings->balls >= state->overs * 6 || innings->wickets >= 10)
        return true;
    return state->current == 1 && innings->runs > state->innings[0].runs;
}

static void cricket_step(struct event *event)
{
    struct cricket_state *state = &event->cricket;
    if (!state->ball_running) {
        if (event->now_ms < state->next_ball_ms)
            return;
        state->ball_running = true;
        state->ball_over_ms = event->now_ms + BALL_RUNNING_MS;
        state->next_ball_ms = event->now_ms + BALL_EVERY_MS;
        return;
    }
    if (event->now_ms < state->ball_over_ms)
        return;
    state->ball_running = false;
    bowl(event);
    if (!innings_over(event))
        return;
    if (state->current == 1) {
        event_finish(event);
        return;
    }
    state->current = 1;
    memset(state->batter_runs, 0, sizeof state->batter_runs);
    memset(state->batter_boundaries, 0, sizeof state->batter_boundaries);
    state->batter_number[0] = 0;
    state->batter_number[1] = 1;
    state->on_strike = 0;
    event_suspend(event, BREAK_MS, "Innings break");
}

/* ---- what it makes likely -------------------------------------------------------------------- */

static uint32_t balls_left(const struct cricket_state *state, uint32_t innings)
{
    uint32_t all = state->overs * 6, gone = state->innings[innings].balls;
    if (innings < state->current || state->innings[innings].wickets >= 10)
        return 0;
    return gone < all ? all - gone : 0;
}

/* Runs still to come in an innings: fewer as wickets fall. */
static uint32_t runs_to_come(const struct cricket_state *state, uint32_t innings, uint32_t balls)
{
    uint32_t wickets = state->innings[innings].wickets;
    return balls * RUNS_PER_BALL * (wickets < 3 ? 16 : 19 - wickets) / 1600;
}

/* How far the side that bats first is ahead, in millibits. */
static int32_t lead_of_first(const struct event *event)
{
    const struct cricket_state *state = &event->cricket;
    int32_t left = (int32_t)balls_left(state, state->current);
    int32_t to_come = (int32_t)runs_to_come(state, state->current, (uint32_t)left);
    int32_t all = (int32_t)state->overs * 6;
    int32_t runs = (int32_t)state->innings[state->current].runs;
    if (state->current == 0)
        return (runs + to_come - all * RUNS_PER_BALL / 100) * 60;
    int32_t needed = (int32_t)state->innings[0].runs + 1 - runs;
    return (needed - to_come) * 4000 / (left / 2 + 4);
}

static void price_match(struct event *event)
{
    const struct cricket_state *state = &event->cricket;
    int32_t lead = lead_of_first(event);
    int32_t left = (int32_t)(balls_left(state, 0) + balls_left(state, 1));
    int32_t strength = state->strength * left / (int32_t)(state->overs * 12);
    int32_t home = (state->first_to_bat == 0 ? lead : -lead) + strength;
    uint64_t weights[2] = {chance_weight(home), chance_weight(-home)};
    uint32_t ppm[2];
    chance_share(weights, 2, ppm);
    market_set_chances(&event->markets[MATCH_ODDS], ppm);
    int32_t gap = lead < 0 ? -lead : lead;
    uint32_t tie =
        gap > 4000 ? 2000 : 15000 + (uint32_t)(4000 - gap) * 2 / (uint32_t)(left / 20 + 1);
    market_set_chances(&event->markets[TIED_MATCH], (const uint32_t[]){tie, CHANCE_ONE - tie});
}

/* At the crease: 0 or 1; 2 when not. */
static uint32_t place_at_crease(const struct cricket_state *state, uint32_t number)
{
    return state->batter_number[0] == number ? 0 : state->batter_number[1] == number ? 1 : 2;
}

static uint32_t line_of_batter(const struct cricket_state *state, const struct section *section,
                               uint32_t left)
{
    uint32_t at = place_at_crease(state, section->number);
    uint32_t runs = at < 2 ? state->batter_runs[at] : 0;
    uint32_t boundaries = at < 2 ? state->batter_boundaries[at] : 0;
    if (section->kind == SECTION_BATTER)
        return runs + (left * 3 / 5 < 17 ? left * 3 / 5 : 17);
    return boundaries + (left / 8 < 2 ? left / 8 : 2);
}

/* The run line of what is counted to the end of an innings, or of the match. */
static uint32_t line_of_total(const struct cricket_state *state, const struct section *section)
{
    bool match = section->kind >= SECTION_MATCH_RUNS && section->kind <= SECTION_MATCH_BOUNDARIES;
    uint32_t line = 0;
    for (uint32_t i = match ? 0 : section->side; i <= (match ? 1U : section->side); i++) {
        const struct cricket_innings *innings = &state->innings[i];
        uint32_t left = balls_left(state, i);
        switch ((enum section_kind)section->kind) {
        case SECTION_MATCH_RUNS:
            line += innings->runs + runs_to_come(state, i, left);
            break;
        case SECTION_FOURS:
        case SECTION_MATCH_FOURS:
            line += innings->fours + left * 12 / 100;
            break;
        case SECTION_SIXES:
        case SECTION_MATCH_SIXES:
            line += innings->sixes + left * 55 / 1000;
            break;
        case SECTION_WICKETS:
        case SECTION_MATCH_WICKETS:
            line += innings->wickets + left * 45 / 1000;
            break;
        default:
            line += innings->fours + innings->sixes + left * 17 / 100;
            break;
        }
    }
    return line;
}

static bool section_shown(const struct event *event, const struct section *section)
{
    const struct cricket_state *state = &event->cricket;
    const struct cricket_innings *innings = &state->innings[section->side];
    bool current = section->side == state->current;
    uint32_t over = innings->balls / 6; /* complete ones */
    bool batting = current && innings->wickets < 10 && balls_left(state, state->current) > 0;
    switch ((enum section_kind)section->kind) {
    case SECTION_OVER_RUNS:
        return batting && over < section->number;
    case SECTION_ONE_OVER:
    case SECTION_YES_NO:
        return batting && (section->number == over + 1 || section->number == over + 2);
    case SECTION_BALL:
        return batting && event->stage == STAGE_IN_PLAY && section->number == over + 1;
    case SECTION_WICKET:
        return batting && section->number == innings->wickets + 1;
    case SECTION_BATTER:
    case SECTION_BATTER_BOUNDARIES:
        return batting && place_at_crease(state, section->number) < 2;
    case SECTION_MATCH_RUNS:
    case SECTION_MATCH_FOURS:
    case SECTION_MATCH_SIXES:
    case SECTION_MATCH_WICKETS:
    case SECTION_MATCH_BOUNDARIES:
        return balls_left(state, 1) > 0;
    default:
        return batting;
    }
}

static uint32_t line_of(const struct event *event, const struct section *section)
{
    const struct cricket_state *state = &event->cricket;
    const struct cricket_innings *innings = &state->innings[section->side];
    uint32_t left = balls_left(state, section->side);
    uint64_t flutter = chance_mix(event->salt + section->sid + (uint64_t)innings->balls * 1024);
    switch ((enum section_kind)section->kind) {
    case SECTION_OVER_RUNS: {
        uint32_t balls = (uint32_t)section->number * 6 - innings->balls;
        return innings->runs + runs_to_come(state, section->side, balls) + (uint32_t)(flutter % 2);
    }
    case SECTION_ONE_OVER:
        return 7 + (uint32_t)(flutter % 3);
    case SECTION_BALL:
        return 1;
    case SECTION_YES_NO:
        return 80 + (uint32_t)(flutter % 30);
    case SECTION_WICKET:
        return innings->runs + 12 + (uint32_t)(flutter % 3);
    case SECTION_BATTER:
    case SECTION_BATTER_BOUNDARIES:
        return line_of_batter(state, section, left);
    default:
        return line_of_total(state, section);
    }
}

static void cricket_price(struct event *event)
{
    price_match(event);
    for (size_t m = NORMAL; m < event->market_count; m++) {
        for (size_t i = 0; i < event->markets[m].section_count; i++) {
            struct section *section = &event->markets[m].sections[i];
            section->shown = section_shown(event, section);
            if (!section->shown)
                continue;
            section->line = line_of(event, section);
            section->size_epoch = event->cricket.innings[0].balls + event->cricket.innings[1].balls;
        }
    }
}

static void cricket_result(struct event *event)
{
    const struct cricket_state *state = &event->cricket;
    uint32_t first = state->innings[0].runs, second = state->innings[1].runs;
    market_decide(&event->markets[TIED_MATCH], first == second ? 0 : 1);
    if (first == second) {
        market_void(&event->markets[MATCH_ODDS]);
        market_void(&event->markets[BOOKMAKER]);
    } else {
        market_decide(&event->markets[MATCH_ODDS],
                      first > second ? state->first_to_bat : 1 - state->first_to_bat);
    }
}

const struct event_model cricket_model = {
    .create = cricket_create,
    .step = cricket_step,
    .price = cricket_price,
    .result = cricket_result,
};
