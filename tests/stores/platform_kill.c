/*
 * Two writers are killed with SIGKILL at a random moment, again and again, while they add customers
 * and keys. After each round: the store opens, its pages are sound, everything that was
 * acknowledged is there, and every row stands under a revision of its own that the store has
 * reached. The seed is printed; give it as the argument to repeat a run.
 */
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sqlite3.h>

#include "../test_directory.h"
#include "base/clock.h"
#include "stores/platform_changes.h"
#include "stores/platform_records.h"
#include "tests.h"

#define ROUNDS 20
#define WRITERS 2
#define ACKNOWLEDGED_MAX 4096

static unsigned seed;

struct scene {
    char directory[TEST_DIRECTORY_SIZE];
    char path[96];
    char uri[128];
    uint32_t acknowledged[WRITERS]; /* the highest number each writer was told is kept */
};

static struct platform_store *open_store(struct scene *scene, bool create)
{
    struct platform_store *store = NULL;
    struct error error = {0};
    struct platform_store_options options = {
        .uri = scene->uri, .timeout_ms = 10000, .create = create};
    if (platform_store_open(&store, &options, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    return store;
}

static void fill_customer(struct customer_record *record, int writer, uint32_t number)
{
    *record = (struct customer_record){.enabled = true, .sports = SPORT_SET_ALL, .created_ms = 1};
    (void)snprintf(record->id, sizeof record->id, "cus_%dx%" PRIu32, writer, number);
    (void)snprintf(record->name, sizeof record->name, "writer %d", writer);
}

static void fill_key(struct key_record *record, int writer, uint32_t number)
{
    *record = (struct key_record){.created_ms = 1};
    (void)snprintf(record->id, sizeof record->id, "key_%dx%" PRIu32, writer, number);
    (void)snprintf(record->customer_id, sizeof record->customer_id, "cus_%dx%" PRIu32, writer,
                   number);
    memcpy(record->prefix, "crk_abcd", sizeof record->prefix);
    memcpy(record->digest, record->id, sizeof record->id);
}

/* Until it is killed: adds number, number + 1, … and tells each over the pipe once it is kept. */
_Noreturn static void write_until_killed(struct scene *scene, int writer, uint32_t number,
                                         int pipe_end)
{
    struct platform_store *store = open_store(scene, false);
    struct error error = {0};
    for (;; number++) {
        struct customer_record customer;
        struct key_record key;
        fill_customer(&customer, writer, number);
        fill_key(&key, writer, number);
        enum status status = platform_add(store, &customer_table, &customer, &error);
        /* The one that was in flight when the last round ended may have been kept. */
        if (status == STATUS_OK || status == STATUS_EXISTS)
            status = platform_add(store, &key_table, &key, &error);
        if ((status != STATUS_OK && status != STATUS_EXISTS) ||
            write(pipe_end, &number, sizeof number) != sizeof number) {
            (void)fprintf(stderr, "writer %d: %s\n", writer, error.text);
            _exit(1);
        }
        while (number + 1 == ACKNOWLEDGED_MAX) /* a fast disk: enough for this run */
            (void)pause();
    }
}

/* `patient`: not before something was acknowledged, which a busy machine might never come to. */
static void run_and_kill(struct scene *scene, bool patient)
{
    pid_t children[WRITERS];
    int pipes[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        int ends[2];
        assert_int_equal(pipe(ends), 0);
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0)
            write_until_killed(scene, i, scene->acknowledged[i] + 1, ends[1]);
        (void)close(ends[1]);
        pipes[i] = ends[0];
    }
    struct pollfd first[WRITERS];
    for (int i = 0; i < WRITERS; i++)
        first[i] = (struct pollfd){.fd = pipes[i], .events = POLLIN};
    if (patient)
        assert_true(poll(first, WRITERS, -1) > 0);
    const struct timespec pause = {.tv_nsec = 1000000L * (5 + rand_r(&seed) % 60)};
    (void)nanosleep(&pause, NULL);
    for (int i = 0; i < WRITERS; i++)
        assert_int_equal(kill(children[i], SIGKILL), 0);
    for (int i = 0; i < WRITERS; i++) {
        int how = 0;
        uint32_t number;
        assert_int_equal(waitpid(children[i], &how, 0), children[i]);
        assert_true(WIFSIGNALED(how)); /* it had not failed by itself */
        while (read(pipes[i], &number, sizeof number) == sizeof number)
            scene->acknowledged[i] = number;
        (void)close(pipes[i]);
    }
}

/* ---- verification ---------------------------------------------------------------------------- */

struct verdict {
    bool customer[WRITERS][ACKNOWLEDGED_MAX];
    bool key[WRITERS][ACKNOWLEDGED_MAX];
    uint64_t last_revision;
    size_t rows;
};

static bool *slot(bool (*table)[ACKNOWLEDGED_MAX], const char *id)
{
    int writer = 0;
    unsigned number = 0;
    assert_int_equal(sscanf(id + 4, "%dx%u", &writer, &number), 2);
    assert_true(writer < WRITERS && number < ACKNOWLEDGED_MAX);
    return &table[writer][number];
}

static bool see_customer(void *context, const void *visited)
{
    const struct customer_record *record = visited;
    struct verdict *verdict = context;
    assert_true(record->usable);
    assert_true(record->revision > verdict->last_revision);
    verdict->last_revision = record->revision;
    *slot(verdict->customer, record->id) = true;
    verdict->rows++;
    return true;
}

static bool see_key(void *context, const void *visited)
{
    const struct key_record *record = visited;
    struct verdict *verdict = context;
    assert_true(*slot(verdict->customer, record->customer_id));
    *slot(verdict->key, record->id) = true;
    verdict->rows++;
    return true;
}

static bool see_legacy(void *context, const void *record)
{
    return true;
}

static int expect_ok(void *context, int columns, char **values, char **names)
{
    *(bool *)context = columns == 1 && strcmp(values[0], "ok") == 0;
    return 0;
}

static void verify(struct scene *scene)
{
    struct platform_store *store = open_store(scene, false);
    struct error error = {0};
    struct verdict *verdict = calloc(1, sizeof *verdict);
    struct record_visitor visit = {.see[RECORD_CUSTOMER] = see_customer,
                                   .see[RECORD_KEY] = see_key,
                                   .see[RECORD_ADDRESS] = see_legacy,
                                   .context = verdict};
    uint64_t revision = 0;
    if (platform_changes_since(store, 0, &visit, &revision, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    platform_store_close(&store);
    for (int i = 0; i < WRITERS; i++)
        for (uint32_t number = 1; number <= scene->acknowledged[i]; number++)
            assert_true(verdict->customer[i][number] && verdict->key[i][number]);
    /* Only adding was done, and what failed or was lost took no number: one row, one revision. */
    assert_int_equal(revision, verdict->rows);
    free(verdict);

    sqlite3 *database = NULL;
    bool sound = false;
    assert_int_equal(sqlite3_open(scene->path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "PRAGMA integrity_check", expect_ok, &sound, NULL),
                     SQLITE_OK);
    assert_true(sound);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

TEST(what_was_acknowledged_survives_every_kill)
{
    struct scene scene = {0};
    struct error error = {0};
    uint32_t before;
    uint32_t after;
    test_directory_make(scene.directory);
    (void)snprintf(scene.path, sizeof scene.path, "%s/platform.db", scene.directory);
    (void)snprintf(scene.uri, sizeof scene.uri, "sqlite:%s", scene.path);
    struct platform_store *store = open_store(&scene, true);
    assert_int_equal(platform_store_migrate(store, &before, &after, &error), STATUS_OK);
    platform_store_close(&store);

    (void)printf("seed %u\n", seed);
    for (int round = 0; round < ROUNDS; round++) {
        run_and_kill(&scene, round == 0);
        verify(&scene);
    }
    (void)printf("%" PRIu32 " and %" PRIu32 " were acknowledged\n", scene.acknowledged[0],
                 scene.acknowledged[1]);
    assert_true(scene.acknowledged[0] + scene.acknowledged[1] > 0);

    static const char *const endings[] = {"", "-wal", "-shm"};
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s%s", scene.path, endings[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(scene.directory), 0);
}

int main(int argc, char **argv)
{
    seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : (unsigned)clock_monotonic_ns();
    return tests_run();
}
