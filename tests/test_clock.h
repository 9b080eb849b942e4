#pragma once

#include <stdint.h>

/*
 * The time of a program under test, set by the test. It takes the place of libc's clock, for
 * croupier (base/clock) and for the libraries that it calls, libuv's timers among them; nothing in
 * croupier knows of it. See test_clock.c for how a server that runs by itself has one.
 *
 * In a unit test that calls these, all of it in one thread that turns its loops itself:
 */

/* From here on time stands still, and nothing happens too late however slow the machine is. */
void test_clock_stop(void);
/* Time goes on by so much at once. Timers fire when their loop is turned next. */
void test_clock_advance_ms(uint64_t ms);
/* The machine's own time, by which a test gives up what does not come. */
uint64_t test_clock_real_ms(void);
