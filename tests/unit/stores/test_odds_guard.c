/*
 * stores/odds/lmdb/guard: a fault on a map becomes a return value, and only there.
 *
 * cmocka puts handlers of its own for these signals around every test, so everything here is tried
 * before cmocka runs, and its tests look at what came of it.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>
#include <pthread.h>

#include "base/status.h"
#include "stores/odds/lmdb/guard.h"

struct touch {
    volatile const char *at;
    int before;
    int after;
};

static void touch_body(void *context)
{
    struct touch *touch = context;
    touch->before++;
    (void)*touch->at;
    touch->after++;
}

/* A page of a file that is no longer that long. */
static char *lost_page(FILE *file)
{
    CHECK(ftruncate(fileno(file), 4096) == 0);
    char *page = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fileno(file), 0);
    CHECK(page != MAP_FAILED && ftruncate(fileno(file), 0) == 0);
    return page;
}

static bool a_lost_page_is_a_false_return_each_time(void)
{
    FILE *file = tmpfile();
    struct touch touch = {.at = lost_page(file)};
    bool good = true;
    for (int i = 1; i <= 5; i++)
        good = good && !odds_guard_run(touch_body, &touch) && touch.before == i && touch.after == 0;
    good = good && ftruncate(fileno(file), 4096) == 0;
    good = good && odds_guard_run(touch_body, &touch) && touch.after == 1;
    (void)fclose(file);
    return good;
}

static bool a_wild_pointer_is_one_as_well(void)
{
    char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct touch touch = {.at = page};
    bool good = !odds_guard_run(touch_body, &touch) && !odds_guard_run(touch_body, &touch);
    return munmap(page, 4096) == 0 && good;
}

static void *run_blocked(void *argument)
{
    return odds_guard_run(touch_body, argument) ? argument : NULL;
}

static bool threads_that_block_all_signals_are_guarded_too(void)
{
    FILE *file = tmpfile();
    struct touch touch = {.at = lost_page(file)};
    sigset_t all;
    sigset_t before;
    pthread_t thread;
    void *result = &touch;
    CHECK(sigfillset(&all) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    CHECK(pthread_create(&thread, NULL, run_blocked, &touch) == 0);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    CHECK(pthread_join(thread, &result) == 0);
    (void)fclose(file);
    return result == NULL;
}

static bool a_fault_leaves_the_signal_mask_as_it_was(void)
{
    FILE *file = tmpfile();
    struct touch touch = {.at = lost_page(file)};
    sigset_t mask;
    bool good = !odds_guard_run(touch_body, &touch);
    CHECK(pthread_sigmask(SIG_SETMASK, NULL, &mask) == 0);
    (void)fclose(file);
    return good && !sigismember(&mask, SIGBUS) && !sigismember(&mask, SIGTERM);
}

static void escape_body(void *context)
{
    int *steps = context;
    *steps += 1;
    odds_guard_escape();
    *steps += 10;
}

static bool an_assertion_can_leave_the_region(void)
{
    int steps = 0;
    bool good = !odds_guard_run(escape_body, &steps) && steps == 1;
    odds_guard_escape(); /* outside it does nothing */
    return good;
}

static bool a_fault_outside_still_ends_the_process(void)
{
    pid_t child = fork();
    if (child == 0) {
        struct touch touch = {.at = lost_page(tmpfile())};
        (void)setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        (void)close(STDERR_FILENO); /* a sanitizer has its say */
        if (odds_guard_run(touch_body, &touch))
            _exit(0);
        touch_body(&touch);
        _exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && (WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
}

struct trial {
    const char *name;
    bool (*run)(void);
    bool passed;
};
#define TRIAL(function)            \
    {                              \
#function, function, false \
    }

static void passed(void **state)
{
    assert_true(((struct trial *)*state)->passed);
}

int main(void)
{
    struct trial trials[] = {
        TRIAL(a_lost_page_is_a_false_return_each_time),
        TRIAL(a_wild_pointer_is_one_as_well),
        TRIAL(threads_that_block_all_signals_are_guarded_too),
        TRIAL(a_fault_leaves_the_signal_mask_as_it_was),
        TRIAL(an_assertion_can_leave_the_region),
        TRIAL(a_fault_outside_still_ends_the_process),
    };
    struct CMUnitTest tests[sizeof trials / sizeof trials[0]];
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        trials[i].passed = trials[i].run();
        tests[i] = (struct CMUnitTest){
            .name = trials[i].name, .test_func = passed, .initial_state = &trials[i]};
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
