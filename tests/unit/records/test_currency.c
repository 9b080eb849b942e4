/* ISO 4217 as data. */
#include "records/currency.h"
#include "tests.h"

static void assert_exponent(const char *code, int expected)
{
    uint8_t exponent = 99;
    assert_true(currency_exponent(text_of(code), &exponent));
    assert_int_equal(exponent, expected);
}

TEST(exponents_are_those_of_iso_4217)
{
    assert_exponent("EUR", 2);
    assert_exponent("USD", 2);
    assert_exponent("INR", 2);
    assert_exponent("AED", 2);
    assert_exponent("ZWG", 2);
    assert_exponent("JPY", 0);
    assert_exponent("XPF", 0);
    assert_exponent("BIF", 0);
    assert_exponent("KWD", 3);
    assert_exponent("TND", 3);
    assert_exponent("CLF", 4);
    assert_exponent("UYW", 4);
    assert_exponent("XAD", 2);
    assert_exponent("XCG", 2);
}

TEST(withdrawn_currencies_keep_their_exponent)
{
    static const char *const withdrawn[] = {"ANG", "BGN", "CUC"};
    for (size_t i = 0; i < sizeof withdrawn / sizeof withdrawn[0]; i++) {
        assert_exponent(withdrawn[i], 2);
        assert_true(currency_is_withdrawn(text_of(withdrawn[i])));
    }
    assert_false(currency_is_withdrawn(text_of("XCG")));
    assert_false(currency_is_withdrawn((struct text){NULL, 0}));
}

TEST(what_is_not_a_currency_is_refused_and_leaves_the_exponent)
{
    static const char *const wrong[] = {"",    "EU",  "EURO", "eur", "Eur", "UR ", "R U",
                                        "   ", "XXX", "XTS",  "XAU", "HRK", "123", "F\xc3\xa9"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        uint8_t exponent = 99;
        assert_false(currency_exponent(text_of(wrong[i]), &exponent));
        assert_int_equal(exponent, 99);
    }
    uint8_t exponent = 99;
    assert_false(currency_exponent((struct text){"EU\0", 3}, &exponent));
    assert_false(currency_exponent((struct text){NULL, 0}, &exponent));
}

TEST(an_amount_is_shown_with_the_digits_of_its_currency)
{
    static const struct {
        int64_t minor;
        unsigned exponent;
        const char *text;
    } cases[] = {
        {0, 2, "0.00"},       {5, 2, "0.05"},
        {1250, 2, "12.50"},   {-1250, 2, "-12.50"},
        {-5, 2, "-0.05"},     {1250, 0, "1250"},
        {0, 0, "0"},          {7, 3, "0.007"},
        {12345, 4, "1.2345"}, {INT64_MIN, 2, "-92233720368547758.08"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[CURRENCY_AMOUNT_SIZE];
        currency_format(cases[i].minor, cases[i].exponent, text);
        assert_string_equal(text, cases[i].text);
    }
}
