/*
 * What the SQLite ledger derives from its rows and keeps elsewhere: the index of ids, in memory and
 * in files beside the database, accounts in memory, days; and the walk through entries. Built with
 * an index so small (see meson.build) that some hundred ids go through all of its merges.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "platform_places.h"
#include "stores/platform/sqlite/ids.h"
#include "stores/platform/sqlite/ids/id_index.h"
#include "stores/platform/sqlite/sqlite.h"
#include "stores/platform_players.h"
#include "stores/platform_records.h"
#include "stores/platform_sums.h"
#include "tests.h"

struct fixture {
    struct place place;
    struct platform_store *store;
    struct player_record players[2]; /* of cus_1 and cus_2 */
    unsigned written;                /* ids, "id-0" and so on, of either customer in turn */
    struct error error;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    uint32_t before;
    uint32_t after;
    factory_of("sqlite")->place(&fixture->place);
    struct platform_store_options options = {
        .uri = fixture->place.uri, .timeout_ms = 5000, .create = true};
    OK(platform_store_open(&fixture->store, &options, &fixture->error));
    OK(platform_store_migrate(fixture->store, &before, &after, &fixture->error));
    for (unsigned i = 0; i < 2; i++) {
        struct customer_record customer = {
            .enabled = true, .sports = SPORT_SET_ALL, .created_ms = 1};
        (void)snprintf(customer.id, sizeof customer.id, "cus_%u", i + 1);
        (void)snprintf(customer.name, sizeof customer.name, "customer %u", i + 1);
        OK(platform_add(fixture->store, &customer_table, &customer, &fixture->error));
        OK(platform_player_open(fixture->store, customer.id, "anna", "EUR", 2, &fixture->players[i],
                                &fixture->error));
    }
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

/* A declined transaction: its id is kept, and nothing else of it matters here. */
static void keep(const struct fixture *fixture, struct ledger_batch *batch, unsigned id)
{
    const struct player_record *player = &fixture->players[id % 2];
    struct ledger_transaction *kept = &batch->kept[batch->kept_count++];
    *kept = (struct ledger_transaction){.operation = LEDGER_DEBIT,
                                        .outcome = LEDGER_INSUFFICIENT_FUNDS,
                                        .currency_exponent = 2,
                                        .amount_minor = 1 + id,
                                        .created_ms = 1};
    memcpy(kept->customer_id, player->customer_id, sizeof kept->customer_id);
    memcpy(kept->player_id, player->id, sizeof kept->player_id);
    memcpy(kept->currency, player->currency, sizeof kept->currency);
    (void)snprintf(kept->transaction_id, sizeof kept->transaction_id, "id-%u", id);
    ledger_chain_decline(&batch->players[id % 2].account, kept);
    batch->players[id % 2].declined = true;
}

/* `meanwhile`, unless it is NULL, happens between the batch's begin and its commit. */
static enum status write_ids_while(struct fixture *fixture, unsigned first, unsigned count,
                                   void (*meanwhile)(struct fixture *), bool *unknown)
{
    static struct ledger_batch batch;
    memset(&batch, 0, sizeof batch);
    for (; batch.player_count < 2; batch.player_count++)
        memcpy(batch.players[batch.player_count].player_id, fixture->players[batch.player_count].id,
               sizeof fixture->players[0].id);
    OK(fixture->store->ledger->begin(fixture->store, &batch, &fixture->error));
    for (unsigned i = 0; i < count; i++)
        keep(fixture, &batch, first + i);
    if (meanwhile != NULL)
        meanwhile(fixture);
    return fixture->store->ledger->commit(fixture->store, &batch, unknown, &fixture->error);
}

static enum status write_ids(struct fixture *fixture, unsigned first, unsigned count)
{
    bool unknown = true;
    enum status status = write_ids_while(fixture, first, count, NULL, &unknown);
    assert_false(unknown);
    return status;
}

static void write_more(struct fixture *fixture, unsigned count)
{
    OK(write_ids(fixture, fixture->written, count));
    fixture->written += count;
}

static bool is_found(struct fixture *fixture, unsigned customer, unsigned id)
{
    struct ledger_fact fact = {0};
    (void)snprintf(fact.owner_id, sizeof fact.owner_id, "cus_%u", customer);
    (void)snprintf(fact.transaction_id, sizeof fact.transaction_id, "id-%u", id);
    OK(fixture->store->ledger->id(fixture->store, &fact, &fixture->error));
    if (fact.id.known) {
        assert_int_equal(fact.id.transaction.amount_minor, 1 + id);
        assert_string_equal(fact.id.transaction.transaction_id, fact.transaction_id);
        assert_string_equal(fact.id.transaction.customer_id, fact.owner_id);
    }
    return fact.id.known;
}

