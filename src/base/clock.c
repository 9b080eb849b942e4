/* Clocks and their texts; see clock.h. */
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static uint64_t read_clock_ns(clockid_t clock)
{
    struct timespec now;
    CHECK(clock_gettime(clock, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

uint64_t clock_monotonic_ns(void)
{
    return read_clock_ns(CLOCK_MONOTONIC);
}

uint64_t clock_monotonic_ms(void)
{
    return clock_monotonic_ns() / 1000000U;
}

uint64_t clock_loop_ms(const uv_loop_t *loop)
{
    return uv_now(loop);
}

void clock_refresh_loop(uv_loop_t *loop)
{
    uv_update_time(loop);
}

struct timespec clock_timespec(uint64_t ns)
{
    return (struct timespec){.tv_sec = (time_t)(ns / 1000000000U),
                             .tv_nsec = (long)(ns % 1000000000U)};
}

void clock_pause_ns(uint64_t ns)
{
    struct timespec pause = clock_timespec(ns);
    (void)nanosleep(&pause, NULL);
}

int64_t clock_wall_ms(void)
{
    return (int64_t)(read_clock_ns(CLOCK_REALTIME) / 1000000U);
}

int64_t clock_wall_coarse_ms(void)
{
    return (int64_t)(read_clock_ns(CLOCK_REALTIME_COARSE) / 1000000U);
}

static struct tm utc_of(int64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms >= 0 ? wall_ms / 1000 : (wall_ms - 999) / 1000);
    struct tm utc;
    CHECK(gmtime_r(&seconds, &utc) != NULL);
    return utc;
}

static void put_digits(char *at, int digits, int value)
{
    for (int i = digits; i-- > 0; value /= 10)
        at[i] = (char)('0' + value % 10);
}

/* By hand, because every answer of the wallet has one. */
void clock_format_rfc3339(int64_t wall_ms, char out[CLOCK_TEXT_SIZE])
{
    struct tm utc = utc_of(wall_ms);
    char text[] = "0000-00-00T00:00:00.000Z";
    char *at = text;
    if (utc.tm_year < -1900 || utc.tm_year > 9999 - 1900) { /* no such year in RFC 3339 */
        (void)snprintf(out, CLOCK_TEXT_SIZE, "%" PRId64 " ms", wall_ms);
        return;
    }
    put_digits(at, 4, utc.tm_year + 1900);
    put_digits(at + 5, 2, utc.tm_mon + 1);
    put_digits(at + 8, 2, utc.tm_mday);
    put_digits(at + 11, 2, utc.tm_hour);
    put_digits(at + 14, 2, utc.tm_min);
    put_digits(at + 17, 2, utc.tm_sec);
    put_digits(at + 20, 3, (int)(((wall_ms % 1000) + 1000) % 1000));
    memcpy(out, text, sizeof text);
}

/* The locale is always "C". */
void clock_format_http(int64_t wall_ms, char out[CLOCK_TEXT_SIZE])
{
    struct tm utc = utc_of(wall_ms);
    CHECK(strftime(out, CLOCK_TEXT_SIZE, "%a, %d %b %Y %H:%M:%S GMT", &utc) > 0);
}

/* Reads exactly `digits` digits at *at and steps over them. */
static bool read_digits(const char **at, const char *end, int digits, int *value)
{
    int sum = 0;
    for (int i = 0; i < digits; i++, (*at)++) {
        if (*at >= end || **at < '0' || **at > '9')
            return false;
        sum = sum * 10 + (**at - '0');
    }
    *value = sum;
    return true;
}

static bool read_char(const char **at, const char *end, char wanted)
{
    if (*at >= end || **at != wanted)
        return false;
    (*at)++;
    return true;
}

/* Reads ".123" (any number of digits, milliseconds kept) when there is one. */
static bool read_fraction(const char **at, const char *end, int *milliseconds)
{
    *milliseconds = 0;
    if (!read_char(at, end, '.'))
        return true;
    int scale = 100;
    const char *start = *at;
    for (; *at < end && **at >= '0' && **at <= '9'; (*at)++, scale /= 10)
        *milliseconds += (**at - '0') * scale;
    return *at > start;
}

/* Reads "Z" or "+05:30" into minutes east of UTC. */
static bool read_offset(const char **at, const char *end, int *minutes)
{
    *minutes = 0;
    if (read_char(at, end, 'Z') || read_char(at, end, 'z'))
        return true;
    int sign = *at < end && **at == '-' ? -1 : 1;
    int hour;
    int minute;
    if (!read_char(at, end, '+') && !read_char(at, end, '-'))
        return false;
    if (!read_digits(at, end, 2, &hour) || !read_char(at, end, ':') ||
        !read_digits(at, end, 2, &minute) || hour > 23 || minute > 59)
        return false;
    *minutes = sign * (hour * 60 + minute);
    return true;
}

static bool read_time(const char **at, const char *end, struct tm *time, int *ms, int *offset)
{
    if (!read_char(at, end, 'T') && !read_char(at, end, 't') && !read_char(at, end, ' '))
        return false;
    return read_digits(at, end, 2, &time->tm_hour) && read_char(at, end, ':') &&
           read_digits(at, end, 2, &time->tm_min) && read_char(at, end, ':') &&
           read_digits(at, end, 2, &time->tm_sec) && time->tm_hour < 24 && time->tm_min < 60 &&
           time->tm_sec < 61 && read_fraction(at, end, ms) && read_offset(at, end, offset);
}

/* A leap second (RFC 3339 section 5.7) is the last of a day in UTC; it counts as the one after
 * it. */
static bool is_possible_second(const struct tm *time, int offset)
{
    int minute = time->tm_hour * 60 + time->tm_min - offset;
    return time->tm_sec < 60 || (minute + 1440) % 1440 == 1439;
}

enum status clock_parse_rfc3339(struct text text, int64_t *wall_ms)
{
    if (text.size == 0)
        return STATUS_INVALID;
    const char *at = text.at;
    const char *end = text.at + text.size;
    struct tm date = {0};
    struct tm time = {0};
    int ms = 0;
    int offset = 0;
    if (!read_digits(&at, end, 4, &date.tm_year) || !read_char(&at, end, '-') ||
        !read_digits(&at, end, 2, &date.tm_mon) || !read_char(&at, end, '-') ||
        !read_digits(&at, end, 2, &date.tm_mday))
        return STATUS_INVALID;
    if (at < end && !read_time(&at, end, &time, &ms, &offset))
        return STATUS_INVALID;
    if (at != end || date.tm_year < 1970 || date.tm_mon < 1 || date.tm_mon > 12 ||
        date.tm_mday < 1 || !is_possible_second(&time, offset))
        return STATUS_INVALID;
    int day = date.tm_mday;
    date.tm_year -= 1900;
    date.tm_mon -= 1;
    int64_t seconds = (int64_t)timegm(&date);
    if (date.tm_mday != day) /* 31 April and the like were carried into the next month */
        return STATUS_INVALID;
    seconds += (int64_t)time.tm_hour * 3600 + ((int64_t)time.tm_min - offset) * 60 + time.tm_sec;
    *wall_ms = seconds * 1000 + ms;
    return STATUS_OK;
}

int64_t clock_day(int64_t wall_ms)
{
    int64_t days = wall_ms / CLOCK_DAY_MS;
    return wall_ms % CLOCK_DAY_MS < 0 ? days - 1 : days;
}

void clock_format_day(int64_t day, char out[CLOCK_DAY_SIZE])
{
    char text[CLOCK_TEXT_SIZE];
    clock_format_rfc3339(day * CLOCK_DAY_MS, text);
    (void)snprintf(out, CLOCK_DAY_SIZE, "%.10s", text);
}

enum status clock_parse_day(struct text text, int64_t *day)
{
    int64_t wall_ms;
    if (text.size != CLOCK_DAY_SIZE - 1 || clock_parse_rfc3339(text, &wall_ms) != STATUS_OK)
        return STATUS_INVALID;
    *day = clock_day(wall_ms);
    return STATUS_OK;
}
