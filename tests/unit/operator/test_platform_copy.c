/* operator/platform_copy: somebody writes into the source while it is copied. (That what is copied
 * is all, and goes on in its new player: tests/service/test_commands_copy.py.) */
#include "operator/platform_copy.h"
#include "stores/platform_ledger.h"
#include "stores/platform_players.h"
#include "stores/platform_records.h"
#include "stores/platform_usage.h"
#include "test_directory.h"
#include "tests.h"

#define NOW_MS 1763700000000

#define OK(call) ASSERT_OK(call, house->error)

enum moment { NEVER, WHILE_IT_IS_COPIED, WHILE_THE_COPY_IS_READ };

struct house {
    char directory[TEST_DIRECTORY_SIZE];
    struct platform_store *from, *to;
    struct platform_store *late; /* the source, of somebody who was forgotten */
    char player_id[PLAYER_ID_SIZE];
    struct error error;
    enum moment moment;
    int walks;
    enum status (*write)(struct house *house);
};

static struct platform_store *make_store(struct house *house, const char *name)
{
    struct platform_store *store = NULL;
    char uri[96];
    uint32_t before;
    uint32_t after;
    (void)snprintf(uri, sizeof uri, "sqlite:%s/%s", house->directory, name);
    const struct platform_store_options options = {.uri = uri, .timeout_ms = 5000, .create = true};
    assert_int_equal(platform_store_open(&store, &options, &house->error), STATUS_OK);
    OK(platform_store_migrate(store, &before, &after, &house->error));
    return store;
}

static enum status add_customer(struct house *house, const char *id)
{
    struct customer_record customer = {.name = "n", .enabled = true, .usable = true};
    (void)snprintf(customer.id, sizeof customer.id, "%s", id);
    return platform_add(house->late, &customer_table, &customer, &house->error);
}

/* One more entry of the only player, as the ledger would write it. */
static enum status credit(struct house *house, const char *id)
{
    struct ledger_batch *batch = calloc(1, sizeof *batch);
    bool unknown = false;
    assert_non_null(batch);
    batch->player_count = 1;
    memcpy(batch->players[0].player_id, house->player_id, sizeof house->player_id);
    enum status status = house->late->ledger->begin(house->late, batch, &house->error);
    if (status == STATUS_OK) {
        struct ledger_account *account = &batch->players[0].account;
        struct ledger_transaction *kept = &batch->kept[batch->kept_count++];
        *kept = (struct ledger_transaction){.operation = LEDGER_CREDIT,
                                            .outcome = LEDGER_APPLIED,
                                            .amount_minor = 5,
                                            .movement_minor = 5,
                                            .currency_exponent = 2,
                                            .created_ms = NOW_MS};
        memcpy(kept->customer_id, "cus_1", 6);
        memcpy(kept->player_id, house->player_id, sizeof kept->player_id);
        memcpy(kept->currency, "EUR", 4);
        (void)snprintf(kept->transaction_id, sizeof kept->transaction_id, "%s", id);
        kept->sequence = ++account->sequence;
        kept->balance_minor = account->balance_minor += 5;
        ledger_entry_hash(kept, account->head, kept->hash);
        memcpy(account->head, kept->hash, sizeof account->head);
        batch->players[0].changed = true;
        batch->clearings[0].balance_minor -= 5;
        batch->clearings[0].changed = true;
        status = house->late->ledger->commit(house->late, batch, &unknown, &house->error);
    }
    free(batch);
    return status;
}

static int set_up_house(void **state)
{
    struct house *house = calloc(1, sizeof *house);
    struct player_record player;
    test_directory_make(house->directory);
    house->from = make_store(house, "from.db");
    house->late = make_store(house, "from.db");
    house->to = make_store(house, "to.db");
    OK(add_customer(house, "cus_1"));
    OK(platform_player_open(house->from, "cus_1", "alice", "EUR", 2, &player, &house->error));
    memcpy(house->player_id, player.id, sizeof house->player_id);
    OK(credit(house, "early"));
    *state = house;
    return 0;
}