static int64_t query(struct fixture *fixture, const char *sql)
{
    int64_t number = 0;
    OK(sqlite_number(sqlite_store_of(fixture->store), sql, &number, &fixture->error));
    return number;
}

static void open_again(struct fixture *fixture)
{
    platform_store_close(&fixture->store);
    struct platform_store_options options = {.uri = fixture->place.uri, .timeout_ms = 5000};
    OK(platform_store_open(&fixture->store, &options, &fixture->error));
}

static void assert_sound(struct fixture *fixture)
{
    OK(fixture->store->ledger->counterparts(fixture->store, &fixture->error));
}

static void assert_all_found(struct fixture *fixture)
{
    for (unsigned id = 0; id < fixture->written; id++) {
        assert_true(is_found(fixture, 1 + id % 2, id));
        assert_false(is_found(fixture, 2 - id % 2, id)); /* the other customer's */
    }
    assert_false(is_found(fixture, 1 + fixture->written % 2, fixture->written));
}

/* Until the index's own thread has written what is to be seen, which it does in its own time. */
static void write_until_merged(struct fixture *fixture, uint64_t merges, unsigned at_once)
{
    struct id_index_facts facts = {0};
    for (unsigned batch = 0; facts.merges < merges || facts.runs < 3; batch++) {
        assert_true(batch < 100000);
        write_more(fixture, 1 + batch * 7 % at_once);
        id_index_facts(sqlite_store_of(fixture->store)->index, &facts);
    }
}

TEST_OF(fixture, an_id_is_found_wherever_it_has_come_to)
{
    write_until_merged(fixture, 4, LEDGER_BATCH_MAX);
    assert_all_found(fixture);
    assert_sound(fixture);
    open_again(fixture);
    assert_all_found(fixture);
    assert_sound(fixture);
}

TEST_OF(fixture, one_at_a_time_they_are_found_as_well)
{
    write_until_merged(fixture, 1, 1);
    assert_all_found(fixture);
}

TEST_OF(fixture, the_store_refuses_an_id_twice_wherever_it_is)
{
    write_until_merged(fixture, 1, LEDGER_BATCH_MAX);
    for (unsigned id = 0; id < fixture->written; id += 3) {
        assert_int_not_equal(write_ids(fixture, id, 1), STATUS_OK);
        assert_non_null(strstr(fixture->error.text, "a transaction id is used once"));
    }
    assert_sound(fixture); /* nothing was written */
    write_more(fixture, 1);
    assert_sound(fixture);
}

/* ---- what is beside the database ------------------------------------------------------------- */

static void in_directory(const struct fixture *fixture, const char *name, char path[600])
{
    (void)snprintf(path, 600, "%s/%s", fixture->place.directory, name);
}

/* Does something to each run; returns to how many. */
static unsigned each_run(const struct fixture *fixture, bool (*act)(const char *path))
{
    char directory[600];
    unsigned count = 0;
    in_directory(fixture, "platform.db-ids", directory);
    DIR *open = opendir(directory);
    assert_non_null(open);
    for (struct dirent *entry; (entry = readdir(open)) != NULL;) {
        char path[900];
        if (strstr(entry->d_name, ".run") == NULL)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", directory, entry->d_name);
        count += act(path);
    }
    assert_int_equal(closedir(open), 0);
    return count;
}

static bool remove_file(const char *path)
{
    assert_int_equal(unlink(path), 0);
    return true;
}

static bool cut_file(const char *path)
{
    struct stat facts;
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(truncate(path, facts.st_size / 2), 0);
    return true;
}

/* False: it was merged into another meanwhile. */
static bool alter_file(const char *path)
{
    uint8_t byte;
    struct stat facts;
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 && errno == ENOENT)
        return false;
    assert_true(file >= 0);
    assert_int_equal(fstat(file, &facts), 0);
    for (off_t at = 77; at < facts.st_size; at += 1009) {
        assert_int_equal(pread(file, &byte, 1, at), 1);
        byte ^= 0x10;
        assert_int_equal(pwrite(file, &byte, 1, at), 1);
    }
    assert_int_equal(close(file), 0);
    return true;
}

static bool is_known(struct fixture *fixture, struct platform_store *store, const char *id)
{
    struct ledger_fact fact;
    ledger_ask(&fact, "cus_1", id);
    OK(store->ledger->id(store, &fact, &fixture->error));
    return fact.id.known;
}

