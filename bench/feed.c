/*
 * A feed for bench/run.py: publishes changed odds into an odds store of any engine, so many a
 * second.
 *
 *   feed URI SECONDS (FIRST COUNT RATE FILE)…
 *
 * Each group of four publishes FILE as the odds of the events (cricket) FIRST, FIRST + 1, … in
 * turn, COUNT of them, RATE times a second in all. FILE holds "turn":"00000000" once, whose digits
 * count up, so that every publication changes something. Writes a JSON array: how often each group
 * was published, which is less than asked for when the store takes its time.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stores/odds_feed.h"

#define GROUPS_MAX 8
#define TURN "\"turn\":\""
#define TURN_DIGITS 8

struct group {
    uint64_t first, count, rate;
    char *document;
    size_t size;
    char *turn; /* its digits, in the document */
    uint64_t published;
};

static void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "feed: %s: %s\n", what, why);
    exit(1);
}

static uint64_t read_number(const char *given)
{
    uint64_t number = 0;
    if (text_to_u64(text_of(given), UINT64_MAX / 2, &number) != STATUS_OK || number == 0)
        fail(given, "is not a number above zero");
    return number;
}

static void read_document(struct group *group, const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        fail(path, "cannot be opened");
    struct buffer document = {0};
    buffer_reserve(&document, ODDS_VALUE_MAX);
    document.size = fread(document.data, 1, ODDS_VALUE_MAX, file);
    (void)fclose(file);
    (void)buffer_string(&document);
    group->document = document.data;
    group->size = document.size;
    group->turn = strstr(group->document, TURN);
    if (group->turn == NULL)
        fail(path, "has no turn");
    group->turn += sizeof TURN - 1;
    if (strspn(group->turn, "0123456789") != TURN_DIGITS)
        fail(path, "has not eight digits for its turn");
}

static void publish(struct odds_store *store, struct group *group)
{
    char digits[TURN_DIGITS + 1];
    char id[32];
    struct error error = {0};
    struct odds_change change = {.kind = ODDS_MARKETS, .bytes = group->document};
    change.size = group->size;
    (void)snprintf(id, sizeof id, "%" PRIu64, group->first + group->published % group->count);
    (void)snprintf(digits, sizeof digits, "%08" PRIu32,
                   (uint32_t)(++group->published % 100000000U));
    memcpy(group->turn, digits, TURN_DIGITS);
    if (sport_from_key(TEXT("cricket"), &change.sport) != STATUS_OK ||
        event_id_parse(text_of(id), &change.event) != STATUS_OK)
        fail(id, "is not an event id");
    if (odds_store_publish(store, &change, 1, &error) != STATUS_OK)
        fail("publishing", error.text);
}

/* Whoever is due first, until `seconds` are over. What could not be done in time is not made up
 * for. */
static void run(struct odds_store *store, struct group *groups, size_t count, uint64_t seconds)
{
    CHECK(count > 0 && count <= GROUPS_MAX);
    uint64_t now_ns = clock_monotonic_ns();
    uint64_t end_ns = now_ns + seconds * 1000000000U;
    uint64_t due_ns[GROUPS_MAX] = {0};
    for (size_t i = 0; i < count; i++)
        due_ns[i] = now_ns;
    while (now_ns < end_ns) {
        size_t next = 0;
        for (size_t i = 1; i < count; i++) {
            if (due_ns[i] < due_ns[next])
                next = i;
        }
        if (due_ns[next] > now_ns) {
            uint64_t wait_ns = due_ns[next] - now_ns;
            const struct timespec rest = {.tv_sec = (time_t)(wait_ns / 1000000000U),
                                          .tv_nsec = (long)(wait_ns % 1000000000U)};
            (void)nanosleep(&rest, NULL);
        } else {
            publish(store, &groups[next]);
            due_ns[next] += 1000000000U / groups[next].rate;
            if (due_ns[next] < now_ns)
                due_ns[next] = now_ns;
        }
        now_ns = clock_monotonic_ns();
    }
}

int main(int argc, char **argv)
{
    if (argc < 7 || (argc - 3) % 4 != 0 || (argc - 3) / 4 > GROUPS_MAX)
        fail("usage", "see the head of bench/feed.c");
    struct group groups[GROUPS_MAX] = {0};
    size_t count = (size_t)(argc - 3) / 4;
    for (size_t i = 0; i < count; i++) {
        char **given = argv + 3 + 4 * i;
        groups[i].first = read_number(given[0]);
        groups[i].count = read_number(given[1]);
        groups[i].rate = read_number(given[2]);
        read_document(&groups[i], given[3]);
    }
    struct odds_store *store = NULL;
    struct error error = {0};
    const struct odds_store_options options = {.uri = argv[1], .timeout_ms = 10000};
    if (odds_store_open(&store, &options, &error) != STATUS_OK)
        fail("store", error.text);
    run(store, groups, count, read_number(argv[2]));
    odds_store_close(&store);
    for (size_t i = 0; i < count; i++) {
        (void)printf("%c%" PRIu64, i == 0 ? '[' : ',', groups[i].published);
        memory_free(groups[i].document);
    }
    (void)puts("]");
    return 0;
}
