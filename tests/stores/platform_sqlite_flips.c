/*
 * One flipped bit in the SQLite file, at rest: whoever asks again gets the first answer or none,
 * and nothing is ever decided otherwise than before. Each bit that is tried is flipped in a small
 * ledger's file, the store is opened, every request is decided again as wallet/ledger.c does, and
 * the bit is flipped back.
 *
 * A sample of the bits, spread over all pages and denser in their heads; every Nth with
 * TEST_FLIPS_EVERY=N, so all of them with 1 (which takes some hours). TEST_SAMPLE=N takes one in
 * N of the sample (tests/servers.py).
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform_places.h"
#include "stores/platform_entries.h"
#include "stores/platform_players.h"
#include "stores/platform_records.h"
#include "submit_job.h"
#include "tests.h"
#include "wallet/ledger.h"

#define EVERY 3557 /* bits; a prime, so that no part of a page is left out */
#define PAGE 4096
#define HEAD 64 /* bytes of a page: its header and the first pointers to cells */
#define HEAD_EVERY 59
#define PLAYERS 3
#define REQUESTS_MAX 256
#define GROUP 16 /* requests that are decided together when all of them cannot be */

struct asked {
    struct ledger_job job; /* first */
    struct fixture *fixture;
};

struct fixture {
    struct place place;
    struct player_record players[PLAYERS];
    struct platform_store *store;
    /* What is asked, with what is decided as long as nothing is damaged: */
    struct wallet_request requests[REQUESTS_MAX];
    struct wallet_decision decisions[REQUESTS_MAX];
    struct ledger_transaction answers[REQUESTS_MAX];
    size_t count;
    struct ledger_account accounts[PLAYERS];
    unsigned refused, decided; /* groups of requests, with a bit flipped */
    struct error error;
};

/* ---- the story ------------------------------------------------------------------------------- */

static struct platform_store *open_store(struct fixture *fixture, bool create)
{
    struct platform_store *store = NULL;
    const struct platform_store_options options = {
        .uri = fixture->place.uri, .timeout_ms = 30000, .create = create};
    return platform_store_open(&store, &options, &fixture->error) == STATUS_OK ? store : NULL;
}

static void add(struct fixture *fixture, enum ledger_operation operation, int player,
                const char *id, int64_t amount, const char *reference)
{
    struct wallet_request *request = &fixture->requests[fixture->count++];
    const struct player_record *record = &fixture->players[player];
    assert_true(fixture->count <= REQUESTS_MAX);
    *request = (struct wallet_request){.operation = operation, .amount_minor = amount};
    memcpy(request->customer_id, record->customer_id, sizeof record->customer_id);
    memcpy(request->player_id, record->id, sizeof record->id);
    (void)snprintf(request->transaction_id, sizeof request->transaction_id, "%s", id);
    (void)snprintf(request->reference, sizeof request->reference, "%s", reference);
    if (operation != LEDGER_ROLLBACK)
        memcpy(request->currency, record->currency, sizeof request->currency);
}

static void on_answer(struct mail *mail)
{
}

/* What the requests so far are answered, one after the other in batches. */
static void carry_out(struct fixture *fixture)
{
    uv_loop_t loop;
    uv_timer_t keeps_alive;
    const struct platform_store_options store = {.uri = fixture->place.uri, .timeout_ms = 30000};
    struct asked *asked = calloc(fixture->count, sizeof *asked);
    assert_non_null(asked);
    assert_int_equal(uv_loop_init(&loop), 0);
    assert_int_equal(uv_timer_init(&loop, &keeps_alive), 0);
    struct mailbox *mailbox = mailbox_create(&loop);
    struct ledger *ledger = ledger_create(&store, REQUESTS_MAX, 20, 0);
    for (size_t i = 0; i < fixture->count; i++) {
        asked[i].job.mailbox = mailbox;
        asked[i].job.mail.deliver = on_answer;
        asked[i].job.request = fixture->requests[i];
        assert_int_equal(submit_job(ledger, &asked[i].job), STATUS_OK);
    }
    ledger_destroy(&ledger); /* answers what is queued */
    uv_close((uv_handle_t *)&keeps_alive, NULL);
    mailbox_destroy(&mailbox);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    for (size_t i = 0; i < fixture->count; i++)
        assert_int_equal(asked[i].job.answer.kind, WALLET_ANSWER_TRANSACTION);
    assert_int_equal(uv_loop_close(&loop), 0);
    free(asked);
}

