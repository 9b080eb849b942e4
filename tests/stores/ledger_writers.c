/*
 * Several instances on one ledger: `ledger_writers ENGINE`. Each writer is what an instance is, a
 * wallet/ledger with handles of its own, here in a thread of its own. They bring the same ids, for
 * the same players and for different ones, at the same time. What they were told must be what is
 * stored, once, and what is stored must be what one after the other would have come to.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "platform_places.h"
#include "stores/ledger_audit.h"
#include "stores/platform_entries.h"
#include "stores/platform_players.h"
#include "stores/platform_records.h"
#include "submit_job.h"
#include "wallet/ledger.h"

#define WRITERS 4
#define CUSTOMERS 2
#define PLAYERS 6 /* of the first customer 4, of the second 2 */
#define BURST_MAX 48
#define IDS 4000 /* of each customer */

static const struct factory *factory; /* the engine under test, named on the command line */

/* ---- writers --------------------------------------------------------------------------------- */

struct told {
    struct wallet_request request;
    struct wallet_answer answer;
};

struct fixture;

struct writer {
    struct fixture *fixture;
    unsigned number;
    pthread_t thread;
    uv_loop_t loop;
    struct mailbox *mailbox;
    struct ledger *ledger;
    unsigned seed;
    size_t under_way;
    struct told *told;
    size_t told_count, told_room;
};

struct fixture {
    struct place place;
    struct platform_store *store;
    struct player_record players[PLAYERS];
    struct writer writers[WRITERS];
    struct log *log;
    pthread_barrier_t barrier;
    atomic_bool over;
    PGconn *meddler;      /* the connection of who troubles them */
    atomic_uint progress; /* grows with what is acknowledged to who insists */
    struct error error;
};

struct asked {
    struct ledger_job job; /* first */
    struct writer *writer;
};

static unsigned chance(struct writer *writer, unsigned below)
{
    return (unsigned)rand_r(&writer->seed) % below;
}

static void on_answer(struct mail *mail)
{
    ((struct asked *)(void *)mail)->writer->under_way--;
}

/* The loop is alive without a handle of ours as long as somebody asks: the mailbox does not keep it
 * so. */
static void ask_all(struct writer *writer, struct asked *asked, size_t count)
{
    uv_timer_t keeps_alive;
    CHECK(uv_timer_init(&writer->loop, &keeps_alive) == 0);
    CHECK(uv_timer_start(&keeps_alive, (uv_timer_cb)(void (*)(void))abort, 120000, 0) == 0);
    for (size_t i = 0; i < count; i++) {
        asked[i].writer = writer;
        asked[i].job.mailbox = writer->mailbox;
        asked[i].job.mail.deliver = on_answer;
        writer->under_way++;
        CHECK(submit_job(writer->ledger, &asked[i].job) == STATUS_OK);
    }
    while (writer->under_way > 0)
        (void)uv_run(&writer->loop, UV_RUN_ONCE);
    uv_close((uv_handle_t *)&keeps_alive, NULL);
    (void)uv_run(&writer->loop, UV_RUN_NOWAIT);
    for (size_t i = 0; i < count; i++) {
        CHECK(writer->told_count < writer->told_room);
        writer->told[writer->told_count++] =
            (struct told){asked[i].job.request, asked[i].job.answer};
    }
}

static void start_writers(struct fixture *fixture, size_t room)
{
    for (unsigned i = 0; i < WRITERS; i++) {
        struct writer *writer = &fixture->writers[i];
        const struct platform_store_options store = {
            .uri = fixture->place.uri, .timeout_ms = 30000, .log = fixture->log};
        *writer =
            (struct writer){.fixture = fixture, .number = i, .seed = i + 1, .told_room = room};
        writer->told = calloc(room, sizeof *writer->told);
        assert_non_null(writer->told);
        assert_int_equal(uv_loop_init(&writer->loop), 0);
        writer->mailbox = mailbox_create(&writer->loop);
        writer->ledger = ledger_create(&store, 4096, LEDGER_BATCH_MAX, 0);
    }
    assert_int_equal(pthread_barrier_init(&fixture->barrier, NULL, WRITERS), 0);
    atomic_store(&fixture->over, false);
}

