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
 *     {"alive": true}            a sign of life
 *
 * `expires_s`, 0 to ODDS_EXPIRES_MOST_S, may stand beside a document: when it is as withdrawn.
 * An `id`, a number or a string, is given back with the answer. Reading is a pure function of the
 * bytes. Threads: any.
 */

#define FEED_LINE_MAX ODDS_VALUE_MAX /* bytes, without its line end */
#define FEED_TOGETHER_MAX 4096U
#define FEED_LINE_ID_MAX 256U /* bytes, as written */

/* A line withdraws a catalog with all odds of its sport. */
static inline bool feed_withdraws_sport(const struct odds_change *change)
{
    return change->kind == ODDS_CATALOG && change->bytes == NULL;
}

struct feed_line {
    /* In their order; documents are slices of the text. */
    struct odds_change *changes;
    struct odds_change only;               /* where they are when there is one */
    size_t count;                          /* 0: refused */
    bool withdraws_sport;                  /* one of them does */
    bool alive;                            /* a sign of life, without changes */
    struct text id;                        /* of the text, as written; size 0: none was given */
    size_t rows_without_id, rows_repeated; /* of its catalogs; see struct feed_report */
    struct json_text_error wrong;          /* why it is refused; else its reason is NULL */
};

/* `expires_s`: of documents that have none. `text`, which is borrowed as long as the line is used,
 * has no line end. A line that was read does not move. */
void feed_line_read(struct feed_line *line, struct text text, uint32_t expires_s);
void feed_line_free(struct feed_line *line);
