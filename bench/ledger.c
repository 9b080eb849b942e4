/*
 * How fast the ledger is by itself: queue, batch, commit, answer, without HTTP. Drives
 * wallet/ledger through its header as the routes do, with more operations under way than a batch
 * holds, so that the next batch is always waiting.
 *
 *   ledger STORE [--batch N] [--in-flight N] [--operations N] [--warm-up N] [--entries N]
 *                [--players N] [--ids random|rising]
 *
 * STORE is a platform store's URI; what is missing in it (schema, customer, players, their first
 * money) is made first. --entries grows the ledger to that many entries before anything is
 * measured. Bets and wins alternate, every win refers to its bet, every fiftieth bet is rolled back
 * instead. Ids are 32 random hexadecimal digits, which is what costs an index most, or rise as a
 * counter does.
 *
 * What fsync does, and how often, is sync.h's: CROUPIER_BENCH_SYNC in the environment turns it off.
 *
 * Writes one line of JSON. Exit 1 when anything was answered but with what was expected.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/memory.h"
#include "stores/platform_entries.h"
#include "stores/platform_players.h"
#include "stores/platform_records.h"
#include "sync.h"
#include "wallet/ledger.h"

#define CUSTOMER "cus_LedgerBench00000"
#define FUNDS_MINOR 1000000000000LL
#define ROLLBACK_EVERY 50

struct options {
    const char *store;
    size_t batch, in_flight, players;
    uint64_t operations, warm_up, entries;
    bool rising;
};

struct bench;

struct asked {
    struct ledger_job job; /* first */
    struct bench *bench;
    uint64_t submitted_ns;
    bool funds; /* a player's first money */
};

struct bench {
    struct options options;
    struct player_record *players;
    struct ledger *ledger;
    uv_loop_t loop;
    struct mailbox *mailbox;
    struct asked *asked;
    uint64_t seed[2];
    uint64_t next;               /* number of the next operation */
    uint64_t wanted;             /* of this stage, whatever is under way besides */
    uint64_t answered, unwanted; /* of this stage; `unwanted` answers are failures */
    size_t under_way;
    uint64_t *took_ns; /* of each operation measured; NULL: not wanted */
    uint64_t last_ns;  /* when the last wanted answer came */
};

static void fail(const char *what, const char *why)
{
    (void)fprintf(stderr, "ledger: %s: %s\n", what, why);
    exit(1);
}

/* ---- operations ------------------------------------------------------------------------------ */

static uint64_t mix(uint64_t value)
{
    value = (value ^ value >> 30) * 0xbf58476d1ce4e5b9U;
    value = (value ^ value >> 27) * 0x94d049bb133111ebU;
    return value ^ value >> 31;
}

/* The id of an operation, the same whenever it is asked for. */
static void name_operation(const struct bench *bench, uint64_t number,
                           char out[TRANSACTION_ID_SIZE])
{
    if (bench->options.rising)
        (void)snprintf(out, TRANSACTION_ID_SIZE, "%016" PRIx64 "%016" PRIx64, bench->seed[0],
                       number);
    else
        (void)snprintf(out, TRANSACTION_ID_SIZE, "%016" PRIx64 "%016" PRIx64,
                       mix(bench->seed[0] + number), mix(bench->seed[1] ^ number));
}

static void fill(const struct bench *bench, uint64_t number, struct wallet_request *request)
{
    uint64_t round = number / 2;
    const struct player_record *player =
        &bench->players[mix(bench->seed[1] + round) % bench->options.players];
    memset(request, 0, sizeof *request);
    memcpy(request->customer_id, CUSTOMER, sizeof CUSTOMER);
    memcpy(request->player_id, player->id, sizeof player->id);
    name_operation(bench, number, request->transaction_id);
    if (number % 2 == 1)
        name_operation(bench, number - 1, request->reference);
    if (number % 2 == 1 && round % ROLLBACK_EVERY == 0) {
        request->operation = LEDGER_ROLLBACK;
        return;
    }
    request->operation = number % 2 == 0 ? LEDGER_DEBIT : LEDGER_CREDIT;
    request->amount_minor = 100;
    memcpy(request->currency, player->currency, sizeof player->currency);
    memcpy(request->game_id, "northbridge-roulette", 21);
    (void)snprintf(request->round_id, sizeof request->round_id, "r-%" PRIu64, round);
}

