/*
 * A simulated event as an upstream writes it: the catalog row and the odds document, in the derived
 * form of the interface, with members that must stay hidden and the irregularities of real feeds.
 * Values that look random are hashes of the event's salt, so an event that has not moved gives the
 * same document.
 */
#include <stdarg.h>
#include <time.h>

#include "base/hash.h"
#include "demo/event.h"
#include "demo/price_ladder.h"

static const char *const market_statuses[] = {"OPEN", "SUSPENDED", "CLOSED", "SETTLE", "VOID"};
static const char *const runner_statuses[] = {
    ['\0'] = "ACTIVE", ['W'] = "WINNER",  ['L'] = "LOSER",
    ['P'] = "PLACED",  ['R'] = "REMOVED", ['V'] = "REMOVED_VACANT"};
static const char *const event_statuses[] = {"OPEN",   "OPEN",   "SUSPENDED",
                                             "CLOSED", "SETTLE", "SETTLE"};

/* ---- values ---------------------------------------------------------------------------------- */

/* Appends a template in which ` stands for a quote, after a comma if an element precedes it. No
 * text of a simulated event needs escapes. */
static void PRINTF_LIKE(2, 3) put(struct buffer *out, const char *format, ...)
{
    char text[1536];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    CHECK(size > 0 && (size_t)size < sizeof text);
    for (char *at = text; *at != '\0'; at++)
        *at = *at == '`' ? '"' : *at;
    if (text[0] == '{' && out->size > 0 && out->data[out->size - 1] == '}')
        buffer_append_char(out, ',');
    buffer_append(out, text, (size_t)size);
}

struct value { /* a short text, for put */
    char text[96];
};

/* Some upstreams write booleans as strings. */
static const char *boolean(const struct event *event, bool value)
{
    if (event->serial % 7 == 3)
        return value ? "`true`" : "`false`";
    return value ? "true" : "false";
}

/* Upstream numbers rows 1, 2, 3, and a late one 2.1. */
static struct value row_number(uint32_t number, bool late)
{
    struct value value = {"2.1"};
    if (!late)
        value.text[decimal_write(value.text, number)] = '\0';
    return value;
}

/* An available stake: mostly like 283.3844663329566, sometimes 1500.25 or 40. */
static struct value stake(uint64_t hash)
{
    struct value value;
    uint64_t whole = 2 + hash % 40 * (1 + (hash >> 8) % 120), rest = chance_mix(hash);
    if (hash >> 60 == 0)
        (void)snprintf(value.text, sizeof value.text, "%" PRIu64, whole);
    else if (hash >> 62 == 0)
        (void)snprintf(value.text, sizeof value.text, "%" PRIu64 ".%" PRIu64, whole, 11 + rest % 9);
    else
        (void)snprintf(value.text, sizeof value.text, "%" PRIu64 ".%012" PRIu64 "%" PRIu64, whole,
                       rest % 1000000000000, 1 + rest % 9);
    return value;
}

static struct value price(uint32_t tick)
{
    struct value value;
    price_write(price_ladder_at(tick), value.text, sizeof value.text);
    return value;
}

/* "06/10/2026 07:30:00 PM", or "May 25 2026 10:00AM (IST)" from another upstream. */
static struct value start_time(const struct event *event)
{
    struct value value;
    bool indian = event->serial % 8 == 6;
    time_t seconds =
        (time_t)((event->start_ms + event->clock_shift_ms) / 1000) + (indian ? 19800 : 0);
    struct tm at = {0};
    (void)gmtime_r(&seconds, &at);
    (void)strftime(value.text, sizeof value.text,
                   indian ? "%b %d %Y %I:%M%p (IST)" : "%m/%d/%Y %I:%M:%S %p", &at);
    return value;
}

static struct text pattern_of(const struct market *market, const char *list, size_t index)
{
    struct text patterns = json_text_member(market->plan, text_of(list));
    return json_text_inside(json_text_element(patterns, index));
}

/* For put: a text of a table as a value. */
static struct value shown(struct text text)
{
    struct value value;
    (void)snprintf(value.text, sizeof value.text, "%.*s", (int)text.size, text.at);
    return value;
}

