/* A launch as its client asks for it and as a provider sees it; see document.h. */
#include "launch/document.h"

#include <openssl/crypto.h>

#include "base/base64url.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/json_writer.h"

/* ---- the request ----------------------------------------------------------------------------- */

enum { REAL = 1, DEMO = 2, EITHER = REAL | DEMO };

static bool read_mode(struct text value, void *real)
{
    char mode[8];
    if (!strict_json_string(value, mode, sizeof mode))
        return false;
    *(bool *)real = strcmp(mode, "real") == 0;
    return *(bool *)real || strcmp(mode, "demo") == 0;
}

static bool read_address(struct text value, void *out)
{
    char text[ADDRESS_TEXT_SIZE];
    struct address address;
    if (!strict_json_string(value, text, sizeof text) ||
        address_parse(text_of(text), &address) != STATUS_OK)
        return false;
    address_format(&address, out);
    return true;
}

static unsigned mode_of(const void *request)
{
    return ((const struct launch_request *)request)->real ? REAL : DEMO;
}

#define FIELD(field) STRICT_JSON_FIELD(launch_request, field)
#define IS_WORD "must be a string of 1 to 64 bytes without control characters"
static const struct strict_json_field fields[] = {
    {TEXT_INIT("mode"), EITHER, EITHER, FIELD(real), NULL, read_mode, "must be real or demo",
     false},
    {TEXT_INIT("player_reference"), REAL, REAL, FIELD(player_reference), is_outside_name, NULL,
     "must be a string of 1 to 64 characters of A-Z, a-z, 0-9, '.', '_', ':' and '-'", false},
    {TEXT_INIT("currency"), REAL, REAL, FIELD(currency), currency_is_sound, NULL,
     "must be a string of three capital letters", false},
    {TEXT_INIT("language"), 0, EITHER, FIELD(language), NULL, NULL, IS_WORD, false},
    {TEXT_INIT("device"), 0, EITHER, FIELD(device), NULL, NULL, IS_WORD, false},
    {TEXT_INIT("country"), 0, EITHER, FIELD(country), country_is_known, NULL,
     "must be a code of ISO 3166-1: two capital letters", false},
    {TEXT_INIT("player_ip"), 0, EITHER, FIELD(player_ip), NULL, read_address,
     "must be an IPv4 or IPv6 address", false},
};

static const struct strict_json_form form = {fields, sizeof fields / sizeof fields[0], mode_of};

enum strict_json launch_request_decode(struct text content_type, struct text body,
                                       struct launch_request *request,
                                       struct strict_json_fault *fault)
{
    struct launch_request decoded = {0};
    enum strict_json result = strict_json_decode(content_type, body, &form, &decoded, fault);
    if (result == STRICT_JSON_OK)
        *request = decoded;
    return result;
}

/* ---- the token and its claims ---------------------------------------------------------------- */

static void write_claim(struct json_writer *json, const char *name, const char *value)
{
    if (value[0] != '\0')
        json_string(json, name, value);
}

void launch_claims_append(struct buffer *out, const struct launch_facts *facts)
{
    struct json_writer json = {.out = out};
    json_object(&json, NULL);
    json_string(&json, "iss", "croupier");
    json_integer(&json, "iat", facts->issued_seconds);
    json_integer(&json, "exp", facts->expires_seconds);
    write_claim(&json, "aud", facts->audience);
    write_claim(&json, "sub", facts->subject);
    write_claim(&json, "jti", facts->launch_id);
    write_claim(&json, "game", facts->game_id);
    write_claim(&json, "mode", facts->real ? "real" : "demo");
    write_claim(&json, "currency", facts->currency);
    write_claim(&json, "language", facts->language);
    write_claim(&json, "device", facts->device);
    write_claim(&json, "return_url", facts->return_url);
    write_claim(&json, "country", facts->country);
    write_claim(&json, "ip", facts->player_ip);
    json_end(&json);
}

void launch_token_append(struct buffer *out, struct text claims, const char *kid,
                         struct text secret)
{
    struct buffer header = {0};
    struct json_writer json = {.out = &header};
    uint8_t tag[DIGEST_SIZE];
    size_t start = out->size;
    json_object(&json, NULL);
    json_string(&json, "alg", "HS256");
    json_string(&json, "typ", "JWT");
    write_claim(&json, "kid", kid);
    json_end(&json);
    buffer_append_base64url(out, header.data, header.size);
    buffer_free(&header);
    buffer_append_char(out, '.');
    buffer_append_base64url(out, claims.at, claims.size);
    digest_hmac_sha256(secret, (struct text){out->data + start, out->size - start}, tag);
    buffer_append_char(out, '.');
    buffer_append_base64url(out, tag, sizeof tag);
}

void launch_url_append(struct buffer *out, const char *launch_url, const struct launch_facts *facts,
                       const char *kid, struct text secret)
{
    struct buffer claims = {0};
    launch_claims_append(&claims, facts);
    buffer_append_string(out, launch_url);
    buffer_append_string(out, strchr(launch_url, '?') == NULL ? "?token=" : "&token=");
    launch_token_append(out, buffer_text(&claims), kid, secret);
    buffer_free(&claims);
}

