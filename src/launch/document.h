#pragma once

#include "base/strict_json.h"
#include "records/records.h"

/* The body of POST /api/v1/casino/games/{gameId}/launch. Pure. Threads: any. */
struct launch_request {
    bool real; /* else demo */
    char player_reference[PLAYER_REFERENCE_SIZE];
    char currency[CURRENCY_SIZE];
    char language[GAME_WORD_SIZE];     /* "": not given */
    char device[GAME_WORD_SIZE];       /* "": not given */
    char country[COUNTRY_SIZE];        /* of the player; "": not given */
    char player_ip[ADDRESS_TEXT_SIZE]; /* in canonical text; "": not given */
};

/* `request` is filled in when STRICT_JSON_OK, else untouched; then `fault` says what is wrong. */
MUST_CHECK enum strict_json launch_request_decode(struct text content_type, struct text body,
                                                  struct launch_request *request,
                                                  struct strict_json_fault *fault);

/*
 * A launch as the provider sees it, in two forms, and the provider's answer. Pure. Threads: any.
 *
 * A provider whose games are opened by a URL reads the claims of a token in that URL. One
 * whose launch endpoint is called reads a document, with these header fields beside it
 * (docs/providers.md):
 *
 *   X-Croupier-Timestamp: 1763700000          seconds since the epoch
 *   X-Croupier-Signature: v1=5f2c…            hex(HMAC-SHA-256(secret, timestamp "." document))
 *   X-Croupier-Key-Id: hT5wQ0xN               which secret; not for a provider's first
 *
 * In neither form is anything of ours or of the customer's about the player.
 */
struct launch_facts {
    const char *launch_id;
    const char *game_id;
    const char *subject; /* the provider's own id of the player */
    const char *audience;
    const char *currency; /* this and what follows: "" when there is none */
    const char *language;
    const char *device;
    const char *return_url;
    const char *country, *player_ip;
    uint8_t currency_exponent;
    bool real; /* else demo */
    int64_t issued_seconds, expires_seconds;
};

/* The claims of the token, a JSON object. */
void launch_claims_append(struct buffer *out, const struct launch_facts *facts);

/* A signed token (JWT, RFC 7519; HS256): header.claims.signature. `claims` is a JSON object, `kid`
 * names the secret in the header; "": it does not. */
void launch_token_append(struct buffer *out, struct text claims, const char *kid,
                         struct text secret);

/* Appends where players are sent: the provider's launch URL, with such a token. */
void launch_url_append(struct buffer *out, const char *launch_url, const struct launch_facts *facts,
                       const char *kid, struct text secret);

/* The document of the call, a JSON object that always has all its members. */
void launch_document_append(struct buffer *out, const struct launch_facts *facts);

#define LAUNCH_SIGNATURE_SIZE 68 /* "v1=", 64 hexadecimal digits, NUL */
void launch_document_sign(struct text timestamp, struct text document, struct text secret,
                          char out[LAUNCH_SIGNATURE_SIZE]);

/* Providers sign what they send in the same way. Takes as long wherever the signature differs. */
MUST_CHECK bool launch_signature_is_good(struct text timestamp, struct text document,
                                         struct text secret, struct text signature);

/* The header fields beside a document: "Name: value", or "" for one that there is not. */
struct launch_fields {
    char lines[4][128]; /* the last: `traceparent`, by the caller */
};
void launch_fields_make(struct launch_fields *out, int64_t now_seconds, struct text document,
                        const char *kid, struct text secret);

#define LAUNCH_ANSWER_MAX 16384U /* bytes of an answer's body */
#define LAUNCH_URL_SIZE 4097

struct launch_answer {
    char launch_url[LAUNCH_URL_SIZE]; /* https, or http to a loopback address */
    int64_t expires_ms;               /* 0: unknown */
};

/*
 * {"launch_url": URL, "expires_at": RFC 3339 (optional)}; other members are ignored, a member twice
 * is not. An answer that has expired at `now_ms` is none. NULL when `answer` is filled in, else
 * what is wrong, a constant for people; `answer` is untouched then.
 */
MUST_CHECK const char *launch_answer_decode(struct text body, int64_t now_ms,
                                            struct launch_answer *answer);