static struct value runner_name(const struct event *event, const struct market *market,
                                uint32_t index)
{
    struct value value;
    if (event->is_race)
        (void)snprintf(value.text, sizeof value.text, "%u. %.40s", index + 1, event->sides[index]);
    else
        sports_name(event->sports, event->sport, NULL, pattern_of(market, "runners", index),
                    event->sides, 0, value.text);
    return value;
}

/* The same name has the same selection id in all markets. Some upstreams use ids too large for a
 * double. */
static uint64_t selection_id(const struct event *event, const char *name)
{
    return 10000000 + hash_string(event->salt, name) % 80000000 +
           (event->serial % 11 == 5 ? 9007199254740993U : 0);
}

void simulated_event_write_row(const struct event *event, struct buffer *out)
{
    const struct market *first = &event->markets[0];
    const char *quote = event->serial % 12 == 4 ? "`" : "";
    const int64_t sport = table_number(event->table, "id");
    bool in_play = event->stage == STAGE_IN_PLAY, fancies = event->sport == SPORT_CRICKET;
    put(out,
        "{`gmid`:%s%s%s,`ename`:`%s`,`etid`:%" PRId64 ",`providerEventId`:`px-%" PRId64
        "-%s`,`cid`:%" PRIu64 ",`cname`:`%s`,`iplay`:%s,`stime`:`%s`,`tv`:%s,`bm`:%s,`f`:%s,"
        "`f1`:%d,`iscc`:0,`mid`:%" PRIu64 ",`mname`:`%s`,`status`:`%s`,`rc`:%u,`gscode`:%d,`m`:1,"
        "`oid`:0,`gtype`:`match`,`score`:`%s`,`%s`,`section`:[]}",
        quote, event->id.digits, quote, event->name, sport, sport, event->id.digits,
        6000000 + chance_mix(event->salt) % 1000000, event->competition, boolean(event, in_play),
        start_time(event).text, boolean(event, event->serial % 3 != 0),
        boolean(event, !event->is_race), boolean(event, fancies), fancies, first->id,
        shown(table_string(first->plan, "native")).text, event_statuses[event->stage],
        first->runner_count, in_play, shown(event->score).text,
        /* JSON may write a name with escapes; it is still the same name. */
        event->serial % 16 == 9 ? "feed\\u005fsource`:`sim-b" : "feed_source`:`sim-a");
}

/* ---- exchange and bookmaker markets ---------------------------------------------------------- */

struct writing {
    struct buffer *out;
    const struct event *event;
    const struct market *market;
    const struct runner *runners; /* of the market; a bookmaker follows the first market */
    struct text type;             /* of the market */
    uint64_t salt;                /* of the market */
};

/* Names are in capitals while suspended: BACK1. */
static void put_side(const struct writing *writing, bool back, uint32_t level)
{
    bool capitals = writing->market->status == MARKET_SUSPENDED;
    put(writing->out, ",`otype`:`%s`,`oname`:`%s%u`,`tno`:%u}", back ? "back" : "lay",
        back ? (capitals ? "BACK" : "back") : (capitals ? "LAY" : "lay"), level + 1, level);
}

/* An exchange has three levels; the ladder may end before. The lay is a tick or two above the
 * back. Trading never stops, so no two seconds of a market look the same. */
static void put_exchange_level(const struct writing *writing, uint32_t tick, uint64_t salt,
                               bool back, uint32_t level)
{
    uint64_t second = (uint64_t)writing->event->now_ms / 1000;
    uint32_t spread = chance_mix(salt + second / 8) % 4 == 0 ? 2 : 1;
    if (tick + spread >= PRICE_LADDER_TICKS)
        tick = PRICE_LADDER_TICKS - 1 - spread;
    uint32_t at = back ? tick - level : tick + spread + level;
    if (at >= PRICE_LADDER_TICKS)
        return;
    put(writing->out, "{`price`:%s,`size`:%s", price(at).text,
        stake(chance_mix(salt + level * 2 + back + second / (level + 1) * 1024)).text);
    put_side(writing, back, level);
}

