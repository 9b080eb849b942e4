/* usage/usage against the real embedded store: what threads count arrives there, once, on its day,
 * and adds up over instances. */
#include <pthread.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "test_clock.h"
#include "tests.h"
#include "usage/usage.h"

#define NEVER_MS 86400000U
#define OK(call) assert_int_equal((call), STATUS_OK)

struct scene {
    char directory[64];
    char uri[96];
    struct error error;
};

static int set_up(void **state)
{
    struct scene *scene = memory_alloc_zeroed(1, sizeof *scene);
    (void)snprintf(scene->directory, sizeof scene->directory, "/tmp/croupier-usage-XXXXXX");
    assert_non_null(mkdtemp(scene->directory));
    (void)snprintf(scene->uri, sizeof scene->uri, "sqlite:%s/platform.db", scene->directory);
    *state = scene;
    return 0;
}

static int tear_down(void **state)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    struct scene *scene = *state;
    char path[128];
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        (void)snprintf(path, sizeof path, "%s/platform.db%s", scene->directory, endings[i]);
        (void)unlink(path);
    }
    (void)rmdir(scene->directory);
    memory_free(scene);
    return 0;
}

static struct platform_store *open_store(struct scene *scene, bool create)
{
    struct platform_store *store = NULL;
    const struct platform_store_options options = {
        .uri = scene->uri, .timeout_ms = 30000, .create = create};
    uint32_t before;
    uint32_t after;
    OK(platform_store_open(&store, &options, &scene->error));
    if (create)
        OK(platform_store_migrate(store, &before, &after, &scene->error));
    return store;
}

static void make_store(struct scene *scene)
{
    struct platform_store *store = open_store(scene, true);
    platform_store_close(&store);
}

static struct usage *start(const struct scene *scene, size_t threads, uint32_t period_ms)
{
    const struct platform_store_options store = {.uri = scene->uri, .timeout_ms = 30000};
    return usage_create(&store, threads, period_ms);
}

#define LISTED_MAX 8
struct listed {
    size_t count;
    uint64_t requests;
    struct usage_record records[LISTED_MAX];
};

static bool note(void *context, const struct usage_record *record)
{
    struct listed *listed = context;
    if (listed->count < LISTED_MAX)
        listed->records[listed->count] = *record;
    listed->count++;
    for (size_t i = 0; i < USAGE_CLASS_COUNT; i++)
        listed->requests += record->requests[i];
    return true;
}

static struct listed list(struct scene *scene)
{
    struct listed listed = {0};
    struct platform_store *store = open_store(scene, false);
    OK(platform_usage_list(store, NULL, 0, 100000, note, &listed, &scene->error));
    platform_store_close(&store);
    return listed;
}

static void assert_record(const struct usage_record *record, const char *customer_id,
                          enum usage_group group, const uint64_t requests[USAGE_CLASS_COUNT])
{
    assert_string_equal(record->customer_id, customer_id);
    assert_int_equal(record->group, group);
    assert_memory_equal(record->requests, requests, sizeof record->requests);
}

TEST_OF(scene, what_is_counted_arrives_by_customer_group_and_class)
{
    make_store(scene);
    for (int instance = 0; instance < 2; instance++) { /* the second adds to the first */
        struct usage *usage = start(scene, 2, NEVER_MS);
        for (size_t i = 0; i < 2; i++) {
            struct usage_thread *thread = usage_thread(usage, i);
            struct usage_row *last = NULL;
            usage_count(thread, &last, "cus_A", USAGE_SPORTS, 200);
            usage_count(thread, &last, "cus_A", USAGE_SPORTS, 304);
            usage_count(thread, &last, "cus_A", USAGE_SPORTS, 304);
            usage_count(thread, &last, "cus_B", USAGE_WALLET, 422);
            usage_count(thread, &last, "cus_B", USAGE_SPORTS, 503);
            usage_count(thread, &last, "cus_B", USAGE_SPORTS, 100); /* no answer */
            usage_count(thread, &last, "cus_B", USAGE_SPORTS, 600);
        }
        usage_destroy(&usage);
        assert_null(usage);
    }
    struct listed listed = list(scene);
    assert_int_equal(listed.count, 3);
    assert_record(&listed.records[0], "cus_A", USAGE_SPORTS, (uint64_t[]){4, 8, 0, 0});
    assert_record(&listed.records[1], "cus_B", USAGE_SPORTS, (uint64_t[]){0, 0, 0, 4});
    assert_record(&listed.records[2], "cus_B", USAGE_WALLET, (uint64_t[]){0, 0, 4, 0});
}

