/*
 * The Redis engine of the odds store, one line of standard input at a time, for redis_store.py.
 * Not for people.
 *
 *     redis_tool URI TIMEOUT_MS [PREFIX]
 *
 *     stamp                       → stamp STATUS NUMBER
 *     versions SPORT [EVENT]      → versions STATUS STAMP CATALOG ODDS       (a version that is not
 *     known: -)
 *     read TAG SPORT [EVENT]      → read TAG STATUS VERSION MILLISECONDS SIZE BYTES      later,
 *     when it is over
 *     publish SPORT EVENT BYTES   → publish STATUS REASON
 *     note SPORT EVENT            → note
 *     ping [serve]                → ping STATUS REASON
 *     facts                       → facts reads=N errors=N reopened=N …
 *     herd COUNT SPORT EVENT      → herd STATUS=COUNT …        that many reads at once, when all
 *     are over
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "stores/odds_feed.h"
#include "stores/odds_read.h"

static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;
static struct odds_store *store;

static void say(const char *format, ...) PRINTF_LIKE(1, 2);
static void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    CHECK(pthread_mutex_lock(&output) == 0);
    (void)vprintf(format, arguments);
    (void)printf("\n");
    (void)fflush(stdout);
    CHECK(pthread_mutex_unlock(&output) == 0);
    va_end(arguments);
}

/* One word. */
static const char *word_of(enum status status)
{
    return status == STATUS_TIMEOUT ? "timeout" : status_name(status);
}

/* ---- words ----------------------------------------------------------------------------------- */

static struct text line_rest;

static struct text word(void)
{
    return text_cut(&line_rest, ' ');
}

static enum sport sport_word(void)
{
    enum sport sport;
    CHECK(sport_from_key(word(), &sport) == STATUS_OK);
    return sport;
}

/* False: there is none. */
static bool event_word(struct event_id *event)
{
    struct text text = word();
    if (text.size == 0)
        return false;
    CHECK(event_id_parse(text, event) == STATUS_OK);
    return true;
}

/* ---- verbs ----------------------------------------------------------------------------------- */

static void version_text(uint64_t version, char out[24])
{
    if (version == ODDS_VERSION_UNKNOWN)
        (void)snprintf(out, 24, "-");
    else
        (void)snprintf(out, 24, "%" PRIu64, version);
}

static void ask_stamp(void)
{
    uint64_t stamp = 0;
    enum status status = odds_store_stamp(store, &stamp);
    say("stamp %s %" PRIu64, word_of(status), stamp);
}

static void ask_versions(void)
{
    struct odds_versions versions = {0};
    struct event_id event;
    enum sport sport = sport_word();
    bool one = event_word(&event);
    enum status status = odds_store_versions(store, sport, one ? &event : NULL, &versions);
    if (status == STATUS_PENDING)
        versions.catalog = versions.odds = ODDS_VERSION_UNKNOWN;
    char catalog[24];
    char odds[24];
    version_text(versions.catalog, catalog);
    version_text(versions.odds, odds);
    say("versions %s %" PRIu64 " %s %s", word_of(status), versions.stamp, catalog, odds);
}

struct tagged {
    struct odds_read read; /* first */
    uint64_t started_ns;
    char tag[32];
};

static void tell_read(struct tagged *tagged, enum status status)
{
    const struct odds_value *value = &tagged->read.value;
    say("read %s %s %" PRIu64 " %" PRIu64 " %zu %.*s", tagged->tag, word_of(status), value->version,
        (clock_monotonic_ns() - tagged->started_ns) / 1000000, value->size,
        value->size > 60 ? 60 : (int)value->size, value->bytes == NULL ? "" : value->bytes);
    memory_free(value->bytes);
    memory_free(tagged->read.catalog.bytes);
    memory_free(tagged);
}

static void read_over(struct odds_read *read)
{
    tell_read((struct tagged *)(void *)read, read->result);
}

static void start_read(void)
{
    struct tagged *tagged = memory_alloc_zeroed(1, sizeof *tagged);
    struct text tag = word();
    CHECK(tag.size < sizeof tagged->tag);
    memcpy(tagged->tag, tag.at, tag.size);
    tagged->read.sport = sport_word();
    tagged->read.kind = event_word(&tagged->read.event) ? ODDS_MARKETS : ODDS_CATALOG;
    if (tagged->read.kind == ODDS_MARKETS)
        tagged->read.catalog.max = 1; /* as the server does, which wants the event's row with it */
    tagged->read.done = read_over;
    tagged->started_ns = clock_monotonic_ns();
    enum status status = odds_store_read(store, &tagged->read);
    if (status != STATUS_PENDING)
        tell_read(tagged, status);
}

static void publish(void)
{
    struct odds_change change = {.kind = ODDS_MARKETS, .sport = sport_word()};
    CHECK(event_word(&change.event));
    change.bytes = line_rest.at;
    change.size = line_rest.size;
    struct error error = {{0}};
    enum status status = odds_store_publish(store, &change, 1, &error);
    say("publish %s %s", word_of(status), error.text);
}

