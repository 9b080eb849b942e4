/*
 * `croupier feed …`: publishing by hand or from a script, on the odds store directly. It needs no
 * server; a running server sees the change at once.
 */
#include "base/clock.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/threads.h"
#include "commands/commands.h"
#include "commands/help_texts.h"
#include "commands/stores.h"
#include "demo/simulate.h"
#include "feed/line.h"
#include "feed/publication.h"
#include "feed/stream.h"
#include "operator/times.h"
#include "stores/configured.h"

#define WITHIN_DEFAULT_SECONDS 60
#define WITHIN_MOST_SECONDS (366U * 86400U)

/* ---- shared by the commands ------------------------------------------------------------------ */

/* Opens the odds store of the configuration; the line owns it. `create`: make the store when it is
 * not there. Commands that only read do not: servers would serve an empty store in the place of one
 * that is not mounted. */
static struct odds_store *open_store(const struct command_line *line, bool create)
{
    struct odds_store_options options = odds_store_configured(command_config(line));
    struct odds_store *store = NULL;
    struct error *error = command_error(line);
    options.create = create;
    options.feeds = true;
    command_require(line, odds_store_open(&store, &options, error));
    command_keep_odds(line, store);
    if (error->text[0] != '\0')
        command_note(line, "%s", error->text);
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
        status = odds_store_publish(store, publication->changes, publication->count,
                                    command_error(line));
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
    bool listed = true;
    if (target.one &&
        feed_catalog_lists(store, target.sport, &target.event, &listed, NULL) == STATUS_OK &&
        !listed)
        command_note(line, "event %s is not in the %s catalog: see that it is the one you mean",
                     target.event.digits, sport);
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
    struct odds_store *store = open_store(line, true);
    struct feed_recorder *recorder = start_recorder(line);
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
    command_require(line, status);
}

/* ---- feed replay ----------------------------------------------------------------------------- */

#define REPLAY_SPEED_MOST 1000000U
#define REPLAY_BEFORE_MS INT64_C(3600000) /* the publications of that time stand when it begins */
#define QUIET_MS 60000                    /* a store that was published to since is somebody's */

/* Refuses to publish into a store that another feed may use. */
static void check_quiet(const struct command_line *line, struct odds_store *store, uint64_t lines)
{
    struct odds_facts facts;
    if (!text_starts_with(text_of(command_config(line)->odds_store), TEXT("embedded:")))
        command_refuse(line, "Redis does not tell when it was last published to; say with --live "
                             "that this store is meant");
    odds_store_facts(store, &facts);
    for (unsigned i = 0; i < SPORT_COUNT; i++)
        if (facts.published_ms[i] > clock_wall_ms() - QUIET_MS)
            command_refuse(line,
                           "%s was published to this store within the last minute; stop the feed, "
                           "or say with --live that it is meant",
                           sport_key((enum sport)i));
    if (command_at_terminal() && !command_ask("Publish %" PRIu64 " lines? yes or no: ", lines))
        command_refuse(line, "nothing was published");
}

static void note_missing(const struct command_line *line, const struct feed_reading *reading)
{
    if (reading->lost > 0)
        command_note(line, "lines are missing in the record, which counts %" PRIu64 " of them",
                     reading->lost);
    if (reading->cut > 0)
        command_note(line, "a file is cut off: its last second may be missing");
}

struct replay {
    struct feed_reading reading; /* for the second time */
    int64_t from_ms, first_ms;   /* first_ms: of the first line that is not from before */
    uint64_t speed;
    uint64_t begun_ns;
    int output;
    const struct progress_watch *watch;
    uint64_t all; /* lines */
};

static void replay_line(void *context, int64_t time_ms, struct text sent)
{
    struct replay *replay = context;
    uint64_t now_ns = clock_monotonic_ns();
    if (replay->first_ms == 0 && time_ms >= replay->from_ms) {
        replay->first_ms = time_ms;
        replay->begun_ns = now_ns;
    }
    if (replay->first_ms != 0 && time_ms > replay->first_ms) {
        uint64_t after_ms = (uint64_t)(time_ms - replay->first_ms);
        uint64_t due_ns = replay->begun_ns + after_ms * 1000000 / replay->speed;
        clock_pause_ns(due_ns > now_ns ? due_ns - now_ns : 0);
    }
    (void)file_write(replay->output, sent.at, sent.size);
    (void)file_write(replay->output, "\n", 1);
    progress_tell(replay->watch, "lines", replay->reading.lines, replay->all);
}

static void write_lines(void *argument)
{
    struct replay *replay = argument;
    enum status status = feed_record_read(&replay->reading, NULL);
    (void)status; /* it could be read before; else lines are missing */
    file_close(&replay->output);
}

/* Publishes as a stream does, from a pipe. Returns how many lines were not published. */
static uint64_t publish_again(const struct command_line *line, struct replay *replay,
                              struct odds_store *store)
{
    uint64_t failed = 0;
    uv_thread_t thread;
    int ends[2];
    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    const struct feed_stream_options options = {.store = store,
                                                .input = ends[0],
                                                .output = STDERR_FILENO,
                                                .expires_s = parse_expiry(line),
                                                .failed = &failed};
    replay->output = ends[1];
    thread_start(&thread, "feed-replay", write_lines, replay);
    enum status status = feed_stream(&options, command_error(line));
    CHECK(uv_thread_join(&thread) == 0);
    file_close(&ends[0]);
    command_require(line, status);
    return failed;
}

