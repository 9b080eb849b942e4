/* ISO 3166-1 as data. */
#include "records/game_rules.h"
#include "tests.h"

TEST(countries_are_those_of_iso_3166_and_kosovo)
{
    static const char *const known[] = {"AD", "DE", "GB", "IN", "US", "ZW", "XK"};
    static const char *const wrong[] = {"",   "D",  "DEU", "de", "Gb", "UK",
                                        "EU", "AA", "ZZ",  "D ", " D", "XX"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        assert_true(country_is_known(text_of(known[i])));
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_false(country_is_known(text_of(wrong[i])));
    for (char first = 'A'; first <= 'Z'; first++)
        for (char second = 'A'; second <= 'Z'; second++)
            count += country_is_known((struct text){(const char[]){first, second}, 2});
    assert_int_equal(count, 250);
}
