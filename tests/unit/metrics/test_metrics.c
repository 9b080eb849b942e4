/* metrics: counting in shards, Prometheus' text format. */
#include <pthread.h>

#include "metrics/metrics.h"
#include "tests.h"

enum { ROUTE_HEALTH, ROUTE_SPORTS, ROUTE_CATALOG, ROUTE_EVENT, ROUTE_OTHER, ROUTE_COUNT };

static const char *route_label(size_t route)
{
    static const char *const labels[ROUTE_COUNT + 1] = {"/api/v1/health",
                                                        "/api/v1/sports",
                                                        "/api/v1/{sport}/events",
                                                        "/api/v1/{sport}/events/{eventId}",
                                                        "other",
                                                        NULL};
    return labels[route];
}

/* ---- two modules' tables --------------------------------------------------------------------- */

#define DOORS 3
enum { COUNTED_OPENED, COUNTED_CLOSED, COUNTED_FAILURES, COUNTED_KNOCKS };

static void write_open(const struct metric *metric, const void *facts, struct buffer *out)
{
    const uint64_t *counters = facts;
    metric_number(out, metric->name, NULL, counters[COUNTED_OPENED] - counters[COUNTED_CLOSED]);
}

static void write_knocks(const struct metric *metric, const void *facts, struct buffer *out)
{
    static const char *const labels[DOORS] = {"{door=\"a\"}", "{door=\"b\"}", "{door=\"c\"}"};
    const uint64_t *counters = facts;
    for (size_t door = 0; door < DOORS; door++)
        metric_number(out, metric->name, labels[door], counters[COUNTED_KNOCKS + door]);
}

static const struct metric_about about[] = {
    {"croupier_build_info", "gauge", "The program"},
    {"croupier_requests_total", "counter", "Requests"},
    {"croupier_request_duration_seconds", "histogram", "Durations"},
    {"croupier_opened_total", "counter", "Doors opened"},
    {"croupier_closed_total", "counter", "Doors closed"},
    {"croupier_open", "gauge", "Doors open now"},
    {"croupier_failures_total", "counter", "What failed"},
    {"croupier_knocks_total", "counter", "Knocks, by door"},
    {"croupier_ticks", "gauge", "Ticks"},
    {"croupier_age_seconds", "gauge", "Age; +Inf: never"},
    {"croupier_wait_seconds_total", "counter", "Time waited"},
    {"croupier_batch", "histogram", "Batches"},
    {"croupier_commit_seconds", "histogram", "Commits"},
    {0},
};

static const struct metric doors[] = {
    METRIC_COUNTED("croupier_opened_total", COUNTED_OPENED),
    METRIC_COUNTED("croupier_closed_total", COUNTED_CLOSED),
    METRIC_WRITTEN("croupier_open", write_open),
    METRIC_COUNTED_AS("croupier_failures_total", "{of=\"doors\"}", COUNTED_FAILURES),
    {.name = "croupier_knocks_total", .write = write_knocks, .more_cells = DOORS - 1},
    {0},
};
static const struct metric *const counted[] = {doors, NULL};

struct clock_facts {
    uint64_t ticks, failures, round_trip_ns;
    int64_t age_ms;
    uint64_t batches[3], batched, commits[3], commit_ns;
};

static void write_age(const struct metric *metric, const void *facts, struct buffer *out)
{
    metric_age(out, metric->name, "{of=\"clock\"}", ((const struct clock_facts *)facts)->age_ms,
               "+Inf");
}

static void write_wait(const struct metric *metric, const void *facts, struct buffer *out)
{
    metric_seconds(out, metric->name, NULL, ((const struct clock_facts *)facts)->round_trip_ns);
}

static const uint32_t bounds[] = {1, 250};

static void write_batches(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct clock_facts *clock = facts;
    metric_histogram(
        out, metric->name,
        &(struct metric_histogram){bounds, clock->batches, 3, clock->batched, 1, NULL});
}

static void write_commits(const struct metric *metric, const void *facts, struct buffer *out)
{
    const struct clock_facts *clock = facts;
    metric_histogram(
        out, metric->name,
        &(struct metric_histogram){bounds, clock->commits, 3, clock->commit_ns, 1000, NULL});
}

static const struct metric clocks[] = {
    METRIC_FACT("croupier_ticks", struct clock_facts, ticks),
    {.name = "croupier_failures_total",
     .labels = "{of=\"clock\"}",
     .offset = offsetof(struct clock_facts, failures)},
    METRIC_WRITTEN("croupier_age_seconds", write_age),
    METRIC_WRITTEN("croupier_wait_seconds_total", write_wait),
    METRIC_WRITTEN("croupier_batch", write_batches),
    METRIC_WRITTEN("croupier_commit_seconds", write_commits),
    {0},
};

static struct metrics *create(size_t threads)
{
    return metrics_create(threads, route_label, counted, about);
}

