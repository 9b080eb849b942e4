/*
 * A strict checker of JSON text and a slicer of what it accepted.
 *
 * Why not a JSON library: pass-through must be exact to the byte of each token (a number keeps its
 * text, a string its escapes), and hidden members must be cut out of the source text, but libraries
 * do not tell where in the source a value stands. Many also refuse lone surrogate escapes
 * ("\ud800"), which the grammar of RFC 8259 allows (section 8.2 calls the result unpredictable, not
 * the text invalid), and numbers that no double holds. A test compares the verdicts with SQLite's.
 *
 * The check is one pass, whose recursion is bounded by JSON_TEXT_DEPTH_MAX. Minifying copies runs
 * between whitespace, so that it costs next to nothing on a document that has none.
 */
#include "base/json_text.h"

/* ---- checking -------------------------------------------------------------------------------- */

struct scan {
    const char *at;
    const char *end;
    const char *kept; /* begin of what is not yet copied to `out` */
    char *out;        /* NULL: no copy is wanted */
    const char *wrong_at;
    const char *reason;
    uint32_t depth; /* of open brackets, and so of the recursion */
};

static bool fail(struct scan *scan, const char *at, const char *reason)
{
    scan->wrong_at = at;
    scan->reason = reason;
    return false;
}

static bool is_space(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static const char *after_space(const char *at, const char *end)
{
    while (at < end && is_space(*at))
        at++;
    return at;
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

static void copy_kept(struct scan *scan)
{
    size_t size = (size_t)(scan->at - scan->kept);
    if (scan->out != NULL && size > 0) {
        memcpy(scan->out, scan->kept, size);
        scan->out += size;
    }
}

static void skip_space(struct scan *scan)
{
    if (scan->at == scan->end || !is_space(*scan->at))
        return;
    copy_kept(scan);
    scan->kept = scan->at = after_space(scan->at, scan->end);
}

static bool is_plain(unsigned char byte) /* inside a string: needs no closer look */
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

#define EACH_BYTE(value) ((uint64_t)(value)*0x0101010101010101U)

/* Sixteen bytes that are compared at one time where the processor can. Signed, so that 0x80 and
 * above are below 0x20. */
typedef signed char bytes16 __attribute__((vector_size(16)));
typedef uint64_t words2 __attribute__((vector_size(16)));

static words2 find_special(const char *at)
{
    bytes16 bytes;
    memcpy(&bytes, at, sizeof bytes);
    return (words2)((bytes < 0x20) | (bytes == '"') | (bytes == '\\'));
}

static bool are_plain(words2 special)
{
    return (special[0] | special[1]) == 0;
}

static words2 find_special_of_64(const char *at)
{
    return find_special(at) | find_special(at + 16) | find_special(at + 32) | find_special(at + 48);
}

/* Skips plain bytes while there are so many: 16 at a time, 64 in a string that has more, then 8. */
static const char *skip_plain(const char *at, const char *end)
{
    while (end - at >= 16 && are_plain(find_special(at)))
        for (at += 16; end - at >= 64 && are_plain(find_special_of_64(at)); at += 64)
            ;
    while (end - at >= 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        uint64_t quote = word ^ EACH_BYTE('"');
        uint64_t backslash = word ^ EACH_BYTE('\\');
        /* The high bit of a byte of each term: it is below 0x20; zero; zero; or 0x80 and above. */
        uint64_t special = (((word - EACH_BYTE(0x20)) & ~word) | ((quote - EACH_BYTE(1)) & ~quote) |
                            ((backslash - EACH_BYTE(1)) & ~backslash) | word) &
                           EACH_BYTE(0x80);
        if (special != 0)
            break;
        at += 8;
    }
    while (at < end && is_plain((unsigned char)*at))
        at++;
    return at;
}

/* An escape, from its backslash on. */
static bool scan_escape(struct scan *scan)
{
    const char *at = scan->at;
    if (scan->end - at < 2)
        return fail(scan, scan->end, "the document ends inside a string");
    scan->at += at[1] == 'u' ? 6 : 2;
    if (at[1] != 'u')
        return (at[1] != '\0' && strchr("\"\\/bfnrt", at[1]) != NULL) ||
               fail(scan, at, "unknown escape in a string");
    for (int i = 2; i < 6; i++) {
        if (at + i == scan->end)
            return fail(scan, scan->end, "the document ends inside a string");
        if (hex_value(at[i]) < 0)
            return fail(scan, at, "\\u must be followed by four hexadecimal digits");
    }
    return true;
}

static bool scan_string(struct scan *scan)
{
    scan->at++;
    for (;;) {
        const char *at = skip_plain(scan->at, scan->end);
        scan->at = at;
        if (at == scan->end)
            return fail(scan, at, "the document ends inside a string");
        if (*at == '"') {
            scan->at++;
            return true;
        }
        if (*at == '\\') {
            if (!scan_escape(scan))
                return false;
        } else if ((unsigned char)*at < 0x20) {
            return fail(scan, at, "a control character in a string must be escaped");
        } else {
            size_t size = utf8_sequence(at, (size_t)(scan->end - at));
            if (size == 0)
                return fail(scan, at, "not UTF-8");
            scan->at += size;
        }
    }
}

static bool scan_digits(struct scan *scan)
{
    const char *start = scan->at;
    while (scan->at < scan->end && is_digit(*scan->at))
        scan->at++;
    return scan->at > start || fail(scan, scan->at, "expected a digit");
}

static bool scan_number(struct scan *scan)
{
    const char *start = scan->at;
    if (*scan->at == '-')
        scan->at++;
    const char *whole = scan->at;
    if (!scan_digits(scan))
        return false;
    if (*whole == '0' && scan->at - whole > 1)
        return fail(scan, start, "a number must not have leading zeros");
    if (scan->at < scan->end && *scan->at == '.') {
        scan->at++;
        if (!scan_digits(scan))
            return false;
    }
    if (scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
        scan->at++;
        if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-'))
            scan->at++;
        return scan_digits(scan);
    }
    return true;
}

static bool scan_word(struct scan *scan, struct text word)
{
    struct text rest = {scan->at, (size_t)(scan->end - scan->at)};
    if (!text_starts_with(rest, word))
        return fail(scan, scan->at, "expected a value");
    scan->at += word.size;
    return true;
}

static bool scan_scalar(struct scan *scan)
{
    switch (*scan->at) {
    case '"':
        return scan_string(scan);
    case 't':
        return scan_word(scan, TEXT("true"));
    case 'f':
        return scan_word(scan, TEXT("false"));
    case 'n':
        return scan_word(scan, TEXT("null"));
    default:
        if (*scan->at == '-' || is_digit(*scan->at))
            return scan_number(scan);
        return fail(scan, scan->at, "expected a value");
    }
}

/* Steps over white space; false: nothing follows it. */
static bool find_token(struct scan *scan)
{
    skip_space(scan);
    return scan->at < scan->end || fail(scan, scan->at, "the document ends too early");
}

/* A member's name and the colon; leaves the scan before the value. */
static bool scan_name(struct scan *scan)
{
    if (*scan->at != '"')
        return fail(scan, scan->at, "expected a member name in double quotes");
    if (!scan_string(scan) || !find_token(scan))
        return false;
    if (*scan->at != ':')
        return fail(scan, scan->at, "expected ':' after a member name");
    scan->at++;
    return find_token(scan);
}

static bool scan_value(struct scan *scan);

/* An array or object, from its bracket on. */
static bool scan_container(struct scan *scan)
{
    bool object = *scan->at == '{';
    char end = object ? '}' : ']';
    if (scan->depth == JSON_TEXT_DEPTH_MAX)
        return fail(scan, scan->at, "nested more than 256 deep");
    scan->depth++;
    scan->at++;
    if (!find_token(scan))
        return false;
    bool more = *scan->at != end;
    while (more) {
        if (!find_token(scan) || (object && !scan_name(scan)) || !scan_value(scan) ||
            !find_token(scan))
            return false;
        more = *scan->at == ',';
        if (more)
            scan->at++;
        else if (*scan->at != end)
            return fail(scan, scan->at, object ? "expected ',' or '}'" : "expected ',' or ']'");
    }
    scan->depth--;
    scan->at++;
    return true;
}

static bool scan_value(struct scan *scan)
{
    return *scan->at == '{' || *scan->at == '[' ? scan_container(scan) : scan_scalar(scan);
}

static bool scan_document(struct scan *scan)
{
    if (!find_token(scan) || !scan_value(scan))
        return false;
    skip_space(scan);
    if (scan->at < scan->end)
        return fail(scan, scan->at, "something follows the document");
    copy_kept(scan);
    return true;
}

void json_text_locate(struct json_text_error *error, struct text text, size_t offset,
                      const char *reason)
{
    size_t line = 1;
    size_t column = 1;
    for (size_t i = 0; i < offset; i++) {
        if (text.at[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)text.at[i] & 0xC0) != 0x80) {
            column++;
        }
    }
    *error = (struct json_text_error){offset, line, column, reason};
}

enum status json_text_check(struct text text, struct buffer *minified,
                            struct json_text_error *error)
{
    struct scan scan = {.at = text.at, .end = text.at, .kept = text.at};
    bool good = false;
    if (text.size > JSON_TEXT_SIZE_MAX) {
        (void)fail(&scan, text.at, "larger than 32 MiB");
    } else if (text.size == 0) {
        (void)fail(&scan, text.at, "the document is empty");
    } else if (text_starts_with(text, TEXT("\xEF\xBB\xBF"))) {
        (void)fail(&scan, text.at, "a byte order mark is not allowed");
    } else {
        scan.end = text.at + text.size;
        if (minified != NULL) {
            buffer_reserve(minified, text.size);
            scan.out = minified->data + minified->size;
        }
        good = scan_document(&scan);
    }
    if (!good) {
        if (error != NULL)
            json_text_locate(error, text, text.size == 0 ? 0 : (size_t)(scan.wrong_at - text.at),
                             scan.reason);
        return STATUS_MALFORMED;
    }
    if (minified != NULL)
        minified->size = (size_t)(scan.out - minified->data);
    return STATUS_OK;
}

/* ---- slicing what was checked ---------------------------------------------------------------- */

struct text json_text_trim(struct text text)
{
    if (text.size == 0)
        return text;
    const char *end = text.at + text.size;
    const char *at = after_space(text.at, end);
    while (end > at && is_space(end[-1]))
        end--;
    return (struct text){at, (size_t)(end - at)};
}

enum json_text_kind json_text_kind(struct text value)
{
    CHECK(value.size > 0);
    bool number = value.at[0] == '-' || is_digit(value.at[0]);
    return number ? JSON_TEXT_NUMBER : (enum json_text_kind)value.at[0];
}

/* Walks from the opening quote to behind the closing one. */
static const char *string_end(const char *at, const char *end)
{
    for (at++;; at++) {
        at = memchr(at, '"', (size_t)(end - at));
        CHECK(at != NULL);
        /* It closes the string unless an odd number of backslashes stands before it; the opening
         * quote stops the count. */
        const char *back = at;
        while (back[-1] == '\\')
            back--;
        if ((at - back) % 2 == 0)
            return at + 1;
    }
}

/* Finds the end of an array or object: brackets are balanced, so only their number matters. */
static const char *container_end(const char *at, const char *end)
{
    size_t depth = 0;
    for (;;) {
        CHECK(at < end);
        /* '[' and '{' differ in one bit, and so do ']' and '}'; no other byte outside a string has
         * these values. */
        char folded = (char)(*at | 0x20);
        if (*at == '"') {
            at = string_end(at, end);
            continue;
        }
        at++;
        if (folded == '{')
            depth++;
        else if (folded == '}' && --depth == 0)
            return at;
    }
}

static const char *value_end(const char *at, const char *end)
{
    if (*at == '"')
        return string_end(at, end);
    if (*at == '{' || *at == '[')
        return container_end(at, end);
    while (at < end && *at != ',' && *at != ']' && *at != '}' && !is_space(*at))
        at++;
    return at;
}

static void cursor_skip_space(struct json_text_cursor *cursor)
{
    cursor->at = after_space(cursor->at, cursor->end);
}

static struct text cursor_take_value(struct json_text_cursor *cursor)
{
    cursor_skip_space(cursor);
    CHECK(cursor->at < cursor->end);
    struct text value = {cursor->at, 0};
    cursor->at = value_end(cursor->at, cursor->end);
    value.size = (size_t)(cursor->at - value.at);
    return value;
}

struct json_text_cursor json_text_open(struct text container)
{
    struct text text = json_text_trim(container);
    if (text.at == NULL)
        return (struct json_text_cursor){NULL, NULL};
    CHECK(text.size >= 2 && (text.at[0] == '[' || text.at[0] == '{'));
    struct json_text_cursor cursor = {text.at + 1, text.at + text.size - 1};
    cursor_skip_space(&cursor);
    return cursor;
}

bool json_text_next_element(struct json_text_cursor *cursor, struct text *element)
{
    if (cursor->at == cursor->end)
        return false;
    *element = cursor_take_value(cursor);
    cursor_skip_space(cursor);
    if (cursor->at < cursor->end)
        cursor->at++; /* the comma */
    return true;
}

bool json_text_next_member(struct json_text_cursor *cursor, struct text *name, struct text *value)
{
    if (cursor->at == cursor->end)
        return false;
    *name = cursor_take_value(cursor);
    cursor_skip_space(cursor);
    CHECK(*cursor->at == ':');
    cursor->at++;
    return json_text_next_element(cursor, value);
}

/* ---- small documents ------------------------------------------------------------------------- */

struct text json_text_member(struct text object, struct text name)
{
    struct json_text_cursor cursor = json_text_open(object);
    struct text found, value;
    while (json_text_next_member(&cursor, &found, &value))
        if (json_text_string_equals(found, name))
            return value;
    return (struct text){NULL, 0};
}

struct text json_text_element(struct text array, size_t index)
{
    struct json_text_cursor cursor = json_text_open(array);
    struct text value;
    while (json_text_next_element(&cursor, &value))
        if (index-- == 0)
            return value;
    return (struct text){NULL, 0};
}

size_t json_text_count(struct text array)
{
    struct json_text_cursor cursor = json_text_open(array);
    struct text value;
    size_t count = 0;
    while (json_text_next_element(&cursor, &value))
        count++;
    return count;
}

struct text json_text_inside(struct text value)
{
    if (value.at == NULL || value.at[0] != '"')
        return TEXT("");
    return (struct text){value.at + 1, value.size - 2};
}

bool json_text_integer(struct text value, int64_t *integer)
{
    bool negative = value.size > 0 && value.at[0] == '-';
    struct text digits = {value.at + negative, value.size - negative};
    uint64_t size = 0;
    bool fits = digits.size > 0 && text_to_u64(digits, INT64_MAX, &size) == STATUS_OK;
    *integer = negative ? -(int64_t)size : (int64_t)size;
    return fits;
}

/* ---- strings --------------------------------------------------------------------------------- */

static uint32_t four_hex(const char *at)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++)
        value = value << 4 | (uint32_t)hex_value(at[i]);
    return value;
}

