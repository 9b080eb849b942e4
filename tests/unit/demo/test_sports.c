/* demo/sports: the tables of the simulated sports have the form that their header describes. */
#include "demo/sports.h"
#include "tests.h"

static struct text member(struct text object, const char *name)
{
    return json_text_member(object, text_of(name));
}

/* A runner has a chance or a result; the last frame has results only. */
static void check_runners(struct text entry, size_t runners, bool last)
{
    struct json_text_cursor cursor = json_text_open(entry);
    struct text value;
    assert_int_equal(json_text_count(entry), runners);
    while (json_text_next_element(&cursor, &value)) {
        int64_t chance;
        if (json_text_kind(value) == JSON_TEXT_STRING)
            assert_non_null(strchr("WLPRV", json_text_inside(value).at[0]));
        else
            assert_true(!last && json_text_integer(value, &chance) && chance >= 1 &&
                        chance <= 1000);
    }
}

static void check_odds(struct text markets, struct text odds, size_t sides, bool last)
{
    assert_int_equal(json_text_count(odds), json_text_count(markets));
    for (size_t index = 0; index < json_text_count(markets); index++) {
        struct text market = json_text_element(markets, index);
        struct text entry = json_text_element(odds, index), runners = member(market, "runners");
        size_t sections = json_text_count(member(market, "sections"));
        if (text_equals(table_string(market, "type"), TEXT("match1"))) {
            assert_true(index > 0 && text_equals(entry, TEXT("null")));
            continue;
        }
        if (sections == 0)
            check_runners(entry, runners.at != NULL ? json_text_count(runners) : sides, last);
        for (size_t i = 0; sections > 0 && i < json_text_count(entry); i += 2) {
            int64_t number;
            assert_true(json_text_integer(json_text_element(entry, i), &number));
            assert_in_range(number, 1, sections);
        }
    }
}

static void check_course(struct text table, struct text course)
{
    struct text frames = member(course, "frames"), frame;
    struct json_text_cursor cursor = json_text_open(frames);
    size_t count = json_text_count(frames);
    int64_t before = INT64_MIN;
    bool starts = false;
    for (size_t index = 0; json_text_next_element(&cursor, &frame); index++) {
        struct text odds = member(frame, "odds");
        assert_true(table_number(frame, "at") > before);
        before = table_number(frame, "at");
        starts |= before == 0;
        if (odds.at != NULL || index == 0 || index == count - 1)
            check_odds(member(table, "markets"), odds, (size_t)table_number(course, "sides"),
                       index == count - 1);
        assert_true((member(frame, "remark").at == NULL) == (member(frame, "halt").at == NULL));
    }
    assert_true(starts && before > 0);
}

TEST(every_course_has_a_start_odds_and_a_result)
{
    struct sports sports;
    sports_open(&sports);
    for (int sport = 0; sport < SPORT_COUNT; sport++) {
        struct text table = sports.tables[sport], courses = member(table, "courses"), course;
        assert_true(table_number(table, "id") > 0 && table_number(table, "length_s") > 0);
        assert_true(json_text_count(courses) > 1);
        struct json_text_cursor cursor = json_text_open(courses);
        while (json_text_next_element(&cursor, &course))
            check_course(table, course);
    }
}

/* A table's strings are used as they are written. */
TEST(no_table_has_an_escape)
{
    struct sports sports;
    sports_open(&sports);
    for (int sport = 0; sport < SPORT_COUNT; sport++)
        assert_null(memchr(sports.tables[sport].at, '\\', sports.tables[sport].size));
    assert_null(memchr(sports.names.at, '\\', sports.names.size));
}
