/*
 * What is SQLite's own about the platform store: the file and its rights, migrations, files that
 * are not what they should be, and malformed rows. (What every engine must do stands in
 * platform_contract/.)
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sqlite3.h>

#include "../test_directory.h"
#include "base/clock.h"
#include "stores/platform/schema.h"
#include "stores/platform/sql.h"
#include "stores/platform_changes.h"
#include "stores/platform_ledger.h"
#include "stores/platform_records.h"
#include "tests.h"

#define NOBODY 65534

/* ---- fixture --------------------------------------------------------------------------------- */

#define NEWEST (sqlite_migrations[sqlite_migration_count - 1].number)

struct fixture {
    char directory[TEST_DIRECTORY_SIZE];
    char path[96];
    char uri[128];
    struct platform_store *store;
    struct error error;
};

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    test_directory_make(fixture->directory);
    (void)snprintf(fixture->path, sizeof fixture->path, "%s/platform.db", fixture->directory);
    (void)snprintf(fixture->uri, sizeof fixture->uri, "sqlite:%s", fixture->path);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    static const char *const endings[] = {"", "-wal", "-shm", ".old", ".old-wal", ".old-shm"};
    platform_store_close(&fixture->store);
    for (size_t i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        char path[128];
        (void)snprintf(path, sizeof path, "%s%s", fixture->path, endings[i]);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(fixture->directory), 0);
    free(fixture);
    return 0;
}

static enum status open_store(struct fixture *fixture, bool create)
{
    /* Those that wait for others do so as long as it takes on a machine with much else to do. */
    struct platform_store_options options = {
        .uri = fixture->uri, .timeout_ms = 60000, .create = create};
    return platform_store_open(&fixture->store, &options, &fixture->error);
}

#define OK(call) ASSERT_OK(call, fixture->error)

/* Refused with this status, and with words that name the file and what matters about it. */
static void assert_refused(struct fixture *fixture, enum status status, enum status expected,
                           const char *words)
{
    if (status != expected)
        fail_msg("%s, not %s: %s", status_name(status), status_name(expected), fixture->error.text);
    if (strstr(fixture->error.text, fixture->path) == NULL ||
        strstr(fixture->error.text, words) == NULL)
        fail_msg("'%s' names not the file, or not '%s'", fixture->error.text, words);
    assert_null(strchr(fixture->error.text, '\n'));
}

static void make_store(struct fixture *fixture)
{
    uint32_t before;
    uint32_t after;
    OK(open_store(fixture, true));
    OK(platform_store_migrate(fixture->store, &before, &after, &fixture->error));
}

static void make_and_close(struct fixture *fixture)
{
    make_store(fixture);
    platform_store_close(&fixture->store);
}

/* Meddles with the file behind the store's back. */
static void execute(struct fixture *fixture, const char *sql)
{
    sqlite3 *database = NULL;
    char *problem = NULL;
    assert_int_equal(sqlite3_open(fixture->path, &database), SQLITE_OK);
    (void)sqlite3_busy_timeout(database, 2000);
    if (sqlite3_exec(database, sql, NULL, NULL, &problem) != SQLITE_OK)
        fail_msg("%s: %s", sql, problem);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}

