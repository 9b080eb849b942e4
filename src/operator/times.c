/* Times as operators write them; see times.h. */
#include "operator/times.h"

#include <string.h>

#include "base/clock.h"

#define TIME_MAX_MS 253402300799999 /* the end of the year 9999 */

/* 0: there is no such unit. */
static uint64_t seconds_in(char unit)
{
    static const char units[] = "smhdw";
    static const uint32_t seconds[] = {1, 60, 3600, 86400, 7 * 86400};
    const char *at = unit == '\0' ? NULL : strchr(units, unit);
    return at == NULL ? 0 : seconds[at - units];
}

/* "90d" in milliseconds. */
static bool parse_duration(struct text text, int64_t *duration_ms)
{
    uint64_t number = 0;
    if (text.size < 2)
        return false;
    uint64_t unit = seconds_in(text.at[text.size - 1]);
    struct text digits = {text.at, text.size - 1};
    if (unit == 0 || text_to_u64(digits, TIME_MAX_MS / 1000 / unit, &number) != STATUS_OK)
        return false;
    *duration_ms = (int64_t)(number * unit * 1000);
    return true;
}

/* `direction`: where durations lead from now, 1 or -1. */
static enum status parse(struct text text, int64_t now_ms, int direction, int64_t *time_ms,
                         struct error *error)
{
    int64_t duration_ms = 0;
    if (parse_duration(text, &duration_ms)) {
        *time_ms = now_ms + direction * duration_ms;
        return STATUS_OK;
    }
    if (clock_parse_rfc3339(text, time_ms) == STATUS_OK)
        return STATUS_OK;
    return error_set(error, STATUS_INVALID,
                     "'%.*s' is not a time; write 2027-01-31, 2027-01-31T18:00:00Z, or %s, "
                     "such as 90d, 12h, 30m",
                     (int)(text.size < 64 ? text.size : 64), text.size > 0 ? text.at : "",
                     direction > 0 ? "a time from now" : "how long ago");
}

enum status time_parse_ahead(struct text text, int64_t now_ms, int64_t *time_ms,
                             struct error *error)
{
    int64_t parsed_ms = 0;
    enum status status = parse(text, now_ms, 1, &parsed_ms, error);
    if (status != STATUS_OK)
        return status;
    if (parsed_ms <= now_ms || parsed_ms > TIME_MAX_MS)
        return error_set(error, STATUS_INVALID, "'%.*s' is not in the future%s",
                         (int)(text.size < 64 ? text.size : 64), text.at,
                         parsed_ms > now_ms ? " of this calendar" : "");
    *time_ms = parsed_ms;
    return STATUS_OK;
}

enum status time_parse_past(struct text text, int64_t now_ms, int64_t *time_ms, struct error *error)
{
    return parse(text, now_ms, -1, time_ms, error);
}
