/* Borrowed texts and growing buffers; see text.h. */
#include "base/text.h"

#include <stdarg.h>

#include "base/memory.h"

struct text text_of(const char *string)
{
    return (struct text){string, string == NULL ? 0 : strlen(string)};
}

bool text_equals(struct text a, struct text b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.at, b.at, a.size) == 0);
}

static char lower_ascii(char character)
{
    return character >= 'A' && character <= 'Z' ? (char)(character | 0x20) : character;
}

bool text_equals_ignore_case(struct text a, struct text b)
{
    if (a.size != b.size)
        return false;
    for (size_t i = 0; i < a.size; i++)
        if (lower_ascii(a.at[i]) != lower_ascii(b.at[i]))
            return false;
    return true;
}

bool text_starts_with(struct text text, struct text start)
{
    return text.size >= start.size &&
           (start.size == 0 || memcmp(text.at, start.at, start.size) == 0);
}

size_t text_find(struct text text, const char *const *names, size_t count)
{
    size_t at = 0;
    while (at < count && !text_equals(text, text_of(names[at])))
        at++;
    return at;
}

const char *enum_name(const struct enum_names *names, unsigned value)
{
    CHECK(value < names->count);
    return names->list[value];
}

bool enum_read(const struct enum_names *names, struct text name, void *value)
{
    size_t at = text_find(name, names->list, names->count);
    if (at < names->count)
        *(unsigned *)value = (unsigned)at;
    return at < names->count;
}

bool text_decode(struct text encoded, bool plus, char *out, size_t room)
{
    size_t size = 0;
    for (size_t i = 0; i < encoded.size; i++) {
        char byte = plus && encoded.at[i] == '+' ? ' ' : encoded.at[i];
        if (byte == '%') {
            int high = i + 2 < encoded.size ? hex_value(encoded.at[i + 1]) : -1;
            int low = i + 2 < encoded.size ? hex_value(encoded.at[i + 2]) : -1;
            byte = high < 0 || low < 0 ? '\0' : (char)(high * 16 + low);
            i += 2;
        }
        if (byte == '\0' || size + 1 == room)
            return false;
        out[size++] = byte;
    }
    out[size] = '\0';
    return true;
}

void buffer_append_set(struct buffer *buffer, const struct enum_names *names, uint32_t set)
{
    const char *separator = "";
    for (size_t i = 0; i < names->count; i++)
        if ((set & 1U << i) != 0) {
            buffer_append_format(buffer, "%s%s", separator, names->list[i]);
            separator = ",";
        }
}

void buffer_append_choices(struct buffer *buffer, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        buffer_append_format(buffer, "%s%s",
                             i == 0           ? ""
                             : i + 1 == count ? " or "
                                              : ", ",
                             words[i]);
}

struct text text_trim(struct text text)
{
    while (text.size > 0 && (text.at[0] == ' ' || text.at[0] == '\t'))
        text_skip(&text, 1);
    while (text.size > 0 && (text.at[text.size - 1] == ' ' || text.at[text.size - 1] == '\t'))
        text.size--;
    return text;
}

struct text text_cut(struct text *rest, char separator)
{
    struct text first = *rest;
    const char *found = rest->size > 0 ? memchr(rest->at, separator, rest->size) : NULL;
    if (found == NULL) {
        *rest = (struct text){NULL, 0};
        return first;
    }
    first.size = (size_t)(found - first.at);
    rest->at = found + 1;
    rest->size -= first.size + 1;
    return first;
}

int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    char lower = lower_ascii(digit);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

