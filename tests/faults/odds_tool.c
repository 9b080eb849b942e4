/*
 * The processes of the odds store's fault tests (test_odds_faults.py), one a command. Not for
 * people.
 *
 *     odds_tool write URI       publishes N = 1, 2, … (a catalog and an event's odds in one batch,
 *                               with the odds of others), and prints N once it is acknowledged
 *     odds_tool fill URI SIZE   publishes tennis odds of SIZE bytes until one is refused; prints
 *                               its status and the number of those before
 *     odds_tool number URI      prints which N the catalog and the odds hold
 *     odds_tool watch URI       reads as a server does, for ever, and prints each new status; ends
 *                               with 1 when a read is torn or goes back
 *     odds_tool fresh URI       as `watch`, but reads from standard input which N a writer was told
 *                               is published; the store must never confirm an older one
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"
#include "base/text.h"
#include "feed/publication.h"
#include "stores/odds_feed.h"
#include "stores/odds_read.h"

#define OTHERS 40

static struct event_id event_number(unsigned number)
{
    char digits[16];
    struct event_id event = {0};
    (void)snprintf(digits, sizeof digits, "%u", number);
    CHECK(event_id_parse(text_of(digits), &event) == STATUS_OK);
    return event;
}

static struct odds_store *open_store(const char *uri, bool patiently)
{
    struct odds_store_options options = {.uri = uri, .timeout_ms = 20000, .create = !patiently};
    struct odds_store *store = NULL;
    struct error error = {{0}};
    /* Lives as long as the process. */
    static struct log *log;
    if (patiently && log == NULL)
        log = log_create(STDERR_FILENO, LOG_INFO, LOG_FORMAT_TEXT);
    options.log = log;
    options.patient = patiently;
    enum status status = odds_store_open(&store, &options, &error);
    if (status != STATUS_OK) {
        (void)printf("%s: %s\n", status_name(status), error.text);
        exit(1);
    }
    return store;
}

/* What a document holds first; 0 when there is none. */
static enum status read_number(struct odds_store *store, enum odds_kind kind, uint64_t *number,
                               uint64_t *version)
{
    struct odds_read read = {.kind = kind, .sport = SPORT_CRICKET, .event = event_number(1)};
    enum status status = odds_store_read(store, &read);
    if (status != STATUS_OK)
        return status;
    *number = read.value.bytes != NULL ? strtoull(read.value.bytes + 1, NULL, 10) : 0;
    *version = read.value.version;
    memory_free(read.value.bytes);
    return STATUS_OK;
}

static void say(const char *text)
{
    (void)printf("%s\n", text);
    (void)fflush(stdout);
}

/* ---- write, fill, number --------------------------------------------------------------------- */

static void fill_document(struct buffer *document, uint64_t number, size_t size)
{
    buffer_clear(document);
    buffer_append_format(document, "[%" PRIu64, number);
    while (document->size + 1 < size)
        buffer_append_char(document, ' ');
    buffer_append_char(document, ']');
}

static int write_numbers(const char *uri)
{
    struct odds_store *store = open_store(uri, false);
    struct buffer catalog = {0};
    struct buffer odds = {0};
    struct error error = {{0}};
    uint64_t number = 0;
    uint64_t version;
    srand((unsigned)getpid());
    CHECK(read_number(store, ODDS_CATALOG, &number, &version) == STATUS_OK);
    enum status status = STATUS_OK;
    while (status == STATUS_OK) {
        number++;
        fill_document(&catalog, number, 100 + (size_t)rand() % 60000);
        fill_document(&odds, number, 100 + (size_t)rand() % 20000);
        struct odds_change changes[3] = {
            {.kind = ODDS_CATALOG, .bytes = catalog.data, .size = catalog.size},
            {.kind = ODDS_MARKETS, .event = event_number(1), .bytes = odds.data, .size = odds.size},
            {.kind = ODDS_MARKETS,
             .event = event_number(2 + (unsigned)rand() % OTHERS),
             .bytes = rand() % 4 != 0 ? odds.data : NULL,
             .size = odds.size},
        };
        status = odds_store_publish(store, changes, 3, &error);
        if (status == STATUS_OK)
            (void)printf("%" PRIu64 "\n", number);
        else
            (void)printf("%s: %s\n", status_name(status), error.text);
        (void)fflush(stdout);
    }
    buffer_free(&catalog);
    buffer_free(&odds);
    odds_store_close(&store);
    return 1;
}

