#pragma once

#include "base/text.h"

/*
 * The rules for a game, a provider and a player's request. Pure.
 *
 * Lists in a record are one text: items separated by LF, in the order given, "" for none. (An item
 * holds no control characters.)
 */

#define GAME_ID_SIZE 65    /* [a-z0-9][a-z0-9-]{0,63}; of a provider too */
#define GAME_NAME_SIZE 129 /* of a provider too: 1 to 128 bytes of UTF-8 */
#define GAME_WORD_SIZE 65  /* a category, and every item of a list: 1 to 64 bytes */
#define GAME_URL_SIZE 1025 /* http:// or https://, printable ASCII */
#define GAME_LIST_SIZE 1025
#define GAME_LIST_ITEMS_MAX 256U
#define COUNTRY_SIZE 3 /* two capitals; NUL-terminated */

bool game_id_is_sound(struct text id);
bool game_word_is_sound(struct text word); /* 1 to 64 bytes of plain UTF-8 */
bool url_is_sound(struct text url);      /* http(s)://…, characters of RFC 3986, of any length */
bool game_url_is_sound(struct text url); /* and of at most 1024 */
/* A request there can be neither read nor changed on the way: https://, or http:// to 127.0.0.1,
 * [::1] or localhost; and no user name in it. The bounds of a sound URL. */
bool game_url_is_guarded(struct text url);
/* Is it a code of ISO 3166-1 alpha-2, or XK (Kosovo), which databases of addresses use? */
bool country_is_known(struct text code);

/* Is the item in the list? */
bool game_list_has(struct text list, struct text item);

/* Is what is wanted in the list, or ("") nothing wanted? */
bool game_list_offers(const char *list, const char *wanted);

/* ---- fields, of GAME_ID_SIZE, GAME_URL_SIZE and GAME_LIST_SIZE; STATUS_INVALID with the reason */

MUST_CHECK enum status game_id_check(const char *id, struct error *error);
MUST_CHECK enum status game_url_check(const char *what, const char *url, bool fragment,
                                      struct error *error);
MUST_CHECK enum status game_list_check(const char *what, const char *list,
                                       bool sound(struct text item), struct error *error);