TEST_OF(fixture, what_has_become_of_the_files_hides_no_id)
{
    bool (*const damages[])(const char *) = {remove_file, cut_file, alter_file};
    for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
        write_until_merged(fixture, 1, LEDGER_BATCH_MAX);
        platform_store_close(&fixture->store);
        assert_true(each_run(fixture, damages[i]) > 0);
        open_again(fixture);
        assert_int_not_equal(write_ids(fixture, i == 0 ? 0 : 5, 1), STATUS_OK);
        assert_all_found(fixture);
        write_until_merged(fixture, 1, LEDGER_BATCH_MAX);
        platform_store_close(&fixture->store);
        assert_true(each_run(fixture, damages[i]) > 0);
        open_again(fixture);
        assert_true(is_known(fixture, fixture->store, "id-4"));
        write_more(fixture, 1);
    }
    assert_sound(fixture);
}

/* In a batch, as the ledger does. */
static enum status ask_in_batch(struct fixture *fixture, unsigned id)
{
    static struct ledger_batch batch;
    char text[32];
    bool unknown = true;
    memset(&batch, 0, sizeof batch);
    (void)snprintf(text, sizeof text, "id-%u", id);
    ledger_ask(&batch.facts[batch.fact_count++], fixture->players[id % 2].customer_id, text);
    enum status status = fixture->store->ledger->begin(fixture->store, &batch, &fixture->error);
    if (status != STATUS_OK)
        return status;
    assert_true(batch.facts[0].id.known);
    return fixture->store->ledger->commit(fixture->store, &batch, &unknown, &fixture->error);
}

/* The batch that needs it is refused, and the next one makes it again. */
TEST_OF(fixture, what_is_damaged_meanwhile_is_made_again)
{
    struct ledger_index_facts facts;
    write_until_merged(fixture, 1, LEDGER_BATCH_MAX);
    const struct id_index *index = sqlite_store_of(fixture->store)->index;
    while (each_run(fixture, alter_file) == 0) {
    }
    for (unsigned id = 0; id < fixture->written; id++) {
        enum status status = ask_in_batch(fixture, id);
        if (status == STATUS_UNAVAILABLE)
            status = ask_in_batch(fixture, id);
        OK(status);
    }
    assert_ptr_equal(sqlite_store_of(fixture->store)->index, index);
    fixture->store->ledger->index_facts(fixture->store, &facts);
    assert_true(facts.made_again > 0);
    write_more(fixture, 1);
    assert_all_found(fixture);
    assert_sound(fixture);
}

static void copy_database(const struct fixture *fixture, const char *from, const char *to)
{
    char command[2000];
    (void)snprintf(command, sizeof command, "cp '%s/%s' '%s/%s'", fixture->place.directory, from,
                   fixture->place.directory, to);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
}

/* The mark says that rows are lost; without it, the runs of ids do. */
static void assert_refused_until_accepted(struct fixture *fixture, int64_t last)
{
    struct ledger_batch *batch = calloc(1, sizeof *batch);
    struct ledger_end end;
    char path[128];
    open_again(fixture);
    assert_non_null(batch);
    for (unsigned i = 0; i < 2; i++) {
        struct platform_store *store = fixture->store;
        assert_int_equal(store->ledger->check_end(store, &end, &fixture->error), STATUS_MALFORMED);
        assert_non_null(strstr(fixture->error.text, "has lost its newest rows"));
        assert_true(end.last == last && end.acknowledged > last);
        assert_int_equal(store->ledger->begin(store, batch, &fixture->error), STATUS_MALFORMED);
        assert_int_equal(store->ledger->recover(store, &fixture->error), STATUS_MALFORMED);
        (void)snprintf(path, sizeof path, "%s/platform.db-last", fixture->place.directory);
        assert_int_equal(unlink(path), i == 0 ? 0 : -1);
    }
    assert_int_equal(fixture->store->ledger->accept_end(fixture->store, last + 1, &fixture->error),
                     STATUS_CONFLICT);
    OK(fixture->store->ledger->accept_end(fixture->store, last, &fixture->error));
    open_again(fixture);
    OK(fixture->store->ledger->check_end(fixture->store, &end, &fixture->error));
    free(batch);
}

