/*
 * The contract of the audit trail: every change leaves its row, and what fails or changes nothing
 * leaves none.
 */
#include "platform_contract/contract.h"

#define ROWS_MAX 16
struct rows {
    size_t count;
    struct row {
        struct trail_record record; /* without the texts, which are: */
        char before[512], after[512];
    } row[ROWS_MAX];
};

static bool see_row(void *context, const void *visited)
{
    const struct trail_record *record = visited;
    struct rows *rows = context;
    assert_true(rows->count < ROWS_MAX);
    struct row *row = &rows->row[rows->count++];
    row->record = *record;
    (void)snprintf(row->before, sizeof row->before, "%.*s", (int)record->before.size,
                   record->before.at);
    (void)snprintf(row->after, sizeof row->after, "%.*s", (int)record->after.size,
                   record->after.at);
    return true;
}

static void search(struct fixture *fixture, const struct trail_search *search, struct rows *rows)
{
    *rows = (struct rows){0};
    OK(platform_trail_search(fixture->store, search, see_row, rows, &fixture->error));
}

/* All of it, the first row first. */
static void read_trail(struct fixture *fixture, struct rows *rows)
{
    *rows = (struct rows){0};
    OK(platform_list(fixture->store, &trail_table, NULL, see_row, rows, &fixture->error));
}

static void assert_row(const struct row *row, const char *kind, const char *object,
                       const char *before, const char *after)
{
    assert_string_equal(row->record.kind, kind);
    assert_string_equal(row->record.object, object);
    assert_string_equal(row->before, before);
    assert_string_equal(row->after, after);
    assert_true(row->record.at_ms > 0);
}

TEST_OF(fixture, every_change_says_who_and_what)
{
    struct customer_record record = customer("cus_1", "One");
    struct rows rows;
    OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
    platform_store_act_as(fixture->store, "anna", "customer set");
    record.enabled = false;
    record.rate = (struct rate_limit){true, 600, 60};
    OK(platform_update(fixture->store, &customer_table, &record, &fixture->error));
    read_trail(fixture, &rows);
    assert_int_equal(rows.count, 2);
    assert_row(
        &rows.row[0], "customer", "cus_1", "",
        "{\"name\":\"One\",\"enabled\":true,\"casino\":false,\"sandbox\":false,\"sports\":\"all\","
        "\"rate_requests\":null,\"rate_window_seconds\":null,\"cidrs\":\"\",\"created_ms\":"
        "1763700000000}");
    assert_string_equal(rows.row[0].record.who, "unknown");
    assert_string_equal(rows.row[0].record.command, "");
    assert_row(&rows.row[1], "customer", "cus_1",
               "{\"enabled\":true,\"rate_requests\":null,\"rate_window_seconds\":null}",
               "{\"enabled\":false,\"rate_requests\":600,\"rate_window_seconds\":60}");
    assert_string_equal(rows.row[1].record.who, "anna");
    assert_string_equal(rows.row[1].record.command, "customer set");
    assert_int_equal(rows.row[0].record.number, 1);
    assert_int_equal(rows.row[1].record.number, 2);
}

TEST_OF(fixture, keys_and_addresses_leave_rows_and_no_secret)
{
    struct key_use use = {.used_ms = 1763700000005};
    struct key_record first = key("key_1", "cus_One", 0xA5);
    struct legacy_record address_record = legacy("192.0.2.7");
    struct rows rows;
    add_two_customers(fixture);
    OK(platform_add(fixture->store, &key_table, &first, &fixture->error));
    memcpy(use.digest, first.digest, sizeof use.digest);
    OK(platform_key_touch(fixture->store, &use, 1, &fixture->error)); /* no change */
    OK(platform_key_revoke(fixture->store, "key_1", 1763700000009, &fixture->error));
    OK(platform_key_revoke(fixture->store, "key_1", 1763700000010, &fixture->error)); /* again */
    OK(platform_put(fixture->store, &legacy_table, &address_record, &fixture->error));
    address_record.removed = true;
    OK(platform_put(fixture->store, &legacy_table, &address_record, &fixture->error));
    read_trail(fixture, &rows);
    assert_int_equal(rows.count, 6);
    assert_string_equal(rows.row[2].record.object, "key_1");
    assert_non_null(strstr(rows.row[2].after, "\"digest\":\"not shown\""));
    assert_null(strstr(rows.row[2].after, "a5a5"));
    assert_row(&rows.row[3], "key", "key_1", "{\"revoked_ms\":null}",
               "{\"revoked_ms\":1763700000009}");
    assert_string_equal(rows.row[4].record.object, "192.0.2.7");
    assert_string_equal(rows.row[4].before, "");
    assert_row(&rows.row[5], "address", "192.0.2.7", "{\"removed\":false}", "{\"removed\":true}");
}

