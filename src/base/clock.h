#pragma once

#include <time.h>

#include <uv.h>

#include "base/text.h"

/*
 * Time. Deadlines and durations are monotonic; anything that is stored, shown or that decides a
 * rate-limit window is wall-clock time in milliseconds since the Unix epoch. Threads: any.
 *
 * No other file asks the machine for the time or sleeps (tools/check_clock.py), and what is asked
 * here and in libraries goes through libc. So a test that replaces libc's clock controls all
 * time: tests/test_clock.h.
 */

uint64_t clock_monotonic_ns(void);
uint64_t clock_monotonic_ms(void);
/* clock_monotonic_ms() as of when the loop last woke, which costs nothing: for code that the loop
 * runs. */
uint64_t clock_loop_ms(const uv_loop_t *loop);
/* Makes a timer of the loop, with its `data`; and starts one, which counts from now rather than
 * from when the loop woke. `every_ms` 0: once. */
void clock_make_timer(uv_loop_t *loop, uv_timer_t *timer, void *data);
void clock_start_timer(uv_timer_t *timer, uv_timer_cb fired, uint64_t after_ms, uint64_t every_ms);
/* Time since the machine booted, suspension included, and a number for that boot: two processes of
 * one boot can compare their times, however the wall clock leaps. The id is read from a file; 0: it
 * cannot be, and times of two processes must not be compared. */
int64_t clock_boot_ms(void);
uint64_t clock_boot_id(void);
/* Sleeps for so long; a signal may end it early. */
void clock_pause_ns(uint64_t ns);
int64_t clock_wall_ms(void);
/* The same as of the kernel's last tick, up to 10 ms behind, for a third of the price. */
int64_t clock_wall_coarse_ms(void);

/* "2026-11-21T04:53:17.042Z" (RFC 3339, UTC). The texts and their NUL fit CLOCK_TEXT_SIZE with room
 * for any value of their numbers, which the compiler wants to see. */
#define CLOCK_TEXT_SIZE 80
void clock_format_rfc3339(int64_t wall_ms, char out[CLOCK_TEXT_SIZE]);

/* "Sat, 21 Nov 2026 04:53:17 GMT" (IMF-fixdate, RFC 9110 section 5.6.7). */
void clock_format_http(int64_t wall_ms, char out[CLOCK_TEXT_SIZE]);

#define CLOCK_MAX_MS 253402300799999 /* the end of the year 9999, in UTC */

/* Reads RFC 3339 ("2026-11-21T04:53:17Z", an offset, a fraction), or a bare date (midnight UTC), up
 * to CLOCK_MAX_MS. */
MUST_CHECK enum status clock_parse_rfc3339(struct text text, int64_t *wall_ms);

/* Days (UTC) since 1970-01-01, and "2026-11-21" for one. */
#define CLOCK_DAY_MS INT64_C(86400000)
int64_t clock_day(int64_t wall_ms);
#define CLOCK_DAY_SIZE 11
void clock_format_day(int64_t day, char out[CLOCK_DAY_SIZE]);
MUST_CHECK enum status clock_parse_day(struct text text, int64_t *day);
