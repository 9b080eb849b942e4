#pragma once

#include "feed/check.h"
#include "stores/odds_feed.h"

/*
 * One line of a feed's stream (docs/feed.md, "One process"): JSON that says what is to be
 * published.
 *
 *     {"catalog": "cricket", "document": […]}
 *     {"odds": "cricket", "event": "34000001", "document": […]}
 *     {"withdraw": "cricket"}    {"withdraw": "cricket", "event": "34000001"}
 *     {"together": [ … ]}        of the others, at most FEED_TOGETHER_MAX
 *
 * An `id`, a number or a string, is given back with the answer. Reading is a pure function of the
 * bytes. Threads: any.
 */

#define FEED_LINE_MAX ODDS_VALUE_MAX /* bytes, without its line end */
#define FEED_TOGETHER_MAX 4096U
#define FEED_LINE_ID_MAX 256U /* bytes, as written */

struct feed_step {
    struct odds_change change;
    bool whole_sport; /* a catalog that is withdrawn with all odds of its sport */
};

struct feed_line {
    struct feed_step *steps;               /* in their order; documents are slices of the text */
    struct feed_step only;                 /* where they are when there is one */
    size_t count;                          /* 0: refused */
    struct text id;                        /* of the text, as written; size 0: none was given */
    size_t rows_without_id, rows_repeated; /* of its catalogs; see struct feed_report */
    struct json_text_error wrong;          /* why it is refused; else its reason is NULL */
};

/* `text`, which is borrowed as long as the line is used, has no line end. A line that was read does
 * not move. */
void feed_line_read(struct feed_line *line, struct text text);
void feed_line_free(struct feed_line *line);