bool hex_read(struct text digits, uint8_t *out, size_t size)
{
    if (digits.size != 2 * size)
        return false;
    for (size_t i = 0; i < size; i++) {
        int high = hex_value(digits.at[2 * i]);
        int low = hex_value(digits.at[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

void hex_write(char *out, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        *out++ = digits[bytes[i] >> 4];
        *out++ = digits[bytes[i] & 15];
    }
}

enum status text_to_u64(struct text text, uint64_t maximum, uint64_t *value)
{
    if (text.size == 0)
        return STATUS_INVALID;
    uint64_t sum = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.at[i] < '0' || text.at[i] > '9')
            return STATUS_INVALID;
        uint64_t digit = (uint64_t)(text.at[i] - '0');
        if (sum > (UINT64_MAX - digit) / 10)
            return STATUS_INVALID;
        sum = sum * 10 + digit;
    }
    if (sum > maximum)
        return STATUS_INVALID;
    *value = sum;
    return STATUS_OK;
}

void buffer_reserve(struct buffer *buffer, size_t more)
{
    CHECK(more <= SIZE_MAX - buffer->size);
    size_t needed = buffer->size + more;
    if (needed <= buffer->capacity)
        return;
    size_t capacity = buffer->capacity < 64 ? 64 : buffer->capacity;
    while (capacity < needed)
        capacity = capacity > SIZE_MAX / 2 ? needed : capacity * 2;
    buffer->data = memory_resize(buffer->data, capacity);
    buffer->capacity = capacity;
}

void buffer_append_u64(struct buffer *buffer, uint64_t value)
{
    buffer_reserve(buffer, 20);
    buffer->size += decimal_write(buffer->data + buffer->size, value);
}

void buffer_append_i64(struct buffer *buffer, int64_t value)
{
    if (value < 0)
        buffer_append_char(buffer, '-');
    buffer_append_u64(buffer, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

void buffer_append_format(struct buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_list again;
    CHECK(format != NULL); /* gcc does not see it when it sanitizes */
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    CHECK(length >= 0);
    buffer_reserve(buffer, (size_t)length + 1);
    (void)vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, again);
    va_end(again);
    buffer->size += (size_t)length;
}

/* The format characters of Unicode (Cf, Zl, Zp) that turn the direction of a line, break it, or
 * show nothing; the joiners U+200C and U+200D, which names are written with, are not among them. */
static bool is_format(struct text one)
{
    static const uint32_t ranges[][2] = {{0xAD, 0xAD},     {0x61C, 0x61C},    {0x180E, 0x180E},
                                         {0x200B, 0x200B}, {0x200E, 0x200F},  {0x2028, 0x202E},
                                         {0x2060, 0x2064}, {0x2066, 0x206F},  {0xFEFF, 0xFEFF},
                                         {0xFFF9, 0xFFFB}, {0xE0001, 0xE007F}};
    uint32_t point = one.size == 1   ? (unsigned char)one.at[0]
                     : one.size == 2 ? (uint32_t)one.at[0] & 0x1F
                     : one.size == 3 ? (uint32_t)one.at[0] & 0xF
                                     : (uint32_t)one.at[0] & 7;
    for (size_t i = 1; i < one.size; i++)
        point = point << 6 | ((uint32_t)one.at[i] & 0x3F);
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (ranges[i][0] <= point && point <= ranges[i][1])
            return true;
    return false;
}

void buffer_append_shown(struct buffer *buffer, struct text text)
{
    while (text.size > 0) {
        size_t length = utf8_sequence(text.at, text.size);
        struct text one = {text.at, length > 0 ? length : 1};
        buffer_append_text(buffer, text_is_plain(one) && !is_format(one) ? one : TEXT("?"));
        text_skip(&text, one.size);
    }
}

size_t utf8_sequence(const char *bytes, size_t size)
{
    const unsigned char *at = (const unsigned char *)bytes;
    if (at[0] < 0x80)
        return 1;
    size_t length = at[0] >= 0xF0 ? 4 : at[0] >= 0xE0 ? 3 : 2;
    if (at[0] < 0xC2 || at[0] > 0xF4 || size < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 0;
    if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F) ||
        (at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F))
        return 0;
    return length;
}

bool text_is_plain(struct text text)
{
    for (size_t i = 0; i < text.size;) {
        size_t length = utf8_sequence(text.at + i, text.size - i);
        unsigned char first = (unsigned char)text.at[i];
        bool c0 = length == 1 && (first < 0x20 || first == 0x7F);
        bool c1 = length == 2 && first == 0xC2 && (unsigned char)text.at[i + 1] < 0xA0;
        if (length == 0 || c0 || c1)
            return false;
        i += length;
    }
    return true;
}

bool text_copy_plain(struct text text, char *out, size_t room)
{
    bool fits = text.at != NULL && text.size < room && text_is_plain(text);
    if (fits)
        memcpy(out, text.at, text.size);
    out[fits ? text.size : 0] = '\0';
    return fits;
}

static void append_json_byte(struct buffer *buffer, char byte)
{
    static const char special[] = "\"\\\n\r\t";
    static const char letters[] = "\"\\nrt";
    const char *found = memchr(special, byte, sizeof special - 1);
    if (found != NULL) {
        buffer_append_char(buffer, '\\');
        buffer_append_char(buffer, letters[found - special]);
    } else if ((unsigned char)byte < 0x20 || byte == 0x7F) {
        buffer_append_format(buffer, "\\u%04x", (unsigned)byte);
    } else {
        buffer_append_char(buffer, byte);
    }
}

/* Nearly all that is ever written: it stands in a JSON string as it is. */
static bool is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7F && byte != '"' && byte != '\\';
}

void buffer_append_json_string(struct buffer *buffer, struct text text)
{
    buffer_append_char(buffer, '"');
    const unsigned char *at = (const unsigned char *)text.at;
    for (size_t i = 0; i < text.size;) {
        size_t plain = 0;
        while (i + plain < text.size && is_plain(at[i + plain]))
            plain++;
        if (plain > 0) {
            buffer_append(buffer, at + i, plain);
            i += plain;
            continue;
        }
        size_t length = utf8_sequence(text.at + i, text.size - i);
        if (length == 1)
            append_json_byte(buffer, text.at[i]);
        else if (length == 0)
            buffer_append(buffer, "\xEF\xBF\xBD", 3);
        else if (at[i] == 0xC2 && at[i + 1] < 0xA0) /* C1 controls steer terminals too */
            buffer_append_format(buffer, "\\u%04x", at[i + 1]);
        else
            buffer_append(buffer, at + i, length);
        i += length == 0 ? 1 : length;
    }
    buffer_append_char(buffer, '"');
}

const char *buffer_string(struct buffer *buffer)
{
    buffer_reserve(buffer, 1);
    buffer->data[buffer->size] = '\0';
    return buffer->data;
}

struct text buffer_text(const struct buffer *buffer)
{
    return (struct text){buffer->data, buffer->size};
}

void buffer_clear(struct buffer *buffer)
{
    buffer->size = 0;
}

void buffer_wipe(struct buffer *buffer)
{
    if (buffer->data != NULL)
        explicit_bzero(buffer->data, buffer->capacity);
    buffer_free(buffer);
}

void buffer_free(struct buffer *buffer)
{
    memory_free(buffer->data);
    *buffer = (struct buffer){0};
}

size_t decimal_write(char *at, uint64_t value)
{
    char digits[20];
    size_t start = sizeof digits;
    for (; value >= 100; value /= 100) { /* a division takes the time of several stores */
        unsigned pair = (unsigned)(value % 100);
        digits[--start] = (char)('0' + pair % 10);
        digits[--start] = (char)('0' + pair / 10);
    }
    if (value >= 10)
        digits[--start] = (char)('0' + value % 10);
    digits[--start] = (char)('0' + (value >= 10 ? value / 10 : value));
    memcpy(at, digits + start, sizeof digits - start);
    return sizeof digits - start;
}
