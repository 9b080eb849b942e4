/*
 * A simulated event as upstream would write it: the catalog row and the odds document, in the
 * derived form of the interface, with members that must stay hidden and the dirt real feeds carry.
 * Whatever looks random here is a hash of the event's salt, so that an event that has not moved is
 * written the same.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "demo/event.h"

static const uint32_t sport_ids[SPORT_COUNT] = {
    [SPORT_CRICKET] = 4,
    [SPORT_FOOTBALL] = 1,
    [SPORT_TENNIS] = 2,
    [SPORT_HORSE_RACING] = 7,
    [SPORT_GREYHOUND_RACING] = 4339,
};
static const char *const type_names[] = {
    [MARKET_MATCH] = "match",   [MARKET_BOOKMAKER] = "match1", [MARKET_FANCY] = "fancy",
    [MARKET_FANCY1] = "fancy1", [MARKET_FANCY2] = "fancy2",    [MARKET_ODDEVEN] = "oddeven",
};
static const char *const market_statuses[] = {
    [MARKET_OPEN] = "OPEN",     [MARKET_SUSPENDED] = "SUSPENDED", [MARKET_CLOSED] = "CLOSED",
    [MARKET_SETTLE] = "SETTLE", [MARKET_VOID] = "VOID",
};
static const char *const runner_statuses[] = {
    [RUNNER_ACTIVE] = "ACTIVE",   [RUNNER_WINNER] = "WINNER",
    [RUNNER_LOSER] = "LOSER",     [RUNNER_PLACED] = "PLACED",
    [RUNNER_REMOVED] = "REMOVED", [RUNNER_REMOVED_VACANT] = "REMOVED_VACANT",
};
static const char *const event_statuses[] = {
    [STAGE_UPCOMING] = "OPEN", [STAGE_IN_PLAY] = "OPEN",   [STAGE_FINISHED] = "SUSPENDED",
    [STAGE_CLOSED] = "CLOSED", [STAGE_SETTLED] = "SETTLE", [STAGE_GONE] = "SETTLE",
};
static const char *const section_statuses[] = {
    [SECTION_EMPTY] = "",
    [SECTION_ACTIVE] = "ACTIVE",
    [SECTION_SUSPENDED] = "SUSPENDED",
    [SECTION_BALL_RUNNING] = "Ball Running",
};

/* ---- values ---------------------------------------------------------------------------------- */

/* A string that needs no escapes. */
static void PRINTF_LIKE(3, 4)
    put_format(struct json_writer *json, const char *name, const char *format, ...)
{
    char text[128];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_string(json, name, text);
}

/* Some upstreams write booleans as strings. */
static void put_bool(struct json_writer *json, const char *name, bool value, bool as_string)
{
    if (as_string)
        json_string(json, name, value ? "true" : "false");
    else
        json_bool(json, name, value);
}

/* Upstream numbers rows 1, 2, 3, and a late one 2.1. */
static void put_row_number(struct json_writer *json, uint64_t number, bool late)
{
    if (late)
        json_raw(json, "sno", TEXT("2.1"));
    else
        json_unsigned(json, "sno", number);
}

/* An available stake: mostly like 283.3844663329566, sometimes 1500.25 or 40. */
static void put_size(struct json_writer *json, uint64_t hash)
{
    json_unsigned(json, "size", 2 + hash % 40 * (1 + (hash >> 8) % 120));
    if (hash >> 60 == 0)
        return;
    buffer_append_char(json->out, '.');
    unsigned digits = hash >> 62 == 0 ? 2 : 13;
    uint64_t fraction = chance_mix(hash);
    for (unsigned i = 1; i < digits; i++, fraction /= 10)
        buffer_append_char(json->out, (char)('0' + fraction % 10));
    buffer_append_char(json->out, (char)('1' + fraction % 9));
}

static void put_price(struct json_writer *json, const char *name, uint32_t tick)
{
    json_begin_raw(json, name);
    price_append(json->out, price_ladder_at(tick));
}

