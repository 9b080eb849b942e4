/* A launch, read and signed; see launch_request.h. */
#include "launch/request.h"

#include <string.h>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/base64url.h"
#include "base/strict_json.h"
#include "games/errors.h"
#include "records/records.h"

enum { MODE, PLAYER_REFERENCE, CURRENCY, LANGUAGE, DEVICE, MEMBER_COUNT };

static const struct text names[MEMBER_COUNT] = {
    [MODE] = TEXT_INIT("mode"),         [PLAYER_REFERENCE] = TEXT_INIT("player_reference"),
    [CURRENCY] = TEXT_INIT("currency"), [LANGUAGE] = TEXT_INIT("language"),
    [DEVICE] = TEXT_INIT("device"),
};

static bool read_mode(struct text value, bool *real)
{
    char mode[8];
    if (!strict_json_string(value, mode, sizeof mode))
        return false;
    *real = strcmp(mode, "real") == 0;
    return *real || strcmp(mode, "demo") == 0;
}

static bool read_optional(struct text value, char *out, size_t room)
{
    return value.at == NULL || strict_json_string(value, out, room);
}

static bool read_values(const struct text *values, struct launch_request *request)
{
    if (!read_mode(values[MODE], &request->real) ||
        !read_optional(values[LANGUAGE], request->language, sizeof request->language) ||
        !read_optional(values[DEVICE], request->device, sizeof request->device))
        return false;
    if (!request->real)
        return values[PLAYER_REFERENCE].at == NULL && values[CURRENCY].at == NULL;
    return strict_json_string(values[PLAYER_REFERENCE], request->player_reference,
                              sizeof request->player_reference) &&
           is_outside_name(text_of(request->player_reference)) &&
           strict_json_string(values[CURRENCY], request->currency, sizeof request->currency) &&
           currency_is_sound(text_of(request->currency));
}

bool launch_request_decode(struct text content_type, struct text body,
                           struct launch_request *request, const struct http_error **error)
{
    struct text values[MEMBER_COUNT];
    struct launch_request made = {0};
    *error = &error_invalid_request;
    if (!content_type_is_json(content_type))
        return false;
    switch (strict_json_object(body, names, MEMBER_COUNT, values)) {
    case STRICT_JSON_OK:
        break;
    case STRICT_JSON_INVALID:
        return false;
    case STRICT_JSON_UNKNOWN_FIELD:
        *error = &error_unknown_field;
        return false;
    }
    if (!read_values(values, &made))
        return false;
    *request = made;
    return true;
}

void launch_token_append(struct buffer *out, struct text claims, struct text secret)
{
    static const char header[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
    uint8_t tag[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    size_t start = out->size;
    buffer_append_base64url(out, header, sizeof header - 1);
    buffer_append_char(out, '.');
    buffer_append_base64url(out, claims.at, claims.size);
    CHECK(HMAC(EVP_sha256(), secret.at, (int)secret.size, (const unsigned char *)out->data + start,
               out->size - start, tag, &size) != NULL);
    buffer_append_char(out, '.');
    buffer_append_base64url(out, tag, size);
}
