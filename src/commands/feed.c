/*
 * `croupier feed …`: publishing by hand or from a script, on the odds store directly. It needs no
 * server; a running server sees the change at once.
 */
#include <inttypes.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/stores.h"
#include "demo/simulate.h"
#include "feed/check.h"
#include "feed/publication.h"
#include "feed/stream.h"
#include "operator/times.h"
#include "stores/configured.h"

#define WITHIN_DEFAULT_SECONDS 60
#define WITHIN_MOST_SECONDS (366U * 86400U)

/* ---- shared by the commands ------------------------------------------------------------------ */

/* Opens the odds store of the configuration. The caller closes it. */
static struct odds_store *open_store_as(const struct command_line *line,
                                        struct odds_store_options as)
{
    struct odds_store_options options = odds_store_configured(command_config(line));
    struct odds_store *store = NULL;
    struct error *error = command_error(line);
    options.create = as.create;
    options.patient = as.patient;
    options.feeds = true;
    command_require(line, odds_store_open(&store, &options, error));
    if (error->text[0] != '\0')
        command_note(line, "%s", error->text);
    return store;
}

/* The same; the line owns it. `create`: make the store when it is not
 * there. Commands that only read do not: servers would serve an empty store in the place of one
 * that is not mounted. */
static struct odds_store *open_store(const struct command_line *line, bool create)
{
    struct odds_store *store = open_store_as(line, (struct odds_store_options){.create = create});
    command_keep_odds(line, store);
    return store;
}

/* The arguments of a command. */
struct target {
    enum sport sport;
    bool one; /* event; else all of the sport */
    struct event_id event;
};

static struct target parse_target(const struct command_line *line, bool one)
{
    const char *sport = command_argument(line, 0), *event = command_argument(line, 1);
    struct target target = {.one = one};
    if (sport_from_key(text_of(sport), &target.sport) != STATUS_OK)
        command_usage(line,
                      "'%s' is not a sport; sports are cricket, football, tennis, horse-racing, "
                      "greyhound-racing",
                      sport);
    if (one && event_id_parse(text_of(event), &target.event) != STATUS_OK)
        command_usage(line, "'%s' is not an event id: 1 to 20 digits, above zero", event);
    return target;
}

/* Begins an object {"sport", "event", …}; NULL without --json. */
static struct json_writer *begin_object(const struct command_line *line,
                                        const struct target *target)
{
    struct json_writer *json = command_object(line, JSON_COMPACT);
    if (json != NULL) {
        json_string(json, "sport", sport_key(target->sport));
        json_string_or_null(json, "event", target->event.digits);
    }
    return json;
}

static const char *plural(size_t count)
{
    return count == 1 ? "" : "s";
}

/* Publishes what was put together, unless that failed, and frees it. */
static void publish(const struct command_line *line, struct odds_store *store,
                    struct feed_publication *publication, enum status status)
{
    if (status == STATUS_OK)
        status = feed_publication_publish(publication, store, command_error(line));
    feed_publication_free(publication);
    command_require(line, status);
}

/* ---- feed catalog, feed odds ----------------------------------------------------------------- */

static void note_unaddressable(const struct command_line *line, const char *name,
                               const struct feed_report *report)
{
    if (report->without_id > 0)
        command_note(line,
                     "%zu row%s without a usable gmid (the first at %s:%zu): listed, but "
                     "clients cannot ask for %s",
                     report->without_id, plural(report->without_id), name, report->without_id_line,
                     report->without_id == 1 ? "it" : "them");
    if (report->repeated > 0)
        command_note(line,
                     "%zu row%s with the gmid of an earlier one (the first at %s:%zu: %s): the "
                     "earlier row answers",
                     report->repeated, plural(report->repeated), name, report->repeated_line,
                     report->repeated_id.digits);
}

/* --expires; 0: it stays. */
static uint32_t parse_expiry(const struct command_line *line)
{
    return (uint32_t)command_number(line, "expires", 1, ODDS_EXPIRES_MOST_S, 0);
}

