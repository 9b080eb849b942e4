/* Clocks and their texts; see clock.h. */
#include "base/clock.h"

#include "base/checksum.h"

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

void clock_make_timer(uv_loop_t *loop, uv_timer_t *timer, void *data)
{
    CHECK(uv_timer_init(loop, timer) == 0);
    timer->data = data;
}

void clock_start_timer(uv_timer_t *timer, uv_timer_cb fired, uint64_t after_ms, uint64_t every_ms)
{
    uv_update_time(timer->loop);
    CHECK(uv_timer_start(timer, fired, after_ms, every_ms) == 0);
}

int64_t clock_boot_ms(void)
{
    return (int64_t)(read_clock_ns(CLOCK_BOOTTIME) / 1000000U);
}

uint64_t clock_boot_id(void)
{
    char id[64];
    int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? -1 : read(file, id, sizeof id);
    if (file >= 0)
        (void)close(file);
    return size <= 0 ? 0 : checksum_add(0, id, (size_t)size);
}

void clock_pause_ns(uint64_t ns)
{
    const struct timespec pause = {.tv_sec = (time_t)(ns / 1000000000U),
                                   .tv_nsec = (long)(ns % 1000000000U)};
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

/* Formats by hand, because every answer of the wallet has a time. */
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

/* Does the text begin with this form: digits where the form has '0', else the form's bytes? */
static bool has_form(struct text text, const char *form)
{
    for (size_t i = 0; form[i] != '\0'; i++)
        if (i == text.size ||
            (form[i] == '0' ? text.at[i] < '0' || text.at[i] > '9' : text.at[i] != form[i]))
            return false;
    return true;
}

static int number_at(const char *at, int digits)
{
    int sum = 0;
    for (int i = 0; i < digits; i++)
        sum = sum * 10 + (at[i] - '0');
    return sum;
}

static struct text text_from(struct text text, size_t start)
{
    return (struct text){text.at + start, text.size - start};
}

/* Cuts ".123" (any number of digits, milliseconds kept) off the beginning when it is there. */
static bool cut_fraction(struct text *rest, int *ms)
{
    size_t size = 1;
    *ms = 0;
    if (rest->size == 0 || rest->at[0] != '.')
        return true;
    for (int scale = 100; has_form(text_from(*rest, size), "0"); size++, scale /= 10)
        *ms += (rest->at[size] - '0') * scale;
    *rest = text_from(*rest, size);
    return size > 1;
}

/* Reads "Z" or "+05:30" into minutes east of UTC. */
static bool read_offset(struct text text, int *minutes)
{
    *minutes = 0;
    if (text_equals_ignore_case(text, TEXT("Z")))
        return true;
    if (text.size != 6 || !(has_form(text, "+00:00") || has_form(text, "-00:00")))
        return false;
    int hour = number_at(text.at + 1, 2);
    int minute = number_at(text.at + 4, 2);
    *minutes = (text.at[0] == '-' ? -1 : 1) * (hour * 60 + minute);
    return hour <= 23 && minute <= 59;
}

/* Reads the time after a date into milliseconds in UTC since that day began. A leap second (RFC
 * 3339 section 5.7) is the last of a day in UTC; it counts as the one after it. */
static bool read_time(struct text text, int64_t *day_ms)
{
    int ms;
    int offset;
    if (memchr("Tt ", text.at[0], 3) == NULL || !has_form(text_from(text, 1), "00:00:00"))
        return false;
    struct text rest = text_from(text, 9);
    if (!cut_fraction(&rest, &ms) || !read_offset(rest, &offset))
        return false;
    int hour = number_at(text.at + 1, 2);
    int minute = number_at(text.at + 4, 2);
    int second = number_at(text.at + 7, 2);
    int of_day = hour * 60 + minute - offset;
    *day_ms = ((int64_t)of_day * 60 + second) * 1000 + ms;
    return hour < 24 && minute < 60 &&
           (second < 60 || (second == 60 && (of_day + 1440) % 1440 == 1439));
}

enum status clock_parse_rfc3339(struct text text, int64_t *wall_ms)
{
    int64_t time_ms = 0;
    if (!has_form(text, "0000-00-00") ||
        (text.size > 10 && !read_time(text_from(text, 10), &time_ms)))
        return STATUS_INVALID;
    int day = number_at(text.at + 8, 2);
    struct tm date = {.tm_year = number_at(text.at, 4) - 1900,
                      .tm_mon = number_at(text.at + 5, 2) - 1,
                      .tm_mday = day};
    if (date.tm_year < 70 || date.tm_mon < 0 || date.tm_mon > 11 || day < 1)
        return STATUS_INVALID;
    time_ms += (int64_t)timegm(&date) * 1000;
    if (date.tm_mday != day || /* 31 April and the like were carried into the next month */
        time_ms > CLOCK_MAX_MS)
        return STATUS_INVALID;
    *wall_ms = time_ms;
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
