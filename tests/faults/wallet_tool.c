/*
 * Acts on a ledger for test_wallet_faults.py, with no HTTP in between:
 *
 *   wallet_tool setup URI             makes the store, a customer, two players that a provider has
 *                                     launched; says their ids
 *   wallet_tool run URI COUNT BURST PLAYER PLAYER
 *                                     operations 0 to COUNT - 1, BURST at a time; a line for each
 *                                     answer,
 *                                     written when there is one: "3 applied 2 17 0" is the number,
 *                                     the
 *                                     outcome, the sequence, the balance and whether it was
 *                                     replayed
 *   wallet_tool verify URI            the proof; exit 1 and the first break
 *
 * Which operation has which number never changes, so that running again is repeating everything.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "stores/ledger_audit.h"
#include "stores/platform_games.h"
#include "stores/platform_players.h"
#include "stores/platform_records.h"
#include "submit_job.h"
#include "wallet/ledger.h"

#define BURST_MAX 64
#define UNAVAILABLE_PAUSE_MS 100

struct asked {
    struct ledger_job job; /* first */
    unsigned *left;
};

static int fail(const char *what, const struct error *error)
{
    (void)fprintf(stderr, "wallet_tool: %s: %s\n", what, error->text);
    return 1;
}

static enum status add_game(struct platform_store *store, struct error *error)
{
    const struct provider_record provider = {.id = "acme",
                                             .name = "Acme",
                                             .audience = "acme",
                                             .launch_url = "https://a.example/",
                                             .secrets = {{.size = 60}},
                                             .enabled = true,
                                             .usable = true,
                                             .created_ms = 1};
    const struct game_record game = {.id = "wheel",
                                     .provider_id = "acme",
                                     .name = "Wheel",
                                     .category = "slots",
                                     .currencies = "EUR",
                                     .rtp_bps = -1,
                                     .enabled = true,
                                     .usable = true};
    const bool set_enabled = true;
    struct games_put_result result;
    enum status status = platform_add(store, &provider_table, &provider, error);
    if (status == STATUS_OK)
        status = platform_games_put(store, &game, &set_enabled, 1, 1, &result, error);
    return status;
}

/* The two launches, and what the provider calls their players. */
static const char *const launch_ids[2] = {"lau_a", "lau_b"};
static const char *const subjects[2] = {"aaaaaaaaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbbbbbbbb"};

static enum status add_launch(struct platform_store *store, const char *player_id, int which,
                              struct error *error)
{
    struct launch_record launch = {.customer_id = "cus_One",
                                   .provider_id = "acme",
                                   .game_id = "wheel",
                                   .created_ms = clock_wall_ms()};
    (void)snprintf(launch.id, sizeof launch.id, "%s", launch_ids[which]);
    (void)snprintf(launch.player_id, sizeof launch.player_id, "%s", player_id);
    (void)snprintf(launch.subject, sizeof launch.subject, "%s", subjects[which]);
    return platform_launches_add(store, &launch, 1, error);
}

static int setup(const char *uri)
{
    struct platform_store *store = NULL;
    struct platform_store_options options = {.uri = uri, .timeout_ms = 60000, .create = true};
    struct customer_record customer = {
        .id = "cus_One", .name = "One", .enabled = true, .usable = true, .created_ms = 1};
    struct player_record player;
    struct error error = {0};
    uint32_t before;
    uint32_t after;
    if (platform_store_open(&store, &options, &error) != STATUS_OK ||
        platform_store_migrate(store, &before, &after, &error) != STATUS_OK ||
        platform_add(store, &customer_table, &customer, &error) != STATUS_OK)
        return fail("setup", &error);
    if (add_game(store, &error) != STATUS_OK)
        return fail("game", &error);
    for (int i = 0; i < 2; i++) {
        if (platform_player_open(store, "cus_One", i == 0 ? "a" : "b", "EUR", 2, &player, &error) !=
                STATUS_OK ||
            add_launch(store, player.id, i, &error) != STATUS_OK)
            return fail("player", &error);
        (void)printf("%s\n", player.id);
    }
    platform_store_close(&store);
    return 0;
}

static void on_answer(struct mail *mail)
{
    struct asked *asked = (struct asked *)(void *)mail;
    (*asked->left)--;
}

static void say(unsigned number, const struct wallet_answer *answer)
{
    char line[128];
    const struct ledger_transaction *told = &answer->transaction;
    int size = answer->kind == WALLET_ANSWER_TRANSACTION
                   ? snprintf(line, sizeof line, "%u %s %" PRIu64 " %" PRId64 " %d\n", number,
                              ledger_outcome_name(told->outcome), told->sequence,
                              told->balance_minor, answer->replayed)
                   : snprintf(line, sizeof line, "%u %s\n", number,
                              answer->kind == WALLET_ANSWER_UNKNOWN       ? "unknown"
                              : answer->kind == WALLET_ANSWER_UNAVAILABLE ? "unavailable"
                                                                          : "refused");
    if (write(STDOUT_FILENO, line, (size_t)size) != size)
        abort();
}

/* Who asks: of four, two times the customer, then the provider, in the session of a launch. What a
 * rollback is of is the same player's. */
static void fill_client(struct wallet_request *request, unsigned number, char **players)
{
    unsigned which = number % 2;
    if (number % 4 < 2) {
        memcpy(request->customer_id, "cus_One", 8);
        (void)snprintf(request->player_id, sizeof request->player_id, "%s", players[which]);
        return;
    }
    memcpy(request->provider_id, "acme", 5);
    (void)snprintf(request->subject, sizeof request->subject, "%s", subjects[which]);
    if (number % 5 != 4 && number % 7 != 6) {
        (void)snprintf(request->launch_id, sizeof request->launch_id, "%s", launch_ids[which]);
        memcpy(request->game_id, "wheel", 6);
        memcpy(request->round_id, "r", 2);
    }
}

