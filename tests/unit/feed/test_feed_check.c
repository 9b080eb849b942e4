/* feed/check: what is refused, where, and what is published all the same. */
#include "base/memory.h"
#include "feed/check.h"
#include "stores/odds_feed.h"
#include "stores/odds_read.h"
#include "tests.h"

static void check_refused(enum odds_kind kind, struct text document, const char *expected)
{
    struct feed_report report = {.bytes = 7};
    struct error error;
    assert_int_equal(feed_check(kind, "f.json", document, &report, &error), STATUS_MALFORMED);
    if (strncmp(error.text, expected, strlen(expected)) != 0)
        fail_msg("expected '%s…', got '%s'", expected, error.text);
    assert_int_equal(report.bytes, 7);
}

TEST(a_refusal_names_file_line_and_column)
{
    static const struct {
        const char *document, *error;
    } rows[] = {
        {"", "f.json:1:1: "},
        {"[1", "f.json:1:3: "},
        {"[\n  {\"gmid\": 1,}\n]", "f.json:2:14: "},
        {"[\n  {\"a\": \"\xC3\xA9\xC3\xA9\", x}\n]", "f.json:2:15: "}, /* characters, not bytes */
        {"[{\"a\": 01}]", "f.json:1:"},
        {"[] []", "f.json:1:4: "},
        {"\xEF\xBB\xBF[]", "f.json:1:1: "},
        {"[\"\xFF\"]", "f.json:1:3: "},
        {"{}", "f.json:1:1: expected an array of objects"},
        {"\n\n  17", "f.json:3:3: expected an array of objects"},
        {"[{},\n{},\n \"\xC3\xA9\", 5]", "f.json:3:2: expected an object"},
        {"[{}, null]", "f.json:1:6: expected an object"},
        {"[{}, []]", "f.json:1:6: expected an object"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        check_refused(ODDS_CATALOG, text_of(rows[i].document), rows[i].error);
        check_refused(ODDS_MARKETS, text_of(rows[i].document), rows[i].error);
    }
}

TEST(depth_is_bounded)
{
    for (size_t depth = 256; depth <= 257; depth++) {
        struct buffer document = {0};
        struct feed_report report;
        buffer_append_string(&document, "[{\"a\":");
        for (size_t i = 2; i < depth; i++)
            buffer_append_char(&document, '[');
        for (size_t i = 2; i < depth; i++)
            buffer_append_char(&document, ']');
        buffer_append_string(&document, "}]");
        assert_int_equal(feed_check(ODDS_MARKETS, "f", buffer_text(&document), &report, NULL),
                         depth == 256 ? STATUS_OK : STATUS_MALFORMED);
        buffer_free(&document);
    }
}

TEST(size_is_bounded)
{
    struct buffer document = {0};
    struct feed_report report;
    buffer_reserve(&document, ODDS_VALUE_MAX + 1);
    memset(document.data, ' ', ODDS_VALUE_MAX + 1);
    memcpy(document.data, "[]", 2);
    document.size = ODDS_VALUE_MAX;
    assert_int_equal(feed_check(ODDS_CATALOG, "f", buffer_text(&document), &report, NULL),
                     STATUS_OK);
    assert_int_equal(report.bytes, ODDS_VALUE_MAX);
    document.size++;
    check_refused(ODDS_CATALOG, buffer_text(&document), "f.json: more than 32 MiB");
    buffer_free(&document);
}

TEST(rows_that_no_one_can_ask_for_are_counted)
{
    struct feed_report report;
    const char *document = "[{\"gmid\": 1},\n"
                           " {\"gmid\": \"02\"},\n"
                           " {\"ename\": \"none\"},\n"
                           " {\"gmid\": 0}, {\"gmid\": -1}, {\"gmid\": 1.0}, {\"gmid\": null},\n"
                           " {\"gmid\": \"x\"}, {\"gmid\": 123456789012345678901},\n"
                           " {\"gmid\": 2}, {\"gmid\": 3},\n"
                           " {\"gmid\": 99999999999999999999},\n"
                           " {\"\\u0067mid\": \"\\u0033\"},\n"
                           " {\"gmid\": 1, \"gmid\": 4}]";
    assert_int_equal(feed_check(ODDS_CATALOG, "f", text_of(document), &report, NULL), STATUS_OK);
    assert_int_equal(report.rows, 14);
    assert_int_equal(report.without_id, 7);
    assert_int_equal(report.without_id_line, 3);
    assert_int_equal(report.repeated, 2);
    assert_int_equal(report.repeated_line, 6);
    assert_string_equal(report.repeated_id.digits, "2");
    /* Markets have no ids of ours. */
    assert_int_equal(feed_check(ODDS_MARKETS, "f", text_of(document), &report, NULL), STATUS_OK);
    assert_int_equal(report.without_id + report.repeated, 0);
}

/* ---- with a store ---------------------------------------------------------------------------- */

struct fixture {
    char directory[32];
    struct odds_store *store;
};

static int open_fixture(void **state)
{
    struct fixture *fixture = memory_alloc_zeroed(1, sizeof *fixture);
    (void)snprintf(fixture->directory, sizeof fixture->directory, "/tmp/test_check.XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    char uri[64];
    (void)snprintf(uri, sizeof uri, "embedded:%s", fixture->directory);
    struct error error = {0};
    struct odds_store_options options = {.uri = uri, .timeout_ms = 5000, .create = true};
    if (odds_store_open(&fixture->store, &options, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    *state = fixture;
    return 0;
}

static int close_fixture(void **state)
{
    struct fixture *fixture = *state;
    char command[64];
    odds_store_close(&fixture->store);
    (void)snprintf(command, sizeof command, "rm -r %s", fixture->directory);
    assert_int_equal(system(command), 0); /* NOLINT: a name that this test made */
    memory_free(fixture);
    return 0;
}

static void check_stored(struct odds_store *store, enum odds_kind kind, const char *event,
                         const char *expected)
{
    struct odds_read read = {.kind = kind, .sport = SPORT_TENNIS};
    assert_int_equal(event_id_parse(text_of(event), &read.event), STATUS_OK);
    assert_int_equal(odds_store_read(store, &read), STATUS_OK);
    if (expected == NULL) {
        assert_true(read.value.version == 0);
    } else {
        assert_int_equal(read.value.size, strlen(expected));
        assert_memory_equal(read.value.bytes, expected, read.value.size);
    }
    memory_free(read.value.bytes);
}

/* The catalog of a sport; or, of an event, its odds. */
static void publish(struct fixture *fixture, enum sport sport, const char *event,
                    const char *document)
{
    struct odds_change change = {
        .kind = ODDS_CATALOG, .sport = sport, .bytes = document, .size = strlen(document)};
    struct feed_report report;
    if (event != NULL) {
        change.kind = ODDS_MARKETS;
        assert_int_equal(event_id_parse(text_of(event), &change.event), STATUS_OK);
    }
    assert_int_equal(feed_check(change.kind, "f", text_of(document), &report, NULL), STATUS_OK);
    assert_int_equal(odds_store_publish(fixture->store, &change, 1, NULL), STATUS_OK);
}

TEST_OF_WITH(fixture, exactly_the_given_bytes_are_published, open_fixture, close_fixture)
{
    const char *catalog = "\n[ {\"gmid\" : 34.0e6 } ]\t";
    const char *markets = "[{\"price\": 1.80}, {\"a\":1,\"a\":2}]\r\n";
    publish(fixture, SPORT_TENNIS, NULL, catalog);
    publish(fixture, SPORT_TENNIS, "17", markets);
    check_stored(fixture->store, ODDS_CATALOG, "1", catalog);
    check_stored(fixture->store, ODDS_MARKETS, "17", markets);
}

TEST_OF_WITH(fixture, the_catalog_is_asked_for_an_event, open_fixture, close_fixture)
{
    struct event_id event;
    bool listed = true;
    assert_int_equal(event_id_parse(TEXT("34000001"), &event), STATUS_OK);
    assert_int_equal(feed_catalog_lists(fixture->store, SPORT_CRICKET, &event, &listed, NULL),
                     STATUS_OK);
    assert_false(listed);
    publish(fixture, SPORT_CRICKET, NULL, "[{\"gmid\":7},{\"gmid\":\"34000001\"}]");
    assert_int_equal(feed_catalog_lists(fixture->store, SPORT_CRICKET, &event, &listed, NULL),
                     STATUS_OK);
    assert_true(listed);
}
