/* A launch as a provider sees it; see launch_document.h. */
#include "launch/document.h"

#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/clock.h"
#include "base/strict_json.h"
#include "stores/platform_games.h"

/* ---- the token's claims ------------------------------------------------------------------------------ */

static void append_claim(struct buffer *out, const char *name, const char *value)
{
    if (value[0] == '\0')
        return;
    buffer_append_format(out, ",\"%s\":", name);
    buffer_append_json_string(out, text_of(value));
}

void launch_claims_append(struct buffer *out, const struct launch_facts *facts)
{
    buffer_append_format(out, "{\"iss\":\"croupier\",\"iat\":%lld,\"exp\":%lld",
                         (long long)facts->issued_seconds, (long long)facts->expires_seconds);
    append_claim(out, "aud", facts->audience);
    append_claim(out, "sub", facts->subject);
    append_claim(out, "jti", facts->launch_id);
    append_claim(out, "game", facts->game_id);
    append_claim(out, "mode", facts->real ? "real" : "demo");
    append_claim(out, "currency", facts->currency);
    append_claim(out, "language", facts->language);
    append_claim(out, "device", facts->device);
    append_claim(out, "return_url", facts->return_url);
    buffer_append_char(out, '}');
}

/* ---- the document of a call -------------------------------------------------------------------------- */

static void append_member(struct buffer *out, const char *name, const char *value)
{
    buffer_append_format(out, ",\"%s\":", name);
    if (value[0] == '\0')
        buffer_append_string(out, "null");
    else
        buffer_append_json_string(out, text_of(value));
}

static void append_time(struct buffer *out, const char *name, int64_t seconds)
{
    char text[CLOCK_TEXT_SIZE];
    clock_format_rfc3339(seconds * 1000, text);
    append_member(out, name, text);
}

void launch_document_append(struct buffer *out, const struct launch_facts *facts)
{
    buffer_append_string(out, "{\"launch_id\":");
    buffer_append_json_string(out, text_of(facts->launch_id));
    append_member(out, "audience", facts->audience);
    append_member(out, "game_id", facts->game_id);
    append_member(out, "mode", facts->real ? "real" : "demo");
    append_member(out, "player_id", facts->subject);
    append_member(out, "currency", facts->currency);
    if (facts->currency[0] == '\0')
        append_member(out, "currency_exponent", "");
    else
        buffer_append_format(out, ",\"currency_exponent\":%u", (unsigned)facts->currency_exponent);
    append_member(out, "language", facts->language);
    append_member(out, "device", facts->device);
    append_member(out, "return_url", facts->return_url);
    append_time(out, "issued_at", facts->issued_seconds);
    append_time(out, "expires_at", facts->expires_seconds);
    buffer_append_char(out, '}');
}

void launch_document_sign(struct text timestamp, struct text document, struct text secret,
                          char out[LAUNCH_SIGNATURE_SIZE])
{
    uint8_t tag[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    struct buffer data = {0};
    buffer_append_text(&data, timestamp);
    buffer_append_char(&data, '.');
    buffer_append_text(&data, document);
    CHECK(HMAC(EVP_sha256(), secret.at, (int)secret.size, (const unsigned char *)data.data,
               data.size, tag, &size) != NULL);
    CHECK(3 + 2 * (size_t)size < LAUNCH_SIGNATURE_SIZE);
    memcpy(out, "v1=", 3);
    for (unsigned i = 0; i < size; i++)
        (void)snprintf(out + 3 + 2 * (size_t)i, 3, "%02x", tag[i]);
    buffer_free(&data);
}

/* ---- the answer ---------------------------------------------------------------------------------------- */

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