static void submit(struct asked *asked)
{
    asked->submitted_ns = clock_monotonic_ns();
    struct mail_list jobs = STAILQ_HEAD_INITIALIZER(jobs);
    STAILQ_INSERT_TAIL(&jobs, &asked->job.mail, link);
    ledger_submit(asked->bench->ledger, &jobs);
    if (!STAILQ_EMPTY(&jobs))
        fail("submit", "the queue is full");
    asked->bench->under_way++;
}

static void on_answer(struct mail *mail)
{
    struct asked *asked = (struct asked *)(void *)mail;
    struct bench *bench = asked->bench;
    const struct wallet_answer *answer = &asked->job.answer;
    uint64_t now_ns = clock_monotonic_ns();
    if (answer->kind != WALLET_ANSWER_TRANSACTION || answer->replayed ||
        answer->transaction.outcome != LEDGER_APPLIED)
        bench->unwanted++;
    if (bench->took_ns != NULL && bench->answered < bench->wanted)
        bench->took_ns[bench->answered] = now_ns - asked->submitted_ns;
    bench->under_way--;
    if (++bench->answered == bench->wanted)
        bench->last_ns = now_ns;
    if (bench->answered < bench->wanted && !asked->funds) {
        fill(bench, bench->next++, &asked->job.request);
        submit(asked);
    }
}

static void wait_for_answers(struct bench *bench)
{
    while (bench->under_way > 0)
        (void)uv_run(&bench->loop, UV_RUN_ONCE);
    if (bench->unwanted > 0)
        fail("operations", "some were not applied");
}

/* Keeps `in_flight` operations under way until `count` are answered; then lets the rest come.
 * Returns the nanoseconds from the first submission to the last answer wanted. */
static uint64_t run_operations(struct bench *bench, uint64_t count)
{
    bench->wanted = count;
    bench->answered = 0;
    uint64_t started_ns = clock_monotonic_ns();
    for (size_t i = 0; i < bench->options.in_flight && count > 0; i++) {
        struct asked *asked = &bench->asked[i];
        asked->funds = false;
        fill(bench, bench->next++, &asked->job.request);
        submit(asked);
    }
    wait_for_answers(bench);
    bench->next += bench->next % 2; /* no win without its bet in the next stage */
    return bench->last_ns - started_ns;
}

/* ---- the store ------------------------------------------------------------------------------- */

static struct platform_store *open_store(const struct bench *bench)
{
    struct platform_store *store = NULL;
    const struct platform_store_options options = {
        .uri = bench->options.store, .timeout_ms = 60000, .create = true};
    struct error error = {0};
    uint32_t before;
    uint32_t after;
    if (platform_store_open(&store, &options, &error) != STATUS_OK ||
        platform_store_migrate(store, &before, &after, &error) != STATUS_OK)
        fail("store", error.text);
    return store;
}

/* Returns how many entries the ledger has. */
static uint64_t make_players(struct bench *bench, bool *funded)
{
    struct platform_store *store = open_store(bench);
    struct error error = {0};
    struct customer_record customer = {.id = CUSTOMER,
                                       .name = "Ledger bench",
                                       .enabled = true,
                                       .casino = true,
                                       .usable = true,
                                       .created_ms = clock_wall_ms()};
    uint64_t entries = 0;
    enum status status = platform_add(store, &customer_table, &customer, &error);
    if (status != STATUS_OK && status != STATUS_EXISTS)
        fail("customer", error.text);
    for (size_t i = 0; i < bench->options.players; i++) {
        struct ledger_account account;
        char reference[PLAYER_REFERENCE_SIZE];
        (void)snprintf(reference, sizeof reference, "player-%zu", i);
        if (platform_player_open(store, CUSTOMER, reference, "EUR", 2, &bench->players[i],
                                 &error) != STATUS_OK ||
            platform_ledger_balance(store, bench->players[i].id, &account, &error) != STATUS_OK)
            fail("player", error.text);
        funded[i] = account.sequence > 0;
    }
    if (platform_ledger_count(store, &entries, &error) != STATUS_OK)
        fail("ledger", error.text);
    platform_store_close(&store);
    return entries;
}

