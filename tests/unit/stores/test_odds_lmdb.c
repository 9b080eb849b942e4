/* What is the embedded engine's alone: its files, and what becomes of it when they are not well. */
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/memory.h"
#include "stores/odds.h"
#include "stores/odds/lmdb/lmdb.h"

struct fixture {
    char directory[64];
    char root[80];
    char uri[96];
    char data[128];
};

static int set_up(void **state)
{
    struct fixture *fixture = memory_alloc_zeroed(1, sizeof *fixture);
    (void)snprintf(fixture->directory, sizeof fixture->directory, "/tmp/croupier-lmdb-XXXXXX");
    assert_non_null(mkdtemp(fixture->directory));
    (void)snprintf(fixture->root, sizeof fixture->root, "%s/store", fixture->directory);
    (void)snprintf(fixture->uri, sizeof fixture->uri, "embedded:%s", fixture->root);
    (void)snprintf(fixture->data, sizeof fixture->data, "%s/values/data.mdb", fixture->root);
    *state = fixture;
    return 0;
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *walk)
{
    (void)stat;
    (void)type;
    (void)walk;
    return remove(path);
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    (void)nftw(fixture->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    memory_free(fixture);
    return 0;
}

static enum status try_open(const struct fixture *fixture, bool create, struct odds_store **store,
                            struct error *error)
{
    struct odds_store_options options = {.uri = fixture->uri, .timeout_ms = 1000, .create = create};
    return odds_store_open(store, &options, error);
}

static struct odds_store *open_new(const struct fixture *fixture)
{
    struct odds_store *store = NULL;
    struct error error = {{0}};
    if (try_open(fixture, true, &store, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    return store;
}

static void publish_odds(struct odds_store *store, const char *event, const char *bytes,
                         size_t size)
{
    struct odds_change change = {
        .kind = ODDS_MARKETS, .sport = SPORT_CRICKET, .bytes = bytes, .size = size};
    struct error error = {{0}};
    assert_int_equal(event_id_parse(text_of(event), &change.event), STATUS_OK);
    if (odds_store_publish(store, &change, 1, &error) != STATUS_OK)
        fail_msg("%s", error.text);
}

static enum status read_odds(struct odds_store *store, const char *event, uint64_t *version)
{
    struct odds_read read = {.kind = ODDS_MARKETS, .sport = SPORT_CRICKET};
    assert_int_equal(event_id_parse(text_of(event), &read.event), STATUS_OK);
    enum status status = odds_store_read(store, &read);
    if (status == STATUS_OK) {
        *version = read.value.version;
        memory_free(read.value.bytes);
    }
    return status;
}

/* Waits for the background thread. */
static void await_stamp(struct odds_store *store, enum status wanted)
{
    for (int i = 0; i < 1000; i++) {
        uint64_t stamp;
        if (odds_store_stamp(store, &stamp) == wanted)
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    fail_msg("the store never said: %s", status_name(wanted));
}

/* Some events of all sizes, among them some on pages of their own. */
static void make_store(const struct fixture *fixture)
{
    static char bytes[20000];
    struct odds_change changes[20];
    struct odds_store *store = open_new(fixture);
    struct error error = {{0}};
    memset(bytes, 'x', sizeof bytes);
    for (int i = 0; i < 240; i++) { /* the last ones again, so that there are free pages */
        int event = i % 200 + 1;
        char digits[16];
        changes[i % 20] =
            (struct odds_change){.kind = ODDS_MARKETS,
                                 .bytes = bytes,
                                 .size = (size_t)(event % 10 == 0 ? 100 * event : 3 * event)};
        (void)snprintf(digits, sizeof digits, "%d", event);
        assert_int_equal(event_id_parse(text_of(digits), &changes[i % 20].event), STATUS_OK);
        if (i % 20 == 19)
            assert_int_equal(odds_store_publish(store, changes, 20, &error), STATUS_OK);
    }
    odds_store_close(&store);
}

static char *load(const char *path, size_t *size)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    struct stat stat;
    assert_true(descriptor >= 0);
    assert_int_equal(fstat(descriptor, &stat), 0);
    char *bytes = memory_alloc((size_t)stat.st_size);
    assert_int_equal(read(descriptor, bytes, (size_t)stat.st_size), stat.st_size);
    (void)close(descriptor);
    *size = (size_t)stat.st_size;
    return bytes;
}

static void save(const char *path, const char *bytes, size_t size)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, bytes, size), size);
    (void)close(descriptor);
}

static bool always_whole(const char *bytes, size_t size)
{
    (void)bytes;
    (void)size;
    return true;
}

