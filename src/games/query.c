/*
 * A query into filters, and cursors; see games_query.h. Each parameter is a row of a table, so that
 * "unknown" and "twice" are looked up and not written out.
 */
#include "games/query.h"

#include <string.h>

#include <openssl/crypto.h>

#include "base/base64url.h"
#include "base/digest.h"

#define VALUE_MAX (GAMES_CURSOR_SIZE - 1)

struct parameter {
    struct text name;
    size_t offset;
    size_t room;
    bool (*sound)(struct text value);
};

static bool is_cursor_text(struct text value)
{
    return value.size > 0;
}

#define FIELD(field) \
    offsetof(struct games_query, field), sizeof(((struct games_query *)NULL)->field)

/* The filters, in the order in which a cursor authenticates them; then the rest. */
static const struct parameter texts[] = {
    {TEXT_INIT("provider"), FIELD(provider), game_id_is_sound},
    {TEXT_INIT("category"), FIELD(category), game_word_is_sound},
    {TEXT_INIT("feature"), FIELD(feature), game_word_is_sound},
    {TEXT_INIT("device"), FIELD(device), game_word_is_sound},
    {TEXT_INIT("currency"), FIELD(currency), currency_is_sound},
    {TEXT_INIT("language"), FIELD(language), game_word_is_sound},
    {TEXT_INIT("q"), FIELD(q), game_word_is_sound},
    {TEXT_INIT("cursor"), FIELD(cursor), is_cursor_text},
};
#define TEXT_COUNT (sizeof texts / sizeof texts[0])
#define FILTER_COUNT (TEXT_COUNT - 1) /* all but the cursor */
#define LIMIT_BIT (1U << TEXT_COUNT)
#define DEMO_BIT (2U << TEXT_COUNT)

/* ---- decoding -------------------------------------------------------------------------------- */

/* Decodes into `out` of VALUE_MAX + 1 bytes. False: a bad escape, a NUL, or too long. */
static bool decode(struct text encoded, char out[VALUE_MAX + 1], struct text *decoded)
{
    size_t size = 0;
    for (size_t i = 0; i < encoded.size; i++) {
        char byte = encoded.at[i] == '+' ? ' ' : encoded.at[i];
        if (byte == '%') {
            if (encoded.size - i < 3)
                return false;
            int high = hex_value(encoded.at[i + 1]);
            int low = hex_value(encoded.at[i + 2]);
            if (high < 0 || low < 0)
                return false;
            byte = (char)(high * 16 + low);
            i += 2;
        }
        if (byte == '\0' || size == VALUE_MAX)
            return false;
        out[size++] = byte;
    }
    out[size] = '\0';
    *decoded = (struct text){out, size};
    return true;
}

/* The bit that stands for a parameter; 0: there is no such parameter. */
static uint32_t bit_of(struct text name)
{
    if (text_equals(name, TEXT("limit")))
        return LIMIT_BIT;
    if (text_equals(name, TEXT("demo")))
        return DEMO_BIT;
    for (size_t i = 0; i < TEXT_COUNT; i++)
        if (text_equals(name, texts[i].name))
            return 1U << i;
    return 0;
}

static bool read_limit(struct text value, uint32_t *limit)
{
    uint64_t number;
    if (value.size > 3 || text_to_u64(value, GAMES_LIMIT_MAX, &number) != STATUS_OK || number == 0)
        return false;
    *limit = (uint32_t)number;
    return true;
}

static bool read_demo(struct text value, enum games_demo *demo)
{
    bool yes = text_equals(value, TEXT("true"));
    *demo = yes ? GAMES_DEMO_TRUE : GAMES_DEMO_FALSE;
    return yes || text_equals(value, TEXT("false"));
}

static bool read_text_parameter(const struct parameter *parameter, struct text value,
                                struct games_query *query)
{
    if (value.size >= parameter->room || !parameter->sound(value))
        return false;
    memcpy((char *)query + parameter->offset, value.at, value.size + 1);
    return true;
}