/* `listed`: whether the event is in the catalog. */
static void print_published(const struct command_line *line, const struct target *target,
                            const struct feed_report *report, bool listed)
{
    const char *sport = sport_key(target->sport);
    struct json_writer *json = begin_object(line, target);
    if (json != NULL) {
        json_unsigned(json, "bytes", report->bytes);
        json_unsigned(json, "rows", report->rows);
        if (target->one) {
            json_bool(json, "in_catalog", listed);
        } else {
            json_unsigned(json, "rows_without_id", report->without_id);
            json_unsigned(json, "rows_repeated", report->repeated);
        }
    } else if (target->one) {
        printf("published the odds of %s event %s: %zu market%s, %zu bytes\n", sport,
               target->event.digits, report->rows, plural(report->rows), report->bytes);
    } else {
        printf("published the %s catalog: %zu row%s, %zu bytes\n", sport, report->rows,
               plural(report->rows), report->bytes);
    }
}

/* `report`: the counts of the document. */
static void publish_document(const struct command_line *line, const struct target *target,
                             const char *name, struct text document,
                             const struct feed_report *report)
{
    const struct odds_change change = {.kind = target->one ? ODDS_MARKETS : ODDS_CATALOG,
                                       .sport = target->sport,
                                       .event = target->event,
                                       .bytes = document.at,
                                       .size = document.size,
                                       .expires_s = parse_expiry(line)};
    struct odds_store *store = open_store(line, true);
    struct feed_publication publication = {0};
    struct error *error = command_error(line);
    bool listed = true;
    feed_publication_add(&publication, &change);
    publish(line, store, &publication, STATUS_OK);
    if (target->one &&
        feed_catalog_lists(store, target->sport, &target->event, &listed, error) != STATUS_OK)
        command_refuse(line, "the odds are published, but %s", error->text);
    note_unaddressable(line, name, report);
    if (!listed)
        command_note(line,
                     "event %s is not in the %s catalog: clients cannot ask for its odds until it "
                     "is",
                     target->event.digits, sport_key(target->sport));
    print_published(line, target, report, listed);
}

/* The document is read and looked at before the store is opened, so that a mistake leaves no
 * trace. */
static void run_publish(const struct command_line *line)
{
    bool one = command_argument_count(line) == 3;
    const struct target target = parse_target(line, one);
    (void)parse_expiry(line); /* refused before the document is read */
    struct feed_report report = {0};
    const char *name;
    const struct buffer *document =
        command_read(line, command_argument(line, one ? 2 : 1), ODDS_VALUE_MAX, &name);
    command_require(line, feed_check(one ? ODDS_MARKETS : ODDS_CATALOG, name, buffer_text(document),
                                     &report, command_error(line)));
    publish_document(line, &target, name, buffer_text(document), &report);
}

/* ---- feed withdraw --------------------------------------------------------------------------- */

static void run_withdraw(const struct command_line *line)
{
    const struct target target = parse_target(line, command_argument_count(line) == 2);
    const char *sport = sport_key(target.sport);
    const struct odds_change change = {
        .kind = ODDS_MARKETS, .sport = target.sport, .event = target.event};
    struct odds_store *store = open_store(line, true);
    struct feed_publication publication = {0};
    enum status status = STATUS_OK;
    if (target.one)
        feed_publication_add(&publication, &change);
    else
        status =
            feed_publication_withdraw_sport(&publication, store, target.sport, command_error(line));
    publish(line, store, &publication, status);
    if (begin_object(line, &target) != NULL)
        return;
    if (target.one)
        (void)printf("withdrew the odds of %s event %s\n", sport, target.event.digits);
    else
        (void)printf("withdrew the %s catalog and all its odds\n", sport);
}

/* ---- feed interest --------------------------------------------------------------------------- */