TEST_OF(fixture, what_fails_or_changes_nothing_leaves_no_row)
{
    struct customer_record record = customer("cus_One", "One");
    struct key_record orphan = key("key_1", "cus_None", 1);
    struct rows rows;
    add_two_customers(fixture);
    assert_int_equal(platform_add(fixture->store, &customer_table, &record, &fixture->error),
                     STATUS_EXISTS);
    assert_int_equal(platform_add(fixture->store, &key_table, &orphan, &fixture->error),
                     STATUS_NOT_FOUND);
    OK(platform_update(fixture->store, &customer_table, &record, &fixture->error)); /* the same */
    record.revision = 77; /* of somebody who was too slow */
    record.enabled = false;
    assert_int_equal(platform_update(fixture->store, &customer_table, &record, &fixture->error),
                     STATUS_EXISTS);
    record = customer("cus_None", "None");
    assert_int_equal(platform_update(fixture->store, &customer_table, &record, &fixture->error),
                     STATUS_NOT_FOUND);
    assert_int_equal(platform_key_revoke(fixture->store, "key_None", 1, &fixture->error),
                     STATUS_NOT_FOUND);
    (void)open_player(fixture, "cus_One", "alice", "EUR", 2); /* its customer's doing */
    read_trail(fixture, &rows);
    assert_int_equal(rows.count, 2); /* of the customers that were added */
}

static struct game_record named_game(const char *id, const char *name)
{
    struct game_record record = {.provider_id = "p", .category = "slots", .rtp_bps = -1};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.name, sizeof record.name, "%s", name);
    return record;
}

TEST_OF(fixture, an_import_leaves_a_row_for_each_game_that_changed)
{
    struct provider_record provider = {.id = "p",
                                       .name = "P",
                                       .launch_url = "https://p/",
                                       .audience = "p",
                                       .secrets = {{.size = 60}}};
    struct game_record games[3] = {named_game("a", "A"), named_game("b", "B"),
                                   named_game("c", "C")};
    const bool set_enabled[3] = {false};
    struct games_put_result result;
    struct rows rows;
    OK(platform_add(fixture->store, &provider_table, &provider, &fixture->error));
    OK(platform_games_put(fixture->store, games, set_enabled, 2, 100, &result, &fixture->error));
    games[1] = named_game("b", "Bee");
    OK(platform_games_put(fixture->store, games, set_enabled, 3, 200, &result, &fixture->error));
    assert_int_equal(result.unchanged, 1);
    struct game_record read;
    OK(platform_get(fixture->store, &game_table, "a", &read, &fixture->error));
    read.enabled = !read.enabled;
    OK(platform_game_set(fixture->store, &read, 300, &fixture->error));
    OK(platform_get(fixture->store, &game_table, "a", &read, &fixture->error));
    OK(platform_game_set(fixture->store, &read, 400, &fixture->error)); /* nothing to tell */
    struct game_record wrong[2] = {named_game("a", "Other"), named_game("d", "D")};
    snprintf(wrong[1].provider_id, sizeof wrong[1].provider_id, "nobody");
    assert_int_equal(
        platform_games_put(fixture->store, wrong, set_enabled, 2, 500, &result, &fixture->error),
        STATUS_NOT_FOUND);
    read_trail(fixture, &rows);
    assert_int_equal(rows.count, 6);
    assert_null(strstr(rows.row[0].after, "000000"));
    assert_non_null(strstr(rows.row[0].after, "\"secret\":\"not shown\""));
    assert_string_equal(rows.row[1].record.object, "a");
    assert_string_equal(rows.row[2].record.object, "b");
    assert_row(&rows.row[3], "game", "b", "{\"name\":\"B\"}", "{\"name\":\"Bee\"}");
    assert_string_equal(rows.row[4].record.object, "c");
    assert_row(&rows.row[5], "game", "a", "{\"enabled\":false}", "{\"enabled\":true}");
}