/* Reads all first, so that a damaged record is refused before anything is published. */
static void run_replay(const struct command_line *line)
{
    struct replay replay = {
        .from_ms = parse_time(line, "--from", command_option(line, "from"), 0),
        .speed = command_number(line, "speed", 1, REPLAY_SPEED_MOST, 1),
    };
    struct feed_reading reading = {
        .directory = command_argument(line, 0),
        .from_ms = replay.from_ms - REPLAY_BEFORE_MS,
        .to_ms = parse_time(line, "--to", command_option(line, "to"), INT64_MAX)};
    (void)parse_expiry(line); /* refused before the record is read */
    replay.reading = reading;
    replay.reading.visit = replay_line;
    replay.reading.context = &replay;
    command_require(line, feed_record_read(&reading, command_error(line)));
    note_missing(line, &reading);
    if (reading.lines == 0)
        command_refuse(line, "nothing was published then");
    struct odds_store *store = open_store(line, true);
    if (command_option(line, "live") == NULL)
        check_quiet(line, store, reading.lines);
    replay.all = reading.lines;
    replay.watch = isatty(STDOUT_FILENO) ? command_watch(line) : NULL; /* the demo has the screen */
    uint64_t failed = publish_again(line, &replay, store);
    command_end_progress(line);
    if (failed > 0 || replay.reading.lines < reading.lines)
        command_refuse(line, "%" PRIu64 " of %" PRIu64 " lines were published",
                       replay.reading.lines - failed, reading.lines);
    const struct command_count counts[] = {{"lines", reading.lines, NULL},
                                           {"lost", reading.lost, NULL},
                                           {"files_cut_off", reading.cut, NULL},
                                           {0}};
    if (!command_write_counts(line, counts, JSON_COMPACT))
        (void)printf("replayed %" PRIu64 " line%s\n", reading.lines, plural(reading.lines));
}

/* ---- feed at --------------------------------------------------------------------------------- */

/* The last publication. */
struct published {
    struct feed_reading reading; /* which counts what is missing since */
    struct target target;
    int64_t time_ms;         /* 0: nothing */
    struct buffer *document; /* empty: it was withdrawn */
};

static void look_at_line(void *context, int64_t time_ms, struct text sent)
{
    struct published *published = context;
    const struct target *target = &published->target;
    struct feed_line line;
    feed_line_read(&line, sent, 0);
    for (size_t i = 0; i < line.count; i++) {
        const struct odds_change *change = &line.changes[i];
        if (change->sport != target->sport ||
            (!event_id_equals(&change->event, &target->event) && !feed_withdraws_sport(change)))
            continue;
        published->time_ms = time_ms;
        published->reading.lost = published->reading.cut = 0;
        buffer_clear(published->document);
        if (change->bytes != NULL)
            buffer_append(published->document, change->bytes, change->size);
    }
    feed_line_free(&line);
}

/* Looks in the last file that was begun by then, and in twice as much time again and again. */
static void run_at(const struct command_line *line)
{
    const char *given = command_argument(line, 2);
    struct published published = {
        .reading = {.directory = command_argument(line, 3),
                    .visit = look_at_line,
                    .context = &published},
        .target = parse_target(line, strcmp(command_argument(line, 1), "catalog") != 0),
        .document = command_buffer(line)};
    struct feed_reading *reading = &published.reading;
    char when[CLOCK_TEXT_SIZE];
    reading->to_ms = parse_time(line, "TIME", given, 0);
    if (reading->to_ms > clock_wall_ms())
        command_usage(line, "TIME: '%s' is not over yet", given);
    for (int64_t back_ms = 0; published.time_ms == 0 && back_ms < 2 * reading->to_ms;
         back_ms = 2 * back_ms + REPLAY_BEFORE_MS) {
        reading->lost = reading->cut = 0;
        reading->from_ms = reading->to_ms - back_ms;
        command_require(line, feed_record_read(reading, command_error(line)));
    }
    note_missing(line, reading);
    if (published.time_ms == 0)
        command_refuse(line, "the record has no publication of it by then");
    clock_format_rfc3339(published.time_ms, when);
    if (published.document->size == 0)
        command_refuse(line, "it was withdrawn at %s", when);
    command_note(line, "published at %s", when);
    if (!command_json(line)) {
        (void)command_print(published.document);
        return;
    }
    struct json_writer *json = begin_object(line, &published.target);
    json_time(json, "published_at", published.time_ms);
    json_unsigned(json, "lost", reading->lost);
    json_unsigned(json, "files_cut_off", reading->cut);
    json_text(json, "document", buffer_text(published.document));
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
    {"replay", "DIR", &help_feed_replay, .run = run_replay},
    {"at", "SPORT EVENT|catalog TIME DIR", &help_feed_at, .run = run_at},
    {"simulate", "", &help_feed_simulate, .run = run_simulate},
    {0},
};
