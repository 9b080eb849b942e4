/*
 * Fuzzes what reads the casino's requests for games: the query and its cursor, the body of a
 * launch, what a provider answers to one, and the document that games are imported from. The first
 * byte chooses which.
 *
 * Holds for every input: what a query's reader accepts is within its bounds, and a cursor is
 * accepted only if it is the very text that was made for that customer, those filters and that id;
 * a launch that is accepted has what its mode needs and nothing else; a URL that a provider answers
 * is sound, guarded and of the future, and stands in the answer or is escaped there; games that are
 * accepted are acceptable to the store, and every refusal says where.
 */
#include <string.h>

#include "base/json_text.h"
#include "games/document.h"
#include "games/query.h"
#include "launch/document.h"
#include "records/game.h"
#include "records/records.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const uint8_t key[32] = {7};

static void check_filter(const char *value, bool sound(struct text text))
{
    CHECK(strlen(value) < GAME_WORD_SIZE);
    CHECK(value[0] == '\0' || sound(text_of(value)));
}

static void check_cursor(struct games_query *query)
{
    char id[GAME_ID_SIZE];
    char again[GAMES_CURSOR_SIZE];
    if (query->cursor[0] != '\0' && games_cursor_read(key, "cus_a", query, id)) {
        games_cursor_write(key, "cus_a", query, text_of(id), again);
        CHECK(strcmp(again, query->cursor) == 0);
        CHECK(!games_cursor_read(key, "cus_b", query, id));
    }
    games_cursor_write(key, "cus_a", query, TEXT("book-of-sand"), query->cursor);
    CHECK(games_cursor_read(key, "cus_a", query, id));
    CHECK(strcmp(id, "book-of-sand") == 0);
    query->demo = query->demo == GAMES_DEMO_ANY ? GAMES_DEMO_TRUE : GAMES_DEMO_ANY;
    CHECK(!games_cursor_read(key, "cus_a", query, id));
}

static void fuzz_query(struct text text)
{
    struct games_query query = {.limit = 77};
    if (games_query_parse(text, &query) != NULL) {
        CHECK(query.limit == 77);
        return;
    }
    CHECK(query.limit >= 1 && query.limit <= HTTP_QUERY_LIMIT_MAX);
    check_filter(query.provider, game_id_is_sound);
    check_filter(query.category, game_word_is_sound);
    check_filter(query.feature, game_word_is_sound);
    check_filter(query.device, game_word_is_sound);
    check_filter(query.currency, currency_is_sound);
    check_filter(query.language, game_word_is_sound);
    check_filter(query.q, game_word_is_sound);
    check_cursor(&query);
}

static void fuzz_launch(struct text text)
{
    struct launch_request launch;
    struct strict_json_fault fault;
    if (launch_request_decode(TEXT("application/json"), text, &launch, &fault) != STRICT_JSON_OK)
        return;
    CHECK(json_text_check(text, NULL, NULL) == STATUS_OK);
    CHECK(launch.real == (launch.currency[0] != '\0'));
    CHECK(launch.real == (launch.player_reference[0] != '\0'));
    if (launch.real) {
        CHECK(currency_is_sound(text_of(launch.currency)));
        CHECK(is_outside_name(text_of(launch.player_reference)));
    }
    check_filter(launch.language, game_word_is_sound);
    check_filter(launch.device, game_word_is_sound);
}

static void fuzz_answer(struct text text)
{
    struct launch_answer answer = {.launch_url = "before", .expires_ms = 7};
    const char *wrong = launch_answer_decode(text, 1763700000000LL, &answer);
    if (wrong != NULL) {
        CHECK(strcmp(answer.launch_url, "before") == 0 && answer.expires_ms == 7);
        return;
    }
    struct text url = text_of(answer.launch_url);
    CHECK(json_text_check(text, NULL, NULL) == STATUS_OK && text.size <= LAUNCH_ANSWER_MAX);
    CHECK(url_is_sound(url) && game_url_is_guarded(url));
    CHECK(answer.expires_ms == 0 || answer.expires_ms > 1763700000000LL);
    CHECK(memmem(text.at, text.size, url.at, url.size) != NULL ||
          memchr(text.at, '\\', text.size) != NULL);
}

static bool is_acme(void *context, struct text id)
{
    (void)context;
    return text_equals(id, TEXT("acme"));
}

static void fuzz_document(struct text text)
{
    struct games_document document = {0};
    struct error error = {.text = ""};
    if (games_document_read(&document, "g", text, is_acme, NULL, &error) != STATUS_OK) {
        CHECK(strncmp(error.text, "g:", 2) == 0 && document.records == NULL);
        return;
    }
    for (size_t i = 0; i < document.count; i++)
        CHECK(game_table.check(&document.records[i], NULL) == STATUS_OK);
    games_document_free(&document);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size == 0)
        return 0;
    struct text text = {(const char *)bytes + 1, size - 1};
    switch (bytes[0]) {
    case 'q':
        fuzz_query(text);
        break;
    case 'l':
        fuzz_launch(text);
        break;
    case 'a':
        fuzz_answer(text);
        break;
    case 'd':
        fuzz_document(text);
        break;
    default:
        break;
    }
    return 0;
}