/* ---- the document of a call ------------------------------------------------------------------ */

void launch_document_append(struct buffer *out, const struct launch_facts *facts)
{
    struct json_writer json = {.out = out};
    json_object(&json, NULL);
    json_string(&json, "launch_id", facts->launch_id);
    json_string_or_null(&json, "audience", facts->audience);
    json_string_or_null(&json, "game_id", facts->game_id);
    json_string(&json, "mode", facts->real ? "real" : "demo");
    json_string_or_null(&json, "player_id", facts->subject);
    json_string_or_null(&json, "currency", facts->currency);
    if (facts->currency[0] == '\0')
        json_null(&json, "currency_exponent");
    else
        json_unsigned(&json, "currency_exponent", facts->currency_exponent);
    json_string_or_null(&json, "language", facts->language);
    json_string_or_null(&json, "device", facts->device);
    json_string_or_null(&json, "return_url", facts->return_url);
    json_string_or_null(&json, "country", facts->country);
    json_string_or_null(&json, "ip", facts->player_ip);
    json_time(&json, "issued_at", facts->issued_seconds * 1000);
    json_time(&json, "expires_at", facts->expires_seconds * 1000);
    json_end(&json);
}

void launch_document_sign(struct text timestamp, struct text document, struct text secret,
                          char out[LAUNCH_SIGNATURE_SIZE])
{
    uint8_t tag[DIGEST_SIZE];
    struct buffer data = {0};
    buffer_append_text(&data, timestamp);
    buffer_append_char(&data, '.');
    buffer_append_text(&data, document);
    digest_hmac_sha256(secret, buffer_text(&data), tag);
    memcpy(out, "v1=", 3);
    hex_write(out + 3, tag, sizeof tag);
    out[LAUNCH_SIGNATURE_SIZE - 1] = '\0';
    buffer_free(&data);
}

bool launch_signature_is_good(struct text timestamp, struct text document, struct text secret,
                              struct text signature)
{
    char good[LAUNCH_SIGNATURE_SIZE];
    launch_document_sign(timestamp, document, secret, good);
    return signature.size == sizeof good - 1 &&
           CRYPTO_memcmp(good, signature.at, sizeof good - 1) == 0;
}

void launch_fields_make(struct launch_fields *out, int64_t now_seconds, struct text document,
                        const char *kid, struct text secret)
{
    const size_t room = sizeof out->lines[0];
    char timestamp[24];
    char signature[LAUNCH_SIGNATURE_SIZE];
    (void)snprintf(timestamp, sizeof timestamp, "%lld", (long long)now_seconds);
    launch_document_sign(text_of(timestamp), document, secret, signature);
    (void)snprintf(out->lines[0], room, "X-Croupier-Timestamp: %s", timestamp);
    (void)snprintf(out->lines[1], room, "X-Croupier-Signature: %s", signature);
    out->lines[2][0] = out->lines[3][0] = '\0';
    if (kid[0] != '\0')
        (void)snprintf(out->lines[2], room, "X-Croupier-Key-Id: %s", kid);
}

/* ---- the answer ------------------------------------------------------------------------------ */

enum { LAUNCH_URL, EXPIRES_AT, MEMBER_COUNT };

static const struct text names[MEMBER_COUNT] = {
    [LAUNCH_URL] = TEXT_INIT("launch_url"),
    [EXPIRES_AT] = TEXT_INIT("expires_at"),
};

static const char *read_expiry(struct text value, int64_t now_ms, int64_t *expires_ms)
{
    char text[CLOCK_TEXT_SIZE];
    *expires_ms = 0;
    if (value.at == NULL)
        return NULL;
    if (!strict_json_string(value, text, sizeof text) || strlen(text) <= 10 || /* a date alone */
        clock_parse_rfc3339(text_of(text), expires_ms) != STATUS_OK)
        return "expires_at is not a time (RFC 3339)";
    return *expires_ms <= now_ms ? "expires_at has passed" : NULL;
}

const char *launch_answer_decode(struct text body, int64_t now_ms, struct launch_answer *answer)
{
    struct text values[MEMBER_COUNT];
    struct launch_answer made;
    if (body.size > LAUNCH_ANSWER_MAX)
        return "the answer is too long";
    if (strict_json_object(body, names, MEMBER_COUNT, values) == STRICT_JSON_INVALID)
        return "the answer is not a JSON object, or has a member twice";
    if (!strict_json_string(values[LAUNCH_URL], made.launch_url, sizeof made.launch_url))
        return "launch_url is missing, or not a text of at most 4096 bytes";
    struct text url = text_of(made.launch_url);
    if (!url_is_sound(url) || !game_url_is_guarded(url))
        return "launch_url must be https:// in small letters (http:// only to 127.0.0.1, [::1] or "
               "localhost), without a user name, in characters that a URL may have (RFC 3986)";
    const char *wrong = read_expiry(values[EXPIRES_AT], now_ms, &made.expires_ms);
    if (wrong == NULL)
        *answer = made;
    return wrong;
}