/* Verifies the newest snapshot of a file. */
static enum status verify(const char *path, struct error *error)
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(descriptor >= 0);
    enum status status = lmdb_verify_start(descriptor, error);
    struct lmdb_check check = {.descriptor = descriptor, .value_is_whole = always_whole};
    if (status == STATUS_OK) {
        uint64_t transactions[2] = {0};
        assert_int_equal(pread(descriptor, &transactions[0], 8, 16 + 128), 8);
        assert_int_equal(pread(descriptor, &transactions[1], 8, 4096 + 16 + 128), 8);
        check.transaction = transactions[0] > transactions[1] ? transactions[0] : transactions[1];
        status = lmdb_verify(&check, error);
    }
    (void)close(descriptor);
    return status;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void a_missing_store_is_not_made_unless_asked(void **state)
{
    struct fixture *fixture = *state;
    struct odds_store *store = NULL;
    struct error error = {{0}};
    assert_int_equal(try_open(fixture, false, &store, &error), STATUS_UNAVAILABLE);
    assert_non_null(strstr(error.text, fixture->root));
    assert_int_equal(access(fixture->root, F_OK), -1);
    store = open_new(fixture);
    odds_store_close(&store);
    assert_int_equal(try_open(fixture, false, &store, &error), STATUS_OK);
    odds_store_close(&store);
}

static void a_patient_store_says_unavailable_until_it_is_there(void **state)
{
    struct fixture *fixture = *state;
    struct odds_store_options options = {.uri = fixture->uri, .timeout_ms = 1000};
    struct odds_store *store = NULL;
    struct error error = {{0}};
    uint64_t number = 0;
    struct odds_versions versions;
    assert_int_equal(odds_store_open_patiently(&store, &options, &error), STATUS_OK);
    struct odds_reader *reader = odds_reader_create(store);
    assert_int_equal(odds_store_stamp(store, &number), STATUS_UNAVAILABLE);
    assert_int_equal(read_odds(store, "1", &number), STATUS_UNAVAILABLE);
    assert_int_equal(odds_reader_versions(reader, SPORT_CRICKET, NULL, &versions),
                     STATUS_UNAVAILABLE);
    assert_int_equal(odds_store_ping(store, ODDS_TO_READ, &error), STATUS_UNAVAILABLE);
    assert_non_null(strstr(error.text, fixture->root));
    assert_int_equal(odds_store_withdraw_sport(store, SPORT_CRICKET, &error), STATUS_UNAVAILABLE);
    assert_int_equal(access(fixture->root, F_OK), -1);
    /* It is made elsewhere and moved here: nobody may have it open twice in one process. */
    struct fixture other = *fixture;
    (void)snprintf(other.root, sizeof other.root, "%s/other", fixture->directory);
    (void)snprintf(other.uri, sizeof other.uri, "embedded:%s", other.root);
    make_store(&other);
    assert_int_equal(rename(other.root, fixture->root), 0);
    await_stamp(store, STATUS_OK);
    assert_int_equal(read_odds(store, "1", &number), STATUS_OK);
    assert_true(number != 0);
    assert_int_equal(odds_reader_versions(reader, SPORT_CRICKET, NULL, &versions), STATUS_OK);
    odds_reader_destroy(&reader);
    odds_store_close(&store);
}

static void versions_of_a_store_and_of_its_replacement_never_meet(void **state)
{
    struct fixture *fixture = *state;
    struct fixture other = *fixture;
    struct error error = {{0}};
    (void)snprintf(other.root, sizeof other.root, "%s/other", fixture->directory);
    (void)snprintf(other.uri, sizeof other.uri, "embedded:%s", other.root);
    make_store(&other); /* the same transactions with the same numbers */
    make_store(fixture);
    struct odds_store *store = NULL;
    uint64_t before = 0;
    uint64_t after = 0;
    struct odds_facts facts;
    assert_int_equal(try_open(fixture, false, &store, &error), STATUS_OK);
    assert_int_equal(read_odds(store, "7", &before), STATUS_OK);
    char old[128];
    (void)snprintf(old, sizeof old, "%s/old", fixture->directory);
    assert_int_equal(rename(fixture->root, old), 0);
    assert_int_equal(rename(other.root, fixture->root), 0);
    do {
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        odds_store_facts(store, &facts);
    } while (facts.reopened == 0);
    await_stamp(store, STATUS_OK);
    assert_int_equal(read_odds(store, "7", &after), STATUS_OK);
    assert_true(before != after && after != 0);
    odds_store_close(&store);
}

static void a_store_is_open_once_in_a_process(void **state)
{
    struct fixture *fixture = *state;
    struct odds_store *store = open_new(fixture);
    struct odds_store *second = NULL;
    struct error error = {{0}};
    assert_int_equal(try_open(fixture, true, &second, &error), STATUS_UNAVAILABLE);
    assert_non_null(strstr(error.text, "open already"));
    odds_store_close(&store);
    store = open_new(fixture);
    odds_store_close(&store);
}

static void another_programs_lmdb_file_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct odds_store *store = open_new(fixture);
    struct error error = {{0}};
    odds_store_close(&store);
    size_t size;
    char *bytes = load(fixture->data, &size);
    char *mark = memmem(bytes, size, "croupier odds 1", 15);
    assert_non_null(mark);
    mark[14] = '9';
    save(fixture->data, bytes, size);
    assert_int_equal(try_open(fixture, true, &store, &error), STATUS_MALFORMED);
    assert_non_null(strstr(error.text, fixture->data));
    memory_free(bytes);
}

