/* The list of a program's tests; see tests.h. */
#include "tests.h"

#define TESTS_MAX 200

static struct CMUnitTest tests[TESTS_MAX];
static size_t count;
static CMFixtureFunction before, after;

void tests_add(struct CMUnitTest test)
{
    if (count == TESTS_MAX)
        abort();
    tests[count++] = test;
}

void tests_between(CMFixtureFunction set_up, CMFixtureFunction tear_down)
{
    before = set_up;
    after = tear_down;
}

unsigned tests_sample(void)
{
    const char *text = getenv("TEST_SAMPLE");
    int sample = text != NULL ? atoi(text) : 1;
    return sample > 0 ? (unsigned)sample : 1;
}

int tests_run(void)
{
    return _cmocka_run_group_tests("tests", tests, count, before, after);
}
