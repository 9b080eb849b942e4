/*
 * base/json_text: strict RFC 8259, exact slices. The tables have the classes of case that JSON
 * parsers are usually told apart by; SQLite is the second opinion on random damage.
 */

#include "base/json_text.h"
#include "base/memory.h"
#include "second_opinion.h"
#include "tests.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static enum status check(struct text text)
{
    /* An allocation of exactly the size, so that the sanitizer sees a read beyond it. */
    char *copy = memory_copy(text.at, text.size);
    enum status status = json_text_check((struct text){copy, text.size}, NULL, NULL);
    memory_free(copy);
    return status;
}

/* ---- the grammar ----------------------------------------------------------------------------- */

static const struct text accepted[] = {
    /* structure and whitespace */
    TEXT_INIT("[]"),
    TEXT_INIT("{}"),
    TEXT_INIT(" [ ] "),
    TEXT_INIT("\t\r\n{\n}\r\n"),
    TEXT_INIT("[1,2 , 3]"),
    TEXT_INIT("[[],[[]],{}]"),
    TEXT_INIT("{\"a\":{\"b\":[{}]}}"),
    TEXT_INIT("{\"a\" : 1 , \"b\"\n:\t2}"),
    TEXT_INIT("{\"\":0}"),
    TEXT_INIT("{\"same\":1,\"same\":2}"),
    TEXT_INIT("[null, 1, \"1\", {}]"),
    /* a scalar alone */
    TEXT_INIT("true"),
    TEXT_INIT("false"),
    TEXT_INIT("null"),
    TEXT_INIT("0"),
    TEXT_INIT("-0"),
    TEXT_INIT("\"\""),
    TEXT_INIT(" 4 "),
    /* numbers */
    TEXT_INIT("-1"),
    TEXT_INIT("123"),
    TEXT_INIT("0.5"),
    TEXT_INIT("-0.0"),
    TEXT_INIT("1.80"),
    TEXT_INIT("283.3844663329566"),
    TEXT_INIT("99999999999999999999"),
    TEXT_INIT("1e5"),
    TEXT_INIT("1E5"),
    TEXT_INIT("1e+5"),
    TEXT_INIT("1e-5"),
    TEXT_INIT("0e0"),
    TEXT_INIT("1.5E+07"),
    TEXT_INIT("1e99999"),
    TEXT_INIT("-1e-99999"),
    TEXT_INIT("0.00000000000000000000000000000000000000000000000000000000000000000000000000000001"),
    /* strings */
    TEXT_INIT("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\""),
    TEXT_INIT("\"\\u0000\\u001f\\u007F\\uFFFF\\uabcd\\uABCD\""),
    TEXT_INIT("\"\\ud83d\\ude00\""),
    TEXT_INIT("\"\x7F\""),
    TEXT_INIT("\"/\""),
    TEXT_INIT("\"\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xEF\xBF\xBF\""),
    TEXT_INIT("\"\xF0\x90\x80\x80\xF4\x8F\xBF\xBF\""),
    TEXT_INIT("\"\xEF\xBB\xBF inside\""),
    TEXT_INIT("\"\xE2\x80\xA8\xE2\x80\xA9\""),
    TEXT_INIT("{\"\xC3\xA9\\u00e9\":\"[{,:]}\"}"),
    TEXT_INIT("\"0123456789 plain text longer than one word of the machine 0123456789\""),
    /* lone surrogate escapes are within the grammar */
    TEXT_INIT("\"\\ud800\""),
    TEXT_INIT("\"\\udc00\""),
    TEXT_INIT("\"\\udc00\\ud800\""),
    TEXT_INIT("\"\\ud800x\""),
    TEXT_INIT("{\"\\ud800\":1}"),
};

