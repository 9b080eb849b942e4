/*
 * Some time of the simulated feed, as fast as it is read: for bench/differences.py.
 *
 *   changes SEED EVENTS SECONDS
 *
 * All five sports, of each so many events, all of which clients poll. Writes two lines a second of
 * the feed's time: the events whose odds are published, as cricket/34000001, or withdrawn, as
 * -cricket/34000001, and the publication, as `croupier feed stream` reads it.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "demo/simulate.h"

#define BEGIN_MS INT64_C(1764000000000) /* any time of day will do, always the same */

static void write_line(const struct odds_change *changes, size_t count)
{
    (void)printf("\n{\"together\":[");
    for (size_t i = 0; i < count; i++) {
        const struct odds_change *change = &changes[i];
        bool odds = change->kind == ODDS_MARKETS;
        (void)printf("%s{\"%s\":\"%s\"", i > 0 ? "," : "",
                     change->size == 0 ? "withdraw"
                     : odds            ? "odds"
                                       : "catalog",
                     sport_key(change->sport));
        if (odds)
            (void)printf(",\"event\":\"%.*s\"", change->event.size, change->event.digits);
        if (change->size > 0)
            (void)printf(",\"document\":%.*s", (int)change->size, change->bytes);
        (void)printf("}");
    }
    (void)printf("]}\n");
}

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    struct simulator_options options = {.seed = strtoull(argv[1], NULL, 10),
                                        .sports = SPORT_SET_ALL,
                                        .events = (uint32_t)strtoul(argv[2], NULL, 10),
                                        .interval_ms = 1000};
    int64_t end_ms = BEGIN_MS + strtoll(argv[3], NULL, 10) * 1000;
    struct simulator *simulator = simulator_create(&options, BEGIN_MS);
    for (int64_t now_ms = BEGIN_MS; now_ms < end_ms; now_ms += 1000) {
        const struct odds_change *changes;
        size_t count;
        simulator_advance(simulator, now_ms, &changes, &count);
        for (size_t i = 0; i < count; i++) {
            if (changes[i].kind != ODDS_MARKETS)
                continue;
            (void)printf("%s%s/%.*s ", changes[i].size == 0 ? "-" : "", sport_key(changes[i].sport),
                         changes[i].event.size, changes[i].event.digits);
            simulator_note_interest(simulator, changes[i].sport, &changes[i].event, now_ms);
        }
        write_line(changes, count);
    }
    simulator_destroy(&simulator);
    return 0;
}
