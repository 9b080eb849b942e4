#ifndef CROUPIER_LAUNCH_REQUEST_H
#define CROUPIER_LAUNCH_REQUEST_H

#include "base/strict_json.h"
#include "stores/platform.h"

/*
 * The body of POST /api/v1/casino/games/{gameId}/launch (decisions: casino), and the token that a
 * launch URL carries. Pure. Threads: any.
 */
struct launch_request {
    bool real; /* else demo */
    char player_reference[PLAYER_REFERENCE_SIZE];
    char currency[CURRENCY_SIZE];
    char language[GAME_WORD_SIZE]; /* "": not given */
    char device[GAME_WORD_SIZE];   /* "": not given */
};

/* `request` is filled in when STRICT_JSON_OK, else untouched. */
MUST_CHECK enum strict_json launch_request_decode(struct text content_type, struct text body,
                                                  struct launch_request *request);

/* A signed token (JWT, RFC 7519; HS256): header.claims.signature. `claims` is a JSON object. */
void launch_token_append(struct buffer *out, struct text claims, struct text secret);

#endif
