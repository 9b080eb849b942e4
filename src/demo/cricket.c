/*
 * Cricket: a limited-overs match, a ball every two seconds. Fancies ("sessions") quote a run line
 * that follows the score, say `Ball Running` while a ball is bowled, and disappear when they have
 * been decided.
 */
#include <string.h>

#include "demo/event.h"

enum { MATCH_ODDS, BOOKMAKER, TIED_MATCH, NORMAL };

#define BALL_RUNNING_MS 900
#define BALL_EVERY_MS 1900
#define BREAK_MS 15000
#define RUNS_PER_BALL 136 /* expected, in hundredths */
#define BATTERS 11

enum section_kind {
    SECTION_OVER_RUNS, /* runs at the end of over `number` */
    SECTION_ONE_OVER,  /* runs in over `number` */
    SECTION_WICKET,    /* runs at the fall of wicket `number` */
    SECTION_BATTER,    /* runs of batter `number` */
    SECTION_BATTER_BOUNDARIES,
    SECTION_INNINGS, /* enum cricket_count `number`, at the end of the innings */
    SECTION_MATCH,   /* the same of the match */
    SECTION_YES_NO,  /* percent */
    SECTION_BALL,
};

static const char *const count_names[CRICKET_COUNTS] = {
    [CRICKET_RUNS] = "runs",       [CRICKET_FOURS] = "fours",
    [CRICKET_SIXES] = "sixes",     [CRICKET_BOUNDARIES] = "boundaries",
    [CRICKET_WICKETS] = "wickets",
};
/* Expected in a thousand balls; runs depend on the wickets left. */
static const uint32_t counts_expected[CRICKET_COUNTS] = {
    [CRICKET_FOURS] = 120,
    [CRICKET_SIXES] = 55,
    [CRICKET_BOUNDARIES] = 170,
    [CRICKET_WICKETS] = 45,
};

static const char *team(const struct event *event, uint32_t innings)
{
    uint32_t side = event->cricket.first_to_bat ^ innings;
    return side == 0 ? event->home : event->away;
}

#define ADD_SECTION(market, kind_, side_, number_, ...)                    \
    (*event_add_section((market), __VA_ARGS__) = (struct section_subject){ \
         .kind = (kind_), .side = (uint8_t)(side_), .number = (uint8_t)(number_)})

static void add_innings_sections(const struct event *event, struct market *market, uint32_t innings)
{
    const struct cricket_state *state = &event->cricket;
    const char *name = team(event, innings);
    for (uint32_t over = 1; over <= state->overs; over++)
        if (over <= 10 || over % 5 == 0)
            ADD_SECTION(market, SECTION_OVER_RUNS, innings, over, "%u over runs %.40s", over, name);
    for (uint32_t wicket = 1; wicket <= 10; wicket++)
        ADD_SECTION(market, SECTION_WICKET, innings, wicket, "Fall of wkt %u %.40s", wicket, name);
    for (uint32_t batter = 0; batter < BATTERS; batter++) {
        const char *who = state->batters[innings][batter];
        ADD_SECTION(market, SECTION_BATTER, innings, batter, "%.40s runs", who);
        ADD_SECTION(market, SECTION_BATTER_BOUNDARIES, innings, batter, "%.40s boundaries", who);
    }
    for (int count = CRICKET_FOURS; count < CRICKET_COUNTS; count++)
        ADD_SECTION(market, SECTION_INNINGS, innings, count, "Total %s %.40s", count_names[count],
                    name);
}

static void add_normal_market(struct event *event)
{
    struct market *market = event_add_market(event, MARKET_FANCY, "Normal", "Normal");
    for (uint32_t innings = 0; innings < 2; innings++)
        add_innings_sections(event, market, innings);
    for (int count = 0; count < CRICKET_COUNTS; count++)
        ADD_SECTION(market, SECTION_MATCH, 0, count, "Match %s", count_names[count]);
}

/* The smaller fancy markets: one section an over and side. */
static void add_small_markets(struct event *event)
{
    static const struct {
        const char *name;
        enum market_type type;
        uint8_t kind;               /* enum section_kind */
        const char *before, *after; /* the over's number */
    } kinds[] = {
        {"Over By Over", MARKET_FANCY, SECTION_ONE_OVER, "Only ", " over run"},
        {"Ball By Ball", MARKET_FANCY, SECTION_BALL, "Next ball runs, over ", ""},
        {"fancy1", MARKET_FANCY1, SECTION_YES_NO, "Boundary in over ", ""},
        {"oddeven", MARKET_ODDEVEN, SECTION_YES_NO, "Only ", " over odd run"},
        {"khado", MARKET_FANCY2, SECTION_OVER_RUNS, "", " over khado"},
        {"meter", MARKET_FANCY2, SECTION_OVER_RUNS, "", " over meter"},
    };
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct market *market =
            event_add_market(event, kinds[k].type, kinds[k].name, kinds[k].name);
        for (uint32_t innings = 0; innings < 2; innings++)
            for (uint32_t over = 1; over <= event->cricket.overs; over++)
                if (kinds[k].type != MARKET_FANCY2 || over % 5 == 0)
                    ADD_SECTION(market, kinds[k].kind, innings, over, "%s%u%s %.34s",
                                kinds[k].before, over, kinds[k].after, team(event, innings));
    }
}

