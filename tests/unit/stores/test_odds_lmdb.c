/* What is the embedded engine's alone: its files, and what becomes of it when they are not well. */
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "base/text.h"
#include "stores/odds/lmdb/guard.h"
#include "stores/odds/lmdb/values.h"
#include "stores/odds_feed.h"
#include "stores/odds_read.h"
#include "test_directory.h"
#include "tests.h"

struct fixture {
    char directory[TEST_DIRECTORY_SIZE];
    char root[80];
    char uri[96];
    char data[128];
};

static int set_up(void **state)
{
    struct fixture *fixture = memory_alloc_zeroed(1, sizeof *fixture);
    test_directory_make(fixture->directory);
    (void)snprintf(fixture->root, sizeof fixture->root, "%s/store", fixture->directory);
    (void)snprintf(fixture->uri, sizeof fixture->uri, "embedded:%s", fixture->root);
    (void)snprintf(fixture->data, sizeof fixture->data, "%s/values/data.mdb", fixture->root);
    *state = fixture;
    return 0;
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *walk)
{
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

#define EVENTS 60

static struct event_id event_number(int number)
{
    char digits[16];
    struct event_id event;
    (void)snprintf(digits, sizeof digits, "%d", number);
    assert_int_equal(event_id_parse(text_of(digits), &event), STATUS_OK);
    return event;
}

/* Every fourth has none. */
static bool has_odds(int number)
{
    return number % 4 != 0;
}

/* What is published of an event at a time: its number again and again, in all sizes. */
static void document_of(int number, int turn, struct buffer *document)
{
    size_t size = number % 7 == 0 ? 9000 : 10 + (size_t)number;
    buffer_clear(document);
    while (document->size < size)
        buffer_append_format(document, "%d of event %d;", turn, number);
}

/* All of a turn in one commit. */
static void publish_turn(struct odds_store *store, int turn)
{
    struct buffer documents[EVENTS + 1] = {{0}};
    struct odds_change changes[EVENTS + 1];
    struct error error = {{0}};
    for (int i = 0; i <= EVENTS; i++) {
        document_of(i, turn, &documents[i]);
        changes[i] = (struct odds_change){.bytes = documents[i].data, .size = documents[i].size};
        if (i == 0)
            continue;
        changes[i].kind = ODDS_MARKETS;
        changes[i].event = event_number(i);
        if (!has_odds(i))
            changes[i].bytes = NULL;
    }
    if (odds_store_publish(store, changes, EVENTS + 1, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    for (int i = 0; i <= EVENTS; i++)
        buffer_free(&documents[i]);
}

/* Event 0 stands for the catalog. What a server may do: answer with what was published last, say
 * that it is malformed, or that the store is unavailable; and say that there is nothing only
 * where there is nothing. */
static enum status look_at(struct odds_store *store, int number, int turn)
{
    struct buffer wanted = {0};
    struct odds_read read = {.kind = number == 0 ? ODDS_CATALOG : ODDS_MARKETS};
    struct odds_versions versions = {0};
    if (number > 0)
        read.event = event_number(number);
    bool there = number == 0 || has_odds(number);
    enum status told =
        odds_store_versions(store, SPORT_CRICKET, number > 0 ? &read.event : NULL, &versions);
    assert_true(told == STATUS_OK || told == STATUS_UNAVAILABLE);
    uint64_t version = number == 0 ? versions.catalog : versions.odds;
    assert_false(told == STATUS_OK && there && version == 0);
    enum status status = odds_store_read(store, &read);
    if (status != STATUS_OK) {
        assert_true(status == STATUS_MALFORMED || status == STATUS_UNAVAILABLE);
        return status;
    }
    assert_int_equal(read.value.version != 0, there);
    document_of(number, turn, &wanted);
    if (there) {
        assert_int_equal(read.value.size, wanted.size);
        assert_memory_equal(read.value.bytes, wanted.data, wanted.size);
        assert_int_equal(read.value.version, version);
    }
    memory_free(read.value.bytes);
    buffer_free(&wanted);
    return STATUS_OK;
}

static void make_store(const struct fixture *fixture)
{
    struct odds_store *store = open_new(fixture);
    publish_turn(store, 1);
    odds_store_close(&store);
}

/* ---- opening --------------------------------------------------------------------------------- */

TEST_OF(fixture, a_missing_store_is_not_made_unless_asked)
{
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

TEST_OF(fixture, a_patient_store_says_unavailable_until_it_is_there)
{
    struct odds_store_options options = {.uri = fixture->uri, .timeout_ms = 1000, .patient = true};
    struct odds_store *store = NULL;
    struct error error = {{0}};
    uint64_t number = 0;
    struct odds_versions versions;
    assert_int_equal(odds_store_open(&store, &options, &error), STATUS_OK);
    assert_int_equal(odds_store_stamp(store, &number), STATUS_UNAVAILABLE);
    assert_int_equal(read_odds(store, "1", &number), STATUS_UNAVAILABLE);
    assert_int_equal(odds_store_versions(store, SPORT_CRICKET, NULL, &versions),
                     STATUS_UNAVAILABLE);
    assert_int_equal(odds_store_ping(store, ODDS_TO_READ, &error), STATUS_UNAVAILABLE);
    assert_non_null(strstr(error.text, fixture->root));
    const struct odds_change withdrawal = {.kind = ODDS_CATALOG, .sport = SPORT_CRICKET};
    assert_int_equal(odds_store_publish(store, &withdrawal, 1, &error), STATUS_UNAVAILABLE);
    assert_int_equal(access(fixture->root, F_OK), -1);
    /* It is made elsewhere and moved here: no one may have it open twice in one process. */
    struct fixture other = *fixture;
    (void)snprintf(other.root, sizeof other.root, "%s/other", fixture->directory);
    (void)snprintf(other.uri, sizeof other.uri, "embedded:%s", other.root);
    make_store(&other);
    assert_int_equal(rename(other.root, fixture->root), 0);
    await_stamp(store, STATUS_OK);
    assert_int_equal(read_odds(store, "1", &number), STATUS_OK);
    assert_true(number != 0);
    assert_int_equal(odds_store_versions(store, SPORT_CRICKET, NULL, &versions), STATUS_OK);
    odds_store_close(&store);
}

TEST_OF(fixture, versions_of_a_store_and_of_its_replacement_never_meet)
{
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

TEST_OF(fixture, a_store_is_open_once_in_a_process)
{
    struct odds_store *store = open_new(fixture);
    struct odds_store *second = NULL;
    struct error error = {{0}};
    assert_int_equal(try_open(fixture, true, &second, &error), STATUS_UNAVAILABLE);
    assert_non_null(strstr(error.text, "open already"));
    odds_store_close(&store);
    store = open_new(fixture);
    odds_store_close(&store);
}

TEST_OF(fixture, a_file_of_another_format_is_refused_and_an_older_one_replaced)
{
    struct odds_store *store = open_new(fixture);
    struct error error = {{0}};
    odds_store_close(&store);
    size_t size;
    char *bytes = load(fixture->data, &size);
    char *mark = memmem(bytes, size, "croupier odds 3", 15);
    assert_non_null(mark);
    mark[14] = '9';
    save(fixture->data, bytes, size);
    assert_int_equal(try_open(fixture, true, &store, &error), STATUS_UNAVAILABLE);
    assert_non_null(strstr(error.text, fixture->data));
    mark[14] = '2'; /* of an older version: refused too, unless it may be replaced */
    save(fixture->data, bytes, size);
    assert_int_equal(try_open(fixture, false, &store, &error), STATUS_MALFORMED);
    assert_int_equal(try_open(fixture, true, &store, &error), STATUS_OK);
    assert_non_null(strstr(error.text, "is damaged or of an older format; it was set aside"));
    odds_store_close(&store);
    memory_free(bytes);
}

/* An older program would serve a value beyond its time. */
TEST_OF(fixture, the_first_value_that_expires_makes_the_format_newer)
{
    struct odds_store *store = open_new(fixture);
    struct error error = {{0}};
    struct odds_change change = {.kind = ODDS_MARKETS,
                                 .sport = SPORT_CRICKET,
                                 .event = event_number(1),
                                 .bytes = "[]",
                                 .size = 2,
                                 .expires_s = 1000};
    for (int expiring = 0; expiring < 2; expiring++) {
        size_t size;
        uint64_t version = 0;
        if (expiring == 0)
            publish_odds(store, "1", "[]", 2);
        else
            assert_int_equal(odds_store_publish(store, &change, 1, &error), STATUS_OK);
        odds_store_close(&store);
        char *bytes = load(fixture->data, &size);
        assert_true((memmem(bytes, size, "croupier odds 4", 15) != NULL) == (expiring == 1));
        memory_free(bytes);
        assert_int_equal(try_open(fixture, false, &store, &error), STATUS_OK);
        assert_int_equal(read_odds(store, "1", &version), STATUS_OK);
        assert_true(version != 0);
    }
    odds_store_close(&store);
}

/* The record of its time is changed on disk: it has expired rather than never to. */
TEST_OF(fixture, a_value_whose_time_is_lost_has_expired)
{
    struct odds_store *store = open_new(fixture);
    struct error error = {{0}};
    size_t size;
    uint64_t version = 1;
    struct odds_change change = {.kind = ODDS_MARKETS,
                                 .sport = SPORT_CRICKET,
                                 .event = event_number(1),
                                 .bytes = "[]",
                                 .size = 2,
                                 .expires_s = 1000};
    assert_int_equal(odds_store_publish(store, &change, 1, &error), STATUS_OK);
    odds_store_close(&store);
    char *bytes = load(fixture->data, &size);
    for (char *at = bytes; (at = memmem(at, size - (size_t)(at - bytes), "until:", 6)) != NULL;
         at++)
        at[0] = 'v';
    save(fixture->data, bytes, size);
    memory_free(bytes);
    assert_int_equal(try_open(fixture, false, &store, &error), STATUS_OK);
    assert_int_equal(read_odds(store, "1", &version), STATUS_OK);
    assert_true(version == 0);
    odds_store_close(&store);
}

/* Its time is over by the index, which has not been brought up to the sign of life yet. */
TEST_OF(fixture, a_sign_of_life_counts_before_anybody_has_read_it)
{
    struct lmdb_values *values;
    struct error error = {{0}};
    struct lmdb_location location = {.root = fixture->root, .create = true, .wait_ms = 1000};
    struct event_id event = event_number(1);
    struct lmdb_lookup lookup = {.sport = SPORT_CRICKET, .event = &event};
    struct odds_change change = {.kind = ODDS_MARKETS,
                                 .sport = SPORT_CRICKET,
                                 .event = event,
                                 .bytes = "[]",
                                 .size = 2,
                                 .expires_s = 4};
    uint64_t stamp;
    struct buffer expired;
    assert_int_equal(lmdb_values_open(&values, &location, 1, &error), STATUS_OK);
    assert_int_equal(lmdb_values_publish(values, &change, 1, &error), STATUS_OK);
    int64_t published_ms = clock_boot_ms();
    assert_int_equal(lmdb_values_look_up(values, &lookup), STATUS_OK);
    change.bytes = NULL;
    change.size = 0;
    change.renew = true;
    digest_sha1("[]", 2, change.renewed);
    change.expires_s = 1000;
    assert_int_equal(lmdb_values_publish(values, &change, 1, &error), STATUS_OK);
    while (clock_boot_ms() < published_ms + 4100)
        (void)usleep(10000);
    assert_int_equal(lmdb_values_stamp(values, &stamp), STATUS_OK);
    lmdb_values_take_expired(values, &expired);
    assert_int_equal(expired.size, 0);
    assert_int_equal(lmdb_values_look_up(values, &lookup), STATUS_OK);
    assert_true(lookup.versions.odds != 0);
    buffer_free(&expired);
    lmdb_values_close(&values);
}

static enum status read_until_of_another_boot(struct lmdb_lookup *lookup,
                                              const struct lmdb_view *view)
{
    struct lmdb_key key = lmdb_key_of(ODDS_MARKETS, lookup->sport, lookup->event);
    int64_t *deadline_ms = lookup->context;
    deadline_ms[0] = lmdb_until_read(view, &key, lookup->odds, clock_boot_id());
    deadline_ms[1] = lmdb_until_read(view, &key, lookup->odds, clock_boot_id() + 1);
    return STATUS_OK;
}

TEST_OF(fixture, a_reboot_ends_a_value_that_expires)
{
    struct lmdb_values *values;
    struct error error = {{0}};
    struct lmdb_location location = {.root = fixture->root, .create = true, .wait_ms = 1000};
    struct event_id event = event_number(1);
    int64_t deadline_ms[2];
    struct lmdb_lookup lookup = {.sport = SPORT_CRICKET,
                                 .event = &event,
                                 .read = read_until_of_another_boot,
                                 .context = deadline_ms};
    struct odds_change change = {.kind = ODDS_MARKETS,
                                 .sport = SPORT_CRICKET,
                                 .event = event,
                                 .bytes = "[]",
                                 .size = 2,
                                 .expires_s = 1000};
    assert_int_equal(lmdb_values_open(&values, &location, 1, &error), STATUS_OK);
    assert_int_equal(lmdb_values_publish(values, &change, 1, &error), STATUS_OK);
    assert_int_equal(lmdb_values_look_up(values, &lookup), STATUS_OK);
    assert_true(deadline_ms[0] > clock_boot_ms());
    assert_int_equal(deadline_ms[1], LMDB_EXPIRED);
    lmdb_values_close(&values);
}

TEST_OF(fixture, a_file_that_was_being_made_when_its_maker_died_is_made_again)
{
    make_store(fixture);
    for (off_t size = 0; size <= 4096; size += 4096) {
        assert_int_equal(truncate(fixture->data, size), 0);
        struct odds_store *store = open_new(fixture);
        publish_odds(store, "1", "[]", 2);
        odds_store_close(&store);
    }
}

/* ---- damage ---------------------------------------------------------------------------------- */

/* cmocka takes these signals for every test of its own. */
static const int faults[] = {SIGBUS, SIGSEGV};
static struct sigaction guards[2];

static void do_nothing(void *context)
{
}

static void learn_guards(void)
{
    assert_true(odds_guard_run(do_nothing, NULL));
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(sigaction(faults[i], NULL, &guards[i]), 0);
}

static void use_guards(void)
{
    for (size_t i = 0; i < 2; i++)
        assert_int_equal(sigaction(faults[i], &guards[i], NULL), 0);
}

static void change_byte(int descriptor, size_t at)
{
    unsigned char byte;
    assert_int_equal(pread(descriptor, &byte, 1, (off_t)at), 1);
    byte ^= 0x5A;
    assert_int_equal(pwrite(descriptor, &byte, 1, (off_t)at), 1);
}

/* Every byte of the file is damaged once in a while. Opening it for reading finds that, or all
 * values are well; opening it for publishing always ends in a store that works. */
TEST_OF(fixture, any_damage_is_found_when_the_store_is_opened)
{
    use_guards();
    struct odds_store *store = open_new(fixture);
    size_t size;
    size_t refused = 0;
    for (int turn = 1; turn <= 2; turn++)
        publish_turn(store, turn);
    odds_store_close(&store);
    char *bytes = load(fixture->data, &size);
    srand(7);
    for (int i = 0; i < 120; i++) {
        size_t at = (size_t)rand() % size;
        size_t length = i % 3 == 0 ? 1 : 1 + (size_t)rand() % 64;
        if (i % 4 == 0)
            at = at / 4096 * 4096 + (size_t)rand() % 32; /* the header of a page */
        if (i % 5 == 0) {
            at = at / 4096 * 4096; /* all of it */
            length = 4096;
        }
        char *damaged = memory_copy(bytes, size);
        for (size_t j = at; j < at + length && j < size; j++)
            damaged[j] = (char)rand();
        save(fixture->data, damaged, i % 10 == 0 ? at : size);
        memory_free(damaged);
        struct error error = {{0}};
        enum status status = try_open(fixture, false, &store, &error);
        if (status != STATUS_OK) {
            assert_true(status == STATUS_MALFORMED || status == STATUS_UNAVAILABLE);
            assert_non_null(strstr(error.text, fixture->root));
            refused++;
            if (try_open(fixture, true, &store, &error) != STATUS_OK)
                fail_msg("%s", error.text);
            publish_turn(store, 2);
        }
        for (int j = 0; j <= EVENTS; j++)
            assert_int_equal(look_at(store, j, 2), STATUS_OK);
        odds_store_close(&store);
    }
    assert_true(refused > 24);
    memory_free(bytes);
}

/* Opened again without leave to replace it, so that a damaged store stays for the next change. */
static void open_to_read(const struct fixture *fixture, struct odds_store **store)
{
    struct error error = {{0}};
    odds_store_close(store);
    assert_int_equal(try_open(fixture, false, store, &error), STATUS_OK);
}

TEST_OF(fixture, no_changed_byte_changes_or_hides_an_answer)
{
    use_guards();
    struct odds_store *store = open_new(fixture);
    struct stat stat;
    size_t seen[STATUS_INTERNAL + 1] = {0};
    publish_turn(store, 1);
    publish_turn(store, 2);
    open_to_read(fixture, &store);
    int data = open(fixture->data, O_RDWR | O_CLOEXEC);
    assert_true(data >= 0);
    assert_int_equal(fstat(data, &stat), 0);
    for (size_t at = 0; at < (size_t)stat.st_size; at += 401) {
        bool gone = false;
        change_byte(data, at);
        for (int i = 0; i <= EVENTS && !gone; i++) {
            enum status status = look_at(store, i, 2);
            seen[status]++;
            gone = status == STATUS_UNAVAILABLE;
        }
        change_byte(data, at);
        if (gone) /* sooner than the background thread would */
            open_to_read(fixture, &store);
    }
    assert_true(seen[STATUS_OK] > seen[STATUS_MALFORMED] && seen[STATUS_MALFORMED] > 0);
    (void)close(data);
    odds_store_close(&store);
}

/* Pages of an older commit, whole in themselves, in the place of newer ones: while the store is
 * open, and when it is opened. */
TEST_OF(fixture, no_older_page_changes_or_hides_an_answer)
{
    use_guards();
    struct odds_store *store = open_new(fixture);
    struct error error = {{0}};
    size_t older_size;
    size_t size;
    size_t malformed = 0;
    size_t refused = 0;
    for (int turn = 1; turn <= 4; turn++)
        publish_turn(store, turn);
    char *older = load(fixture->data, &older_size);
    publish_turn(store, 5);
    publish_turn(store, 6); /* which takes the pages of turn 4 */
    char *newer = load(fixture->data, &size);
    open_to_read(fixture, &store);
    int data = open(fixture->data, O_RDWR | O_CLOEXEC);
    for (size_t at = 8192; at < older_size; at += 4096) {
        enum status status = STATUS_OK;
        assert_int_equal(pwrite(data, older + at, 4096, (off_t)at), 4096);
        for (int i = 0; i <= EVENTS && status != STATUS_UNAVAILABLE; i++) {
            status = look_at(store, i, 6);
            malformed += status == STATUS_MALFORMED;
        }
        odds_store_close(&store);
        status = try_open(fixture, false, &store, &error);
        refused += status == STATUS_MALFORMED;
        for (int i = 0; i <= EVENTS && status == STATUS_OK; i++)
            status = look_at(store, i, 6);
        assert_true(status == STATUS_OK || status == STATUS_MALFORMED);
        assert_int_equal(pwrite(data, newer + at, 4096, (off_t)at), 4096);
        open_to_read(fixture, &store);
    }
    assert_true(malformed > 0 && refused > 0);
    (void)close(data);
    memory_free(older);
    memory_free(newer);
    odds_store_close(&store);
}

TEST_OF(fixture, an_older_file_written_in_place_is_not_served)
{
    use_guards();
    struct odds_store *store = open_new(fixture);
    uint64_t stamp;
    size_t size;
    publish_turn(store, 1);
    char *older = load(fixture->data, &size);
    publish_turn(store, 2);
    assert_int_equal(look_at(store, 1, 2), STATUS_OK);
    assert_int_equal(odds_store_stamp(store, &stamp), STATUS_OK);
    int data = open(fixture->data, O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(data, older, size, 0), size);
    /* At once, and not only when the background thread looks; which may have begun the new store. */
    const uint64_t before = stamp;
    assert_true(odds_store_stamp(store, &stamp) == STATUS_UNAVAILABLE || stamp != before);
    /* The background thread puts a new store in its place, which holds none of it. */
    await_stamp(store, STATUS_OK);
    struct odds_read read = {.kind = ODDS_CATALOG};
    assert_int_equal(odds_store_read(store, &read), STATUS_OK);
    assert_true(read.value.version == 0);
    publish_turn(store, 3);
    for (int i = 0; i <= EVENTS; i++)
        assert_int_equal(look_at(store, i, 3), STATUS_OK);
    (void)close(data);
    memory_free(older);
    odds_store_close(&store);
}

/* A value that is damaged while the store is open is malformed, until it is published again; the
 * others are well. */
TEST_OF(fixture, a_damaged_value_is_published_again)
{
    use_guards();
    struct odds_store *store = open_new(fixture);
    uint64_t version = 0;
    size_t size;
    publish_odds(store, "1", "[\"whole\"]", 9);
    publish_odds(store, "2", "[\"to be damaged\"]", 17);
    char *bytes = load(fixture->data, &size);
    int data = open(fixture->data, O_RDWR | O_CLOEXEC);
    for (char *at = bytes; (at = memmem(at, size - (size_t)(at - bytes), "damaged", 7)) != NULL;
         at++)
        change_byte(data, (size_t)(at - bytes));
    assert_int_equal(read_odds(store, "2", &version), STATUS_MALFORMED);
    assert_int_equal(read_odds(store, "1", &version), STATUS_OK);
    publish_odds(store, "2", "[]", 2);
    assert_int_equal(read_odds(store, "2", &version), STATUS_OK);
    (void)close(data);
    memory_free(bytes);
    odds_store_close(&store);
}

/* A whole catalog beside odds becomes an answer, so it is proved; a part of it is compared. */
TEST_OF(fixture, a_damaged_catalog_is_found_beside_odds_when_all_of_it_is_read)
{
    static const char catalog[] = "[{\"gmid\":1,\"ename\":\"damaged\"}]";
    use_guards();
    struct odds_store *store = open_new(fixture);
    struct error error = {{0}};
    struct odds_change change = {
        .sport = SPORT_CRICKET, .bytes = catalog, .size = sizeof catalog - 1};
    assert_int_equal(odds_store_publish(store, &change, 1, &error), STATUS_OK);
    publish_odds(store, "1", "[]", 2);
    size_t size;
    char *bytes = load(fixture->data, &size);
    int data = open(fixture->data, O_RDWR | O_CLOEXEC);
    for (char *at = bytes; (at = memmem(at, size - (size_t)(at - bytes), "damaged", 7)) != NULL;
         at++)
        change_byte(data, (size_t)(at - bytes));
    struct odds_read read = {
        .kind = ODDS_MARKETS, .sport = SPORT_CRICKET, .event = event_number(1), .catalog.max = 9};
    assert_int_equal(odds_store_read(store, &read), STATUS_OK);
    assert_memory_equal(read.catalog.bytes, catalog, 9);
    memory_free(read.catalog.bytes);
    memory_free(read.value.bytes);
    read.catalog = (struct odds_part){.max = SIZE_MAX};
    assert_int_equal(odds_store_read(store, &read), STATUS_MALFORMED);
    (void)close(data);
    memory_free(bytes);
    odds_store_close(&store);
}

/* Has the values open, with no thread that looks at the path, until another process has set them
 * aside: they can be used before, and not afterwards. */
static int read_on(const char *root, int ready, int set_aside)
{
    struct lmdb_location location = {.root = root};
    struct lmdb_values *values = NULL;
    struct error error;
    uint64_t stamp;
    char byte = 0;
    bool good = lmdb_values_open(&values, &location, 1, &error) == STATUS_OK &&
                lmdb_values_stamp(values, &stamp) == STATUS_OK && write(ready, &byte, 1) == 1 &&
                read(set_aside, &byte, 1) == 1 &&
                lmdb_values_stamp(values, &stamp) == STATUS_INTERNAL;
    return good ? 0 : 1;
}

TEST_OF(fixture, a_store_that_is_set_aside_is_lost_at_once_to_all_who_read_it)
{
    use_guards();
    struct odds_store *store = open_new(fixture);
    int ready[2];
    int set_aside[2];
    int result = 0;
    size_t size;
    char byte = 0;
    publish_odds(store, "1", "[\"to be damaged\"]", 17);
    odds_store_close(&store);
    assert_true(pipe(ready) == 0 && pipe(set_aside) == 0);
    pid_t reader = fork();
    if (reader == 0)
        _exit(read_on(fixture->root, ready[1], set_aside[0]));
    assert_int_equal(read(ready[0], &byte, 1), 1);
    char *bytes = load(fixture->data, &size);
    int data = open(fixture->data, O_RDWR | O_CLOEXEC);
    change_byte(data, (size_t)((char *)memmem(bytes, size, "damaged", 7) - bytes));
    store = open_new(fixture);
    assert_int_equal(write(set_aside[1], &byte, 1), 1);
    assert_int_equal(waitpid(reader, &result, 0), reader);
    assert_int_equal(result, 0);
    const int descriptors[] = {data, ready[0], ready[1], set_aside[0], set_aside[1]};
    for (size_t i = 0; i < sizeof descriptors / sizeof descriptors[0]; i++)
        (void)close(descriptors[i]);
    memory_free(bytes);
    odds_store_close(&store);
}

/* ---- interest -------------------------------------------------------------------------------- */

static void await_interest(struct odds_store *store, const char *event)
{
    struct event_id id;
    assert_int_equal(event_id_parse(text_of(event), &id), STATUS_OK);
    for (int i = 0; i < 1000; i++) {
        struct odds_interest *list = NULL;
        struct error error = {{0}};
        size_t count = 0;
        bool listed = false;
        odds_store_note_interest(store, SPORT_TENNIS, &id);
        if (odds_store_list_interest(store, SPORT_TENNIS, 0, &list, &count, &error) == STATUS_OK)
            for (size_t j = 0; j < count; j++)
                listed = listed || event_id_equals(&list[j].event, &id);
        memory_free(list);
        if (listed)
            return;
        (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    fail_msg("interest was never recorded");
}

/* Garbage in it, none of it, all of it gone: what is asked for from then on is recorded. */
TEST_OF(fixture, a_damaged_interest_file_loses_nothing_but_interest)
{
    char path[128];
    char garbage[9000];
    use_guards();
    (void)snprintf(path, sizeof path, "%s/interest.map", fixture->root);
    struct odds_store *store = open_new(fixture);
    await_interest(store, "1");
    memset(garbage, 0x5A, sizeof garbage);
    int file = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(file >= 0);
    for (int i = 0; i < 300; i++)
        assert_int_equal(write(file, garbage, sizeof garbage), sizeof garbage);
    (void)close(file);
    await_interest(store, "2");
    assert_int_equal(truncate(path, 5000), 0);
    await_interest(store, "3");
    assert_int_equal(unlink(path), 0);
    await_interest(store, "4");
    odds_store_close(&store);
}

static int learn_all_guards(void **state)
{
    learn_guards();
    return 0;
}

TESTS_WITH(learn_all_guards, NULL);