/* ---- a herd ---------------------------------------------------------------------------------- */

struct herd {
    pthread_mutex_t lock;
    pthread_cond_t over;
    size_t left;
    size_t counts[STATUS_INTERNAL + 1];
};

struct herd_read {
    struct odds_read read; /* first */
    struct herd *herd;
};

static void count_read(struct herd_read *of, enum status status)
{
    struct herd *herd = of->herd;
    CHECK(pthread_mutex_lock(&herd->lock) == 0);
    herd->counts[status]++;
    herd->left--;
    CHECK(pthread_cond_signal(&herd->over) == 0);
    CHECK(pthread_mutex_unlock(&herd->lock) == 0);
    memory_free(of->read.value.bytes);
    memory_free(of);
}

static void herd_over(struct odds_read *read)
{
    count_read((struct herd_read *)(void *)read, read->result);
}

static void run_herd(void)
{
    uint64_t count = 0;
    struct herd herd = {.lock = PTHREAD_MUTEX_INITIALIZER, .over = PTHREAD_COND_INITIALIZER};
    struct event_id event;
    CHECK(text_to_u64(word(), 1000000, &count) == STATUS_OK);
    enum sport sport = sport_word();
    CHECK(event_word(&event));
    herd.left = count;
    for (uint64_t i = 0; i < count; i++) {
        struct herd_read *read = memory_alloc_zeroed(1, sizeof *read);
        read->read = (struct odds_read){
            .kind = ODDS_MARKETS, .sport = sport, .event = event, .done = herd_over};
        read->herd = &herd;
        enum status status = odds_store_read(store, &read->read);
        if (status != STATUS_PENDING)
            count_read(read, status);
    }
    CHECK(pthread_mutex_lock(&herd.lock) == 0);
    while (herd.left > 0)
        CHECK(pthread_cond_wait(&herd.over, &herd.lock) == 0);
    CHECK(pthread_mutex_unlock(&herd.lock) == 0);
    struct buffer text = {0};
    for (size_t i = 0; i <= STATUS_INTERNAL; i++)
        if (herd.counts[i] > 0)
            buffer_append_format(&text, " %s=%zu", word_of((enum status)i), herd.counts[i]);
    say("herd%s", buffer_string(&text));
    buffer_free(&text);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static void tell_facts(void)
{
    struct odds_facts facts;
    odds_store_facts(store, &facts);
    say("facts reads=%" PRIu64 " errors=%" PRIu64 " reopened=%" PRIu64 " written=%" PRIu64
        " dropped=%" PRIu64 " connected=%d invalidations=%" PRIu64 " round_trip_ns=%" PRIu64
        " asks=%d",
        facts.reads, facts.errors, facts.reopened, facts.interest_written, facts.interest_dropped,
        (int)facts.connected, facts.invalidations, facts.round_trip_ns, (int)facts.asks);
}

static void obey(void)
{
    struct text verb = word();
    struct error error = {{0}};
    struct event_id event;
    if (text_equals(verb, TEXT("stamp"))) {
        ask_stamp();
    } else if (text_equals(verb, TEXT("versions"))) {
        ask_versions();
    } else if (text_equals(verb, TEXT("read"))) {
        start_read();
    } else if (text_equals(verb, TEXT("publish"))) {
        publish();
    } else if (text_equals(verb, TEXT("note"))) {
        enum sport sport = sport_word();
        CHECK(event_word(&event));
        odds_store_note_interest(store, sport, &event);
        say("note");
    } else if (text_equals(verb, TEXT("ping"))) {
        enum status status = odds_store_ping(
            store, text_equals(word(), TEXT("serve")) ? ODDS_TO_SERVE : ODDS_TO_READ, &error);
        say("ping %s %s", word_of(status), error.text);
    } else if (text_equals(verb, TEXT("herd"))) {
        run_herd();
    } else if (text_equals(verb, TEXT("facts"))) {
        tell_facts();
    } else {
        CHECK(false);
    }
}

int main(int count, char **arguments)
{
    uint64_t timeout_ms = 0;
    if (count < 3 || text_to_u64(text_of(arguments[2]), 60000, &timeout_ms) != STATUS_OK)
        return 2;
    struct log *log = log_create(STDERR_FILENO, LOG_INFO, LOG_FORMAT_TEXT);
    struct odds_store_options options = {.uri = arguments[1],
                                         .timeout_ms = (uint32_t)timeout_ms,
                                         .prefix = count > 3 ? arguments[3] : NULL,
                                         .patient = true,
                                         .feeds = count > 4,
                                         .log = log};
    struct error error = {{0}};
    if (odds_store_open(&store, &options, &error) != STATUS_OK) {
        say("%s", error.text);
        return 1;
    }
    say("open");
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t size; (size = getline(&line, &capacity, stdin)) > 0;) {
        line_rest = (struct text){line, (size_t)size - 1};
        obey();
    }
    free(line);
    odds_store_close(&store);
    log_destroy(&log);
    return 0;
}
