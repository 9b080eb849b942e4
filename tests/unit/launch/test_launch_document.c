/* What a provider is told of a launch, how that is signed, and what it may answer. */
#include "launch/document.h"
#include "tests.h"

#define NOW_MS 1763700000000LL /* 2025-11-21T04:40:00Z */

static const struct launch_facts real = {
    .launch_id = "lau_1",
    .game_id = "mirage",
    .subject = "somebody",
    .audience = "oas\"is",
    .currency = "JPY",
    .language = "de",
    .device = "desktop",
    .return_url = "https://back.example/",
    .country = "DE",
    .player_ip = "203.0.113.7",
    .currency_exponent = 0,
    .real = true,
    .issued_seconds = 1763700000,
    .expires_seconds = 1763700300,
};

static const struct launch_facts demo = {
    .launch_id = "lau_2",
    .game_id = "mirage",
    .subject = "nobody",
    .audience = "oasis",
    .currency = "",
    .language = "",
    .device = "",
    .return_url = "",
    .country = "",
    .player_ip = "",
    .issued_seconds = 1763700000,
    .expires_seconds = 1763700300,
};

static void assert_made(void append(struct buffer *out, const struct launch_facts *facts),
                        const struct launch_facts *facts, const char *expected)
{
    struct buffer made = {0};
    append(&made, facts);
    assert_string_equal(buffer_string(&made), expected);
    buffer_free(&made);
}

TEST(claims_leave_out_what_there_is_not)
{
    assert_made(launch_claims_append, &real,
                "{\"iss\":\"croupier\",\"iat\":1763700000,\"exp\":1763700300,\"aud\":\"oas\\\"is\","
                "\"sub\":\"somebody\",\"jti\":\"lau_1\",\"game\":\"mirage\",\"mode\":\"real\","
                "\"currency\":\"JPY\",\"language\":\"de\",\"device\":\"desktop\","
                "\"return_url\":\"https://back.example/\",\"country\":\"DE\","
                "\"ip\":\"203.0.113.7\"}");
    assert_made(launch_claims_append, &demo,
                "{\"iss\":\"croupier\",\"iat\":1763700000,\"exp\":1763700300,\"aud\":\"oasis\","
                "\"sub\":\"nobody\",\"jti\":\"lau_2\",\"game\":\"mirage\",\"mode\":\"demo\"}");
}

TEST(the_document_always_has_all_its_members)
{
    assert_made(launch_document_append, &real,
                "{\"launch_id\":\"lau_1\",\"audience\":\"oas\\\"is\",\"game_id\":\"mirage\","
                "\"mode\":\"real\",\"player_id\":\"somebody\",\"currency\":\"JPY\","
                "\"currency_exponent\":0,\"language\":\"de\",\"device\":\"desktop\","
                "\"return_url\":\"https://back.example/\",\"country\":\"DE\","
                "\"ip\":\"203.0.113.7\","
                "\"issued_at\":\"2025-11-21T04:40:00.000Z\","
                "\"expires_at\":\"2025-11-21T04:45:00.000Z\"}");
    assert_made(launch_document_append, &demo,
                "{\"launch_id\":\"lau_2\",\"audience\":\"oasis\",\"game_id\":\"mirage\","
                "\"mode\":\"demo\",\"player_id\":\"nobody\",\"currency\":null,"
                "\"currency_exponent\":null,\"language\":null,\"device\":null,"
                "\"return_url\":null,\"country\":null,\"ip\":null,"
                "\"issued_at\":\"2025-11-21T04:40:00.000Z\","
                "\"expires_at\":\"2025-11-21T04:45:00.000Z\"}");
}

TEST(a_signature_is_one_that_others_can_verify)
{
    char signature[LAUNCH_SIGNATURE_SIZE];
    /* printf '1763700000.{"a":1}' | openssl dgst -sha256 -hmac secret */
    launch_document_sign(TEXT("1763700000"), TEXT("{\"a\":1}"), TEXT("secret"), signature);
    assert_string_equal(signature,
                        "v1=aeda4b96ad7484ccb3e34e59454640c50849967c5b827c23d2b00237a059c5dd");
}

TEST(an_answer_is_a_url_and_maybe_until_when)
{
    struct launch_answer answer;
    assert_null(launch_answer_decode(
        TEXT(" {\"launch_url\":\"https:\\/\\/a.example/?s=1#x\",\"more\":[{}]} "), NOW_MS,
        &answer));
    assert_string_equal(answer.launch_url, "https://a.example/?s=1#x");
    assert_int_equal(answer.expires_ms, 0);
    assert_null(launch_answer_decode(TEXT("{\"expires_at\":\"2025-11-21T05:40:01.5+01:00\","
                                          "\"launch_url\":\"http://localhost:80/\"}"),
                                     NOW_MS, &answer));
    assert_string_equal(answer.launch_url, "http://localhost:80/");
    assert_int_equal(answer.expires_ms, NOW_MS + 1500);
}

