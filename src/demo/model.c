/* What the models of the sports have in common: how they name, end and decide what they play. */
#include "demo/event.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"

int64_t simulated_event_length_ms(enum sport sport)
{
    switch (sport) {
    case SPORT_CRICKET:
    case SPORT_FOOTBALL:
        return 360 * 1000;
    case SPORT_TENNIS:
        return 300 * 1000;
    case SPORT_HORSE_RACING:
        return 90 * 1000;
    case SPORT_GREYHOUND_RACING:
        break;
    }
    return 35 * 1000;
}

/* Two sides that cannot be mistaken for each other: the first letters of their names differ. */
void event_name_match(struct event *event)
{
    name_team(&event->chance, event->sport, event->home);
    do {
        name_team(&event->chance, event->sport, event->away);
    } while (strncmp(event->home, event->away, 6) == 0);
    (void)snprintf(event->name, sizeof event->name, "%s v %s", event->home, event->away);
    (void)snprintf(event->competition, sizeof event->competition, "%s",
                   name_competition(&event->chance, event->sport));
}

struct market *event_add_market(struct event *event, enum market_type type, const char *name,
                                const char *native_name, size_t runner_count, size_t section_count)
{
    CHECK(event->market_count < MARKETS_MAX && runner_count <= RUNNERS_MAX);
    struct market *market = &event->markets[event->market_count++];
    market->type = type;
    market->winners = 1;
    (void)snprintf(market->name, sizeof market->name, "%s", name);
    market->native_name = native_name;
    market->id = 200000000 + chance_mix(event->salt + event->market_count) % 100000000;
    market->runners = memory_alloc_zeroed(runner_count + 1, sizeof *market->runners);
    market->runner_count = runner_count;
    market->sections = memory_alloc_zeroed(section_count + 1, sizeof *market->sections);
    market->section_count = section_count;
    return market;
}

void event_name_runner(struct event *event, struct market *market, size_t index, const char *format,
                       ...)
{
    CHECK(index < market->runner_count);
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
