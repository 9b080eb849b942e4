/* The players and customers that a PostgreSQL connection's batches have met. */
#include "stores/platform/postgres/known.h"
#include "tests.h"

static struct known_player make_player(size_t number)
{
    struct known_player player = {.number = (int64_t)number, .customer_number = 7};
    (void)snprintf(player.record.id, sizeof player.record.id, "ply_%zu", number);
    return player;
}

TEST(what_was_added_is_found_however_much_it_is)
{
    struct known *known = known_create();
    char id[64];
    assert_true(known_has_room(known, KNOWN_MAX));
    for (size_t i = 0; i < KNOWN_MAX; i++) {
        const struct known_player player = make_player(i);
        known_add_player(known, &player);
    }
    for (size_t i = 0; i < KNOWN_MAX; i++) {
        (void)snprintf(id, sizeof id, "ply_%zu", i);
        const struct known_player *player = known_player(known, id);
        assert_non_null(player);
        assert_int_equal(player->number, i);
        assert_int_equal(player->customer_number, 7);
    }
    assert_null(known_player(known, "ply_"));
    assert_null(
        known_player(known, "an id that is longer than any player's may ever be in a store"));
    assert_false(known_has_room(known, 1));
    assert_true(known_has_room(known, 0));
    known_destroy(&known);
    assert_null(known);
}

TEST(one_that_is_known_is_not_added_again)
{
    struct known *known = known_create();
    struct known_player player = make_player(1);
    known_add_player(known, &player);
    known_player(known, "ply_1")->has_account = true;
    player.number = 2;
    known_add_player(known, &player);
    assert_int_equal(known_player(known, "ply_1")->number, 1);
    assert_true(known_player(known, "ply_1")->has_account);
    assert_true(known_has_room(known, KNOWN_MAX - 1));
    assert_false(known_has_room(known, KNOWN_MAX));
    known_destroy(&known);
}

TEST(players_and_customers_are_kept_apart_and_forgotten)
{
    struct known *known = known_create();
    const struct known_player player = make_player(3);
    const struct known_owner customer = {.id = "cus_3", .number = 30};
    known_add_player(known, &player);
    known_add_owner(known, &customer);
    assert_null(known_owner(known, "ply_3"));
    assert_null(known_player(known, "cus_3"));
    assert_int_equal(known_owner(known, "cus_3")->number, 30);
    known_forget(known);
    assert_null(known_player(known, "ply_3"));
    assert_null(known_owner(known, "cus_3"));
    assert_true(known_has_room(known, KNOWN_MAX));
    known_add_player(known, &player);
    assert_int_equal(known_player(known, "ply_3")->number, 3);
    known_destroy(&known);
}
