/*
 * The contract of the ledger: batches, and walks over what they kept. wallet/ledger.c is tested by
 * tests/unit/wallet/test_ledger.c, several instances at once by ledger_writers.c.
 */
#include "platform_contract/contract.h"

/* The next entry of a player, as wallet/ledger.c makes one; of a provider's, if `provider` is not
 * "", with all that one has. */
static void enter_as(struct ledger_batch *batch, const char *provider, const char *id,
                     int64_t amount_minor)
{
    struct ledger_batch_player *player = &batch->players[0];
    struct ledger_transaction *kept = &batch->kept[batch->kept_count++];
    player->account.balance_minor += amount_minor;
    *kept = (struct ledger_transaction){.operation = LEDGER_CREDIT,
                                        .outcome = LEDGER_APPLIED,
                                        .currency_exponent = 2,
                                        .amount_minor = amount_minor,
                                        .movement_minor = amount_minor,
                                        .balance_minor = player->account.balance_minor,
                                        .sequence = ++player->account.sequence,
                                        .created_ms = 5};
    if (provider[0] != '\0') {
        (void)snprintf(kept->provider_id, sizeof kept->provider_id, "%s", provider);
        memcpy(kept->launch_id, "lau_1", 6);
        memcpy(kept->game_id, "mirage", 7);
        memcpy(kept->round_id, "r-1", 4);
        kept->kind = LEDGER_JACKPOT;
        kept->round_ended = true;
    }
    memcpy(kept->customer_id, player->account.player.customer_id, sizeof kept->customer_id);
    memcpy(kept->player_id, player->account.player.id, sizeof kept->player_id);
    memcpy(kept->currency, "EUR", 4);
    (void)snprintf(kept->transaction_id, sizeof kept->transaction_id, "%s", id);
    ledger_entry_hash(kept, player->account.head, kept->hash);
    memcpy(player->account.head, kept->hash, sizeof kept->hash);
    player->changed = true;
    batch->clearings[player->clearing].balance_minor -= amount_minor;
    batch->clearings[player->clearing].changed = true;
}

/* The first entry of a player, the customer's. */
static void enter_first(struct ledger_batch *batch, const char *id, int64_t amount_minor)
{
    batch->players[0].account.sequence = 0;
    enter_as(batch, "", id, amount_minor);
}

TEST_OF(fixture, a_batch_of_the_ledger_is_there_when_it_was_committed)
{
    static struct ledger_batch batch;
    struct ledger_account account;
    bool unknown = true;
    add_two_customers(fixture);
    struct player_record player = open_player(fixture, "cus_One", "alice", "EUR", 2);
    memset(&batch, 0, sizeof batch);
    batch.player_count = 2;
    memcpy(batch.players[0].player_id, player.id, sizeof player.id);
    memcpy(batch.players[1].player_id, "ply_nobody", 11);
    batch.fact_count = 1;
    memcpy(batch.facts[0].owner_id, "cus_One", 8);
    memcpy(batch.facts[0].transaction_id, "t-1", 4);
    OK(fixture->store->ledger->begin(fixture->store, &batch, &fixture->error));
    assert_true(batch.players[0].found);
    assert_false(batch.players[1].found);
    assert_false(batch.facts[0].id.known || batch.facts[0].id.rolled_back);
    assert_int_equal(batch.players[0].account.sequence, 0);
    enter_first(&batch, "t-1", 70);
    struct platform_store *other = open_store(fixture, false);
    OK(platform_ledger_balance(other, player.id, &account, &fixture->error));
    assert_int_equal(account.balance_minor, 0); /* not before the commit, and without waiting */
    OK(fixture->store->ledger->commit(fixture->store, &batch, &unknown, &fixture->error));
    assert_false(unknown);
    OK(platform_ledger_balance(other, player.id, &account, &fixture->error));
    assert_int_equal(account.balance_minor, 70);
    OK(other->ledger->id(other, &batch.facts[0], &fixture->error));
    assert_true(batch.facts[0].id.known);
    assert_memory_equal(&batch.facts[0].id.transaction, &batch.kept[0], sizeof batch.kept[0]);
    OK(other->ledger->recover(other, &fixture->error));
    platform_store_close(&other);
}

/* How many there are of this customer and with these words; the ids of the page come into `page`. */
static uint64_t active(struct fixture *fixture, const char *customer_id, const char *words,
                       uint64_t offset, uint64_t limit, struct players_page *page)
{
    OK(platform_players_active(fixture->store, customer_id, words, offset, limit, page,
                               &fixture->error));
    return page->found;
}

