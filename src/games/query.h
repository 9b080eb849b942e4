#pragma once

#include "http/query.h"
#include "records/game.h"

/*
 * The query of GET /api/v1/casino/games (docs/interface.md), and the cursor that leads from one
 * page to the next. Pure. Threads: any.
 *
 *     limit=1…200  cursor=…  provider=  category=  feature=  device=  currency=  language=
 *     demo=true|false  q=
 *
 * A cursor is base64url(id of the last game, HMAC-SHA-256 cut to 16 bytes). The HMAC covers the
 * customer, the filters and the id. A cursor of another customer or of other filters is refused, so
 * that a page never continues a foreign list. The limit may change from page to page.
 */

#define GAMES_CURSOR_TAG_SIZE 16U
#define GAMES_CURSOR_SIZE 112U /* of the text, with its NUL: 80 bytes are 107 characters */

/* The rule for a cursor that is malformed or of another list. */
#define GAMES_CURSOR_RULE "The parameter cursor must be a next_cursor of the same query."

enum games_demo { GAMES_DEMO_ANY, GAMES_DEMO_TRUE, GAMES_DEMO_FALSE };

/* Each text is NUL-terminated; "" is a filter that was not given. */
struct games_query {
    uint32_t limit;
    char provider[GAME_WORD_SIZE];
    char category[GAME_WORD_SIZE];
    char feature[GAME_WORD_SIZE];
    char device[GAME_WORD_SIZE];
    char currency[GAME_WORD_SIZE];
    char language[GAME_WORD_SIZE];
    char q[GAME_WORD_SIZE];
    enum games_demo demo;
    char cursor[GAMES_CURSOR_SIZE]; /* as given */
};

/* Reads the text after '?'. Names and values are percent-encoded, '+' is a space. NULL: `query` is
 * filled in. Otherwise (400) the result is a constant for people that says what is wrong: a
 * parameter that is unknown, given twice, empty or out of its bounds; a bad escape; no UTF-8. */
MUST_CHECK const char *games_query_parse(struct text text, struct games_query *query);

/* The cursor after the game of this id. */
void games_cursor_write(const uint8_t key[32], const char *customer_id,
                        const struct games_query *query, struct text last_id,
                        char out[GAMES_CURSOR_SIZE]);

/* The id that query->cursor leads on from ("" without a cursor). False (400): not a cursor of this
 * customer and these filters. */
MUST_CHECK bool games_cursor_read(const uint8_t key[32], const char *customer_id,
                                  const struct games_query *query, char last_id[GAME_ID_SIZE]);
