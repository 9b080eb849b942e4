/* The strict decoder: what is taken, and every way of being refused. */
#include "tests.h"
#include "wallet/request.h"

#define JSON TEXT("application/json")

static struct strict_json_fault fault; /* of the last request that was refused */

static enum strict_json decode(const char *body, struct wallet_request *request)
{
    return wallet_request_decode(JSON, text_of(body), WALLET_CUSTOMER, request, &fault);
}

TEST(each_operation_has_its_fields)
{
    struct wallet_request request = {0};
    assert_int_equal(decode("{\"operation\":\"BALANCE\",\"player_id\":\"ply_1\"}", &request),
                     STRICT_JSON_OK);
    assert_int_equal(request.operation, LEDGER_BALANCE);
    assert_string_equal(request.player_id, "ply_1");
    assert_int_equal(decode(" {\"round_id\":\"r\\u00e9 #1\",\"game_id\":\"g\",\"currency\":\"EUR\","
                            "\"amount_minor\":1000000000000,\"transaction_id\":\"T.1:_-\","
                            "\"player_id\":\"ply_1\",\"operation\":\"DEBIT\"} \n",
                            &request),
                     STRICT_JSON_OK);
    assert_int_equal(request.operation, LEDGER_DEBIT);
    assert_true(request.amount_minor == LEDGER_AMOUNT_MAX);
    assert_string_equal(request.transaction_id, "T.1:_-");
    assert_string_equal(request.currency, "EUR");
    assert_string_equal(request.game_id, "g");
    assert_string_equal(request.round_id, "r\xc3\xa9 #1");
    assert_string_equal(request.reference, "");
    assert_int_equal(
        decode("{\"operation\":\"CREDIT\",\"player_id\":\"p\",\"transaction_id\":\"t\","
               "\"amount_minor\":0,\"currency\":\"JPY\","
               "\"reference_transaction_id\":\"d\"}",
               &request),
        STRICT_JSON_OK);
    assert_int_equal(request.amount_minor, 0);
    assert_string_equal(request.reference, "d");
    assert_string_equal(request.game_id, "");
    assert_int_equal(decode("{\"operation\":\"ROLLBACK\",\"player_id\":\"p\","
                            "\"transaction_id\":\"t\",\"reference_transaction_id\":\"d\"}",
                            &request),
                     STRICT_JSON_OK);
    assert_int_equal(request.operation, LEDGER_ROLLBACK);
}

static enum strict_json decode_of_provider(const char *members)
{
    struct buffer body = {0};
    struct wallet_request request = {0};
    buffer_append_format(&body, "{\"player_id\":\"sub\",%s}", members);
    enum strict_json decoding =
        wallet_request_decode(JSON, buffer_text(&body), WALLET_PROVIDER, &request, &fault);
    if (decoding == STRICT_JSON_OK) {
        assert_string_equal(request.subject, "sub");
        assert_string_equal(request.player_id, "");
    }
    buffer_free(&body);
    return decoding;
}

