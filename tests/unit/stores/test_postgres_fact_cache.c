/* The players and customers that a PostgreSQL connection's batches have met. */
#include "stores/platform/postgres/fact_cache.h"
#include "tests.h"

static struct cached_player make_player(size_t number)
{
    struct cached_player player = {.number = (int64_t)number, .customer_number = 7};
    (void)snprintf(player.record.id, sizeof player.record.id, "ply_%zu", number);
    return player;
}

TEST(what_was_added_is_found_however_much_it_is)
{
    struct fact_cache *cache = fact_cache_create();
    char id[64];
    assert_true(fact_cache_has_room(cache, FACT_CACHE_MAX));
    for (size_t i = 0; i < FACT_CACHE_MAX; i++) {
        const struct cached_player player = make_player(i);
        fact_cache_add_player(cache, &player);
    }
    for (size_t i = 0; i < FACT_CACHE_MAX; i++) {
        (void)snprintf(id, sizeof id, "ply_%zu", i);
        const struct cached_player *player = fact_cache_player(cache, id);
        assert_non_null(player);
        assert_int_equal(player->number, i);
        assert_int_equal(player->customer_number, 7);
    }
    assert_null(fact_cache_player(cache, "ply_"));
    assert_null(
        fact_cache_player(cache, "an id that is longer than any player's may ever be in a store"));
    assert_false(fact_cache_has_room(cache, 1));
    assert_true(fact_cache_has_room(cache, 0));
    fact_cache_destroy(&cache);
    assert_null(cache);
}

TEST(one_that_is_known_is_not_added_again)
{
    struct fact_cache *cache = fact_cache_create();
    struct cached_player player = make_player(1);
    fact_cache_add_player(cache, &player);
    fact_cache_player(cache, "ply_1")->has_account = true;
    player.number = 2;
    fact_cache_add_player(cache, &player);
    assert_int_equal(fact_cache_player(cache, "ply_1")->number, 1);
    assert_true(fact_cache_player(cache, "ply_1")->has_account);
    assert_true(fact_cache_has_room(cache, FACT_CACHE_MAX - 1));
    assert_false(fact_cache_has_room(cache, FACT_CACHE_MAX));
    fact_cache_destroy(&cache);
}

TEST(players_and_customers_are_kept_apart_and_forgotten)
{
    struct fact_cache *cache = fact_cache_create();
    const struct cached_player player = make_player(3);
    const struct cached_owner customer = {.id = "cus_3", .number = 30};
    fact_cache_add_player(cache, &player);
    fact_cache_add_owner(cache, &customer);
    assert_null(fact_cache_owner(cache, "ply_3"));
    assert_null(fact_cache_player(cache, "cus_3"));
    assert_int_equal(fact_cache_owner(cache, "cus_3")->number, 30);
    fact_cache_empty(cache);
    assert_null(fact_cache_player(cache, "ply_3"));
    assert_null(fact_cache_owner(cache, "cus_3"));
    assert_true(fact_cache_has_room(cache, FACT_CACHE_MAX));
    fact_cache_add_player(cache, &player);
    assert_int_equal(fact_cache_player(cache, "ply_3")->number, 3);
    fact_cache_destroy(&cache);
}