/* "6/10/2026 7:30:00 PM", or "May 25 2026 10:00AM (IST)" from another upstream. */
static void put_start_time(struct json_writer *json, const struct event *event)
{
    bool indian = event->serial % 8 == 6;
    time_t seconds =
        (time_t)((event->start_ms + event->clock_shift_ms) / 1000) + (indian ? 19800 : 0);
    struct tm at = {0};
    (void)gmtime_r(&seconds, &at);
    int hour = at.tm_hour % 12 == 0 ? 12 : at.tm_hour % 12;
    const char *half = at.tm_hour < 12 ? "AM" : "PM";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    if (indian)
        put_format(json, "stime", "%.3s %d %d %d:%02d%s (IST)", months + (ptrdiff_t)at.tm_mon * 3,
                   at.tm_mday, at.tm_year + 1900, hour, at.tm_min, half);
    else
        put_format(json, "stime", "%d/%d/%d %d:%02d:%02d %s", at.tm_mon + 1, at.tm_mday,
                   at.tm_year + 1900, hour, at.tm_min, at.tm_sec, half);
}

/* ---- score ----------------------------------------------------------------------------------- */

static void write_cricket_score(const struct cricket_state *state, struct buffer *out)
{
    for (uint32_t i = 0; i <= state->current; i++) {
        const struct cricket_innings *innings = &state->innings[i];
        buffer_append_format(out, "%s%u/%u (%u.%u)", i == 0 ? "" : ", ",
                             innings->counts[CRICKET_RUNS], innings->counts[CRICKET_WICKETS],
                             innings->balls / 6, innings->balls % 6);
    }
}

static void write_tennis_score(const struct tennis_state *state, struct buffer *out)
{
    static const char *const points[] = {"0", "15", "30", "40"};
    buffer_append_format(out, "%u-%u, %u-%u", state->sets[0], state->sets[1], state->games[0],
                         state->games[1]);
    if (state->points[0] <= 3 && state->points[1] <= 3)
        buffer_append_format(out, ", %s-%s", points[state->points[0]], points[state->points[1]]);
    else
        buffer_append_format(out, ", %s",
                             state->points[0] == state->points[1]  ? "Deuce"
                             : state->points[0] > state->points[1] ? "Ad-40"
                                                                   : "40-Ad");
}

/* For people: "2-1 (67')", "84/3 (9.4)"; empty before the start. */
static void write_score(const struct event *event, struct buffer *out)
{
    if (event->stage == STAGE_UPCOMING)
        return;
    switch (event->sport) {
    case SPORT_CRICKET:
        write_cricket_score(&event->cricket, out);
        break;
    case SPORT_FOOTBALL:
        buffer_append_format(out, "%u-%u (%u')", event->football.goals[0], event->football.goals[1],
                             event->football.minute);
        break;
    case SPORT_TENNIS:
        write_tennis_score(&event->tennis, out);
        break;
    case SPORT_HORSE_RACING:
    case SPORT_GREYHOUND_RACING:
        buffer_append_string(out, event->stage == STAGE_IN_PLAY ? "Off" : "Finished");
        break;
    }
}

static void put_score(struct json_writer *json, const struct event *event)
{
    struct buffer score = {0};
    write_score(event, &score);
    json_text(json, "score", buffer_text(&score));
    buffer_free(&score);
}

/* ---- the catalog row ------------------------------------------------------------------------- */

/* The native form of the first market's best prices: rows of odds. */
static void put_best(struct json_writer *json, const struct event *event, size_t index, bool back)
{
    const struct runner *runner = &event->markets[0].runners[index];
    json_object(json, NULL);
    put_price(json, "odds", back ? runner->tick : runner->tick + runner->spread);
    json_string(json, "otype", back ? "back" : "lay");
    json_string(json, "oname", back ? "back1" : "lay1");
    json_unsigned(json, "tno", 0);
    put_size(json, chance_mix(event->salt + index * 2 + (back ? 0 : 1) + runner->size_epoch));
    json_end(json);
}

