/*
 * A simulated event as an upstream writes it: the catalog row and the odds document, in the derived
 * form of the interface, with members that must stay hidden and the irregularities of real feeds.
 * Values that look random are hashes of the event's salt, so an event that has not moved gives the
 * same document.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/hash.h"
#include "demo/event.h"

static const char *const type_names[] = {
    [MARKET_MATCH] = "match",   [MARKET_BOOKMAKER] = "match1", [MARKET_FANCY] = "fancy",
    [MARKET_FANCY1] = "fancy1", [MARKET_FANCY2] = "fancy2",    [MARKET_ODDEVEN] = "oddeven",
};
static const char *const market_statuses[] = {"OPEN", "SUSPENDED", "CLOSED", "SETTLE", "VOID"};
static const char *const runner_statuses[] = {"ACTIVE", "WINNER",  "LOSER",
                                              "PLACED", "REMOVED", "REMOVED_VACANT"};
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

static struct value runner_name(const struct event *event, const struct market *market,
                                uint32_t index)
{
    struct value value;
    if (event->table->race != NULL) {
        (void)snprintf(value.text, sizeof value.text, "%u. %.40s", index + 1, event->sides[index]);
        return value;
    }
    struct text rest = text_of(market->plan->runners), name = text_cut(&rest, '|');
    for (; index > 0; index--)
        name = text_cut(&rest, '|');
    size_t skipped = name.at[0] == '@' || name.at[0] == '#';
    (void)snprintf(value.text, sizeof value.text, "%s%.*s",
                   skipped == 0 ? "" : event->sides[name.at[0] == '#'], (int)(name.size - skipped),
                   name.at + skipped);
    return value;
}

/* The same name has the same selection id in all markets. Some upstreams use ids too large for a
 * double. */
static uint64_t selection_id(const struct event *event, const char *name)
{
    return 10000000 + hash_string(event->salt, name) % 80000000 +
           (event->serial % 11 == 5 ? 9007199254740993U : 0);
}

/* ---- the catalog row ------------------------------------------------------------------------- */

static void append_score(const struct event *event, struct buffer *out)
{
    if (event->stage >= STAGE_IN_PLAY)
        event->table->score(event, out);
}

void simulated_event_write_row(const struct event *event, struct buffer *out)
{
    const struct market *first = &event->markets[0];
    const char *quote = event->serial % 12 == 4 ? "`" : "";
    bool in_play = event->stage == STAGE_IN_PLAY, race = event->table->race != NULL;
    bool fancies = event->sport == SPORT_CRICKET;
    put(out,
        "{`gmid`:%s%s%s,`ename`:`%s`,`etid`:%u,`providerEventId`:`px-%u-%s`,`cid`:%" PRIu64
        ",`cname`:`%s`,`iplay`:%s,`stime`:`%s`,`tv`:%s,`bm`:%s,`f`:%s,`f1`:%d,`iscc`:0,"
        "`mid`:%" PRIu64 ",`mname`:`%s`,`status`:`%s`,`rc`:%u,`gscode`:%d,`m`:1,`oid`:0,"
        "`gtype`:`match`,`score`:`",
        quote, event->id.digits, quote, event->name, event->table->id, event->table->id,
        event->id.digits, 6000000 + chance_mix(event->salt) % 1000000, event->competition,
        boolean(event, in_play), start_time(event).text, boolean(event, event->serial % 3 != 0),
        boolean(event, !race), boolean(event, fancies), fancies, first->id,
        first->plan->native_name, event_statuses[event->stage], first->runner_count, in_play);
    append_score(event, out);
    /* JSON may write a name with escapes; it is still the same name. */
    put(out, "`,`%s`,`section`:[]}",
        event->serial % 16 == 9 ? "feed\\u005fsource`:`sim-b" : "feed_source`:`sim-a");
}

/* ---- exchange and bookmaker markets ---------------------------------------------------------- */

struct writing {
    struct buffer *out;
    const struct event *event;
    const struct market *market;
    uint64_t salt; /* of the market */
};

