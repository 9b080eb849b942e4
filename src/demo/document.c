/*
 * A simulated event as upstream would write it: the catalog row and the odds document, in the
 * derived form of the interface, with members that must stay hidden and the dirt real feeds carry.
 * Whatever looks random here is a hash of the event's salt, so that an event that has not moved is
 * written the same.
 */
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
static const char *const section_statuses[] = {
    [SECTION_EMPTY] = "",
    [SECTION_ACTIVE] = "ACTIVE",
    [SECTION_SUSPENDED] = "SUSPENDED",
    [SECTION_BALL_RUNNING] = "Ball Running",
};

/* ---- small things ---------------------------------------------------------------------------- */

static void put(struct buffer *out, const char *text)
{
    buffer_append_string(out, text);
}

static void put_text(struct buffer *out, const char *name, const char *value)
{
    buffer_append_format(out, ",\"%s\":", name);
    buffer_append_json_string(out, text_of(value));
}

static void put_number(struct buffer *out, const char *name, uint64_t value)
{
    buffer_append_format(out, ",\"%s\":", name);
    buffer_append_u64(out, value);
}

/* Some upstreams write booleans as strings. */
static void put_bool(struct buffer *out, const char *name, bool value, bool as_string)
{
    const char *quote = as_string ? "\"" : "";
    buffer_append_format(out, ",\"%s\":%s%s%s", name, quote, value ? "true" : "false", quote);
}

/* An available stake: mostly like 283.3844663329566, sometimes 1500.25 or 40. */
static void put_size(struct buffer *out, uint64_t hash)
{
    uint64_t whole = 2 + hash % 40 * (1 + (hash >> 8) % 120);
    buffer_append_u64(out, whole);
    if (hash >> 60 == 0)
        return;
    buffer_append_char(out, '.');
    unsigned digits = hash >> 62 == 0 ? 2 : 13;
    uint64_t fraction = chance_mix(hash);
    for (unsigned i = 1; i < digits; i++, fraction /= 10)
        buffer_append_char(out, (char)('0' + fraction % 10));
    buffer_append_char(out, (char)('1' + fraction % 9));
}

static void put_id(struct buffer *out, const char *name, uint64_t id, bool as_string)
{
    buffer_append_format(out, as_string ? "\"%s\":\"" : "\"%s\":", name);
    buffer_append_u64(out, id);
    if (as_string)
        buffer_append_char(out, '"');
}

/* "6/10/2026 7:30:00 PM", or "May 25 2026 10:00AM (IST)" from another upstream. */
static void put_start_time(struct buffer *out, const struct event *event)
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
        buffer_append_format(out, ",\"stime\":\"%.3s %d %d %d:%02d%s (IST)\"",
                             months + (ptrdiff_t)at.tm_mon * 3, at.tm_mday, at.tm_year + 1900, hour,
                             at.tm_min, half);
    else
        buffer_append_format(out, ",\"stime\":\"%d/%d/%d %d:%02d:%02d %s\"", at.tm_mon + 1,
                             at.tm_mday, at.tm_year + 1900, hour, at.tm_min, at.tm_sec, half);
}

/* ---- score ----------------------------------------------------------------------------------- */

static void write_cricket_score(const struct cricket_state *state, struct buffer *out)
{
    for (uint32_t i = 0; i <= state->current; i++) {
        const struct cricket_innings *innings = &state->innings[i];
        buffer_append_format(out, "%s%u/%u (%u.%u)", i == 0 ? "" : ", ", innings->runs,
                             innings->wickets, innings->balls / 6, innings->balls % 6);
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

void simulated_event_write_score(const struct event *event, struct buffer *out)
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
        put(out, event->stage == STAGE_IN_PLAY ? "Off" : "Finished");
        break;
    }
}

static void put_score(struct buffer *out, const char *name, const struct event *event)
{
    buffer_append_format(out, ",\"%s\":\"", name);
    simulated_event_write_score(event, out);
    buffer_append_char(out, '"');
}

/* ---- the catalog row ------------------------------------------------------------------------- */

static const char *event_status(const struct event *event)
{
    switch (event->stage) {
    case STAGE_UPCOMING:
    case STAGE_IN_PLAY:
        return "OPEN";
    case STAGE_FINISHED:
        return "SUSPENDED";
    case STAGE_CLOSED:
        return "CLOSED";
    case STAGE_SETTLED:
    case STAGE_GONE:
        break;
    }
    return "SETTLE";
}