static void run_writers(struct fixture *fixture, void *(*run)(void *writer))
{
    for (unsigned i = 0; i < WRITERS; i++)
        assert_int_equal(
            pthread_create(&fixture->writers[i].thread, NULL, run, &fixture->writers[i]), 0);
    for (unsigned i = 0; i < WRITERS; i++)
        assert_int_equal(pthread_join(fixture->writers[i].thread, NULL), 0);
    atomic_store(&fixture->over, true);
}

static uint64_t stop_writers(struct fixture *fixture)
{
    static struct ledger_facts facts;
    uint64_t conflicts = 0;
    for (unsigned i = 0; i < WRITERS; i++) {
        struct writer *writer = &fixture->writers[i];
        ledger_facts(writer->ledger, &facts);
        conflicts += facts.conflicts;
        ledger_destroy(&writer->ledger);
        mailbox_destroy(&writer->mailbox);
        (void)uv_run(&writer->loop, UV_RUN_DEFAULT);
        assert_int_equal(uv_loop_close(&writer->loop), 0);
        free(writer->told);
    }
    assert_int_equal(pthread_barrier_destroy(&fixture->barrier), 0);
    return conflicts;
}

/* ---- fixture --------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    uint32_t before;
    uint32_t after;
    factory->place(&fixture->place);
    fixture->log = log_create(STDERR_FILENO, LOG_WARNING, LOG_FORMAT_TEXT);
    struct platform_store_options options = {
        .uri = fixture->place.uri, .timeout_ms = 30000, .create = true};
    OK(platform_store_open(&fixture->store, &options, &fixture->error));
    OK(platform_store_migrate(fixture->store, &before, &after, &fixture->error));
    for (int i = 0; i < CUSTOMERS; i++) {
        struct customer_record record = {
            .name = "x", .enabled = true, .usable = true, .casino = true, .created_ms = 1};
        (void)snprintf(record.id, sizeof record.id, "cus_%d", i);
        OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
    }
    for (int i = 0; i < PLAYERS; i++) {
        char reference[16];
        (void)snprintf(reference, sizeof reference, "p%d", i);
        OK(platform_player_open(fixture->store, i < 4 ? "cus_0" : "cus_1", reference, "EUR", 2,
                                &fixture->players[i], &fixture->error));
    }
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    platform_store_close(&fixture->store);
    factory->clear(&fixture->place);
    log_destroy(&fixture->log);
    free(fixture);
    return 0;
}

static void prepare(const struct fixture *fixture, struct asked *asked,
                    enum ledger_operation operation, unsigned player, const char *id,
                    int64_t amount_minor, const char *reference)
{
    struct wallet_request *request = &asked->job.request;
    const struct player_record *record = &fixture->players[player];
    memset(asked, 0, sizeof *asked);
    request->operation = operation;
    memcpy(request->customer_id, record->customer_id, sizeof record->customer_id);
    memcpy(request->player_id, record->id, sizeof record->id);
    (void)snprintf(request->transaction_id, sizeof request->transaction_id, "%s", id);
    (void)snprintf(request->reference, sizeof request->reference, "%s", reference);
    if (operation == LEDGER_ROLLBACK)
        return;
    request->amount_minor = amount_minor;
    memcpy(request->currency, record->currency, sizeof request->currency);
}

/* ---- the model ------------------------------------------------------------------------------- */

/* The rules once more, on what is stored, in the order of decision. */
struct model_id {
    bool known;
    struct ledger_transaction kept;
    int undone_by; /* 1 + player; 0: by no one */
    unsigned standing;
    unsigned acknowledged; /* answers that were not replays */
};

struct model {
    struct fixture *fixture;
    struct model_id ids[CUSTOMERS][IDS];
    int64_t balance[PLAYERS];
    uint64_t sequence[PLAYERS];
    size_t count, applied;
    unsigned outcomes[LEDGER_OUTCOME_COUNT];
};

static struct model_id *id_of(struct model *model, const char *customer_id, const char *id)
{
    unsigned long number = strtoul(id + 2, NULL, 10);
    assert_true(number < IDS);
    return &model->ids[customer_id[4] - '0'][number];
}

static int player_of(const struct model *model, const char *player_id)
{
    for (int i = 0; i < PLAYERS; i++)
        if (strcmp(model->fixture->players[i].id, player_id) == 0)
            return i;
    fail_msg("nobody's transaction");
    return -1;
}

