/*
 * What is a request and what is none. Every case is fed whole, byte by byte and cut at every single
 * place, and must end the same way.
 */
#include "base/memory.h"
#include "http/intake.h"
#include "http/memo.h"
#include "tests.h"

#define TAKEN "taken"
#define UNFINISHED "unfinished"

struct fixture {
    struct http_intake intake;
    struct http_request request;
    size_t left; /* of the input, when the request was complete */
};

static void begin(struct fixture *fixture)
{
    http_intake_start(&fixture->intake);
    memset(&fixture->request, 0, sizeof fixture->request);
}

/* Feeds one piece; each piece is a copy of its own size, so that a sanitizer sees any overrun. */
static const char *feed(struct fixture *fixture, const char *at, size_t size)
{
    char *copy = memory_copy(at, size);
    struct text input = {copy, size};
    enum http_intake_result result = INTAKE_MORE;
    while (input.size > 0 && (result == INTAKE_MORE || result == INTAKE_HEAD))
        result = http_intake_feed(&fixture->intake, &fixture->request, &input);
    fixture->left = input.size;
    memory_free(copy);
    if (result == INTAKE_REFUSED)
        return fixture->intake.error->code;
    return result == INTAKE_COMPLETE ? TAKEN : UNFINISHED;
}

static const char *run_cut(struct fixture *fixture, struct text bytes, size_t cut)
{
    begin(fixture);
    const char *outcome = feed(fixture, bytes.at, cut);
    return strcmp(outcome, UNFINISHED) == 0 && cut < bytes.size
               ? feed(fixture, bytes.at + cut, bytes.size - cut)
               : outcome;
}

static const char *run_bytewise(struct fixture *fixture, struct text bytes)
{
    const char *outcome = UNFINISHED;
    begin(fixture);
    for (size_t i = 0; i < bytes.size && strcmp(outcome, UNFINISHED) == 0; i++)
        outcome = feed(fixture, bytes.at + i, 1);
    return outcome;
}

static void expect(struct text bytes, const char *wanted)
{
    struct fixture fixture;
    const char *outcome = run_bytewise(&fixture, bytes);
    http_intake_reset(&fixture.intake);
    if (strcmp(outcome, wanted) != 0)
        fail_msg("byte by byte: %s, not %s:\n%.*s", outcome, wanted, (int)bytes.size, bytes.at);
    size_t pace = bytes.size > 4000 ? bytes.size / 50 : 1;
    for (size_t cut = bytes.size; cut > 0; cut = cut > pace ? cut - pace : 0) {
        outcome = run_cut(&fixture, bytes, cut);
        http_intake_reset(&fixture.intake);
        if (strcmp(outcome, wanted) != 0)
            fail_msg("cut at %zu: %s, not %s:\n%.*s", cut, outcome, wanted, (int)bytes.size,
                     bytes.at);
    }
}

#define EXPECT(bytes, wanted) expect(TEXT(bytes), (wanted))
#define HOST "Host: example.com\r\n"
#define BAD "bad_request"

TEST(proper_requests_are_taken)
{
    EXPECT("GET / HTTP/1.1\r\n" HOST "\r\n", TAKEN);
    EXPECT("GET / HTTP/1.0\r\n\r\n", TAKEN);
    EXPECT("GET / HTTP/1.0\r\n" HOST "\r\n", TAKEN);
    EXPECT("HEAD /a?b HTTP/1.1\r\nhOST:\t example.com:80 \t\r\nX:\r\nY: \r\nZ: a b\r\n\r\n", TAKEN);
    EXPECT("POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", TAKEN);
    EXPECT("POST / HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", TAKEN);
    EXPECT("GET / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", TAKEN);
    EXPECT("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
           "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
           TAKEN);
    EXPECT("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: CHUNKED\r\n\r\n0\r\nT: 1\r\nU: 2\r\n\r\n",
           TAKEN);
    EXPECT("GET http://other.example/a HTTP/1.1\r\n" HOST "\r\n", TAKEN);
    EXPECT("OPTIONS * HTTP/1.1\r\n" HOST "\r\n", TAKEN);
    EXPECT("CONNECT example.com:443 HTTP/1.1\r\n" HOST "\r\n", TAKEN);
    EXPECT("GET / HTTP/1.1\r\n" HOST "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n", TAKEN);
    EXPECT("POST / HTTP/1.1\r\n" HOST
           "Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nab",
           TAKEN);
}

