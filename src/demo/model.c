/* What the models of the sports have in common: how they name, end and decide what they play. */
#include "demo/event.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

int64_t simulated_event_length_ms(enum sport sport)
{
    static const int64_t seconds[SPORT_COUNT] = {
        [SPORT_CRICKET] = 360,     [SPORT_FOOTBALL] = 360,        [SPORT_TENNIS] = 300,
        [SPORT_HORSE_RACING] = 90, [SPORT_GREYHOUND_RACING] = 35,
    };
    return seconds[sport] * 1000;
}

static void name_side(struct event *event, char out[NAME_SIZE])
{
    if (event->sport == SPORT_TENNIS)
        name_player(&event->chance, out);
    else
        name_team(&event->chance, event->sport, out);
}

/* Two sides that cannot be mistaken for each other: the first letters of their names differ. */
void event_name_match(struct event *event)
{
    name_side(event, event->home);
    do {
        name_side(event, event->away);
    } while (strncmp(event->home, event->away, 6) == 0);
    (void)snprintf(event->name, sizeof event->name, "%s v %s", event->home, event->away);
    (void)snprintf(event->competition, sizeof event->competition, "%s",
                   name_competition(&event->chance, event->sport));
}

struct market *event_add_market(struct event *event, enum market_type type, const char *name,
                                const char *native_name)
{
    CHECK(event->market_count < MARKETS_MAX);
    struct market *market = &event->markets[event->market_count++];
    *market = (struct market){.type = type, .winners = 1, .name = name, .native_name = native_name};
    market->id = 200000000 + chance_mix(event->salt + event->market_count) % 100000000;
    market->runners = memory_alloc_zeroed(RUNNERS_MAX, sizeof *market->runners);
    return market;
}

void event_add_runner(struct event *event, struct market *market, const char *format, ...)
{
    CHECK(market->runner_count < RUNNERS_MAX);
    size_t index = market->runner_count++;
    struct runner *runner = &market->runners[index];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(runner->name, sizeof runner->name, format, arguments);
    va_end(arguments);
    runner->selection_id = 10000000 + chance_mix(market->id * 64 + index) % 80000000;
    /* Some upstreams number selections beyond what a double can hold. */
    if (event->serial % 11 == 5)
        runner->selection_id += 9007199254740993U;
    runner->noise = chance_between(&event->chance, -60, 60);
    runner->spread = 1;
}

void event_add_markets(struct event *event, const struct market_plan *plan)
{
    for (; plan->name != NULL; plan++) {
        struct market *market = event_add_market(event, plan->type, plan->name, plan->native_name);
        struct text rest = text_of(plan->runners);
        while (rest.size > 0) {
            struct text name = text_cut(&rest, '|');
            bool home = text_starts_with(name, TEXT("@home"));
            const char *side = home                                    ? event->home
                               : text_starts_with(name, TEXT("@away")) ? event->away
                                                                       : "";
            size_t skipped = side[0] == '\0' ? 0 : strlen("@home");
            event_add_runner(event, market, "%s%.*s", side, (int)(name.size - skipped),
                             name.at + skipped);
        }
    }
}

struct section_subject *event_add_section(struct market *market, const char *format, ...)
{
    size_t count = market->section_count++;
    market->sections =
        memory_resize(market->sections, market->section_count * sizeof *market->sections);
    struct section *section = &market->sections[count];
    *section = (struct section){.sid = (uint32_t)market->section_count};
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(section->name, sizeof section->name, format, arguments);
    va_end(arguments);
    return &section->subject;
}

void event_suspend(struct event *event, int64_t for_ms, const char *remark)
{
    event->suspended_until_ms = event->now_ms + for_ms;
    event->remark = remark;
}

void event_enter(struct event *event, enum stage stage)
{
    event->stage = stage;
    event->stage_ms = event->now_ms;
    event->changed = true;
}

void event_finish(struct event *event)
{
    event_enter(event, STAGE_FINISHED);
    event->remark = "Result awaited";
}

bool runner_is_in_play(const struct runner *runner)
{
    return runner->status == RUNNER_ACTIVE;
}

void market_decide(struct market *market, size_t winner)
{
    if (market->decided)
        return;
    for (size_t i = 0; i < market->runner_count; i++)
        if (runner_is_in_play(&market->runners[i]))
            market->runners[i].status = i == winner ? RUNNER_WINNER : RUNNER_LOSER;
    market->decided = true;
    market->status = MARKET_CLOSED;
}

void market_void(struct market *market)
{
    for (size_t i = 0; i < market->runner_count; i++)
        market->runners[i].status = RUNNER_REMOVED;
    market->decided = true;
    market->status = MARKET_VOID;
}

void market_set_chances(struct market *market, const uint32_t *ppm)
{
    for (size_t i = 0; i < market->runner_count; i++)
        market->runners[i].chance_ppm = ppm[i];
}

void market_set_two_chances(struct market *market, uint32_t ppm)
{
    CHECK(market->runner_count <= 2);
    market_set_chances(market, (const uint32_t[]){ppm, CHANCE_ONE - ppm});
}
