/*
 * The index of transaction ids in files beside the embedded ledger: id_index.h. Built with tables,
 * blocks and levels so small (meson.build) that some hundred ids go through all merges, and once
 * more with keys so short that many are equal.
 */
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../test_directory.h"
#include "base/clock.h"
#include "id_rows.h"
#include "stores/platform/sqlite/ids/id_directory.h"
#include "stores/platform/sqlite/ids/id_run.h"
#include "tests.h"

#ifndef KEY_MASK
#define KEY_MASK 0 /* all bits */
#endif
#define OK(call) assert_int_equal((call), STATUS_OK)
#define ROOM 256
#define FILES_MAX 1024

struct fixture {
    char folder[TEST_DIRECTORY_SIZE], database[96], directory[128];
    struct id_rows rows;
    struct id_source source;
    struct id_index *index;
    uint64_t random;
    struct error error;
};

static uint64_t next_random(struct fixture *fixture, uint64_t below)
{
    fixture->random = fixture->random * 6364136223846793005U + 1442695040888963407U;
    return id_rows_mix(fixture->random) % below;
}

static void make_database(struct fixture *fixture, mode_t mode)
{
    int descriptor = open(fixture->database, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(descriptor >= 0);
    assert_int_equal(fchmod(descriptor, mode), 0);
    assert_int_equal(close(descriptor), 0);
}

static int set_up(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    test_directory_make(fixture->folder);
    (void)snprintf(fixture->database, sizeof fixture->database, "%s/platform.db", fixture->folder);
    (void)snprintf(fixture->directory, sizeof fixture->directory, "%s-ids", fixture->database);
    fixture->rows = (struct id_rows){.forked = INT64_MAX, .mask = KEY_MASK};
    fixture->source = id_rows_source(&fixture->rows);
    fixture->random = 1;
    make_database(fixture, 0640);
    *state = fixture;
    return 0;
}

/* Of the files in the directory, as they were listed last. */
static char names[FILES_MAX][ID_NAME_SIZE];

static size_t list_files(const struct fixture *fixture)
{
    size_t count = 0;
    DIR *list = opendir(fixture->directory);
    for (const struct dirent *entry; list != NULL && (entry = readdir(list)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        assert_true(count < FILES_MAX && strlen(entry->d_name) < ID_NAME_SIZE);
        memcpy(names[count++], entry->d_name, strlen(entry->d_name) + 1);
    }
    if (list != NULL)
        (void)closedir(list);
    return count;
}

/* Until the next call. */
static const char *path_of(const struct fixture *fixture, const char name[ID_NAME_SIZE])
{
    static char path[256];
    (void)snprintf(path, sizeof path, "%s/%.*s", fixture->directory, ID_NAME_SIZE, name);
    return path;
}

static void clear_directory(const struct fixture *fixture)
{
    size_t count = list_files(fixture);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(unlink(path_of(fixture, names[i])), 0);
    }
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    id_index_close(&fixture->index);
    clear_directory(fixture);
    (void)rmdir(fixture->directory);
    (void)unlink(fixture->database);
    assert_int_equal(rmdir(fixture->folder), 0);
    free(fixture);
    return 0;
}

static struct id_index_options options_of(const struct fixture *fixture)
{
    return (struct id_index_options){.database = fixture->database, .identity = "identity"};
}

static void open_index(struct fixture *fixture)
{
    struct id_index_options options = options_of(fixture);
    id_index_close(&fixture->index);
    fixture->rows.read = 0;
    OK(id_index_open(&fixture->index, &options, &fixture->source, fixture->rows.last,
                     &fixture->error));
}

static struct id_index_facts facts_of(struct fixture *fixture)
{
    struct id_index_facts facts;
    id_index_facts(fixture->index, &facts);
    return facts;
}

static void add_rows(struct fixture *fixture, int64_t count)
{
    while (count > 0) {
        int64_t some = count < 10 ? count : 10;
        id_rows_add(&fixture->rows, fixture->index, fixture->rows.last + some);
        count -= some;
        id_index_upkeep(fixture->index);
    }
}

static void open_with_rows(struct fixture *fixture, int64_t count)
{
    open_index(fixture);
    add_rows(fixture, count);
}

/* ---- what must be found ---------------------------------------------------------------------- */

/* All ids of the rows, sorted; the test's own and plain way. */
struct model {
    struct id_entry *ids;
    size_t count;
};

static int compare_ids(const void *one, const void *other)
{
    const struct id_entry *a = one;
    const struct id_entry *b = other;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

static struct model model_of(const struct id_rows *rows)
{
    struct model model = {.ids = calloc((size_t)rows->last * ID_ROW_KEYS + 1, sizeof *model.ids)};
    for (int64_t number = 1; number <= rows->last; number++) {
        uint64_t keys[ID_ROW_KEYS];
        size_t count = id_rows_keys(rows, number, keys);
        if (count == 2 && keys[0] == keys[1])
            count = 1; /* is found once */
        for (size_t i = 0; i < count; i++)
            model.ids[model.count++] = (struct id_entry){keys[i], number};
    }
    qsort(model.ids, model.count, sizeof *model.ids, compare_ids);
    return model;
}

/* Asks in portions of `room`. STATUS_OK: the answer is exactly that of the model's ids from `ids`
 * on, of which the first has the key. */
static enum status check_key(struct fixture *fixture, const struct id_entry *ids, size_t count,
                             uint64_t key, size_t room)
{
    int64_t numbers[ROOM];
    int64_t after = 0;
    size_t found = 0;
    size_t at = 0;
    assert_true(room <= ROOM);
    do {
        enum status status =
            id_index_find(fixture->index, key, after, numbers, room, &found, &fixture->error);
        if (status != STATUS_OK)
            return status;
        for (size_t i = 0; i < found; i++, at++) {
            assert_true(at < count && ids[at].key == key);
            assert_int_equal(numbers[i], ids[at].number);
            after = numbers[i];
        }
    } while (found == room);
    assert_true(at == count || ids[at].key != key);
    return STATUS_OK;
}

/* What the first failure says; else all ids of the rows are found, and no others. */
static enum status check_all(struct fixture *fixture)
{
    struct model model = model_of(&fixture->rows);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < model.count && status == STATUS_OK; i++)
        if (i == 0 || model.ids[i].key != model.ids[i - 1].key)
            status = check_key(fixture, &model.ids[i], model.count - i, model.ids[i].key,
                               i % 3 == 0 ? 3 : ROOM);
    /* Keys of rows that are not there yet: most are not in the model. */
    for (int64_t number = fixture->rows.last + 1;
         number < fixture->rows.last + 200 && status == STATUS_OK; number++) {
        struct id_entry sought = {id_rows_key(&fixture->rows, number), 0};
        size_t at = 0;
        while (at < model.count && compare_ids(&model.ids[at], &sought) < 0)
            at++;
        status = check_key(fixture, &model.ids[at], model.count - at, sought.key, ROOM);
    }
    free(model.ids);
    return status;
}

static void assert_complete(struct fixture *fixture)
{
    OK(check_all(fixture));
}

/* Whatever has happened to the files: at most one look-up says that a run is damaged, and then
 * making it again mends that. */
static void assert_mends(struct fixture *fixture)
{
    size_t attempts = 1 + list_files(fixture);
    enum status status;
    do {
        OK(id_index_ready(fixture->index, &fixture->source, fixture->rows.last, &fixture->error));
        status = check_all(fixture);
        assert_true(status == STATUS_OK || status == STATUS_UNAVAILABLE);
    } while (status != STATUS_OK && attempts-- > 0);
    OK(status);
}

/* ---- tests ----------------------------------------------------------------------------------- */

TEST_OF(fixture, test_empty)
{
    open_index(fixture);
    assert_complete(fixture);
    assert_false(id_index_wants_upkeep(fixture->index));
    id_index_upkeep(fixture->index);
    assert_int_not_equal(access(fixture->directory, F_OK), 0); /* nothing is made for nothing */
}

TEST_OF(fixture, test_all_is_found_through_all_merges)
{
    open_index(fixture);
    for (int i = 0; i < 60; i++) {
        add_rows(fixture, 40);
        assert_complete(fixture);
    }
    struct id_index_facts facts = facts_of(fixture);
    assert_true(facts.merges > 20 && facts.runs >= 2);
    assert_false(id_index_wants_upkeep(fixture->index));
    /* Few runs: those of the last level, and fewer than are merged of each other. */
    assert_in_range(facts.runs, 1,
                    1 + facts.ids_in_runs / (ID_INDEX_TABLE_IDS * 27) +
                        ID_INDEX_LEVELS * (ID_INDEX_FANOUT - 1));
    /* An id is written once a level; what frames it is large here, where runs are small. */
    assert_true(facts.written_bytes < facts.ids_in_runs * 16 * ID_INDEX_LEVELS * 4);
}

TEST_OF(fixture, test_opened_again)
{
    open_with_rows(fixture, 1000);
    uint64_t in_memory = facts_of(fixture).ids_in_memory;
    assert_true(in_memory <= ID_INDEX_TABLE_IDS);
    open_index(fixture);
    assert_complete(fixture);
    assert_int_equal(facts_of(fixture).made_again, 0);
    assert_true(fixture->rows.read <= in_memory); /* only the rows that no run covers */
    add_rows(fixture, 500);
    assert_complete(fixture);
}

TEST_OF(fixture, test_without_upkeep)
{
    open_index(fixture);
    for (int i = 0; i < 8; i++) {
        id_rows_add(&fixture->rows, fixture->index, fixture->rows.last + 20);
        assert_complete(fixture);
    }
    assert_true(id_index_wants_upkeep(fixture->index));
    assert_int_equal(facts_of(fixture).runs, 0);
    open_index(fixture);
    assert_complete(fixture);
}

TEST_OF(fixture, test_made_again_from_nothing)
{
    fixture->rows.last = 5000; /* of which most are in runs when it is open */
    open_index(fixture);
    assert_complete(fixture);
    assert_int_equal(fixture->rows.read, 5000);
    assert_true(facts_of(fixture).ids_in_memory <= 2 * ID_INDEX_TABLE_IDS);
    id_index_upkeep(fixture->index);
    assert_complete(fixture);
    clear_directory(fixture);
    open_index(fixture);
    assert_int_equal(fixture->rows.read, 5000);
    assert_complete(fixture);
}

TEST_OF(fixture, test_modes)
{
    struct stat facts;
    open_with_rows(fixture, 300);
    assert_int_equal(stat(fixture->directory, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0750);
    size_t count = list_files(fixture);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(stat(path_of(fixture, names[i]), &facts), 0);
        assert_int_equal(facts.st_mode & 0777, 0640);
    }
}

/* ---- another process ------------------------------------------------------------------------- */

TEST_OF(fixture, test_rows_of_another_process)
{
    open_with_rows(fixture, 30);
    for (int i = 0; i < 40; i++) {
        fixture->rows.last += 1 + (int64_t)next_random(fixture, 60);
        OK(id_index_ready(fixture->index, &fixture->source, fixture->rows.last, &fixture->error));
        assert_complete(fixture);
        add_rows(fixture, 7);
    }
}

TEST_OF(fixture, test_two_processes_write)
{
    struct id_index *indexes[2] = {NULL, NULL};
    struct id_index_options options = options_of(fixture);
    for (int i = 0; i < 2; i++)
        OK(id_index_open(&indexes[i], &options, &fixture->source, 0, &fixture->error));
    for (int i = 0; i < 300; i++) {
        fixture->index = indexes[next_random(fixture, 2)];
        OK(id_index_ready(fixture->index, &fixture->source, fixture->rows.last, &fixture->error));
        id_rows_add(&fixture->rows, fixture->index, fixture->rows.last + 9);
        if (next_random(fixture, 3) == 0)
            id_index_upkeep(fixture->index);
        if (i % 10 == 0)
            assert_complete(fixture);
    }
    for (int i = 0; i < 2; i++) {
        fixture->index = indexes[i];
        OK(id_index_ready(fixture->index, &fixture->source, fixture->rows.last, &fixture->error));
        assert_complete(fixture);
        assert_int_equal(facts_of(fixture).made_again, 0);
        id_index_close(&indexes[i]);
    }
    fixture->index = NULL;
    open_index(fixture);
    assert_complete(fixture);
    assert_true(fixture->rows.read < 300 * 9 / 2); /* the rest was in runs */
}

TEST_OF(fixture, test_locked_by_another_process)
{
    open_with_rows(fixture, 200);
    uint64_t runs = facts_of(fixture).runs;
    int descriptor = open(fixture->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_int_equal(flock(descriptor, LOCK_EX), 0);
    id_rows_add(&fixture->rows, fixture->index, fixture->rows.last + 50);
    id_index_upkeep(fixture->index);
    assert_true(facts_of(fixture).failing);
    assert_true(facts_of(fixture).runs == runs);
    assert_complete(fixture);
    assert_int_equal(close(descriptor), 0);
    id_index_upkeep(fixture->index);
    assert_false(facts_of(fixture).failing);
    assert_complete(fixture);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void change_byte(const struct fixture *fixture, const char *name, off_t at, uint8_t mask)
{
    uint8_t byte;
    int descriptor = open(path_of(fixture, name), O_RDWR | O_CLOEXEC);
    assert_int_equal(pread(descriptor, &byte, 1, at), 1);
    byte ^= mask;
    assert_int_equal(pwrite(descriptor, &byte, 1, at), 1);
    assert_int_equal(close(descriptor), 0);
}

static off_t size_of(const struct fixture *fixture, const char *name)
{
    struct stat facts;
    assert_int_equal(stat(path_of(fixture, name), &facts), 0);
    return facts.st_size;
}

/* Each byte of a run in turn, found by who opens it or by who asks. Of a sample, an odd step comes to
 * each byte of a word, and to each bit. */
TEST_OF(fixture, test_every_byte)
{
    open_index(fixture);
    while (facts_of(fixture).merges == 0)
        add_rows(fixture, 1);
    assert_int_equal(list_files(fixture), 1);
    off_t size = size_of(fixture, names[0]);
    for (off_t at = 0; at < size; at += tests_sample() | 1) {
        change_byte(fixture, names[0], at, (uint8_t)(1U << at % 8));
        open_index(fixture);
        uint64_t made_again = facts_of(fixture).made_again;
        if (made_again == 0) { /* in a block, then, and not at its end */
            assert_int_equal(check_all(fixture), STATUS_UNAVAILABLE);
            assert_int_equal(facts_of(fixture).made_again, 1);
        }
        assert_mends(fixture);
        id_index_upkeep(fixture->index);
        assert_int_equal(list_files(fixture), 1);
        assert_int_equal(size_of(fixture, names[0]), size);
    }
}

TEST_OF(fixture, test_damaged_while_open)
{
    open_index(fixture);
    for (int i = 0; i < 40; i++) {
        add_rows(fixture, 90);
        size_t count = list_files(fixture);
        const char *name = names[next_random(fixture, count)];
        off_t size = size_of(fixture, name);
        change_byte(fixture, name, (off_t)next_random(fixture, (uint64_t)size),
                    (uint8_t)(1U << next_random(fixture, 8)));
        if (i % 2 == 0) /* else a merge may find it */
            assert_mends(fixture);
    }
    assert_mends(fixture);
    assert_true(facts_of(fixture).made_again > 0);
}

TEST_OF(fixture, test_truncated)
{
    open_with_rows(fixture, 900);
    for (int i = 0; i < 20; i++) {
        size_t count = list_files(fixture);
        const char *name = names[next_random(fixture, count)];
        off_t size = (off_t)next_random(fixture, (uint64_t)size_of(fixture, name));
        assert_int_equal(truncate(path_of(fixture, name), size), 0);
        if (i % 2 == 0) {
            open_index(fixture);
            assert_true(facts_of(fixture).made_again > 0);
        }
        assert_mends(fixture);
        id_index_upkeep(fixture->index);
        assert_complete(fixture);
    }
}

TEST_OF(fixture, test_missing)
{
    open_with_rows(fixture, 900);
    for (int i = 0; i < 20; i++) {
        size_t count = list_files(fixture);
        assert_int_equal(unlink(path_of(fixture, names[next_random(fixture, count)])), 0);
        if (i % 2 == 0)
            open_index(fixture);
        assert_complete(fixture); /* who has it open still reads it */
        add_rows(fixture, 40);
        assert_mends(fixture);
    }
}

/* Its keys would not be those that are looked for. */
TEST_OF(fixture, test_of_a_former_version)
{
    open_with_rows(fixture, 40);
    id_index_upkeep(fixture->index);
    size_t count = list_files(fixture);
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        struct id_run_header header;
        int descriptor = open(path_of(fixture, names[i]), O_RDWR | O_CLOEXEC);
        assert_int_equal(pread(descriptor, &header, sizeof header, 0), sizeof header);
        header.version = 2;
        header.sum = id_run_header_sum(&header);
        assert_int_equal(pwrite(descriptor, &header, sizeof header, 0), sizeof header);
        assert_int_equal(close(descriptor), 0);
    }
    open_index(fixture);
    assert_int_equal(facts_of(fixture).made_again, count);
    assert_complete(fixture);
    assert_mends(fixture);
}

TEST_OF(fixture, test_of_another_ledger)
{
    open_with_rows(fixture, 500);
    uint64_t runs = facts_of(fixture).runs;
    id_index_close(&fixture->index);
    struct id_index_options options = options_of(fixture);
    options.identity[0] = 'I';
    fixture->rows.forked = 0; /* all rows are others */
    fixture->rows.history = 1;
    OK(id_index_open(&fixture->index, &options, &fixture->source, fixture->rows.last,
                     &fixture->error));
    assert_int_equal(facts_of(fixture).made_again, runs);
    assert_complete(fixture);
}

/* A backup was restored: the ledger has fewer rows than the runs, and goes on differently. */
TEST_OF(fixture, test_of_another_history)
{
    open_with_rows(fixture, 500);
    fixture->rows.last = 333;
    if (KEY_MASK == 0) { /* also while it is open, when the caller goes on as if nothing was */
        OK(id_index_ready(fixture->index, &fixture->source, 333, &fixture->error));
        assert_complete(fixture);
    }
    open_index(fixture);
    assert_complete(fixture);
    add_rows(fixture, 400);
    fixture->rows.forked = 250;
    fixture->rows.history = 2;
    id_index_close(&fixture->index);
    open_index(fixture); /* as many rows, others from 251 on */
    assert_complete(fixture);
    assert_true(facts_of(fixture).made_again > 0);
    assert_true(fixture->rows.read >= (uint64_t)fixture->rows.last - 250);
}

static void copy_file(const struct fixture *fixture, const char *from, const char *to)
{
    static char bytes[1 << 20];
    int source = open(path_of(fixture, from), O_RDONLY | O_CLOEXEC);
    ssize_t size = read(source, bytes, sizeof bytes);
    int target = open(path_of(fixture, to), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(size > 0);
    assert_int_equal(write(target, bytes, (size_t)size), size);
    assert_int_equal(close(source), 0);
    assert_int_equal(close(target), 0);
}

static bool is_there(const struct fixture *fixture, const char *name)
{
    return access(path_of(fixture, name), F_OK) == 0;
}

TEST_OF(fixture, test_other_files)
{
    static const char *const kept[] = {"notes.txt", "0-5.run",     "01-05.run",
                                       "5-1.run",   "1-5.run.bak", "3-999999.run"};
    static const char *const removed[] = {"new-0", "1-7.run", "100-200.run"};
    open_with_rows(fixture, 500);
    id_index_close(&fixture->index);
    assert_true(list_files(fixture) > 0);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        copy_file(fixture, names[0], kept[i]);
    for (size_t i = 0; i < sizeof removed / sizeof removed[0]; i++)
        copy_file(fixture, names[0], removed[i]); /* with another run's name */
    open_index(fixture);
    assert_complete(fixture);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
        assert_true(is_there(fixture, kept[i]));
    for (size_t i = 0; i < sizeof removed / sizeof removed[0]; i++)
        assert_false(is_there(fixture, removed[i]));
    add_rows(fixture, 100);
    assert_complete(fixture);
}

/* A crash between a merge and the deletion of what it merged. */
TEST_OF(fixture, test_merged_runs_left_behind)
{
    char to[300];
    open_index(fixture);
    for (int step = 0; step < 120; step++) {
        size_t count = list_files(fixture);
        for (size_t i = 0; i < count; i++) {
            const char *from = path_of(fixture, names[i]);
            (void)snprintf(to, sizeof to, "%s.kept", from);
            assert_int_equal(link(from, to), 0);
        }
        add_rows(fixture, 11);
        id_index_close(&fixture->index);
        for (size_t i = 0; i < count; i++) {
            const char *from = path_of(fixture, names[i]);
            (void)snprintf(to, sizeof to, "%s.kept", from);
            assert_int_equal(rename(to, from), 0); /* which does nothing where both are there */
            (void)unlink(to);
        }
        open_index(fixture);
        assert_int_equal(facts_of(fixture).made_again, 0);
        assert_int_equal(list_files(fixture), facts_of(fixture).runs);
        assert_complete(fixture);
    }
}

/* ---- when runs cannot be written ------------------------------------------------------------- */

TEST_OF(fixture, test_cannot_be_written)
{
    enum status status = STATUS_OK;
    make_database(fixture, 0600);
    open_index(fixture);
    int obstacle = open(fixture->directory, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(close(obstacle), 0);
    for (int i = 0; i < ID_INDEX_TABLES_MAX && status == STATUS_OK; i++) {
        status =
            id_index_ready(fixture->index, &fixture->source, fixture->rows.last, &fixture->error);
        OK(status);
        add_rows(fixture, ID_INDEX_TABLE_IDS / ID_ROW_KEYS);
        assert_complete(fixture);
    }
    assert_true(facts_of(fixture).failing && facts_of(fixture).write_failures > 1);
    for (int i = 0; i < 100 && status == STATUS_OK; i++) { /* the bound of memory */
        status =
            id_index_ready(fixture->index, &fixture->source, fixture->rows.last, &fixture->error);
        if (status == STATUS_OK)
            add_rows(fixture, 5);
    }
    assert_int_equal(status, STATUS_FULL);
    struct id_index_options options = options_of(fixture);
    struct id_index *other = NULL;
    assert_int_equal(
        id_index_open(&other, &options, &fixture->source, fixture->rows.last, &fixture->error),
        STATUS_FULL);
    assert_int_equal(unlink(fixture->directory), 0);
    OK(id_index_ready(fixture->index, &fixture->source, fixture->rows.last, &fixture->error));
    assert_false(facts_of(fixture).failing);
    assert_complete(fixture);
    open_index(fixture);
    assert_complete(fixture);
}

static enum status fail_to_read(void *context, int64_t first, int64_t last, struct id_feed *feed,
                                struct error *error)
{
    return error_set(error, STATUS_TIMEOUT, "not now");
}

TEST_OF(fixture, test_rows_cannot_be_read)
{
    struct id_index_options options = options_of(fixture);
    struct id_source broken = fixture->source;
    int64_t numbers[ROOM];
    size_t count;
    broken.read = fail_to_read;
    assert_int_equal(id_index_open(&fixture->index, &options, &broken, 5, &fixture->error),
                     STATUS_TIMEOUT);
    assert_null(fixture->index);
    open_with_rows(fixture, 100);
    fixture->rows.last += 5;
    assert_int_equal(id_index_ready(fixture->index, &broken, fixture->rows.last, &fixture->error),
                     STATUS_TIMEOUT);
    assert_int_equal(id_index_find(fixture->index, 1, 0, numbers, ROOM, &count, &fixture->error),
                     STATUS_UNAVAILABLE);
    OK(id_index_ready(fixture->index, &fixture->source, fixture->rows.last, &fixture->error));
    assert_complete(fixture);
}

/* ---- the rest -------------------------------------------------------------------------------- */

static enum status fail_to_read_hash(void *context, int64_t number,
                                     uint8_t row_hash[ID_ROW_HASH_SIZE], struct error *error)
{
    return error_set(error, STATUS_MALFORMED, "the row is damaged");
}

/* It is not the run that is damaged then. */
TEST_OF(fixture, test_rows_are_damaged)
{
    struct id_index_options options = options_of(fixture);
    struct id_source broken = fixture->source;
    broken.row_hash = fail_to_read_hash;
    open_with_rows(fixture, 300);
    id_index_close(&fixture->index);
    size_t count = list_files(fixture);
    assert_int_equal(
        id_index_open(&fixture->index, &options, &broken, fixture->rows.last, &fixture->error),
        STATUS_MALFORMED);
    assert_string_equal(fixture->error.text, "the row is damaged");
    assert_int_equal(list_files(fixture), count);
    open_index(fixture);
    assert_int_equal(facts_of(fixture).made_again, 0);
    assert_complete(fixture);
}

TEST_OF(fixture, test_own_thread)
{
    open_index(fixture);
    id_index_start(fixture->index);
    for (int i = 0; i < 200; i++) {
        OK(id_index_ready(fixture->index, &fixture->source, fixture->rows.last, &fixture->error));
        id_rows_add(&fixture->rows, fixture->index, fixture->rows.last + 13);
        if (i % 20 == 0)
            assert_complete(fixture);
    }
    uint64_t deadline_ms = clock_monotonic_ms() + 60000;
    while (id_index_wants_upkeep(fixture->index) && clock_monotonic_ms() < deadline_ms)
        clock_pause_ns(1000000);
    assert_false(id_index_wants_upkeep(fixture->index));
    assert_complete(fixture);
    assert_true(facts_of(fixture).merges > 5);
}

/* All of it, in any order. */
static void damage_something(struct fixture *fixture)
{
    size_t count = list_files(fixture);
    if (count == 0)
        return;
    const char *name = names[next_random(fixture, count)];
    off_t size = size_of(fixture, name);
    const char *path = path_of(fixture, name);
    switch (next_random(fixture, 4)) {
    case 0:
        assert_int_equal(unlink(path), 0);
        break;
    case 1:
        assert_int_equal(truncate(path, (off_t)next_random(fixture, (uint64_t)size + 1)), 0);
        break;
    default:
        if (size > 0)
            change_byte(fixture, name, (off_t)next_random(fixture, (uint64_t)size),
                        (uint8_t)(1U << next_random(fixture, 8)));
    }
}

TEST_OF(fixture, test_model)
{
    const char *rounds = getenv("ID_INDEX_ROUNDS");
    long steps = rounds != NULL ? strtol(rounds, NULL, 10) : 600 / (long)tests_sample();
    open_index(fixture);
    for (long i = 0; i < steps; i++) {
        uint64_t dice = next_random(fixture, 100);
        OK(id_index_ready(fixture->index, &fixture->source, fixture->rows.last, &fixture->error));
        if (dice < 70)
            id_rows_add(&fixture->rows, fixture->index,
                        fixture->rows.last + 1 + (int64_t)next_random(fixture, 30));
        else if (dice < 74)
            open_index(fixture);
        else if (dice < 78)
            fixture->rows.last += (int64_t)next_random(fixture, 100);
        else if (dice < 79 && fixture->rows.last > 300)
            fixture->rows.last -= (int64_t)next_random(fixture, 100);
        else if (dice < 84)
            damage_something(fixture);
        if (next_random(fixture, 2) == 0)
            id_index_upkeep(fixture->index);
        if (i % 7 == 0)
            assert_mends(fixture);
    }
    assert_mends(fixture);
    assert_true(fixture->rows.last > 100);
}
