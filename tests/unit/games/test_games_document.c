/* Games out of JSON: what is read, and where each mistake is said to be. */
#include "games/document.h"
#include "tests.h"

static bool only_acme(void *context, struct text id)
{
    return text_equals(id, TEXT("acme"));
}

static enum status read_text(const char *text, struct games_document *document, struct error *error)
{
    return games_document_read(document, "g.json", text_of(text), only_acme, NULL, error);
}

TEST(a_game_may_say_everything_or_only_what_it_must)
{
    struct games_document document = {0};
    struct error error = {0};
    assert_int_equal(
        read_text(
            "[{\"id\":\"a-1\",\"name\":\"A \\u00e9\",\"provider\":\"acme\",\"category\":\"slots\","
            "\"features\":[\"free spins\",\"x\"],\"rtp_bps\":9612,\"volatility\":\"low\","
            "\"thumbnail_url\":\"https://c/a.png\",\"demo\":true,\"currencies\":[\"EUR\","
            "\"JPY\"],\"languages\":[\"en\"],\"devices\":[\"mobile\"],\"enabled\":false,"
            "\"blocked_countries\":[\"US\",\"GB\"],"
            "\"updated_at\":\"x\"},\n"
            " {\"id\":\"b\",\"name\":\"B\",\"provider\":\"acme\",\"category\":\"x\","
            "\"rtp_bps\":null}]",
            &document, &error),
        STATUS_OK);
    assert_int_equal(document.count, 2);
    const struct game_record *first = &document.records[0];
    assert_string_equal(first->id, "a-1");
    assert_string_equal(first->name, "A \xC3\xA9");
    assert_string_equal(first->features, "free spins\nx");
    assert_int_equal(first->rtp_bps, 9612);
    assert_int_equal(first->volatility, GAME_LOW);
    assert_string_equal(first->currencies, "EUR\nJPY");
    assert_string_equal(first->blocked_countries, "US\nGB");
    assert_false(first->keeps_countries);
    assert_true(first->demo);
    assert_false(first->enabled);
    assert_true(document.set_enabled[0]);
    const struct game_record *second = &document.records[1];
    assert_int_equal(second->rtp_bps, -1);
    assert_string_equal(second->currencies, "");
    assert_true(second->keeps_countries);
    assert_true(second->enabled);
    assert_false(document.set_enabled[1]);
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(game_table.check(&document.records[i], &error), STATUS_OK);
    games_document_free(&document);
}

TEST(mistakes_are_told_with_line_column_and_member)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"", "g.json:1:1: not JSON"},
        {"{}", "g.json:1:1: must be an array"},
        {"[\n 1]", "g.json:2:2: must be a game"},
        {"[{]", "g.json:1:3: not JSON"},
        {"[{\"id\":\"a\",\n\"x\":1}]", "g.json:2:1: a game has no such member"},
        {"[{\"id\":\"a\",\"\\u0069d\":\"a\"}]", "g.json:1:12: id: stands there twice"},
        {"[{\"id\":\"A\"}]", "g.json:1:8: id: must be"},
        {"[{\"id\":1}]", "g.json:1:8: id: must be"},
        {"[{\"name\":\"\"}]", "g.json:1:10: name: must be"},
        {"[{\"name\":\"a\\u0000b\"}]", "name: must be"},
        {"[{\"name\":\"a\\ud800\"}]", "name: must be"},
        {"[{\"provider\":\"nobody\"}]", "g.json:1:14: provider: there is no provider 'nobody'"},
        {"[{\"rtp_bps\":9612.0}]", "rtp_bps: must be"},
        {"[{\"rtp_bps\":1e2}]", "rtp_bps: must be"},
        {"[{\"rtp_bps\":10001}]", "rtp_bps: must be"},
        {"[{\"rtp_bps\":-0}]", "rtp_bps: must be"},
        {"[{\"volatility\":\"huge\"}]", "volatility: must be"},
        {"[{\"thumbnail_url\":\"javascript:x\"}]", "thumbnail_url: must be"},
        {"[{\"demo\":null}]", "demo: must be true or false"},
        {"[{\"currencies\":\"EUR\"}]", "currencies: must be an array"},
        {"[{\"currencies\":[\"EUR\",\n\"XQQ\"]}]", "g.json:2:1: currencies: must be"},
        {"[{\"currencies\":[\"EUR\",\"EUR\"]}]", "the same item stands there twice"},
        {"[{\"devices\":[\"a\\nb\"]}]", "devices: must be"},
        {"[{\"id\":\"a\",\"name\":\"A\",\"provider\":\"acme\"}]",
         "g.json:1:2: category: is missing"},
        {"[{\"id\":\"a\",\"name\":\"A\",\"provider\":\"acme\",\"category\":\"x\"},\n"
         "{\"id\":\"a\",\"name\":\"A\",\"provider\":\"acme\",\"category\":\"x\"}]",
         "g.json:2:1: id: 'a' stands in the document twice"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct games_document document = {0};
        struct error error = {0};
        assert_int_equal(read_text(cases[i].text, &document, &error), STATUS_INVALID);
        if (strstr(error.text, cases[i].said) == NULL)
            fail_msg("%s: said '%s', not '%s'", cases[i].text, error.text, cases[i].said);
        assert_null(document.records);
    }
}
