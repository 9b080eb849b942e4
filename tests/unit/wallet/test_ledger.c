/*
 * The ledger's batches, on a real embedded store: many requests in one transaction come to the same
 * as one after the other, what was answered is what is stored, and a full queue says so at once.
 */
#include <time.h>
#include <unistd.h>

#include "stores/platform_players.h"
#include "stores/platform_records.h"
#include "stores/platform_sums.h"
#include "submit_job.h"
#include "test_directory.h"
#include "tests.h"
#include "wallet/ledger.h"

struct fixture {
    char directory[TEST_DIRECTORY_SIZE];
    char uri[128];
    struct platform_store *store;
    struct ledger *ledger;
    uv_loop_t loop;
    struct mailbox *mailbox;
    size_t delivered;
    struct player_record players[3]; /* two of cus_One, one of cus_Two */
    struct error error;
};

struct asked {
    struct ledger_job job; /* first */
    struct fixture *fixture;
};

#define OK(call) ASSERT_OK(call, fixture->error)

static struct platform_store *open_store(struct fixture *fixture, bool create)
{
    struct platform_store *store = NULL;
    struct platform_store_options options = {
        .uri = fixture->uri, .timeout_ms = 30000, .create = create};
    OK(platform_store_open(&store, &options, &fixture->error));
    return store;
}

static void start(struct fixture *fixture, size_t queue_limit, size_t batch_max)
{
    const struct platform_store_options store = {.uri = fixture->uri, .timeout_ms = 30000};
    fixture->ledger = ledger_create(&store, queue_limit, batch_max, 0);
}

