/* console/query: what stands percent-encoded in a target. */
#include "console/query.h"
#include "tests.h"

static const char *const words[] = {"one", "two", "three", NULL};

TEST(what_is_encoded_is_decoded_or_refused)
{
    char out[CONSOLE_VALUE_SIZE];
    char long_text[CONSOLE_VALUE_SIZE + 1];
    static const char *const wrong[] = {"%", "%4", "a%", "%zz", "%00", "%0A", "%FF", "%C3"};
    assert_true(console_decode(TEXT("2001%3Adb8%3a%3a9"), false, out));
    assert_string_equal(out, "2001:db8::9");
    assert_true(console_decode(TEXT("a+b%20c%41"), true, out));
    assert_string_equal(out, "a b cA");
    assert_true(console_decode(TEXT("a+b"), false, out));
    assert_string_equal(out, "a+b");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(console_decode(text_of(wrong[i]), true, out));
    memset(long_text, 'a', sizeof long_text);
    assert_true(console_decode((struct text){long_text, CONSOLE_VALUE_SIZE - 1}, true, out));
    assert_false(console_decode((struct text){long_text, CONSOLE_VALUE_SIZE}, true, out));
}

TEST(a_parameter_is_there_once_or_not)
{
    struct error error;
    struct console_query query = {.error = &error};
    query.text = TEXT("a=1&q=x%26y&b");
    const char *first = console_parameter(&query, "q");
    assert_string_equal(console_parameter(&query, "z"), "");
    assert_string_equal(first, "x&y");
    query.text = TEXT("n=7&w=two");
    assert_int_equal(console_number(&query, "n", 9, 3), 7);
    assert_int_equal(console_number(&query, "m", 9, 3), 3);
    assert_int_equal(console_choice(&query, "w", words), 1);
    assert_int_equal(console_choice(&query, "v", words), 0);
    assert_int_equal(query.status, STATUS_OK);
}

TEST(the_first_wrong_parameter_is_refused)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"q=1&q=1", "q: is given twice"},
        {"q=%", "q: is not properly encoded"},
        {"n=10&w=two", "n: must be a whole number from 1 to 9"},
        {"n=0&q=%", "q: is not properly encoded"},
        {"w=four", "w: must be one, two or three"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error error;
        struct console_query query = {.text = text_of(cases[i].text), .error = &error};
        (void)console_parameter(&query, "q");
        (void)console_number(&query, "n", 9, 3);
        (void)console_choice(&query, "w", words);
        assert_int_equal(query.status, STATUS_INVALID);
        assert_string_equal(error.text, cases[i].reason);
    }
}