static void put_row_section(struct json_writer *json, const struct event *event, size_t index)
{
    const struct runner *runner = &event->markets[0].runners[index];
    json_object(json, NULL);
    json_unsigned(json, "sid", index + 1);
    json_unsigned(json, "psid", 6 + index);
    json_unsigned(json, "sno", index + 1);
    json_string(json, "gstatus", runner_statuses[runner->status]);
    json_string(json, "nat", runner->name);
    json_array(json, "odds");
    if (runner->status == RUNNER_ACTIVE && event->offered) {
        put_best(json, event, index, true);
        put_best(json, event, index, false);
    }
    json_end(json);
    json_end(json);
}

void simulated_event_write_row(const struct event *event, struct json_writer *json)
{
    bool strings = event->serial % 7 == 3, racing = event->sport >= SPORT_HORSE_RACING;
    bool in_play = event->stage == STAGE_IN_PLAY, fancies = event->sport == SPORT_CRICKET;
    const struct market *first = &event->markets[0];
    json_object(json, NULL);
    if (event->serial % 12 == 4)
        json_string(json, "gmid", event->id.digits);
    else
        json_raw(json, "gmid", event_id_text(&event->id));
    json_string(json, "ename", event->name);
    json_unsigned(json, "etid", sport_ids[event->sport]);
    put_format(json, "providerEventId", "px-%u-%s", sport_ids[event->sport], event->id.digits);
    json_unsigned(json, "cid", 6000000 + chance_mix(event->salt) % 1000000);
    json_string(json, "cname", event->competition);
    put_bool(json, "iplay", in_play, strings);
    put_start_time(json, event);
    put_bool(json, "tv", event->serial % 3 != 0, strings);
    put_bool(json, "bm", !racing, strings);
    put_bool(json, "f", fancies, strings);
    json_unsigned(json, "f1", fancies ? 1 : 0);
    json_unsigned(json, "iscc", 0);
    json_unsigned(json, "mid", first->id);
    json_string(json, "mname", first->native_name);
    json_string(json, "status", event_statuses[event->stage]);
    json_unsigned(json, "rc", first->runner_count);
    json_unsigned(json, "gscode", in_play ? 1 : 0);
    json_unsigned(json, "m", 1);
    json_unsigned(json, "oid", 0);
    json_string(json, "gtype", "match");
    put_score(json, event);
    /* A name may be written with escapes: it is the same name. */
    if (event->serial % 16 == 9)
        json_string(json, "feed\\u005fsource", "sim-b");
    else
        json_string(json, "feed_source", "sim-a");
    json_array(json, "section");
    for (size_t i = 0; !racing && i < first->runner_count; i++)
        put_row_section(json, event, i);
    json_end(json);
    json_end(json);
}

/* ---- exchange and bookmaker markets ---------------------------------------------------------- */

struct writing {
    struct json_writer json;
    const struct event *event;
    const struct market *market;
    uint64_t salt; /* of the market */
};

/* BACK1 in capitals while suspended. Ends the level. */
static void put_side(struct json_writer *json, bool back, bool capitals, uint32_t level)
{
    const char *name = back ? (capitals ? "BACK" : "back") : (capitals ? "LAY" : "lay");
    json_string(json, "otype", back ? "back" : "lay");
    put_format(json, "oname", "%s%u", name, level + 1);
    json_unsigned(json, "tno", level);
    json_end(json);
}

static void put_exchange_level(struct writing *writing, const struct runner *runner, size_t index,
                               bool back, uint32_t level)
{
    uint32_t best = back ? runner->tick : runner->tick + runner->spread;
    if (back ? best < level : best + level >= PRICE_LADDER_TICKS)
        return; /* the ladder ends here */
    json_object(&writing->json, NULL);
    put_price(&writing->json, "price", back ? best - level : best + level);
    put_size(&writing->json, chance_mix(writing->salt + index * 16 + level * 2 + back +
                                        (uint64_t)(runner->size_epoch / (level + 1)) * 1024));
    put_side(&writing->json, back, writing->market->status == MARKET_SUSPENDED, level);
}

