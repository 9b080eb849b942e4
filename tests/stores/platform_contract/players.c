/*
 * The contract of players and the currencies that they have money in.
 */
#include "platform_contract/contract.h"

TEST_OF(fixture, one_customer_reference_and_currency_is_one_player_for_ever)
{
    add_two_customers(fixture);
    struct player_record player = open_player(fixture, "cus_One", "alice", "EUR", 2);
    assert_int_equal(strlen(player.id), 20);
    assert_memory_equal(player.id, "ply_", 4);
    assert_string_equal(player.customer_id, "cus_One");
    assert_string_equal(player.reference, "alice");
    assert_string_equal(player.currency, "EUR");
    assert_int_equal(player.currency_exponent, 2);
    assert_true(player.created_ms > 0);
    struct player_record again = open_player(fixture, "cus_One", "alice", "EUR", 2);
    assert_memory_equal(&again, &player, sizeof player);
    struct player_record other[] = {
        open_player(fixture, "cus_Two", "alice", "EUR", 2),
        open_player(fixture, "cus_One", "alice", "USD", 2),
        open_player(fixture, "cus_One", "Alice", "EUR", 2),
    };
    for (size_t i = 0; i < 3; i++)
        assert_string_not_equal(other[i].id, player.id);
    struct player_record got = {0};
    OK(platform_get(fixture->store, &player_table, player.id, &got, &fixture->error));
    assert_memory_equal(&got, &player, sizeof player);
    uint64_t revision = 99;
    OK(platform_revision(fixture->store, &revision, &fixture->error));
    assert_int_equal(revision, 2); /* of the two customers: a player takes none */
}

TEST_OF(fixture, a_currency_keeps_the_exponent_of_its_first_use)
{
    add_two_customers(fixture);
    assert_int_equal(open_player(fixture, "cus_One", "a", "ISK", 2).currency_exponent, 2);
    assert_int_equal(open_player(fixture, "cus_Two", "b", "ISK", 0).currency_exponent, 2);
    assert_int_equal(open_player(fixture, "cus_One", "a", "ISK", 4).currency_exponent, 2);
    assert_int_equal(open_player(fixture, "cus_One", "a", "JPY", 0).currency_exponent, 0);
}

TEST_OF(fixture, a_withdrawn_currency_is_for_the_players_who_have_it)
{
    struct player_record player;
    add_two_customers(fixture);
    assert_int_equal(
        platform_player_open(fixture->store, "cus_One", "new", "ANG", 2, &player, &fixture->error),
        STATUS_INVALID);
    struct player_record old = open_player(fixture, "cus_One", "old", "XCG", 2);
    (void)snprintf(old.id, sizeof old.id, "ply_0123456789abcdef");
    (void)snprintf(old.currency, sizeof old.currency, "ANG");
    OK(platform_player_put(fixture->store, &old, 1, &fixture->error));
    assert_string_equal(open_player(fixture, "cus_One", "old", "ANG", 2).id, old.id);
}