/* A bookmaker has one real level and two empty ones; its price1 is the price as people say it: 1.85
 * is 85. */
static void put_bookmaker_level(const struct writing *writing, uint32_t chance_ppm, uint64_t salt,
                                bool back, uint32_t level)
{
    uint32_t fair = 100 * CHANCE_ONE / chance_ppm, paid = fair - fair / 100 - 1;
    paid = (paid > 101 ? paid : 101) + (back ? 0 : 2 + fair / 50);
    if (level > 0 || writing->market->status == MARKET_SUSPENDED)
        put(writing->out, "{`price`:0.00,`price1`:0,`size`:0");
    else
        put(writing->out, "{`price`:%u.%02u,`price1`:%u,`size`:%u", paid / 100, paid % 100,
            paid - 100, 1000 * (1 + (uint32_t)(chance_mix(salt + back) % 500)));
    put_side(writing, back, level);
}

static void put_levels(const struct writing *writing, uint32_t index, bool back)
{
    const struct runner *runner = &writing->runners[index];
    uint64_t salt = writing->salt + index * 16;
    put(writing->out, back ? "`availableToBack`:[" : ",`availableToLay`:[");
    for (uint32_t level = 0; level < 3 && runner->result == '\0'; level++)
        if (is_bookmaker(writing->market))
            put_bookmaker_level(writing, runner->chance_ppm, salt, back, level);
        else
            put_exchange_level(writing, runner->tick, salt, back, level);
    put(writing->out, "]");
}

static void put_racing_details(const struct writing *writing, uint32_t index)
{
    const struct event *event = writing->event;
    struct chance chance = {event->salt + index};
    char names[2][NAME_SIZE];
    for (size_t i = 0; i < 2; i++)
        sports_name(event->sports, event->sport, &chance, TEXT("@first @last@end"), NULL, 0,
                    names[i]);
    put(writing->out,
        ",`rname`:`%s`,`jname`:`%s`,`tname`:`%s`,`hage`:%u,`himg`:`silk-%u.png`,`adfa`:0,`rdt`:``,"
        "`cno`:%u,`sdraw`:%u",
        event->sides[index], event->sport == SPORT_HORSE_RACING ? names[0] : "", names[1],
        2 + chance_below(&chance, 7), chance_below(&chance, 9000) + 1000, index + 1,
        (index * 5 + event->serial) % event->side_count + 1);
}

static void put_runner(const struct writing *writing, uint32_t index)
{
    const struct event *event = writing->event;
    const struct value name = runner_name(event, writing->market, index);
    const char *quote = writing->salt % 2 == 0 ? "`" : "";
    put(writing->out,
        "{`selectionId`:%s%" PRIu64 "%s,`runnerName`:`%s`,`status`:`%s`,`sno`:%s,"
        "`sortPriority`:%u",
        quote, selection_id(event, name.text), quote, name.text,
        runner_statuses[(unsigned char)writing->runners[index].result],
        row_number(index + 1, index == 2 && event->serial % 6 == 1).text, index + 1);
    if (event->is_race)
        put_racing_details(writing, index);
    put(writing->out, ",`ex`:{");
    put_levels(writing, index, true);
    put_levels(writing, index, false);
    put(writing->out, "}}");
}

/* ---- fancy markets --------------------------------------------------------------------------- */

/* Some upstreams write "-" for "no price". */
static void put_section_price(const struct writing *writing, uint32_t sid, int64_t line, bool back)
{
    bool suspended = writing->market->status != MARKET_OPEN;
    uint32_t size = text_equals(writing->type, TEXT("fancy")) ? 100 : 50000 + sid * 1000;
    if (suspended)
        put(writing->out, "{`odds`:%s,`size`:0", sid % 3 == 0 ? "`-`" : "0");
    else
        put(writing->out, "{`odds`:%" PRId64 ",`size`:%u", line, size);
    put_side(writing, back, 0);
}