/* A backup is restored, and the ledger goes on otherwise: the runs are of what is no more. */
TEST_OF(fixture, runs_of_another_history_are_not_believed)
{
    write_more(fixture, 100);
    platform_store_close(&fixture->store);
    copy_database(fixture, "platform.db", "backup");
    open_again(fixture);
    unsigned before = fixture->written;
    write_until_merged(fixture, 1, LEDGER_BATCH_MAX);
    unsigned lost = fixture->written;
    platform_store_close(&fixture->store);
    copy_database(fixture, "backup", "platform.db");
    assert_refused_until_accepted(fixture, before);
    for (unsigned id = before; id < lost; id++)
        assert_false(is_found(fixture, 1 + id % 2, id));
    for (fixture->written = lost; fixture->written < 2 * lost + 300;)
        write_more(fixture, LEDGER_BATCH_MAX / 2);
    for (unsigned id = 0; id < fixture->written; id++)
        assert_true(is_found(fixture, 1 + id % 2, id) == (id < before || id >= lost));
    assert_sound(fixture);
    open_again(fixture);
    assert_sound(fixture);
}

/* Each handle has accounts in its cache and an index of its own. */
TEST_OF(fixture, what_another_handle_wrote_is_noticed_before_anything_is_decided)
{
    struct platform_store *other = NULL;
    struct platform_store_options options = {.uri = fixture->place.uri, .timeout_ms = 5000};
    OK(platform_store_open(&other, &options, &fixture->error));
    for (unsigned i = 0; i < 60; i++) {
        struct platform_store *mine = fixture->store;
        write_more(fixture, 1 + i * 5 % 40);
        fixture->store = other;
        other = mine;
        assert_int_not_equal(write_ids(fixture, fixture->written - 1, 1), STATUS_OK);
    }
    assert_all_found(fixture);
    assert_sound(fixture);
    platform_store_close(&other);
}

/* ---- accounts, days -------------------------------------------------------------------------- */

static void execute(struct fixture *fixture, const char *sql)
{
    OK(sqlite_execute(sqlite_store_of(fixture->store), sql, &fixture->error));
}

/* The next entry of the first player, chained, of a unit; `id` NULL: "entry-" and its sequence. */
static void add_entry(const struct fixture *fixture, struct ledger_batch *batch,
                      enum ledger_operation operation, const char *id, const char *reference)
{
    const int64_t movement_minor = operation == LEDGER_CREDIT ? 1 : -1;
    struct ledger_account *account = &batch->players[0].account;
    struct ledger_transaction *kept = &batch->kept[batch->kept_count++];
    account->balance_minor += movement_minor;
    *kept = (struct ledger_transaction){.operation = operation,
                                        .outcome = LEDGER_APPLIED,
                                        .currency = "EUR",
                                        .currency_exponent = 2,
                                        .amount_minor = 1,
                                        .movement_minor = movement_minor,
                                        .created_ms = 1,
                                        .sequence = ++account->sequence,
                                        .balance_minor = account->balance_minor};
    memcpy(kept->customer_id, "cus_1", 6);
    memcpy(kept->player_id, fixture->players[0].id, sizeof kept->player_id);
    (void)snprintf(kept->reference, sizeof kept->reference, "%s", reference);
    if (id != NULL)
        (void)snprintf(kept->transaction_id, sizeof kept->transaction_id, "%s", id);
    else
        (void)snprintf(kept->transaction_id, sizeof kept->transaction_id, "entry-%u",
                       (unsigned)kept->sequence);
    batch->clearings[0].balance_minor -= movement_minor;
}

static enum status begin_entries(struct fixture *fixture, struct ledger_batch *batch)
{
    memset(batch, 0, sizeof *batch);
    batch->player_count = 1;
    memcpy(batch->players[0].player_id, fixture->players[0].id, sizeof fixture->players[0].id);
    return fixture->store->ledger->begin(fixture->store, batch, &fixture->error);
}

static enum status commit_entries(struct fixture *fixture, struct ledger_batch *batch)
{
    struct ledger_account *account = &batch->players[0].account;
    bool unknown = true;
    for (size_t i = 0; i < batch->kept_count; i++) {
        ledger_entry_hash(&batch->kept[i], account->head, batch->kept[i].hash);
        memcpy(account->head, batch->kept[i].hash, sizeof account->head);
    }
    batch->players[0].changed = true;
    batch->clearings[0].changed = true;
    return fixture->store->ledger->commit(fixture->store, batch, &unknown, &fixture->error);
}

/* CREDITs of the first player. */
static enum status enter(struct fixture *fixture, unsigned count, int64_t created_ms)
{
    static struct ledger_batch batch;
    enum status status = begin_entries(fixture, &batch);
    if (status != STATUS_OK)
        return status;
    for (unsigned i = 0; i < count; i++) {
        add_entry(fixture, &batch, LEDGER_CREDIT, NULL, "");
        batch.kept[i].created_ms = created_ms;
    }
    return commit_entries(fixture, &batch);
}