static size_t utf8_write(char out[4], uint32_t code_point)
{
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    size_t size = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = size - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (code_point & 0x3F));
        code_point >>= 6;
    }
    out[0] = (char)(first[size] | code_point);
    return size;
}

/* One escape as UTF-8: returns what follows it in the source; `size` is 0 for a lone surrogate. */
static const char *unescape_one(const char *at, const char *end, char out[4], size_t *size)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    if (at[1] != 'u') {
        out[0] = to[strchr(from, at[1]) - from];
        *size = 1;
        return at + 2;
    }
    uint32_t unit = four_hex(at + 2);
    at += 6;
    if (unit >= 0xD800 && unit < 0xDC00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
        uint32_t low = four_hex(at + 2);
        if (low >= 0xDC00 && low < 0xE000) {
            *size = utf8_write(out, 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00));
            return at + 6;
        }
    }
    *size = unit >= 0xD800 && unit < 0xE000 ? 0 : utf8_write(out, unit);
    return at;
}

static struct text inside_quotes(struct text string)
{
    CHECK(string.size >= 2 && string.at[0] == '"');
    return (struct text){string.at + 1, string.size - 2};
}

bool json_text_string_equals(struct text string, struct text plain)
{
    struct text inside = inside_quotes(string);
    if (inside.size < plain.size) /* no escape is shorter than what it stands for */
        return false;
    if (plain.size > 0 && *inside.at != *plain.at && *inside.at != '\\')
        return false; /* nearly all that are compared differ there */
    if (inside.size == 0 || memchr(inside.at, '\\', inside.size) == NULL)
        return text_equals(inside, plain);
    struct buffer unescaped = {0};
    bool same =
        json_text_unescape(string, &unescaped) && text_equals(buffer_text(&unescaped), plain);
    buffer_free(&unescaped);
    return same;
}

bool json_text_unescape(struct text string, struct buffer *out)
{
    bool whole = true;
    struct text inside = inside_quotes(string);
    const char *at = inside.at;
    const char *end = inside.at + inside.size;
    while (at < end) {
        const char *escape = memchr(at, '\\', (size_t)(end - at));
        if (escape == NULL)
            escape = end;
        buffer_append(out, at, (size_t)(escape - at));
        at = escape;
        if (at < end) {
            char unescaped[4];
            size_t size;
            at = unescape_one(at, end, unescaped, &size);
            whole &= size > 0;
            if (size == 0)
                buffer_append(out, "\xEF\xBF\xBD", 3);
            else
                buffer_append(out, unescaped, size);
        }
    }
    return whole;
}