TEST(unfinished_requests_wait_for_more)
{
    EXPECT("GET", UNFINISHED);
    EXPECT("GET / HTTP/1.1\r\n" HOST, UNFINISHED);
    EXPECT("POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nab", UNFINISHED);
    EXPECT("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n",
           UNFINISHED);
}

TEST(a_request_needs_one_valid_host)
{
    EXPECT("GET / HTTP/1.1\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\n" HOST HOST "\r\n", BAD);
    EXPECT("GET / HTTP/1.0\r\n" HOST HOST "\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\nHost:\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\nHost: user@a\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", BAD);
}

TEST(doubt_about_where_a_body_ends_is_refused)
{
#define POST "POST / HTTP/1.1\r\n" HOST
    EXPECT(POST "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", BAD);
    EXPECT(POST "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc", BAD);
    EXPECT(POST "Content-Length: 3, 3\r\n\r\nabc", BAD);
    EXPECT(POST "Content-Length: +3\r\n\r\nabc", BAD);
    EXPECT(POST "Content-Length: -3\r\n\r\nabc", BAD);
    EXPECT(POST "Content-Length: 0x3\r\n\r\nabc", BAD);
    EXPECT(POST "Content-Length: 3 3\r\n\r\nabc", BAD);
    EXPECT(POST "Content-Length: three\r\n\r\nabc", BAD);
    EXPECT(POST "Content-Length:\r\n\r\n", BAD);
    EXPECT(POST "Content-Length: 99999999999999999999999\r\n\r\n", BAD);
    EXPECT(POST "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked,\r\n\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: , chunked\r\n\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: gzip\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: identity\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding:\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: \x0b"
                "chunked\r\n\r\n0\r\n\r\n",
           BAD);
    EXPECT("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked\r\n\r\n0x3\r\nabc\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked\r\n\r\n-3\r\nabc\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked\r\n\r\n3 \r\nabc\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked\r\n\r\n3\nabc\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked\r\n\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", BAD);
#undef POST
}

TEST(tabs_are_white_space_around_a_value_and_nowhere_else)
{
#define POST "POST / HTTP/1.1\r\n" HOST
    EXPECT(POST "Content-Length: 5\t\r\n\r\nhe\tlo", TAKEN);
    EXPECT(POST "Content-Length:\t 5 \t \r\n\r\nhello", TAKEN);
    EXPECT(POST "Transfer-Encoding: chunked\t\r\n\r\n5\r\nhe\tlo\r\n0\r\nT: v\t\r\n\r\n", TAKEN);
    EXPECT(POST "Transfer-Encoding:\tchunked \t\r\n\r\n0\r\n\r\n", TAKEN);
    EXPECT(POST "\tX: y\r\n\r\n", BAD);
    EXPECT(POST "X\t: y\r\n\r\n", BAD);
    EXPECT(POST "Content-Length\t: 5\r\n\r\nhello", BAD);
    EXPECT(POST "Content-Length: 5\t5\r\n\r\n", BAD);
    EXPECT(POST "Content-Length: 5\r\n\t5\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chun\tked\r\n\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked\tchunked\r\n\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked\r\n\r\n5\t\r\nhello\r\n0\r\n\r\n", BAD);
    EXPECT("GET /\t HTTP/1.1\r\n" HOST "\r\n", BAD);
    EXPECT("GET / HTTP/1.1\t\r\n" HOST "\r\n", BAD);
    EXPECT("\tGET / HTTP/1.1\r\n" HOST "\r\n", BAD);
#undef POST
}

