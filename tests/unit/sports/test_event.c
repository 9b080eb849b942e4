/* sports/event: the single-event body. (Its odds: tests/service/test_contract_pass_through.py.) */
#include "sports/event.h"
#include "tests.h"

static struct catalog_row row_of(const char *id, const char *object)
{
    struct catalog_row row = {.text = text_of(object)};
    assert_int_equal(event_id_parse(text_of(id), &row.id), STATUS_OK);
    return row;
}

TEST(the_id_is_a_bare_number_whatever_its_size)
{
    struct catalog_row row =
        row_of("99999999999999999999", "{\"gmid\":\"99999999999999999999\",\"x\":1.80}");
    struct buffer body = {0};
    size_t row_at;
    buffer_append_string(&body, "before");
    assert_int_equal(event_body_append(SPORT_HORSE_RACING, &row, TEXT("[]"), &body, &row_at, NULL),
                     STATUS_OK);
    assert_string_equal(
        buffer_string(&body),
        "before{\"sport\":\"horse-racing\",\"event_id\":99999999999999999999,\"event\":{\"gmid\":"
        "\"99999999999999999999\",\"x\":1.80},\"odds\":[]}");
    assert_true(text_equals((struct text){body.data + row_at, row.text.size}, row.text));
    buffer_free(&body);
}

TEST(unreadable_odds_leave_the_body_as_it_was)
{
    static const char *const stored[] = {"", "{}", "null", "[1]", "[{},[]]", "[{}", "[{}],"};
    for (size_t i = 0; i < sizeof stored / sizeof stored[0]; i++) {
        struct catalog_row row = row_of("7", "{\"gmid\":7}");
        struct buffer body = {0};
        size_t row_at = 11;
        struct json_text_error error = {0};
        buffer_append_string(&body, "before");
        assert_int_equal(
            event_body_append(SPORT_TENNIS, &row, text_of(stored[i]), &body, &row_at, &error),
            STATUS_MALFORMED);
        assert_string_equal(buffer_string(&body), "before");
        assert_int_equal(row_at, 11);
        assert_non_null(error.reason);
        buffer_free(&body);
    }
}