static const struct text refused[] = {
    /* structure */
    TEXT_INIT(""),
    TEXT_INIT(" "),
    TEXT_INIT("\n"),
    TEXT_INIT("["),
    TEXT_INIT("]"),
    TEXT_INIT("{"),
    TEXT_INIT("}"),
    TEXT_INIT("[}"),
    TEXT_INIT("{]"),
    TEXT_INIT("[1"),
    TEXT_INIT("[1,"),
    TEXT_INIT("[1,]"),
    TEXT_INIT("[,1]"),
    TEXT_INIT("[,]"),
    TEXT_INIT("[1,,2]"),
    TEXT_INIT("[1 2]"),
    TEXT_INIT("[1:2]"),
    TEXT_INIT("[1}"),
    TEXT_INIT("[1]]"),
    TEXT_INIT("[] []"),
    TEXT_INIT("{}{}"),
    TEXT_INIT("1 2"),
    TEXT_INIT("[]x"),
    TEXT_INIT("{\"a\"}"),
    TEXT_INIT("{\"a\":}"),
    TEXT_INIT("{\"a\":1,}"),
    TEXT_INIT("{,\"a\":1}"),
    TEXT_INIT("{\"a\" 1}"),
    TEXT_INIT("{\"a\"::1}"),
    TEXT_INIT("{\"a\":1 \"b\":2}"),
    TEXT_INIT("{\"a\":1;\"b\":2}"),
    TEXT_INIT("{\"a\":1"),
    TEXT_INIT("{\"a\":1]"),
    TEXT_INIT("{\"a\":"),
    TEXT_INIT("{\"a\""),
    TEXT_INIT("{\"a"),
    TEXT_INIT("{a:1}"),
    TEXT_INIT("{'a':1}"),
    TEXT_INIT("{1:1}"),
    TEXT_INIT("{null:1}"),
    TEXT_INIT("{[]:1}"),
    TEXT_INIT("{\"a\":1,1}"),
    /* what other languages allow */
    TEXT_INIT("[1,2] // two"),
    TEXT_INIT("/* two */ [1,2]"),
    TEXT_INIT("# two\n[]"),
    TEXT_INIT("['a']"),
    TEXT_INIT("[a]"),
    TEXT_INIT("[undefined]"),
    TEXT_INIT("[NaN]"),
    TEXT_INIT("[Infinity]"),
    TEXT_INIT("[-Infinity]"),
    TEXT_INIT("[inf]"),
    TEXT_INIT("True"),
    TEXT_INIT("TRUE"),
    TEXT_INIT("tru"),
    TEXT_INIT("truex"),
    TEXT_INIT("nul"),
    TEXT_INIT("nulll"),
    TEXT_INIT("fals"),
    TEXT_INIT("[true false]"),
    TEXT_INIT("(1)"),
    TEXT_INIT("<null>"),
    /* numbers */
    TEXT_INIT("-"),
    TEXT_INIT("+"),
    TEXT_INIT("+1"),
    TEXT_INIT("--1"),
    TEXT_INIT("- 1"),
    TEXT_INIT("01"),
    TEXT_INIT("-01"),
    TEXT_INIT("00"),
    TEXT_INIT("-00"),
    TEXT_INIT("012.5"),
    TEXT_INIT("."),
    TEXT_INIT(".5"),
    TEXT_INIT("-.5"),
    TEXT_INIT("5."),
    TEXT_INIT("[5.]"),
    TEXT_INIT("5.e1"),
    TEXT_INIT("0.e1"),
    TEXT_INIT("1.2.3"),
    TEXT_INIT("1e"),
    TEXT_INIT("1e+"),
    TEXT_INIT("1e-"),
    TEXT_INIT("[1e]"),
    TEXT_INIT("1ee5"),
    TEXT_INIT("1e5.5"),
    TEXT_INIT("1e+-5"),
    TEXT_INIT("0x10"),
    TEXT_INIT("1_000"),
    TEXT_INIT("1,000"),
    TEXT_INIT("1a"),
    TEXT_INIT("1\xC2\xA0"),
    TEXT_INIT("\xEF\xBC\x91"),
    /* strings */
    TEXT_INIT("\""),
    TEXT_INIT("\"a"),
    TEXT_INIT("\"\\\""),
    TEXT_INIT("\"\\"),
    TEXT_INIT("\"\\u"),
    TEXT_INIT("\"\\u12"),
    TEXT_INIT("\"\\u123\""),
    TEXT_INIT("\"\\u12g4\""),
    TEXT_INIT("\"\\u 123\""),
    TEXT_INIT("\"\\U0041\""),
    TEXT_INIT("\"\\x41\""),
    TEXT_INIT("\"\\a\""),
    TEXT_INIT("\"\\'\""),
    TEXT_INIT("\"\\0\""),
    TEXT_INIT("\"\\\n\""),
    TEXT_INIT("\"\\\0\""),
    TEXT_INIT("\"\n\""),
    TEXT_INIT("\"\t\""),
    TEXT_INIT("\"\x1F\""),
    TEXT_INIT("\"\0\""),
    TEXT_INIT("\"0123456789012345\n0123456789012345\""),
    TEXT_INIT("\"\"\""),
    /* UTF-8 (RFC 3629): stray, cut off, overlong, surrogates, beyond U+10FFFF */
    TEXT_INIT("\"\x80\""),
    TEXT_INIT("\"\xBF\""),
    TEXT_INIT("\"\xC3\""),
    TEXT_INIT("\"\xC3"),
    TEXT_INIT("\"\xE2\x82\""),
    TEXT_INIT("\"\xE2\x82"),
    TEXT_INIT("\"\xF0\x9F\x98\""),
    TEXT_INIT("\"\xC0\x80\""),
    TEXT_INIT("\"\xC1\xBF\""),
    TEXT_INIT("\"\xE0\x80\x80\""),
    TEXT_INIT("\"\xE0\x9F\xBF\""),
    TEXT_INIT("\"\xF0\x8F\xBF\xBF\""),
    TEXT_INIT("\"\xED\xA0\x80\""),
    TEXT_INIT("\"\xED\xBF\xBF\""),
    TEXT_INIT("\"\xF4\x90\x80\x80\""),
    TEXT_INIT("\"\xF5\x80\x80\x80\""),
    TEXT_INIT("\"\xFC\x80\x80\x80\x80\x80\""),
    TEXT_INIT("\"\xFE\xFF\""),
    TEXT_INIT("\"caf\xE9\""),
    TEXT_INIT("{\"\xE9\":1}"),
    /* byte order marks, other encodings, whitespace that is none, NUL */
    TEXT_INIT("\xEF\xBB\xBF[]"),
    TEXT_INIT("\xEF\xBB\xBF"),
    TEXT_INIT("\xEF\xBB[]"),
    TEXT_INIT("\xFF\xFE[\0]\0"),
    TEXT_INIT("\0[\0]"),
    TEXT_INIT("[\0]"),
    TEXT_INIT("[]\0"),
    TEXT_INIT("\0"),
    TEXT_INIT("[\f]"),
    TEXT_INIT("[\v]"),
    TEXT_INIT("[\b]"),
    TEXT_INIT("[\xC2\xA0]"),
    TEXT_INIT("[\xE2\x80\xA8]"),
    TEXT_INIT("[\xE2\x81\xA0]"),
    TEXT_INIT("[\xC2\x85]"),
};

