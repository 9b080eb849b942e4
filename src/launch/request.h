#ifndef CROUPIER_LAUNCH_REQUEST_H
#define CROUPIER_LAUNCH_REQUEST_H

#include "http/http.h"
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

/* True, and `request` is filled in; else `error` says what is wrong (400). */
MUST_CHECK bool launch_request_decode(struct text content_type, struct text body,
                                      struct launch_request *request,
                                      const struct http_error **error);

/* A signed token (JWT, RFC 7519; HS256): header.claims.signature. `claims` is a JSON object. */
void launch_token_append(struct buffer *out, struct text claims, struct text secret);

#endif