TEST_OF(fixture, players_that_are_not_acceptable_are_refused)
{
    add_two_customers(fixture);
    static const char longest[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    static const struct {
        const char *customer, *reference, *currency;
        uint8_t exponent;
        enum status status;
    } cases[] = {
        {"cus_One", "", "EUR", 2, STATUS_INVALID},
        {"cus_One", "a b", "EUR", 2, STATUS_INVALID},
        {"cus_One", "a/b", "EUR", 2, STATUS_INVALID},
        {"cus_One", "\xc3\xa9", "EUR", 2, STATUS_INVALID},
        {"cus_One", "a", "eur", 2, STATUS_INVALID},
        {"cus_One", "a", "EU", 2, STATUS_INVALID},
        {"cus_One", "a", "EURO", 2, STATUS_INVALID},
        {"cus_One", "a", "EUR", 5, STATUS_INVALID},
        {"ply_One", "a", "EUR", 2, STATUS_INVALID},
        {"cus_None", "a", "EUR", 2, STATUS_NOT_FOUND},
    };
    struct player_record player = {0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(platform_player_open(fixture->store, cases[i].customer, cases[i].reference,
                                              cases[i].currency, cases[i].exponent, &player,
                                              &fixture->error),
                         cases[i].status);
    char over[66];
    (void)snprintf(over, sizeof over, "%sX", longest);
    assert_int_equal(
        platform_player_open(fixture->store, "cus_One", over, "EUR", 2, &player, &fixture->error),
        STATUS_INVALID);
    (void)open_player(fixture, "cus_One", longest, "EUR", 2);
    (void)open_player(fixture, "cus_One", "A.z_9:-", "EUR", 2);
    assert_int_equal(
        platform_get(fixture->store, &player_table, "ply_none", &player, &fixture->error),
        STATUS_NOT_FOUND);
}

#define OPENERS 4
#define PLAYERS_EACH 25
struct opener {
    struct platform_store *store;
    char ids[PLAYERS_EACH][PLAYER_ID_SIZE];
    enum status status;
};

static void *open_many(void *argument)
{
    struct opener *opener = argument;
    for (unsigned i = 0; i < PLAYERS_EACH && opener->status == STATUS_OK; i++) {
        char reference[16];
        struct player_record player = {0};
        (void)snprintf(reference, sizeof reference, "player-%u", i);
        opener->status =
            platform_player_open(opener->store, "cus_One", reference, "EUR", 2, &player, NULL);
        memcpy(opener->ids[i], player.id, sizeof player.id);
    }
    return NULL;
}

TEST_OF(fixture, players_opened_at_once_are_the_same_for_everybody)
{
    add_two_customers(fixture);
    pthread_t threads[OPENERS];
    static struct opener openers[OPENERS];
    for (unsigned i = 0; i < OPENERS; i++) {
        openers[i] = (struct opener){.store = open_store(fixture, false)};
        assert_int_equal(pthread_create(&threads[i], NULL, open_many, &openers[i]), 0);
    }
    for (unsigned i = 0; i < OPENERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < OPENERS; i++) {
        assert_int_equal(openers[i].status, STATUS_OK);
        assert_memory_equal(openers[i].ids, openers[0].ids, sizeof openers[0].ids);
        platform_store_close(&openers[i].store);
    }
}

struct players_seen {
    size_t count, most;
    struct player_record players[4];
};

static bool see_player(void *context, const void *visited)
{
    const struct player_record *record = visited;
    struct players_seen *seen = context;
    seen->players[seen->count++] = *record;
    return seen->count < seen->most;
}

TEST_OF(fixture, players_are_listed_as_created_and_can_be_put_into_another_store)
{
    struct players_seen seen = {.most = 4};
    struct player_record found;
    add_two_customers(fixture);
    struct player_record zoe = open_player(fixture, "cus_Two", "zoe", "EUR", 2);
    struct player_record bob = open_player(fixture, "cus_One", "bob", "JPY", 0);
    OK(platform_list(fixture->store, &player_table, NULL, see_player, &seen, &fixture->error));
    assert_int_equal(seen.count, 2);
    assert_memory_equal(&seen.players[0], &zoe, sizeof zoe);
    assert_memory_equal(&seen.players[1], &bob, sizeof bob);
    seen = (struct players_seen){.most = 1};
    OK(platform_list(fixture->store, &player_table, NULL, see_player, &seen, &fixture->error));
    assert_int_equal(seen.count, 1); /* stopped early */

    struct player_record put[2] = {zoe, zoe};
    memcpy(put[0].id, "ply_00000000000000A1", 21);
    memcpy(put[0].reference, "ann", 4);
    put[0].created_ms = 7;
    memcpy(put[1].id, "ply_00000000000000A2", 21);
    memcpy(put[1].reference, "zoe", 4);
    assert_int_equal(platform_player_put(fixture->store, put, 2, &fixture->error), STATUS_EXISTS);
    assert_int_equal(
        platform_get(fixture->store, &player_table, put[0].id, &found, &fixture->error),
        STATUS_NOT_FOUND); /* none, when one is refused */
    memcpy(put[1].currency, "GBP", 4);
    put[1].currency_exponent = 3; /* first use: frozen as given */
    OK(platform_player_put(fixture->store, put, 2, &fixture->error));
    OK(platform_get(fixture->store, &player_table, put[0].id, &found, &fixture->error));
    assert_memory_equal(&found, &put[0], sizeof found);
    OK(platform_get(fixture->store, &player_table, put[1].id, &found, &fixture->error));
    assert_memory_equal(&found, &put[1], sizeof found);
    memcpy(put[0].id, "ply_00000000000000A3", 21);
    memcpy(put[0].reference, "eve", 4);
    memcpy(put[0].customer_id, "cus_Nobody", 11);
    assert_int_equal(platform_player_put(fixture->store, put, 1, &fixture->error),
                     STATUS_NOT_FOUND);
}

static int64_t blocked_in_a_batch(struct platform_store *store, const char *player_id)
{
    static struct ledger_batch batch;
    struct error error = {0};
    bool unknown = false;
    memset(&batch, 0, sizeof batch);
    batch.player_count = 1;
    memcpy(batch.players[0].player_id, player_id, PLAYER_ID_SIZE);
    assert_int_equal(store->ledger->begin(store, &batch, &error), STATUS_OK);
    assert_true(batch.players[0].found);
    int64_t blocked_until_ms = batch.players[0].account.player.blocked_until_ms;
    assert_int_equal(store->ledger->commit(store, &batch, &unknown, &error), STATUS_OK);
    return blocked_until_ms;
}

static struct block_record block_of(const struct player_record *player)
{
    struct block_record block = {.blocked_ms = 77, .reason = "asked for a break"};
    memcpy(block.id, player->id, sizeof player->id);
    memcpy(block.player_id, player->id, sizeof player->id);
    memcpy(block.customer_id, player->customer_id, sizeof player->customer_id);
    memcpy(block.reference, player->reference, sizeof player->reference);
    return block;
}

/* Also where batches met the player before, as in another server. */
TEST_OF(fixture, a_blocked_player_is_blocked_in_the_next_batch_everywhere)
{
    add_two_customers(fixture);
    const struct block_record none = {0};
    struct player_record alice = open_player(fixture, "cus_One", "alice", "EUR", 2);
    struct player_record bob = open_player(fixture, "cus_One", "bob", "EUR", 2);
    struct block_record read = {0};
    struct platform_store *other = open_store(fixture, false);
    assert_int_equal(blocked_in_a_batch(other, alice.id), 0);
    assert_int_equal(alice.blocked_until_ms, 0);
    struct block_record block = block_of(&alice);
    OK(platform_block_put(fixture->store, &block, &none, &fixture->error));
    OK(platform_get(other, &block_table, alice.id, &read, &fixture->error));
    assert_memory_equal(&read, &block, sizeof read);
    assert_int_equal(blocked_in_a_batch(other, alice.id), PLAYER_BLOCKED_FOR_GOOD);
    assert_int_equal(blocked_in_a_batch(fixture->store, alice.id), PLAYER_BLOCKED_FOR_GOOD);
    assert_int_equal(blocked_in_a_batch(other, bob.id), 0);
    assert_int_equal(open_player(fixture, "cus_One", "alice", "EUR", 2).blocked_until_ms,
                     PLAYER_BLOCKED_FOR_GOOD);
    struct block_record until = block;
    until.until_ms = 99;
    OK(platform_block_put(other, &until, &block, &fixture->error));
    assert_int_equal(blocked_in_a_batch(fixture->store, alice.id), 99);
    /* Another writer was quicker than the one who read `block`. */
    assert_int_equal(platform_block_put(fixture->store, &none, &block, NULL), STATUS_INVALID);
    assert_int_equal(platform_block_put(fixture->store, &block, &block, NULL), STATUS_EXISTS);
    assert_int_equal(platform_block_put(fixture->store, &block, &none, NULL), STATUS_EXISTS);
    block.blocked_ms = 0;
    OK(platform_block_put(other, &block, &until, &fixture->error));
    assert_int_equal(blocked_in_a_batch(fixture->store, alice.id), 0);
    assert_int_equal(blocked_in_a_batch(other, alice.id), 0);
    memcpy(block.id, "ply_none", 9);
    memcpy(block.player_id, "ply_none", 9);
    assert_int_equal(platform_block_put(other, &block, &none, NULL), STATUS_NOT_FOUND);
    platform_store_close(&other);
}

TEST_OF(fixture, a_block_of_a_reference_holds_in_every_currency_also_in_a_later_one)
{
    add_two_customers(fixture);
    const struct block_record none = {0};
    struct player_record euro = open_player(fixture, "cus_One", "alice", "EUR", 2);
    struct player_record other = open_player(fixture, "cus_Two", "alice", "EUR", 2);
    struct player_record longer = open_player(fixture, "cus_One", "alice2", "EUR", 2);
    struct block_record named = block_of(&euro);
    named.player_id[0] = '\0';
    named.until_ms = 500;
    block_name(named.id, named.customer_id, named.reference, false);
    assert_string_equal(named.id, "cus_One:alice");
    assert_int_equal(blocked_in_a_batch(fixture->store, euro.id), 0);
    OK(platform_block_put(fixture->store, &named, &none, &fixture->error));
    struct player_record yen = open_player(fixture, "cus_One", "alice", "JPY", 0);
    assert_int_equal(yen.blocked_until_ms, 500);
    assert_int_equal(blocked_in_a_batch(fixture->store, euro.id), 500);
    assert_int_equal(blocked_in_a_batch(fixture->store, yen.id), 500);
    assert_int_equal(blocked_in_a_batch(fixture->store, other.id), 0);
    assert_int_equal(blocked_in_a_batch(fixture->store, longer.id), 0);
    assert_true(player_is_blocked(&yen, 499) && !player_is_blocked(&yen, 500));

    /* Of a block of its own and one of its reference, the later end counts. */
    struct block_record own = block_of(&euro);
    own.until_ms = 400;
    OK(platform_block_put(fixture->store, &own, &none, &fixture->error));
    assert_int_equal(blocked_in_a_batch(fixture->store, euro.id), 500);
    struct block_record taken_away = named;
    taken_away.blocked_ms = taken_away.until_ms = 0;
    OK(platform_block_put(fixture->store, &taken_away, &named, &fixture->error));
    assert_int_equal(blocked_in_a_batch(fixture->store, euro.id), 400);
    assert_int_equal(blocked_in_a_batch(fixture->store, yen.id), 0);
}

TEST_OF(fixture, players_are_found_by_their_customers_name_for_them)
{
    struct player_record found[4];
    size_t count = 9;
    add_two_customers(fixture);
    struct player_record euro = open_player(fixture, "cus_One", "alice", "EUR", 2);
    struct player_record yen = open_player(fixture, "cus_One", "alice", "JPY", 0);
    (void)open_player(fixture, "cus_Two", "alice", "EUR", 2);
    OK(platform_players_named(fixture->store, "cus_One", "alice", found, 4, &count,
                              &fixture->error));
    assert_int_equal(count, 2);
    assert_memory_equal(&found[0], &euro, sizeof euro);
    assert_memory_equal(&found[1], &yen, sizeof yen);
    OK(platform_players_named(fixture->store, "cus_One", "alice", found, 1, &count,
                              &fixture->error));
    assert_int_equal(count, 1);
    OK(platform_players_named(fixture->store, "cus_One", "bob", found, 4, &count, &fixture->error));
    assert_int_equal(count, 0);
}
