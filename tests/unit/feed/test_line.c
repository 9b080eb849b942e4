/* feed/line: what a line of a stream publishes, and what is said of one that is wrong. */
#include "base/memory.h"
#include "feed/line.h"
#include "tests.h"

static void assert_change(const struct odds_change *change, enum odds_kind kind, enum sport sport,
                          const char *event, const char *document)
{
    assert_int_equal(change->kind, kind);
    assert_int_equal(change->sport, sport);
    if (kind == ODDS_MARKETS)
        assert_string_equal(change->event.digits, event);
    if (document == NULL) {
        assert_null(change->bytes);
    } else {
        assert_int_equal(change->size, strlen(document));
        assert_memory_equal(change->bytes, document, change->size);
    }
}

TEST(each_verb_is_read)
{
    static const struct {
        const char *line;
        enum odds_kind kind;
        enum sport sport;
        const char *event, *document;
        bool withdraws_sport;
    } rows[] = {
        {"{\"catalog\":\"cricket\",\"document\":[]}", ODDS_CATALOG, SPORT_CRICKET, NULL, "[]",
         false},
        {" { \"document\" : [ {\"a\":1.80} ] , \"catalog\" : \"tennis\" } \r", ODDS_CATALOG,
         SPORT_TENNIS, NULL, "[ {\"a\":1.80} ]", false},
        {"{\"odds\":\"horse-racing\",\"event\":\"007\",\"document\":[{}]}", ODDS_MARKETS,
         SPORT_HORSE_RACING, "7", "[{}]", false},
        {"{\"odds\":\"cricket\",\"event\":99999999999999999999,\"document\":[{}]}", ODDS_MARKETS,
         SPORT_CRICKET, "99999999999999999999", "[{}]", false},
        {"{\"withdraw\":\"foot\\u0062all\"}", ODDS_CATALOG, SPORT_FOOTBALL, NULL, NULL, true},
        {"{\"withdraw\":\"football\",\"event\":\"5\"}", ODDS_MARKETS, SPORT_FOOTBALL, "5", NULL,
         false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct feed_line line;
        feed_line_read(&line, text_of(rows[i].line), 0);
        if (line.wrong.reason != NULL)
            fail_msg("%s: %s", rows[i].line, line.wrong.reason);
        assert_int_equal(line.count, 1);
        assert_change(&line.changes[0], rows[i].kind, rows[i].sport, rows[i].event,
                      rows[i].document);
        assert_int_equal(line.withdraws_sport, rows[i].withdraws_sport);
        assert_int_equal(line.id.size, 0);
        feed_line_free(&line);
    }
}

TEST(what_goes_together_keeps_its_order)
{
    struct feed_line line;
    feed_line_read(&line,
                   TEXT("{\"id\":\"x\\ny\",\"together\":[{\"withdraw\":\"tennis\"},"
                        "{\"odds\":\"tennis\",\"event\":1,\"document\":[]},"
                        "{\"catalog\":\"tennis\",\"document\":[{\"gmid\":1},{},{\"gmid\":1}"
                        "]}]}"),
                   0);
    assert_null(line.wrong.reason);
    assert_int_equal(line.count, 3);
    assert_change(&line.changes[0], ODDS_CATALOG, SPORT_TENNIS, NULL, NULL);
    assert_true(line.withdraws_sport);
    assert_change(&line.changes[1], ODDS_MARKETS, SPORT_TENNIS, "1", "[]");
    assert_change(&line.changes[2], ODDS_CATALOG, SPORT_TENNIS, NULL,
                  "[{\"gmid\":1},{},{\"gmid\":1}]");
    assert_int_equal(line.rows_without_id, 1);
    assert_int_equal(line.rows_repeated, 1);
    assert_int_equal(line.id.size, strlen("\"x\\ny\""));
    assert_memory_equal(line.id.at, "\"x\\ny\"", line.id.size);
    feed_line_free(&line);
}

TEST(a_document_may_expire)
{
    static const struct {
        const char *line;
        uint32_t expires_s;
    } rows[] = {
        {"{\"odds\":\"tennis\",\"event\":1,\"document\":[],\"expires_s\":5}", 5},
        {"{\"catalog\":\"tennis\",\"document\":[],\"expires_s\":86400}", 86400},
        {"{\"catalog\":\"tennis\",\"document\":[],\"expires_s\":0}", 0},
        {"{\"catalog\":\"tennis\",\"document\":[]}", 7},
        {"{\"together\":[{\"catalog\":\"tennis\",\"document\":[]}]}", 7},
        {"{\"withdraw\":\"tennis\"}", 0},
    };
    struct feed_line line;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        feed_line_read(&line, text_of(rows[i].line), 7);
        assert_null(line.wrong.reason);
        assert_int_equal(line.changes[0].expires_s, rows[i].expires_s);
        assert_false(line.alive);
        feed_line_free(&line);
    }
    feed_line_read(&line, TEXT("{\"alive\":true,\"id\":1}"), 7);
    assert_null(line.wrong.reason);
    assert_true(line.alive);
    assert_int_equal(line.count, 0);
    feed_line_free(&line);
}