/* The native form of the first market's best prices: rows of odds. */
static void put_row_section(struct buffer *out, const struct event *event, size_t index)
{
    const struct runner *runner = &event->markets[0].runners[index];
    buffer_append_format(out, "%s{\"sid\":%zu,\"psid\":%u,\"sno\":%zu", index == 0 ? "" : ",",
                         index + 1, 6 + (unsigned)index, index + 1);
    put_text(out, "gstatus", runner_statuses[runner->status]);
    put_text(out, "nat", runner->name);
    put(out, ",\"odds\":[");
    if (runner->status == RUNNER_ACTIVE && event->offered) {
        put(out, "{\"odds\":");
        price_append(out, price_ladder_at(runner->tick));
        put(out, ",\"otype\":\"back\",\"oname\":\"back1\",\"tno\":0,\"size\":");
        put_size(out, chance_mix(event->salt + index * 2 + runner->size_epoch));
        put(out, "},{\"odds\":");
        price_append(out, price_ladder_at(runner->tick + runner->spread));
        put(out, ",\"otype\":\"lay\",\"oname\":\"lay1\",\"tno\":0,\"size\":");
        put_size(out, chance_mix(event->salt + index * 2 + 1 + runner->size_epoch));
        put(out, "}");
    }
    put(out, "]}");
}

static bool has_fancies(const struct event *event)
{
    return event->sport == SPORT_CRICKET;
}

void simulated_event_write_row(const struct event *event, struct buffer *out)
{
    bool strings = event->serial % 7 == 3, racing = event->sport >= SPORT_HORSE_RACING;
    bool in_play = event->stage == STAGE_IN_PLAY;
    const struct market *first = &event->markets[0];
    const char *quote = event->serial % 12 == 4 ? "\"" : "";
    buffer_append_format(out, "{\"gmid\":%s%s%s", quote, event->id.digits, quote);
    put_text(out, "ename", event->name);
    put_number(out, "etid", sport_ids[event->sport]);
    buffer_append_format(out, ",\"providerEventId\":\"px-%u-%s\"", sport_ids[event->sport],
                         event->id.digits);
    put_number(out, "cid", 6000000 + chance_mix(event->salt) % 1000000);
    put_text(out, "cname", event->competition);
    put_bool(out, "iplay", in_play, strings);
    put_start_time(out, event);
    put_bool(out, "tv", event->serial % 3 != 0, strings);
    put_bool(out, "bm", !racing, strings);
    put_bool(out, "f", has_fancies(event), strings);
    put_number(out, "f1", has_fancies(event) ? 1 : 0);
    put_number(out, "iscc", 0);
    put_number(out, "mid", first->id);
    put_text(out, "mname", first->native_name);
    put_text(out, "status", event_status(event));
    put_number(out, "rc", first->runner_count);
    put_number(out, "gscode", in_play ? 1 : 0);
    put_number(out, "m", 1);
    put_number(out, "oid", 0);
    put_text(out, "gtype", "match");
    put_score(out, "score", event);
    /* A name may be written with escapes: it is the same name. */
    put(out, event->serial % 16 == 9 ? ",\"feed\\u005fsource\":\"sim-b\""
                                     : ",\"feed_source\":\"sim-a\"");
    put(out, ",\"section\":[");
    for (size_t i = 0; !racing && i < first->runner_count; i++)
        put_row_section(out, event, i);
    put(out, "]}");
}

/* ---- exchange and bookmaker markets ---------------------------------------------------------- */

/* BACK1 in capitals while suspended. */
static void put_side(struct buffer *out, bool back, bool capitals, uint32_t level)
{
    const char *name = back ? (capitals ? "BACK" : "back") : (capitals ? "LAY" : "lay");
    buffer_append_format(out, ",\"otype\":\"%s\",\"oname\":\"%s%u\",\"tno\":%u}",
                         back ? "back" : "lay", name, level + 1, level);
}

struct writing {
    struct buffer *out;
    const struct event *event;
    const struct market *market;
    uint64_t salt; /* of the market */
};

static void put_exchange_levels(const struct writing *writing, const struct runner *runner,
                                size_t index, bool back)
{
    struct buffer *out = writing->out;
    bool suspended = writing->market->status == MARKET_SUSPENDED;
    put(out, back ? "\"availableToBack\":[" : "\"availableToLay\":[");
    uint32_t best = back ? runner->tick : runner->tick + runner->spread;
    for (uint32_t level = 0; level < 3; level++) {
        if (back ? best < level : best + level >= PRICE_LADDER_TICKS)
            break; /* the ladder ends here */
        put(out, level == 0 ? "{\"price\":" : ",{\"price\":");
        price_append(out, price_ladder_at(back ? best - level : best + level));
        put(out, ",\"size\":");
        put_size(out, chance_mix(writing->salt + index * 16 + level * 2 + back +
                                 (uint64_t)(runner->size_epoch / (level + 1)) * 1024));
        put_side(out, back, suspended, level);
    }
    put(out, "]");
}