static void cricket_create(struct event *event)
{
    static const struct market_plan markets[] = {
        {MARKET_MATCH, "Match Odds", "MATCH_ODDS", "@home|@away"},
        {MARKET_BOOKMAKER, "Bookmaker", "Bookmaker", "@home|@away"},
        {MARKET_MATCH, "Tied Match", "TIED_MATCH", "Yes|No"},
        {0},
    };
    struct cricket_state *state = &event->cricket;
    event_name_match(event);
    state->overs = chance_below(&event->chance, 4) == 0 ? 20 : 10;
    event->duration_ms = (int64_t)state->overs * 12 * 2000 + BREAK_MS;
    state->first_to_bat = chance_below(&event->chance, 2);
    state->strength = chance_between(&event->chance, -700, 700);
    state->batters_in[1].number = 1;
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < BATTERS; i++)
            name_player(&event->chance, state->batters[side][i]);
    event_add_markets(event, markets);
    add_normal_market(event);
    add_small_markets(event);
}

/* ---- what happens ---------------------------------------------------------------------------- */

static void fall_of_wicket(struct event *event, struct cricket_innings *innings)
{
    struct cricket_state *state = &event->cricket;
    uint32_t next = ++innings->counts[CRICKET_WICKETS] + 1;
    state->batters_in[state->on_strike] =
        (struct cricket_batter){.number = next < BATTERS ? next : BATTERS};
    event_suspend(event, 8000, "Wicket");
}

static void score(struct event *event, struct cricket_innings *innings, uint32_t runs)
{
    struct cricket_state *state = &event->cricket;
    struct cricket_batter *batter = &state->batters_in[state->on_strike];
    innings->counts[CRICKET_RUNS] += runs;
    innings->counts[CRICKET_FOURS] += runs == 4;
    innings->counts[CRICKET_SIXES] += runs == 6;
    innings->counts[CRICKET_BOUNDARIES] += runs >= 4;
    batter->runs += runs;
    batter->boundaries += runs >= 4;
    if (runs % 2 == 1)
        state->on_strike ^= 1;
    if (chance_happens(&event->chance, 8000))
        event_suspend(event, 10000, "Review");
}

static void bowl(struct event *event)
{
    struct cricket_state *state = &event->cricket;
    struct cricket_innings *innings = &state->innings[state->current];
    static const struct {
        uint32_t ppm, runs;
    } outcomes[] = {{350000, 0}, {330000, 1}, {90000, 2}, {10000, 3}, {120000, 4}, {55000, 6}};
    innings->balls++;
    uint32_t drawn = chance_below(&event->chance, CHANCE_ONE);
    size_t i = 0;
    for (; i < sizeof outcomes / sizeof outcomes[0] && drawn >= outcomes[i].ppm; i++)
        drawn -= outcomes[i].ppm;
    if (i < sizeof outcomes / sizeof outcomes[0])
        score(event, innings, outcomes[i].runs);
    else
        fall_of_wicket(event, innings);
    if (innings->balls % 6 == 0)
        state->on_strike ^= 1;
}

static bool innings_over(const struct event *event)
{
    const struct cricket_state *state = &event->cricket;
    const struct cricket_innings *innings = &state->innings[state->current];
    if (innings->balls >= state->overs * 6 || innings->counts[CRICKET_WICKETS] >= 10)
        return true;
    return state->current == 1 &&
           innings->counts[CRICKET_RUNS] > state->innings[0].counts[CRICKET_RUNS];
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
    memset(state->batters_in, 0, sizeof state->batters_in);
    state->batters_in[1].number = 1;
    state->on_strike = 0;
    event_suspend(event, BREAK_MS, "Innings break");
}

/* ---- what it makes likely -------------------------------------------------------------------- */

static uint32_t balls_left(const struct cricket_state *state, uint32_t innings)
{
    uint32_t all = state->overs * 6, gone = state->innings[innings].balls;
    if (innings < state->current || state->innings[innings].counts[CRICKET_WICKETS] >= 10)
        return 0;
    return gone < all ? all - gone : 0;
}

/* Runs still to come in an innings: fewer as wickets fall. */
static uint32_t runs_to_come(const struct cricket_state *state, uint32_t innings, uint32_t balls)
{
    uint32_t wickets = state->innings[innings].counts[CRICKET_WICKETS];
    return balls * RUNS_PER_BALL * (wickets < 3 ? 16 : 19 - wickets) / 1600;
}

