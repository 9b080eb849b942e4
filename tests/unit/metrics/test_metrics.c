/* metrics: counting in shards, Prometheus' text format. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "metrics/metrics.h"

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

static struct buffer written(const struct metrics *metrics, const struct metrics_gauges *gauges)
{
    static const struct metrics_gauges none;
    struct buffer out = {0};
    metrics_write(metrics, gauges == NULL ? &none : gauges, &out);
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

static void requests_of_all_shards_add_up_by_route_and_status(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create(2, route_label);
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

static void statuses_that_nobody_planned_count_as_other(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create(1, route_label);
    const int odd[] = {299, 418, 0, -1, 100000, 1023, 1024};
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++)
        metrics_request(metrics_shard(metrics, 0), ROUTE_OTHER, odd[i], 1);
    struct buffer out = written(metrics, NULL);
    expect_line(&out, "croupier_requests_total{route=\"other\",status=\"other\"} 7");
    buffer_free(&out);
    metrics_destroy(&metrics);
}

static void the_histogram_is_cumulative_and_bounds_are_inclusive(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create(1, route_label);
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
    expect_line(&out, SERIES "_sum{route=\"/api/v1/sports\"} 7.000200001");
    buffer_free(&out);
    metrics_destroy(&metrics);
}

static void connections_are_the_opened_without_the_closed(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create(2, route_label);
    metrics_add(metrics_shard(metrics, 0), METRICS_CONNECTIONS_OPENED, 5);
    metrics_add(metrics_shard(metrics, 1), METRICS_CONNECTIONS_OPENED, 2);
    metrics_add(metrics_shard(metrics, 1), METRICS_CONNECTIONS_CLOSED, 3);
    struct buffer out = written(metrics, NULL);
    expect_line(&out, "croupier_connections 4");
    expect_line(&out, "croupier_connections_opened_total 7");
    buffer_free(&out);
    metrics_destroy(&metrics);
}

static void ages_are_seconds_and_what_never_was_is_infinitely_old_or_nan(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create(1, route_label);
    struct metrics_gauges gauges = {.policy_age_ms = 1042, .games_age_ms = -1, .feed_count = 2};
    gauges.feed[0].sport = "cricket";
    gauges.feed[0].age_ms = -1;
    gauges.feed[1].sport = "tennis";
    gauges.feed[1].age_ms = 61005;
    struct buffer out = written(metrics, &gauges);
    expect_line(&out, "croupier_policy_age_seconds 1.042");
    expect_line(&out, "croupier_games_age_seconds +Inf");
    expect_line(&out, "croupier_feed_age_seconds{sport=\"cricket\"} NaN");
    expect_line(&out, "croupier_feed_age_seconds{sport=\"tennis\"} 61.005");
    buffer_free(&out);
    metrics_destroy(&metrics);
}

static void gauges_come_from_the_scraper(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create(1, route_label);
    struct metrics_gauges gauges = {.policy_customers = UINT64_MAX,
                                    .platform_errors = 3,
                                    .platform_round_trips = 6,
                                    .platform_round_trip_ns = 1500000000,
                                    .platform_connections = 7,
                                    .odds_errors = 4,
                                    .work_queue_depth = 5};
    struct buffer out = written(metrics, &gauges);
    expect_line(&out, "croupier_policy_customers 18446744073709551615");
    expect_line(&out, "croupier_store_failures_total{store=\"platform\"} 3");
    expect_line(&out, "croupier_store_failures_total{store=\"odds\"} 4");
    expect_line(&out, "croupier_work_queue_depth 5");
    expect_line(&out, "croupier_platform_round_trips_total 6");
    expect_line(&out, "croupier_platform_wait_seconds_total 1.500000000");
    expect_line(&out, "croupier_platform_connections 7");
    buffer_free(&out);
    metrics_destroy(&metrics);
}

/* What promtool would check: HELP and TYPE once before the samples of each name, counters end in
 * _total, a sample is a name, labels, a space and a number; every row is there. */
static void every_row_is_written_in_the_text_format(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create(1, route_label);
    struct buffer out = written(metrics, NULL);
    struct text rest = buffer_text(&out);
    const struct metric_description *row;
    for (size_t i = 0; (row = metrics_description(i)) != NULL; i++) {
        char expected[512];
        (void)snprintf(expected, sizeof expected, "# HELP %s %s", row->name, row->help);
        assert_true(text_equals(text_cut(&rest, '\n'), text_of(expected)));
        (void)snprintf(expected, sizeof expected, "# TYPE %s %s", row->name, row->type);
        assert_true(text_equals(text_cut(&rest, '\n'), text_of(expected)));
        assert_true(strncmp(row->name, "croupier_", 9) == 0);
        size_t size = strlen(row->name);
        bool total = size > 6 && strcmp(row->name + size - 6, "_total") == 0;
        assert_int_equal(total, strcmp(row->type, "counter") == 0);
        while (rest.size > 0 && rest.at[0] != '#') {
            struct text line = text_cut(&rest, '\n');
            assert_true(text_starts_with(line, text_of(row->name)));
            const char *space = memrchr(line.at, ' ', line.size);
            assert_non_null(space);
            char *end;
            (void)strtod(space + 1, &end);
            assert_ptr_equal(end, line.at + line.size);
        }
    }
    assert_int_equal(rest.size, 0);
    buffer_free(&out);
    metrics_destroy(&metrics);
}

#define ADDS 20000
static void *add_many(void *argument)
{
    for (int i = 0; i < ADDS; i++)
        metrics_add(argument, METRICS_READY_REBUILDS, 1);
    return NULL;
}

static void a_shared_shard_loses_nothing(void **state)
{
    (void)state;
    struct metrics *metrics = metrics_create(1, route_label);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, metrics_shard(metrics, 0)), 0);
    struct buffer meanwhile = written(metrics, NULL); /* a scrape beside it disturbs nothing */
    buffer_free(&meanwhile);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    struct buffer out = written(metrics, NULL);
    expect_line(&out, "croupier_ready_rebuilds_total 60000");
    buffer_free(&out);
    metrics_destroy(&metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_of_all_shards_add_up_by_route_and_status),
        cmocka_unit_test(statuses_that_nobody_planned_count_as_other),
        cmocka_unit_test(the_histogram_is_cumulative_and_bounds_are_inclusive),
        cmocka_unit_test(connections_are_the_opened_without_the_closed),
        cmocka_unit_test(ages_are_seconds_and_what_never_was_is_infinitely_old_or_nan),
        cmocka_unit_test(gauges_come_from_the_scraper),
        cmocka_unit_test(every_row_is_written_in_the_text_format),
        cmocka_unit_test(a_shared_shard_loses_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
