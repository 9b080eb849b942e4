/* Who sees which games, and that paging shows each once. */
#include <unistd.h>

#include "base/json_text.h"
#include "games/table.h"
#include "sealing/provider_secret.h"
#include "tests.h"

static struct secrets *secrets;

static int set_up(void **state)
{
    char directory[] = "/tmp/croupier-games-XXXXXX";
    char path[64];
    struct error error;
    bool made;
    assert_non_null(mkdtemp(directory));
    (void)snprintf(path, sizeof path, "%s/key", directory);
    assert_int_equal(secrets_make_key(path, &made, &error), STATUS_OK);
    assert_int_equal(secrets_open_key(&secrets, path, &error), STATUS_OK);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(directory), 0);
    return 0;
}

static int tear_down(void **state)
{
    secrets_destroy(&secrets);
    return 0;
}

static void add_provider(struct games_table *table, const char *id, bool enabled)
{
    struct provider_record record = {.enabled = enabled, .usable = true};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.name, sizeof record.name, "The %s", id);
    provider_secret_seal(secrets, &record, TEXT("hush"), 1);
    games_table_add_provider(table, &record);
}

static struct game_record game(const char *id, const char *provider)
{
    struct game_record record = {.rtp_bps = -1, .enabled = true, .usable = true};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.name, sizeof record.name, "Game \"%s\"", id);
    (void)snprintf(record.provider_id, sizeof record.provider_id, "%s", provider);
    (void)snprintf(record.category, sizeof record.category, "slots");
    (void)snprintf(record.currencies, sizeof record.currencies, "EUR\nJPY");
    return record;
}

static void add_game(struct games_table *table, const char *id, const char *provider)
{
    struct game_record record = game(id, provider);
    games_table_add_game(table, &record);
}

static void allow(struct games_table *table, const char *customer, const char *games)
{
    struct game_policy_record record = {.games = text_of(games)};
    (void)snprintf(record.customer_id, sizeof record.customer_id, "%s", customer);
    games_table_add_policy(table, &record);
}

/* The ids of a page, "a b c", and its cursor ("" for none). */
static void page(const struct games_table *table, const char *customer, const char *filters,
                 char *cursor, char *ids, size_t room)
{
    struct games_query query;
    struct buffer body = {0};
    assert_null(games_query_parse(text_of(filters), &query));
    memcpy(query.cursor, cursor, strlen(cursor) + 1);
    assert_true(games_table_page(table, customer, false, &query, &body));
    struct text document = buffer_text(&body), each;
    assert_int_equal(json_text_check(document, NULL, NULL), STATUS_OK);
    struct text next = json_text_member(document, TEXT("next_cursor"));
    struct json_text_cursor games = json_text_open(json_text_member(document, TEXT("games")));
    ids[0] = '\0';
    while (json_text_next_element(&games, &each)) {
        struct text id = json_text_inside(json_text_member(each, TEXT("id")));
        size_t used = strlen(ids);
        (void)snprintf(ids + used, room - used, "%s%.*s", used > 0 ? " " : "", (int)id.size, id.at);
    }
    struct text text = json_text_inside(next);
    (void)snprintf(cursor, GAMES_CURSOR_SIZE, "%.*s", (int)text.size, text.at);
    assert_true(text.size > 0 || text_equals(next, TEXT("null")));
    buffer_free(&body);
}

static void assert_page(const struct games_table *table, const char *customer, const char *filters,
                        const char *expected)
{
    char cursor[GAMES_CURSOR_SIZE] = "";
    char ids[256];
    page(table, customer, filters, cursor, ids, sizeof ids);
    assert_string_equal(ids, expected);
    assert_string_equal(cursor, "");
}