static metrics_cell *cells(struct metrics *metrics, size_t thread)
{
    return metrics_cells(metrics_shard(metrics, thread), doors);
}

static struct buffer written(const struct metrics *metrics, const struct clock_facts *facts)
{
    static const struct clock_facts none;
    const struct metrics_source sources[] = {
        {metrics_table, metrics}, {doors, NULL}, {clocks, facts == NULL ? &none : facts}, {0}};
    struct buffer out = {0};
    metrics_write(metrics, sources, &out);
    (void)buffer_string(&out);
    return out;
}

static void expect_line(const struct buffer *out, const char *line)
{
    struct text rest = buffer_text(out);
    while (rest.at != NULL)
        if (text_equals(text_cut(&rest, '\n'), text_of(line)))
            return;
    fail_msg("no line '%s' in:\n%s", line, out->data);
}

static void expect_no_text(const struct buffer *out, const char *text)
{
    assert_null(strstr(out->data, text));
}

TEST(requests_of_all_shards_add_up_by_route_and_status)
{
    struct metrics *metrics = create(2);
    metrics_request(metrics_shard(metrics, 0), ROUTE_EVENT, 200, 1000);
    metrics_request(metrics_shard(metrics, 1), ROUTE_EVENT, 200, 1000);
    metrics_request(metrics_shard(metrics, 1), ROUTE_CATALOG, 504, 1000);
    struct buffer out = written(metrics, NULL);
    expect_line(&out, "croupier_requests_total{route=\"/api/v1/{sport}/events/{eventId}\","
                      "status=\"200\"} 2");
    expect_line(&out, "croupier_requests_total{route=\"/api/v1/{sport}/events\",status=\"504\"} 1");
    expect_line(&out, "croupier_requests_total{route=\"/api/v1/health\",status=\"200\"} 0");
    expect_no_text(&out, "route=\"/api/v1/sports\",status=\"504\"");
    buffer_free(&out);
    metrics_destroy(&metrics);
    assert_null(metrics);
}

TEST(what_is_no_status_of_an_answer_counts_as_other)
{
    struct metrics *metrics = create(1);
    const int odd[] = {0, -1, 199, 600, 1023, 1024, 100000};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        metrics_request(metrics_shard(metrics, 0), ROUTE_OTHER, odd[i], 1);
    struct buffer out = written(metrics, NULL);
    expect_line(&out, "croupier_requests_total{route=\"other\",status=\"other\"} 7");
    buffer_free(&out);
    metrics_destroy(&metrics);
}

TEST(the_histogram_is_cumulative_and_bounds_are_inclusive)
{
    struct metrics *metrics = create(1);
    struct metrics_shard *shard = metrics_shard(metrics, 0);
    metrics_request(shard, ROUTE_SPORTS, 200, 100000);        /* exactly 0.0001 s */
    metrics_request(shard, ROUTE_SPORTS, 200, 100001);        /* just above */
    metrics_request(shard, ROUTE_SPORTS, 200, 7000000000ULL); /* beyond the last bound */
    struct buffer out = written(metrics, NULL);
#define SERIES "croupier_request_duration_seconds"
    expect_line(&out, SERIES "_bucket{route=\"/api/v1/sports\",le=\"0.00005\"} 0");
    expect_line(&out, SERIES "_bucket{route=\"/api/v1/sports\",le=\"0.0001\"} 1");
    expect_line(&out, SERIES "_bucket{route=\"/api/v1/sports\",le=\"0.00025\"} 2");
    expect_line(&out, SERIES "_bucket{route=\"/api/v1/sports\",le=\"5\"} 2");
    expect_line(&out, SERIES "_bucket{route=\"/api/v1/sports\",le=\"+Inf\"} 3");
    expect_line(&out, SERIES "_count{route=\"/api/v1/sports\"} 3");
    expect_line(&out, SERIES "_bucket{route=\"/api/v1/{sport}/events\",le=\"+Inf\"} 0");
    expect_line(&out, SERIES "_sum{route=\"/api/v1/sports\"} 7.000200001");
    buffer_free(&out);
    metrics_destroy(&metrics);
}

TEST(counters_of_all_threads_add_up)
{
    struct metrics *metrics = create(2);
    metrics_add(cells(metrics, 0), COUNTED_OPENED, 5);
    metrics_add(cells(metrics, 1), COUNTED_OPENED, 2);
    metrics_add(cells(metrics, 1), COUNTED_CLOSED, 3);
    struct buffer out = written(metrics, NULL);
    expect_line(&out, "croupier_open 4");
    expect_line(&out, "croupier_opened_total 7");
    expect_line(&out, "croupier_closed_total 3");
    buffer_free(&out);
    metrics_destroy(&metrics);
}

