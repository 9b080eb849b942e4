/* stores/odds/redis/reply: RESP2 and RESP3, whole and in pieces, and what is refused. */
#include "base/memory.h"
#include "stores/odds/redis/reply.h"
#include "tests.h"

#define STRING_MAX 10
#define REPLY_MAX 2000

static void describe(const struct redis_reply *reply, struct buffer *out)
{
    static const char letters[] = {'_', '+', '$', '-', ':', '*', '>'};
    buffer_append_char(out, letters[reply->type]);
    if (reply->type == REDIS_INTEGER)
        buffer_append_format(out, "%lld", (long long)reply->integer);
    buffer_append_text(out, reply->text);
    for (size_t i = 0; i < reply->count; i++) {
        buffer_append_char(out, i == 0 ? '(' : ' ');
        describe(&reply->elements[i], out);
    }
    if (reply->count > 0)
        buffer_append_char(out, ')');
    else if (reply->type == REDIS_LIST || reply->type == REDIS_PUSH)
        buffer_append_string(out, "()");
}

/* What is read from `input` when it comes in pieces of `piece` bytes: its replies, and, unless it
 * ends with one, the status. */
static void read_in_pieces(struct text input, size_t piece, struct buffer *out)
{
    struct redis_parser *parser = redis_parser_create(STRING_MAX, REPLY_MAX);
    enum status status = STATUS_OK;
    while (input.size > 0 && (status == STATUS_OK || status == STATUS_PENDING)) {
        struct text part = {input.at, piece < input.size ? piece : input.size};
        const struct redis_reply *reply = NULL;
        const char *before = part.at;
        status = redis_parser_take(parser, &part, &reply);
        input.size -= (size_t)(part.at - before);
        input.at = part.at;
        if (status == STATUS_OK)
            describe(reply, out);
    }
    if (status != STATUS_OK)
        buffer_append_format(out, "%s", status_name(status));
    redis_parser_destroy(&parser);
}

static void assert_read(struct text input, const char *expected)
{
    static const size_t pieces[] = {1, 2, 3, 7, 100000};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        struct buffer out = {0};
        read_in_pieces(input, pieces[i], &out);
        assert_string_equal(buffer_string(&out), expected);
        buffer_free(&out);
    }
}

static void assert_all_read(const char *const (*cases)[2], size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_read(text_of(cases[i][0]), cases[i][1]);
}

#define COUNT(cases) (sizeof(cases) / sizeof(cases)[0])

TEST(every_type_is_read)
{
    static const char *const cases[][2] = {
        {"+OK\r\n", "+OK"},
        {"-ERR no\r\n", "-ERR no"},
        {":0\r\n", ":0"},
        {":-9223372036854775807\r\n", ":-9223372036854775807"},
        {":+5\r\n", ":5"},
        {"$3\r\na\rb\r\n", "$a\rb"},
        {"$0\r\n\r\n", "$"},
        {"$-1\r\n", "_"},
        {"*-1\r\n", "_"},
        {"_\r\n", "_"},
        {"*0\r\n", "*()"},
        {"*2\r\n$1\r\na\r\n:7\r\n", "*($a :7)"},
        {"*2\r\n*1\r\n*1\r\n:1\r\n:2\r\n", "*(*(*(:1)) :2)"},
        {"~2\r\n+on\r\n+bcast\r\n", "*(+on +bcast)"},
        {"%2\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n_\r\n", "*($a :1 $b _)"},
        {">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", ">($invalidate *($k))"},
        {">2\r\n$10\r\ninvalidate\r\n_\r\n", ">($invalidate _)"},
        {"#t\r\n", ":1"},
        {"#f\r\n", ":0"},
        {",1700000000000\r\n", "$1700000000000"},
        {"(123456789012345678901234567890\r\n", "$123456789012345678901234567890"},
        {"=7\r\ntxt:abc\r\n", "$abc"},
        {"!5\r\nERR x\r\n", "-ERR x"},
        {"+a\r\n:1\r\n$1\r\nb\r\n", "+a:1$b"},
        {"*1\r\n$-1\r\n+x\r\n", "*(_)+x"},
    };
    assert_all_read(cases, COUNT(cases));
    assert_read(TEXT("$3\r\na\0b\r\n+x\r\n"), "$a"); /* the description ends there */
}