static void tell_story(struct fixture *fixture)
{
    char id[32];
    char debit[32];
    for (int player = 0; player < PLAYERS; player++) {
        (void)snprintf(id, sizeof id, "in-%d", player);
        add(fixture, LEDGER_CREDIT, player, id, 100000, "");
    }
    for (int i = 0; i < 60; i++) {
        (void)snprintf(debit, sizeof debit, "bet-%d", i);
        add(fixture, LEDGER_DEBIT, i % PLAYERS, debit, 10 + i, "");
        (void)snprintf(id, sizeof id, "after-%d", i);
        if (i % 4 == 0)
            add(fixture, LEDGER_CREDIT, i % PLAYERS, id, 2 * i, debit);
        if (i % 4 == 1)
            add(fixture, LEDGER_ROLLBACK, i % PLAYERS, id, 0, debit);
        if (i % 4 == 2)
            add(fixture, LEDGER_DEBIT, i % PLAYERS, id, 10000000, "");
        (void)snprintf(debit, sizeof debit, "never-%d", i);
        (void)snprintf(id, sizeof id, "void-%d", i);
        if (i % 4 == 3)
            add(fixture, LEDGER_ROLLBACK, i % PLAYERS, id, 0, debit);
        if (i % 8 == 3)
            add(fixture, LEDGER_DEBIT, i % PLAYERS, debit, 1, "");
    }
}

/* What no one has asked yet, and what is decided of it by what is stored. */
static void add_new_requests(struct fixture *fixture)
{
    for (int i = 0; i < 60; i++) {
        char id[32];
        char other[32];
        (void)snprintf(id, sizeof id, i % 8 == 7 ? "never-%d" : "new-%d", i);
        (void)snprintf(other, sizeof other, "bet-%d", i);
        if (i % 8 == 7) /* late: it was rolled back before it came */
            add(fixture, LEDGER_DEBIT, i % PLAYERS, id, 1, "");
        else if (i % 8 == 1) /* twice */
            add(fixture, LEDGER_ROLLBACK, i % PLAYERS, id, 0, other);
        else if (i % 8 == 5) /* of what is rolled back */
            add(fixture, LEDGER_CREDIT, i % PLAYERS, id, 1, other);
        else if (i % 8 == 3)
            add(fixture, LEDGER_DEBIT, i % PLAYERS, id, 1, "");
    }
}

/* ---- deciding -------------------------------------------------------------------------------- */

static size_t player_of(struct ledger_batch *batch, const char *player_id)
{
    for (size_t i = 0; i < batch->player_count; i++)
        if (strcmp(batch->players[i].player_id, player_id) == 0)
            return i;
    memcpy(batch->players[batch->player_count].player_id, player_id, TRANSACTION_ID_SIZE);
    return batch->player_count++;
}

static size_t fact_of(struct ledger_batch *batch, const struct wallet_request *request,
                      const char *id)
{
    for (size_t i = 0; i < batch->fact_count; i++)
        if (strcmp(batch->facts[i].transaction_id, id) == 0 &&
            strcmp(batch->facts[i].owner_id, request->customer_id) == 0)
            return i;
    ledger_ask(&batch->facts[batch->fact_count], request->customer_id, id);
    return batch->fact_count++;
}

