/*
 * The contract of providers, games, and who may play what.
 */
#include "platform_contract/contract.h"

static void put_games(struct fixture *fixture, const struct game_record *records, size_t count,
                      int64_t now_ms, struct games_put_result *result)
{
    const bool set_enabled[8] = {false};
    OK(platform_games_put(fixture->store, records, set_enabled, count, now_ms, result,
                          &fixture->error));
}

static void assert_same_game(const struct game_record *a, const struct game_record *b)
{
    assert_string_equal(a->id, b->id);
    assert_string_equal(a->provider_id, b->provider_id);
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->category, b->category);
    assert_string_equal(a->features, b->features);
    assert_int_equal(a->rtp_bps, b->rtp_bps);
    assert_int_equal(a->volatility, b->volatility);
    assert_string_equal(a->thumbnail_url, b->thumbnail_url);
    assert_int_equal(a->demo, b->demo);
    assert_string_equal(a->currencies, b->currencies);
    assert_string_equal(a->languages, b->languages);
    assert_string_equal(a->devices, b->devices);
    assert_int_equal(a->enabled, b->enabled);
}

TEST_OF(fixture, a_provider_comes_back_as_it_was_stored_and_changed)
{
    struct provider_record record = provider("acme");
    struct provider_record read = {0};
    record.secrets[1] = record.secrets[0]; /* the newest is the one with a name */
    memcpy(record.secrets[0].kid, "0aZ9bY8c", PROVIDER_KID_SIZE);
    record.secrets[0].added_ms = 1763700000001;
    record.secrets[0].sealed[59] = 0;
    record.cidrs[0] = cidr("192.0.2.0/24");
    record.cidrs[1] = cidr("2001:db8::/32");
    record.cidr_count = 2;
    OK(platform_add(fixture->store, &provider_table, &record, &fixture->error));
    assert_int_equal(platform_add(fixture->store, &provider_table, &record, &fixture->error),
                     STATUS_EXISTS);
    OK(platform_get(fixture->store, &provider_table, "acme", &read, &fixture->error));
    assert_true(read.usable && read.enabled);
    assert_string_equal(read.name, record.name);
    assert_string_equal(read.launch_url, record.launch_url);
    assert_string_equal(read.return_url, record.return_url);
    assert_string_equal(read.audience, record.audience);
    assert_memory_equal(read.secrets, record.secrets, sizeof read.secrets);
    assert_int_equal(read.cidr_count, 2);
    assert_memory_equal(read.cidrs, record.cidrs, sizeof read.cidrs);
    assert_int_equal(read.created_ms, record.created_ms);
    assert_false(read.launch_call);

    uint64_t seen = read.revision;
    read.enabled = false;
    read.launch_call = true;
    read.return_url[0] = '\0';
    read.secrets[0] = read.secrets[1]; /* the newest is retired */
    read.secrets[1] = (struct provider_secret){0};
    read.cidr_count = 0;
    OK(platform_update(fixture->store, &provider_table, &read, &fixture->error));
    assert_int_equal(platform_update(fixture->store, &provider_table, &read, &fixture->error),
                     STATUS_EXISTS); /* its revision has passed */
    OK(platform_get(fixture->store, &provider_table, "acme", &read, &fixture->error));
    assert_false(read.enabled);
    assert_true(read.launch_call);
    assert_string_equal(read.return_url, "");
    assert_string_equal(read.secrets[0].kid, "");
    assert_memory_equal(&read.secrets[0], &record.secrets[1], sizeof record.secrets[1]);
    assert_int_equal(read.secrets[1].size, 0);
    assert_int_equal(read.cidr_count, 0);
    assert_true(read.revision > seen);
    struct provider_record called = provider("called");
    called.launch_call = true;
    OK(platform_add(fixture->store, &provider_table, &called, &fixture->error));
    OK(platform_get(fixture->store, &provider_table, "called", &read, &fixture->error));
    assert_true(read.usable && read.launch_call);
    assert_int_equal(
        platform_get(fixture->store, &provider_table, "nobody", &read, &fixture->error),
        STATUS_NOT_FOUND);
    record = provider("nobody");
    assert_int_equal(platform_update(fixture->store, &provider_table, &record, &fixture->error),
                     STATUS_NOT_FOUND);
}

