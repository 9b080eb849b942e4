/* sports/catalog: ids are found. (What becomes of the bytes of a catalog and of odds, and what of ids
 * that are none: tests/service/test_contract_pass_through.py.) */
#include "sports/catalog.h"
#include "tests.h"

static struct catalog *make(const char *stored)
{
    struct catalog *catalog;
    assert_int_equal(catalog_create(text_of(stored), &catalog, NULL), STATUS_OK);
    return catalog;
}

static const struct catalog_row *find(const struct catalog *catalog, const char *digits)
{
    struct event_id id;
    assert_int_equal(event_id_parse(text_of(digits), &id), STATUS_OK);
    return catalog_find(catalog, &id);
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