TEST(a_provider_says_by_which_launch_and_in_which_round)
{
#define MONEY_OF(operation)                                                        \
    "\"operation\":\"" operation "\",\"transaction_id\":\"t\",\"amount_minor\":1," \
    "\"currency\":\"EUR\""
#define LAUNCH ",\"launch_id\":\"lau_7Qm2Zt0aXw9Lk3Rb\""
#define GAME ",\"game_id\":\"mirage\""
#define ROUND ",\"round_id\":\"r\""
    static const char *const good[] = {
        "\"operation\":\"BALANCE\"",
        MONEY_OF("DEBIT") LAUNCH GAME ROUND,
        MONEY_OF("CREDIT") ROUND,
        MONEY_OF("CREDIT") LAUNCH GAME ROUND,
    };
    static const char *const bad[] = {
        "\"operation\":\"BALANCE\"" LAUNCH,
        MONEY_OF("DEBIT") GAME ROUND,
        MONEY_OF("DEBIT") LAUNCH ROUND,
        MONEY_OF("DEBIT") LAUNCH GAME,
        MONEY_OF("CREDIT") LAUNCH GAME,
        MONEY_OF("CREDIT") ROUND ",\"launch_id\":\"ply_7Qm2Zt0aXw9Lk3Rb\"",
        MONEY_OF("CREDIT") ROUND ",\"launch_id\":\"lau_7Qm2Zt0aXw9Lk3Rb7Qm2\"",
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(decode_of_provider(good[i]), STRICT_JSON_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(decode_of_provider(bad[i]), STRICT_JSON_INVALID);
    struct wallet_request request = {0};
    assert_int_equal(decode("{\"player_id\":\"p\"," MONEY_OF("CREDIT") LAUNCH "}", &request),
                     STRICT_JSON_UNKNOWN_FIELD);
}

TEST(a_provider_says_what_a_credit_is_and_that_a_round_ended)
{
#define UNDO \
    "\"operation\":\"ROLLBACK\",\"transaction_id\":\"t\",\"reference_transaction_id\":\"d\""
#define NOTHING_OF(operation)                                                      \
    "\"operation\":\"" operation "\",\"transaction_id\":\"t\",\"amount_minor\":0," \
    "\"currency\":\"EUR\""
#define ENDED ",\"round_ended\":true"
    static const char *const good[] = {
        NOTHING_OF("DEBIT") LAUNCH GAME ROUND,
        MONEY_OF("DEBIT") LAUNCH GAME ROUND ENDED,
        MONEY_OF("CREDIT") ROUND ",\"kind\":\"win\",\"round_ended\":false",
        MONEY_OF("CREDIT") ROUND ",\"kind\":\"jackp\\u006ft\"",
        MONEY_OF("CREDIT") ROUND ",\"kind\":\"adjustment\"" ENDED,
        UNDO ENDED,
    };
    static const char *const bad[] = {
        MONEY_OF("DEBIT") LAUNCH GAME ROUND ",\"kind\":\"win\"",
        MONEY_OF("CREDIT") ROUND ",\"kind\":\"Promo\"",
        MONEY_OF("CREDIT") ROUND ",\"kind\":\"\"",
        MONEY_OF("CREDIT") ROUND ",\"kind\":null",
        MONEY_OF("CREDIT") ROUND ",\"kind\":1",
        MONEY_OF("CREDIT") ROUND ",\"round_ended\":\"true\"",
        MONEY_OF("CREDIT") ROUND ",\"round_ended\":1",
        UNDO ",\"kind\":\"promo\"",
        UNDO ROUND,
        ("\"operation\":\"BALANCE\"" ENDED),
    };
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(decode_of_provider(good[i]), STRICT_JSON_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(decode_of_provider(bad[i]), STRICT_JSON_INVALID);
    struct wallet_request request = {0};
    assert_int_equal(decode("{\"player_id\":\"p\"," NOTHING_OF("DEBIT") "}", &request),
                     STRICT_JSON_INVALID);
    assert_int_equal(decode("{\"player_id\":\"p\"," MONEY_OF("CREDIT") ENDED "}", &request),
                     STRICT_JSON_UNKNOWN_FIELD);
    assert_int_equal(wallet_request_decode(JSON,
                                           TEXT("{\"player_id\":\"p\"," MONEY_OF("CREDIT") ROUND
                                                ",\"kind\":\"promo\"" ENDED "}"),
                                           WALLET_PROVIDER, &request, &fault),
                     STRICT_JSON_OK);
    assert_int_equal(request.kind, LEDGER_PROMO);
    assert_true(request.round_ended);
}

TEST(content_that_is_not_json_is_refused)
{
    static const char *const good[] = {"application/json", "Application/JSON",
                                       "application/json; charset=utf-8",
                                       "application/json;charset=\"UTF-8\"", "application/json ;"};
    static const char *const bad[] = {"",
                                      "text/plain",
                                      "application/jsonp",
                                      "application/json; charset=latin1",
                                      "application/x-www-form-urlencoded",
                                      "application/json, application/json",
                                      "application/problem+json"};
    const struct text body = TEXT("{\"operation\":\"BALANCE\",\"player_id\":\"ply_1\"}");
    struct wallet_request request = {0};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_int_equal(
            wallet_request_decode(text_of(good[i]), body, WALLET_CUSTOMER, &request, &fault),
            STRICT_JSON_OK);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(
            wallet_request_decode(text_of(bad[i]), body, WALLET_CUSTOMER, &request, &fault),
            STRICT_JSON_INVALID);
}

/* A debit with one member put in the place of another; %s of the test's tables. */
#define BEFORE \
    "{\"operation\":\"DEBIT\",\"player_id\":\"p\",\"transaction_id\":\"t\",\"currency\":\"EUR\""
static enum strict_json debit_with(const char *members)
{
    struct wallet_request request;
    struct wallet_request untouched;
    struct buffer body = {0};
    memset(&request, 0x55, sizeof request);
    memset(&untouched, 0x55, sizeof untouched);
    buffer_append_format(&body, "%s%s}", BEFORE, members);
    enum strict_json decoding =
        wallet_request_decode(JSON, buffer_text(&body), WALLET_CUSTOMER, &request, &fault);
    if (decoding != STRICT_JSON_OK)
        assert_memory_equal(&request, &untouched, sizeof request);
    buffer_free(&body);
    return decoding;
}

TEST(an_amount_is_an_integer_in_digits_within_its_bounds)
{
    static const char *const wrong[] = {"0",
                                        "-1",
                                        "-0",
                                        "1.0",
                                        "1e2",
                                        "1E0",
                                        "\"1\"",
                                        "null",
                                        "true",
                                        "[1]",
                                        "{}",
                                        "01",
                                        "+1",
                                        "1000000000001",
                                        "9223372036854775808",
                                        "18446744073709551616",
                                        "18446744073709551617",
                                        "0x10",
                                        " ",
                                        "1 2",
                                        "NaN",
                                        "1000000000000000000000000000000000000000"};
    char member[128];
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        (void)snprintf(member, sizeof member, ",\"amount_minor\":%s", wrong[i]);
        assert_int_equal(debit_with(member), STRICT_JSON_INVALID);
    }
    assert_int_equal(debit_with(",\"amount_minor\":1"), STRICT_JSON_OK);
    assert_int_equal(debit_with(",\"amount_minor\": 1000000000000 "), STRICT_JSON_OK);
}

TEST(two_members_of_one_name_are_refused_however_escaped)
{
    assert_int_equal(debit_with(",\"amount_minor\":1,\"amount_minor\":1"), STRICT_JSON_INVALID);
    assert_int_equal(debit_with(",\"amount_minor\":1,\"amount\\u005fminor\":1"),
                     STRICT_JSON_INVALID);
    assert_int_equal(debit_with(",\"amount_minor\":1,\"x\":1,\"\\u0078\":2"), STRICT_JSON_INVALID);
    assert_int_equal(debit_with(",\"amount\\u005fminor\":1"), STRICT_JSON_OK);
}

TEST(unknown_members_are_refused_by_name)
{
    static const char *const unknown[] = {
        "customer_id",   "customerId",         "Amount_minor",       "",
        "amount_minor ", "provider_player_id", "amount_minor\\u0000"};
    char member[128];
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        (void)snprintf(member, sizeof member, ",\"amount_minor\":1,\"%s\":null", unknown[i]);
        assert_int_equal(debit_with(member), STRICT_JSON_UNKNOWN_FIELD);
    }
}

/* A debit with `count` unknown members more, and one of `name`. */
static enum strict_json debit_with_many(unsigned count, const char *name)
{
    struct buffer members = {0};
    buffer_append_string(&members, ",\"amount_minor\":1");
    for (unsigned i = 0; i < count; i++)
        buffer_append_format(&members, ",\"x%u\":0", i * 7919 % count);
    buffer_append_format(&members, ",\"%s\":0", name);
    enum strict_json decoding = debit_with(buffer_string(&members));
    buffer_free(&members);
    return decoding;
}

TEST(a_member_twice_is_told_before_one_that_is_unknown)
{
    assert_int_equal(debit_with(",\"amount_minor\":1,\"x\":1,\"y\":1"), STRICT_JSON_UNKNOWN_FIELD);
    assert_int_equal(debit_with(",\"amount_minor\":1,\"x\":1,\"xx\":1"), STRICT_JSON_UNKNOWN_FIELD);
    assert_int_equal(debit_with(",\"amount_minor\":1,\"\":1,\"x\":1"), STRICT_JSON_UNKNOWN_FIELD);
    assert_int_equal(debit_with(",\"amount_minor\":1,\"x\":1,\"amount_minor\":1"),
                     STRICT_JSON_INVALID);
    assert_int_equal(debit_with(",\"amount_minor\":\"1\",\"x\":1"), STRICT_JSON_UNKNOWN_FIELD);
    assert_int_equal(debit_with(",\"amount_minor\":1,\"\":1,\"x\":1,\"\":2"), STRICT_JSON_INVALID);
    assert_int_equal(debit_with_many(50, "x50"), STRICT_JSON_UNKNOWN_FIELD);
    assert_int_equal(debit_with_many(50, "x0"), STRICT_JSON_INVALID);
    assert_int_equal(debit_with_many(50, "\\u007849"), STRICT_JSON_INVALID);
    assert_int_equal(debit_with_many(1500, "x1500"), STRICT_JSON_INVALID); /* too many */
}

TEST(what_an_operation_does_not_have_is_refused)
{
    static const char *const bodies[] = {
        "{\"operation\":\"BALANCE\",\"player_id\":\"p\",\"transaction_id\":\"t\"}",
        "{\"operation\":\"BALANCE\",\"player_id\":\"p\",\"currency\":\"EUR\"}",
        "{\"operation\":\"BALANCE\",\"player_id\":\"p\",\"game_id\":\"g\"}",
        "{\"operation\":\"BALANCE\"}",
        "{\"player_id\":\"p\"}",
        "{\"operation\":\"balance\",\"player_id\":\"p\"}",
        "{\"operation\":\"TRANSFER\",\"player_id\":\"p\"}",
        "{\"operation\":null,\"player_id\":\"p\"}",
        "{\"operation\":\"BALANCE\",\"player_id\":\"\"}",
        "{\"operation\":\"BALANCE\",\"player_id\":\"a b\"}",
        "{\"operation\":\"BALANCE\",\"player_id\":7}",
        "{\"operation\":\"BALANCE\",\"player_id\":\"p\\u0000\"}",
        "{\"operation\":\"DEBIT\",\"player_id\":\"p\",\"transaction_id\":\"t\",\"amount_minor\":1,"
        "\"currency\":\"EUR\",\"reference_transaction_id\":\"d\"}",
        "{\"operation\":\"DEBIT\",\"player_id\":\"p\",\"amount_minor\":1,\"currency\":\"EUR\"}",
        "{\"operation\":\"DEBIT\",\"player_id\":\"p\",\"transaction_id\":\"t\",\"amount_minor\":1}",
        "{\"operation\":\"DEBIT\",\"player_id\":\"p\",\"transaction_id\":\"t\",\"currency\":"
        "\"EUR\"}",
        "{\"operation\":\"ROLLBACK\",\"player_id\":\"p\",\"transaction_id\":\"t\"}",
        "{\"operation\":\"ROLLBACK\",\"player_id\":\"p\",\"transaction_id\":\"t\","
        "\"reference_transaction_id\":\"t\"}",
        "{\"operation\":\"ROLLBACK\",\"player_id\":\"p\",\"transaction_id\":\"t\","
        "\"reference_transaction_id\":\"d\",\"amount_minor\":1}",
        "{\"operation\":\"ROLLBACK\",\"player_id\":\"p\",\"transaction_id\":\"t\","
        "\"reference_transaction_id\":\"d\",\"round_id\":\"r\"}",
        "",
        "null",
        "[]",
        "\"DEBIT\"",
        "{",
        "{}",
        "{}{}",
        "{\"operation\":\"BALANCE\",}",
        "\xef\xbb\xbf{\"operation\":\"BALANCE\",\"player_id\":\"p\"}"};
    struct wallet_request request = {0};
    for (size_t i = 0; i < sizeof bodies / sizeof bodies[0]; i++)
        assert_int_equal(decode(bodies[i], &request), STRICT_JSON_INVALID);
}

TEST(texts_have_their_lengths_and_alphabets)
{
    static const char sixty_four[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    static const char *const wrong[] = {"\"eur\"", "\"EU\"", "\"EURO\"", "\"\"", "978", "\"E R\""};
    char body[512];
    struct wallet_request request = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        (void)snprintf(body, sizeof body,
                       "{\"operation\":\"DEBIT\",\"player_id\":\"p\",\"transaction_id\":\"t\","
                       "\"amount_minor\":1,\"currency\":%s}",
                       wrong[i]);
        assert_int_equal(decode(body, &request), STRICT_JSON_INVALID);
    }
    (void)snprintf(body, sizeof body, ",\"amount_minor\":1,\"round_id\":\"%s\"", sixty_four);
    assert_int_equal(debit_with(body), STRICT_JSON_OK);
    (void)snprintf(body, sizeof body, ",\"amount_minor\":1,\"round_id\":\"%sX\"", sixty_four);
    assert_int_equal(debit_with(body), STRICT_JSON_INVALID);
    assert_int_equal(debit_with(",\"amount_minor\":1,\"round_id\":\"\""), STRICT_JSON_INVALID);
    assert_int_equal(debit_with(",\"amount_minor\":1,\"round_id\":\"a\\nb\""), STRICT_JSON_INVALID);
    assert_int_equal(debit_with(",\"amount_minor\":1,\"round_id\":\"\\ud800\""),
                     STRICT_JSON_INVALID);
    (void)snprintf(body, sizeof body,
                   "{\"operation\":\"ROLLBACK\",\"player_id\":\"p\",\"transaction_id\":\"%sX\","
                   "\"reference_transaction_id\":\"d\"}",
                   sixty_four);
    assert_int_equal(decode(body, &request), STRICT_JSON_INVALID);
}

TEST(a_refusal_names_the_field_and_never_its_value)
{
    static const struct {
        const char *body, *message;
    } cases[] = {
        {"[]", "The body must be a JSON object that has no field twice."},
        {"{}", "The field operation is missing."},
        {"{\"operation\":\"BET\",\"player_id\":7}",
         "The field operation must be BALANCE, DEBIT, CREDIT or ROLLBACK."},
        {"{\"operation\":\"BALANCE\"}", "The field player_id is missing."},
        {"{\"operation\":\"BALANCE\",\"player_id\":\"a b\"}",
         "The field player_id must be a string of 1 to 64 characters of A-Z, a-z, 0-9, '.', '_', "
         "':' and '-'."},
        {"{\"operation\":\"BALANCE\",\"player_id\":\"p\",\"currency\":\"EUR\"}",
         "The field currency does not go with this operation."},
        {BEFORE "}", "The field amount_minor is missing."},
        {BEFORE ",\"amount_minor\":1.0}", "The field amount_minor must be an integer."},
        {BEFORE ",\"amount_minor\":\"1\"}", "The field amount_minor must be an integer."},
        {BEFORE ",\"amount_minor\":-1}",
         "The field amount_minor must be an integer of at least 0."},
        {BEFORE ",\"amount_minor\":0}",
         "The field amount_minor must be an integer of at least 1 in a DEBIT."},
        {BEFORE ",\"amount_minor\":1000000000001}",
         "The field amount_minor must be an integer of at most 1000000000000."},
        {BEFORE ",\"amount_minor\":1,\"round_id\":null}",
         "The field round_id must be a string of 1 to 64 bytes without control characters."},
        {BEFORE ",\"amount_minor\":1,\"customer_id\":\"SECRET\"}",
         "The request has an unknown field. It may have operation, player_id, transaction_id, "
         "amount_minor, currency, game_id, round_id."},
        {"{\"operation\":\"BALANCE\",\"x\":1}",
         "The request has an unknown field. It may have operation, player_id."},
        {"{\"operation\":\"BET\",\"x\":1}",
         "The request has an unknown field. It may have operation, player_id, transaction_id, "
         "amount_minor, currency, reference_transaction_id, game_id, round_id."},
        {"{\"operation\":\"ROLLBACK\",\"player_id\":\"p\",\"transaction_id\":\"t\","
         "\"reference_transaction_id\":\"t\"}",
         "The field reference_transaction_id must name another transaction than transaction_id."},
        {"{\"operation\":\"ROLLBACK\",\"player_id\":\"p\",\"transaction_id\":\"t\","
         "\"reference_transaction_id\":null}",
         "The field reference_transaction_id is missing."},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct wallet_request request;
        assert_int_not_equal(decode(cases[i].body, &request), STRICT_JSON_OK);
        assert_string_equal(fault.message, cases[i].message);
    }
}

TEST(a_reference_that_is_null_is_absent)
{
    struct wallet_request request = {0};
    assert_int_equal(debit_with(",\"amount_minor\":1,\"reference_transaction_id\":null"),
                     STRICT_JSON_OK);
    assert_int_equal(decode("{\"operation\":\"CREDIT\",\"player_id\":\"p\","
                            "\"transaction_id\":\"t\",\"amount_minor\":1,\"currency\":\"EUR\","
                            "\"reference_transaction_id\":null}",
                            &request),
                     STRICT_JSON_OK);
    assert_string_equal(request.reference, "");
}