TEST_OF(fixture, lists_of_games_leave_rows)
{
    struct game_policy_record record = {.customer_id = "cus_One", .games = TEXT("")};
    struct rows rows;
    add_two_customers(fixture);
    OK(platform_game_policy_put(fixture->store, &record, &fixture->error));
    record.every_game = true;
    OK(platform_game_policy_put(fixture->store, &record, &fixture->error));
    OK(platform_game_policy_put(fixture->store, &record, &fixture->error));
    record.every_game = false;
    record.games = TEXT("nothing");
    assert_int_equal(platform_game_policy_put(fixture->store, &record, &fixture->error),
                     STATUS_NOT_FOUND);
    read_trail(fixture, &rows);
    assert_int_equal(rows.count, 4);
    assert_row(&rows.row[2], "list of games", "cus_One", "",
               "{\"every_game\":false,\"games\":\"\"}");
    assert_row(&rows.row[3], "list of games", "cus_One", "{\"every_game\":false}",
               "{\"every_game\":true}");
}

TEST_OF(fixture, rows_are_found_by_object_who_and_time_the_last_one_first)
{
    struct customer_record record = customer("cus_One", "One");
    struct rows rows;
    add_two_customers(fixture);
    platform_store_act_as(fixture->store, "anna", "customer disable");
    record.enabled = false;
    OK(platform_update(fixture->store, &customer_table, &record, &fixture->error));
    search(fixture, &(struct trail_search){.object = "", .who = "", .limit = 10}, &rows);
    assert_int_equal(rows.count, 3);
    assert_int_equal(rows.row[0].record.number, 3);
    assert_int_equal(rows.row[2].record.number, 1);
    int64_t last_ms = rows.row[0].record.at_ms;
    search(fixture, &(struct trail_search){.object = "", .who = "", .limit = 2}, &rows);
    assert_int_equal(rows.count, 2);
    search(fixture, &(struct trail_search){.object = "", .who = "", .limit = 2, .before = 2},
           &rows);
    assert_int_equal(rows.count, 1);
    assert_int_equal(rows.row[0].record.number, 1);
    search(fixture, &(struct trail_search){.object = "cus_One", .who = "", .limit = 10}, &rows);
    assert_int_equal(rows.count, 2);
    search(fixture, &(struct trail_search){.object = "cus_One", .who = "anna", .limit = 10}, &rows);
    assert_int_equal(rows.count, 1);
    search(fixture,
           &(struct trail_search){.object = "", .who = "", .since_ms = last_ms + 1, .limit = 10},
           &rows);
    assert_int_equal(rows.count, 0);
    search(fixture,
           &(struct trail_search){.object = "", .who = "", .before = UINT64_MAX, .limit = 10},
           &rows);
    assert_int_equal(rows.count, 3);
}

/* A copy brings the trail of its source, number for number, and adds nothing of its own. */
TEST_OF(fixture, a_copy_takes_the_trail_as_it_is)
{
    struct customer_record record = customer("cus_1", "One");
    struct trail_record row = {.at_ms = 5,
                               .who = "anna",
                               .command = "customer add",
                               .kind = "customer",
                               .object = "cus_1",
                               .after = TEXT("{\"enabled\":true}")};
    struct rows rows;
    fixture->store->copying = true;
    OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
    OK(platform_add(fixture->store, &trail_table, &row, &fixture->error));
    row.after = TEXT("{");
    assert_int_equal(platform_add(fixture->store, &trail_table, &row, &fixture->error),
                     STATUS_INVALID);
    read_trail(fixture, &rows);
    assert_int_equal(rows.count, 1);
    assert_row(&rows.row[0], "customer", "cus_1", "", "{\"enabled\":true}");
    assert_int_equal(rows.row[0].record.number, 1);
    assert_int_equal(rows.row[0].record.at_ms, 5);
}