TEST(what_rfc_8259_allows_is_accepted)
{
    for (size_t i = 0; i < COUNT(accepted); i++)
        if (check(accepted[i]) != STATUS_OK)
            fail_msg("refused: %s", accepted[i].at);
}

TEST(what_rfc_8259_forbids_is_refused)
{
    for (size_t i = 0; i < COUNT(refused); i++)
        if (check(refused[i]) != STATUS_MALFORMED)
            fail_msg("case %zu accepted: %s", i, refused[i].at);
}

/* Strings are stepped over several bytes at a time. */
TEST(what_ends_the_plain_bytes_of_a_string_is_found_wherever_it_stands)
{
    static const char special[] = {'\0', '\x1F', '\x80', '\xFF', '"', '\\'};
    char string[64];
    struct json_text_error error;
    for (size_t size = 4; size <= sizeof string; size++) {
        for (size_t at = 1; at + 2 < size; at++) {
            memset(string, 'x', size);
            string[0] = string[size - 1] = '"';
            string[at] = '\x7F'; /* plain */
            assert_int_equal(check((struct text){string, size}), STATUS_OK);
            for (size_t i = 0; i < sizeof special; i++) {
                string[at] = special[i];
                assert_int_equal(json_text_check((struct text){string, size}, NULL, &error),
                                 STATUS_MALFORMED);
                /* Behind a quote, which closes it. */
                assert_int_equal(error.offset, special[i] == '"' ? at + 1 : at);
            }
        }
    }
}