TEST_OF(fixture, providers_and_games_that_are_not_acceptable_are_refused)
{
    static const char *const ids[] = {"", "-a", "A", "a_b", "a b"};
    static const char *const urls[] = {"",           "ftp://x",     "https://",
                                       "https:///x", "https://a b", "https://a/#f"};
    static const char *const endpoints[] = {
        "http://a.example/",           "http://127.0.0.1.example/",
        "http://localhost@a.example/", "http://localhost:80@a.example/",
        "https://u@a.example",         "http://a.example/@localhost",
        "http://[::1].example/"};
    struct provider_record wrong;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        wrong = provider(ids[i]);
        assert_int_equal(platform_add(fixture->store, &provider_table, &wrong, &fixture->error),
                         STATUS_INVALID);
    }
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        wrong = provider("acme");
        (void)snprintf(wrong.launch_url, sizeof wrong.launch_url, "%s", urls[i]);
        assert_int_equal(platform_add(fixture->store, &provider_table, &wrong, &fixture->error),
                         STATUS_INVALID);
    }
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        wrong = provider("acme");
        wrong.launch_call = true;
        (void)snprintf(wrong.launch_url, sizeof wrong.launch_url, "%s", endpoints[i]);
        assert_int_equal(platform_add(fixture->store, &provider_table, &wrong, &fixture->error),
                         STATUS_INVALID);
    }
    struct game_record games[4] = {game("a", "acme"), game("b", "acme"), game("c", "acme"),
                                   game("d", "acme")};
    games[0].rtp_bps = 10001;
    (void)snprintf(games[1].currencies, sizeof games[1].currencies, "EUR\nEu");
    (void)snprintf(games[2].features, sizeof games[2].features, "a\n");
    (void)snprintf(games[3].id, sizeof games[3].id, "D");
    struct games_put_result result;
    const bool set_enabled[4] = {false};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(platform_games_put(fixture->store, &games[i], set_enabled, 1, 1, &result,
                                            &fixture->error),
                         STATUS_INVALID);
}

TEST_OF(fixture, an_import_adds_changes_and_leaves_alone_or_does_nothing)
{
    struct provider_record host = provider("acme");
    struct game_record games[3] = {game("aa", "acme"), game("bb", "acme"), game("cc", "acme")};
    struct game_record read = {0};
    struct games_put_result result = {0};
    const bool set_enabled[3] = {false};
    OK(platform_add(fixture->store, &provider_table, &host, &fixture->error));
    games[1].rtp_bps = -1;
    games[1].volatility = GAME_VOLATILITY_NONE;
    games[1].thumbnail_url[0] = '\0';
    games[1].features[0] = '\0';
    put_games(fixture, games, 2, 1000, &result);
    assert_int_equal(result.added, 2);
    for (size_t i = 0; i < 2; i++) {
        OK(platform_get(fixture->store, &game_table, games[i].id, &read, &fixture->error));
        assert_true(read.usable);
        assert_same_game(&read, &games[i]);
        assert_int_equal(read.updated_ms, 1000);
    }
    games[1].rtp_bps = 9000;
    put_games(fixture, games, 3, 2000, &result);
    assert_int_equal(result.added, 1);
    assert_int_equal(result.changed, 1);
    assert_int_equal(result.unchanged, 1);
    OK(platform_get(fixture->store, &game_table, "aa", &read, &fixture->error));
    assert_int_equal(read.updated_ms, 1000);

    games[0].rtp_bps = 1;
    (void)snprintf(games[2].provider_id, sizeof games[2].provider_id, "nobody");
    assert_int_equal(
        platform_games_put(fixture->store, games, set_enabled, 3, 3000, &result, &fixture->error),
        STATUS_NOT_FOUND);
    OK(platform_get(fixture->store, &game_table, "aa", &read, &fixture->error));
    assert_int_equal(read.rtp_bps, 9612);
}

TEST_OF(fixture, an_import_keeps_a_disabled_game_disabled_unless_it_says_otherwise)
{
    struct provider_record host = provider("acme");
    struct game_record record = game("aa", "acme");
    struct game_record read = {0};
    struct games_put_result result = {0};
    const bool set_enabled = true;
    OK(platform_add(fixture->store, &provider_table, &host, &fixture->error));
    put_games(fixture, &record, 1, 1000, &result);
    OK(platform_get(fixture->store, &game_table, "aa", &read, &fixture->error));
    read.enabled = false;
    memcpy(read.blocked_countries, "GB\nUS", 6);
    OK(platform_game_set(fixture->store, &read, 2000, &fixture->error));
    assert_int_equal(platform_game_set(fixture->store, &read, 3000, &fixture->error),
                     STATUS_EXISTS); /* of another revision */
    record.rtp_bps = 1;
    record.keeps_countries = true;
    put_games(fixture, &record, 1, 4000, &result);
    OK(platform_get(fixture->store, &game_table, "aa", &read, &fixture->error));
    assert_false(read.enabled);
    assert_string_equal(read.blocked_countries, "GB\nUS");
    record.keeps_countries = false;
    put_games(fixture, &record, 1, 4500, &result);
    OK(platform_get(fixture->store, &game_table, "aa", &read, &fixture->error));
    assert_string_equal(read.blocked_countries, "");
    OK(platform_games_put(fixture->store, &record, &set_enabled, 1, 5000, &result,
                          &fixture->error));
    OK(platform_get(fixture->store, &game_table, "aa", &read, &fixture->error));
    assert_true(read.enabled);
    assert_int_equal(read.updated_ms, 5000);
    memcpy(read.id, "zz", 3);
    assert_int_equal(platform_game_set(fixture->store, &read, 1, &fixture->error),
                     STATUS_NOT_FOUND);
}