/* One level that counts and two that are empty; price1 is the price as it is spoken: 1.85 is 85. */
static void put_bookmaker_levels(const struct writing *writing, const struct runner *runner,
                                 size_t index, bool back)
{
    struct buffer *out = writing->out;
    bool suspended = writing->market->status == MARKET_SUSPENDED;
    uint32_t fair = 100 * CHANCE_ONE / runner->chance_ppm;
    uint32_t price = fair - fair / 100 > 101 ? fair - fair / 100 - 1 : 101;
    if (!back)
        price += 2 + price / 50;
    put(out, back ? "\"availableToBack\":[" : "\"availableToLay\":[");
    for (uint32_t level = 0; level < 3; level++) {
        bool quoted = level == 0 && !suspended;
        put(out, level == 0 ? "{\"price\":" : ",{\"price\":");
        price_append_two_decimals(out, quoted ? price : 0);
        put_number(out, "price1", quoted ? price - 100 : 0);
        put(out, ",\"size\":");
        if (quoted)
            buffer_append_u64(
                out, 1000 * (1 + chance_mix(writing->salt + index + runner->size_epoch) % 500));
        else
            put(out, "0");
        put_side(out, back, suspended, level);
    }
    put(out, "]");
}

static void put_racing_details(const struct writing *writing, size_t index)
{
    const struct event *event = writing->event;
    struct buffer *out = writing->out;
    char jockey[NAME_SIZE], trainer[NAME_SIZE];
    struct chance chance = {event->salt + index};
    name_player(&chance, jockey);
    name_player(&chance, trainer);
    const char *name = strchr(writing->market->runners[index].name, ' ');
    put_text(out, "rname", name == NULL ? "" : name + 1);
    put_text(out, "jname", event->sport == SPORT_HORSE_RACING ? jockey : "");
    put_text(out, "tname", trainer);
    put_number(out, "hage", 2 + chance_below(&chance, 7));
    buffer_append_format(out, ",\"himg\":\"silk-%u.png\"", chance_below(&chance, 9000) + 1000);
    put_number(out, "adfa", 0);
    put_text(out, "rdt", "");
    put_number(out, "cno", index + 1);
    put_number(out, "sdraw", event->racing.draw[index]);
}

static void put_runner(const struct writing *writing, size_t index)
{
    const struct runner *runner = &writing->market->runners[index];
    struct buffer *out = writing->out;
    bool exchange = writing->market->type == MARKET_MATCH;
    put(out, index == 0 ? "{" : ",{");
    put_id(out, "selectionId", runner->selection_id, writing->salt % 2 == 0);
    put_text(out, "runnerName", runner->name);
    put_text(out, "status", runner_statuses[runner->status]);
    /* Upstream numbers rows 1, 2, 3, and a late one 2.1. */
    if (index == 2 && writing->event->serial % 6 == 1)
        put(out, ",\"sno\":2.1");
    else
        put_number(out, "sno", index + 1);
    put_number(out, "sortPriority", index + 1);
    if (writing->event->sport >= SPORT_HORSE_RACING && exchange)
        put_racing_details(writing, index);
    put(out, ",\"ex\":{");
    if (runner->status != RUNNER_ACTIVE) {
        put(out, "\"availableToBack\":[],\"availableToLay\":[]}}");
        return;
    }
    if (exchange) {
        put_exchange_levels(writing, runner, index, true);
        put(out, ",");
        put_exchange_levels(writing, runner, index, false);
    } else {
        put_bookmaker_levels(writing, runner, index, true);
        put(out, ",");
        put_bookmaker_levels(writing, runner, index, false);
    }
    put(out, "}}");
}

/* ---- fancy markets --------------------------------------------------------------------------- */

