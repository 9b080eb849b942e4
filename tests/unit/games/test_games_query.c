/* The query of the games list, and that a cursor is good for one customer and one set of
 * filters. */
#include "games/query.h"
#include "tests.h"

static const uint8_t key[32] = {1, 2, 3};

TEST(nothing_asked_is_the_first_fifty)
{
    struct games_query query;
    assert_null(games_query_parse(TEXT(""), &query));
    assert_int_equal(query.limit, 50);
    assert_int_equal(query.demo, GAMES_DEMO_ANY);
    assert_string_equal(query.q, "");
}

TEST(values_are_decoded_once)
{
    struct games_query query;
    assert_null(games_query_parse(TEXT("limit=200&demo=false&q=b%C3%b6ok+of%20%2B&%63ategory=a%2541"
                                       "&currency=EUR&provider=acme"),
                                  &query));
    assert_int_equal(query.limit, 200);
    assert_int_equal(query.demo, GAMES_DEMO_FALSE);
    assert_string_equal(query.q, "b\xC3\xB6ok of +");
    assert_string_equal(query.category, "a%41");
    assert_string_equal(query.currency, "EUR");
    assert_string_equal(query.provider, "acme");
}

TEST(whatever_is_not_in_the_table_or_its_bounds_is_refused)
{
    static const char *const wrong[] = {
        "x=1",
        "limit",
        "limit=",
        "limit=0",
        "limit=201",
        "limit=+5",
        "limit=5.0",
        "limit=0x5",
        "limit=0005",
        "limit=1&limit=1",
        "limit=1&",
        "&limit=1",
        "limit=1&&q=a",
        "q=",
        "q=%",
        "q=%4",
        "q=%4g",
        "q=%00",
        "q=%ff",
        "q=%0a",
        "demo=1",
        "demo=TRUE",
        "currency=eur",
        "currency=EURO",
        "provider=Acme",
        "cursor=",
        "Limit=1",
        "q=a&%71=b",
        "language=\x80",
        "=",
        "q=0123456789012345678901234567890123456789012345678901234567890123x",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct games_query query = {.limit = 77};
        if (games_query_parse(text_of(wrong[i]), &query) == NULL)
            fail_msg("taken: %s", wrong[i]);
        assert_int_equal(query.limit, 77);
    }
}

static struct games_query with_cursor(const char *filters, const char *cursor)
{
    struct games_query query;
    assert_null(games_query_parse(text_of(filters), &query));
    memcpy(query.cursor, cursor, strlen(cursor) + 1);
    return query;
}

TEST(a_cursor_leads_on_for_its_customer_and_filters_alone)
{
    char cursor[GAMES_CURSOR_SIZE];
    char id[GAME_ID_SIZE];
    struct games_query query;
    assert_null(games_query_parse(TEXT("category=slots&limit=3"), &query));
    games_cursor_write(key, "cus_a", &query, TEXT("book-of-sand"), cursor);
    query = with_cursor("category=slots&limit=99", cursor);
    assert_true(games_cursor_read(key, "cus_a", &query, id));
    assert_string_equal(id, "book-of-sand");
    assert_false(games_cursor_read(key, "cus_b", &query, id));
    static const uint8_t other[32] = {9};
    assert_false(games_cursor_read(other, "cus_a", &query, id));
    static const char *const filters[] = {"", "category=slot", "provider=slots",
                                          "category=slots&demo=true", "category=slots&q=x"};
    for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
        query = with_cursor(filters[i], cursor);
        assert_false(games_cursor_read(key, "cus_a", &query, id));
    }
}

TEST(a_changed_cursor_is_refused)
{
    char cursor[GAMES_CURSOR_SIZE];
    char id[GAME_ID_SIZE];
    struct games_query query = with_cursor("", "");
    assert_true(games_cursor_read(key, "cus_a", &query, id));
    assert_string_equal(id, "");
    games_cursor_write(key, "cus_a", &query, TEXT("a"), cursor);
    for (size_t i = 0; cursor[i] != '\0'; i++) {
        char before = cursor[i];
        cursor[i] = before == 'A' ? 'B' : 'A';
        query = with_cursor("", cursor);
        assert_false(games_cursor_read(key, "cus_a", &query, id));
        cursor[i] = '\0';
        query = with_cursor("", cursor);
        if (i > 0)
            assert_false(games_cursor_read(key, "cus_a", &query, id));
        cursor[i] = before;
    }
    query = with_cursor("", "!");
    assert_false(games_cursor_read(key, "cus_a", &query, id));
}

TEST(the_longest_id_has_a_cursor)
{
    char cursor[GAMES_CURSOR_SIZE];
    char id[GAME_ID_SIZE];
    char longest[GAME_ID_SIZE];
    struct games_query query = with_cursor("", "");
    memset(longest, 'z', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    games_cursor_write(key, "cus_a", &query, text_of(longest), cursor);
    query = with_cursor("", cursor);
    assert_true(games_cursor_read(key, "cus_a", &query, id));
    assert_string_equal(id, longest);
}
