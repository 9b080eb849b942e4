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
    struct fact_cache cache = {0};
    char id[64];
    assert_true(fact_cache_has_room(&cache, FACT_CACHE_MAX));
    for (size_t i = 0; i < FACT_CACHE_MAX; i++) {
        const struct cached_player player = make_player(i);
        fact_cache_add(&cache, &player, sizeof player);
    }
    for (size_t i = 0; i < FACT_CACHE_MAX; i++) {
        (void)snprintf(id, sizeof id, "ply_%zu", i);
        const struct cached_player *player = fact_cache_find(&cache, id);
        assert_non_null(player);
        assert_int_equal(player->number, i);
        assert_int_equal(player->customer_number, 7);
    }
    assert_null(fact_cache_find(&cache, "ply_"));
    assert_null(
        fact_cache_find(&cache, "an id that is longer than any player's may ever be in a store"));
    assert_false(fact_cache_has_room(&cache, 1));
    assert_true(fact_cache_has_room(&cache, 0));
    fact_cache_empty(&cache);
}

TEST(one_that_is_known_is_not_added_again)
{
    struct fact_cache cache = {0};
    struct cached_player player = make_player(1);
    fact_cache_add(&cache, &player, sizeof player);
    struct cached_player *known = fact_cache_find(&cache, "ply_1");
    known->has_account = true;
    player.number = 2;
    fact_cache_add(&cache, &player, sizeof player);
    assert_ptr_equal(fact_cache_find(&cache, "ply_1"), known);
    assert_int_equal(known->number, 1);
    assert_true(known->has_account);
    assert_true(fact_cache_has_room(&cache, FACT_CACHE_MAX - 1));
    assert_false(fact_cache_has_room(&cache, FACT_CACHE_MAX));
    fact_cache_empty(&cache);
}

TEST(an_emptied_cache_knows_nothing_and_takes_all_again)
{
    struct fact_cache cache = {0};
    const struct cached_owner customer = {.id = "cus_3", .number = 30};
    fact_cache_add(&cache, &customer, sizeof customer);
    assert_int_equal(((struct cached_owner *)fact_cache_find(&cache, "cus_3"))->number, 30);
    fact_cache_empty(&cache);
    assert_null(fact_cache_find(&cache, "cus_3"));
    assert_true(fact_cache_has_room(&cache, FACT_CACHE_MAX));
    fact_cache_add(&cache, &customer, sizeof customer);
    assert_non_null(fact_cache_find(&cache, "cus_3"));
    fact_cache_empty(&cache);
}