static void write_file(struct fixture *fixture, const char *bytes, size_t size)
{
    FILE *file = fopen(fixture->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void add_customer(struct fixture *fixture, const char *id)
{
    struct customer_record record = {.enabled = true, .sports = SPORT_SET_ALL, .created_ms = 1};
    (void)snprintf(record.id, sizeof record.id, "%s", id);
    (void)snprintf(record.name, sizeof record.name, "A customer");
    OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
}

/* Runs `body` as a user who may only do what the file modes say, also when the tests run as
 * root. */
static void as_an_ordinary_user(struct fixture *fixture, void (*body)(struct fixture *fixture))
{
    if (geteuid() != 0) {
        body(fixture);
        return;
    }
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
            _exit(2);
        body(fixture); /* a failed assertion in here ends the child otherwise than by 0 */
        platform_store_close(&fixture->store);
        _exit(0);
    }
    int how = -1;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

/* ---- the file -------------------------------------------------------------------------------- */

static unsigned mode_of(struct fixture *fixture, const char *ending)
{
    char path[128];
    struct stat facts;
    (void)snprintf(path, sizeof path, "%s%s", fixture->path, ending);
    assert_int_equal(stat(path, &facts), 0);
    return facts.st_mode & 0777U;
}

TEST_OF(fixture, the_file_and_its_companions_are_made_closed_to_others)
{
    mode_t before = umask(0);
    make_store(fixture);
    add_customer(fixture, "cus_1");
    (void)umask(before);
    assert_int_equal(mode_of(fixture, ""), 0640);
    assert_int_equal(mode_of(fixture, "-wal"), 0640);
    assert_int_equal(mode_of(fixture, "-shm"), 0640);
}

TEST_OF(fixture, a_tighter_umask_is_kept)
{
    mode_t before = umask(077);
    make_store(fixture);
    (void)umask(before);
    assert_int_equal(mode_of(fixture, ""), 0600);
}

TEST_OF(fixture, a_missing_file_is_not_made_unless_asked)
{
    assert_refused(fixture, open_store(fixture, false), STATUS_UNAVAILABLE,
                   "run: croupier migrate");
    assert_int_equal(access(fixture->path, F_OK), -1);
}

TEST_OF(fixture, a_missing_directory_is_named)
{
    char uri[128];
    (void)snprintf(uri, sizeof uri, "sqlite:%s/not/there.db", fixture->directory);
    struct platform_store_options options = {.uri = uri, .timeout_ms = 1000, .create = true};
    assert_int_equal(platform_store_open(&fixture->store, &options, &fixture->error),
                     STATUS_UNAVAILABLE);
    assert_non_null(strstr(fixture->error.text, "no directory"));
    assert_non_null(strstr(fixture->error.text, "/not"));
}

TEST_OF(fixture, upkeep_counts_what_a_reader_keeps_it_from_copying)
{
    static struct platform_facts facts;
    const struct platform_store_options options = {
        .uri = fixture->uri, .timeout_ms = 60000, .create = true, .facts = &facts};
    OK(platform_store_open(&fixture->store, &options, &fixture->error));
    sqlite3 *reader, *writer;
    assert_int_equal(sqlite3_open(fixture->path, &reader), SQLITE_OK);
    assert_int_equal(sqlite3_open(fixture->path, &writer), SQLITE_OK);
    assert_int_equal(sqlite3_exec(writer, "CREATE TABLE more (b)", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM more", NULL, NULL, NULL),
                     SQLITE_OK);
    assert_int_equal(
        sqlite3_exec(writer, "INSERT INTO more VALUES (zeroblob(8000000))", NULL, NULL, NULL),
        SQLITE_OK);
    OK(fixture->store->ledger->upkeep(fixture->store, &fixture->error));
    assert_true(facts.log_held_bytes >= 7000000);
    assert_int_equal(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
    OK(fixture->store->ledger->upkeep(fixture->store, &fixture->error));
    assert_int_equal(facts.log_held_bytes, 0);
    assert_int_equal(sqlite3_close(reader), SQLITE_OK);
    assert_int_equal(sqlite3_close(writer), SQLITE_OK);
}

/* A customer may have hundreds of thousands, and each launch finds one. */
TEST_OF(fixture, a_player_is_found_by_its_reference_and_not_among_all_of_its_customer)
{
    sqlite3 *database = NULL;
    sqlite3_stmt *statement = NULL;
    char sql[2000];
    bool by_reference = false;
    make_store(fixture);
    (void)snprintf(sql, sizeof sql, "EXPLAIN QUERY PLAN %s",
                   statement_of(fixture->store, &player_table, STATEMENT_SEARCH));
    platform_store_close(&fixture->store);
    assert_int_equal(sqlite3_open(fixture->path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(database, sql, -1, &statement, NULL), SQLITE_OK);
    while (sqlite3_step(statement) == SQLITE_ROW)
        by_reference |=
            strstr((const char *)sqlite3_column_text(statement, 3), "reference=?") != NULL;
    assert_int_equal(sqlite3_finalize(statement), SQLITE_OK);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
    assert_true(by_reference);
}

TEST_OF(fixture, a_directory_in_its_place_is_refused)
{
    assert_int_equal(mkdir(fixture->path, 0700), 0);
    assert_refused(fixture, open_store(fixture, true), STATUS_UNAVAILABLE, "not a regular file");
    assert_int_equal(rmdir(fixture->path), 0);
}

static void expect_unwritable_file(struct fixture *fixture)
{
    assert_refused(fixture, open_store(fixture, false), STATUS_UNAVAILABLE,
                   "cannot be read and written by user");
}

TEST_OF(fixture, a_read_only_file_is_refused)
{
    make_and_close(fixture);
    assert_int_equal(chmod(fixture->path, 0444), 0);
    assert_int_equal(chmod(fixture->directory, 0777), 0);
    as_an_ordinary_user(fixture, expect_unwritable_file);
}

static void expect_unwritable_directory(struct fixture *fixture)
{
    assert_refused(fixture, open_store(fixture, true), STATUS_UNAVAILABLE,
                   "cannot be written (Permission denied, as user");
}

TEST_OF(fixture, a_read_only_directory_is_refused)
{
    make_and_close(fixture);
    assert_int_equal(chmod(fixture->path, 0666), 0);
    assert_int_equal(chmod(fixture->directory, 0555), 0);
    as_an_ordinary_user(fixture, expect_unwritable_directory);
    assert_int_equal(chmod(fixture->directory, 0755), 0);
}

/* ---- files that are something else ----------------------------------------------------------- */

TEST_OF(fixture, an_empty_file_asks_for_migration_and_takes_it)
{
    uint32_t before = 9;
    uint32_t after = 9;
    write_file(fixture, "", 0);
    assert_refused(fixture, open_store(fixture, false), STATUS_INVALID, "run: croupier migrate");
    OK(open_store(fixture, true));
    OK(platform_store_migrate(fixture->store, &before, &after, &fixture->error));
    assert_int_equal(before, 0);
    assert_int_equal(after, NEWEST);
}

TEST_OF(fixture, a_file_that_is_no_database_is_refused_and_left_alone)
{
    char text[4096];
    memset(text, 'x', sizeof text);
    write_file(fixture, text, sizeof text);
    assert_refused(fixture, open_store(fixture, true), STATUS_MALFORMED, "not a database");
    assert_refused(fixture, open_store(fixture, false), STATUS_MALFORMED, "not a database");
    struct stat facts;
    assert_int_equal(stat(fixture->path, &facts), 0);
    assert_int_equal(facts.st_size, sizeof text);
}

TEST_OF(fixture, another_programs_database_is_refused_and_left_alone)
{
    execute(fixture, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)");
    assert_refused(fixture, open_store(fixture, true), STATUS_INVALID, "another program's");
    assert_refused(fixture, open_store(fixture, false), STATUS_INVALID, "another program's");
    execute(fixture, "PRAGMA application_id = 1234; DROP TABLE theirs");
    assert_refused(fixture, open_store(fixture, true), STATUS_INVALID, "another program's");
    execute(fixture, "CREATE TABLE customer (x)"); /* nothing of ours came into it */
}

TEST_OF(fixture, a_damaged_file_is_called_damaged)
{
    make_and_close(fixture);
    struct stat facts;
    assert_int_equal(stat(fixture->path, &facts), 0);
    FILE *file = fopen(fixture->path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, 4096, SEEK_SET), 0); /* behind the first page */
    for (long i = 4096; i < facts.st_size; i++)
        (void)fputc(0x5A, file);
    assert_int_equal(fclose(file), 0);
    assert_refused(fixture, open_store(fixture, false), STATUS_MALFORMED, "is damaged");
}

TEST_OF(fixture, a_file_that_was_cut_off_is_called_damaged)
{
    make_and_close(fixture);
    assert_int_equal(truncate(fixture->path, 4096), 0);
    assert_refused(fixture, open_store(fixture, false), STATUS_MALFORMED, "is damaged");
}

/* ---- migrations ------------------------------------------------------------------------------ */

TEST_OF(fixture, a_newer_schema_is_refused_also_by_migrate)
{
    uint32_t before = 7;
    uint32_t after = 7;
    char sql[128];
    make_and_close(fixture);
    (void)snprintf(sql, sizeof sql, "INSERT INTO schema_migration VALUES (%u, 'later', 'x', 1)",
                   NEWEST + 1);
    execute(fixture, sql);
    assert_refused(fixture, open_store(fixture, false), STATUS_INVALID, "is newer");
    OK(open_store(fixture, true));
    assert_refused(fixture,
                   platform_store_migrate(fixture->store, &before, &after, &fixture->error),
                   STATUS_INVALID, "is newer");
    assert_true(before == 7 && after == 7);
}

TEST_OF(fixture, an_older_schema_is_refused_until_migrated)
{
    make_and_close(fixture);
    execute(fixture, "DELETE FROM schema_migration"); /* as if no step had been taken yet */
    assert_refused(fixture, open_store(fixture, false), STATUS_INVALID, "run: croupier migrate");
}

TEST_OF(fixture, a_schema_between_releases_is_refused)
{
    make_and_close(fixture);
    execute(fixture, "UPDATE schema_migration SET checksum = 'edited' WHERE number ="
                     " (SELECT max(number) FROM schema_migration)");
    assert_refused(fixture, open_store(fixture, false), STATUS_INVALID, "is of no release");
    /* Nor is one from before the first release. */
    execute(fixture, "UPDATE schema_migration SET number = number - 2");
    assert_refused(fixture, open_store(fixture, false), STATUS_INVALID, "is of no release");
}

TEST_OF(fixture, a_migration_that_fails_leaves_nothing_behind)
{
    uint32_t before;
    uint32_t after;
    make_and_close(fixture);
    /* The first step is due again but will meet its own tables. */
    execute(fixture, "DELETE FROM schema_migration; DROP TABLE legacy_address");
    OK(open_store(fixture, true));
    assert_true(platform_store_migrate(fixture->store, &before, &after, &fixture->error) !=
                STATUS_OK);
    assert_non_null(strstr(fixture->error.text, "migration 7 (release_0_1_0)"));
    platform_store_close(&fixture->store);
    execute(fixture, "CREATE TABLE legacy_address (it_was_not_made INTEGER)");
}

struct watched {
    char what[64];
    uint64_t rows;  /* of the last call */
    uint64_t rises; /* within one statement */
};

static void note_watched(void *context, const char *what, uint64_t rows, uint64_t total)
{
    struct watched *watched = context;
    assert_int_equal(total, 0);
    if (strstr(what, "schema 8 (") == NULL)
        return;
    (void)snprintf(watched->what, sizeof watched->what, "%s", what);
    watched->rises += watched->rows > 0 && rows > watched->rows;
    watched->rows = rows;
}

/* The part of its step alone: an earlier step needs functions of the program. */
TEST_OF(fixture, blocks_of_before_go_on_without_an_end)
{
    struct block_record block;
    const char *part = strstr(sqlite_migrations[2].sql, "ALTER TABLE player_block RENAME");
    assert_non_null(part);
    char *step = strdup(part);
    char *end = strstr(step, "DROP TABLE player_block_before;");
    assert_non_null(end);
    end[strlen("DROP TABLE player_block_before;")] = '\0';
    make_and_close(fixture);
    execute(fixture,
            "INSERT INTO customer (number, id, name, enabled, revision, sports, cidrs, created_ms,"
            " casino) VALUES (1, 'cus_One', 'One', 1, 1, 'all', '', 1, 1);"
            "INSERT INTO currency VALUES ('EUR', 2, 1);"
            "INSERT INTO player (number, id, customer_id, reference, currency, created_ms)"
            " VALUES (7, 'ply_1', 'cus_One', 'one', 'EUR', 1);"
            "DROP TABLE player_block; CREATE TABLE player_block"
            " (player_number INTEGER PRIMARY KEY, blocked_ms INTEGER);"
            "INSERT INTO player_block VALUES (7, 77)");
    execute(fixture, step);
    free(step);
    OK(open_store(fixture, false));
    OK(platform_get(fixture->store, &block_table, "ply_1", &block, &fixture->error));
    assert_string_equal(block.player_id, "ply_1");
    assert_string_equal(block.customer_id, "cus_One");
    assert_string_equal(block.reference, "one");
    assert_true(block.blocked_ms == 77 && block.until_ms == 0 && block.reason[0] == '\0');
}

TEST_OF(fixture, a_long_step_says_how_far_it_is)
{
    uint32_t before;
    uint32_t after;
    struct watched watched = {.rows = 0};
    execute(fixture, "PRAGMA application_id = 1668445552;"
                     "CREATE TABLE schema_migration (number INTEGER PRIMARY KEY CHECK (number > 0),"
                     " name TEXT NOT NULL, checksum TEXT NOT NULL, applied_ms INTEGER NOT NULL)"
                     " STRICT");
    char sql[256];
    (void)snprintf(sql, sizeof sql, "INSERT INTO schema_migration VALUES (%u, '%s', '%s', 1)",
                   sqlite_migrations[0].number, sqlite_migrations[0].name,
                   sqlite_migrations[0].checksum);
    execute(fixture, sqlite_migrations[0].sql);
    execute(fixture, sql);
    execute(fixture,
            "INSERT INTO customer VALUES (1, 'cus_One', 'One', 1, 1, 'all', NULL, NULL, '', 1, 1);"
            "INSERT INTO player (number, id, customer_id, reference, currency, created_ms)"
            " VALUES (1, 'pla_1', 'cus_One', 'one', 'EUR', 1);"
            "WITH RECURSIVE counted (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted"
            " WHERE n < 40000) INSERT INTO ledger_transaction (number, customer_number,"
            " player_number, sequence, previous, amount_minor, movement_minor, balance_minor, "
            "created_ms,"
            " transaction_id, operation, outcome, hash)"
            " SELECT n, 1, 1, n, n - 1, 5, 5, 5 * n, n, 't' || n, 'CREDIT', 'applied', zeroblob(32)"
            " FROM counted");
    OK(open_store(fixture, true));
    fixture->store->watch = &(struct progress_watch){note_watched, &watched};
    OK(platform_store_migrate(fixture->store, &before, &after, &fixture->error));
    assert_int_equal(before, 7);
    assert_int_equal(after, NEWEST);
    assert_string_equal(watched.what, "schema 8 (release_0_2_0)");
    assert_true(watched.rises > 2);
}

TEST_OF(fixture, migrating_several_times_at_once_does_it_once)
{
    enum { PROCESSES = 4 };
    pid_t children[PROCESSES];
    int gate[2];
    assert_int_equal(pipe(gate), 0);
    for (int i = 0; i < PROCESSES; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            char byte;
            uint32_t before;
            uint32_t after = 0;
            (void)close(gate[1]);
            (void)!read(gate[0], &byte, 1); /* all start when the gate is closed */
            enum status status = open_store(fixture, true);
            if (status == STATUS_OK)
                status = platform_store_migrate(fixture->store, &before, &after, &fixture->error);
            if (status != STATUS_OK)
                (void)fprintf(stderr, "%s\n", fixture->error.text);
            platform_store_close(&fixture->store);
            _exit(status == STATUS_OK && after == NEWEST ? 0 : 1);
        }
    }
    (void)close(gate[0]);
    (void)close(gate[1]);
    for (int i = 0; i < PROCESSES; i++) {
        int how = -1;
        assert_int_equal(waitpid(children[i], &how, 0), children[i]);
        assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
    }
    OK(open_store(fixture, false));
    add_customer(fixture, "cus_1");
}

/* ---- while it is in use ---------------------------------------------------------------------- */

TEST_OF(fixture, a_lock_held_by_another_process_is_waited_for_and_then_told)
{
    make_and_close(fixture);
    struct platform_store_options options = {.uri = fixture->uri, .timeout_ms = 50};
    OK(platform_store_open(&fixture->store, &options, &fixture->error));
    sqlite3 *other = NULL;
    assert_int_equal(sqlite3_open(fixture->path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);

    struct customer_record record = {.id = "cus_1", .name = "n", .created_ms = 1};
    uint64_t revision = 9;
    uint64_t start = clock_monotonic_ms();
    assert_refused(fixture, platform_add(fixture->store, &customer_table, &record, &fixture->error),
                   STATUS_TIMEOUT, "locked for more than 50 ms");
    assert_true(clock_monotonic_ms() - start >= 40);
    OK(platform_revision(fixture->store, &revision, &fixture->error)); /* reading goes on */
    assert_int_equal(revision, 0);

    assert_int_equal(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(other), SQLITE_OK);
    OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
}

TEST_OF(fixture, no_file_is_opened_in_the_place_of_one_that_is_open)
{
    char old[128];
    uint64_t revision = 9;
    (void)snprintf(old, sizeof old, "%s.old", fixture->path);
    make_store(fixture);
    add_customer(fixture, "cus_1");
    struct platform_store *held = fixture->store;
    assert_int_equal(rename(fixture->path, old), 0);
    assert_refused(fixture, platform_revision(held, &revision, &fixture->error), STATUS_UNAVAILABLE,
                   "no such file");
    write_file(fixture, "another", 7);
    fixture->store = NULL;
    assert_refused(fixture, open_store(fixture, false), STATUS_UNAVAILABLE, "is another file");
    assert_refused(fixture, platform_revision(held, &revision, &fixture->error), STATUS_UNAVAILABLE,
                   "is another file");
    assert_int_equal(rename(old, fixture->path), 0);
    OK(platform_revision(held, &revision, &fixture->error));
    assert_int_equal(revision, 1);
    fixture->store = held;
    add_customer(fixture, "cus_2");
}

/* Its log has lost its name; it ends when `go_on` says so. */
static void serve_without_log(struct fixture *fixture, const char *removed, int ready, int go_on)
{
    char path[128];
    uint64_t revision = 0;
    make_store(fixture);
    add_customer(fixture, "cus_1");
    (void)snprintf(path, sizeof path, "%s%s", fixture->path, removed);
    assert_int_equal(unlink(path), 0);
    assert_refused(fixture, platform_revision(fixture->store, &revision, &fixture->error),
                   STATUS_UNAVAILABLE, "is gone; nothing more is written: put it back, or stop");
    assert_int_equal(write(ready, "", 1), 1);
    assert_int_equal(read(go_on, path, 1), 1);
    platform_store_close(&fixture->store);
}

static void name_file(struct fixture *fixture, const char *ending)
{
    (void)snprintf(fixture->path, sizeof fixture->path, "%s/platform.db%s", fixture->directory,
                   ending);
    (void)snprintf(fixture->uri, sizeof fixture->uri, "sqlite:%s/platform.db%s", fixture->directory,
                   ending);
}

/* A child of its own: whether that finds the database refused, in another namespace of process ids
 * where it may make one, and how it says so. */
static void assert_child_is_refused(struct fixture *fixture, const char *words)
{
    int how = -1;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct platform_store_options options = {.uri = fixture->uri, .timeout_ms = 20};
        struct platform_store *own = NULL;
        pid_t other = unshare(CLONE_NEWPID) == 0 ? fork() : 0;
        if (other > 0)
            _exit(waitpid(other, &how, 0) == other && WIFEXITED(how) ? WEXITSTATUS(how) : 1);
        assert_refused(fixture, platform_store_open(&own, &options, &fixture->error),
                       STATUS_UNAVAILABLE, words);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
}

/* Takes and gives locks, so that the kernel's list of them changes all the time. */
static void *take_locks(void *context)
{
    atomic_bool *stop = context;
    FILE *file = tmpfile();
    assert_non_null(file);
    for (off_t at = 0; !atomic_load(stop); at = (at + 2) % 200) {
        struct flock lock = {.l_type = F_WRLCK, .l_start = at, .l_len = 1};
        (void)fcntl(fileno(file), F_SETLK, &lock);
        lock = (struct flock){.l_type = F_UNLCK, .l_start = (at + 100) % 200, .l_len = 1};
        (void)fcntl(fileno(file), F_SETLK, &lock);
    }
    (void)fclose(file);
    return NULL;
}

/* In between another process may not make a log of that name. */
static void lose_log(struct fixture *fixture, const char *removed)
{
    int ready[2];
    int go_on[2];
    int how = -1;
    char byte;
    uint64_t revision = 0;
    atomic_bool stop = false;
    pthread_t locker;
    assert_int_equal(pipe(ready) | pipe(go_on), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(ready[0]);
        serve_without_log(fixture, removed, ready[1], go_on[0]);
        _exit(0);
    }
    (void)close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(pthread_create(&locker, NULL, take_locks, &stop), 0);
    for (int i = 0; i < 25; i++)
        assert_child_is_refused(fixture, "has this database open and its log was removed");
    char path[128];
    (void)snprintf(path, sizeof path, "%s", fixture->path);
    name_file(fixture, ".old"); /* where the log is missing as well */
    assert_int_equal(rename(path, fixture->path), 0);
    assert_child_is_refused(fixture, "has this database open and its log was removed");
    assert_int_equal(rename(fixture->path, path), 0);
    name_file(fixture, "");
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(locker, NULL), 0);
    assert_int_equal(write(go_on[1], "", 1), 1);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(how, 0);
    (void)(close(ready[0]) | close(go_on[0]) | close(go_on[1]));
    OK(open_store(fixture, false));
    OK(platform_revision(fixture->store, &revision, &fixture->error));
    assert_int_equal(revision, 1);
}

TEST_OF(fixture, a_log_that_lost_its_name_is_brought_into_the_file_at_the_end)
{
    lose_log(fixture, "-wal");
}

TEST_OF(fixture, a_log_whose_index_lost_its_name_is_brought_into_the_file_at_the_end)
{
    lose_log(fixture, "-shm");
}

TEST_OF(fixture, a_database_with_a_second_name_is_refused)
{
    char other[128];
    make_and_close(fixture);
    (void)snprintf(other, sizeof other, "%s.old", fixture->path);
    assert_int_equal(link(fixture->path, other), 0);
    assert_refused(fixture, open_store(fixture, false), STATUS_UNAVAILABLE,
                   "has a second name (a hard link)");
    assert_int_equal(unlink(other), 0);
    OK(open_store(fixture, false));
    /* A handle more of a process that has it open already goes on. */
    assert_int_equal(link(fixture->path, other), 0);
    struct platform_store *first = fixture->store;
    fixture->store = NULL;
    OK(open_store(fixture, false));
    platform_store_close(&first);
}

/* As `-v ledger.db:/data/platform.db` gives a container one. */
TEST_OF(fixture, a_database_that_is_a_mount_of_its_own_is_refused)
{
    char mounted[128];
    int how = -1;
    make_and_close(fixture);
    (void)snprintf(mounted, sizeof mounted, "%s.old", fixture->path);
    FILE *place = fopen(mounted, "wb");
    assert_non_null(place);
    assert_int_equal(fclose(place), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount("", "/", "", MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount(fixture->path, mounted, "", MS_BIND, NULL) != 0)
            _exit(77);
        name_file(fixture, ".old");
        assert_refused(fixture, open_store(fixture, false), STATUS_UNAVAILABLE,
                       "mount the directory that holds it");
        _exit(0);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    if (WIFEXITED(how) && WEXITSTATUS(how) == 77)
        skip(); /* only root may mount */
    assert_int_equal(how, 0);
}

TEST_OF(fixture, an_open_that_lacks_descriptors_can_be_repeated)
{
    struct rlimit before;
    unsigned refused = 0;
    make_and_close(fixture);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    for (rlim_t count = 1; refused == count - 1; count++) {
        struct rlimit few = {.rlim_cur = count, .rlim_max = before.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        enum status status = open_store(fixture, false);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        if (status != STATUS_OK) {
            assert_int_equal(status, STATUS_UNAVAILABLE);
            refused++;
            OK(open_store(fixture, false));
        }
        platform_store_close(&fixture->store);
    }
}

TEST_OF(fixture, a_database_damaged_while_in_use_fails_and_recovers_when_restored)
{
    uint64_t revision = 0;
    make_store(fixture);
    execute(fixture, "DELETE FROM store_revision");
    assert_refused(fixture, platform_revision(fixture->store, &revision, &fixture->error),
                   STATUS_MALFORMED, "is damaged");
    struct customer_record record = {.id = "cus_1", .name = "n", .created_ms = 1};
    assert_refused(fixture, platform_add(fixture->store, &customer_table, &record, &fixture->error),
                   STATUS_MALFORMED, "is damaged");
    execute(fixture, "INSERT INTO store_revision VALUES (1, 41)");
    OK(platform_add(fixture->store, &customer_table, &record, &fixture->error));
    OK(platform_revision(fixture->store, &revision, &fixture->error));
    assert_int_equal(revision, 42);
}

/* ---- malformed rows ----------------------------------------------------------------- */

static bool note_usable(void *context, const void *visited)
{
    const struct customer_record *record = visited;
    char *verdicts = context;
    size_t at = strlen(verdicts);
    verdicts[at] = record->usable ? '+' : '-';
    return true;
}

static bool note_legacy_usable(void *context, const void *visited)
{
    const struct legacy_record *record = visited;
    char *verdicts = context;
    size_t at = strlen(verdicts);
    verdicts[at] = record->usable ? '+' : '-';
    return true;
}

TEST_OF(fixture, rows_that_make_no_sense_are_unusable_and_harm_no_other)
{
    make_store(fixture);
    execute(fixture,
            "PRAGMA ignore_check_constraints = ON;"
            "INSERT INTO customer (id, name, enabled, casino, sports, rate_requests,"
            " rate_window_seconds, cidrs, created_ms, revision) VALUES"
            " ('cus_1', 'good', 1, 0, 'all', 1, 1, '192.0.2.0/24 2001:db8::/32', 1, 1),"
            " ('cus_2', 'bits beyond', 1, 0, 'all', 1, 1, '192.0.2.1/24', 1, 2),"
            " ('cus_3', 'no block', 1, 0, 'all', 1, 1, 'everywhere', 1, 3),"
            " ('cus_4', 'two spaces', 1, 0, 'all', 1, 1, '192.0.2.0/24  10.0.0.0/8', 1, 4),"
            " ('cus_5', 'a later sport', 1, 0, 'cricket,chess', 1, 1, '', 1, 5),"
            " ('cus_6', 'rate of zero', 1, 0, 'all', 0, 1, '', 1, 6),"
            " ('cus_7', 'negative', 1, 0, 'all', -5, 1, '', 1, 7),"
            " ('cus_8', 'half a rate', 1, 0, 'all', 1, NULL, '', 1, 8),"
            " ('cus_9', 'neither on nor off', 2, 0, 'all', 1, 1, '', 1, 9),"
            " ('cus_a', CAST(x'ff41' AS TEXT), 1, 0, 'all', 1, 1, '', 1, 10),"
            " ('cus_b', 'good', 1, 0, 'none', NULL, NULL, '', 1, 11);"
            "INSERT INTO legacy_address (address, enabled, removed, sports, rate_requests,"
            " rate_window_seconds, created_ms, revision) VALUES"
            " (x'01', 1, 0, 'all', NULL, NULL, 1, 12),"
            " (x'00000000000000000000ffffc0000201', 1, 0, 'all', NULL, NULL, 1, 13),"
            " (x'00000000000000000000ffffc0000202', 1, 0, 'ludo', NULL, NULL, 1, 14);"
            "UPDATE store_revision SET revision = 14");
    char verdicts[32] = "";
    OK(platform_list(fixture->store, &customer_table, NULL, note_usable, verdicts,
                     &fixture->error));
    assert_string_equal(verdicts, "+---------+");
    char legacy_verdicts[32] = "";
    OK(platform_list(fixture->store, &legacy_table, NULL, note_legacy_usable, legacy_verdicts,
                     &fixture->error));
    assert_string_equal(legacy_verdicts, "+--");
}

static bool note_revoked(void *context, const void *visited)
{
    const struct key_record *record = visited;
    *(int64_t *)context = record->revoked_ms;
    return true;
}

TEST_OF(fixture, a_key_row_that_makes_no_sense_opens_nothing)
{
    int64_t revoked_ms = 0;
    make_store(fixture);
    add_customer(fixture, "cus_1");
    execute(fixture, "PRAGMA ignore_check_constraints = ON;"
                     "INSERT INTO api_key (id, customer_id, label, prefix, digest, created_ms,"
                     " revision) VALUES ('key_1', 'cus_1', '', 'crk_abcd', x'0102', 1, 2)");
    OK(platform_list(fixture->store, &key_table, NULL, note_revoked, &revoked_ms, &fixture->error));
    assert_true(revoked_ms != 0);
}

TEST_OF(fixture, the_schema_itself_refuses_what_the_program_would)
{
    static const char *const wrong[] = {
        "UPDATE customer SET enabled = 2",
        "UPDATE customer SET name = ''",
        "UPDATE customer SET rate_requests = 5",
        "UPDATE customer SET rate_requests = 5, rate_window_seconds = 0",
        "UPDATE customer SET rate_requests = 'many', rate_window_seconds = 1",
        "INSERT INTO legacy_address VALUES (x'01', 1, 0, 'all', NULL, NULL, 1, 9)",
        ("INSERT INTO api_key (id, customer_id, label, prefix, digest, created_ms, revision)"
         " VALUES ('key_1', 'cus_0', '', 'crk_abcd', zeroblob(32), 1, 9)"),
        "INSERT INTO store_revision VALUES (2, 0)",
        "UPDATE audit_trail SET who = 'somebody else'",
        "DELETE FROM audit_trail",
        "INSERT INTO audit_trail VALUES (3, 1, 'anna', '', 'customer', 'cus_1', NULL, '{}')",
        "REPLACE INTO audit_trail VALUES (1, 1, 'anna', '', 'customer', 'cus_1', NULL, '{}')",
    };
    make_store(fixture);
    add_customer(fixture, "cus_1");
    sqlite3 *database = NULL;
    assert_int_equal(sqlite3_open(fixture->path, &database), SQLITE_OK);
    assert_int_equal(sqlite3_exec(database, "PRAGMA foreign_keys = ON", NULL, NULL, NULL),
                     SQLITE_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        if (sqlite3_exec(database, wrong[i], NULL, NULL, NULL) != SQLITE_CONSTRAINT)
            fail_msg("not refused: %s", wrong[i]);
    assert_int_equal(sqlite3_close(database), SQLITE_OK);
}