/* Names are in capitals while suspended: BACK1. */
static void put_side(const struct writing *writing, bool back, uint32_t level)
{
    bool capitals = writing->market->status == MARKET_SUSPENDED;
    put(writing->out, ",`otype`:`%s`,`oname`:`%s%u`,`tno`:%u}", back ? "back" : "lay",
        back ? (capitals ? "BACK" : "back") : (capitals ? "LAY" : "lay"), level + 1, level);
}

/* An exchange has three levels. A bookmaker has one real level and two empty ones; its price1 is
 * the price as people say it: 1.85 is 85. */
static void put_level(const struct writing *writing, const struct runner *runner, uint32_t index,
                      bool back, uint32_t level)
{
    uint32_t best = back ? runner->tick : runner->tick + runner->spread;
    uint64_t hash = chance_mix(writing->salt + index * 16 + level * 2 + back +
                               (uint64_t)(runner->size_epoch / (level + 1)) * 1024);
    uint32_t fair = 100 * CHANCE_ONE / runner->chance_ppm;
    uint32_t paid =
        (fair - fair / 100 > 101 ? fair - fair / 100 - 1 : 101) + (back ? 0 : 2 + fair / 50);
    if (writing->market->plan->type == MARKET_MATCH) {
        if (back ? best < level : best + level >= PRICE_LADDER_TICKS)
            return; /* the ladder ends here */
        put(writing->out, "{`price`:%s,`size`:%s", price(back ? best - level : best + level).text,
            stake(hash).text);
    } else if (level > 0 || writing->market->status == MARKET_SUSPENDED) {
        put(writing->out, "{`price`:0.00,`price1`:0,`size`:0");
    } else {
        put(writing->out, "{`price`:%u.%02u,`price1`:%u,`size`:%u", paid / 100, paid % 100,
            paid - 100, 1000 * (1 + (uint32_t)(hash % 500)));
    }
    put_side(writing, back, level);
}

static void put_levels(const struct writing *writing, const struct runner *runner, uint32_t index,
                       bool back)
{
    put(writing->out, back ? "`availableToBack`:[" : ",`availableToLay`:[");
    for (uint32_t level = 0; level < 3 && runner->status == RUNNER_ACTIVE; level++)
        put_level(writing, runner, index, back, level);
    put(writing->out, "]");
}

static void put_racing_details(const struct writing *writing, uint32_t index)
{
    const struct event *event = writing->event;
    struct chance chance = {event->salt + index};
    char names[2][NAME_SIZE];
    for (size_t i = 0; i < 2; i++)
        name_make(&chance, "@f @s@e", 0, names[i], NAME_SIZE);
    put(writing->out,
        ",`rname`:`%s`,`jname`:`%s`,`tname`:`%s`,`hage`:%u,`himg`:`silk-%u.png`,`adfa`:0,`rdt`:``,"
        "`cno`:%u,`sdraw`:%u",
        event->sides[index], event->sport == SPORT_HORSE_RACING ? names[0] : "", names[1],
        2 + chance_below(&chance, 7), chance_below(&chance, 9000) + 1000, index + 1,
        (index * 5 + event->serial) % event->side_count + 1);
}

/* A bookmaker follows the exchange, runner by runner. */
static void put_runner(const struct writing *writing, uint32_t index)
{
    const struct event *event = writing->event;
    const struct runner *runner = &event->markets[0].runners[index];
    if (writing->market->plan->type != MARKET_BOOKMAKER)
        runner = &writing->market->runners[index];
    const struct value name = runner_name(event, writing->market, index);
    const char *quote = writing->salt % 2 == 0 ? "`" : "";
    put(writing->out,
        "{`selectionId`:%s%" PRIu64 "%s,`runnerName`:`%s`,`status`:`%s`,`sno`:%s,"
        "`sortPriority`:%u",
        quote, selection_id(event, name.text), quote, name.text, runner_statuses[runner->status],
        row_number(index + 1, index == 2 && event->serial % 6 == 1).text, index + 1);
    if (event->table->race != NULL)
        put_racing_details(writing, index);
    put(writing->out, ",`ex`:{");
    put_levels(writing, runner, index, true);
    put_levels(writing, runner, index, false);
    put(writing->out, "}}");
}

/* ---- fancy markets --------------------------------------------------------------------------- */