TEST(nesting_is_accepted_to_256_and_refused_at_257)
{
    char deep[4 * 257];
    for (size_t depth = 255; depth <= 257; depth++) {
        memset(deep, '[', depth);
        memset(deep + depth, ']', depth);
        assert_int_equal(check((struct text){deep, 2 * depth}),
                         depth <= 256 ? STATUS_OK : STATUS_MALFORMED);
        struct buffer objects = {0};
        for (size_t i = 1; i < depth; i++)
            buffer_append_string(&objects, i % 2 == 0 ? "[" : "{\"\":");
        buffer_append_string(&objects, "{}");
        for (size_t i = depth - 1; i > 0; i--)
            buffer_append_string(&objects, i % 2 == 0 ? "]" : "}");
        assert_int_equal(check(buffer_text(&objects)), depth <= 256 ? STATUS_OK : STATUS_MALFORMED);
        buffer_free(&objects);
    }
}

TEST(a_document_is_at_most_32_mib)
{
    size_t size = JSON_TEXT_SIZE_MAX + 1;
    char *big = memory_alloc(size);
    memset(big, ' ', size);
    big[0] = '1';
    assert_int_equal(json_text_check((struct text){big, size - 1}, NULL, NULL), STATUS_OK);
    struct json_text_error error;
    assert_int_equal(json_text_check((struct text){big, size}, NULL, &error), STATUS_MALFORMED);
    assert_string_equal(error.reason, "larger than 32 MiB");
    memory_free(big);
}

