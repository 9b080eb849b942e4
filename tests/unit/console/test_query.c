/* console/query: what stands percent-encoded in a target. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "console/query.h"

static void what_is_encoded_is_decoded_or_refused(void **state)
{
    (void)state;
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

static void a_parameter_is_there_once_or_not(void **state)
{
    (void)state;
    char out[CONSOLE_VALUE_SIZE];
    uint64_t number = 0;
    struct error error;
    assert_int_equal(console_parameter(TEXT("a=1&q=x%26y&b"), "q", out, &error), STATUS_OK);
    assert_string_equal(out, "x&y");
    assert_int_equal(console_parameter(TEXT("a=1"), "q", out, &error), STATUS_OK);
    assert_string_equal(out, "");
    assert_int_equal(console_parameter(TEXT("q=1&q=1"), "q", out, &error), STATUS_INVALID);
    assert_int_equal(console_parameter(TEXT("q=%"), "q", out, &error), STATUS_INVALID);
    assert_int_equal(console_number(TEXT("n=7"), "n", 9, 3, &number, &error), STATUS_OK);
    assert_int_equal(number, 7);
    assert_int_equal(console_number(TEXT(""), "n", 9, 3, &number, &error), STATUS_OK);
    assert_int_equal(number, 3);
    assert_int_equal(console_number(TEXT("n=10"), "n", 9, 3, &number, &error), STATUS_INVALID);
    assert_int_equal(console_number(TEXT("n=0"), "n", 9, 3, &number, &error), STATUS_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_encoded_is_decoded_or_refused),
        cmocka_unit_test(a_parameter_is_there_once_or_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