TEST(a_wrong_line_names_its_column)
{
    static const struct {
        const char *line;
        size_t column;
        const char *reason; /* how it begins */
    } rows[] = {
        {"x", 1, "expected a value"},
        {"[]", 1, "expected an object"},
        {"{}", 1, "expected one of catalog"},
        {"{\"catalog\":\"cricket\"}", 1, "the document is missing"},
        {"{\"catalog\":\"cricket\",\"document\":[1]}", 34, "expected an object"},
        {"{\"catalog\":\"cricket\",\"document\":{}}", 33, "expected an array"},
        {"{\"catalog\":\"\xC3\xA9\",\"document\":[]}", 12, "not a sport"},
        {"{\"catalog\":1,\"document\":[]}", 12, "not a sport"},
        {"{\"catalog\":\"cricket\",\"event\":1,\"document\":[]}", 30, "no event"},
        {"{\"odds\":\"cricket\",\"document\":[]}", 1, "the event is missing"},
        {"{\"odds\":\"cricket\",\"event\":0,\"document\":[]}", 27, "not an event id"},
        {"{\"odds\":\"cricket\",\"event\":-1,\"document\":[]}", 27, "not an event id"},
        {"{\"odds\":\"cricket\",\"event\":null,\"document\":[]}", 27, "not an event id"},
        {"{\"withdraw\":\"cricket\",\"document\":[]}", 34, "no document"},
        {"{\"withdraw\":\"cricket\",\"odds\":\"cricket\"}", 1, "expected one of"},
        {"{\"withdraw\":\"cricket\",\"withdraw\":\"cricket\"}", 23, "given twice"},
        {"{\"withdraw\":\"cricket\",\"foo\":1}", 23, "not a member"},
        {"{\"withdraw\":\"cricket\",\"id\":null}", 28, "an id is"},
        {"{\"withdraw\":\"cricket\",\"id\":[1]}", 28, "an id is"},
        {"{\"withdraw\":\"cricket\",\"expires_s\":1}", 35, "expires_s goes"},
        {"{\"catalog\":\"cricket\",\"document\":[],\"expires_s\":86401}", 48, "expires_s is"},
        {"{\"catalog\":\"cricket\",\"document\":[],\"expires_s\":\"1\"}", 48, "expires_s is"},
        {"{\"alive\":false}", 10, "alive is"},
        {"{\"alive\":true,\"event\":1}", 23, "no event"},
        {"{\"together\":[{\"alive\":true}]}", 23, "this is of a whole line"},
        {"{\"together\":[]}", 13, "there is nothing"},
        {"{\"together\":{}}", 13, "expected an array"},
        {"{\"together\":[5]}", 14, "expected an object"},
        {"{\"together\":[],\"document\":[]}", 27, "no document"},
        {"{\"together\":[{\"together\":[]}]}", 26, "this is of a whole line"},
        {"{\"together\":[{\"withdraw\":\"cricket\",\"id\":1}]}", 41, "this is of a whole line"},
        {"{\"together\":[{\"withdraw\":\"cricket\"},{\"odds\":\"cricket\"}]}", 37, "the event"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct feed_line line;
        feed_line_read(&line, text_of(rows[i].line), 0);
        if (line.wrong.reason == NULL || line.wrong.column != rows[i].column ||
            strncmp(line.wrong.reason, rows[i].reason, strlen(rows[i].reason)) != 0)
            fail_msg("%s: %zu: %s", rows[i].line, line.wrong.column,
                     line.wrong.reason == NULL ? "accepted" : line.wrong.reason);
        assert_int_equal(line.count, 0);
        assert_null(line.changes);
        feed_line_free(&line);
    }
}

TEST(bounds_hold)
{
    for (size_t more = 0; more <= 1; more++) {
        struct buffer text = {0};
        struct feed_line line;
        buffer_append_string(&text, "{\"together\":[{\"withdraw\":\"cricket\"}");
        for (size_t i = 1; i < FEED_TOGETHER_MAX + more; i++)
            buffer_append_string(&text, ",{\"withdraw\":\"cricket\"}");
        buffer_append_string(&text, "]}");
        feed_line_read(&line, buffer_text(&text), 0);
        assert_int_equal(line.count, more == 0 ? FEED_TOGETHER_MAX : 0);
        feed_line_free(&line);
        buffer_clear(&text);
        buffer_append_string(&text, "{\"withdraw\":\"cricket\",\"id\":\"");
        for (size_t i = 2; i < FEED_LINE_ID_MAX + more; i++)
            buffer_append_char(&text, 'x');
        buffer_append_string(&text, "\"}");
        feed_line_read(&line, buffer_text(&text), 0);
        assert_int_equal(line.id.size, more == 0 ? FEED_LINE_ID_MAX : 0);
        assert_int_equal(line.wrong.reason == NULL, more == 0);
        feed_line_free(&line);
        buffer_free(&text);
    }
}