static void print_interest(const struct command_line *line, const struct odds_interest *list,
                           size_t count, int64_t now_ms)
{
    static const char *const headers[] = {"EVENT", "LAST REQUEST", "SECONDS AGO", NULL};
    struct json_writer *json = command_document(line, JSON_COMPACT);
    char when[CLOCK_TEXT_SIZE], ago[24];
    if (json != NULL) {
        json_array(json, NULL);
        for (size_t i = 0; i < count; i++) {
            json_object(json, NULL);
            json_string(json, "event_id", list[i].event.digits);
            json_time(json, "requested_at", list[i].requested_ms);
            json_end(json);
        }
        return;
    }
    if (count == 0) {
        (void)puts("no event was asked for");
        return;
    }
    struct table *table = table_create(headers);
    for (size_t i = 0; i < count; i++) {
        clock_format_rfc3339(list[i].requested_ms, when);
        int64_t ago_ms = now_ms > list[i].requested_ms ? now_ms - list[i].requested_ms : 0;
        (void)snprintf(ago, sizeof ago, "%" PRId64, ago_ms / 1000);
        TABLE_ROW(table, list[i].event.digits, when, ago);
    }
    table_print(&table, stdout);
}

static void run_interest(const struct command_line *line)
{
    const struct target target = parse_target(line, false);
    uint64_t within =
        command_number(line, "within", 1, WITHIN_MOST_SECONDS, WITHIN_DEFAULT_SECONDS);
    struct odds_store *store = open_store(line, false);
    struct odds_interest *list = NULL;
    size_t count = 0;
    int64_t now_ms = clock_wall_ms();
    command_require(line,
                    odds_store_list_interest(store, target.sport, now_ms - (int64_t)within * 1000,
                                             &list, &count, command_error(line)));
    print_interest(line, list, count, now_ms);
    memory_free(list);
}

/* ---- feed stream ----------------------------------------------------------------------------- */

#define INTEREST_MOST_SECONDS 3600U

/* A time that is given as an option or an argument. */
static int64_t parse_time(const struct command_line *line, const char *name, const char *given,
                          int64_t otherwise)
{
    int64_t time_ms = otherwise;
    struct error *error = command_error(line);
    if (given != NULL &&
        time_parse_past(text_of(given), clock_wall_ms(), &time_ms, error) != STATUS_OK)
        command_usage(line, "%s: %s", name, error->text);
    return time_ms;
}

/* Starts what --record asks for; NULL: nothing. */
static struct feed_recorder *start_recorder(const struct command_line *line)
{
    const char *directory = command_option(line, "record"), *keep = command_option(line, "keep");
    struct feed_recorder *recorder = NULL;
    int64_t now_ms = clock_wall_ms();
    int64_t keep_ms = now_ms - parse_time(line, "--keep", keep, now_ms);
    if (keep != NULL && (keep_ms <= 0 || directory == NULL))
        command_usage(line, "--keep goes with --record, and is a time such as 30d or 12h");
    if (directory != NULL)
        command_require(line,
                        feed_recorder_start(&recorder, directory, keep_ms, command_error(line)));
    return recorder;
}

static void run_stream(const struct command_line *line)
{
    uint64_t interest_s = command_number(line, "interest", 1, INTEREST_MOST_SECONDS, 0);
    uint32_t expires_s = parse_expiry(line);
    /* A store that cannot be used now is refused; one that goes away later is waited for. */
    struct odds_store *store = open_store_as(line, (struct odds_store_options){.create = true});
    odds_store_close(&store);
    struct feed_recorder *recorder = start_recorder(line);
    store = open_store_as(line, (struct odds_store_options){.patient = true});
    /* A reader that has gone is an error of the write, and says so. */
    (void)signal(SIGPIPE, SIG_IGN);
    const struct feed_stream_options options = {.store = store,
                                                .input = STDIN_FILENO,
                                                .output = STDOUT_FILENO,
                                                .expires_s = expires_s,
                                                .interest_s = (uint32_t)interest_s,
                                                .recorder = recorder};
    enum status status = feed_stream(&options, command_error(line));
    feed_recorder_stop(&recorder);
    command_require(line, status); /* the store may be in use still */
    odds_store_close(&store);
}

/* ---- feed simulate --------------------------------------------------------------------------- */

