/* Times as operators write them; see times.h. */
#include "operator/times.h"

#include "base/clock.h"

/* "90d" in milliseconds. */
static bool parse_duration(struct text text, int64_t *duration_ms)
{
    static const char units[] = "smhdw";
    static const uint32_t seconds[] = {1, 60, 3600, 86400, 7 * 86400};
    uint64_t number = 0;
    const char *unit =
        text.size == 0 ? NULL : memchr(units, text.at[text.size - 1], sizeof units - 1);
    if (unit == NULL ||
        text_to_u64((struct text){text.at, text.size - 1},
                    CLOCK_MAX_MS / 1000 / seconds[unit - units], &number) != STATUS_OK)
        return false;
    *duration_ms = (int64_t)(number * seconds[unit - units] * 1000);
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
    return error_invalid(error,
                         "'%.*s' is not a time; write 2027-01-31, 2027-01-31T18:00:00Z, or %s, "
                         "such as 90d, 12h, 30m",
                         TEXT_SHOWN(text), direction > 0 ? "a time from now" : "how long ago");
}

enum status time_parse_ahead(struct text text, int64_t now_ms, int64_t *time_ms,
                             struct error *error)
{
    int64_t parsed_ms = 0;
    enum status status = parse(text, now_ms, 1, &parsed_ms, error);
    if (status != STATUS_OK)
        return status;
    if (parsed_ms <= now_ms || parsed_ms > CLOCK_MAX_MS)
        return error_invalid(error, "'%.*s' is not in the future%s", TEXT_SHOWN(text),
                             parsed_ms > now_ms ? " of this calendar" : "");
    *time_ms = parsed_ms;
    return STATUS_OK;
}

enum status time_parse_past(struct text text, int64_t now_ms, int64_t *time_ms, struct error *error)
{
    return parse(text, now_ms, -1, time_ms, error);
}