static int tear_down_house(void **state)
{
    struct house *house = *state;
    char command[2 * TEST_DIRECTORY_SIZE];
    platform_store_close(&house->from);
    platform_store_close(&house->late);
    platform_store_close(&house->to);
    (void)snprintf(command, sizeof command, "rm -r %s", house->directory);
    assert_int_equal(system(command), 0);
    free(house);
    return 0;
}

static void on_progress(void *context, const char *what, uint64_t done, uint64_t total)
{
    (void)total;
    struct house *house = context;
    const enum moment now = strcmp(what, "copying transactions") == 0     ? WHILE_IT_IS_COPIED
                            : strcmp(what, "comparing transactions") == 0 ? WHILE_THE_COPY_IS_READ
                                                                          : NEVER;
    if (done != 1 || now == NEVER)
        return;
    house->walks++;
    if (now == house->moment)
        OK(house->write(house));
}

static enum status late_customer(struct house *house)
{
    return add_customer(house, "cus_2");
}

static enum status late_provider(struct house *house)
{
    struct provider_record provider = {.id = "acme", .name = "n", .enabled = true, .usable = true};
    memcpy(provider.launch_url, "https://acme.example/", 22);
    memcpy(provider.audience, "acme", 5);
    provider.secrets[0].size = 32;
    return platform_add(house->late, &provider_table, &provider, &house->error);
}

static enum status late_player(struct house *house)
{
    struct player_record player;
    return platform_player_open(house->late, "cus_1", "bob", "EUR", 2, &player, &house->error);
}

#define USED_DAYS 300 /* more than go into one transaction */

static enum status add_usage(struct house *house, struct platform_store *store, int64_t first_day)
{
    static struct usage_record records[USED_DAYS / 2];
    for (int i = 0; i < USED_DAYS / 2; i++)
        records[i] = (struct usage_record){.day = first_day + i,
                                           .customer_id = "cus_1",
                                           .group = USAGE_WALLET,
                                           .requests = {1, 2, 3, 4}};
    return platform_usage_add(store, records, USED_DAYS / 2, &house->error);
}

static enum status late_usage(struct house *house)
{
    return add_usage(house, house->late, 20000);
}

static enum status late_transaction(struct house *house)
{
    return credit(house, "late");
}

static bool sum_usage(void *context, const struct usage_record *record)
{
    *(uint64_t *)context += record->requests[3];
    return true;
}

TEST_OF_WITH(house, nothing_late_is_a_copy, set_up_house, tear_down_house)
{
    struct platform_counts counts = {0};
    uint64_t sum = 0;
    OK(add_usage(house, house->from, 0));
    OK(add_usage(house, house->from, USED_DAYS / 2));
    const struct progress_watch watch = {on_progress, house};
    OK(platform_copy(house->from, house->to, &watch, &counts, &house->error));
    assert_int_equal(house->walks, 2);
    assert_int_equal(counts.entries, 1);
    OK(platform_usage_list(house->to, "cus_1", 0, USED_DAYS, sum_usage, &sum, &house->error));
    assert_int_equal(sum, USED_DAYS * 4);
}

TEST(whatever_is_written_into_the_source_meanwhile_is_noticed)
{
    static enum status (*const writes[])(struct house * house) = {
        late_customer, late_provider, late_player, late_transaction, late_usage};
    static const enum moment moments[] = {WHILE_IT_IS_COPIED, WHILE_THE_COPY_IS_READ};
    for (size_t i = 0; i < 10; i++) {
        struct house *house = NULL;
        struct platform_counts counts = {0};
        assert_int_equal(set_up_house((void **)&house), 0);
        house->write = writes[i / 2];
        house->moment = moments[i % 2];
        enum status status =
            platform_copy(house->from, house->to, &(struct progress_watch){on_progress, house},
                          &counts, &house->error);
        if (status != STATUS_MALFORMED || strstr(house->error.text, "written to meanwhile") == NULL)
            fail_msg("write %zu at moment %zu: %s: %s", i / 2, i % 2, status_name(status),
                     house->error.text);
        assert_int_equal(tear_down_house((void **)&house), 0);
    }
}