static void put_section(const struct writing *writing, uint32_t sid, int64_t line)
{
    const struct event *event = writing->event;
    const struct market *market = writing->market;
    bool suspended = market->status != MARKET_OPEN;
    struct value running = shown(table_string(event->table, "running"));
    bool runs = !suspended && event->stage == STAGE_IN_PLAY && event->now_ms / 1000 % 2 == 0 &&
                running.text[0] != '\0';
    struct chance chance = {event->salt + sid};
    char name[NAME_SIZE];
    sports_name(event->sports, event->sport, &chance, pattern_of(market, "sections", sid - 1),
                event->sides, 0, name);
    put(writing->out,
        "{`sid`:%u,`psid`:%u,`sno`:%s,`psrno`:%u,`gstatus`:`%s`,`nat`:`%s`,`gscode`:%d,"
        "`max`:100000,`min`:100,`rem`:``,`br`:%s,`odds`:[",
        sid, sid, row_number(sid, sid % 9 == 2).text, sid,
        suspended      ? "SUSPENDED"
        : runs         ? running.text
        : sid % 5 == 0 ? "ACTIVE"
                       : "",
        name, !suspended, boolean(event, runs));
    put_section_price(writing, sid, line + table_number(market->plan, "spread"), true);
    if (!text_equals(writing->type, TEXT("fancy2"))) /* khado and meter are quoted one way */
        put_section_price(writing, sid, line, false);
    put(writing->out, "]}");
}

/* ---- a market -------------------------------------------------------------------------------- */

static void put_market(const struct writing *writing, uint32_t number)
{
    const struct event *event = writing->event;
    const struct market *market = writing->market;
    struct value native = shown(table_string(market->plan, "native"));
    bool has_runners = market->runner_count > 0;
    size_t sections = is_bookmaker(market) ? 0 : json_text_count(market->odds) / 2;
    put(writing->out,
        "{`marketId`:`1.%" PRIu64 "`,`marketName`:`%s`,`gmid`:`%s`,`mid`:%" PRIu64
        ",`pmid`:%" PRIu64 ",`mname`:`%s`,`gtype`:`%s`,`status`:`%s`,`score`:`%s`,`rem`:`%s`,"
        "`rc`:%zu,`visible`:%s,`pid`:0,`gscode`:1,`maxb`:1,`sno`:%u,`dtype`:0,`ocnt`:6,`m`:0,"
        "`max`:250000,`min`:100,`biplay`:%s,`umaxbof`:0,`boplay`:%s,`iplay`:%s,`btcnt`:0,"
        "`company`:null,`%s`:true,`tvChannel`:`https://tv.invalid/%s`,`odd_type`:`%s`,`%s`:[",
        market->id, shown(table_string(market->plan, "name")).text,
        event->id.digits /* this time as text */, market->id, market->id, native.text,
        shown(writing->type).text, market_statuses[market->status], shown(event->score).text,
        shown(event->remark).text, has_runners ? market->runner_count : sections,
        boolean(event, true), number + 1, boolean(event, true), boolean(event, true),
        boolean(event, event->stage == STAGE_IN_PLAY), event->serial % 16 == 9 ? "t\\u0076" : "tv",
        event->id.digits, has_runners ? "decimal" : "line", has_runners ? "runners" : "section");
    for (uint32_t i = 0; i < market->runner_count; i++)
        put_runner(writing, i);
    for (size_t i = 0; i < sections && !has_runners; i++) { /* a section's number, and its line */
        int64_t sid, line;
        (void)json_text_integer(json_text_element(market->odds, 2 * i), &sid);
        (void)json_text_integer(json_text_element(market->odds, 2 * i + 1), &line);
        put_section(writing, (uint32_t)sid, line);
    }
    put(writing->out, "]}");
}

void simulated_event_write_markets(const struct event *event, struct buffer *out)
{
    buffer_append_char(out, '[');
    for (uint32_t m = 0; m < event->market_count && event->offered; m++) {
        const struct market *market = &event->markets[m];
        bool bookmaker = is_bookmaker(market);
        const struct writing writing = {.out = out,
                                        .event = event,
                                        .market = market,
                                        .runners =
                                            bookmaker ? event->markets[0].runners : market->runners,
                                        .type = table_string(market->plan, "type"),
                                        .salt = chance_mix(event->salt ^ market->id)};
        put_market(&writing, m);
    }
    buffer_append_char(out, ']');
}
