/* A launch as its client asks for it and as a provider sees it; see document.h. */
#include "launch/document.h"

#include <stdio.h>
#include <string.h>

#include "base/base64url.h"
#include "base/clock.h"
#include "base/digest.h"
#include "base/json_writer.h"
#include "records/records.h"

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

static unsigned mode_of(const void *request)
{
    return ((const struct launch_request *)request)->real ? REAL : DEMO;
}

#define FIELD(field) STRICT_JSON_FIELD(launch_request, field)
static const struct strict_json_field fields[] = {
    {TEXT_INIT("mode"), EITHER, EITHER, FIELD(real), NULL, read_mode},
    {TEXT_INIT("player_reference"), REAL, REAL, FIELD(player_reference), is_outside_name, NULL},
    {TEXT_INIT("currency"), REAL, REAL, FIELD(currency), currency_is_sound, NULL},
    {TEXT_INIT("language"), 0, EITHER, FIELD(language), NULL, NULL},
    {TEXT_INIT("device"), 0, EITHER, FIELD(device), NULL, NULL},
};

enum strict_json launch_request_decode(struct text content_type, struct text body,
                                       struct launch_request *request)
{
    struct launch_request decoded = {0};
    enum strict_json result = strict_json_decode(
        content_type, body, fields, sizeof fields / sizeof fields[0], mode_of, &decoded);
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
    json_end(&json);
}

void launch_token_append(struct buffer *out, struct text claims, struct text secret)
{
    static const char header[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
    uint8_t tag[DIGEST_SIZE];
    size_t start = out->size;
    buffer_append_base64url(out, header, sizeof header - 1);
    buffer_append_char(out, '.');
    buffer_append_base64url(out, claims.at, claims.size);
    digest_hmac_sha256(secret, (struct text){out->data + start, out->size - start}, tag);
    buffer_append_char(out, '.');
    buffer_append_base64url(out, tag, sizeof tag);
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
    for (size_t i = 0; i < sizeof tag; i++)
        (void)snprintf(out + 3 + 2 * i, 3, "%02x", tag[i]);
    buffer_free(&data);
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
        return "launch_url is not an https URL";
    const char *wrong = read_expiry(values[EXPIRES_AT], now_ms, &made.expires_ms);
    if (wrong == NULL)
        *answer = made;
    return wrong;
}