/* Loads what requests need, and decides each. False: the store refuses to say. */
static bool decide(struct fixture *fixture, size_t first, size_t count,
                   struct wallet_decision *decisions, struct ledger_transaction *answers)
{
    static struct ledger_batch batch;
    bool unknown = false;
    batch.player_count = batch.fact_count = batch.kept_count = 0;
    for (size_t i = first; i < first + count; i++) {
        const struct wallet_request *request = &fixture->requests[i];
        (void)player_of(&batch, request->player_id);
        (void)fact_of(&batch, request, request->transaction_id);
        if (request->reference[0] != '\0') {
            size_t reference = fact_of(&batch, request, request->reference);
            batch.facts[reference].counts_credits |= request->operation == LEDGER_ROLLBACK;
        }
    }
    if (fixture->store->ledger->begin(fixture->store, &batch, &fixture->error) != STATUS_OK)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct wallet_request *request = &fixture->requests[first + i];
        const struct ledger_batch_player *player =
            &batch.players[player_of(&batch, request->player_id)];
        const struct ledger_id *id =
            &batch.facts[fact_of(&batch, request, request->transaction_id)].id;
        const struct wallet_state state = {
            .account = player->found ? &player->account : NULL,
            .id = id,
            .reference = request->reference[0] == '\0'
                             ? NULL
                             : &batch.facts[fact_of(&batch, request, request->reference)].id,
        };
        decisions[i] = wallet_decide(&state, request);
        memset(&answers[i], 0, sizeof answers[i]);
        if (decisions[i].verdict == WALLET_REPLAYED)
            answers[i] = id->transaction;
    }
    /* Nothing is kept, so nothing is committed. */
    return fixture->store->ledger->commit(fixture->store, &batch, &unknown, &fixture->error) ==
           STATUS_OK;
}

static bool same_decision(const struct wallet_decision *a, const struct wallet_decision *b)
{
    return a->verdict == b->verdict && a->outcome == b->outcome &&
           a->amount_minor == b->amount_minor && a->movement_minor == b->movement_minor &&
           a->rolls_back == b->rolls_back;
}

/* A player that the damaged index of players does not lead to is refused, and nothing is kept. */
static bool is_refusal(const struct wallet_decision *now, const struct wallet_decision *before)
{
    return now->verdict == WALLET_PLAYER_NOT_FOUND && before->verdict == WALLET_KEPT;
}

static bool decide_again(struct fixture *fixture, size_t first, size_t count, size_t bit)
{
    static struct wallet_decision decisions[REQUESTS_MAX];
    static struct ledger_transaction answers[REQUESTS_MAX];
    if (!decide(fixture, first, count, decisions, answers)) {
        fixture->refused++;
        return false;
    }
    fixture->decided++;
    for (size_t i = 0; i < count; i++)
        if (!is_refusal(&decisions[i], &fixture->decisions[first + i]) &&
            (!same_decision(&decisions[i], &fixture->decisions[first + i]) ||
             memcmp(&answers[i], &fixture->answers[first + i], sizeof answers[i]) != 0))
            fail_msg("bit %zu, page %zu: request %s is decided otherwise (verdict %d, outcome %d)",
                     bit, bit / 8 / PAGE + 1, fixture->requests[first + i].transaction_id,
                     (int)decisions[i].verdict, (int)decisions[i].outcome);
    return true;
}

static void ask_again(struct fixture *fixture, size_t bit)
{
    for (int i = 0; i < PLAYERS; i++) {
        struct ledger_account account;
        if (platform_ledger_balance(fixture->store, fixture->players[i].id, &account,
                                    &fixture->error) == STATUS_OK &&
            (account.balance_minor != fixture->accounts[i].balance_minor ||
             account.sequence != fixture->accounts[i].sequence))
            fail_msg("bit %zu: player %d has another balance", bit, i);
    }
    if (decide_again(fixture, 0, fixture->count, bit))
        return;
    for (size_t first = 0; first < fixture->count; first += GROUP) {
        size_t count = fixture->count - first < GROUP ? fixture->count - first : GROUP;
        if (!decide_again(fixture, first, count, bit))
            (void)decide_again(fixture, first + bit % count, 1, bit);
    }
}