/* Mostly credits and debits; every fifth rolls back what came two before, every seventh something
 * that comes three later: that of the same client, where it has one of that id. */
static void fill(struct wallet_request *request, unsigned number, char **players)
{
    unsigned other = 0;
    fill_client(request, number, players);
    (void)snprintf(request->transaction_id, sizeof request->transaction_id, "t-%u", number);
    if (number % 5 == 4)
        other = number - 2;
    else if (number % 7 == 6)
        other = number + 4;
    if (other != 0) {
        request->operation = LEDGER_ROLLBACK;
        (void)snprintf(request->reference, sizeof request->reference, "t-%u", other);
        return;
    }
    request->operation = number % 3 == 2 ? LEDGER_DEBIT : LEDGER_CREDIT;
    request->amount_minor = 1 + number % 50;
    memcpy(request->currency, "EUR", 4);
}

/* WALLET_FIRST: the number of the first operation (0). */
static unsigned first_number(void)
{
    const char *given = getenv("WALLET_FIRST");
    return given != NULL ? (unsigned)strtoul(given, NULL, 10) : 0;
}

/* Ends the ledger, too: before the loop, whose descriptors libuv closes in a way that
 * ThreadSanitizer does not see, so that it takes whoever gets their numbers next for another user
 * of the loop. */
static void run_bursts(struct ledger *ledger, unsigned count, unsigned burst, char **players)
{
    static struct asked asked[BURST_MAX];
    uv_loop_t loop;
    CHECK(uv_loop_init(&loop) == 0);
    struct mailbox *mailbox = mailbox_create(&loop);
    uv_timer_t keeps_alive;
    CHECK(uv_timer_init(&loop, &keeps_alive) == 0);
    CHECK(uv_timer_start(&keeps_alive, (uv_timer_cb)(void (*)(void))abort, 600000, 0) == 0);
    const unsigned end = first_number() + count;
    for (unsigned first = end - count; first < end; first += burst) {
        unsigned left = 0;
        for (unsigned i = 0; i < burst && first + i < end; i++) {
            memset(&asked[i], 0, sizeof asked[i]);
            asked[i].left = &left;
            asked[i].job.mailbox = mailbox;
            asked[i].job.mail.deliver = on_answer;
            fill(&asked[i].job.request, first + i, players);
            left++;
            CHECK(submit_job(ledger, &asked[i].job) == STATUS_OK);
        }
        while (left > 0)
            (void)uv_run(&loop, UV_RUN_ONCE);
        bool refused = false;
        for (unsigned i = 0; i < burst && first + i < end; i++) {
            say(first + i, &asked[i].job.answer);
            refused = refused || asked[i].job.answer.kind == WALLET_ANSWER_UNAVAILABLE;
        }
        /* As a client does: else all the rest is refused before the ledger tries its store
         * again. */
        if (refused)
            (void)nanosleep(&(struct timespec){.tv_nsec = UNAVAILABLE_PAUSE_MS * 1000000L}, NULL);
    }
    ledger_destroy(&ledger);
    uv_close((uv_handle_t *)&keeps_alive, NULL);
    mailbox_destroy(&mailbox);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    CHECK(uv_loop_close(&loop) == 0);
}

/* WALLET_TIMEOUT_MS: more time for servers that have to start again. */
static uint32_t run_timeout_ms(void)
{
    const char *given = getenv("WALLET_TIMEOUT_MS");
    return given != NULL ? (uint32_t)strtoul(given, NULL, 10) : 5000;
}

static int run(const char *uri, unsigned count, unsigned burst, char **players)
{
    /* Nothing else is opened here, so that only the ledger meets the faults. */
    if (burst < 1 || burst > BURST_MAX)
        return 2;
    struct log *log = log_create(STDERR_FILENO, LOG_INFO, LOG_FORMAT_TEXT);
    const struct platform_store_options options = {
        .uri = uri, .timeout_ms = run_timeout_ms(), .log = log};
    struct ledger *ledger = ledger_create(&options, BURST_MAX, LEDGER_BATCH_MAX, 86400000);
    run_bursts(ledger, count, burst, players);
    log_destroy(&log);
    return 0;
}

static int verify(const char *uri)
{
    struct platform_store *store = NULL;
    struct platform_store_options options = {.uri = uri, .timeout_ms = 60000};
    struct audit_result result = {0};
    struct error error = {0};
    if (platform_store_open(&store, &options, &error) != STATUS_OK ||
        wallet_audit(store, &(struct audit_options){0}, &result, &error) != STATUS_OK)
        return fail("verify", &error);
    (void)printf("%" PRIu64 "\n", result.entries);
    platform_store_close(&store);
    return 0;
}

/* libuv closes descriptors by a system call of its own, which ThreadSanitizer does not see: when
 * another thread's open() is given the number of an event loop's that has gone, it takes them for
 * one. */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "race:epoll_create1\n";
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "setup") == 0)
        return setup(argv[2]);
    if (argc == 3 && strcmp(argv[1], "verify") == 0)
        return verify(argv[2]);
    if (argc == 7 && strcmp(argv[1], "run") == 0)
        return run(argv[2], (unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]), argv + 5);
    (void)fprintf(stderr,
                  "usage: wallet_tool setup|verify URI, or run URI COUNT BURST PLAYER PLAYER\n");
    return 2;
}