static enum ledger_outcome outcome_of_move(const struct model *model, int player, int64_t movement)
{
    return model->balance[player] + movement < 0 ? LEDGER_INSUFFICIENT_FUNDS : LEDGER_APPLIED;
}

static bool is_applied(const struct model_id *id, enum ledger_operation operation)
{
    return id->known && id->kept.operation == operation && id->kept.outcome == LEDGER_APPLIED;
}

static enum ledger_outcome expected(const struct model *model, const struct model_id *id,
                                    const struct model_id *reference, int player,
                                    const struct ledger_transaction *kept)
{
    if (id->undone_by != 0)
        return LEDGER_TRANSACTION_ROLLED_BACK;
    if (kept->operation == LEDGER_DEBIT)
        return outcome_of_move(model, player, -kept->amount_minor);
    if (kept->operation == LEDGER_CREDIT) {
        if (reference != NULL && reference->undone_by != 0)
            return LEDGER_TRANSACTION_ROLLED_BACK;
        if (reference != NULL && !is_applied(reference, LEDGER_DEBIT))
            return LEDGER_REFERENCE_NOT_FOUND;
        return LEDGER_APPLIED;
    }
    CHECK(reference != NULL);
    if (reference->undone_by != 0)
        return LEDGER_ALREADY_ROLLED_BACK;
    if (reference->known && reference->kept.operation == LEDGER_ROLLBACK)
        return LEDGER_NOT_ROLLBACKABLE;
    if (!reference->known || reference->kept.outcome != LEDGER_APPLIED)
        return LEDGER_VOIDED;
    if (reference->kept.operation == LEDGER_DEBIT && reference->standing > 0)
        return LEDGER_ALREADY_SETTLED;
    return outcome_of_move(model, player, -reference->kept.movement_minor);
}

static void apply(struct model *model, struct model_id *reference, int player,
                  const struct ledger_transaction *kept)
{
    CHECK(kept->operation != LEDGER_ROLLBACK || reference != NULL);
    int64_t movement = kept->operation == LEDGER_DEBIT    ? -kept->amount_minor
                       : kept->operation == LEDGER_CREDIT ? kept->amount_minor
                       : reference == NULL || kept->outcome == LEDGER_VOIDED
                           ? 0
                           : -reference->kept.movement_minor;
    model->balance[player] += movement;
    model->sequence[player]++;
    assert_int_equal(kept->movement_minor, movement);
    assert_int_equal(kept->balance_minor, model->balance[player]);
    assert_int_equal(kept->sequence, model->sequence[player]);
    if (kept->operation == LEDGER_CREDIT && reference != NULL)
        reference->standing++;
    if (reference == NULL || kept->operation != LEDGER_ROLLBACK)
        return;
    reference->undone_by = 1 + player;
    if (is_applied(reference, LEDGER_CREDIT) && reference->kept.reference[0] != '\0')
        id_of(model, kept->customer_id, reference->kept.reference)->standing--;
}

static bool replay(void *context, const struct ledger_transaction *kept)
{
    struct model *model = context;
    int player = player_of(model, kept->player_id);
    struct model_id *id = id_of(model, kept->customer_id, kept->transaction_id);
    struct model_id *reference =
        kept->reference[0] != '\0' ? id_of(model, kept->customer_id, kept->reference) : NULL;
    bool anothers =
        reference != NULL &&
        (reference->known ? strcmp(reference->kept.player_id, kept->player_id) != 0
                          : reference->undone_by != 0 && reference->undone_by != 1 + player);
    assert_false(id->known);
    /* A credit whose bet another player was bringing at that moment may have been the first. */
    if (id->undone_by == 0 && anothers)
        assert_int_equal(kept->outcome, LEDGER_REFERENCE_NOT_FOUND);
    else
        assert_int_equal(kept->outcome, expected(model, id, reference, player, kept));
    id->known = true;
    id->kept = *kept;
    if (ledger_is_entry(kept)) {
        apply(model, reference, player, kept);
        model->applied++;
    }
    model->outcomes[kept->outcome]++;
    model->count++;
    return true;
}