static void a_file_that_was_being_made_when_its_maker_died_is_made_again(void **state)
{
    struct fixture *fixture = *state;
    make_store(fixture);
    for (off_t size = 0; size <= 4096; size += 4096) {
        assert_int_equal(truncate(fixture->data, size), 0);
        struct odds_store *store = open_new(fixture);
        publish_odds(store, "1", "[]", 2);
        odds_store_close(&store);
    }
}

/* ---- damage ---------------------------------------------------------------------------------- */

static void a_damaged_value_is_malformed_and_the_others_are_well(void **state)
{
    struct fixture *fixture = *state;
    struct odds_store *store = open_new(fixture);
    struct error error = {{0}};
    uint64_t version = 0;
    publish_odds(store, "1", "[\"whole\"]", 9);
    publish_odds(store, "2", "[\"to be damaged\"]", 17);
    odds_store_close(&store);
    size_t size;
    char *bytes = load(fixture->data, &size);
    for (char *at = bytes; (at = memmem(at, size - (size_t)(at - bytes), "damaged", 7)) != NULL;)
        at[0] = 'D';
    save(fixture->data, bytes, size);
    memory_free(bytes);
    assert_int_equal(try_open(fixture, false, &store, &error), STATUS_OK);
    assert_int_equal(read_odds(store, "2", &version), STATUS_MALFORMED);
    assert_int_equal(read_odds(store, "1", &version), STATUS_OK);
    /* Published again it is well. */
    publish_odds(store, "2", "[]", 2);
    assert_int_equal(read_odds(store, "2", &version), STATUS_OK);
    odds_store_close(&store);
}

static void a_sound_file_is_found_sound(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {{0}};
    make_store(fixture);
    if (verify(fixture->data, &error) != STATUS_OK)
        fail_msg("%s", error.text);
}

static void a_file_cut_anywhere_is_found_damaged_or_loses_only_free_pages(void **state)
{
    struct fixture *fixture = *state;
    struct error error = {{0}};
    make_store(fixture);
    size_t size;
    char *bytes = load(fixture->data, &size);
    size_t sound = 0;
    for (size_t cut = 0; cut < size; cut += cut < 9000 ? 97 : 4096) {
        save(fixture->data, bytes, cut);
        enum status status = verify(fixture->data, &error);
        assert_true(status == STATUS_MALFORMED || status == STATUS_OK);
        assert_true(status == STATUS_MALFORMED || cut > 8192);
        sound += status == STATUS_OK;
    }
    assert_true(sound < size / 4096 / 2);
    memory_free(bytes);
}

/* Every byte of the file is damaged once in a while; nothing that is found sound may then hurt
 * LMDB. */
static void no_damage_crashes_whoever_opens_it(void **state)
{
    struct fixture *fixture = *state;
    make_store(fixture);
    size_t size;
    size_t refused = 0;
    char *bytes = load(fixture->data, &size);
    srand(7);
    for (int i = 0; i < 250; i++) {
        size_t at = (size_t)rand() % size;
        size_t length = i % 3 == 0 ? 1 : 1 + (size_t)rand() % 64;
        if (i % 4 == 0)
            at = at / 4096 * 4096 + (size_t)rand() % 32; /* the header of a page */
        char *damaged = memory_copy(bytes, size);
        for (size_t j = at; j < at + length && j < size; j++)
            damaged[j] = (char)rand();
        save(fixture->data, damaged, size);
        memory_free(damaged);
        struct odds_store *store = NULL;
        struct error error = {{0}};
        enum status status = try_open(fixture, false, &store, &error);
        if (status != STATUS_OK) {
            assert_true(status == STATUS_MALFORMED || status == STATUS_UNAVAILABLE);
            assert_non_null(strstr(error.text, fixture->root));
            refused++;
            continue;
        }
        for (int j = 1; j <= 200; j++) {
            char event[16];
            uint64_t version;
            (void)snprintf(event, sizeof event, "%d", j);
            status = read_odds(store, event, &version);
            assert_true(status == STATUS_OK || status == STATUS_MALFORMED);
        }
        odds_store_close(&store);
    }
    assert_true(refused >= 5);
    memory_free(bytes);
}

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_STORE(a_missing_store_is_not_made_unless_asked),
        WITH_STORE(a_patient_store_says_unavailable_until_it_is_there),
        WITH_STORE(versions_of_a_store_and_of_its_replacement_never_meet),
        WITH_STORE(a_store_is_open_once_in_a_process),
        WITH_STORE(another_programs_lmdb_file_is_refused),
        WITH_STORE(a_file_that_was_being_made_when_its_maker_died_is_made_again),
        WITH_STORE(a_damaged_value_is_malformed_and_the_others_are_well),
        WITH_STORE(a_sound_file_is_found_sound),
        WITH_STORE(a_file_cut_anywhere_is_found_damaged_or_loses_only_free_pages),
        WITH_STORE(no_damage_crashes_whoever_opens_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
