/*
 * The levels that the ledger's ids stand in, in SQLite, and the walk through entries. Built with
 * platform_sqlite_ids.c made so small (see meson.build) that some hundred ids go through all of
 * them; the numbers here are the same.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "platform_places.h"
#include "stores/platform.h"
#include "stores/platform/sqlite/ids.h"
#include "stores/platform/sqlite/sqlite.h"

#define LEVELS IDS_LEVELS

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
    ledger_chain_decline(&batch->places[id % 2].account, kept);
    batch->places[id % 2].declined = true;
}

static enum status write_ids(struct fixture *fixture, unsigned first, unsigned count)
{
    static struct ledger_batch batch;
    bool unknown = true;
    memset(&batch, 0, sizeof batch);
    for (; batch.place_count < 2; batch.place_count++)
        memcpy(batch.places[batch.place_count].player_id, fixture->players[batch.place_count].id,
               sizeof fixture->players[0].id);
    OK(fixture->store->ledger->begin(fixture->store, &batch, &fixture->error));
    for (unsigned i = 0; i < count; i++)
        keep(fixture, &batch, first + i);
    enum status status =
        fixture->store->ledger->commit(fixture->store, &batch, &unknown, &fixture->error);
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
    (void)snprintf(fact.customer_id, sizeof fact.customer_id, "cus_%u", customer);
    (void)snprintf(fact.transaction_id, sizeof fact.transaction_id, "id-%u", id);
    OK(fixture->store->ledger->id(fixture->store, &fact, &fixture->error));
    if (fact.id.known) {
        assert_int_equal(fact.id.transaction.amount_minor, 1 + id);
        assert_string_equal(fact.id.transaction.transaction_id, fact.transaction_id);
        assert_string_equal(fact.id.transaction.customer_id, fact.customer_id);
    }
    return fact.id.known;
}

static int64_t query(struct fixture *fixture, const char *sql)
{
    int64_t number = 0;
    OK(sqlite_number(sqlite_store_of(fixture->store), sql, &number, &fixture->error));
    return number;
}

static int64_t count_of(struct fixture *fixture, int level)
{
    char sql[64];
    sqlite3_stmt *statement;
    (void)snprintf(sql, sizeof sql, "SELECT ids FROM ledger_id_level WHERE level = %d", level);
    assert_int_equal(
        sqlite3_prepare_v2(sqlite_store_of(fixture->store)->database, sql, -1, &statement, NULL),
        SQLITE_OK);
    assert_int_equal(sqlite3_step(statement), SQLITE_ROW);
    int64_t count = sqlite3_column_int64(statement, 0);
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    return count;
}

static void assert_sound(struct fixture *fixture)
{
    int64_t sum = 0;
    int64_t share = IDS_FIRST_LEVEL;
    for (int i = 0; i < LEVELS; i++) {
        int64_t count = count_of(fixture, i);
        if (i + 1 < LEVELS && count > share)
            fail_msg("level %d has %d ids, of %d", i, (int)count, (int)share);
        sum += count;
        share *= IDS_GROWTH;
    }
    assert_int_equal(sum, fixture->written);
    OK(fixture->store->ledger->counterparts(fixture->store, &fixture->error));
}

static void an_id_is_found_in_whatever_level_it_has_come_to(void **state)
{
    struct fixture *fixture = *state;
    for (unsigned batch = 0; fixture->written < 2000; batch++) {
        write_more(fixture, 1 + batch * 7 % LEDGER_BATCH_MAX);
        assert_sound(fixture);
        assert_false(is_found(fixture, 1 + fixture->written % 2, fixture->written));
    }
    for (int i = 0; i < LEVELS; i++)
        assert_true(count_of(fixture, i) > 0);
    for (unsigned id = 0; id < fixture->written; id++) {
        assert_true(is_found(fixture, 1 + id % 2, id));
        assert_false(is_found(fixture, 2 - id % 2, id)); /* the other customer's */
    }
}

static void one_at_a_time_they_move_on_as_well(void **state)
{
    struct fixture *fixture = *state;
    while (fixture->written < 300) {
        write_more(fixture, 1);
        assert_sound(fixture);
    }
    assert_true(count_of(fixture, LEVELS - 1) > 0);
    for (unsigned id = 0; id < fixture->written; id++)
        assert_true(is_found(fixture, 1 + id % 2, id));
}

static void the_store_refuses_an_id_twice_wherever_it_is(void **state)
{
    struct fixture *fixture = *state;
    write_more(fixture, LEDGER_BATCH_MAX);
    write_more(fixture, LEDGER_BATCH_MAX);
    for (unsigned id = 0; id < fixture->written; id++) {
        assert_int_not_equal(write_ids(fixture, id, 1), STATUS_OK);
        assert_non_null(strstr(fixture->error.text, "a transaction id is used once"));
    }
    assert_sound(fixture); /* nothing was written */
    write_more(fixture, 1);
    assert_sound(fixture);
}

#if IDS_KEY_MASK != INT64_MAX
static void ids_of_the_same_key_are_told_apart(void **state)
{
    struct fixture *fixture = *state;
    write_more(fixture, LEDGER_BATCH_MAX);
    write_more(fixture, LEDGER_BATCH_MAX);
    unsigned shared = 0;
    for (unsigned one = 0; one < fixture->written; one++) {
        char name[2][16];
        (void)snprintf(name[0], sizeof name[0], "id-%u", one);
        for (unsigned other = 0; other < one; other++) {
            (void)snprintf(name[1], sizeof name[1], "id-%u", other);
            shared += sqlite_id_key(1 + one % 2, text_of(name[0])) ==
                      sqlite_id_key(1 + other % 2, text_of(name[1]));
        }
        assert_true(is_found(fixture, 1 + one % 2, one));
    }
    assert_true(shared > 50);
    assert_sound(fixture);
}
#endif

