/* Event ids as decimal text; see event_id.h. */
#include "records/event_id.h"

#include "base/json_text.h"

enum status event_id_parse(struct text text, struct event_id *id)
{
    if (text.size < 1 || text.size > EVENT_ID_DIGITS)
        return STATUS_INVALID;
    for (size_t i = 0; i < text.size; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            return STATUS_INVALID;
    while (text.size > 0 && text.at[0] == '0')
        text_skip(&text, 1);
    if (text.size == 0)
        return STATUS_INVALID;
    struct event_id parsed = {.size = (uint8_t)text.size};
    memcpy(parsed.digits, text.at, text.size);
    *id = parsed;
    return STATUS_OK;
}

enum status event_id_read(struct text value, struct event_id *id)
{
    if (value.size == 0)
        return STATUS_NOT_FOUND;
    if (json_text_kind(value) == JSON_TEXT_NUMBER)
        return event_id_parse(value, id);
    /* Even twenty escapes of six bytes are short; anything longer is no id. */
    if (json_text_kind(value) != JSON_TEXT_STRING || value.size > 2 + 6 * EVENT_ID_DIGITS)
        return STATUS_INVALID;
    struct buffer digits = {0};
    (void)json_text_unescape(value, &digits);
    enum status status = event_id_parse(buffer_text(&digits), id);
    buffer_free(&digits);
    return status;
}

bool event_id_equals(const struct event_id *a, const struct event_id *b)
{
    return a->size == b->size && memcmp(a->digits, b->digits, a->size) == 0;
}

struct text event_id_text(const struct event_id *id)
{
    return (struct text){id->digits, id->size};
}