TEST(chunk_extensions_follow_the_grammar)
{
    static const char *good[] = {";a",
                                 ";a=b",
                                 ";a=b;c",
                                 ";a=\"b\"",
                                 ";a=\"\"",
                                 ";a=\" \t;=,\xc3\xa4\";b",
                                 ";a=\"\\\"\\\\\\\t\"",
                                 ";!#$%&'*+-.^_`|~=1"};
    static const char *bad[] = {
        ";",         ";;a",         ";a;",         ";a=",           ";=b",
        ";a=;b",     ";a==b",       ";a=b=c",      ";a b",          "; a",
        " ;a",       ";a =b",       ";a= b",       ";a ",           ";a=b\"c\"",
        ";a=\"b\"c", ";a=\"b\" ",   ";a=\"\x7f\"", ";a=\"\\\x7f\"", ";a=\"\x01\"",
        ";a=\"b",    ";\xc3\xa4",   ";a=\xc3",     ";\"a\"",        ";a=b,c",
        ";a=\"\n\"", ";a=\"\\\r\"", ";a(b)",       "5;5;"};
    for (int i = 0; i < (int)(sizeof good / sizeof good[0] + sizeof bad / sizeof bad[0]); i++) {
        bool is_good = i < (int)(sizeof good / sizeof good[0]);
        const char *extension = is_good ? good[i] : bad[i - (int)(sizeof good / sizeof good[0])];
        /* Before a chunk, before a later one, and before the last. */
        for (int at = 0; at < 3; at++) {
            struct buffer bytes = {0};
            buffer_append_format(&bytes,
                                 "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n"
                                 "5%s\r\nhello\r\n1%s\r\n!\r\n0%s\r\n\r\n",
                                 at == 0 ? extension : "", at == 1 ? extension : "",
                                 at == 2 ? extension : "");
            expect(buffer_text(&bytes), is_good ? TAKEN : BAD);
            buffer_free(&bytes);
        }
    }
}

TEST(transfer_codings_that_do_not_exist_here_are_named)
{
#define POST "POST / HTTP/1.1\r\n" HOST
    EXPECT(POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "not_implemented");
    EXPECT(POST "Transfer-Encoding: gzip\t,\tchunked\r\n\r\n0\r\n\r\n", "not_implemented");
    EXPECT(POST "Transfer-Encoding: gzip\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n",
           "not_implemented");
    EXPECT(POST "Transfer-Encoding: gzip, chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", BAD);
    EXPECT(POST "Transfer-Encoding: chunked, gzip, chunked\r\n\r\n0\r\n\r\n", BAD);
    EXPECT("POST / HTTP/1.0\r\n" HOST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", BAD);
#undef POST
}

TEST(a_refused_request_has_its_method)
{
    static const struct text heads[] = {
        TEXT_INIT("HEAD  /"), TEXT_INIT("HEAD\t/"), TEXT_INIT("HEAD / HTTP/2.0\r\n"),
        TEXT_INIT("HEAD / HTTP/1.1\r\nBad : x\r\n"), TEXT_INIT("HEAD / HTTP/1.1\r\n\r\n")};
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++) {
        struct fixture fixture;
        (void)run_cut(&fixture, heads[i], 2);
        assert_non_null(fixture.intake.error);
        assert_int_equal(fixture.request.method, METHOD_HEAD);
        http_intake_reset(&fixture.intake);
    }
}

TEST(malformed_lines_are_refused)
{
    EXPECT("GET / HTTP/1.1\r\nHost : example.com\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\n Host: example.com\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\n" HOST ": b\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\n" HOST "A\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\n" HOST "A(: b\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\n" HOST "A: b\0c\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\n" HOST "A: b\rc\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\n" HOST "A: b\nB: c\r\n\r\n", BAD);
    EXPECT("GET / HTTP/1.1\n" HOST "\r\n", BAD);
    EXPECT("GET / HTTP/1.1\r\n" HOST "\n", BAD);
    EXPECT("GET  / HTTP/1.1\r\n" HOST "\r\n", BAD);
    EXPECT("GET /  HTTP/1.1\r\n" HOST "\r\n", BAD);
    EXPECT("GET / HTTP/1.1 \r\n" HOST "\r\n", BAD);
    EXPECT("GET / a HTTP/1.1\r\n" HOST "\r\n", BAD);
    EXPECT("GET\t/ HTTP/1.1\r\n" HOST "\r\n", BAD);
    EXPECT(" GET / HTTP/1.1\r\n" HOST "\r\n", BAD);
    EXPECT("GET / http/1.1\r\n" HOST "\r\n", BAD);
    EXPECT("GET / HTTP/11\r\n" HOST "\r\n", BAD);
    EXPECT("GET / HTTP/1.\r\n" HOST "\r\n", BAD);
    EXPECT("GET / HTTP/1.10\r\n" HOST "\r\n", BAD);
    EXPECT("GET / HTTP/a.b\r\n" HOST "\r\n", BAD);
    EXPECT("GET / ICE/1.1\r\n" HOST "\r\n", BAD);
    EXPECT("GET / RTSP/1.0\r\n" HOST "\r\n", BAD);
    EXPECT("OPTIONS * RTSP/1.0\r\n" HOST "\r\n", BAD);
    EXPECT("GET a HTTP/1.1\r\n" HOST "\r\n", BAD);
    EXPECT("GET * HTTP/1.1\r\n" HOST "\r\n", BAD);
    EXPECT("GET /a#b HTTP/1.1\r\n" HOST "\r\n", BAD);
    EXPECT("GET /\xff HTTP/1.1\r\n" HOST "\r\n", BAD);
    EXPECT("GET ftp://a/ HTTP/1.1\r\n" HOST "\r\n", BAD);
    EXPECT("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", BAD);
    EXPECT("\0", BAD);
    EXPECT("GET\r\n", BAD);
}