static void enter_one(struct fixture *fixture, enum ledger_operation operation, const char *id,
                      const char *reference)
{
    static struct ledger_batch batch;
    OK(begin_entries(fixture, &batch));
    add_entry(fixture, &batch, operation, id, reference);
    OK(commit_entries(fixture, &batch));
}

/* A fact about an id of the first customer, by a handle that has opened no index. */
static struct ledger_fact ask_anew(struct fixture *fixture, const char *id)
{
    struct ledger_fact fact;
    open_again(fixture);
    ledger_ask(&fact, "cus_1", id);
    OK(fixture->store->ledger->id(fixture->store, &fact, &fixture->error));
    return fact;
}

/* The runs have the DEBIT and its CREDITs; the newest rows, which no run has, the ROLLBACKs. The
 * whole index is opened for neither. */
TEST_OF(fixture, one_id_is_looked_up_without_the_whole_index)
{
    OK(enter(fixture, 10, 1));
    enter_one(fixture, LEDGER_DEBIT, "bet", "");
    enter_one(fixture, LEDGER_CREDIT, "win", "bet");
    enter_one(fixture, LEDGER_CREDIT, "more", "bet");
    write_until_merged(fixture, 1, LEDGER_BATCH_MAX);
    assert_int_equal(ask_anew(fixture, "bet").id.standing_credits, 2);
    assert_string_equal(ask_anew(fixture, "bet").id.settled_by, "win");
    enter_one(fixture, LEDGER_ROLLBACK, "undo", "win");
    assert_int_equal(ask_anew(fixture, "bet").id.standing_credits, 1);
    assert_string_equal(ask_anew(fixture, "bet").id.settled_by, "more");
    assert_true(ask_anew(fixture, "win").id.rolled_back);
    assert_false(ask_anew(fixture, "more").id.rolled_back);
    assert_string_equal(ask_anew(fixture, "undo").id.transaction.reference, "win");
    assert_false(ask_anew(fixture, "nothing").id.known);
    assert_null(sqlite_store_of(fixture->store)->index);
    assert_sound(fixture);
}

/* A reader that was not asked for long answers before it knows of every row that has come. */
TEST_OF(fixture, one_id_is_looked_up_among_many_new_rows_without_all_of_them)
{
    struct platform_store *reader = NULL;
    struct platform_store_options options = {.uri = fixture->place.uri, .timeout_ms = 5000};
    OK(platform_store_open(&reader, &options, &fixture->error));
    OK(enter(fixture, 1, 1));
    enter_one(fixture, LEDGER_DEBIT, "old", "");
    for (int ask = 0; ask < 2; ask++)
        assert_true(is_known(fixture, reader, "old"));
    const int64_t known = sqlite_store_of(reader)->last_number;
    assert_int_equal(known, query(fixture, "SELECT number FROM ledger_last"));
    for (int batch = 0; batch < 5; batch++)
        OK(enter(fixture, LEDGER_BATCH_MAX, 1));
    enter_one(fixture, LEDGER_DEBIT, "new", "");
    assert_false(is_known(fixture, reader, "none"));
    assert_int_equal(sqlite_store_of(reader)->last_number, known);
    assert_true(is_known(fixture, reader, "new")); /* asked again: it catches up */
    assert_int_equal(sqlite_store_of(reader)->last_number,
                     query(fixture, "SELECT number FROM ledger_last"));
    OK(enter(fixture, 2, 1));
    assert_false(is_known(fixture, reader, "none"));
    assert_int_equal(sqlite_store_of(reader)->last_number,
                     query(fixture, "SELECT number FROM ledger_last"));
    platform_store_close(&reader);
}

static void bet_on(struct fixture *fixture, const char *id, const char *game)
{
    static struct ledger_batch batch;
    OK(begin_entries(fixture, &batch));
    add_entry(fixture, &batch, LEDGER_DEBIT, id, "");
    (void)snprintf(batch.kept[0].game_id, sizeof batch.kept[0].game_id, "%s", game);
    OK(commit_entries(fixture, &batch));
}

/* Of a ROLLBACK that does not name its game: by a handle that has opened no index. */
static int64_t sum_anew(struct fixture *fixture, const char *sql)
{
    open_again(fixture);
    assert_true(platform_ledger_keep_sums(fixture->store, 1));
    return query(fixture, sql);
}