TEST(what_has_not_come_is_waited_for)
{
    static const char *const cases[][2] = {
        {"+O", "pending"},
        {"$3\r\nab", "pending"},
        {"$3\r\nabc\r", "pending"},
        {"*2\r\n:1\r\n", "pending"},
        {"+a\r\n*1\r\n", "+apending"},
        {"$1000000000000\r\na", "pending"},
        {"*1000000000000\r\n", "pending"},
    };
    assert_all_read(cases, COUNT(cases));
}

TEST(what_is_no_protocol_is_refused)
{
    static const char *const cases[][2] = {
        {"\r\n", "malformed"},
        {"x\r\n", "malformed"},
        {"HTTP/1.1 400 Bad Request\r\n", "malformed"},
        {"+OK\n", "malformed"},
        {":\r\n", "malformed"},
        {":1x\r\n", "malformed"},
        {":9223372036854775808\r\n", "malformed"},
        {"$-2\r\n", "malformed"},
        {"$99999999999999999999\r\n", "malformed"},
        {"$2\r\nabc\r\n", "malformed"},
        {"$2\r\nab\n\r", "malformed"},
        {"$?\r\n", "malformed"},
        {"*-5\r\n", "malformed"},
        {"~-1\r\n", "malformed"},
        {"%-1\r\n", "malformed"},
        {"=-1\r\n", "malformed"},
        {"=3\r\nabc\r\n", "malformed"},
        {"_x\r\n", "malformed"},
        {"#x\r\n", "malformed"},
        {"|1\r\n+a\r\n+b\r\n+c\r\n", "malformed"},
        {"*1\r\n>1\r\n+a\r\n", "malformed"},
        {"*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n:1\r\n", "malformed"},
    };
    assert_all_read(cases, COUNT(cases));
}

TEST(a_string_that_is_too_large_is_passed_over)
{
    static const char *const cases[][2] = {
        {"$10\r\n0123456789\r\n+x\r\n", "$0123456789+x"},
        {"$11\r\n0123456789a\r\n+x\r\n", "-" REDIS_TOO_LARGE "+x"},
        {"*3\r\n:1\r\n$11\r\n0123456789a\r\n:2\r\n", "*(:1 -" REDIS_TOO_LARGE " :2)"},
        {"$11\r\n0123456789ab\r\n", "malformed"},
    };
    assert_all_read(cases, COUNT(cases));
}

TEST(a_reply_that_is_too_large_is_refused)
{
    struct buffer list = {0};
    buffer_append_string(&list, "*1000000\r\n");
    for (int i = 0; i < 100; i++)
        buffer_append_string(&list, ":1\r\n");
    assert_read(buffer_text(&list), "full");
    buffer_clear(&list);
    buffer_append_char(&list, '+');
    for (int i = 0; i < 2100; i++)
        buffer_append_char(&list, 'a');
    buffer_append_string(&list, "\r\n");
    assert_read(buffer_text(&list), "full");
    buffer_clear(&list);
    buffer_append_char(&list, '-');
    for (int i = 0; i < 20000; i++)
        buffer_append_char(&list, 'a'); /* a line without end */
    assert_read(buffer_text(&list), "malformed");
    buffer_free(&list);
}

/* What one reply held is not counted against the next. */
TEST(many_replies_may_follow)
{
    struct buffer replies = {0};
    struct buffer expected = {0};
    for (int i = 0; i < 1000; i++) {
        buffer_append_string(&replies, "*2\r\n$5\r\nabcde\r\n:7\r\n");
        buffer_append_string(&expected, "*($abcde :7)");
    }
    assert_read(buffer_text(&replies), buffer_string(&expected));
    buffer_free(&replies);
    buffer_free(&expected);
}

TEST(values_are_found_by_name)
{
    struct redis_parser *parser = redis_parser_create(STRING_MAX, REPLY_MAX);
    struct text input = TEXT("%2\r\n$1\r\na\r\n+b\r\n$1\r\nb\r\n:5\r\n");
    const struct redis_reply *reply = NULL;
    assert_int_equal(redis_parser_take(parser, &input, &reply), STATUS_OK);
    assert_true(redis_reply_is(redis_reply_value(reply, "a"), "b"));
    assert_int_equal(redis_reply_value(reply, "b")->integer, 5);
    assert_null(redis_reply_value(reply, "c"));
    assert_false(redis_reply_is(redis_reply_value(reply, "b"), "5"));
    assert_null(redis_reply_value(&reply->elements[3], "a"));
    redis_parser_destroy(&parser);
}
