/*
 * A query into filters, and cursors; see query.h. Each parameter is a row of a table, so that
 * "unknown" and "twice" are looked up and not written out.
 */
#include "games/query.h"

#include <openssl/crypto.h>

#include "base/base64url.h"
#include "base/digest.h"

_Static_assert(GAMES_CURSOR_SIZE <= HTTP_QUERY_VALUE_MAX, "a cursor can be read");

static bool is_cursor_text(struct text value)
{
    return value.size > 0;
}

static bool read_demo(struct text value, void *to)
{
    bool yes = text_equals(value, TEXT("true"));
    *(enum games_demo *)to = yes ? GAMES_DEMO_TRUE : GAMES_DEMO_FALSE;
    return yes || text_equals(value, TEXT("false"));
}

#define FIELD(field) \
    offsetof(struct games_query, field), sizeof(((struct games_query *)NULL)->field)

#define UNKNOWN                                                                             \
    "The request has an unknown parameter. It may have limit, cursor, provider, category, " \
    "feature, device, currency, language, demo, q."
#define IS_WORD(name) "The parameter " name " must be 1 to 64 bytes without control characters."

/* The filters that are texts, in the order in which a cursor authenticates them; then the rest. */
static const struct http_parameter parameters[] = {
    {TEXT_INIT("provider"), FIELD(provider), game_id_is_sound, NULL,
     "The parameter provider must be the id of a provider."},
    {TEXT_INIT("category"), FIELD(category), game_word_is_sound, NULL, IS_WORD("category")},
    {TEXT_INIT("feature"), FIELD(feature), game_word_is_sound, NULL, IS_WORD("feature")},
    {TEXT_INIT("device"), FIELD(device), game_word_is_sound, NULL, IS_WORD("device")},
    {TEXT_INIT("currency"), FIELD(currency), currency_is_sound, NULL,
     "The parameter currency must be three capital letters."},
    {TEXT_INIT("language"), FIELD(language), game_word_is_sound, NULL, IS_WORD("language")},
    {TEXT_INIT("q"), FIELD(q), game_word_is_sound, NULL, IS_WORD("q")},
    {TEXT_INIT("cursor"), FIELD(cursor), is_cursor_text, NULL, GAMES_CURSOR_RULE},
    {TEXT_INIT("limit"), FIELD(limit), NULL, http_query_limit,
     "The parameter limit must be an integer from 1 to 200."},
    {TEXT_INIT("demo"), FIELD(demo), NULL, read_demo, "The parameter demo must be true or false."},
};
#define PARAMETER_COUNT (sizeof parameters / sizeof parameters[0])
#define FILTER_COUNT 7

/* ---- reading --------------------------------------------------------------------------------- */

const char *games_query_parse(struct text text, struct games_query *query)
{
    struct games_query made = {.limit = HTTP_QUERY_LIMIT};
    size_t at = 0;
    switch (http_query_read(text, parameters, PARAMETER_COUNT, &made, &at)) {
    case HTTP_QUERY_READ:
        *query = made;
        return NULL;
    case HTTP_QUERY_TWICE:
        return "A parameter is given twice.";
    case HTTP_QUERY_UNSOUND:
        return parameters[at].rule;
    case HTTP_QUERY_UNKNOWN:
    default:
        return UNKNOWN;
    }
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
        const char *value = (const char *)query + parameters[i].offset;
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
