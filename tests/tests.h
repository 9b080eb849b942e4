#ifndef TESTS_H
#define TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/*
 * The tests of a program in C. A test is where it is written:
 *
 *     TEST(the_sum_of_nothing_is_nothing)
 *     {
 *         assert_int_equal(sum(NULL, 0), 0);
 *     }
 *
 * All tests of the program run in the order of its files, and `main` is here (tests_main.c) unless
 * the program has one that calls tests_run.
 */
#define TEST(name) TEST_WITH(name, NULL, NULL)

/* The same between `set_up` and `tear_down`, functions as cmocka has them. */
#define TEST_WITH(name, set_up, tear_down)                                          \
    static void name(void **state);                                                 \
    __attribute__((constructor)) static void name##_is_a_test(void)                 \
    {                                                                               \
        tests_add((struct CMUnitTest){#name, (name), (set_up), (tear_down), NULL}); \
    }                                                                               \
    static void name(void **state)

/* The same between functions that are called set_up and tear_down, with what the first has made: a
 * struct of that name. */
#define TEST_OF(object, name) TEST_OF_WITH(object, name, set_up, tear_down)

/* The same between functions of other names. */
#define TEST_OF_WITH(object, name, set_up, tear_down)                                      \
    static void name(struct object *object);                                               \
    static void name##_is_run(void **state)                                                \
    {                                                                                      \
        name(*state);                                                                      \
    }                                                                                      \
    __attribute__((constructor)) static void name##_is_a_test(void)                        \
    {                                                                                      \
        tests_add((struct CMUnitTest){#name, name##_is_run, (set_up), (tear_down), NULL}); \
    }                                                                                      \
    static void name(struct object *object)

/* What is done once, before the first test and after the last. */
#define TESTS_WITH(set_up, tear_down)                               \
    __attribute__((constructor)) static void tests_are_set_up(void) \
    {                                                               \
        tests_between((set_up), (tear_down));                       \
    }                                                               \
    _Static_assert(1, "a semicolon follows")

/* It is STATUS_OK, or the failure says what it is and what `error` holds. */
#define ASSERT_OK(call, error)                                                 \
    do {                                                                       \
        enum status status_ = (call);                                          \
        if (status_ != STATUS_OK)                                              \
            fail_msg("%s: %s: %s", #call, status_name(status_), (error).text); \
    } while (0)

void tests_add(struct CMUnitTest test);
void tests_between(CMFixtureFunction set_up, CMFixtureFunction tear_down);
int tests_run(void); /* how many failed */

/* Long campaigns of a sanitized run try one in so many of their points (TEST_SAMPLE); 1: all. */
unsigned tests_sample(void);

#endif