TEST(an_error_tells_line_and_column_of_the_first_wrong_character)
{
    static const struct {
        struct text text;
        size_t offset, line, column;
        const char *reason;
    } cases[] = {
        {TEXT_INIT(""), 0, 1, 1, "the document is empty"},
        {TEXT_INIT("  "), 2, 1, 3, "the document ends too early"},
        {TEXT_INIT("[1,\n 2,\r\n 03]"), 10, 3, 2, "a number must not have leading zeros"},
        {TEXT_INIT("[\n\"\xC3\xA9\xE2\x82\xAC\" x]"), 10, 2, 6, "expected ',' or ']'"},
        {TEXT_INIT("[\"\xC3\xA9\", \"\xFF\"]"), 8, 1, 8, "not UTF-8"},
        {TEXT_INIT("{\"a\":1\n"), 7, 2, 1, "the document ends too early"},
        {TEXT_INIT("[\"a\\qb\"]"), 3, 1, 4, "unknown escape in a string"},
        {TEXT_INIT("[] ]"), 3, 1, 4, "something follows the document"},
        {TEXT_INIT("[\"\t\"]"), 2, 1, 3, "a control character in a string must be escaped"},
        {TEXT_INIT("{\"a\":1,}"), 7, 1, 8, "expected a member name in double quotes"},
        {TEXT_INIT("\xEF\xBB\xBF{}"), 0, 1, 1, "a byte order mark is not allowed"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct json_text_error error;
        assert_int_equal(json_text_check(cases[i].text, NULL, &error), STATUS_MALFORMED);
        assert_string_equal(error.reason, cases[i].reason);
        assert_int_equal(error.offset, cases[i].offset);
        assert_int_equal(error.line, cases[i].line);
        assert_int_equal(error.column, cases[i].column);
    }
}

/* ---- minifying ------------------------------------------------------------------------------- */

TEST(minifying_drops_insignificant_whitespace_and_nothing_else)
{
    struct buffer out = {0};
    buffer_append_string(&out, "before ");
    assert_int_equal(
        json_text_check(
            TEXT(" { \"a b\\u0020\" :\t[ 1.80 ,\r\n-0e+1, \" \\\" \" ] , \"\": {} } \n"), &out,
            NULL),
        STATUS_OK);
    assert_string_equal(buffer_string(&out),
                        "before {\"a b\\u0020\":[1.80,-0e+1,\" \\\" \"],\"\":{}}");
    buffer_free(&out);
}

TEST(a_refused_document_leaves_the_buffer_as_it_was)
{
    struct buffer out = {0};
    buffer_append_string(&out, "before");
    assert_int_equal(json_text_check(TEXT("[1, 2, 3, x]"), &out, NULL), STATUS_MALFORMED);
    assert_string_equal(buffer_string(&out), "before");
    buffer_free(&out);
}

/* ---- slicing --------------------------------------------------------------------------------- */

TEST(elements_are_exact_slices)
{
    struct text text = TEXT(" [ 1.80 , \"a\\\\\" ,[ ],{ \"x\" : \"]}\" }, null,-1 ] ");
    static const char *const expected[] = {"1.80", "\"a\\\\\"", "[ ]", "{ \"x\" : \"]}\" }",
                                           "null", "-1"};
    static const enum json_text_kind kinds[] = {JSON_TEXT_NUMBER, JSON_TEXT_STRING,
                                                JSON_TEXT_ARRAY,  JSON_TEXT_OBJECT,
                                                JSON_TEXT_NULL,   JSON_TEXT_NUMBER};
    assert_int_equal(check(text), STATUS_OK);
    struct json_text_cursor cursor = json_text_open(text);
    struct text element;
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_true(json_text_next_element(&cursor, &element));
        assert_true(text_equals(element, text_of(expected[i])));
        assert_int_equal(json_text_kind(element), kinds[i]);
    }
    assert_false(json_text_next_element(&cursor, &element));
    assert_false(json_text_next_element(&cursor, &element));
}

TEST(members_are_exact_slices_of_name_and_value)
{
    struct text text = TEXT("{ \"a\\\"b\" : [1, 2] , \"\":true,\"a\\\"b\":{\"c\":{}}}");
    static const char *const expected[][2] = {
        {"\"a\\\"b\"", "[1, 2]"}, {"\"\"", "true"}, {"\"a\\\"b\"", "{\"c\":{}}"}};
    assert_int_equal(check(text), STATUS_OK);
    struct json_text_cursor cursor = json_text_open(text);
    struct text name;
    struct text value;
    for (size_t i = 0; i < COUNT(expected); i++) {
        assert_true(json_text_next_member(&cursor, &name, &value));
        assert_true(text_equals(name, text_of(expected[i][0])));
        assert_true(text_equals(value, text_of(expected[i][1])));
    }
    assert_false(json_text_next_member(&cursor, &name, &value));
}

TEST(empty_containers_have_nothing_in_them)
{
    struct text name;
    struct text value;
    struct json_text_cursor cursor = json_text_open(TEXT("[ \n]"));
    assert_false(json_text_next_element(&cursor, &value));
    cursor = json_text_open(TEXT(" { } "));
    assert_false(json_text_next_member(&cursor, &name, &value));
}