TEST(methods_and_versions_that_do_not_exist_here_are_named)
{
    EXPECT("PROPFIND / HTTP/1.1\r\n", "not_implemented");
    EXPECT("M-SEARCH * HTTP/1.1\r\n", "not_implemented");
    EXPECT("get / HTTP/1.1\r\n", "not_implemented");
    EXPECT("GETX / HTTP/1.1\r\n", "not_implemented");
    EXPECT("SOURCE /x ICE/1.0\r\n", "not_implemented");
    EXPECT("GET / HTTP/1.2\r\n" HOST "\r\n", "version_not_supported");
    EXPECT("GET / HTTP/2.0\r\n" HOST "\r\n", "version_not_supported");
    EXPECT("GET / HTTP/0.9\r\n" HOST "\r\n", "version_not_supported");
    EXPECT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "version_not_supported");
    EXPECT("GET /\r\n" HOST "\r\n", "version_not_supported");
}

TEST(expectations)
{
    EXPECT("POST / HTTP/1.1\r\n" HOST "Expect: 100-Continue\r\nContent-Length: 1\r\n\r\na", TAKEN);
    EXPECT("POST / HTTP/1.1\r\n" HOST "Expect: a\r\nContent-Length: 1\r\n\r\n",
           "expectation_failed");
    EXPECT("POST / HTTP/1.1\r\n" HOST "Expect: 100-continue, a\r\n\r\n", "expectation_failed");
    EXPECT("POST / HTTP/1.0\r\n" HOST "Expect: a\r\nContent-Length: 1\r\n\r\na", TAKEN);
    EXPECT("POST / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\nContent-Length: 16385\r\n\r\n",
           "payload_too_large");
}

/* ---- bounds: the largest is taken, one more is refused --------------------------------------- */

static void expect_buffer(struct buffer *buffer, const char *wanted)
{
    expect(buffer_text(buffer), wanted);
    buffer_free(buffer);
}

static void append_repeated(struct buffer *buffer, char character, size_t count)
{
    buffer_reserve(buffer, count);
    memset(buffer->data + buffer->size, character, count);
    buffer->size += count;
}

TEST(targets_are_bounded)
{
    for (size_t over = 0; over < 2; over++) {
        struct buffer buffer = {0};
        buffer_append_string(&buffer, "GET /");
        append_repeated(&buffer, 'a', HTTP_TARGET_MAX - 1 + over);
        buffer_append_string(&buffer, " HTTP/1.1\r\n" HOST "\r\n");
        expect_buffer(&buffer, over == 0 ? TAKEN : "uri_too_long");
    }
}

TEST(field_lines_are_bounded)
{
    for (size_t over = 0; over < 2; over++) {
        struct buffer buffer = {0};
        buffer_append_string(&buffer, "GET / HTTP/1.1\r\n" HOST "A: ");
        append_repeated(&buffer, 'a', HTTP_HEAD_MAX - strlen(HOST) - strlen("A: \r\n") + over);
        buffer_append_string(&buffer, "\r\n\r\n");
        expect_buffer(&buffer, over == 0 ? TAKEN : "headers_too_large");
    }
    struct buffer spaces = {0};
    buffer_append_string(&spaces, "GET / HTTP/1.1\r\n" HOST "A:");
    append_repeated(&spaces, ' ', HTTP_HEAD_MAX);
    buffer_append_string(&spaces, "b\r\n\r\n");
    expect_buffer(&spaces, "headers_too_large");
    struct buffer name = {0};
    buffer_append_string(&name, "GET / HTTP/1.1\r\n" HOST);
    append_repeated(&name, 'n', HTTP_HEAD_MAX);
    expect_buffer(&name, "headers_too_large");
}