/* Else a reader would read every row that has come since it looked last, and hold the log
 * meanwhile. */
TEST_OF(fixture, a_rollback_finds_a_bet_of_a_moment_ago_without_the_index)
{
    static const char of_near[] =
        "SELECT count(*) FROM ledger_sum WHERE operation = 'ROLLBACK' AND game = 'near'";
    static const char of_far[] =
        "SELECT count(*) FROM ledger_sum WHERE operation = 'ROLLBACK' AND game = 'far'";
    OK(enter(fixture, 10, 1));
    bet_on(fixture, "old", "far");
    OK(enter(fixture, 30, 1));
    bet_on(fixture, "new", "near");
    OK(enter(fixture, 20, 1));
    enter_one(fixture, LEDGER_ROLLBACK, "undo new", "new");
    assert_int_equal(sum_anew(fixture, of_near), 1);
    assert_null(sqlite_store_of(fixture->store)->index);
    enter_one(fixture, LEDGER_ROLLBACK, "undo old", "old");
    assert_int_equal(sum_anew(fixture, of_far), 1);
    assert_non_null(sqlite_store_of(fixture->store)->index);
}

/* Longer than what is read at once. */
TEST_OF(fixture, sums_count_each_entry_once_however_many_there_are)
{
    static const char entries[] = "SELECT sum(entries) FROM ledger_sum";
    for (unsigned count = 0; count < 4; count++)
        OK(enter(fixture, LEDGER_BATCH_MAX - count, 1));
    assert_int_equal(sum_anew(fixture, entries), 256 + 255 + 254 + 253);
    OK(enter(fixture, 256, 1));
    assert_int_equal(sum_anew(fixture, entries), 256 + 255 + 254 + 253 + 256);
}

/* What is in the cache is compared with what is stored when it is written; and what is stored with
 * the last entry when it is loaded. */
TEST_OF(fixture, an_account_that_somebody_altered_is_not_written_over)
{
    static const char *const altered[][2] = {
        {"UPDATE ledger_account SET balance_minor = balance_minor + 1",
         "UPDATE ledger_account SET balance_minor = balance_minor - 1"},
        {"UPDATE ledger_account SET sequence = sequence + 1",
         "UPDATE ledger_account SET sequence = sequence - 1"},
        {"UPDATE ledger_account SET head = zeroblob(32)",
         "UPDATE ledger_account SET head = (SELECT hash FROM ledger_transaction"
         " ORDER BY number DESC LIMIT 1)"},
        {"UPDATE ledger_account SET last_number = last_number - 1",
         "UPDATE ledger_account SET last_number = last_number + 1"},
        {"UPDATE ledger_last SET number = number + 1",
         "UPDATE ledger_last SET number = number - 1"}};
    OK(enter(fixture, 3, 1));
    execute(fixture, "DROP TRIGGER ledger_account_goes_on; DROP TRIGGER ledger_last_goes_on");
    for (size_t i = 0; i < sizeof altered / sizeof altered[0]; i++) {
        OK(enter(fixture, 3, 1));
        execute(fixture, altered[i][0]);
        assert_int_equal(enter(fixture, 1, 1), STATUS_MALFORMED);
        open_again(fixture);
        assert_int_equal(enter(fixture, 1, 1), STATUS_MALFORMED);
        execute(fixture, altered[i][1]);
    }
    OK(enter(fixture, 3, 1));
    assert_sound(fixture);
}

struct seen {
    uint64_t count, last;
    bool in_order;
};

static bool see_in_order(void *context, const struct ledger_transaction *entry)
{
    struct seen *seen = context;
    seen->in_order &= entry->sequence == seen->last + 1;
    seen->last = entry->sequence;
    seen->count++;
    return true;
}

/* From there on, and none before; also where a block of the index begins and ends. */
static void see_from(struct fixture *fixture, uint64_t entries)
{
    const uint64_t from[] = {1, 2, 256, 257, 258, 512, 513, 1024, 1025, entries, entries + 1};
    for (size_t i = 0; i < sizeof from / sizeof from[0]; i++) {
        struct seen seen = {.in_order = true, .last = from[i] - 1};
        OK(platform_ledger_entries(
            fixture->store,
            (struct ledger_whose){.player_id = fixture->players[0].id, .from = from[i]},
            see_in_order, &seen, &fixture->error));
        assert_int_equal(seen.count, from[i] > entries ? 0 : entries - from[i] + 1);
        assert_true(seen.in_order);
    }
}

