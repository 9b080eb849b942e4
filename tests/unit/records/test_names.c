/* records/sport and records/event_id: what is addressed by. */
#include <unistd.h>

#include "records/event_id.h"
#include "records/sport.h"
#include "tests.h"

TEST(sports_have_exact_keys_in_canonical_order)
{
    const char *keys[] = {"cricket", "football", "tennis", "horse-racing", "greyhound-racing"};
    const char *names[] = {"Cricket", "Football", "Tennis", "Horse Racing", "Greyhound Racing"};
    enum sport sport;
    for (int i = 0; i < SPORT_COUNT; i++) {
        assert_string_equal(sport_key((enum sport)i), keys[i]);
        assert_string_equal(sport_name((enum sport)i), names[i]);
        assert_int_equal(sport_from_key(text_of(keys[i]), &sport), STATUS_OK);
        assert_int_equal(sport, i);
        assert_int_equal(sport_from_key(text_of(names[i]), &sport), STATUS_NOT_FOUND);
    }
    assert_int_equal(sport_from_key(TEXT(""), &sport), STATUS_NOT_FOUND);
    assert_int_equal(sport_from_key(TEXT("tennis\0"), &sport), STATUS_NOT_FOUND);
}

static void expect_set(const char *list, sport_set expected, const char *canonical)
{
    sport_set set;
    struct error error = {0};
    struct buffer out = {0};
    if (sport_set_parse(text_of(list), &set, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    assert_int_equal(set, expected);
    sport_set_append(&out, set);
    assert_string_equal(buffer_string(&out), canonical);
    buffer_free(&out);
}

TEST(sets_of_sports_are_read_and_written)
{
    expect_set("all", SPORT_SET_ALL, "all");
    expect_set(" none ", 0, "none");
    expect_set("tennis", SPORT_BIT(SPORT_TENNIS), "tennis");
    expect_set("tennis , cricket,tennis", SPORT_BIT(SPORT_TENNIS) | SPORT_BIT(SPORT_CRICKET),
               "cricket,tennis");
    expect_set("cricket,football,tennis,horse-racing,greyhound-racing", SPORT_SET_ALL, "all");
    const char *wrong[] = {"", ",", "tennis,", "golf", "Tennis", "all,none", "tennis;cricket"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        sport_set set = 99;
        struct error error = {0};
        assert_int_equal(sport_set_parse(text_of(wrong[i]), &set, &error), STATUS_INVALID);
        assert_non_null(strstr(error.text, "is not a sport"));
        assert_int_equal(set, 99);
    }
}

TEST(event_ids_are_decimal_text_beyond_64_bits)
{
    static const char *const right[][2] = {
        {"1", "1"},
        {"34000001", "34000001"},
        {"99999999999999999999", "99999999999999999999"},
        {"18446744073709551616", "18446744073709551616"},
        {"00000000000000000001", "1"},
    };
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        struct event_id id;
        assert_int_equal(event_id_parse(text_of(right[i][0]), &id), STATUS_OK);
        assert_string_equal(id.digits, right[i][1]);
        assert_true(text_equals(event_id_text(&id), text_of(right[i][1])));
    }
    const char *wrong[] = {"",
                           "0",
                           "00000000000000000000",
                           "000000000000000000001",
                           "-1",
                           "+1",
                           " 1",
                           "1 ",
                           "1.0",
                           "1e3",
                           "x",
                           "0x1",
                           "999999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct event_id id = {.size = 77};
        assert_int_equal(event_id_parse(text_of(wrong[i]), &id), STATUS_INVALID);
        assert_int_equal(id.size, 77);
    }
}

TEST(equal_event_ids_are_equal_bytes)
{
    struct event_id a;
    struct event_id b;
    memset(&a, 0xAA, sizeof a);
    memset(&b, 0x55, sizeof b);
    assert_int_equal(event_id_parse(TEXT("0042"), &a), STATUS_OK);
    assert_int_equal(event_id_parse(TEXT("42"), &b), STATUS_OK);
    assert_true(event_id_equals(&a, &b));
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(event_id_parse(TEXT("420"), &b), STATUS_OK);
    assert_false(event_id_equals(&a, &b));
}

TEST(an_event_id_in_json_is_a_number_or_a_string_of_digits)
{
    static const struct {
        const char *json;
        const char *id; /* NULL: none */
    } cases[] = {{"34000001", "34000001"},
                 {"\"34000001\"", "34000001"},
                 {"\"\\u0033\\u0034\"", "34"},
                 {"99999999999999999999", "99999999999999999999"},
                 {"", NULL},
                 {"0", NULL},
                 {"-1", NULL},
                 {"1.0", NULL},
                 {"1e2", NULL},
                 {"null", NULL},
                 {"[1]", NULL},
                 {"\"\"", NULL},
                 {"\" 1\"", NULL},
                 {"\"100000000000000000000\"", NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct event_id id = {0};
        bool found = event_id_read(text_of(cases[i].json), &id) == STATUS_OK;
        assert_int_equal(found, cases[i].id != NULL);
        assert_string_equal(id.digits, found ? cases[i].id : "");
    }
    struct event_id id;
    assert_int_equal(event_id_read(TEXT(""), &id), STATUS_NOT_FOUND);
}