/* The store is whole, follows the rules, and holds exactly what was acknowledged. */
static struct model *prove(struct fixture *fixture)
{
    struct model *model = calloc(1, sizeof *model);
    struct audit_result result = {0};
    size_t acknowledged = 0;
    model->fixture = fixture;
    OK(wallet_audit(fixture->store, &(struct audit_options){0}, &result, &fixture->error));
    /* The same of all that is since a time, which is all of it. */
    struct audit_result recent = {0};
    OK(wallet_audit(fixture->store, &(struct audit_options){.recent = true}, &recent,
                    &fixture->error));
    assert_int_equal(recent.entries, result.entries);
    assert_int_equal(recent.players, result.players);
    OK(fixture->store->ledger->recover(fixture->store, &fixture->error));
    OK(platform_ledger_transactions(fixture->store, replay, model, &fixture->error));
    assert_int_equal(result.entries, model->applied);
    for (unsigned i = 0; i < WRITERS; i++) {
        const struct writer *writer = &fixture->writers[i];
        for (size_t k = 0; k < writer->told_count; k++) {
            const struct told *told = &writer->told[k];
            if (told->answer.kind != WALLET_ANSWER_TRANSACTION)
                continue;
            struct model_id *id =
                id_of(model, told->request.customer_id, told->request.transaction_id);
            assert_true(id->known);
            assert_memory_equal(&id->kept, &told->answer.transaction, sizeof id->kept);
            if (told->answer.replayed)
                continue;
            assert_int_equal(++id->acknowledged, 1);
            acknowledged++;
        }
    }
    print_message("%zu kept, %zu acknowledged, %zu entries\n", model->count, acknowledged,
                  model->applied);
    for (int i = 0; i < LEDGER_OUTCOME_COUNT; i++)
        print_message("  %u %s\n", model->outcomes[i], ledger_outcome_name((enum ledger_outcome)i));
    assert_true(acknowledged <= model->count);
    return model;
}

/* ---- the same ids, players and moments ------------------------------------------------------- */

#define ROUNDS 40

/* An id near those of the round, which all writers bring at about the same time. Mostly the
 * player's own (its number says whose), or few would be rolled back by their owners. */
static unsigned draw_id(struct writer *writer, unsigned round, unsigned player)
{
    unsigned low = round * (IDS - 200) / ROUNDS;
    unsigned id = low + chance(writer, 90);
    return chance(writer, 8) == 0 ? id : id - id % PLAYERS + player;
}

/* Bets first, or there would be nothing to settle and to roll back. */
static void draw(struct writer *writer, struct asked *asked, unsigned round, unsigned burst)
{
    static const enum ledger_operation operations[] = {LEDGER_DEBIT, LEDGER_CREDIT, LEDGER_CREDIT,
                                                       LEDGER_ROLLBACK};
    enum ledger_operation operation = operations[chance(writer, burst == 0 ? 2 : 4)];
    char id[16];
    char reference[16] = "";
    unsigned player = chance(writer, PLAYERS);
    unsigned own = draw_id(writer, round, player);
    unsigned other = draw_id(writer, round, player);
    (void)snprintf(id, sizeof id, "k-%u", own);
    if (operation == LEDGER_ROLLBACK || (operation == LEDGER_CREDIT && chance(writer, 2) == 0))
        (void)snprintf(reference, sizeof reference, "k-%u", own == other ? other + 1 : other);
    prepare(writer->fixture, asked, operation, player, id, 1 + (int64_t)chance(writer, 3),
            reference);
}

/* Some have plenty, some have nothing to begin with. */
static void fund(struct writer *writer, struct asked *asked)
{
    for (unsigned i = 0; i < PLAYERS - 2; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "k-%u", IDS - 1 - i);
        prepare(writer->fixture, &asked[i], LEDGER_CREDIT, 1 + i, id, 100000, "");
    }
    ask_all(writer, asked, PLAYERS - 2);
}

static void *write_at_random(void *argument)
{
    struct writer *writer = argument;
    static _Thread_local struct asked asked[BURST_MAX];
    if (writer->number == 0)
        fund(writer, asked);
    for (unsigned round = 0; round < ROUNDS; round++) {
        (void)pthread_barrier_wait(&writer->fixture->barrier);
        for (unsigned burst = 0; burst < 3; burst++) {
            size_t count = 1 + chance(writer, chance(writer, 2) == 0 ? 3 : BURST_MAX);
            for (size_t i = 0; i < count; i++)
                draw(writer, &asked[i], round, burst);
            ask_all(writer, asked, count);
        }
    }
    return NULL;
}