TEST(a_row_may_have_several_cells)
{
    struct metrics *metrics = create(2);
    metrics_add(cells(metrics, 0), COUNTED_KNOCKS, 1);
    metrics_add(cells(metrics, 0), COUNTED_KNOCKS + DOORS - 1, 2);
    metrics_add(cells(metrics, 1), COUNTED_KNOCKS + DOORS - 1, 3);
    struct buffer out = written(metrics, NULL);
    expect_line(&out, "croupier_knocks_total{door=\"a\"} 1");
    expect_line(&out, "croupier_knocks_total{door=\"b\"} 0");
    expect_line(&out, "croupier_knocks_total{door=\"c\"} 5");
    buffer_free(&out);
    metrics_destroy(&metrics);
}

TEST(facts_are_written_as_their_rows_say)
{
    struct metrics *metrics = create(1);
    struct clock_facts facts = {.ticks = UINT64_MAX,
                                .round_trip_ns = 1500000000,
                                .age_ms = 61005,
                                .batches = {1, 0, 2},
                                .batched = 900,
                                .commits = {0, 3, 1},
                                .commit_ns = 7000000};
    struct buffer out = written(metrics, &facts);
    expect_line(&out, "croupier_ticks 18446744073709551615");
    expect_line(&out, "croupier_wait_seconds_total 1.500000000");
    expect_line(&out, "croupier_age_seconds{of=\"clock\"} 61.005");
    expect_line(&out, "croupier_batch_bucket{le=\"1\"} 1");
    expect_line(&out, "croupier_batch_bucket{le=\"250\"} 1");
    expect_line(&out, "croupier_batch_bucket{le=\"+Inf\"} 3");
    expect_line(&out, "croupier_batch_sum 900");
    expect_line(&out, "croupier_batch_count 3");
    expect_line(&out, "croupier_commit_seconds_bucket{le=\"0.001\"} 0");
    expect_line(&out, "croupier_commit_seconds_bucket{le=\"0.25\"} 3");
    expect_line(&out, "croupier_commit_seconds_bucket{le=\"+Inf\"} 4");
    expect_line(&out, "croupier_commit_seconds_sum 0.007000000");
    expect_line(&out, "croupier_commit_seconds_count 4");
    buffer_free(&out);
    facts.age_ms = -1;
    out = written(metrics, &facts);
    expect_line(&out, "croupier_age_seconds{of=\"clock\"} +Inf");
    buffer_free(&out);
    metrics_destroy(&metrics);
}

TEST(rows_of_one_name_stand_together)
{
    struct metrics *metrics = create(1);
    metrics_add(cells(metrics, 0), COUNTED_FAILURES, 2);
    struct buffer out = written(metrics, &(struct clock_facts){.failures = 3});
    assert_non_null(strstr(out.data, "# HELP croupier_failures_total What failed\n"
                                     "# TYPE croupier_failures_total counter\n"
                                     "croupier_failures_total{of=\"doors\"} 2\n"
                                     "croupier_failures_total{of=\"clock\"} 3\n"));
    expect_no_text(&out, "Not written");
    buffer_free(&out);
    metrics_destroy(&metrics);
}

/* What promtool would check: HELP and TYPE once before the samples of each name; a sample is that
 * name, perhaps labels, a space and a number. */
TEST(all_is_in_the_text_format)
{
    struct metrics *metrics = create(1);
    struct buffer out = written(metrics, NULL);
    struct text rest = buffer_text(&out);
    size_t names = 0;
    while (rest.size > 0) {
        char name[128];
        char named[128];
        char type[16];
        struct text help = text_cut(&rest, '\n');
        struct text kind = text_cut(&rest, '\n');
        assert_int_equal(sscanf(help.at, "# HELP %127s ", name), 1);
        assert_int_equal(sscanf(kind.at, "# TYPE %127s %15s", named, type), 2);
        assert_string_equal(name, named);
        while (rest.size > 0 && rest.at[0] != '#') {
            struct text line = text_cut(&rest, '\n');
            assert_true(text_starts_with(line, text_of(name)));
            const char *space = memrchr(line.at, ' ', line.size);
            assert_non_null(space);
            char *end;
            (void)strtod(space + 1, &end);
            assert_ptr_equal(end, line.at + line.size);
        }
        names++;
    }
    assert_int_equal(names, 13);
    buffer_free(&out);
    metrics_destroy(&metrics);
}

#define ADDS 20000
static void *add_many(void *argument)
{
    for (int i = 0; i < ADDS; i++)
        metrics_add(argument, COUNTED_OPENED, 1);
    return NULL;
}

TEST(a_shared_shard_loses_nothing)
{
    struct metrics *metrics = create(1);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, cells(metrics, 0)), 0);
    struct buffer meanwhile = written(metrics, NULL); /* a scrape beside it disturbs nothing */
    buffer_free(&meanwhile);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    struct buffer out = written(metrics, NULL);
    expect_line(&out, "croupier_opened_total 60000");
    buffer_free(&out);
    metrics_destroy(&metrics);
}