/* Some upstreams write "-" for "no price". */
static void put_section_price(const struct writing *writing, const struct section *section,
                              bool suspended, bool back)
{
    bool fancy = writing->market->plan->type == MARKET_FANCY;
    struct value odds = {"`-`"};
    if (!suspended || section->sid % 3 != 0)
        (void)snprintf(odds.text, sizeof odds.text, "%u",
                       suspended ? 0 : section->line + (back ? section->spread : 0));
    put(writing->out, "{`odds`:%s,`size`:%u", odds.text,
        suspended ? 0
        : fancy   ? 100
                  : 50000 + section->sid * 1000);
    put_side(writing, back, 0);
}

static void put_section(const struct writing *writing, const struct section *section)
{
    const struct event *event = writing->event;
    bool suspended = writing->market->status != MARKET_OPEN;
    bool running = !suspended && event->sport == SPORT_CRICKET && event->cricket.ball_running;
    put(writing->out,
        "{`sid`:%u,`psid`:%u,`sno`:%s,`psrno`:%u,`gstatus`:`%s`,`nat`:`%s`,`gscode`:%d,"
        "`max`:100000,`min`:100,`rem`:``,`br`:%s,`odds`:[",
        section->sid, section->sid, row_number(section->sid, section->sid % 9 == 2).text,
        section->sid,
        suspended               ? "SUSPENDED"
        : running               ? "Ball Running"
        : section->sid % 5 == 0 ? "ACTIVE"
                                : "",
        section->name, !suspended, boolean(event, running));
    put_section_price(writing, section, suspended, true);
    if (writing->market->plan->type != MARKET_FANCY2) /* khado and meter are quoted one way */
        put_section_price(writing, section, suspended, false);
    put(writing->out, "]}");
}

/* ---- a market -------------------------------------------------------------------------------- */

static void put_market(const struct writing *writing, uint32_t number)
{
    const struct event *event = writing->event;
    const struct market *market = writing->market;
    struct section sections[SECTIONS_MAX];
    size_t lines = 0;
    bool has_runners = market->runner_count > 0;
    if (!has_runners)
        lines = event->table->lines(event, number, sections);
    put(writing->out,
        "{`marketId`:`1.%" PRIu64 "`,`marketName`:`%s`,`gmid`:`%s`,`mid`:%" PRIu64
        ",`pmid`:%" PRIu64 ",`mname`:`%s`,`gtype`:`%s`,`status`:`%s`,`score`:`",
        market->id, market->plan->name, event->id.digits /* this time as text */, market->id,
        market->id, market->plan->native_name, type_names[market->plan->type],
        market_statuses[market->status]);
    append_score(event, writing->out);
    put(writing->out,
        "`,`rem`:`%s`,`rc`:%zu,`visible`:%s,`pid`:0,`gscode`:1,`maxb`:1,`sno`:%u,`dtype`:0,"
        "`ocnt`:6,`m`:0,`max`:250000,`min`:100,`biplay`:%s,`umaxbof`:0,`boplay`:%s,`iplay`:%s,"
        "`btcnt`:0,`company`:null,`%s`:true,`tvChannel`:`https://tv.invalid/%s`,"
        "`odd_type`:`%s`,`%s`:[",
        event->remark, has_runners ? market->runner_count : lines, boolean(event, true), number + 1,
        boolean(event, true), boolean(event, true), boolean(event, event->stage == STAGE_IN_PLAY),
        event->serial % 16 == 9 ? "t\\u0076" : "tv", event->id.digits,
        has_runners ? "decimal" : "line", has_runners ? "runners" : "section");
    for (uint32_t i = 0; i < market->runner_count; i++)
        put_runner(writing, i);
    for (size_t i = 0; i < lines; i++)
        put_section(writing, &sections[i]);
    put(writing->out, "]}");
}

void simulated_event_write_markets(const struct event *event, struct buffer *out)
{
    struct writing writing = {.out = out, .event = event};
    buffer_append_char(out, '[');
    for (uint32_t m = 0; m < event->market_count && event->offered; m++) {
        writing.market = &event->markets[m];
        writing.salt = chance_mix(event->salt ^ writing.market->id);
        put_market(&writing, m);
    }
    buffer_append_char(out, ']');
}