static void several_instances_come_to_what_one_would(void **state)
{
    struct fixture *fixture = *state;
    start_writers(fixture, (size_t)ROUNDS * 3 * BURST_MAX + PLAYERS);
    run_writers(fixture, write_at_random);
    size_t unsaid = 0;
    for (unsigned i = 0; i < WRITERS; i++)
        for (size_t k = 0; k < fixture->writers[i].told_count; k++)
            unsaid += fixture->writers[i].told[k].answer.kind == WALLET_ANSWER_UNAVAILABLE ||
                      fixture->writers[i].told[k].answer.kind == WALLET_ANSWER_UNKNOWN;
    assert_int_equal(unsaid, 0);
    struct model *model = prove(fixture);
    assert_true(model->count > 1500);
    for (int i = 0; i < LEDGER_BALANCE_LIMIT_EXCEEDED; i++)
        assert_true(model->outcomes[i] > 0 || i == LEDGER_ALREADY_SETTLED); /* which is rare */
    for (int c = 0; c < CUSTOMERS; c++)
        for (int i = 0; i < IDS; i++)
            assert_int_equal(model->ids[c][i].acknowledged, model->ids[c][i].known);
    free(model);
    print_message("%llu batches were begun again\n", (unsigned long long)stop_writers(fixture));
}

/* ---- an id that is used and voided at once --------------------------------------------------- */

#define RACES 300

/* Two writers void the id for one player, two use it for another. */
static void *race(void *argument)
{
    struct writer *writer = argument;
    static _Thread_local struct asked asked;
    for (unsigned i = 0; i < RACES; i++) {
        char id[16];
        char target[16];
        (void)snprintf(target, sizeof target, "k-%u", i);
        (void)snprintf(id, sizeof id, "k-%u", RACES * (writer->number + 1) + i);
        if (writer->number % 2 == 0)
            prepare(writer->fixture, &asked, LEDGER_ROLLBACK, writer->number, id, 0, target);
        else
            prepare(writer->fixture, &asked, LEDGER_CREDIT, writer->number, target, 7, "");
        (void)pthread_barrier_wait(&writer->fixture->barrier);
        ask_all(writer, &asked, 1);
    }
    return NULL;
}

static void an_id_is_used_or_voided_and_never_both(void **state)
{
    struct fixture *fixture = *state;
    unsigned used = 0;
    unsigned voided = 0;
    start_writers(fixture, RACES);
    run_writers(fixture, race);
    struct model *model = prove(fixture);
    for (unsigned i = 0; i < RACES; i++) {
        unsigned applied = 0;
        unsigned undone = 0;
        for (unsigned w = 0; w < WRITERS; w++) {
            const struct wallet_answer *answer = &fixture->writers[w].told[i].answer;
            bool kept = answer->kind == WALLET_ANSWER_TRANSACTION;
            assert_true(kept || answer->kind == WALLET_ANSWER_REFUSED);
            applied += kept && answer->transaction.outcome == LEDGER_APPLIED;
            undone += kept && answer->transaction.outcome == LEDGER_VOIDED;
        }
        assert_int_equal(applied + undone, 1);
        used += applied;
        voided += undone;
    }
    free(model);
    print_message("%u used, %u voided, %llu batches were begun again\n", used, voided,
                  (unsigned long long)stop_writers(fixture));
}

/* ---- PostgreSQL alone: what else may come between -------------------------------------------- */

static PGconn *connect_to(const struct fixture *fixture)
{
    PGconn *connection = PQconnectdb(fixture->place.uri);
    assert_int_equal(PQstatus(connection), CONNECTION_OK);
    return connection;
}

/* What may fail is not this thread's business. */
static void say(PGconn *connection, const char *statement)
{
    PQclear(PQexec(connection, statement));
}

static void rest(long ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000000L};
    (void)nanosleep(&pause, NULL);
}

#define LOCK_ACCOUNT_OF(reference)                     \
    "SELECT FROM ledger_account WHERE player_number =" \
    " (SELECT number FROM player WHERE reference = '" reference "') FOR UPDATE"

