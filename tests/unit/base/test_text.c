/* base/text: borrowed texts and growing buffers. */
#include "base/text.h"
#include "tests.h"

TEST(cut_walks_a_list)
{
    struct text rest = TEXT("a,,bc");
    assert_true(text_equals(text_cut(&rest, ','), TEXT("a")));
    assert_true(text_equals(text_cut(&rest, ','), TEXT("")));
    assert_true(text_equals(text_cut(&rest, ','), TEXT("bc")));
    assert_null(rest.at);
}

TEST(u64_refuses_what_is_not_plain_digits)
{
    uint64_t value = 7;
    const char *wrong[] = {"", "+1", "-1", " 1", "1 ", "0x1", "1.0", "18446744073709551616"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(text_to_u64(text_of(wrong[i]), UINT64_MAX, &value), STATUS_INVALID);
    assert_int_equal(value, 7);
    assert_int_equal(text_to_u64(TEXT("18446744073709551615"), UINT64_MAX, &value), STATUS_OK);
    assert_true(value == UINT64_MAX);
    assert_int_equal(text_to_u64(TEXT("101"), 100, &value), STATUS_INVALID);
}

TEST(json_string_escapes_and_mends_utf8)
{
    struct buffer out = {0};
    buffer_append_json_string(&out, TEXT("a\"\\\n\x01\xC3\xA9\xFF\xED\xA0\x80"));
    assert_string_equal(buffer_string(&out),
                        "\"a\\\"\\\\\\n\\u0001\xC3\xA9\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF"
                        "\xBD\"");
    buffer_free(&out);
}

TEST(plain_text_is_utf8_without_control_characters)
{
    assert_true(text_is_plain(TEXT("")));
    assert_true(text_is_plain(TEXT("Caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x8E\xB2")));
    const char *wrong[] = {
        "\x01", "a\tb",     "a\nb",         "\x7F",     "\xC2\x85",        "\xFF",
        "\xC3", "\xC0\x80", "\xED\xA0\x80", "\xE2\x82", "\xF4\x90\x80\x80"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(text_is_plain(text_of(wrong[i])));
    assert_false(text_is_plain(TEXT("a\0b")));
}

TEST(a_terminal_is_shown_a_mark_for_what_would_turn_or_break_its_line)
{
    struct buffer out = {0};
    buffer_append_shown(&out, TEXT("a\xE2\x80\xAE"   /* U+202E, right to left from here */
                                   "b\xE2\x80\xA8"   /* U+2028, a new line */
                                   "c\xC2\xAD\n\xFF" /* U+00AD, a control character, no UTF-8 */
                                   "d\xF3\xA0\x81\x81"
                                   "\xE2\x80\x8D\xC3\xA9\xF0\x9F\x8E\xB2"));
    assert_string_equal(buffer_string(&out), "a?b?c???d?\xE2\x80\x8D\xC3\xA9\xF0\x9F\x8E\xB2");
    buffer_free(&out);
}

TEST(a_copy_is_plain_and_fits_or_is_empty)
{
    char out[4] = "xxx";
    assert_true(text_copy_plain(TEXT("abc"), out, sizeof out));
    assert_string_equal(out, "abc");
    assert_true(text_copy_plain(TEXT(""), out, sizeof out));
    assert_string_equal(out, "");
    const struct text wrong[] = {TEXT("abcd"), TEXT("a\n"), {NULL, 0}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        out[0] = 'x';
        assert_false(text_copy_plain(wrong[i], out, sizeof out));
        assert_string_equal(out, "");
    }
}

TEST(decimals_are_written_whole)
{
    char at[20];
    assert_int_equal(decimal_write(at, 0), 1);
    assert_memory_equal(at, "0", 1);
    assert_int_equal(decimal_write(at, UINT64_MAX), 20);
    assert_memory_equal(at, "18446744073709551615", 20);
}

TEST(hexadecimal_digits_are_read_as_so_many_bytes)
{
    uint8_t bytes[2] = {0};
    assert_true(hex_read(TEXT("0aFf"), bytes, 2));
    assert_int_equal(bytes[0], 0x0a);
    assert_int_equal(bytes[1], 0xff);
    assert_false(hex_read(TEXT("0aF"), bytes, 2));
    assert_false(hex_read(TEXT("0aFf0"), bytes, 2));
    assert_false(hex_read(TEXT("0aFg"), bytes, 2));
}