static uint64_t fund(struct bench *bench, const bool *funded)
{
    size_t at = 0;
    uint64_t made = 0;
    while (at < bench->options.players) {
        for (size_t i = 0; i < bench->options.in_flight && at < bench->options.players; at++) {
            if (funded[at])
                continue;
            struct asked *asked = &bench->asked[i++];
            struct wallet_request *request = &asked->job.request;
            fill(bench, 0, request);
            memcpy(request->player_id, bench->players[at].id, sizeof bench->players[at].id);
            (void)snprintf(request->transaction_id, sizeof request->transaction_id, "funds-%zu",
                           at);
            request->operation = LEDGER_CREDIT;
            request->amount_minor = FUNDS_MINOR;
            asked->funds = true;
            made++;
            submit(asked);
        }
        wait_for_answers(bench);
    }
    return made;
}

/* ---- the result ------------------------------------------------------------------------------ */

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

static double cpu_seconds(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double milliseconds(uint64_t nanoseconds)
{
    return (double)nanoseconds / 1e6;
}

static void measure(struct bench *bench, uint64_t entries)
{
    uint64_t count = bench->options.operations;
    struct ledger_facts before;
    struct ledger_facts after;
    (void)run_operations(bench, bench->options.warm_up);
    bench->took_ns = memory_alloc_zeroed(count, sizeof bench->took_ns[0]);
    ledger_facts(bench->ledger, &before);
    double cpu_before = cpu_seconds();
    uint64_t syncs_before;
    uint64_t sync_before_ns;
    uint64_t syncs;
    uint64_t sync_ns;
    sync_counted(&syncs_before, &sync_before_ns);
    uint64_t elapsed_ns = run_operations(bench, count);
    ledger_facts(bench->ledger, &after);
    sync_counted(&syncs, &sync_ns);
    uint64_t commits = 0;
    for (size_t i = 0; i < LEDGER_COMMIT_BUCKETS; i++)
        commits += after.commits[i] - before.commits[i];
    uint64_t batched = after.batched - before.batched; /* those after the last wanted one too */
    qsort(bench->took_ns, count, sizeof bench->took_ns[0], compare);
    (void)printf(
        "{\"batch\":%zu,\"entries\":%" PRIu64 ",\"operations\":%" PRIu64
        ",\"per_second\":%.1f,\"operation_us\":%.2f,\"cpu_us\":%.2f,\"batch_mean\":%.1f,"
        "\"commits\":%" PRIu64 ",\"commit_ms\":%.3f,\"syncs_a_commit\":%.2f,\"sync_ms\":%.3f,"
        "\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"slowest_ms\":%.3f}\n",
        bench->options.batch, entries, count, (double)count * 1e9 / (double)elapsed_ns,
        (double)elapsed_ns / 1e3 / (double)count,
        (cpu_seconds() - cpu_before) * 1e6 / (double)batched, (double)batched / (double)commits,
        commits, milliseconds(after.commit_ns - before.commit_ns) / (double)commits,
        (double)(syncs - syncs_before) / (double)commits,
        milliseconds(sync_ns - sync_before_ns) / (double)commits,
        milliseconds(bench->took_ns[count / 2]), milliseconds(bench->took_ns[count * 99 / 100]),
        milliseconds(bench->took_ns[count - 1]));
    memory_free(bench->took_ns);
    bench->took_ns = NULL;
}

static void run(struct bench *bench)
{
    const struct options *options = &bench->options;
    bool *funded = memory_alloc_zeroed(options->players, sizeof funded[0]);
    bench->players = memory_alloc_zeroed(options->players, sizeof bench->players[0]);
    bench->asked = memory_alloc_zeroed(options->in_flight, sizeof bench->asked[0]);
    CHECK(getrandom(bench->seed, sizeof bench->seed, 0) == sizeof bench->seed);
    if (options->rising) /* and across runs */
        bench->seed[0] = clock_monotonic_ns();
    uint64_t entries = make_players(bench, funded);
    CHECK(uv_loop_init(&bench->loop) == 0);
    bench->mailbox = mailbox_create(&bench->loop);
    for (size_t i = 0; i < options->in_flight; i++) {
        bench->asked[i].bench = bench;
        bench->asked[i].job.mailbox = bench->mailbox;
        bench->asked[i].job.mail.deliver = on_answer;
    }
    uv_timer_t keeps_alive;
    CHECK(uv_timer_init(&bench->loop, &keeps_alive) == 0);
    CHECK(uv_timer_start(&keeps_alive, (uv_timer_cb)(void (*)(void))abort, 24ULL * 3600 * 1000,
                         0) == 0);
    struct log *log = log_create(STDERR_FILENO, LOG_WARNING, LOG_FORMAT_TEXT);
    const struct platform_store_options store = {
        .uri = options->store, .timeout_ms = 60000, .log = log};
    bench->ledger = ledger_create(&store, options->in_flight, options->batch, 0);
    entries += fund(bench, funded);
    if (entries < options->entries) {
        (void)run_operations(bench, options->entries - entries);
        entries = options->entries;
    }
    if (options->operations > 0)
        measure(bench, entries);
    ledger_destroy(&bench->ledger);
    uv_close((uv_handle_t *)&keeps_alive, NULL);
    mailbox_destroy(&bench->mailbox);
    (void)uv_run(&bench->loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&bench->loop) == 0);
    log_destroy(&log);
    memory_free(bench->asked);
    memory_free(bench->players);
    memory_free(funded);
}