TEST(a_launch_url_that_breaks_a_rule_is_answered_with_all_rules)
{
    static const char *const urls[] = {"HTTPS://a/",      "http://a/",         "https://u@a/",
                                       "https://a/ b",    "https://a/\\u00e9", "https://a/?q=[{}]",
                                       "https://a/?q=a|b"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        struct launch_answer answer;
        char body[64];
        (void)snprintf(body, sizeof body, "{\"launch_url\":\"%s\"}", urls[i]);
        const char *wrong = launch_answer_decode(text_of(body), NOW_MS, &answer);
        assert_non_null(wrong);
        assert_string_equal(wrong, "launch_url must be https:// in small letters (http:// only to "
                                   "127.0.0.1, [::1] or localhost), without a user name, in "
                                   "characters that a URL may have (RFC 3986)");
    }
}

TEST(whatever_else_is_no_answer_and_leaves_it_alone)
{
    static const char *const cases[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"launch_url\":\"https://a/\"",
        "{\"launch_url\":\"https://a/\"} x",
        "{\"launch_url\":\"https://a/\",\"launch_url\":\"https://a/\"}",
        "{\"launch_url\":\"https://a/\",\"launch_\\u0075rl\":\"https://a/\"}",
        "{\"launch_url\":[\"https://a/\"]}",
        "{\"launch_url\":\"\"}",
        "{\"launch_url\":\"https://\"}",
        "{\"launch_url\":\"HTTPS://a/\"}",
        "{\"launch_url\":\"//a/\"}",
        "{\"launch_url\":\"http://a/\"}",
        "{\"launch_url\":\"http://127.0.0.1.a/\"}",
        "{\"launch_url\":\"https://u:p@a/\"}",
        "{\"launch_url\":\"https://a/\\u0000\"}",
        "{\"launch_url\":\"https://a/\\n\"}",
        "{\"launch_url\":\"https://a/\\u00e9\"}",
        "{\"launch_url\":\"https://a/\\ud800\"}",
        "{\"launch_url\":\"https://a/ b\"}",
        "{\"launch_url\":\"https://a/?q={1|2}\"}",
        "{\"launch_url\":\"https://a/?q=<`^\\\\>\"}",
        "{\"launch_url\":\"https://a/\",\"expires_at\":null}",
        "{\"launch_url\":\"https://a/\",\"expires_at\":1763800000}",
        "{\"launch_url\":\"https://a/\",\"expires_at\":\"tomorrow\"}",
        "{\"launch_url\":\"https://a/\",\"expires_at\":\"2026-11-21\"}",
        "{\"launch_url\":\"https://a/\",\"expires_at\":\"2026-11-21T00:00:00\"}",
        "{\"launch_url\":\"https://a/\",\"expires_at\":\"2025-11-21T04:40:00Z\"}",
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct launch_answer answer = {.launch_url = "before", .expires_ms = 7};
        if (launch_answer_decode(text_of(cases[i]), NOW_MS, &answer) == NULL)
            fail_msg("taken: %s", cases[i]);
        assert_string_equal(answer.launch_url, "before");
        assert_int_equal(answer.expires_ms, 7);
    }
}

TEST(an_answer_is_bounded)
{
    struct launch_answer answer;
    struct buffer body = {0};
    buffer_append_string(&body, "{\"launch_url\":\"https://a/");
    while (body.size < strlen("{\"launch_url\":\"") + LAUNCH_URL_SIZE - 1)
        buffer_append_char(&body, 'x');
    buffer_append_string(&body, "\"}");
    assert_null(launch_answer_decode(buffer_text(&body), NOW_MS, &answer));
    assert_int_equal(strlen(answer.launch_url), LAUNCH_URL_SIZE - 1);
    body.size -= 2;
    buffer_append_string(&body, "x\"}");
    assert_non_null(launch_answer_decode(buffer_text(&body), NOW_MS, &answer));
    buffer_clear(&body);
    buffer_append_string(&body, "{\"launch_url\":\"https://a/\"}");
    while (body.size < LAUNCH_ANSWER_MAX)
        buffer_append_char(&body, ' ');
    assert_null(launch_answer_decode(buffer_text(&body), NOW_MS, &answer));
    buffer_append_char(&body, ' ');
    assert_non_null(launch_answer_decode(buffer_text(&body), NOW_MS, &answer));
    buffer_free(&body);
}