struct games_seen {
    char text[256];
};

static void see(struct games_seen *seen, const char *kind, const char *what)
{
    size_t used = strlen(seen->text);
    (void)snprintf(seen->text + used, sizeof seen->text - used, "%s:%s ", kind, what);
}

static bool see_provider(void *context, const void *visited)
{
    const struct provider_record *record = visited;
    see(context, "provider", record->id);
    return true;
}

static bool see_game(void *context, const void *visited)
{
    const struct game_record *record = visited;
    see(context, "game", record->id);
    return true;
}

static bool see_policy(void *context, const void *visited)
{
    const struct game_policy_record *record = visited;
    char games[64];
    (void)snprintf(games, sizeof games, "%s=%s%.*s", record->customer_id,
                   record->every_game ? "all" : "", (int)record->games.size,
                   record->games.size > 0 ? record->games.at : "");
    see(context, "policy", games);
    return true;
}

TEST_OF(fixture, everything_about_games_is_read_at_a_revision_that_moves_with_every_change)
{
    struct games_seen seen = {{0}};
    const struct record_visitor visit = {.see[RECORD_PROVIDER] = see_provider,
                                         .see[RECORD_GAME] = see_game,
                                         .see[RECORD_GAME_POLICY] = see_policy,
                                         .context = &seen};
    struct provider_record hosts[2] = {provider("beta"), provider("acme")};
    struct game_record games[2] = {game("bb", "acme"), game("aa", "beta")};
    struct customer_record owner = customer("cus_0000000000000001", "One");
    struct game_policy_record policy = {.games = TEXT("aa\nbb")};
    struct games_put_result result = {0};
    uint64_t before = 99;
    uint64_t after = 0;
    uint64_t customers_before = 0;
    uint64_t customers_after = 1;
    OK(platform_games_revision(fixture->store, &before, &fixture->error));
    assert_int_equal(before, 0);
    OK(platform_add(fixture->store, &customer_table, &owner, &fixture->error));
    OK(platform_revision(fixture->store, &customers_before, &fixture->error));
    OK(platform_add(fixture->store, &provider_table, &hosts[0], &fixture->error));
    OK(platform_add(fixture->store, &provider_table, &hosts[1], &fixture->error));
    put_games(fixture, games, 2, 1000, &result);
    memcpy(policy.customer_id, owner.id, sizeof policy.customer_id);
    OK(platform_games_revision(fixture->store, &before, &fixture->error));
    OK(platform_game_policy_put(fixture->store, &policy, &fixture->error));
    OK(platform_games_read(fixture->store, &visit, &after, &fixture->error));
    assert_true(after > before);
    assert_string_equal(seen.text, "provider:acme provider:beta game:aa game:bb "
                                   "policy:cus_0000000000000001=aa\nbb ");
    OK(platform_revision(fixture->store, &customers_after, &fixture->error));
    assert_int_equal(customers_before, customers_after); /* a counter of its own */

    policy.games = TEXT("aa\nzz");
    assert_int_equal(platform_game_policy_put(fixture->store, &policy, &fixture->error),
                     STATUS_NOT_FOUND);
    assert_non_null(strstr(fixture->error.text, "'zz'"));
    policy.every_game = true;
    policy.games = TEXT("");
    OK(platform_game_policy_put(fixture->store, &policy, &fixture->error));
    memcpy(policy.customer_id, "cus_0000000000000009", 21);
    assert_int_equal(platform_game_policy_put(fixture->store, &policy, &fixture->error),
                     STATUS_NOT_FOUND);
    seen.text[0] = '\0';
    OK(platform_games_read(fixture->store, &visit, &after, &fixture->error));
    assert_non_null(strstr(seen.text, "policy:cus_0000000000000001=all"));
}