static int fill_store(const char *uri, size_t size)
{
    struct odds_store *store = open_store(uri, false);
    struct buffer document = {0};
    struct error error = {{0}};
    enum status status = STATUS_OK;
    unsigned count = 0;
    fill_document(&document, 1, size);
    for (; status == STATUS_OK && count < 100000; count++) {
        struct odds_change change = {.kind = ODDS_MARKETS,
                                     .sport = SPORT_TENNIS,
                                     .event = event_number(1000 + count),
                                     .bytes = document.data,
                                     .size = document.size};
        status = odds_store_publish(store, &change, 1, &error);
    }
    (void)printf("%s: %s\n%u\n", status_name(status), error.text, count - 1);
    /* What went in before is there, and the store can still be used and emptied. */
    for (unsigned i = 0; i + 1 < count; i++) {
        struct odds_read read = {
            .kind = ODDS_MARKETS, .sport = SPORT_TENNIS, .event = event_number(1000 + i)};
        CHECK(odds_store_read(store, &read) == STATUS_OK && read.value.size == document.size);
        memory_free(read.value.bytes);
    }
    struct feed_publication withdrawal = {0};
    status = feed_publication_withdraw_sport(&withdrawal, store, SPORT_TENNIS, &error);
    if (status == STATUS_OK)
        status = odds_store_publish(store, withdrawal.changes, withdrawal.count, &error);
    feed_publication_free(&withdrawal);
    (void)printf("%s\n", status_name(status));
    struct odds_change again = {.kind = ODDS_MARKETS,
                                .sport = SPORT_TENNIS,
                                .event = event_number(1),
                                .bytes = "[1]",
                                .size = 3};
    for (int i = 0; status == STATUS_OK && i < 5; i++)
        status = odds_store_publish(store, &again, 1, &error);
    (void)printf("%s\n", status_name(status));
    odds_store_close(&store);
    buffer_free(&document);
    return 0;
}

static int print_number(const char *uri)
{
    struct odds_store *store = open_store(uri, false);
    uint64_t numbers[2] = {0};
    uint64_t versions[2] = {0};
    int attempts = 0;
    enum status status;
    do { /* the two are read one after the other, and a writer may be at work */
        status = read_number(store, ODDS_CATALOG, &numbers[0], &versions[0]);
        if (status == STATUS_OK)
            status = read_number(store, ODDS_MARKETS, &numbers[1], &versions[1]);
    } while (status == STATUS_OK && versions[0] != versions[1] && attempts++ < 100);
    if (status == STATUS_OK)
        (void)printf("%" PRIu64 " %" PRIu64 "\n", numbers[0], numbers[1]);
    odds_store_close(&store);
    return status == STATUS_OK ? 0 : 1;
}

/* ---- watch ----------------------------------------------------------------------------------- */

/* The highest number seen, and in which opening of the store (the part of a version above 2^40). */
struct seen {
    uint64_t number;
    uint64_t epoch;
};

/* STATUS_INTERNAL, and said: what must never be seen. */
static enum status look(struct odds_store *store, struct seen *seen)
{
    struct event_id event = event_number(1);
    struct odds_versions versions;
    uint64_t number = 0;
    uint64_t version = 0;
    uint64_t stamp;
    enum status status = odds_store_stamp(store, &stamp);
    if (status == STATUS_OK)
        status = odds_store_versions(store, SPORT_CRICKET, &event, &versions);
    if (status != STATUS_OK)
        return status;
    if (versions.catalog != versions.odds) {
        /* A value that cannot be read any more has a version that is made up, so that it is
         * read. */
        status = read_number(store, ODDS_CATALOG, &number, &version);
        if (status == STATUS_OK)
            status = read_number(store, ODDS_MARKETS, &number, &version);
        if (status != STATUS_OK)
            return status;
        say("torn");
        return STATUS_INTERNAL;
    }
    status = read_number(store, ODDS_MARKETS, &number, &version);
    if (status != STATUS_OK)
        return status;
    if (number < seen->number && version >> 40 == seen->epoch) {
        say("went back");
        return STATUS_INTERNAL;
    }
    *seen = (struct seen){number, version >> 40};
    return STATUS_OK;
}

