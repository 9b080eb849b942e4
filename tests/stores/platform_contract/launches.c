/*
 * The contract of launches, and of whom a provider means.
 */
#include "platform_contract/contract.h"

static void add_games(struct fixture *fixture)
{
    const struct provider_record providers[] = {provider("acme"), provider("oasis")};
    const struct game_record games[] = {game("mirage", "acme"), game("dune", "oasis")};
    const bool set_enabled[2] = {true, true};
    struct games_put_result result;
    for (size_t i = 0; i < 2; i++)
        OK(platform_add(fixture->store, &provider_table, &providers[i], &fixture->error));
    OK(platform_games_put(fixture->store, games, set_enabled, 2, 1763700000000, &result,
                          &fixture->error));
}

static struct launch_record launch(const char *id, const char *player_id, char subject)
{
    struct launch_record record = {.customer_id = "cus_One",
                                   .provider_id = "acme",
                                   .game_id = "mirage",
                                   .created_ms = 1763700000123};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.player_id, sizeof record.player_id, "%s", player_id);
    memset(record.subject, subject, LAUNCH_SUBJECT_SIZE - 1);
    return record;
}

static struct launch_look_up find(struct fixture *fixture, const char *provider_id,
                                  const char *subject, const char *launch_id)
{
    struct launch_look_up look_up = {
        .provider_id = provider_id, .subject = subject, .launch_id = launch_id};
    OK(platform_launches_find(fixture->store, &look_up, 1, &fixture->error));
    return look_up;
}

TEST_OF(fixture, a_launch_comes_back_as_it_was_kept)
{
    add_two_customers(fixture);
    add_games(fixture);
    struct player_record player = open_player(fixture, "cus_One", "alice", "EUR", 2);
    const struct launch_record kept[] = {launch("lau_1", player.id, 'a'), launch("lau_2", "", 'b')};
    struct launch_record read;
    OK(platform_launches_add(fixture->store, kept, 2, &fixture->error));
    for (size_t i = 0; i < 2; i++) {
        memset(&read, 0xA5, sizeof read);
        OK(platform_get(fixture->store, &launch_table, kept[i].id, &read, &fixture->error));
        assert_memory_equal(&read, &kept[i], sizeof read);
    }
    assert_int_equal(platform_get(fixture->store, &launch_table, "lau_3", &read, &fixture->error),
                     STATUS_NOT_FOUND);
    assert_int_equal(platform_launches_add(fixture->store, kept, 1, &fixture->error),
                     STATUS_EXISTS);
}

/* Also more than go to a server at once. */
TEST_OF(fixture, launches_are_kept_all_or_none_in_their_order)
{
    static struct launch_record kept[600];
    add_two_customers(fixture);
    add_games(fixture);
    for (size_t i = 0; i < 600; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "lau_%03zu", 999 - i);
        kept[i] = launch(id, "", 'a');
    }
    struct launch_record last = kept[599];
    const char *const missing[] = {"cus_None", "none"};
    memcpy(kept[599].customer_id, missing[0], strlen(missing[0]) + 1);
    assert_int_equal(platform_launches_add(fixture->store, kept, 600, &fixture->error),
                     STATUS_NOT_FOUND);
    kept[599] = last;
    memcpy(kept[599].game_id, missing[1], strlen(missing[1]) + 1);
    assert_int_equal(platform_launches_add(fixture->store, kept, 600, &fixture->error),
                     STATUS_NOT_FOUND);
    kept[599] = kept[0];
    assert_int_equal(platform_launches_add(fixture->store, kept, 600, &fixture->error),
                     STATUS_EXISTS);
    kept[599] = last;
    kept[0].subject[0] = '\0';
    assert_int_equal(platform_launches_add(fixture->store, kept, 600, &fixture->error),
                     STATUS_INVALID);
    struct launch_record first;
    assert_int_equal(
        platform_get(fixture->store, &launch_table, kept[1].id, &first, &fixture->error),
        STATUS_NOT_FOUND);
    kept[0].subject[0] = 'a';
    OK(platform_launches_add(fixture->store, kept, 600, &fixture->error));
    OK(platform_launches_add(fixture->store, kept, 0, &fixture->error));
    OK(platform_get(fixture->store, &launch_table, kept[599].id, &first, &fixture->error));
}

#define ALICE "aaaaaaaaaaaaaaaaaaaaaa"
#define BOB "bbbbbbbbbbbbbbbbbbbbbb"