TEST_OF(fixture, players_are_listed_with_the_last_active_first)
{
    static struct ledger_batch batch;
    static struct players_page page;
    bool unknown = true;
    add_two_customers(fixture);
    struct player_record players[] = {open_player(fixture, "cus_One", "a_1", "EUR", 2),
                                      open_player(fixture, "cus_One", "a_2", "EUR", 2),
                                      open_player(fixture, "cus_Two", "ax3", "EUR", 2)};
    assert_int_equal(active(fixture, "", "", 0, 10, &page), 3);
    assert_string_equal(page.players[0].account.player.id,
                        players[2].id); /* none was active: the newest first */
    assert_int_equal(page.players[0].active_ms, 0);
    memset(&batch, 0, sizeof batch);
    batch.player_count = 1;
    memcpy(batch.players[0].player_id, players[0].id, sizeof players[0].id);
    batch.fact_count = 1;
    ledger_ask(&batch.facts[0], "cus_One", "t-1");
    OK(fixture->store->ledger->begin(fixture->store, &batch, &fixture->error));
    enter_first(&batch, "t-1", 70);
    OK(fixture->store->ledger->commit(fixture->store, &batch, &unknown, &fixture->error));
    assert_int_equal(active(fixture, "", "", 0, 10, &page), 3);
    assert_int_equal(page.count, 3);
    assert_string_equal(page.players[0].account.player.id, players[0].id);
    assert_int_equal(page.players[0].account.balance_minor, 70);
    assert_int_equal(page.players[0].active_ms, batch.kept[0].created_ms);
    assert_string_equal(page.players[1].account.player.id, players[2].id);
    assert_int_equal(active(fixture, "", "", 0, 1, &page), 3); /* one page after the other */
    assert_string_equal(page.players[0].account.player.id, players[0].id);
    for (size_t next = 3; next-- > 1;) {
        assert_int_equal(page.count, 1);
        assert_int_not_equal(page.next, 0);
        assert_int_equal(active(fixture, "", "", page.next, 1, &page), 3);
        assert_string_equal(page.players[0].account.player.id, players[next].id);
    }
    assert_int_equal(page.next, 0);
    assert_int_equal(active(fixture, "cus_One", "", 0, 10, &page), 2);
    assert_int_equal(active(fixture, "", "A_", 0, 10, &page), 2); /* and not ax3 */
    assert_int_equal(active(fixture, "cus_Two", "a_1", 0, 10, &page), 0);
    assert_int_equal(active(fixture, "", players[1].id, 0, 10, &page), 1);
    assert_string_equal(page.players[0].account.player.id, players[1].id);
}

struct transactions_seen {
    size_t count;
    struct ledger_transaction transactions[4];
};

static bool see_transaction(void *context, const struct ledger_transaction *transaction)
{
    struct transactions_seen *seen = context;
    seen->transactions[seen->count++] = *transaction;
    return seen->count < 4;
}

static bool see_decline(void *context, const struct ledger_transaction *decline,
                        const uint8_t *before)
{
    assert_null(before);
    return see_transaction(context, decline);
}