TEST(strings_compare_by_what_they_stand_for)
{
    assert_true(json_text_string_equals(TEXT("\"tv\""), TEXT("tv")));
    assert_true(json_text_string_equals(TEXT("\"t\\u0076\""), TEXT("tv")));
    assert_true(json_text_string_equals(TEXT("\"\\u0074\\u0076\""), TEXT("tv")));
    assert_true(json_text_string_equals(TEXT("\"\""), TEXT("")));
    assert_true(json_text_string_equals(TEXT("\"\\/\\n\""), TEXT("/\n")));
    assert_true(json_text_string_equals(TEXT("\"\\u0000\""), TEXT("\0")));
    assert_true(json_text_string_equals(TEXT("\"\\u00E9\\u20ac\""), TEXT("\xC3\xA9\xE2\x82\xAC")));
    assert_true(json_text_string_equals(TEXT("\"\\ud83d\\ude00\""), TEXT("\xF0\x9F\x98\x80")));
    assert_false(json_text_string_equals(TEXT("\"tv\""), TEXT("tvChannel")));
    assert_false(json_text_string_equals(TEXT("\"tvChannel\""), TEXT("tv")));
    assert_false(json_text_string_equals(TEXT("\"TV\""), TEXT("tv")));
    assert_false(json_text_string_equals(TEXT("\"t\\u0056\""), TEXT("tv")));
    assert_false(json_text_string_equals(TEXT("\"t\\u0076\\u0000\""), TEXT("tv")));
    assert_false(json_text_string_equals(TEXT("\"\\u0074\""), TEXT("tv")));
    assert_false(json_text_string_equals(TEXT("\"\\ud83d\""), TEXT("\xF0\x9F\x98\x80")));
    assert_false(json_text_string_equals(TEXT("\"\\ud83d\""), TEXT("\xEF\xBF\xBD")));
    assert_false(json_text_string_equals(TEXT("\"\\ud83d\""), TEXT("")));
}