/* Locks accounts in the wrong order: deadlocks with every batch that is about both. */
static void *lock_backwards(void *argument)
{
    struct fixture *fixture = argument;
    while (!atomic_load(&fixture->over)) {
        say(fixture->meddler, "BEGIN");
        say(fixture->meddler, LOCK_ACCOUNT_OF("p5"));
        rest(5);
        say(fixture->meddler, LOCK_ACCOUNT_OF("p0"));
        say(fixture->meddler, "ROLLBACK");
        rest(10);
    }
    return NULL;
}

/* Of those that are at work: one that is idle is connected again, and nothing is begun again. The
 * next when somebody got through since: on a machine that is busy no batch outlives a fixed time. */
static void *terminate(void *argument)
{
    struct fixture *fixture = argument;
    unsigned seen = 0;
    while (!atomic_load(&fixture->over)) {
        PGresult *ended =
            PQexec(fixture->meddler, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                     " WHERE application_name = 'croupier' AND state <> 'idle'"
                                     " ORDER BY random() LIMIT 1");
        CHECK(PQresultStatus(ended) == PGRES_TUPLES_OK);
        bool nobody = PQntuples(ended) == 0;
        PQclear(ended);
        if (nobody)
            continue;
        do
            rest(30);
        while (!atomic_load(&fixture->over) && atomic_load(&fixture->progress) == seen);
        seen = atomic_load(&fixture->progress);
    }
    return NULL;
}

/* As a client does: what was not answered is asked again, with the same id, until it is. */
static void *insist(void *argument)
{
    struct writer *writer = argument;
    static _Thread_local struct asked asked[BURST_MAX];
    for (unsigned round = 0; round < 20; round++) {
        size_t left = 32;
        for (unsigned i = 0; i < left; i++) {
            char id[16];
            (void)snprintf(id, sizeof id, "k-%u", (writer->number * 20 + round) * 32 + i);
            prepare(writer->fixture, &asked[i], i % 4 == 3 ? LEDGER_DEBIT : LEDGER_CREDIT,
                    (i / 4 + round) % PLAYERS, id, i % 4 == 3 ? 1 : 2, "");
        }
        for (unsigned attempt = 0; left > 0; attempt++) {
            CHECK(attempt < 10000); /* a limit for a store that stays away */
            ask_all(writer, asked, left);
            size_t still = 0;
            for (size_t i = 0; i < left; i++) {
                struct wallet_request request = asked[i].job.request;
                if (asked[i].job.answer.kind == WALLET_ANSWER_TRANSACTION)
                    continue;
                memset(&asked[still], 0, sizeof asked[still]);
                asked[still++].job.request = request;
            }
            if (still < left)
                (void)atomic_fetch_add(&writer->fixture->progress, 1);
            left = still;
            if (left > 0)
                rest(30);
        }
    }
    return NULL;
}

/* What was said to be surely not applied was not, when it was said: no first answer comes before
 * it. */
static void assert_refusals_were_true(const struct fixture *fixture, struct model *model)
{
    for (unsigned i = 0; i < WRITERS; i++) {
        const struct writer *writer = &fixture->writers[i];
        size_t unknown = 0;
        size_t unavailable = 0;
        for (size_t k = 0; k < writer->told_count; k++) {
            const struct told *told = &writer->told[k];
            unknown += told->answer.kind == WALLET_ANSWER_UNKNOWN;
            unavailable += told->answer.kind == WALLET_ANSWER_UNAVAILABLE;
            if (told->answer.kind != WALLET_ANSWER_TRANSACTION || !told->answer.replayed)
                continue;
            /* A replay without a first answer: the outcome must have been left open. */
            bool open = false;
            for (size_t b = 0; b < k; b++)
                open = open || (writer->told[b].answer.kind == WALLET_ANSWER_UNKNOWN &&
                                strcmp(writer->told[b].request.transaction_id,
                                       told->request.transaction_id) == 0);
            assert_true(open);
        }
        print_message("writer %u: %zu answers, %zu unavailable, %zu unknown\n", i,
                      writer->told_count, unavailable, unknown);
    }
    for (unsigned i = 0; i < WRITERS * 20 * 32; i++)
        assert_int_equal(model->ids[0][i].known + model->ids[1][i].known, 1);
}