TEST_OF(scene, counts_wait_for_a_store_that_is_away)
{
    struct usage_facts facts = {0};
    struct usage *usage = start(scene, 1, 5);
    struct usage_row *last = NULL;
    for (int i = 0; i < 3; i++)
        usage_count(usage_thread(usage, 0), &last, "cus_A", USAGE_LAUNCH, 201);
    for (uint64_t since_ms = test_clock_real_ms(); facts.failures < 2 || facts.waiting != 1;) {
        usage_facts(usage, &facts);
        assert_true(test_clock_real_ms() - since_ms < 60000);
    }
    make_store(scene);
    usage_count(usage_thread(usage, 0), &last, "cus_A", USAGE_LAUNCH, 201);
    usage_destroy(&usage);
    struct listed listed = list(scene);
    assert_int_equal(listed.count, 1);
    assert_record(&listed.records[0], "cus_A", USAGE_LAUNCH, (uint64_t[]){4, 0, 0, 0});
}

struct counting {
    struct usage_thread *thread;
    int rounds, customers;
};

static void *count_many(void *argument)
{
    const struct counting *counting = argument;
    char customer_id[CUSTOMER_ID_SIZE];
    struct usage_row *last = NULL;
    for (int round = 0; round < counting->rounds; round++)
        for (int i = 0; i < counting->customers; i++) {
            (void)snprintf(customer_id, sizeof customer_id, "cus_%d", i);
            usage_count(counting->thread, &last, customer_id, USAGE_SPORTS, 200);
        }
    return NULL;
}

TEST_OF(scene, nothing_is_counted_twice_or_lost_while_threads_count)
{
    enum { THREADS = 3, ROUNDS = 200, CUSTOMERS = 300 };
    struct counting counting[THREADS];
    pthread_t threads[THREADS];
    make_store(scene);
    struct usage *usage = start(scene, THREADS, 1);
    for (size_t i = 0; i < THREADS; i++) {
        counting[i] = (struct counting){usage_thread(usage, i), ROUNDS, CUSTOMERS};
        assert_int_equal(pthread_create(&threads[i], NULL, count_many, &counting[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    usage_destroy(&usage);
    struct listed listed = list(scene);
    assert_int_equal(listed.count, CUSTOMERS);
    assert_int_equal(listed.requests, THREADS * ROUNDS * CUSTOMERS);
}

/* All that a thread can tell apart, and one row for the rest. */
TEST_OF(scene, customers_beyond_the_bound_are_counted_together)
{
    make_store(scene);
    struct usage *usage = start(scene, 1, NEVER_MS);
    struct counting counting = {usage_thread(usage, 0), 2, USAGE_CUSTOMERS_MAX + 10};
    (void)count_many(&counting);
    usage_destroy(&usage);
    struct listed listed = list(scene);
    assert_int_equal(listed.count, USAGE_CUSTOMERS_MAX + 1);
    assert_int_equal(listed.requests, 2 * (USAGE_CUSTOMERS_MAX + 10));
    assert_record(&listed.records[0], "", USAGE_SPORTS, (uint64_t[]){20, 0, 0, 0});
}

static int64_t summed(sqlite3 *database)
{
    sqlite3_stmt *select = NULL;
    OK(sqlite3_prepare_v2(database, "SELECT number FROM ledger_summed", -1, &select, NULL));
    assert_int_equal(sqlite3_step(select), SQLITE_ROW);
    int64_t number = sqlite3_column_int64(select, 0);
    OK(sqlite3_finalize(select));
    return number;
}

/* Here they seem to have come: the number up to which sums are kept is set back. */
TEST_OF(scene, sums_of_many_entries_do_not_wait_for_the_period)
{
    sqlite3 *database = NULL;
    make_store(scene);
    OK(sqlite3_open(strchr(scene->uri, '/'), &database));
    OK(sqlite3_exec(database,
                    "PRAGMA ignore_check_constraints = ON;"
                    "UPDATE ledger_summed SET number = -5000",
                    NULL, NULL, NULL));
    struct usage *usage = start(scene, 1, NEVER_MS);
    for (uint64_t since_ms = test_clock_real_ms(); summed(database) < 0;) {
        assert_true(test_clock_real_ms() - since_ms < 60000);
        clock_pause_ns(10000000);
    }
    assert_int_equal(summed(database), 0);
    usage_destroy(&usage);
    OK(sqlite3_close(database));
}

/* The last, because its time stands still. */
TEST_OF(scene, a_day_has_what_was_counted_until_midnight)
{
    make_store(scene);
    test_clock_stop();
    struct usage *usage = start(scene, 1, NEVER_MS);
    struct usage_row *last = NULL;
    int64_t day = clock_day(clock_wall_ms());
    usage_count(usage_thread(usage, 0), &last, "cus_A", USAGE_GAMES, 200);
    test_clock_advance_ms(NEVER_MS);
    usage_destroy(&usage); /* what was counted since the writer looked last */
    usage = start(scene, 1, NEVER_MS);
    last = NULL;
    usage_count(usage_thread(usage, 0), &last, "cus_A", USAGE_GAMES, 200);
    usage_destroy(&usage);
    struct listed listed = list(scene);
    assert_int_equal(listed.count, 2);
    assert_int_equal(listed.records[0].day, day);
    assert_int_equal(listed.records[1].day, day + 1);
}