TEST(strings_unescape_to_utf8)
{
    static const char *const cases[][2] = {
        {"\"\"", ""},
        {"\"plain\"", "plain"},
        {"\"a\\\"\\\\\\/\\b\\f\\n\\r\\tz\"", "a\"\\/\b\f\n\r\tz"},
        {"\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", "A\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"},
        {"\"\xC3\xA9\"", "\xC3\xA9"},
        {"\"\\ud800\"", "\xEF\xBF\xBD"},
        {"\"\\ud800\\ud83d\\ude00\"", "\xEF\xBF\xBD\xF0\x9F\x98\x80"},
        {"\"\\ud800\\n\"", "\xEF\xBF\xBD\n"},
        {"\"\\udc00\\ud800\"", "\xEF\xBF\xBD\xEF\xBF\xBD"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct buffer out = {0};
        bool whole = strstr(cases[i][1], "\xEF\xBF\xBD") == NULL;
        assert_int_equal(json_text_unescape(text_of(cases[i][0]), &out), whole);
        assert_string_equal(buffer_string(&out), cases[i][1]);
        buffer_free(&out);
    }
}

/* Puts a document together again from its slices. */
static void rebuild(struct text value, struct buffer *out)
{
    enum json_text_kind kind = json_text_kind(value);
    if (kind != JSON_TEXT_ARRAY && kind != JSON_TEXT_OBJECT) {
        buffer_append_text(out, value);
        return;
    }
    struct json_text_cursor cursor = json_text_open(value);
    struct text name;
    struct text inner;
    const char *separator = "";
    buffer_append_char(out, kind == JSON_TEXT_ARRAY ? '[' : '{');
    while (kind == JSON_TEXT_ARRAY ? json_text_next_element(&cursor, &inner)
                                   : json_text_next_member(&cursor, &name, &inner)) {
        buffer_append_string(out, separator);
        if (kind == JSON_TEXT_OBJECT) {
            buffer_append_text(out, name);
            buffer_append_char(out, ':');
        }
        rebuild(inner, out);
        separator = ",";
    }
    buffer_append_char(out, kind == JSON_TEXT_ARRAY ? ']' : '}');
}

/* Whatever is accepted: minified it is accepted, minifies to itself, and is what its slices say. */
static void assert_consistent(struct text text)
{
    struct buffer once = {0};
    struct buffer twice = {0};
    struct buffer rebuilt = {0};
    assert_int_equal(json_text_check(text, &once, NULL), STATUS_OK);
    assert_int_equal(json_text_check(buffer_text(&once), &twice, NULL), STATUS_OK);
    assert_true(text_equals(buffer_text(&once), buffer_text(&twice)));
    rebuild(json_text_trim(text), &rebuilt);
    assert_true(text_equals(buffer_text(&once), buffer_text(&rebuilt)));
    buffer_free(&once);
    buffer_free(&twice);
    buffer_free(&rebuilt);
}

TEST(slices_put_together_are_the_minified_document)
{
    for (size_t i = 0; i < COUNT(accepted); i++)
        assert_consistent(accepted[i]);
}

/* ---- second opinion -------------------------------------------------------------------------- */

static void assert_sqlite_agrees(struct text text)
{
    struct json_text_error error;
    enum status status = check(text);
    if (status == STATUS_OK)
        assert_consistent(text);
    else if (json_text_check(text, NULL, &error) == STATUS_OK || !is_utf8(text) ||
             memchr(text.at, '\0', text.size) != NULL || strstr(error.reason, "deep") != NULL)
        return;
    if (sqlite_takes_json(text) != (status == STATUS_OK))
        fail_msg("SQLite %s, we %s: %.*s", status == STATUS_OK ? "refuses" : "accepts",
                 status_name(status), (int)text.size, text.at);
}

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* One random edit: a byte changed, dropped, doubled, or a token put in. */
static void mutate(struct buffer *text, uint32_t *random)
{
    static const char *const tokens[] = {"{", "}",    "[",        "]",  ",",        ":",      "\"",
                                         "0", "-",    ".",        "e1", "\\",       " ",      "\n",
                                         "1", "null", "\"a\":1,", ",1", "\xC3\xA9", "\\u00e9"};
    size_t at = text->size == 0 ? 0 : next_random(random) % text->size;
    struct buffer out = {0};
    buffer_append(&out, text->data, at);
    switch (next_random(random) % 4) {
    case 0:
        buffer_append_char(&out, (char)next_random(random));
        at++;
        break;
    case 1:
        at++;
        break;
    case 2:
        buffer_append_string(&out, tokens[next_random(random) % COUNT(tokens)]);
        break;
    default:
        buffer_append_string(&out, tokens[next_random(random) % COUNT(tokens)]);
        at++;
        break;
    }
    if (at < text->size)
        buffer_append(&out, text->data + at, text->size - at);
    buffer_free(text);
    *text = out;
}

TEST(sqlite_agrees_on_the_tables_and_on_random_damage)
{
    uint32_t random = 0x5EED1234;
    struct text market =
        TEXT("[{\"marketId\":\"1.23\",\"marketName\":\"Match Odds\",\"gtype\":\"match\", \"tv\" : "
             "null,\"runners\":[{\"selectionId\":7,\"runnerName\":\"Caf\\u00e9 \xE2\x82\xAC\","
             "\"ex\":{\"availableToBack\":[{\"price\":1.80,\"size\":283.3844663329566}]}}]}]");
    for (size_t i = 0; i < COUNT(accepted); i++)
        assert_sqlite_agrees(accepted[i]);
    for (size_t i = 0; i < COUNT(refused); i++)
        assert_sqlite_agrees(refused[i]);
    for (size_t round = 0; round < 40000; round++) {
        size_t pick = next_random(&random) % (COUNT(accepted) + 20);
        struct text start = pick < COUNT(accepted) ? accepted[pick] : market;
        struct buffer text = {0};
        buffer_append_text(&text, start);
        for (uint32_t edits = next_random(&random) % 4; edits > 0; edits--)
            mutate(&text, &random);
        assert_sqlite_agrees(buffer_text(&text));
        buffer_free(&text);
    }
}
