/* The single-event body, put together from a catalog row and an odds document; see event.h. */
#include "sports/event.h"

#include "base/json_writer.h"

#include "sports/filter.h"

static const struct object_filter market_filter = {
    .hidden = {TEXT_INIT("tv"), TEXT_INIT("tvChannel"), TEXT_INIT("odd_type")},
};

static void append_markets(struct text minified, struct buffer *body)
{
    struct json_text_cursor cursor = json_text_open(minified);
    struct text element;
    bool first = true;
    buffer_append_char(body, '[');
    while (json_text_next_element(&cursor, &element)) {
        if (!first)
            buffer_append_char(body, ',');
        first = false;
        object_filter_append(&market_filter, element, body, NULL);
    }
    buffer_append_char(body, ']');
}

enum status event_body_append(enum sport sport, const struct catalog_row *row,
                              struct text stored_odds, struct buffer *body, size_t *row_at,
                              struct json_text_error *error)
{
    struct buffer minified = {0};
    struct json_writer json = {.out = body};
    enum status status = feed_array_minify(stored_odds, &minified, error);
    if (status != STATUS_OK)
        goto done;
    buffer_reserve(body, row->text.size + minified.size + 128);
    json_object(&json, NULL);
    json_string(&json, "sport", sport_key(sport));
    json_raw(&json, "event_id", text_of(row->id.digits));
    json_begin_raw(&json, "event");
    *row_at = body->size;
    buffer_append_text(body, row->text);
    json_begin_raw(&json, "odds");
    append_markets(buffer_text(&minified), body);
    json_end(&json);
done:
    buffer_free(&minified);
    return status;
}

bool event_row_as_of(const struct odds_part *part, bool whole, const struct event_id *event,
                     const struct catalog_row **row, struct catalog **made)
{
    struct text bytes = {part->bytes, part->size};
    if (bytes.at == NULL)
        return false;
    if (!whole)
        return catalog_row_is(*row, bytes);
    if (catalog_create(bytes, made, NULL) != STATUS_OK)
        return false;
    const struct catalog_row *found = catalog_find(*made, event);
    if (found != NULL)
        *row = found;
    return found != NULL;
}