/* What an id leads to must hash to its key. */
static void an_id_that_leads_to_another_transaction_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct sqlite_store *store = sqlite_store_of(fixture->store);
    struct ledger_fact fact = {.customer_id = "cus_1", .transaction_id = "new"};
    write_more(fixture, 2);
    struct sqlite_id wrong = {sqlite_id_key(1, TEXT("new")), 1};
    OK(sqlite_execute(store, "BEGIN IMMEDIATE", &fixture->error));
    OK(sqlite_ids_add(store, &wrong, 1, 2, &fixture->error));
    OK(sqlite_execute(store, "COMMIT", &fixture->error));
    assert_int_equal(fixture->store->ledger->id(fixture->store, &fact, &fixture->error),
                     STATUS_MALFORMED);
    assert_int_not_equal(write_ids(fixture, 0, 1), STATUS_OK);
    assert_int_equal(fixture->store->ledger->counterparts(fixture->store, &fixture->error),
                     STATUS_MALFORMED);
}

static void a_key_is_the_same_for_ever(void **state)
{
    struct fixture *fixture = *state;
    if (IDS_KEY_MASK != INT64_MAX)
        skip();
    /* The first 63 bits of SHA-256 of the customer's number, 8 bytes, lowest first, and the id:
     * printf '\1\0\0\0\0\0\0\0id-0' | sha256sum */
    assert_int_equal(sqlite_id_key(1, TEXT("id-0")), 0x643e113f8dfba034LL);
    assert_int_not_equal(sqlite_id_key(2, TEXT("id-0")), sqlite_id_key(1, TEXT("id-0")));
    assert_int_not_equal(sqlite_id_key(1, TEXT("id-1")), sqlite_id_key(1, TEXT("id-0")));
    assert_int_equal(query(fixture, "SELECT ledger_id_key(1, 'id-0')"),
                     sqlite_id_key(1, TEXT("id-0")));
}

static bool see_entry(void *context, const struct ledger_transaction *entry,
                      const struct ledger_account *account)
{
    (void)context;
    (void)entry;
    (void)account;
    return true;
}

/* How the newest statement that begins so is carried out. */
static void plan_of(sqlite3 *database, const char *beginning, char *plan, size_t room)
{
    sqlite3_stmt *one = NULL;
    while ((one = sqlite3_next_stmt(database, one)) != NULL)
        if (strncmp(sqlite3_sql(one), beginning, strlen(beginning)) == 0)
            break;
    assert_non_null(one);
    char *sql = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sqlite3_sql(one));
    sqlite3_stmt *explanation = NULL;
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &explanation, NULL), SQLITE_OK);
    size_t size = 0;
    plan[0] = '\0';
    while (sqlite3_step(explanation) == SQLITE_ROW && size < room)
        size += (size_t)snprintf(plan + size, room - size, "%s\n",
                                 (const char *)sqlite3_column_text(explanation, 3));
    sqlite3_free(sql);
    assert_int_equal(sqlite3_finalize(explanation), SQLITE_OK);
}

/* Somebody may have run ANALYZE when the ledger was large. */
static void entries_are_followed_one_by_one_whatever_the_statistics_say(void **state)
{
    struct fixture *fixture = *state;
    struct sqlite_store *store = sqlite_store_of(fixture->store);
    char plan[2048];
    write_more(fixture, 2);
    OK(sqlite_execute(store,
                      "ANALYZE; DELETE FROM sqlite_stat1;"
                      "INSERT INTO sqlite_stat1 VALUES"
                      " ('ledger_transaction', 'ledger_entered', '20000 20000'),"
                      " ('ledger_transaction', 'ledger_by_player', '400 1 1'),"
                      " ('ledger_transaction', 'ledger_follows', '19600 1'),"
                      " ('ledger_transaction', NULL, '20000');"
                      "ANALYZE sqlite_schema",
                      &fixture->error));
    OK(fixture->store->ledger->entries(fixture->store, NULL, see_entry, NULL, &fixture->error));
    plan_of(store->database, "WITH RECURSIVE followed", plan, sizeof plan);
    assert_non_null(strstr(plan, "USING COVERING INDEX ledger_follows (previous=?)"));
    assert_null(strstr(plan, "BLOOM"));
    assert_null(strstr(plan, "MATERIALIZE"));
    assert_null(strstr(plan, "SCAN ledger_transaction"));
    assert_null(strstr(plan, "SCAN next"));
}

int main(void)
{
#define MADE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        MADE(an_id_is_found_in_whatever_level_it_has_come_to),
        MADE(one_at_a_time_they_move_on_as_well),
        MADE(the_store_refuses_an_id_twice_wherever_it_is),
#if IDS_KEY_MASK != INT64_MAX
        MADE(ids_of_the_same_key_are_told_apart),
#endif
        MADE(an_id_that_leads_to_another_transaction_is_refused),
        MADE(a_key_is_the_same_for_ever),
        MADE(entries_are_followed_one_by_one_whatever_the_statistics_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