static struct simulator_options parse_simulate(const struct command_line *line)
{
    const char *sports = command_option(line, "sports");
    struct simulator_options options = {
        .sports = SPORT_SET_ALL,
        .events = (uint32_t)command_number(line, "events", 1, SIMULATOR_EVENTS_MAX,
                                           SIMULATOR_EVENTS_DEFAULT),
        .interval_ms =
            (uint32_t)command_number(line, "interval", SIMULATOR_INTERVAL_LEAST_MS,
                                     SIMULATOR_INTERVAL_MOST_MS, SIMULATOR_INTERVAL_DEFAULT_MS),
        .seed = command_number(line, "seed", 0, UINT64_MAX, (uint64_t)clock_wall_ms()),
    };
    struct error *error = command_error(line);
    if (sports != NULL && sport_set_parse(text_of(sports), &options.sports, error) != STATUS_OK)
        command_usage(line, "--sports: %s", error->text);
    if (options.sports == 0)
        command_usage(line, "--sports: there is nothing to simulate");
    return options;
}

/* One line that is written over itself at a terminal, and only then. */
static void show_progress(const struct simulator_facts *facts)
{
    if (isatty(STDERR_FILENO))
        (void)fprintf(stderr,
                      "\r\033[K%" PRIu32 " events, %" PRIu32 " in play, %" PRIu32
                      " polled; published %" PRIu64 " catalogs, %" PRIu64 " odds, %" PRIu64 " MB%s",
                      facts->events, facts->in_play, facts->polled, facts->catalogs, facts->markets,
                      facts->bytes / 1000000, facts->failing ? "; the store is away" : "");
}

static void print_simulated(const struct command_line *line, const struct simulator_facts *facts)
{
    const struct command_count counts[] = {{"catalogs", facts->catalogs, NULL},
                                           {"odds", facts->markets, NULL},
                                           {"bytes", facts->bytes, NULL},
                                           {"events_retired", facts->retired, NULL},
                                           {0}};
    if (!command_write_counts(line, counts, JSON_COMPACT))
        printf("stopped; published %" PRIu64 " catalogs and %" PRIu64 " odds documents, %" PRIu64
               " bytes\n",
               facts->catalogs, facts->markets, facts->bytes);
}

/* Shows how far it is, every second, until SIGINT or SIGTERM, which are blocked. */
static void watch_until_signal(struct simulator *simulator, const sigset_t *signals,
                               struct simulator_facts *facts)
{
    const struct timespec second = {.tv_sec = 1};
    do {
        simulator_facts(simulator, facts);
        show_progress(facts);
    } while (sigtimedwait(signals, NULL, &second) < 0);
    simulator_facts(simulator, facts);
    if (isatty(STDERR_FILENO))
        (void)fputc('\n', stderr);
}

/* The first publication must succeed; after that a store that is away is waited for. */
static void run_simulate(const struct command_line *line)
{
    const struct simulator_options options = parse_simulate(line);
    struct odds_store *store = open_store(line, true);
    struct simulator *simulator = simulator_create(&options, clock_wall_ms());
    struct simulator_facts facts;
    sigset_t signals;
    struct log *log = log_create(STDERR_FILENO, LOG_WARNING, LOG_FORMAT_TEXT);
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGINT);
    (void)sigaddset(&signals, SIGTERM);
    (void)sigprocmask(SIG_BLOCK, &signals, NULL);
    enum status status = simulator_start(simulator, store, log, command_error(line));
    if (status == STATUS_OK) {
        simulator_facts(simulator, &facts);
        if (!command_json(line))
            printf("publishing %" PRIu32 " events every %" PRIu32
                   " ms while they are polled, else every minute; Ctrl-C stops\n",
                   facts.events, options.interval_ms);
        (void)fflush(stdout);
        watch_until_signal(simulator, &signals, &facts);
        simulator_destroy(&simulator);
        print_simulated(line, &facts);
    }
    simulator_destroy(&simulator);
    log_destroy(&log);
    command_require(line, status);
}

/* ---- the table ------------------------------------------------------------------------------- */

const struct command feed_commands[] = {
    {"catalog", "SPORT FILE|-", &help_feed_catalog, .run = run_publish},
    {"odds", "SPORT EVENT FILE|-", &help_feed_odds, .run = run_publish},
    {"withdraw", "SPORT [EVENT]", &help_feed_withdraw, .run = run_withdraw},
    {"interest", "SPORT", &help_feed_interest, .run = run_interest},
    {"stream", "", &help_feed_stream, .run = run_stream},
    {"simulate", "", &help_feed_simulate, .run = run_simulate},
    {0},
};