static int watch(const char *uri)
{
    struct odds_store *store = open_store(uri, true);
    struct event_id event = event_number(1);
    enum status said = STATUS_PENDING;
    struct seen seen = {0};
    for (;;) {
        enum status status = look(store, &seen);
        if (status == STATUS_INTERNAL)
            break;
        if (status != said)
            say(status_name(status));
        said = status;
        odds_store_note_interest(store, SPORT_CRICKET, &event);
        if (status != STATUS_OK)
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    odds_store_close(&store);
    return 1;
}

/* ---- fresh ----------------------------------------------------------------------------------- */

/* What a server keeps: an answer (here its number), and under which stamp it was right. */
struct kept {
    uint64_t stamp;
    uint64_t version;
    uint64_t number;
};

static uint64_t answer(struct odds_store *store, struct kept *kept, uint64_t counts[3])
{
    struct event_id event = event_number(1);
    struct odds_versions versions;
    uint64_t stamp = 0;
    CHECK(odds_store_stamp(store, &stamp) == STATUS_OK);
    if (stamp == kept->stamp) {
        counts[0]++;
        return kept->number;
    }
    CHECK(odds_store_versions(store, SPORT_CRICKET, &event, &versions) == STATUS_OK);
    counts[1]++;
    if (versions.odds != kept->version) {
        counts[2]++;
        CHECK(read_number(store, ODDS_MARKETS, &kept->number, &kept->version) == STATUS_OK);
        if (kept->version == versions.odds)
            kept->stamp = versions.stamp;
    } else {
        kept->stamp = versions.stamp;
    }
    return kept->number;
}

static int stay_fresh(const char *uri)
{
    struct odds_store *store = open_store(uri, true);
    struct kept kept = {0};
    uint64_t counts[3] = {0};
    uint64_t published = 0;
    char line[4096];
    size_t have = 0;
    for (;;) {
        /* Whatever has been acknowledged by now … */
        while (poll(&(struct pollfd){.fd = 0, .events = POLLIN}, 1, 0) > 0) {
            ssize_t got = read(0, line + have, sizeof line - 1 - have);
            if (got <= 0) {
                (void)printf("ok stamps=%" PRIu64 " versions=%" PRIu64 " reads=%" PRIu64
                             " published=%" PRIu64 "\n",
                             counts[0], counts[1], counts[2], published);
                odds_store_close(&store);
                return 0;
            }
            have += (size_t)got;
            line[have] = '\0';
            char *end;
            while ((end = memchr(line, '\n', have)) != NULL) {
                published = strtoull(line, NULL, 10);
                have -= (size_t)(end + 1 - line);
                memmove(line, end + 1, have);
            }
        }
        /* … is what an answer given now must hold, or something newer. */
        for (int i = 0; i < 20; i++) {
            uint64_t number = answer(store, &kept, counts);
            if (number < published) {
                (void)printf("stale: %" PRIu64 " after %" PRIu64 "\n", number, published);
                odds_store_close(&store);
                return 1;
            }
        }
    }
}

int main(int count, char **arguments)
{
    const char *command = count > 2 ? arguments[1] : "";
    const char *uri = count > 2 ? arguments[2] : "";
    if (strcmp(command, "write") == 0)
        return write_numbers(uri);
    if (strcmp(command, "fill") == 0 && count > 3)
        return fill_store(uri, strtoul(arguments[3], NULL, 10));
    if (strcmp(command, "number") == 0)
        return print_number(uri);
    if (strcmp(command, "watch") == 0)
        return watch(uri);
    if (strcmp(command, "fresh") == 0)
        return stay_fresh(uri);
    (void)fprintf(stderr, "usage: odds_tool write|fill|number|watch|fresh URI [SIZE]\n");
    return 2;
}