static struct games_table *sample(void)
{
    struct games_table *table = games_table_create(secrets, NULL);
    struct game_record record;
    add_provider(table, "acme", true);
    add_provider(table, "closed", false);
    add_provider(table, "sand", true);
    record = game("aa", "acme");
    record.demo = true;
    (void)snprintf(record.features, sizeof record.features, "free spins\njackpot");
    games_table_add_game(table, &record);
    add_game(table, "bb", "closed");
    record = game("cc", "acme");
    record.enabled = false;
    games_table_add_game(table, &record);
    add_game(table, "dd", "sand");
    add_game(table, "ee", "acme");
    allow(table, "cus_listed", "bb\ncc\ndd\nzz");
    allow(table, "cus_none", "");
    return table;
}

TEST(a_game_is_seen_when_it_its_provider_and_the_customers_list_let_it)
{
    struct games_table *table = sample();
    assert_page(table, "cus_any", "", "aa dd ee");
    assert_page(table, "cus_listed", "", "dd");
    assert_page(table, "cus_none", "", "");
    assert_non_null(games_table_find(table, "cus_any", false, TEXT("aa")));
    assert_null(games_table_find(table, "cus_any", false, TEXT("bb")));
    assert_null(games_table_find(table, "cus_any", false, TEXT("a")));
    assert_null(games_table_find(table, "cus_any", false, TEXT("")));
    assert_null(games_table_find(table, "cus_listed", false, TEXT("aa")));
    assert_string_equal(
        games_table_find(table, "cus_listed", false, TEXT("dd"))->provider->record.id, "sand");
    games_table_destroy(&table);
}

TEST(filters_narrow_the_list)
{
    struct games_table *table = sample();
    assert_page(table, "cus_any", "provider=acme", "aa ee");
    assert_page(table, "cus_any", "demo=true", "aa");
    assert_page(table, "cus_any", "demo=false", "dd ee");
    assert_page(table, "cus_any", "feature=free+spins", "aa");
    assert_page(table, "cus_any", "feature=free", "");
    assert_page(table, "cus_any", "currency=JPY&q=GAME", "aa dd ee");
    assert_page(table, "cus_any", "currency=SEK", "");
    assert_page(table, "cus_any", "q=%22DD", "dd");
    assert_page(table, "cus_any", "category=Slots", "");
    games_table_destroy(&table);
}

TEST(pages_show_each_game_once_while_others_come_and_go)
{
    char cursor[GAMES_CURSOR_SIZE] = "";
    char ids[256];
    struct games_table *table = sample();
    page(table, "cus_any", "limit=1", cursor, ids, sizeof ids);
    assert_string_equal(ids, "aa");
    games_table_destroy(&table);
    table = games_table_create(secrets, NULL); /* aa has gone, ab and ef are new */
    add_provider(table, "acme", true);
    add_game(table, "ab", "acme");
    add_game(table, "dd", "acme");
    add_game(table, "ee", "acme");
    add_game(table, "ef", "acme");
    page(table, "cus_any", "limit=2", cursor, ids, sizeof ids);
    assert_string_equal(ids, "ab dd");
    page(table, "cus_any", "limit=2", cursor, ids, sizeof ids);
    assert_string_equal(ids, "ee ef");
    assert_string_equal(cursor, "");
    games_table_destroy(&table);
}

TEST(a_provider_sees_an_id_of_its_own_for_a_player)
{
    char one[GAMES_SUBJECT_SIZE], two[GAMES_SUBJECT_SIZE], again[GAMES_SUBJECT_SIZE];
    uint8_t key[SECRETS_KEY_SIZE];
    struct games_table *table = games_table_create(secrets, NULL);
    games_table_subject_key(table, key);
    games_subject(key, "acme", "ply_1", one);
    games_subject(key, "sand", "ply_1", two);
    games_subject(key, "acme", "ply_1", again);
    assert_string_equal(one, again);
    assert_string_not_equal(one, two);
    assert_int_equal(strlen(one), 22);
    games_table_destroy(&table);
}

TESTS_WITH(set_up, tear_down);