TEST(fields_are_counted)
{
    for (size_t over = 0; over < 2; over++) {
        struct buffer buffer = {0};
        buffer_append_string(&buffer, "GET / HTTP/1.1\r\n" HOST);
        for (size_t i = 1; i < HTTP_FIELDS_MAX + over; i++)
            buffer_append_string(&buffer, "X-Forwarded-For: 1\r\n");
        buffer_append_string(&buffer, "\r\n");
        expect_buffer(&buffer, over == 0 ? TAKEN : "headers_too_large");
    }
}

TEST(bodies_are_bounded)
{
    for (size_t over = 0; over < 2; over++) {
        struct buffer buffer = {0};
        buffer_append_format(&buffer, "POST / HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n",
                             HTTP_BODY_MAX + over);
        append_repeated(&buffer, 'a', HTTP_BODY_MAX + over);
        expect_buffer(&buffer, over == 0 ? TAKEN : "payload_too_large");
        buffer_append_string(&buffer, "POST / HTTP/1.1\r\n" HOST
                                      "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n");
        buffer_append_format(&buffer, "%zx\r\n", HTTP_BODY_MAX - 1 + over);
        append_repeated(&buffer, 'a', HTTP_BODY_MAX - 1 + over);
        buffer_append_string(&buffer, "\r\n0\r\n\r\n");
        expect_buffer(&buffer, over == 0 ? TAKEN : "payload_too_large");
    }
}

TEST(chunk_extensions_and_trailers_are_bounded)
{
    struct buffer extension = {0};
    buffer_append_string(&extension,
                         "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n1;");
    append_repeated(&extension, 'x', INTAKE_WIRE_BODY_MAX);
    expect_buffer(&extension, "payload_too_large");
    struct buffer trailers = {0};
    buffer_append_string(&trailers,
                         "POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n");
    for (size_t i = 0; i <= HTTP_FIELDS_MAX; i++)
        buffer_append_string(&trailers, "T: 1\r\n");
    buffer_append_string(&trailers, "\r\n");
    expect_buffer(&trailers, "headers_too_large");
}

/* ---- what a taken request looks like --------------------------------------------------------- */

TEST(the_parts_are_found_however_they_arrive)
{
    struct text bytes = TEXT("POST /%61/b?c=d HTTP/1.1\r\n"
                             "host: example.com\r\n"
                             "X-API-Key: \t k \t\r\n"
                             "x-forwarded-for: 1.2.3.4\r\n"
                             "Other: o\r\n"
                             "X-Forwarded-For: 5.6.7.8\r\n"
                             "Transfer-Encoding: chunked\r\n\r\n"
                             "3\r\nabc\r\n2;e\r\nde\r\n0\r\nX-Api-Key: trailer\r\n\r\nGET");
    for (size_t cut = 1; cut < bytes.size; cut++) {
        struct fixture fixture;
        assert_string_equal(run_cut(&fixture, bytes, cut), TAKEN);
        struct http_request *request = &fixture.request;
        assert_int_equal(request->method, METHOD_POST);
        assert_true(text_equals(request->path, TEXT("/a/b")));
        assert_true(text_equals(request->query, TEXT("c=d")));
        assert_true(text_equals(request->body, TEXT("abcde")));
        assert_int_equal(request->field_count[HTTP_FIELD_X_API_KEY], 1);
        assert_int_equal(request->field_count[HTTP_FIELD_X_FORWARDED_FOR], 2);
        assert_int_equal(request->field_count[HTTP_FIELD_AUTHORIZATION], 0);
        assert_int_equal(request->line_count, 4);
        assert_true(text_equals(http_request_field(request, HTTP_FIELD_X_API_KEY), TEXT("k")));
        assert_true(
            text_equals(http_request_field(request, HTTP_FIELD_X_FORWARDED_FOR), TEXT("1.2.3.4")));
        assert_true(text_equals(request->lines[3].value, TEXT("5.6.7.8")));
        assert_null(http_request_field(request, HTTP_FIELD_AUTHORIZATION).at);
        assert_true(fixture.left <= 3);
        http_intake_reset(&fixture.intake);
    }
}

