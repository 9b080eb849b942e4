/* demo/sports: the tables of the simulated sports have the form that their header describes. */
#include "demo/sports.h"
#include "tests.h"

/* A runner has a chance or a result; the last frame has results only. */
static void check_runners(yyjson_val *entry, size_t runners, bool last)
{
    size_t index, count;
    yyjson_val *value;
    assert_int_equal(yyjson_arr_size(entry), runners);
    yyjson_arr_foreach(entry, index, count, value)
    {
        if (yyjson_is_str(value))
            assert_non_null(strchr("WLPRV", yyjson_get_str(value)[0]));
        else
            assert_true(!last && yyjson_is_uint(value) && yyjson_get_uint(value) - 1 < 1000);
    }
}

static void check_odds(yyjson_val *markets, yyjson_val *odds, size_t sides, bool last)
{
    size_t index, count;
    yyjson_val *market;
    assert_int_equal(yyjson_arr_size(odds), yyjson_arr_size(markets));
    yyjson_arr_foreach(markets, index, count, market)
    {
        yyjson_val *entry = yyjson_arr_get(odds, index),
                   *runners = yyjson_obj_get(market, "runners");
        size_t sections = yyjson_arr_size(yyjson_obj_get(market, "sections"));
        if (strcmp(table_string(market, "type"), "match1") == 0)
            assert_true(index > 0 && yyjson_is_null(entry));
        else if (sections == 0)
            check_runners(entry, runners != NULL ? yyjson_arr_size(runners) : sides, last);
        for (size_t i = 0; sections > 0 && i < yyjson_arr_size(entry); i += 2)
            assert_in_range(yyjson_get_uint(yyjson_arr_get(entry, i)), 1, sections);
    }
}

static void check_course(yyjson_val *table, yyjson_val *course)
{
    yyjson_val *frames = yyjson_obj_get(course, "frames"), *frame;
    size_t index, count;
    int64_t before = INT64_MIN;
    bool starts = false;
    yyjson_arr_foreach(frames, index, count, frame)
    {
        yyjson_val *odds = yyjson_obj_get(frame, "odds");
        assert_true(table_number(frame, "at") > before);
        before = table_number(frame, "at");
        starts |= before == 0;
        if (odds != NULL || index == 0 || index == count - 1)
            check_odds(yyjson_obj_get(table, "markets"), odds,
                       (size_t)table_number(course, "sides"), index == count - 1);
        assert_true((yyjson_obj_get(frame, "remark") == NULL) ==
                    (yyjson_obj_get(frame, "halt") == NULL));
    }
    assert_true(starts && before > 0);
}

TEST(every_course_has_a_start_odds_and_a_result)
{
    struct sports sports;
    sports_open(&sports);
    for (int sport = 0; sport < SPORT_COUNT; sport++) {
        yyjson_val *table = sports_table(&sports, (enum sport)sport), *course;
        size_t index, count;
        assert_true(table_number(table, "id") > 0 && table_number(table, "length_s") > 0);
        assert_true(yyjson_arr_size(yyjson_obj_get(table, "courses")) > 1);
        yyjson_arr_foreach(yyjson_obj_get(table, "courses"), index, count, course)
            check_course(table, course);
    }
    sports_close(&sports);
}
