/* console/history: figures between samples, in rings of bounded size. */
#include "admission/error_rows.h"
#include "console/history.h"
#include "tests.h"

#define BEGAN_MS INT64_C(1795395600000) /* 2026-11-23T01:00:00Z */

struct house {
    struct history *history;
    struct history_sample sample;
    struct buffer written;
};

static int set_up(void **state)
{
    static struct house house;
    house = (struct house){.history = history_create()};
    house.sample.at_ms = BEGAN_MS;
    house.sample.monotonic_ms = 5000;
    history_add(house.history, &house.sample);
    *state = &house;
    return 0;
}

static int tear_down(void **state)
{
    struct house *house = *state;
    history_destroy(&house->history);
    buffer_free(&house->written);
    return 0;
}

static void pass(struct house *house, uint64_t ms)
{
    house->sample.at_ms += (int64_t)ms;
    house->sample.monotonic_ms += ms;
    history_add(house->history, &house->sample);
}

static const char *document(struct house *house, enum history_span span)
{
    struct json_writer json = {.out = &house->written};
    buffer_clear(&house->written);
    json_object(&json, NULL);
    assert_int_equal(history_write(house->history, span, &json), house->sample.at_ms);
    json_end(&json);
    return buffer_string(&house->written);
}

static void assert_written(struct house *house, enum history_span span, const char *part)
{
    const char *written = document(house, span);
    if (strstr(written, part) == NULL)
        fail_msg("%s is not in %s", part, written);
}

TEST_OF(house, one_sample_says_nothing_but_what_is_now)
{
    const char *nothing =
        "{\"at\":\"2026-11-23T01:00:00.000Z\",\"live\":{\"requests_per_second\":null,"
        "\"requests_2xx_per_second\":null,\"requests_3xx_per_second\":null,"
        "\"requests_4xx_per_second\":null,\"requests_5xx_per_second\":null,\"p50_ms\":null,"
        "\"p99_ms\":null,\"denials_per_second\":null,\"connections\":0,"
        "\"ledger_operations_per_second\":null,\"ledger_commit_ms\":null},\"refusals\":[],"
        "\"history\":{\"step_seconds\":2,\"window_seconds\":10,\"at\":[],\"series\":{";
    assert_written(house, HISTORY_MINUTES, nothing);
}

TEST_OF(house, figures_are_between_two_samples)
{
    house->sample.answers.requests[0] = 30;
    house->sample.answers.requests[3] = 1;
    house->sample.answers.durations[2] = 31; /* above 50 microseconds, at most 100 */
    house->sample.denials = 6;
    house->sample.connections = 7;
    house->sample.ledger_operations = 4;
    house->sample.ledger_commits[1] = 100; /* above 1 ms, at most 2 */
    pass(house, 2000);
    assert_written(house, HISTORY_MINUTES,
                   "\"live\":{\"requests_per_second\":15.5,\"requests_2xx_per_second\":15,"
                   "\"requests_3xx_per_second\":0,\"requests_4xx_per_second\":0,"
                   "\"requests_5xx_per_second\":0.5,\"p50_ms\":0.075,\"p99_ms\":0.0995,"
                   "\"denials_per_second\":3,\"connections\":7,"
                   "\"ledger_operations_per_second\":2,\"ledger_commit_ms\":1.99}");
    assert_written(house, HISTORY_MINUTES,
                   "\"at\":[1795395602],\"series\":{\"requests_per_second\":[15.5],");
    pass(house, 2000); /* a value is over ten seconds, as the live one is */
    assert_written(house, HISTORY_MINUTES, "\"live\":{\"requests_per_second\":7.75,");
    assert_written(house, HISTORY_MINUTES, "\"requests_per_second\":[15.5,7.75],");
    for (int i = 0; i < 4; i++)
        pass(house, 2000);
    assert_written(house, HISTORY_MINUTES, "\"live\":{\"requests_per_second\":0,");
    assert_written(house, HISTORY_MINUTES, ",3.1,0],\"requests_2xx_per_second\"");
    assert_written(house, HISTORY_MINUTES, ",0.0995,null],\"denials_per_second\"");
}

TEST_OF(house, a_sample_that_comes_too_early_is_left_out)
{
    house->sample.connections = 1;
    history_add(house->history, &house->sample);
    house->sample.monotonic_ms += 1000;
    history_add(house->history, &house->sample);
    house->sample.monotonic_ms -= 1000;
    assert_written(house, HISTORY_MINUTES, "\"connections\":0,");
    pass(house, 1900); /* in time: a timer is not exact */
    assert_written(house, HISTORY_MINUTES, "\"connections\":1,");
}

static size_t count_of(const char *text, char c)
{
    size_t count = 0;
    for (; *text != '\0'; text++)
        count += *text == c;
    return count;
}

TEST_OF(house, rings_go_round)
{
    char times[8192] = "";
    for (size_t i = 0; i < 3 * HISTORY_HOURS_SAMPLES; i++) {
        house->sample.answers.requests[0] += 240;
        pass(house, HISTORY_HOURS_STEP_S * 1000);
    }
    const char *written = strstr(document(house, HISTORY_HOURS), "\"at\":[");
    assert_non_null(written);
    size_t size = strcspn(written, "]");
    assert_true(size < sizeof times);
    memcpy(times, written, size);
    assert_int_equal(count_of(times, ',') + 1, HISTORY_HOURS_SAMPLES - 1);
    assert_written(house, HISTORY_HOURS, "\"requests_2xx_per_second\":[2,2,2,");
    assert_written(house, HISTORY_MINUTES, "\"requests_2xx_per_second\":[2,2,2,");
}

TEST_OF(house, refusals_of_the_last_hour_are_apart_from_all)
{
    house->sample.reasons[reason_number(&error_unknown_key)] = 5;
    pass(house, 2000);
    assert_written(house, HISTORY_MINUTES,
                   "\"refusals\":[{\"reason\":\"unknown_key\",\"total\":5,\"last_hour\":5}]");
    for (size_t i = 0; i < 31; i++)
        pass(house, HISTORY_HOURS_STEP_S * 1000);
    house->sample.reasons[reason_number(&error_unknown_key)] = 7;
    pass(house, 2000);
    assert_written(house, HISTORY_MINUTES,
                   "\"refusals\":[{\"reason\":\"unknown_key\",\"total\":7,\"last_hour\":2}]");
}