static void put_section_price(const struct writing *writing, const struct section *section,
                              bool back)
{
    struct buffer *out = writing->out;
    bool suspended = section->status == SECTION_SUSPENDED;
    /* "-" is what some upstreams write for "no price". */
    put(out, back ? "{\"odds\":" : ",{\"odds\":");
    if (suspended)
        put(out, section->sid % 3 == 0 ? "\"-\"" : "0");
    else
        buffer_append_u64(out, back ? section->line + section->spread : section->line);
    put(out, ",\"size\":");
    buffer_append_u64(out, suspended                               ? 0
                           : writing->market->type == MARKET_FANCY ? 100
                                                                   : 50000 + section->sid * 1000);
    put_side(out, back, suspended, 0);
}

static void put_section(const struct writing *writing, const struct section *section, bool first)
{
    struct buffer *out = writing->out;
    put(out, first ? "{" : ",{");
    put_id(out, "sid", section->sid, false);
    put_number(out, "psid", section->sid);
    if (section->sid % 9 == 2)
        put(out, ",\"sno\":2.1");
    else
        put_number(out, "sno", section->sid);
    put_number(out, "psrno", section->sid);
    put_text(out, "gstatus", section_statuses[section->status]);
    put_text(out, "nat", section->name);
    put_number(out, "gscode", section->status == SECTION_SUSPENDED ? 0 : 1);
    put_number(out, "max", 100000);
    put_number(out, "min", 100);
    put_text(out, "rem", "");
    put_bool(out, "br", section->status == SECTION_BALL_RUNNING, writing->salt % 5 == 0);
    put(out, ",\"odds\":[");
    put_section_price(writing, section, true);
    if (writing->market->type != MARKET_FANCY2) /* khado and meter are quoted one way */
        put_section_price(writing, section, false);
    put(out, "]}");
}

/* ---- a market -------------------------------------------------------------------------------- */

static void put_market_head(const struct writing *writing)
{
    const struct event *event = writing->event;
    const struct market *market = writing->market;
    struct buffer *out = writing->out;
    bool strings = event->serial % 7 == 3, in_play = event->stage == STAGE_IN_PLAY;
    size_t index = (size_t)(market - event->markets);
    buffer_append_format(out, "%s{\"marketId\":\"1.%llu\"", index == 0 ? "" : ",",
                         (unsigned long long)market->id);
    put_text(out, "marketName", market->name);
    /* The event's id, this time as text. */
    buffer_append_format(out, ",\"gmid\":\"%s\"", event->id.digits);
    put_number(out, "mid", market->id);
    put_number(out, "pmid", market->id);
    put_text(out, "mname", market->native_name);
    put_text(out, "gtype", type_names[market->type]);
    put_text(out, "status", market_statuses[market->status]);
    put_score(out, "score", event);
    put_text(out, "rem", event->remark);
    put_number(out, "rc", market->runner_count > 0 ? market->runner_count : market->section_count);
    put_bool(out, "visible", true, strings);
    put(out, ",\"pid\":0,\"gscode\":1,\"maxb\":1");
    put_number(out, "sno", index + 1);
    put(out, ",\"dtype\":0,\"ocnt\":6,\"m\":0,\"max\":250000,\"min\":100");
    put_bool(out, "biplay", true, strings);
    put(out, ",\"umaxbof\":0");
    put_bool(out, "boplay", true, strings);
    put_bool(out, "iplay", in_play, strings);
    put(out, ",\"btcnt\":0,\"company\":null");
    put(out, event->serial % 16 == 9 ? ",\"t\\u0076\":true" : ",\"tv\":true");
    buffer_append_format(out, ",\"tvChannel\":\"https://tv.invalid/%s\",\"odd_type\":\"%s\"",
                         event->id.digits, market->runner_count > 0 ? "decimal" : "line");
}

static void put_market(const struct writing *writing)
{
    const struct market *market = writing->market;
    put_market_head(writing);
    if (market->runner_count > 0) {
        put(writing->out, ",\"runners\":[");
        for (size_t i = 0; i < market->runner_count; i++)
            put_runner(writing, i);
    } else {
        put(writing->out, ",\"section\":[");
        bool first = true;
        for (size_t i = 0; i < market->section_count; i++) {
            if (!market->sections[i].shown)
                continue;
            put_section(writing, &market->sections[i], first);
            first = false;
        }
    }
    put(writing->out, "]}");
}

void simulated_event_write_markets(const struct event *event, struct buffer *out)
{
    put(out, "[");
    for (size_t m = 0; m < event->market_count && event->offered; m++) {
        struct writing writing = {.out = out,
                                  .event = event,
                                  .market = &event->markets[m],
                                  .salt = chance_mix(event->salt ^ event->markets[m].id)};
        put_market(&writing);
    }
    put(out, "]");
}
