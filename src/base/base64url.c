/* base64url, one text for one value; see base64url.h. */
#include "base/base64url.h"

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void buffer_append_base64url(struct buffer *buffer, const void *bytes, size_t size)
{
    const unsigned char *at = bytes;
    uint32_t bits = 0;
    unsigned held = 0;
    buffer_reserve(buffer, size / 3 * 4 + 4);
    for (size_t i = 0; i < size; i++) {
        bits = (bits << 8) | at[i];
        for (held += 8; held >= 6; held -= 6)
            buffer_append_char(buffer, digits[(bits >> (held - 6)) & 63]);
    }
    if (held > 0)
        buffer_append_char(buffer, digits[(bits << (6 - held)) & 63]);
}

bool base64url_read(struct text text, struct buffer *out)
{
    size_t before = out->size;
    uint32_t bits = 0;
    unsigned held = 0;
    bool good = text.size % 4 != 1;
    for (size_t i = 0; good && i < text.size; i++) {
        const char *digit = text.at[i] == '\0' ? NULL : strchr(digits, text.at[i]);
        good = digit != NULL;
        if (!good)
            break;
        bits = (bits << 6) | (uint32_t)(digit - digits);
        held += 6;
        if (held >= 8) {
            held -= 8;
            buffer_append_char(out, (char)((bits >> held) & 0xFF));
        }
    }
    good = good && (bits & ((1U << held) - 1)) == 0;
    if (!good)
        out->size = before;
    return good;
}