/* How far the side that bats first is ahead, in millibits. */
static int32_t lead_of_first(const struct event *event)
{
    const struct cricket_state *state = &event->cricket;
    int32_t left = (int32_t)balls_left(state, state->current);
    int32_t to_come = (int32_t)runs_to_come(state, state->current, (uint32_t)left);
    int32_t all = (int32_t)state->overs * 6;
    int32_t runs = (int32_t)state->innings[state->current].counts[CRICKET_RUNS];
    if (state->current == 0)
        return (runs + to_come - all * RUNS_PER_BALL / 100) * 60;
    int32_t needed = (int32_t)state->innings[0].counts[CRICKET_RUNS] + 1 - runs;
    return (needed - to_come) * 4000 / (left / 2 + 4);
}

static void price_match(struct event *event)
{
    const struct cricket_state *state = &event->cricket;
    int32_t lead = lead_of_first(event);
    int32_t left = (int32_t)(balls_left(state, 0) + balls_left(state, 1));
    int32_t strength = state->strength * left / (int32_t)(state->overs * 12);
    int32_t home = (state->first_to_bat == 0 ? lead : -lead) + strength;
    market_set_two_chances(&event->markets[MATCH_ODDS], chance_of_stronger(home));
    int32_t gap = lead < 0 ? -lead : lead;
    market_set_two_chances(
        &event->markets[TIED_MATCH],
        gap > 4000 ? 2000 : 15000 + (uint32_t)(4000 - gap) * 2 / (uint32_t)(left / 20 + 1));
}

/* The batter with this number, if it is in. */
static const struct cricket_batter *find_batter(const struct cricket_state *state, uint32_t number)
{
    for (size_t i = 0; i < 2; i++)
        if (state->batters_in[i].number == number)
            return &state->batters_in[i];
    return NULL;
}

/* What is counted so far in an innings, and what is expected to come. */
static uint32_t line_of_count(const struct cricket_state *state, uint32_t innings, uint32_t count)
{
    uint32_t left = balls_left(state, innings);
    return state->innings[innings].counts[count] + (count == CRICKET_RUNS
                                                        ? runs_to_come(state, innings, left)
                                                        : left * counts_expected[count] / 1000);
}

static uint32_t least_of(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Whether the section is quoted now, and its line if so. */
static bool quote_section(const struct event *event, const struct section *section, uint32_t *line)
{
    const struct cricket_state *state = &event->cricket;
    const struct section_subject *subject = &section->subject;
    const struct cricket_innings *innings = &state->innings[subject->side];
    const struct cricket_batter *batter = find_batter(state, subject->number);
    uint32_t left = balls_left(state, subject->side), over = innings->balls / 6, balls = 0;
    uint32_t number = subject->number, runs = innings->counts[CRICKET_RUNS];
    uint64_t flutter = chance_mix(event->salt + section->sid + (uint64_t)innings->balls * 1024);
    bool batting = subject->side == state->current && left > 0; /* else `left` is 0 at the end */
    switch ((enum section_kind)subject->kind) {
    case SECTION_OVER_RUNS:
        balls = number * 6 - innings->balls;
        *line = runs + (over < number ? runs_to_come(state, subject->side, balls) : 0) +
                (uint32_t)(flutter % 2);
        return batting && over < number;
    case SECTION_ONE_OVER:
        *line = 7 + (uint32_t)(flutter % 3);
        return batting && (number == over + 1 || number == over + 2);
    case SECTION_YES_NO:
        *line = 80 + (uint32_t)(flutter % 30);
        return batting && (number == over + 1 || number == over + 2);
    case SECTION_BALL:
        *line = 1;
        return batting && event->stage == STAGE_IN_PLAY && number == over + 1;
    case SECTION_WICKET:
        *line = runs + 12 + (uint32_t)(flutter % 3);
        return batting && number == innings->counts[CRICKET_WICKETS] + 1;
    case SECTION_BATTER:
        *line = batter == NULL ? 0 : batter->runs + least_of(left * 3 / 5, 17);
        return batting && batter != NULL;
    case SECTION_BATTER_BOUNDARIES:
        *line = batter == NULL ? 0 : batter->boundaries + least_of(left / 8, 2);
        return batting && batter != NULL;
    case SECTION_MATCH:
        *line = line_of_count(state, 0, number) + line_of_count(state, 1, number);
        return balls_left(state, 1) > 0;
    case SECTION_INNINGS:
        break;
    }
    *line = line_of_count(state, subject->side, number);
    return batting;
}

static void cricket_price(struct event *event)
{
    price_match(event);
    for (size_t m = NORMAL; m < event->market_count; m++) {
        for (size_t i = 0; i < event->markets[m].section_count; i++) {
            struct section *section = &event->markets[m].sections[i];
            section->shown = quote_section(event, section, &section->line);
            section->spread = section->subject.kind == SECTION_YES_NO ? 5 : 1;
        }
    }
}

static void cricket_result(struct event *event)
{
    const struct cricket_state *state = &event->cricket;
    uint32_t first = state->innings[0].counts[CRICKET_RUNS];
    uint32_t second = state->innings[1].counts[CRICKET_RUNS];
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