static bool read_parameter(struct text pair, uint32_t *seen, struct games_query *query)
{
    char name_bytes[VALUE_MAX + 1];
    char value_bytes[VALUE_MAX + 1];
    struct text rest = pair;
    struct text name;
    struct text value;
    if (!decode(text_cut(&rest, '='), name_bytes, &name) || rest.at == NULL ||
        !decode(rest, value_bytes, &value))
        return false;
    uint32_t bit = bit_of(name);
    if (bit == 0 || (*seen & bit) != 0)
        return false;
    *seen |= bit;
    if (bit == LIMIT_BIT)
        return read_limit(value, &query->limit);
    if (bit == DEMO_BIT)
        return read_demo(value, &query->demo);
    return read_text_parameter(&texts[__builtin_ctz(bit)], value, query);
}

bool games_query_parse(struct text text, struct games_query *query)
{
    struct games_query made = {.limit = GAMES_LIMIT_DEFAULT};
    struct text rest = text;
    uint32_t seen = 0;
    if (text.size > 0)
        do
            if (!read_parameter(text_cut(&rest, '&'), &seen, &made))
                return false;
        while (rest.at != NULL);
    *query = made;
    return true;
}

/* ---- cursors --------------------------------------------------------------------------------- */

/* No field holds a NUL, so fields that are ended by one cannot be mistaken for others. */
static void authenticate(const uint8_t key[32], const char *customer_id,
                         const struct games_query *query, struct text last_id,
                         uint8_t tag[DIGEST_SIZE])
{
    struct buffer data = {0};
    buffer_append(&data, customer_id, strlen(customer_id) + 1);
    for (size_t i = 0; i < FILTER_COUNT; i++) {
        const char *value = (const char *)query + texts[i].offset;
        buffer_append(&data, value, strlen(value) + 1);
    }
    buffer_append_char(&data, (char)('0' + (int)query->demo));
    buffer_append_text(&data, last_id);
    digest_hmac_sha256((struct text){(const char *)key, 32}, buffer_text(&data), tag);
    buffer_free(&data);
}

void games_cursor_write(const uint8_t key[32], const char *customer_id,
                        const struct games_query *query, struct text last_id,
                        char out[GAMES_CURSOR_SIZE])
{
    uint8_t tag[DIGEST_SIZE];
    struct buffer plain = {0};
    struct buffer text = {0};
    authenticate(key, customer_id, query, last_id, tag);
    buffer_append_text(&plain, last_id);
    buffer_append(&plain, tag, GAMES_CURSOR_TAG_SIZE);
    buffer_append_base64url(&text, plain.data, plain.size);
    CHECK(text.size < GAMES_CURSOR_SIZE);
    memcpy(out, buffer_string(&text), text.size + 1);
    buffer_free(&plain);
    buffer_free(&text);
}

bool games_cursor_read(const uint8_t key[32], const char *customer_id,
                       const struct games_query *query, char last_id[GAME_ID_SIZE])
{
    uint8_t tag[DIGEST_SIZE];
    struct buffer plain = {0};
    last_id[0] = '\0';
    if (query->cursor[0] == '\0')
        return true;
    bool good = base64url_read(text_of(query->cursor), &plain) &&
                plain.size > GAMES_CURSOR_TAG_SIZE &&
                plain.size < GAMES_CURSOR_TAG_SIZE + GAME_ID_SIZE;
    if (good) {
        struct text id = {plain.data, plain.size - GAMES_CURSOR_TAG_SIZE};
        authenticate(key, customer_id, query, id, tag);
        good = CRYPTO_memcmp(tag, plain.data + id.size, GAMES_CURSOR_TAG_SIZE) == 0;
        if (good) {
            memcpy(last_id, id.at, id.size);
            last_id[id.size] = '\0';
        }
    }
    buffer_free(&plain);
    return good;
}