static bool keeps_alive(const char *bytes)
{
    struct fixture fixture;
    assert_string_equal(run_cut(&fixture, text_of(bytes), strlen(bytes)), TAKEN);
    http_intake_reset(&fixture.intake);
    return fixture.intake.keep_alive;
}

TEST(connections_stay_open_as_version_and_connection_say)
{
    assert_true(keeps_alive("GET / HTTP/1.1\r\n" HOST "\r\n"));
    assert_false(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"));
    assert_false(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: Close, TE\r\n\r\n"));
    assert_false(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: close\t\r\n\r\n"));
    assert_false(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: \tclose \t\r\n\r\n"));
    assert_false(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: close\t,foo\r\n\r\n"));
    assert_false(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: foo,\tclose\r\n\r\n"));
    assert_false(
        keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: TE\r\nConnection: ,,close,\r\n\r\n"));
    assert_true(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection: closed, a close\r\n\r\n"));
    assert_true(keeps_alive("GET / HTTP/1.1\r\n" HOST "Connection:\r\n\r\n"));
    assert_false(keeps_alive("POST / HTTP/1.1\r\n" HOST
                             "Connection: close\t\r\nContent-Length: 1\r\n\r\na"));
    assert_true(keeps_alive("GET / HTTP/1.0\r\nConnection: keep-alive\t\r\n\r\n"));
    assert_true(keeps_alive("GET / HTTP/1.0\r\nConnection: foo\t,\tkeep-alive\r\n\r\n"));
    assert_false(keeps_alive("GET / HTTP/1.0\r\nConnection: keep-alive\t,close\t\r\n\r\n"));
    assert_false(keeps_alive("GET / HTTP/1.0\r\n\r\n"));
    assert_true(keeps_alive("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
    assert_false(
        keeps_alive("GET / HTTP/1.0\r\nConnection: keep-alive\r\nConnection: close\r\n\r\n"));
}

/* ---- requests that come again ---------------------------------------------------------------- */

/* Takes `bytes` in, whole, and remembers them. */
static struct http_memo *remember(struct text bytes)
{
    struct fixture fixture;
    struct http_memo *memo = NULL;
    begin(&fixture);
    assert_string_equal(feed(&fixture, bytes.at, bytes.size), TAKEN);
    http_memo_remember(&memo, &fixture.intake, &fixture.request,
                       (struct text){bytes.at, bytes.size - fixture.left});
    http_intake_reset(&fixture.intake);
    return memo;
}

static bool recall(struct http_memo *memo, struct fixture *fixture, struct text bytes)
{
    begin(fixture);
    struct text input = bytes;
    bool recalled = http_memo_recall(memo, &fixture->intake, &fixture->request, &input);
    fixture->left = input.size;
    return recalled;
}

#define POLL                                                                                     \
    "GET /api/v1/cricket/events/34000001?a=%41 HTTP/1.1\r\n" HOST                                \
    "Authorization: Bearer secret\r\nX-Other: 1\r\nX-Forwarded-For: a\r\nx-forwarded-for: b\r\n" \
    "If-None-Match: \"tag\"\r\n\r\n"

/* What was recalled is what taking in these bytes makes of them. */
static void assert_recalled(const struct fixture *again, struct text bytes)
{
    struct fixture parsed;
    begin(&parsed);
    assert_string_equal(feed(&parsed, bytes.at, bytes.size), TAKEN);
    assert_int_equal(parsed.left, 0);
    assert_int_equal(again->intake.keep_alive, parsed.intake.keep_alive);
    assert_int_equal(again->request.method, parsed.request.method);
    assert_true(text_equals(again->request.path, parsed.request.path));
    assert_true(text_equals(again->request.query, parsed.request.query));
    assert_int_equal(again->request.body.size, 0);
    assert_int_equal(again->request.line_count, parsed.request.line_count);
    assert_memory_equal(again->request.field_count, parsed.request.field_count,
                        sizeof parsed.request.field_count);
    for (uint32_t i = 0; i < parsed.request.line_count; i++) {
        assert_int_equal(again->request.lines[i].field, parsed.request.lines[i].field);
        assert_true(text_equals(again->request.lines[i].value, parsed.request.lines[i].value));
    }
    http_intake_reset(&parsed.intake);
}

TEST(the_same_bytes_are_the_same_request)
{
    struct http_memo *memo = remember(TEXT(POLL));
    struct fixture again;
    assert_non_null(memo);
    assert_true(recall(memo, &again, TEXT(POLL "GET /next")));
    assert_int_equal(again.left, sizeof "GET /next" - 1);
    assert_recalled(&again, TEXT(POLL));
    http_memo_forget(&memo);
    assert_null(memo);
}

/* Every byte in the place of every other. */
TEST(other_bytes_are_another_request_but_for_the_tag)
{
    struct http_memo *memo = remember(TEXT(POLL));
    struct fixture fixture;
    size_t tag_at = (size_t)(strstr(POLL, "\"tag\"") - POLL), tags = 0;
    for (size_t i = 0; i < sizeof POLL - 1; i++) {
        assert_false(recall(memo, &fixture, (struct text){POLL, i}));
        for (unsigned byte = 0; byte < 256; byte++) {
            char changed[] = POLL;
            changed[i] = (char)byte;
            struct text bytes = {changed, sizeof POLL - 1};
            bool in_tag = i >= tag_at && i < tag_at + 5 && byte > ' ' && byte < 0x7F;
            assert_int_equal(recall(memo, &fixture, bytes), in_tag || POLL[i] == changed[i]);
            if (!in_tag)
                continue;
            assert_recalled(&fixture, bytes);
            tags++;
        }
    }
    assert_int_equal(tags, 5 * 94);
    assert_false(recall(NULL, &fixture, TEXT(POLL)));
    http_memo_forget(&memo);
}

TEST(a_tag_of_another_size_or_one_of_two_is_not_exchanged)
{
    static const char *const tags[] = {"\"tag\" ", "\"tags\"", "\"a\r\nb\""};
    struct http_memo *memo = remember(TEXT(POLL));
    struct fixture fixture;
    for (size_t i = 0; i < sizeof tags / sizeof tags[0]; i++) {
        char changed[sizeof POLL + 8];
        size_t start = (size_t)(strstr(POLL, "\"tag\"") - POLL);
        int size = snprintf(changed, sizeof changed, "%.*s%s\r\n\r\n", (int)start, POLL, tags[i]);
        assert_false(recall(memo, &fixture, (struct text){changed, (size_t)size}));
    }
    http_memo_forget(&memo);
    memo = remember(TEXT("GET / HTTP/1.1\r\n" HOST "If-None-Match: a\r\nIf-None-Match: b\r\n\r\n"));
    assert_false(
        recall(memo, &fixture,
               TEXT("GET / HTTP/1.1\r\n" HOST "If-None-Match: a\r\nIf-None-Match: c\r\n\r\n")));
    http_memo_forget(&memo);
}

TEST(only_plain_polls_are_remembered)
{
    static const struct text not_remembered[] = {
        TEXT_INIT("POST / HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc"),
        TEXT_INIT("POST / HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        TEXT_INIT("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"),
        TEXT_INIT("GET / HTTP/1.1\r\n" HOST "Connection: close\r\n\r\n"),
        TEXT_INIT("GET / HTTP/1.1\r\n" HOST "Expect: 100-continue\r\n\r\n"),
        TEXT_INIT("GET /%61 HTTP/1.1\r\n" HOST "\r\n"), /* decoded in place */
        TEXT_INIT("CONNECT a:1 HTTP/1.1\r\n" HOST "\r\n"),
    };
    for (size_t i = 0; i < sizeof not_remembered / sizeof not_remembered[0]; i++)
        assert_null(remember(not_remembered[i]));
}

TEST(a_longer_request_takes_the_place_of_a_shorter)
{
    struct fixture fixture;
    struct http_memo *memo = NULL;
    static const struct text requests[] = {TEXT_INIT("GET / HTTP/1.1\r\n" HOST "\r\n"),
                                           TEXT_INIT(POLL),
                                           TEXT_INIT("GET /b HTTP/1.1\r\n" HOST "\r\n")};
    for (size_t i = 0; i < 3; i++) {
        begin(&fixture);
        assert_string_equal(feed(&fixture, requests[i].at, requests[i].size), TAKEN);
        http_memo_remember(&memo, &fixture.intake, &fixture.request, requests[i]);
        http_intake_reset(&fixture.intake);
        for (size_t j = 0; j < 3; j++)
            assert_int_equal(recall(memo, &fixture, requests[j]), i == j);
    }
    http_memo_forget(&memo);
}
