/* A line of a feed's stream: whatever the bytes, it is refused or is made of slices of itself. */
#include <string.h>

#include "base/memory.h"
#include "feed/line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_change(const struct odds_change *change, struct text text)
{
    CHECK(change->sport < SPORT_COUNT);
    if (change->kind == ODDS_MARKETS)
        CHECK(change->event.size > 0 && change->event.size <= EVENT_ID_DIGITS);
    if (change->bytes != NULL) {
        struct feed_report report;
        struct json_text_error wrong;
        struct text document = {change->bytes, change->size};
        CHECK(change->bytes >= text.at && change->bytes + change->size <= text.at + text.size);
        CHECK(json_text_check(document, NULL, &wrong) == STATUS_OK);
        CHECK(feed_check_value(change->kind, document, &report, &wrong) == STATUS_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed_line line;
    char *bytes = memory_copy(data, size); /* of exactly this size, so that reading on is noticed */
    struct text text = {bytes, size};
    feed_line_read(&line, text, 0);
    CHECK((line.count == 0) == (line.wrong.reason != NULL));
    CHECK(line.count <= FEED_TOGETHER_MAX && line.id.size <= FEED_LINE_ID_MAX);
    if (line.wrong.reason != NULL)
        CHECK(line.wrong.offset <= size && line.wrong.column >= 1);
    bool withdraws_sport = false;
    for (size_t i = 0; i < line.count; i++) {
        check_change(&line.changes[i], text);
        withdraws_sport |= line.changes[i].kind == ODDS_CATALOG && line.changes[i].bytes == NULL;
    }
    CHECK(line.withdraws_sport == withdraws_sport);
    feed_line_free(&line);
    memory_free(bytes);
    return 0;
}
