/* A launch, read and signed; see request.h. */
#include "launch/request.h"

#include <stddef.h>
#include <string.h>

#include "base/base64url.h"
#include "base/digest.h"
#include "records/records.h"

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
