/* Sports, rate limits and times as operators write and read them; see policy_text.h. */
#include "operator/policy_text.h"

#include "base/clock.h"

#define RATE_REQUESTS_MAX 1000000000U
#define RATE_SECONDS_MAX 86400U

enum status rate_parse(struct text text, struct rate_limit *rate, struct error *error)
{
    struct text seconds_text = text_trim(text);
    if (text_equals(seconds_text, TEXT("off")) || text_equals(seconds_text, TEXT("none"))) {
        *rate = (struct rate_limit){0};
        return STATUS_OK;
    }
    uint64_t requests = 0;
    uint64_t seconds = 0;
    struct text requests_text = text_cut(&seconds_text, '/');
    if (text_to_u64(requests_text, RATE_REQUESTS_MAX, &requests) != STATUS_OK || requests == 0 ||
        text_to_u64(seconds_text, RATE_SECONDS_MAX, &seconds) != STATUS_OK || seconds == 0)
        return error_set(error, STATUS_INVALID,
                         "'%.*s' is not a rate; write REQUESTS/SECONDS such as 600/60 (1 to %u "
                         "requests in 1 to %u seconds), or off",
                         (int)(text.size < 64 ? text.size : 64), text.size > 0 ? text.at : "",
                         RATE_REQUESTS_MAX, RATE_SECONDS_MAX);
    *rate = (struct rate_limit){true, (uint32_t)requests, (uint32_t)seconds};
    return STATUS_OK;
}

void rate_append(struct buffer *buffer, const struct rate_limit *rate)
{
    if (rate->enabled)
        buffer_append_format(buffer, "%u/%u", rate->requests, rate->window_seconds);
    else
        buffer_append_string(buffer, "off");
}

yyjson_mut_val *sports_json(yyjson_mut_doc *doc, sport_set sports)
{
    if ((sports & SPORT_SET_ALL) == SPORT_SET_ALL)
        return yyjson_mut_str(doc, "all");
    yyjson_mut_val *list = yyjson_mut_arr(doc);
    for (int i = 0; i < SPORT_COUNT; i++)
        if ((sports & SPORT_BIT(i)) != 0)
            (void)yyjson_mut_arr_add_str(doc, list, sport_key((enum sport)i));
    return list;
}

yyjson_mut_val *rate_json(yyjson_mut_doc *doc, const struct rate_limit *rate)
{
    if (!rate->enabled)
        return yyjson_mut_null(doc);
    yyjson_mut_val *object = yyjson_mut_obj(doc);
    (void)yyjson_mut_obj_add_uint(doc, object, "requests", rate->requests);
    (void)yyjson_mut_obj_add_uint(doc, object, "window_seconds", rate->window_seconds);
    return object;
}

yyjson_mut_val *time_json(yyjson_mut_doc *doc, int64_t time_ms)
{
    char text[CLOCK_TEXT_SIZE];
    if (time_ms == 0)
        return yyjson_mut_null(doc);
    clock_format_rfc3339(time_ms, text);
    return yyjson_mut_strcpy(doc, text);
}

void switch_apply(enum setting_switch setting, bool *value)
{
    if (setting != SETTING_LEAVE)
        *value = setting == SETTING_ON;
}