TEST_OF(fixture, entries_are_walked_in_order_however_many_there_are)
{
    for (unsigned entries = 0; entries < 1200;) {
        struct seen seen = {.in_order = true};
        unsigned more = entries % 3 == 0 ? 1 : entries % 3 == 1 ? 255 : 128;
        OK(enter(fixture, more, 1));
        write_more(fixture, 2);
        entries += more;
        OK(platform_ledger_entries(fixture->store,
                                   (struct ledger_whose){.player_id = fixture->players[0].id},
                                   see_in_order, &seen, &fixture->error));
        assert_int_equal(seen.count, entries);
        assert_true(seen.in_order);
        see_from(fixture, entries);
    }
    /* One that is removed is missed, and no other. */
    struct seen seen = {.in_order = true};
    execute(fixture, "DROP TRIGGER ledger_transaction_stays;"
                     "DELETE FROM ledger_transaction WHERE sequence = 700");
    OK(platform_ledger_entries(fixture->store, (struct ledger_whose){0}, see_in_order, &seen,
                               &fixture->error));
    assert_int_equal(seen.last - seen.count, 1);
    assert_false(seen.in_order);
}

static bool count_entered(void *context, const struct ledger_transaction *entry)
{
    struct seen *seen = context;
    assert_true((uint64_t)entry->created_ms >= seen->last);
    seen->last = (uint64_t)entry->created_ms;
    seen->count++;
    return true;
}

/* Also where the clock was set back. */
TEST_OF(fixture, the_entries_of_a_day_are_found)
{
    const int64_t day = 86400000;
    const int64_t times[] = {5 * day, 6 * day - 1, 6 * day, 5 * day + 7, 7 * day, 9 * day, 5 * day};
    const uint64_t expected[] = {0, 8, 2, 2, 0, 2, 0}; /* of day 4 and those after it */
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++)
        OK(enter(fixture, 2, times[i]));
    for (int i = 0; i < 7; i++) {
        struct seen seen = {0};
        const struct ledger_scope scope = {.from_ms = (4 + i) * day, .to_ms = (5 + i) * day};
        OK(platform_ledger_entered(fixture->store, &scope, count_entered, &seen, &fixture->error));
        assert_int_equal(seen.count, expected[i]);
    }
    assert_int_equal(query(fixture, "SELECT count(*) FROM ledger_day"), 6);
    assert_sound(fixture);
}

#if IDS_KEY_MASK != UINT64_MAX
TEST_OF(fixture, ids_of_the_same_key_are_told_apart)
{
    write_more(fixture, LEDGER_BATCH_MAX);
    write_more(fixture, LEDGER_BATCH_MAX);
    const uint8_t *ledger = sqlite_store_of(fixture->store)->ledger;
    unsigned shared = 0;
    for (unsigned one = 0; one < fixture->written; one++) {
        char name[2][16];
        (void)snprintf(name[0], sizeof name[0], "id-%u", one);
        for (unsigned other = 0; other < one; other++) {
            (void)snprintf(name[1], sizeof name[1], "id-%u", other);
            shared += sqlite_id_key(ledger, 1 + one % 2, "", text_of(name[0]), false) ==
                      sqlite_id_key(ledger, 1 + other % 2, "", text_of(name[1]), false);
        }
        assert_true(is_found(fixture, 1 + one % 2, one));
    }
    assert_true(shared > 50);
    assert_sound(fixture);
}
#endif

static void assert_broken(struct fixture *fixture, const char *what)
{
    assert_int_equal(fixture->store->ledger->counterparts(fixture->store, &fixture->error),
                     STATUS_MALFORMED);
    if (strstr(fixture->error.text, what) == NULL)
        fail_msg("%s", fixture->error.text);
}

TEST_OF(fixture, an_audit_finds_an_index_that_is_not_of_the_rows)
{
    struct sqlite_store *store = sqlite_store_of(fixture->store);
    for (int i = 0; i < 4; i++)
        write_more(fixture, 64);
    id_index_upkeep(store->index);
    assert_sound(fixture);
    OK(sqlite_execute(store,
                      "DROP TRIGGER ledger_transaction_is_permanent;"
                      "UPDATE ledger_transaction SET transaction_id = 'id-x' WHERE number = 20",
                      &fixture->error));
    assert_broken(fixture, "the index of ids: it is not that of the rows");
    OK(sqlite_execute(store,
                      "UPDATE ledger_transaction SET transaction_id = 'id-19' WHERE number = 20",
                      &fixture->error));
    assert_sound(fixture);
    /* No run covers these. */
    write_more(fixture, 4);
    assert_sound(fixture);
    OK(sqlite_execute(store,
                      "UPDATE ledger_transaction SET transaction_id = 'id-258' WHERE number = 257",
                      &fixture->error));
    assert_broken(fixture, "id-258: two transactions have this id");
}