TEST_OF(fixture, transactions_are_read_in_order_of_decision_declines_included)
{
    static struct ledger_batch batch;
    struct transactions_seen seen = {0};
    bool unknown = true;
    add_two_customers(fixture);
    struct player_record player = open_player(fixture, "cus_One", "alice", "EUR", 2);
    memset(&batch, 0, sizeof batch);
    batch.player_count = 1;
    memcpy(batch.players[0].player_id, player.id, sizeof player.id);
    OK(fixture->store->ledger->begin(fixture->store, &batch, &fixture->error));
    enter_first(&batch, "t-9", 70);
    struct ledger_transaction *declined = &batch.kept[batch.kept_count++];
    *declined = batch.kept[0];
    memcpy(declined->transaction_id, "t-1", 4);
    memcpy(declined->game_id, "book", 5);
    declined->operation = LEDGER_DEBIT;
    declined->outcome = LEDGER_INSUFFICIENT_FUNDS;
    declined->amount_minor = 71;
    declined->sequence = 0;
    declined->movement_minor = declined->balance_minor = 0;
    ledger_chain_decline(&batch.players[0].account, declined);
    batch.players[0].declined = true;
    OK(fixture->store->ledger->commit(fixture->store, &batch, &unknown, &fixture->error));
    OK(platform_ledger_declines(fixture->store, see_decline, &seen, &fixture->error));
    assert_int_equal(seen.count, 1);
    assert_memory_equal(&seen.transactions[0], declined, sizeof *declined);
    seen.count = 0;
    memset(declined->hash, 0,
           sizeof declined->hash); /* which only that walk tells, and the position */
    declined->decline = 0;
    OK(platform_ledger_transactions(fixture->store, see_transaction, &seen, &fixture->error));
    assert_int_equal(seen.count, 2);
    assert_memory_equal(&seen.transactions[0], &batch.kept[0], sizeof batch.kept[0]);
    assert_memory_equal(&seen.transactions[1], &batch.kept[1], sizeof batch.kept[1]);

    seen.count = 0; /* and what was entered at a time: from and until before */
    OK(platform_ledger_entered(fixture->store, &(struct ledger_scope){.from_ms = 0, .to_ms = 5},
                               see_transaction, &seen, &fixture->error));
    OK(platform_ledger_entered(fixture->store, &(struct ledger_scope){.from_ms = 6, .to_ms = 9},
                               see_transaction, &seen, &fixture->error));
    assert_int_equal(seen.count, 0);
    OK(platform_ledger_entered(fixture->store, &(struct ledger_scope){.from_ms = 5, .to_ms = 6},
                               see_transaction, &seen, &fixture->error));
    assert_int_equal(seen.count, 1);
    assert_memory_equal(&seen.transactions[0], &batch.kept[0], sizeof batch.kept[0]);
    if (fixture->store->ledger->upkeep != NULL) /* changes nothing of it */
        OK(fixture->store->ledger->upkeep(fixture->store, &fixture->error));
    OK(platform_ledger_entered(fixture->store, &(struct ledger_scope){.from_ms = 5, .to_ms = 6},
                               see_transaction, &seen, &fixture->error));
    assert_int_equal(seen.count, 2);
}

TEST_OF(fixture, an_id_of_a_provider_is_another_than_the_customers)
{
    static struct ledger_batch batch;
    static const char *const owners[] = {"cus_One", "acme", "oasis"};
    struct transactions_seen seen = {0};
    bool unknown = true;
    add_two_customers(fixture);
    for (size_t i = 1; i < 3; i++) {
        const struct provider_record record = provider(owners[i]);
        OK(platform_add(fixture->store, &provider_table, &record, &fixture->error));
    }
    struct player_record player = open_player(fixture, "cus_One", "alice", "EUR", 2);
    memset(&batch, 0, sizeof batch);
    batch.player_count = 1;
    memcpy(batch.players[0].player_id, player.id, sizeof player.id);
    batch.fact_count = 3;
    for (size_t i = 0; i < 3; i++) {
        memcpy(batch.facts[i].owner_id, owners[i], strlen(owners[i]));
        memcpy(batch.facts[i].transaction_id, "t-1", 4);
    }
    OK(fixture->store->ledger->begin(fixture->store, &batch, &fixture->error));
    enter_as(&batch, "", "t-1", 70);
    enter_as(&batch, "acme", "t-1", 30);
    OK(fixture->store->ledger->commit(fixture->store, &batch, &unknown, &fixture->error));
    for (size_t i = 0; i < 3; i++) {
        struct ledger_id *id = &batch.facts[i].id;
        OK(fixture->store->ledger->id(fixture->store, &batch.facts[i], &fixture->error));
        assert_int_equal(id->known, i < 2);
        if (id->known)
            assert_memory_equal(&id->transaction, &batch.kept[i], sizeof batch.kept[i]);
    }
    OK(platform_ledger_transactions(fixture->store, see_transaction, &seen, &fixture->error));
    assert_int_equal(seen.count, 2);
    assert_memory_equal(seen.transactions, batch.kept, 2 * sizeof batch.kept[0]);
}

TEST_OF(fixture, a_batch_that_does_not_follow_is_refused_whole)
{
    static struct ledger_batch batch;
    struct ledger_account account;
    bool unknown = true;
    add_two_customers(fixture);
    struct player_record player = open_player(fixture, "cus_One", "alice", "EUR", 2);
    memset(&batch, 0, sizeof batch);
    batch.player_count = 1;
    memcpy(batch.players[0].player_id, player.id, sizeof player.id);
    OK(fixture->store->ledger->begin(fixture->store, &batch, &fixture->error));
    enter_first(&batch, "t-1", 70);
    enter_first(&batch, "t-2", 70); /* sequence 1 once more */
    assert_int_not_equal(
        fixture->store->ledger->commit(fixture->store, &batch, &unknown, &fixture->error),
        STATUS_OK);
    assert_false(unknown);
    OK(platform_ledger_balance(fixture->store, player.id, &account, &fixture->error));
    assert_int_equal(account.sequence, 0);
    assert_int_equal(account.balance_minor, 0);
}