TEST_OF(fixture, a_provider_means_players_that_were_launched_with_it)
{
    add_two_customers(fixture);
    add_games(fixture);
    struct player_record alice = open_player(fixture, "cus_One", "alice", "EUR", 2);
    struct player_record bob = open_player(fixture, "cus_One", "bob", "EUR", 2);
    struct launch_record kept[] = {
        launch("lau_1", alice.id, 'a'),
        launch("lau_2", alice.id, 'a'),
        launch("lau_3", bob.id, 'b'),
        launch("lau_4", "", 'c'),
    };
    kept[1].created_ms++;
    OK(platform_launches_add(fixture->store, kept, 4, &fixture->error));

    static struct players_page page; /* in the list of players as well */
    static const char *const hers[] = {"lau_1", ALICE};
    for (size_t i = 0; i < sizeof hers / sizeof hers[0]; i++) {
        OK(platform_players_active(fixture->store, "", hers[i], 0, 9, &page, &fixture->error));
        assert_int_equal(page.found, 1);
        assert_string_equal(page.players[0].account.player.id, alice.id);
    }
    OK(platform_players_active(fixture->store, "", "lau_4", 0, 9, &page, &fixture->error));
    assert_int_equal(page.found, 0);

    struct launch_look_up found = find(fixture, "acme", ALICE, "lau_2");
    assert_true(found.known && found.launched);
    assert_string_equal(found.player_id, alice.id);
    assert_string_equal(found.game_id, "mirage");
    assert_int_equal(found.launched_ms, kept[1].created_ms);
    /* Known, and not by that launch: another's, a demo's, one that is not there, none. */
    static const char *const not_hers[] = {"lau_3", "lau_4", "lau_5", ""};
    for (size_t i = 0; i < sizeof not_hers / sizeof not_hers[0]; i++) {
        found = find(fixture, "acme", ALICE, not_hers[i]);
        assert_true(found.known);
        assert_false(found.launched);
        assert_string_equal(found.player_id, alice.id);
    }
    /* Another provider's, one from a demo, and nobody. */
    assert_false(find(fixture, "oasis", ALICE, "lau_1").known);
    assert_false(find(fixture, "acme", "cccccccccccccccccccccc", "lau_4").known);
    assert_false(find(fixture, "acme", "", "").known);
}

TEST_OF(fixture, the_newest_launches_of_a_player_come_first)
{
    struct launch_record newest[2];
    size_t count = 9;
    add_two_customers(fixture);
    add_games(fixture);
    struct player_record alice = open_player(fixture, "cus_One", "alice", "EUR", 2);
    struct player_record bob = open_player(fixture, "cus_One", "bob", "EUR", 2);
    struct launch_record kept[] = {
        launch("lau_3", alice.id, 'a'),
        launch("lau_2", alice.id, 'a'),
        launch("lau_1", alice.id, 'a'),
        launch("lau_4", "", 'b'),
    };
    OK(platform_launches_add(fixture->store, kept, 4, &fixture->error));
    OK(platform_launches_newest(fixture->store, alice.id, newest, 2, &count, &fixture->error));
    assert_int_equal(count, 2);
    assert_memory_equal(&newest[0], &kept[2], sizeof kept[2]);
    assert_memory_equal(&newest[1], &kept[1], sizeof kept[1]);
    OK(platform_launches_newest(fixture->store, bob.id, newest, 2, &count, &fixture->error));
    assert_int_equal(count, 0);
}

TEST_OF(fixture, many_are_found_at_once)
{
    static struct launch_look_up look_ups[LAUNCH_LOOK_UPS_MAX];
    add_two_customers(fixture);
    add_games(fixture);
    struct player_record bob = open_player(fixture, "cus_One", "bob", "EUR", 2);
    const struct launch_record kept = launch("lau_1", bob.id, 'b');
    OK(platform_launches_add(fixture->store, &kept, 1, &fixture->error));
    for (size_t i = 0; i < LAUNCH_LOOK_UPS_MAX; i++)
        look_ups[i] = (struct launch_look_up){
            .provider_id = "acme", .subject = i % 2 == 0 ? BOB : ALICE, .launch_id = "lau_1"};
    OK(platform_launches_find(fixture->store, look_ups, LAUNCH_LOOK_UPS_MAX, &fixture->error));
    for (size_t i = 0; i < LAUNCH_LOOK_UPS_MAX; i++) {
        assert_int_equal(look_ups[i].known, i % 2 == 0);
        assert_int_equal(look_ups[i].launched, i % 2 == 0);
    }
    OK(platform_launches_find(fixture->store, NULL, 0, &fixture->error));
}