TEST_WITH(a_key_is_the_same_for_ever_in_one_ledger, set_up, tear_down)
{
    if (IDS_KEY_MASK != UINT64_MAX)
        skip();
    static const uint8_t one[] = "which ledger is?";
    static const uint8_t other[] = "which ledger is!";
    const struct text id = TEXT("id-0");
    /* SipHash-2-4 of the customer's number, 8 bytes, lowest first, and the id, or a line feed and
     * the id; by another program. */
    assert_int_equal(sqlite_id_key(one, 1, "", id, false), 0x2150a15b4284167aULL);
    assert_int_equal(sqlite_id_key(one, 1, "", id, true), 0x90fd6572da877f40ULL);
    assert_int_not_equal(sqlite_id_key(other, 1, "", id, false),
                         sqlite_id_key(one, 1, "", id, false));
    assert_int_not_equal(sqlite_id_key(one, 1, "acme", id, false),
                         sqlite_id_key(one, 1, "", id, false));
    assert_int_not_equal(sqlite_id_key(one, 1, "acme", id, false),
                         sqlite_id_key(one, 1, "other", id, false));
    assert_int_equal(sqlite_id_key(one, 1, "acme", id, false),
                     sqlite_id_key(one, 2, "acme", id, false));
    assert_int_not_equal(sqlite_id_key(one, 2, "", id, false),
                         sqlite_id_key(one, 1, "", id, false));
    assert_int_not_equal(sqlite_id_key(one, 1, "", TEXT("id-1"), false),
                         sqlite_id_key(one, 1, "", id, false));
}

TEST_OF(fixture, what_others_do_with_the_files_through_sqlite_raises_no_alarm)
{
    static const char *const commands[] = {
        "PRAGMA wal_checkpoint(PASSIVE)",
        "PRAGMA wal_checkpoint(FULL)",
        "PRAGMA wal_checkpoint(RESTART)",
        "PRAGMA wal_checkpoint(TRUNCATE)",
        "VACUUM",
        "UPDATE customer SET name = name || 'x'",
        "PRAGMA integrity_check",
    };
    for (unsigned i = 0; i < 2 * sizeof commands / sizeof commands[0]; i++) {
        sqlite3 *other = NULL;
        write_more(fixture, 1 + i % 3);
        const char *path = strchr(fixture->place.uri, ':') + 1;
        assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
        assert_int_equal(sqlite3_exec(other, commands[i % (sizeof commands / sizeof commands[0])],
                                      NULL, NULL, NULL),
                         SQLITE_OK);
        if (i % 2 == 0)
            write_more(fixture, 1);
        assert_int_equal(sqlite3_close(other), SQLITE_OK);
    }
    assert_sound(fixture);
}

static struct {
    char bytes[1 << 20];
    size_t size;
} older_log;

static int open_log(const struct fixture *fixture)
{
    char path[sizeof fixture->place.uri + sizeof "-wal"];
    (void)snprintf(path, sizeof path, "%s-wal", strchr(fixture->place.uri, ':') + 1);
    int log = open(path, O_RDWR | O_CLOEXEC);
    assert_true(log >= 0);
    return log;
}

static void keep_log(const struct fixture *fixture)
{
    int log = open_log(fixture);
    ssize_t size = read(log, older_log.bytes, sizeof older_log.bytes);
    assert_in_range(size, 1, sizeof older_log.bytes - 1);
    older_log.size = (size_t)size;
    (void)close(log);
}

/* As `cp` does it. */
static void bring_older_log_back(struct fixture *fixture)
{
    int log = open_log(fixture);
    assert_int_equal(ftruncate(log, 0), 0);
    assert_int_equal(write(log, older_log.bytes, older_log.size), older_log.size);
    (void)close(log);
}

/* What the batch writes lies beyond a hole, which the next start would take for the log's end. */
TEST_OF(fixture, a_batch_behind_a_hole_in_the_log_is_not_acknowledged)
{
    bool unknown = false;
    write_more(fixture, 3);
    keep_log(fixture);
    write_more(fixture, 3);
    assert_int_equal(write_ids_while(fixture, fixture->written, 3, bring_older_log_back, &unknown),
                     STATUS_UNAVAILABLE);
    assert_true(unknown);
    assert_non_null(strstr(fixture->error.text, "does not end with what was written into it"));
}