/* One level that counts and two that are empty; price1 is the price as it is spoken: 1.85 is 85. */
static void put_bookmaker_level(struct writing *writing, const struct runner *runner, size_t index,
                                bool back, uint32_t level)
{
    struct json_writer *json = &writing->json;
    bool suspended = writing->market->status == MARKET_SUSPENDED;
    bool quoted = level == 0 && !suspended;
    uint32_t fair = 100 * CHANCE_ONE / runner->chance_ppm;
    uint32_t price = fair - fair / 100 > 101 ? fair - fair / 100 - 1 : 101;
    uint64_t size = 1000 * (1 + chance_mix(writing->salt + index + runner->size_epoch) % 500);
    if (!back)
        price += 2 + price / 50;
    json_object(json, NULL);
    json_begin_raw(json, "price");
    price_append_two_decimals(json->out, quoted ? price : 0);
    json_unsigned(json, "price1", quoted ? price - 100 : 0);
    json_unsigned(json, "size", quoted ? size : 0);
    put_side(json, back, suspended, level);
}

static void put_levels(struct writing *writing, const struct runner *runner, size_t index,
                       bool back)
{
    bool exchange = writing->market->type == MARKET_MATCH;
    json_array(&writing->json, back ? "availableToBack" : "availableToLay");
    for (uint32_t level = 0; level < 3 && runner->status == RUNNER_ACTIVE; level++)
        (exchange ? put_exchange_level : put_bookmaker_level)(writing, runner, index, back, level);
    json_end(&writing->json);
}

static void put_racing_details(struct writing *writing, size_t index)
{
    const struct event *event = writing->event;
    struct json_writer *json = &writing->json;
    char jockey[NAME_SIZE], trainer[NAME_SIZE];
    struct chance chance = {event->salt + index};
    name_player(&chance, jockey);
    name_player(&chance, trainer);
    const char *name = strchr(writing->market->runners[index].name, ' ');
    json_string(json, "rname", name == NULL ? "" : name + 1);
    json_string(json, "jname", event->sport == SPORT_HORSE_RACING ? jockey : "");
    json_string(json, "tname", trainer);
    json_unsigned(json, "hage", 2 + chance_below(&chance, 7));
    put_format(json, "himg", "silk-%u.png", chance_below(&chance, 9000) + 1000);
    json_unsigned(json, "adfa", 0);
    json_string(json, "rdt", "");
    json_unsigned(json, "cno", index + 1);
    json_unsigned(json, "sdraw", event->racing.draw[index]);
}

static void put_runner(struct writing *writing, size_t index)
{
    const struct runner *runner = &writing->market->runners[index];
    struct json_writer *json = &writing->json;
    json_object(json, NULL);
    if (writing->salt % 2 == 0)
        put_format(json, "selectionId", "%" PRIu64, runner->selection_id);
    else
        json_unsigned(json, "selectionId", runner->selection_id);
    json_string(json, "runnerName", runner->name);
    json_string(json, "status", runner_statuses[runner->status]);
    put_row_number(json, index + 1, index == 2 && writing->event->serial % 6 == 1);
    json_unsigned(json, "sortPriority", index + 1);
    if (writing->event->sport >= SPORT_HORSE_RACING && writing->market->type == MARKET_MATCH)
        put_racing_details(writing, index);
    json_object(json, "ex");
    put_levels(writing, runner, index, true);
    put_levels(writing, runner, index, false);
    json_end(json);
    json_end(json);
}

/* ---- fancy markets --------------------------------------------------------------------------- */

static void put_section_price(struct writing *writing, const struct section *section, bool back)
{
    struct json_writer *json = &writing->json;
    bool suspended = section->status == SECTION_SUSPENDED;
    json_object(json, NULL);
    /* "-" is what some upstreams write for "no price". */
    if (suspended && section->sid % 3 == 0)
        json_string(json, "odds", "-");
    else
        json_unsigned(json, "odds",
                      suspended ? 0
                      : back    ? section->line + section->spread
                                : section->line);
    json_unsigned(json, "size",
                  suspended                               ? 0
                  : writing->market->type == MARKET_FANCY ? 100
                                                          : 50000 + section->sid * 1000);
    put_side(json, back, suspended, 0);
}