static void meddle(struct fixture *fixture, void *(*with)(void *fixture))
{
    pthread_t meddler;
    fixture->meddler = connect_to(fixture); /* before there is something to meddle with */
    say(fixture->meddler, "SET application_name = 'meddler'");
    start_writers(fixture, 300000 / WRITERS);
    assert_int_equal(pthread_create(&meddler, NULL, with, fixture), 0);
    run_writers(fixture, insist);
    assert_int_equal(pthread_join(meddler, NULL), 0);
    PQfinish(fixture->meddler);
    struct model *model = prove(fixture);
    assert_refusals_were_true(fixture, model);
    free(model);
}

static void deadlocks_are_tried_again(void **state)
{
    struct fixture *fixture = *state;
    PGconn *connection = connect_to(fixture);
    say(connection, "ALTER SYSTEM SET deadlock_timeout = '20ms'");
    say(connection, "SELECT pg_reload_conf()");
    meddle(fixture, lock_backwards);
    uint64_t conflicts = stop_writers(fixture);
    say(connection, "ALTER SYSTEM RESET deadlock_timeout");
    say(connection, "SELECT pg_reload_conf()");
    PQfinish(connection);
    print_message("%llu batches were begun again\n", (unsigned long long)conflicts);
    assert_true(conflicts > 0);
}

static void connections_that_are_ended_lose_and_double_nothing(void **state)
{
    struct fixture *fixture = *state;
    meddle(fixture, terminate);
    uint64_t conflicts = stop_writers(fixture);
    print_message("%llu batches were begun again\n", (unsigned long long)conflicts);
    assert_true(conflicts > 0);
}

/* The last 30 that a customer's clearing account has room for, wanted by four players at once. */
static void *want_the_last(void *argument)
{
    struct writer *writer = argument;
    static _Thread_local struct asked asked[20];
    for (unsigned i = 0; i < 20; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "k-%u", 100 + writer->number * 20 + i);
        prepare(writer->fixture, &asked[i], LEDGER_CREDIT, writer->number, id, 1, "");
    }
    (void)pthread_barrier_wait(&writer->fixture->barrier);
    for (unsigned i = 0; i < 20; i += 4)
        ask_all(writer, asked + i, 4);
    return NULL;
}

static void the_limit_of_a_clearing_account_is_met_exactly(void **state)
{
    struct fixture *fixture = *state;
    PGconn *connection = connect_to(fixture);
    say(connection, "INSERT INTO ledger_clearing SELECT number, 'EUR', -4611686018427387904 + 30"
                    " FROM customer WHERE id = 'cus_0'");
    start_writers(fixture, 20);
    run_writers(fixture, want_the_last);
    unsigned applied = 0;
    unsigned declined = 0;
    for (unsigned i = 0; i < WRITERS; i++) {
        for (unsigned k = 0; k < 20; k++) {
            const struct wallet_answer *answer = &fixture->writers[i].told[k].answer;
            assert_int_equal(answer->kind, WALLET_ANSWER_TRANSACTION);
            applied += answer->transaction.outcome == LEDGER_APPLIED;
            declined += answer->transaction.outcome == LEDGER_BALANCE_LIMIT_EXCEEDED;
        }
    }
    assert_int_equal(applied, 30);
    assert_int_equal(declined, 50);
    PGresult *result = PQexec(connection, "SELECT balance_minor FROM ledger_clearing");
    assert_string_equal(PQgetvalue(result, 0, 0), "-4611686018427387904");
    PQclear(result);
    PQfinish(connection);
    (void)stop_writers(fixture);
}

int main(int argc, char **argv)
{
    factory = argc == 2 ? factory_of(argv[1]) : NULL;
    if (factory == NULL) {
        (void)fprintf(stderr, "usage: ledger_writers ENGINE\n");
        return 2;
    }
#define WRITERS_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        WRITERS_TEST(several_instances_come_to_what_one_would),
        WRITERS_TEST(an_id_is_used_or_voided_and_never_both),
    };
    const struct CMUnitTest postgres_tests[] = {
        WRITERS_TEST(deadlocks_are_tried_again),
        WRITERS_TEST(connections_that_are_ended_lose_and_double_nothing),
        WRITERS_TEST(the_limit_of_a_clearing_account_is_met_exactly),
    };
    int failed = cmocka_run_group_tests_name(argv[1], tests, NULL, NULL);
    if (strcmp(argv[1], "postgresql") == 0)
        failed += cmocka_run_group_tests(postgres_tests, NULL, NULL);
    return failed;
}
