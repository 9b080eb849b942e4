/* sports/catalog: rows pass exactly, hidden members go, ids are found. */
#include "sports/catalog.h"
#include "tests.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct catalog *make(const char *stored)
{
    struct catalog *catalog;
    assert_int_equal(catalog_create(text_of(stored), &catalog, NULL), STATUS_OK);
    return catalog;
}

static void assert_list(const char *stored, const char *list)
{
    struct catalog *catalog = make(stored);
    assert_int_equal(catalog_list(catalog).size, text_of(list).size);
    assert_memory_equal(catalog_list(catalog).at, list, text_of(list).size);
    catalog_destroy(&catalog);
}

static const struct catalog_row *find(const struct catalog *catalog, const char *digits)
{
    struct event_id id;
    assert_int_equal(event_id_parse(text_of(digits), &id), STATUS_OK);
    return catalog_find(catalog, &id);
}

TEST(rows_pass_byte_for_byte_but_for_whitespace)
{
    assert_list("[]", "[]");
    assert_list(" [ ] \n", "[]");
    assert_list("[ { \"gmid\" : 1, \"z\":1.80, \"a\" : \"\\u00e9 \\/ x\" },\n{\"gmid\":2,\"n\":"
                "283.3844663329566,\"big\":99999999999999999999} ]",
                "[{\"gmid\":1,\"z\":1.80,\"a\":\"\\u00e9 \\/ x\"},{\"gmid\":2,\"n\":"
                "283.3844663329566,\"big\":99999999999999999999}]");
}

TEST(hidden_members_go_however_they_are_written)
{
    assert_list("[{\"providerEventId\":7,\"gmid\":1,\"feed_source\":{\"a\":[1]},\"x\":2}]",
                "[{\"gmid\":1,\"x\":2}]");
    assert_list("[{\"provider\\u0045ventId\":7,\"gmid\":1,\"feed\\u005Fsource\":null}]",
                "[{\"gmid\":1}]");
    assert_list("[{\"feed_source\":1,\"feed_source\":2,\"\\u0066eed_source\":3}]", "[{}]");
    assert_list("[{\"Feed_source\":1,\"feed_source \":2,\"tv\":3}]",
                "[{\"Feed_source\":1,\"feed_source \":2,\"tv\":3}]");
}

TEST(nested_members_are_not_touched)
{
    assert_list("[{\"gmid\":1,\"in\":{\"feed_source\":1},\"l\":[{\"providerEventId\":2}]}]",
                "[{\"gmid\":1,\"in\":{\"feed_source\":1},\"l\":[{\"providerEventId\":2}]}]");
}

TEST(a_row_is_found_by_its_id_whether_number_or_string)
{
    struct catalog *catalog =
        make("[{\"gmid\":34000001,\"feed_source\":1},{\"gmid\":\"0034000002\"},{\"g\\u006did\":"
             "\"\\u0033\"},{\"gmid\":99999999999999999999}]");
    const struct catalog_row *row = find(catalog, "34000001");
    assert_non_null(row);
    assert_true(text_equals(row->text, TEXT("{\"gmid\":34000001}")));
    assert_string_equal(row->id.digits, "34000001");
    row = find(catalog, "34000002");
    assert_non_null(row);
    assert_true(text_equals(row->text, TEXT("{\"gmid\":\"0034000002\"}")));
    assert_string_equal(row->id.digits, "34000002");
    assert_non_null(find(catalog, "3"));
    assert_non_null(find(catalog, "99999999999999999999"));
    assert_null(find(catalog, "4"));
    assert_null(find(catalog, "34"));
    catalog_destroy(&catalog);
}

TEST(a_row_without_usable_id_stays_in_the_list)
{
    static const char *const unusable[] = {
        "{}",
        "{\"gmid\":0}",
        "{\"gmid\":-1}",
        "{\"gmid\":1.0}",
        "{\"gmid\":1e3}",
        "{\"gmid\":null}",
        "{\"gmid\":true}",
        "{\"gmid\":[1]}",
        "{\"gmid\":{\"gmid\":1}}",
        "{\"gmid\":\"\"}",
        "{\"gmid\":\"000\"}",
        "{\"gmid\":\" 1\"}",
        "{\"gmid\":\"1\\u0000\"}",
        "{\"gmid\":\"+1\"}",
        "{\"gmid\":\"\\ud800\"}",
        "{\"gmid\":100000000000000000000}",
        "{\"gmid\":\"000000000000000000001\"}",
        "{\"Gmid\":1}",
    };
    for (size_t i = 0; i < COUNT(unusable); i++) {
        struct buffer stored = {0};
        buffer_append_format(&stored, "[%s]", unusable[i]);
        struct catalog *catalog = make(buffer_string(&stored));
        assert_true(text_equals(catalog_list(catalog), buffer_text(&stored)));
        assert_null(catalog_row(catalog, 0));
        catalog_destroy(&catalog);
        buffer_free(&stored);
    }
}

TEST(of_two_rows_with_one_id_the_first_is_found)
{
    struct catalog *catalog = make("[{\"gmid\":5,\"n\":1},{\"gmid\":\"5\",\"n\":2}]");
    assert_true(text_equals(find(catalog, "5")->text, TEXT("{\"gmid\":5,\"n\":1}")));
    catalog_destroy(&catalog);
}

TEST(of_two_ids_in_one_row_the_last_counts)
{
    struct catalog *catalog = make("[{\"gmid\":5,\"gmid\":6},{\"gmid\":7,\"gmid\":null}]");
    assert_null(find(catalog, "5"));
    assert_non_null(find(catalog, "6"));
    assert_null(find(catalog, "7"));
    catalog_destroy(&catalog);
}

TEST(ten_thousand_rows_are_all_found)
{
    struct buffer stored = {0};
    for (unsigned i = 1; i <= 10000; i++)
        buffer_append_format(&stored, "%s{\"gmid\":%u}", i == 1 ? "[" : ",", i * 7919);
    buffer_append_char(&stored, ']');
    struct catalog *catalog = make(buffer_string(&stored));
    assert_non_null(catalog_row(catalog, 9999));
    assert_null(catalog_row(catalog, 10000));
    for (unsigned i = 1; i <= 10000; i++) {
        char digits[16];
        (void)snprintf(digits, sizeof digits, "%u", i * 7919);
        const struct catalog_row *row = find(catalog, digits);
        assert_non_null(row);
        assert_string_equal(row->id.digits, digits);
        (void)snprintf(digits, sizeof digits, "%u", i * 7919 + 1);
        assert_null(find(catalog, digits));
    }
    catalog_destroy(&catalog);
    buffer_free(&stored);
}

TEST(what_is_not_an_array_of_objects_is_malformed)
{
    static const char *const stored[] = {"",       "{}",           "null",      "7",   "\"[]\"",
                                         "[1]",    "[{},[]]",      "[{},null]", "[{}", "[{},]",
                                         "[{}] x", "[{\"a\":01}]", "[\"\xFF\"]"};
    for (size_t i = 0; i < COUNT(stored); i++) {
        struct catalog *catalog = NULL;
        struct json_text_error error = {0};
        assert_int_equal(catalog_create(text_of(stored[i]), &catalog, &error), STATUS_MALFORMED);
        assert_null(catalog);
        assert_non_null(error.reason);
    }
}