static void put_section(struct writing *writing, const struct section *section)
{
    struct json_writer *json = &writing->json;
    json_object(json, NULL);
    json_unsigned(json, "sid", section->sid);
    json_unsigned(json, "psid", section->sid);
    put_row_number(json, section->sid, section->sid % 9 == 2);
    json_unsigned(json, "psrno", section->sid);
    json_string(json, "gstatus", section_statuses[section->status]);
    json_string(json, "nat", section->name);
    json_unsigned(json, "gscode", section->status == SECTION_SUSPENDED ? 0 : 1);
    json_unsigned(json, "max", 100000);
    json_unsigned(json, "min", 100);
    json_string(json, "rem", "");
    put_bool(json, "br", section->status == SECTION_BALL_RUNNING, writing->salt % 5 == 0);
    json_array(json, "odds");
    put_section_price(writing, section, true);
    if (writing->market->type != MARKET_FANCY2) /* khado and meter are quoted one way */
        put_section_price(writing, section, false);
    json_end(json);
    json_end(json);
}

/* ---- a market -------------------------------------------------------------------------------- */

static void put_market_head(struct writing *writing)
{
    const struct event *event = writing->event;
    const struct market *market = writing->market;
    struct json_writer *json = &writing->json;
    bool strings = event->serial % 7 == 3, in_play = event->stage == STAGE_IN_PLAY;
    bool has_runners = market->runner_count > 0;
    put_format(json, "marketId", "1.%" PRIu64, market->id);
    json_string(json, "marketName", market->name);
    json_string(json, "gmid", event->id.digits); /* this time as text */
    json_unsigned(json, "mid", market->id);
    json_unsigned(json, "pmid", market->id);
    json_string(json, "mname", market->native_name);
    json_string(json, "gtype", type_names[market->type]);
    json_string(json, "status", market_statuses[market->status]);
    put_score(json, event);
    json_string(json, "rem", event->remark);
    json_unsigned(json, "rc", has_runners ? market->runner_count : market->section_count);
    put_bool(json, "visible", true, strings);
    json_unsigned(json, "pid", 0);
    json_unsigned(json, "gscode", 1);
    json_unsigned(json, "maxb", 1);
    json_unsigned(json, "sno", (uint64_t)(market - event->markets) + 1);
    json_unsigned(json, "dtype", 0);
    json_unsigned(json, "ocnt", 6);
    json_unsigned(json, "m", 0);
    json_unsigned(json, "max", 250000);
    json_unsigned(json, "min", 100);
    put_bool(json, "biplay", true, strings);
    json_unsigned(json, "umaxbof", 0);
    put_bool(json, "boplay", true, strings);
    put_bool(json, "iplay", in_play, strings);
    json_unsigned(json, "btcnt", 0);
    json_null(json, "company");
    json_bool(json, event->serial % 16 == 9 ? "t\\u0076" : "tv", true);
    put_format(json, "tvChannel", "https://tv.invalid/%s", event->id.digits);
    json_string(json, "odd_type", has_runners ? "decimal" : "line");
}

static void put_market(struct writing *writing)
{
    const struct market *market = writing->market;
    json_object(&writing->json, NULL);
    put_market_head(writing);
    json_array(&writing->json, market->runner_count > 0 ? "runners" : "section");
    for (size_t i = 0; i < market->runner_count; i++)
        put_runner(writing, i);
    for (size_t i = 0; i < market->section_count; i++)
        if (market->sections[i].shown)
            put_section(writing, &market->sections[i]);
    json_end(&writing->json);
    json_end(&writing->json);
}

void simulated_event_write_markets(const struct event *event, struct buffer *out)
{
    struct writing writing = {.json = {.out = out}, .event = event};
    json_array(&writing.json, NULL);
    for (size_t m = 0; m < event->market_count && event->offered; m++) {
        writing.market = &event->markets[m];
        writing.salt = chance_mix(event->salt ^ writing.market->id);
        put_market(&writing);
    }
    json_end(&writing.json);
}