static void add_customer(struct fixture *fixture, const char *id)
{
    struct customer_record record = {
        .enabled = true, .usable = true, .casino = true, .created_ms = 1763700000000};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.name, sizeof record.name, "%s", id);
    OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    uint32_t before;
    uint32_t after;
    test_directory_make(fixture->directory);
    (void)snprintf(fixture->uri, sizeof fixture->uri, "sqlite:%s/platform.db", fixture->directory);
    fixture->store = open_store(fixture, true);
    OK(platform_store_migrate(fixture->store, &before, &after, &fixture->error));
    add_customer(fixture, "cus_One");
    add_customer(fixture, "cus_Two");
    OK(platform_player_open(fixture->store, "cus_One", "a", "EUR", 2, &fixture->players[0],
                            &fixture->error));
    OK(platform_player_open(fixture->store, "cus_One", "b", "EUR", 2, &fixture->players[1],
                            &fixture->error));
    OK(platform_player_open(fixture->store, "cus_Two", "a", "JPY", 0, &fixture->players[2],
                            &fixture->error));
    assert_int_equal(uv_loop_init(&fixture->loop), 0);
    fixture->mailbox = mailbox_create(&fixture->loop);
    start(fixture, 4096, LEDGER_BATCH_MAX);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    static const char *const names[] = {"platform.db", "platform.db-wal", "platform.db-shm",
                                        "platform.db-last"};
    ledger_destroy(&fixture->ledger);
    mailbox_destroy(&fixture->mailbox);
    (void)uv_run(&fixture->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    platform_store_close(&fixture->store);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s/%s", fixture->directory, names[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(fixture->directory), 0);
    free(fixture);
    return 0;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void on_answer(struct mail *mail)
{
    ((struct asked *)(void *)mail)->fixture->delivered++;
}

static void prepare(struct fixture *fixture, struct asked *asked, enum ledger_operation operation,
                    int player, const char *id, int64_t amount, const char *reference)
{
    struct wallet_request *request = &asked->job.request;
    const struct player_record *record = &fixture->players[player];
    memset(asked, 0, sizeof *asked);
    asked->fixture = fixture;
    asked->job.mailbox = fixture->mailbox;
    asked->job.mail.deliver = on_answer;
    request->operation = operation;
    request->amount_minor = amount;
    memcpy(request->customer_id, record->customer_id, sizeof record->customer_id);
    memcpy(request->player_id, record->id, sizeof record->id);
    (void)snprintf(request->transaction_id, sizeof request->transaction_id, "%s", id);
    (void)snprintf(request->reference, sizeof request->reference, "%s", reference);
    if (operation == LEDGER_DEBIT || operation == LEDGER_CREDIT)
        memcpy(request->currency, record->currency, sizeof request->currency);
}

/* Turns the loop until so many answers have come; returns how many did. */
static size_t run_until(struct fixture *fixture, size_t count)
{
    uv_timer_t keeps_alive; /* the mailbox alone does not */
    assert_int_equal(uv_timer_init(&fixture->loop, &keeps_alive), 0);
    assert_int_equal(uv_timer_start(&keeps_alive, (uv_timer_cb)(void (*)(void))abort, 60000, 0), 0);
    while (fixture->delivered < count)
        (void)uv_run(&fixture->loop, UV_RUN_ONCE);
    size_t delivered = fixture->delivered;
    uv_close((uv_handle_t *)&keeps_alive, NULL);
    (void)uv_run(&fixture->loop, UV_RUN_NOWAIT);
    return delivered;
}

static void wait_for(struct fixture *fixture, size_t count)
{
    (void)run_until(fixture, count);
    fixture->delivered -= count;
}

static struct wallet_answer ask(struct fixture *fixture, enum ledger_operation operation,
                                int player, const char *id, int64_t amount, const char *reference)
{
    struct asked asked;
    prepare(fixture, &asked, operation, player, id, amount, reference);
    assert_int_equal(submit_job(fixture->ledger, &asked.job), STATUS_OK);
    wait_for(fixture, 1);
    return asked.job.answer;
}

static void assert_applied(const struct wallet_answer *answer, uint64_t sequence, int64_t balance)
{
    assert_int_equal(answer->kind, WALLET_ANSWER_TRANSACTION);
    assert_int_equal(answer->transaction.outcome, LEDGER_APPLIED);
    assert_int_equal(answer->transaction.sequence, sequence);
    assert_int_equal(answer->transaction.balance_minor, balance);
}

/* ---- the store proves itself ----------------------------------------------------------------- */

struct proof {
    uint8_t hash[LEDGER_HASH_SIZE];
    char player_id[PLAYER_ID_SIZE];
    uint64_t sequence;
    int64_t balance;
    size_t entries;
};

static bool prove_entry(void *context, const struct ledger_transaction *entry)
{
    struct proof *proof = context;
    uint8_t hash[LEDGER_HASH_SIZE];
    if (strcmp(proof->player_id, entry->player_id) != 0) {
        *proof = (struct proof){.entries = proof->entries};
        memcpy(proof->player_id, entry->player_id, sizeof proof->player_id);
    }
    ledger_entry_hash(entry, proof->hash, hash);
    assert_memory_equal(hash, entry->hash, sizeof hash);
    memcpy(proof->hash, hash, sizeof hash);
    proof->sequence++;
    proof->balance += entry->movement_minor;
    proof->entries++;
    assert_int_equal(entry->sequence, proof->sequence);
    assert_true(entry->balance_minor == proof->balance && proof->balance >= 0);
    return true;
}

static bool prove_clearing(void *context, const struct ledger_clearing *clearing, int64_t players)
{
    assert_true(clearing->balance_minor == -players);
    return true;
}

static size_t prove(struct fixture *fixture)
{
    struct proof proof = {0};
    OK(platform_ledger_entries(fixture->store, (struct ledger_whose){0}, prove_entry, &proof,
                               &fixture->error));
    OK(platform_ledger_clearings(fixture->store, prove_clearing, NULL, &fixture->error));
    OK(fixture->store->ledger->counterparts(fixture->store, &fixture->error));
    OK(fixture->store->ledger->recover(fixture->store, &fixture->error));
    return proof.entries;
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST_OF(fixture, what_is_answered_is_stored_and_given_again)
{
    struct wallet_answer first = ask(fixture, LEDGER_CREDIT, 0, "c", 500, "");
    assert_applied(&first, 1, 500);
    assert_false(first.replayed);
    struct wallet_answer debit = ask(fixture, LEDGER_DEBIT, 0, "d", 200, "");
    assert_applied(&debit, 2, 300);
    struct wallet_answer again = ask(fixture, LEDGER_CREDIT, 0, "c", 500, "");
    assert_true(again.replayed);
    again.replayed = false;
    assert_memory_equal(&again.transaction, &first.transaction, sizeof again.transaction);
    assert_int_equal(ask(fixture, LEDGER_CREDIT, 0, "c", 501, "").verdict,
                     WALLET_TRANSACTION_CONFLICT);
    struct wallet_answer balance = ask(fixture, LEDGER_BALANCE, 0, "", 0, "");
    assert_int_equal(balance.kind, WALLET_ANSWER_BALANCE);
    assert_int_equal(balance.account.balance_minor, 300);
    assert_int_equal(balance.account.sequence, 2);
    ledger_destroy(&fixture->ledger);
    start(fixture, 4096, LEDGER_BATCH_MAX);
    again = ask(fixture, LEDGER_CREDIT, 0, "c", 500, "");
    assert_true(again.replayed);
    assert_memory_equal(&again.transaction, &first.transaction, sizeof again.transaction);
    assert_int_equal(prove(fixture), 2);
}

TEST_OF(fixture, customers_see_their_own_players_and_ids_alone)
{
    struct wallet_answer one = ask(fixture, LEDGER_CREDIT, 0, "same", 5, "");
    struct wallet_answer two = ask(fixture, LEDGER_CREDIT, 2, "same", 7, "");
    assert_applied(&one, 1, 5);
    assert_applied(&two, 1, 7);
    struct asked asked;
    for (int i = 0; i < 2; i++) {
        prepare(fixture, &asked, i == 0 ? LEDGER_BALANCE : LEDGER_DEBIT, 0, "x", 1, "");
        memcpy(asked.job.request.customer_id, "cus_Two", 8);
        assert_int_equal(submit_job(fixture->ledger, &asked.job), STATUS_OK);
        wait_for(fixture, 1);
        assert_int_equal(asked.job.answer.kind, WALLET_ANSWER_REFUSED);
        assert_int_equal(asked.job.answer.verdict, WALLET_PLAYER_NOT_FOUND);
    }
    struct wallet_answer balance = ask(fixture, LEDGER_BALANCE, 1, "", 0, "");
    assert_int_equal(balance.account.sequence, 0);
    assert_int_equal(balance.account.balance_minor, 0);
}

TEST_OF(fixture, a_game_that_is_not_seen_is_refused_and_the_id_stays_free)
{
    (void)ask(fixture, LEDGER_CREDIT, 0, "c", 100, "");
    static const enum wallet_game games[] = {WALLET_GAME_INVISIBLE, WALLET_GAME_UNKNOWN,
                                             WALLET_GAME_VISIBLE, WALLET_GAME_INVISIBLE};
    for (size_t i = 0; i < 4; i++) {
        struct asked asked;
        prepare(fixture, &asked, LEDGER_DEBIT, 0, "d", 40, "");
        memcpy(asked.job.request.game_id, "book", 5);
        asked.job.game = games[i];
        assert_int_equal(submit_job(fixture->ledger, &asked.job), STATUS_OK);
        wait_for(fixture, 1);
        const struct wallet_answer *answer = &asked.job.answer;
        if (i < 2) {
            assert_int_equal(answer->kind, WALLET_ANSWER_REFUSED);
            assert_int_equal(answer->verdict,
                             i == 0 ? WALLET_GAME_NOT_FOUND : WALLET_GAMES_UNAVAILABLE);
        } else {
            assert_applied(answer, 2, 60);
            assert_int_equal(answer->replayed, i == 3);
        }
    }
    assert_int_equal(prove(fixture), 2);
}

TEST_OF(fixture, settled_and_rolled_back_are_remembered_across_batches)
{
    (void)ask(fixture, LEDGER_CREDIT, 0, "c", 100, "");
    (void)ask(fixture, LEDGER_DEBIT, 0, "d", 40, "");
    (void)ask(fixture, LEDGER_CREDIT, 0, "w", 10, "d");
    struct wallet_answer answer = ask(fixture, LEDGER_ROLLBACK, 0, "r1", 0, "d");
    assert_int_equal(answer.transaction.outcome, LEDGER_ALREADY_SETTLED);
    answer = ask(fixture, LEDGER_ROLLBACK, 0, "r2", 0, "w");
    assert_applied(&answer, 4, 60);
    assert_int_equal(answer.transaction.amount_minor, 10);
    answer = ask(fixture, LEDGER_ROLLBACK, 0, "r3", 0, "d");
    assert_applied(&answer, 5, 100);
    answer = ask(fixture, LEDGER_ROLLBACK, 0, "r4", 0, "late");
    assert_int_equal(answer.transaction.outcome, LEDGER_VOIDED);
    assert_int_equal(answer.transaction.sequence, 6);
    answer = ask(fixture, LEDGER_DEBIT, 0, "late", 1, "");
    assert_int_equal(answer.transaction.outcome, LEDGER_TRANSACTION_ROLLED_BACK);
    answer = ask(fixture, LEDGER_ROLLBACK, 1, "r5", 0, "late");
    assert_int_equal(answer.verdict, WALLET_REFERENCE_CONFLICT);
    assert_int_equal(prove(fixture), 6);
}

/* Holds the store's write lock, so that what is submitted meanwhile becomes one batch. */
static struct platform_store *hold(struct fixture *fixture, struct ledger_batch *batch)
{
    struct platform_store *other = open_store(fixture, false);
    memset(batch, 0, sizeof *batch);
    OK(other->ledger->begin(other, batch, &fixture->error));
    return other;
}

static void let_go(struct fixture *fixture, struct platform_store **other,
                   const struct ledger_batch *batch)
{
    bool unknown;
    OK((*other)->ledger->commit(*other, batch, &unknown, &fixture->error));
    platform_store_close(other);
}

#define BURST 200

TEST_OF(fixture, a_batch_comes_to_the_same_as_one_after_the_other)
{
    static struct asked burst[BURST];
    static struct ledger_batch batch;
    unsigned seed = 7;
    size_t differing = 0;
    for (unsigned round = 0; round < 10; round++) {
        struct platform_store *other = hold(fixture, &batch);
        for (size_t i = 0; i < BURST; i++) {
            static const enum ledger_operation operations[] = {LEDGER_DEBIT, LEDGER_CREDIT,
                                                               LEDGER_CREDIT, LEDGER_ROLLBACK};
            char id[32];
            char reference[32] = "";
            enum ledger_operation operation = operations[(unsigned)rand_r(&seed) % 4];
            /* Player 2 of cus_Two plays the same story as player 0, one request at a time. */
            (void)snprintf(id, sizeof id, "%u-%u", round, (unsigned)rand_r(&seed) % 60);
            if (operation == LEDGER_ROLLBACK || (unsigned)rand_r(&seed) % 2 == 0)
                (void)snprintf(reference, sizeof reference, "%u-%u", round,
                               60 + (unsigned)rand_r(&seed) % 60);
            if ((unsigned)rand_r(&seed) % 2 == 0)
                (void)snprintf(id, sizeof id, "%u-%u", round, 60 + (unsigned)rand_r(&seed) % 60);
            if (operation == LEDGER_DEBIT || strcmp(id, reference) == 0)
                reference[0] = '\0';
            if (operation == LEDGER_ROLLBACK && reference[0] == '\0')
                operation = LEDGER_CREDIT;
            int64_t amount = operation == LEDGER_ROLLBACK ? 0 : 1 + rand_r(&seed) % 3;
            prepare(fixture, &burst[i], operation, 0, id, amount, reference);
            assert_int_equal(submit_job(fixture->ledger, &burst[i].job), STATUS_OK);
        }
        let_go(fixture, &other, &batch);
        wait_for(fixture, BURST);
        for (size_t i = 0; i < BURST; i++) {
            const struct wallet_request *request = &burst[i].job.request;
            struct wallet_answer *bulk = &burst[i].job.answer;
            struct wallet_answer single =
                ask(fixture, request->operation, 2, request->transaction_id, request->amount_minor,
                    request->reference);
            assert_int_equal(single.kind, bulk->kind);
            assert_int_equal(single.replayed, bulk->replayed);
            differing += bulk->kind != WALLET_ANSWER_TRANSACTION;
            if (bulk->kind == WALLET_ANSWER_TRANSACTION) {
                assert_int_equal(single.transaction.outcome, bulk->transaction.outcome);
                assert_int_equal(single.transaction.sequence, bulk->transaction.sequence);
                assert_int_equal(single.transaction.balance_minor, bulk->transaction.balance_minor);
            } else {
                assert_int_equal(single.verdict, bulk->verdict);
            }
        }
    }
    assert_true(differing < 10 * BURST / 2);
    assert_true(prove(fixture) > 1000);
    static struct ledger_facts facts;
    ledger_facts(fixture->ledger, &facts);
    assert_true(facts.batches[4] >= 9); /* of 65 to 256 operations */
}

TEST_OF(fixture, a_full_queue_says_so_at_once_and_balances_go_on)
{
    static struct ledger_batch batch;
    struct asked asked[4];
    ledger_destroy(&fixture->ledger);
    start(fixture, 2, LEDGER_BATCH_MAX);
    (void)ask(fixture, LEDGER_CREDIT, 0, "c", 9, "");
    struct platform_store *other = hold(fixture, &batch);
    prepare(fixture, &asked[0], LEDGER_DEBIT, 0, "0", 1, "");
    assert_int_equal(submit_job(fixture->ledger, &asked[0].job), STATUS_OK);
    struct ledger_facts facts = {.depth = 1};
    while (facts.depth > 0)
        ledger_facts(fixture->ledger, &facts); /* until the thread has taken it, and waits */
    static const char *const ids[] = {"0", "1", "2", "3"};
    for (int i = 1; i < 4; i++) {
        prepare(fixture, &asked[i], LEDGER_DEBIT, 0, ids[i], 1, "");
        assert_int_equal(submit_job(fixture->ledger, &asked[i].job),
                         i == 3 ? STATUS_FULL : STATUS_OK);
    }
    struct wallet_answer balance = ask(fixture, LEDGER_BALANCE, 0, "", 0, "");
    assert_int_equal(balance.account.balance_minor, 9);
    assert_true(ledger_withdraw(fixture->ledger, &asked[2].job));
    assert_false(ledger_withdraw(fixture->ledger, &asked[0].job));
    let_go(fixture, &other, &batch);
    wait_for(fixture, 2);
    assert_applied(&asked[0].job.answer, 2, 8);
    assert_applied(&asked[1].job.answer, 3, 7);
    assert_int_equal(prove(fixture), 3);
}

/* One wake-up each way: nobody sees the first of them without the rest. */
TEST_OF(fixture, what_is_submitted_together_is_one_batch_and_answered_together)
{
    static struct ledger_facts facts;
    struct asked asked[5];
    struct mail_list jobs = STAILQ_HEAD_INITIALIZER(jobs);
    static const char *const ids[] = {"0", "1", "2", "3"};
    ledger_destroy(&fixture->ledger);
    start(fixture, 3, LEDGER_BATCH_MAX);
    prepare(fixture, &asked[4], LEDGER_BALANCE, 1, "", 0, "");
    STAILQ_INSERT_TAIL(&jobs, &asked[4].job.mail, link);
    for (int i = 0; i < 4; i++) {
        prepare(fixture, &asked[i], LEDGER_CREDIT, 0, ids[i], 1, "");
        STAILQ_INSERT_TAIL(&jobs, &asked[i].job.mail, link);
    }
    ledger_submit(fixture->ledger, &jobs);
    assert_ptr_equal(STAILQ_FIRST(&jobs), &asked[3].job.mail); /* the fourth that writes */
    assert_null(STAILQ_NEXT(&asked[3].job.mail, link));
    wait_for(fixture, 4);
    for (int i = 0; i < 3; i++)
        assert_applied(&asked[i].job.answer, (uint64_t)i + 1, i + 1);
    assert_int_equal(asked[4].job.answer.kind, WALLET_ANSWER_BALANCE);
    ledger_facts(fixture->ledger, &facts);
    assert_int_equal(facts.batches[1], 1); /* of up to four */
    assert_int_equal(facts.batched, 3);
    ledger_submit(fixture->ledger, &jobs);
    assert_true(STAILQ_EMPTY(&jobs));
    wait_for(fixture, 1);
    assert_applied(&asked[3].job.answer, 4, 4);
    assert_int_equal(prove(fixture), 4);
}

/* The answers are in the mailbox at once, so one turn of the loop delivers them all. */
TEST_OF(fixture, the_answers_of_a_batch_are_delivered_in_one_turn)
{
    struct asked asked[100];
    struct mail_list jobs = STAILQ_HEAD_INITIALIZER(jobs);
    for (int i = 0; i < 100; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "c-%d", i);
        prepare(fixture, &asked[i], LEDGER_CREDIT, i % 2, id, 1, "");
        STAILQ_INSERT_TAIL(&jobs, &asked[i].job.mail, link);
    }
    ledger_submit(fixture->ledger, &jobs);
    assert_true(STAILQ_EMPTY(&jobs));
    assert_int_equal(run_until(fixture, 1), 100);
    assert_int_equal(prove(fixture), 100);
}

TEST_OF(fixture, a_batch_is_no_larger_than_it_may_be)
{
    static struct ledger_batch batch;
    static struct ledger_facts facts;
    struct asked asked[7];
    ledger_destroy(&fixture->ledger);
    start(fixture, 4096, 1);
    struct platform_store *other = hold(fixture, &batch);
    for (unsigned i = 0; i < 7; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "c-%u", i);
        prepare(fixture, &asked[i], LEDGER_CREDIT, 0, id, 1, "");
        assert_int_equal(submit_job(fixture->ledger, &asked[i].job), STATUS_OK);
    }
    let_go(fixture, &other, &batch);
    wait_for(fixture, 7);
    assert_applied(&asked[6].job.answer, 7, 7);
    ledger_facts(fixture->ledger, &facts);
    assert_int_equal(facts.batches[0], 7);
    assert_int_equal(facts.batched, 7);
    assert_int_equal(prove(fixture), 7);
}

TEST_OF(fixture, a_store_that_is_away_is_unavailable_and_comes_back)
{
    char path[160];
    char away[160];
    (void)ask(fixture, LEDGER_CREDIT, 0, "c", 9, "");
    (void)snprintf(path, sizeof path, "%s/platform.db", fixture->directory);
    (void)snprintf(away, sizeof away, "%s/away.db", fixture->directory);
    assert_int_equal(rename(path, away), 0);
    assert_int_equal(ask(fixture, LEDGER_DEBIT, 0, "d", 1, "").kind, WALLET_ANSWER_UNAVAILABLE);
    assert_int_equal(ask(fixture, LEDGER_BALANCE, 0, "", 0, "").kind, WALLET_ANSWER_UNAVAILABLE);
    assert_int_equal(rename(away, path), 0);
    struct wallet_answer answer = {.kind = WALLET_ANSWER_UNAVAILABLE};
    for (int i = 0; i < 100 && answer.kind == WALLET_ANSWER_UNAVAILABLE; i++) {
        answer = ask(fixture, LEDGER_DEBIT, 0, "d", 1, "");
        const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
        (void)nanosleep(&pause, NULL);
    }
    assert_applied(&answer, 2, 8);
    assert_int_equal(prove(fixture), 2);
}