/* ---- flipping -------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    uint32_t before;
    uint32_t after;
    struct customer_record customer = {.id = "cus_1",
                                       .name = "customer",
                                       .enabled = true,
                                       .sports = SPORT_SET_ALL,
                                       .created_ms = 1};
    static const char *const names[PLAYERS] = {"anna", "berta", "carla"};
    factory_of("sqlite")->place(&fixture->place);
    fixture->store = open_store(fixture, true);
    assert_non_null(fixture->store);
    OK(platform_store_migrate(fixture->store, &before, &after, &fixture->error));
    OK(platform_add(fixture->store, &customer_table, &customer, &fixture->error));
    for (int i = 0; i < PLAYERS; i++)
        OK(platform_player_open(fixture->store, "cus_1", names[i], "EUR", 2, &fixture->players[i],
                                &fixture->error));
    platform_store_close(&fixture->store);
    tell_story(fixture);
    carry_out(fixture);
    add_new_requests(fixture);
    fixture->store = open_store(fixture, false);
    assert_non_null(fixture->store);
    for (int i = 0; i < PLAYERS; i++)
        OK(platform_ledger_balance(fixture->store, fixture->players[i].id, &fixture->accounts[i],
                                   &fixture->error));
    assert_true(decide(fixture, 0, fixture->count, fixture->decisions, fixture->answers));
    platform_store_close(&fixture->store); /* brings the log into the file */
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    platform_store_close(&fixture->store);
    factory_of("sqlite")->clear(&fixture->place);
    free(fixture);
    return 0;
}

static void flip(int file, size_t bit)
{
    uint8_t byte;
    assert_int_equal(pread(file, &byte, 1, (off_t)(bit / 8)), 1);
    byte ^= (uint8_t)(1U << bit % 8);
    assert_int_equal(pwrite(file, &byte, 1, (off_t)(bit / 8)), 1);
}

static void try_bit(struct fixture *fixture, int file, size_t bit)
{
    flip(file, bit);
    fixture->store = open_store(fixture, false);
    if (fixture->store != NULL)
        ask_again(fixture, bit);
    platform_store_close(&fixture->store);
    flip(file, bit);
}

TEST(the_requests_are_what_they_should_be)
{
    struct fixture *fixture = *state;
    unsigned replayed = 0;
    unsigned kept[LEDGER_OUTCOME_COUNT] = {0};
    for (size_t i = 0; i < fixture->count; i++) {
        replayed += fixture->decisions[i].verdict == WALLET_REPLAYED;
        if (fixture->decisions[i].verdict == WALLET_KEPT)
            kept[fixture->decisions[i].outcome]++;
    }
    assert_true(replayed > 100);
    assert_true(kept[LEDGER_APPLIED] > 0 && kept[LEDGER_TRANSACTION_ROLLED_BACK] > 5 &&
                kept[LEDGER_ALREADY_ROLLED_BACK] > 5);
}

TEST(a_flipped_bit_makes_nothing_happen_twice)
{
    struct fixture *fixture = *state;
    const char *asked = getenv("TEST_FLIPS_EVERY");
    size_t one_in = tests_sample();
    size_t chosen = 0;
    size_t every = asked != NULL ? (size_t)atoi(asked) : EVERY;
    char path[600];
    struct stat facts;
    (void)snprintf(path, sizeof path, "%s/platform.db", fixture->place.directory);
    int file = open(path, O_RDWR | O_CLOEXEC);
    assert_true(file >= 0 && every > 0 && one_in > 0);
    assert_int_equal(fstat(file, &facts), 0);
    size_t bits = (size_t)facts.st_size * 8;
    for (size_t bit = 0; bit < bits; bit++) {
        bool in_head = bit / 8 % PAGE < HEAD;
        if ((bit % every == 0 || (asked == NULL && in_head && bit % HEAD_EVERY == 0)) &&
            chosen++ % one_in == 0)
            try_bit(fixture, file, bit);
    }
    assert_int_equal(close(file), 0);
    print_message("%zu pages; with a bit flipped, groups of requests were decided %u times and"
                  " refused %u times\n",
                  bits / 8 / PAGE, fixture->decided, fixture->refused);
    assert_true(fixture->decided > 0 && fixture->refused > 0);
}

TESTS_WITH(set_up, tear_down);