/* ---- the command line ------------------------------------------------------------------------ */

static uint64_t read_number(const char *option, const char *given)
{
    uint64_t number = 0;
    if (text_to_u64(text_of(given), 1000000000U, &number) != STATUS_OK)
        fail(option, "is not a number up to 1000000000");
    return number;
}

static void read_options(int argc, char **argv, struct options *options)
{
    static const struct option known[] = {
        {"batch", required_argument, NULL, 'b'},   {"in-flight", required_argument, NULL, 'f'},
        {"players", required_argument, NULL, 'p'}, {"operations", required_argument, NULL, 'o'},
        {"warm-up", required_argument, NULL, 'w'}, {"entries", required_argument, NULL, 'e'},
        {"ids", required_argument, NULL, 'i'},     {0},
    };
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        switch (option) {
        case 'b':
            options->batch = read_number("--batch", optarg);
            break;
        case 'f':
            options->in_flight = read_number("--in-flight", optarg);
            break;
        case 'p':
            options->players = read_number("--players", optarg);
            break;
        case 'o':
            options->operations = read_number("--operations", optarg);
            break;
        case 'w':
            options->warm_up = read_number("--warm-up", optarg);
            break;
        case 'e':
            options->entries = read_number("--entries", optarg);
            break;
        case 'i':
            options->rising = strcmp(optarg, "rising") == 0;
            break;
        default:
            exit(2);
        }
    }
    if (optind + 1 != argc || options->batch < 1 || options->batch > LEDGER_BATCH_MAX ||
        options->players < 1)
        fail("usage", "see the head of bench/ledger.c");
    options->store = argv[optind];
    if (options->in_flight == 0)
        options->in_flight = 2 * options->batch;
}

int main(int argc, char **argv)
{
    struct bench *bench = memory_alloc_zeroed(1, sizeof *bench);
    bench->options = (struct options){.batch = LEDGER_BATCH_MAX, .players = 1000};
    read_options(argc, argv, &bench->options);
    run(bench);
    memory_free(bench);
    return 0;
}
