/*
 * What every engine of the odds store has to do, written against odds_store.h alone.
 *
 *     odds_contract ENGINE          one run of the suite; meson runs it once an engine
 *     odds_contract --publish URI PREFIX SPORT EVENT BYTES      the other process of some tests
 *
 * An engine is one row of `factories`: how to make a fresh, empty store and its URI, and what it
 * does not promise. A server is one that somebody else has started; its URI is in the environment.
 */
#include <errno.h>
#include <ftw.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "../test_directory.h"
#include "base/clock.h"
#include "base/memory.h"
#include "feed/publication.h"
#include "stores/odds.h"

extern char **environ;

/* ---- engines --------------------------------------------------------------------------------- */

struct fixture {
    char directory[TEST_DIRECTORY_SIZE];
    char uri[256];
    char prefix[64];
    struct odds_store *store;
};

struct factory {
    const char *name;
    void (*make)(struct fixture *fixture);
    void (*remove)(struct fixture *fixture);
    bool one_version;        /* for all of a batch */
    uint64_t seen_within_ms; /* by another process; 0: at once */
};

static void embedded_make(struct fixture *fixture)
{
    test_directory_make(fixture->directory);
    (void)snprintf(fixture->uri, sizeof fixture->uri, "embedded:%s/store", fixture->directory);
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *walk)
{
    (void)stat;
    (void)type;
    (void)walk;
    return remove(path);
}

static void embedded_remove(struct fixture *fixture)
{
    (void)nftw(fixture->directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* The server is shared, so each fixture has names of its own in it. */
static void server_make(struct fixture *fixture, const char *variable)
{
    static unsigned fixtures;
    const char *uri = getenv(variable);
    if (uri == NULL)
        fail_msg("there is no %s in the environment", variable);
    (void)snprintf(fixture->uri, sizeof fixture->uri, "%s", uri);
    (void)snprintf(fixture->prefix, sizeof fixture->prefix, "contract-%d*%u:", (int)getpid(),
                   fixtures++);
}

static void redis_make(struct fixture *fixture)
{
    server_make(fixture, "TEST_REDIS_URI");
}

static void redis_tcp_make(struct fixture *fixture)
{
    server_make(fixture, "TEST_REDIS_TCP_URI");
}

static void sentinel_make(struct fixture *fixture)
{
    server_make(fixture, "TEST_SENTINEL_URI");
}

static void server_remove(struct fixture *fixture)
{
    (void)fixture; /* the server goes as a whole */
}

static const struct factory factories[] = {
    {"embedded", embedded_make, embedded_remove, true, 0},
    {"redis", redis_make, server_remove, false, 1000},
    {"redis_tcp", redis_tcp_make, server_remove, false, 1000},
    {"sentinel", sentinel_make, server_remove, false, 1000},
};
static const struct factory *engine;

/* ---- helpers --------------------------------------------------------------------------------- */

static struct odds_store *open_within(const struct fixture *fixture, bool create,
                                      uint32_t timeout_ms)
{
    struct odds_store_options options = {
        .uri = fixture->uri, .timeout_ms = timeout_ms, .prefix = fixture->prefix, .create = create};
    struct odds_store *store = NULL;
    struct error error = {{0}};
    if (odds_store_open(&store, &options, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    return store;
}

static struct odds_store *open_store(const struct fixture *fixture, bool create)
{
    return open_within(fixture, create, 2000);
}

static int set_up(void **state)
{
    struct fixture *fixture = memory_alloc_zeroed(1, sizeof *fixture);
    engine->make(fixture);
    fixture->store = open_store(fixture, true);
    *state = fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    odds_store_close(&fixture->store);
    engine->remove(fixture);
    memory_free(fixture);
    return 0;
}

static struct event_id event_of(const char *digits)
{
    struct event_id event;
    assert_int_equal(event_id_parse(text_of(digits), &event), STATUS_OK);
    return event;
}

static struct odds_change catalog_change(enum sport sport, const char *bytes)
{
    return (struct odds_change){.kind = ODDS_CATALOG,
                                .sport = sport,
                                .bytes = bytes,
                                .size = bytes != NULL ? strlen(bytes) : 0};
}

static struct odds_change odds_change(enum sport sport, const char *event, const char *bytes)
{
    return (struct odds_change){.kind = ODDS_MARKETS,
                                .sport = sport,
                                .event = event_of(event),
                                .bytes = bytes,
                                .size = bytes != NULL ? strlen(bytes) : 0};
}

static void publish(struct odds_store *store, const struct odds_change *changes, size_t count)
{
    struct error error = {{0}};
    if (odds_store_publish(store, changes, count, &error) != STATUS_OK)
        fail_msg("%s", error.text);
}

static void publish_one(struct odds_store *store, struct odds_change change)
{
    publish(store, &change, 1);
}

/* Reads at once or when the engine calls back. */
struct waiting_read {
    struct odds_read read;
    sem_t done;
};

static void on_read(struct odds_read *read)
{
    assert_int_equal(sem_post(&((struct waiting_read *)(void *)read)->done), 0);
}

/* The status of a read that is over. */
static enum status wait_for(struct odds_store *store, struct waiting_read *waiting)
{
    waiting->read.done = on_read;
    assert_int_equal(sem_init(&waiting->done, 0, 0), 0);
    enum status status = odds_store_read(store, &waiting->read);
    if (status == STATUS_PENDING) {
        while (sem_wait(&waiting->done) != 0)
            assert_int_equal(errno, EINTR);
        status = waiting->read.result;
    }
    assert_int_equal(sem_destroy(&waiting->done), 0);
    return status;
}

static enum status read_value(struct odds_store *store, enum odds_kind kind, enum sport sport,
                              const char *event, struct odds_value *value)
{
    struct waiting_read waiting = {.read = {.kind = kind, .sport = sport}};
    if (event != NULL)
        waiting.read.event = event_of(event);
    enum status status = wait_for(store, &waiting);
    if (status == STATUS_OK)
        *value = waiting.read.value;
    return status;
}

static uint64_t version_of(struct odds_store *store, enum odds_kind kind, enum sport sport,
                           const char *event)
{
    struct odds_value value = {0};
    assert_int_equal(read_value(store, kind, sport, event, &value), STATUS_OK);
    memory_free(value.bytes);
    return value.version;
}

static void assert_stored(struct odds_store *store, enum odds_kind kind, enum sport sport,
                          const char *event, const char *bytes, size_t size)
{
    struct odds_value value = {0};
    assert_int_equal(read_value(store, kind, sport, event, &value), STATUS_OK);
    assert_true(value.version != 0);
    CHECK(value.bytes != NULL);
    assert_int_equal(value.size, size);
    assert_memory_equal(value.bytes, bytes, size);
    assert_int_equal(value.bytes[size], 0);
    memory_free(value.bytes);
}

static void assert_not_stored(struct odds_store *store, enum odds_kind kind, enum sport sport,
                              const char *event)
{
    struct odds_value value = {.version = 7};
    assert_int_equal(read_value(store, kind, sport, event, &value), STATUS_OK);
    assert_true(value.version == 0);
    assert_null(value.bytes);
}

static uint64_t stamp_of(struct odds_store *store)
{
    uint64_t stamp = 0;
    assert_int_equal(odds_store_stamp(store, &stamp), STATUS_OK);
    return stamp;
}

static void publish_in_another_process(const struct fixture *fixture, const char *sport,
                                       const char *event, const char *bytes)
{
    char *arguments[] = {(char *)(uintptr_t) "odds_contract",
                         (char *)(uintptr_t) "--publish",
                         (char *)(uintptr_t)fixture->uri,
                         (char *)(uintptr_t)fixture->prefix,
                         (char *)(uintptr_t)sport,
                         (char *)(uintptr_t)event,
                         (char *)(uintptr_t)bytes,
                         NULL};
    pid_t child;
    int status = -1;
    assert_int_equal(posix_spawn(&child, "/proc/self/exe", NULL, NULL, arguments, environ), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int publish_and_exit(char **arguments)
{
    struct odds_store_options options = {
        .uri = arguments[2], .timeout_ms = 2000, .prefix = arguments[3]};
    struct odds_store *store = NULL;
    struct error error = {{0}};
    struct odds_change change = {
        .kind = ODDS_MARKETS, .bytes = arguments[6], .size = strlen(arguments[6])};
    if (sport_from_key(text_of(arguments[4]), &change.sport) != STATUS_OK ||
        event_id_parse(text_of(arguments[5]), &change.event) != STATUS_OK ||
        odds_store_open(&store, &options, &error) != STATUS_OK ||
        odds_store_publish(store, &change, 1, &error) != STATUS_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    odds_store_close(&store);
    return 0;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void what_was_published_is_read_back(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    publish_one(store, catalog_change(SPORT_CRICKET, "[{\"gmid\":1}]"));
    publish_one(store, odds_change(SPORT_CRICKET, "1", "[{\"marketId\":\"1.1\"}]"));
    assert_stored(store, ODDS_CATALOG, SPORT_CRICKET, NULL, "[{\"gmid\":1}]", 12);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "1", "[{\"marketId\":\"1.1\"}]", 20);
}

static void a_fresh_store_holds_nothing(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    for (unsigned i = 0; i < SPORT_COUNT; i++) {
        assert_not_stored(store, ODDS_CATALOG, (enum sport)i, NULL);
        assert_not_stored(store, ODDS_MARKETS, (enum sport)i, "1");
    }
}

static void an_empty_document_is_stored_and_not_missing(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    publish_one(store, catalog_change(SPORT_TENNIS, ""));
    assert_stored(store, ODDS_CATALOG, SPORT_TENNIS, NULL, "", 0);
}

static void bytes_are_kept_exactly(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    char bytes[512];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)(i * 7); /* every byte value, NUL and broken UTF-8 among them */
    publish_one(store, (struct odds_change){.kind = ODDS_CATALOG,
                                            .sport = SPORT_FOOTBALL,
                                            .bytes = bytes,
                                            .size = sizeof bytes});
    assert_stored(store, ODDS_CATALOG, SPORT_FOOTBALL, NULL, bytes, sizeof bytes);
}

static void a_document_may_have_32_mib_and_no_byte_more(void **state)
{
    /* A busy machine may take longer for as much than the deadline of the other tests. */
    struct fixture *fixture = *state;
    odds_store_close(&fixture->store);
    fixture->store = open_within(fixture, false, 60000);
    struct odds_store *store = fixture->store;
    size_t size = ODDS_VALUE_MAX;
    char *bytes = memory_alloc(size + 1);
    for (size_t i = 0; i < size + 1; i++)
        bytes[i] = (char)('a' + i % 23);
    struct odds_change change = {
        .kind = ODDS_CATALOG, .sport = SPORT_FOOTBALL, .bytes = bytes, .size = size + 1};
    struct error error = {{0}};
    assert_int_equal(odds_store_publish(store, &change, 1, &error), STATUS_INVALID);
    assert_not_stored(store, ODDS_CATALOG, SPORT_FOOTBALL, NULL);
    change.size = size;
    publish_one(store, change);
    assert_stored(store, ODDS_CATALOG, SPORT_FOOTBALL, NULL, bytes, size);
    memory_free(bytes);
}

static void ids_have_up_to_20_digits(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    publish_one(store, odds_change(SPORT_CRICKET, "99999999999999999999", "[1]"));
    publish_one(store, odds_change(SPORT_CRICKET, "9999999999999999999", "[2]"));
    publish_one(store, odds_change(SPORT_CRICKET, "18446744073709551615", "[3]"));
    publish_one(store, odds_change(SPORT_CRICKET, "18446744073709551616", "[4]"));
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "99999999999999999999", "[1]", 3);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "9999999999999999999", "[2]", 3);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "18446744073709551615", "[3]", 3);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "18446744073709551616", "[4]", 3);
}

static void sports_are_kept_apart(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    for (unsigned i = 0; i < SPORT_COUNT; i++) {
        char text[2] = {(char)('0' + i), '\0'};
        publish_one(store, catalog_change((enum sport)i, text));
        publish_one(store, odds_change((enum sport)i, "5", text));
    }
    for (unsigned i = 0; i < SPORT_COUNT; i++) {
        char text[2] = {(char)('0' + i), '\0'};
        assert_stored(store, ODDS_CATALOG, (enum sport)i, NULL, text, 1);
        assert_stored(store, ODDS_MARKETS, (enum sport)i, "5", text, 1);
    }
}

static void what_was_withdrawn_is_not_stored(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    publish_one(store, catalog_change(SPORT_CRICKET, "[]"));
    publish_one(store, odds_change(SPORT_CRICKET, "1", "[]"));
    publish_one(store, odds_change(SPORT_CRICKET, "1", NULL));
    assert_not_stored(store, ODDS_MARKETS, SPORT_CRICKET, "1");
    assert_stored(store, ODDS_CATALOG, SPORT_CRICKET, NULL, "[]", 2);
    publish_one(store, odds_change(SPORT_CRICKET, "1", NULL)); /* once more is fine */
    publish_one(store, catalog_change(SPORT_CRICKET, NULL));
    assert_not_stored(store, ODDS_CATALOG, SPORT_CRICKET, NULL);
}

static void the_events_that_have_odds_are_listed(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct error error = {{0}};
    struct event_id *list = NULL;
    size_t count = 99;
    const struct odds_change changes[] = {
        catalog_change(SPORT_TENNIS, "[]"),
        odds_change(SPORT_TENNIS, "7", "[1]"),
        odds_change(SPORT_TENNIS, "99999999999999999999", "[2]"),
        odds_change(SPORT_TENNIS, "70", "[3]"),
        odds_change(SPORT_CRICKET, "71", "[4]"),
    };
    assert_int_equal(odds_store_list_events(store, SPORT_TENNIS, &list, &count, &error), STATUS_OK);
    assert_int_equal(count, 0);
    memory_free(list);
    assert_int_equal(odds_store_publish(store, changes, 5, &error), STATUS_OK);
    assert_int_equal(odds_store_list_events(store, SPORT_TENNIS, &list, &count, &error), STATUS_OK);
    assert_int_equal(count, 3);
    unsigned seen = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 1; j < 4; j++)
            if (event_id_equals(&list[i], &changes[j].event))
                seen |= 1U << j;
    assert_int_equal(seen, 1U << 1 | 1U << 2 | 1U << 3);
    memory_free(list);
}

/* An engine may know it of what it has read or heard of alone. */
static void when_odds_were_published_is_told(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    const struct odds_change change = odds_change(SPORT_TENNIS, "7", "[1]");
    const struct odds_change other = odds_change(SPORT_TENNIS, "8", "[1]");
    int64_t before_ms = clock_wall_ms();
    assert_int_equal(odds_store_published_ms(store, SPORT_TENNIS, &change.event), 0);
    publish_one(store, change);
    assert_stored(store, ODDS_MARKETS, SPORT_TENNIS, "7", "[1]", 3);
    int64_t published_ms = odds_store_published_ms(store, SPORT_TENNIS, &change.event);
    assert_true(published_ms >= before_ms && published_ms <= clock_wall_ms());
    assert_not_stored(store, ODDS_MARKETS, SPORT_TENNIS, "8");
    assert_int_equal(odds_store_published_ms(store, SPORT_TENNIS, &other.event), 0);
    assert_int_equal(odds_store_published_ms(store, SPORT_CRICKET, &change.event), 0);
}

static void withdraw_sport(struct odds_store *store, enum sport sport)
{
    struct feed_publication withdrawal = {0};
    struct error error = {{0}};
    assert_int_equal(feed_publication_withdraw_sport(&withdrawal, store, sport, &error), STATUS_OK);
    assert_int_equal(feed_publication_publish(&withdrawal, store, &error), STATUS_OK);
    feed_publication_free(&withdrawal);
}

static void withdrawing_a_sport_takes_its_catalog_and_all_its_odds(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    char event[16];
    publish_one(store, catalog_change(SPORT_HORSE_RACING, "[]"));
    publish_one(store, catalog_change(SPORT_GREYHOUND_RACING, "[]"));
    publish_one(store, odds_change(SPORT_GREYHOUND_RACING, "3", "[]"));
    for (int i = 1; i <= 50; i++) {
        (void)snprintf(event, sizeof event, "%d", i * 37);
        publish_one(store, odds_change(SPORT_HORSE_RACING, event, "[]"));
    }
    withdraw_sport(store, SPORT_HORSE_RACING);
    assert_not_stored(store, ODDS_CATALOG, SPORT_HORSE_RACING, NULL);
    for (int i = 1; i <= 50; i++) {
        (void)snprintf(event, sizeof event, "%d", i * 37);
        assert_not_stored(store, ODDS_MARKETS, SPORT_HORSE_RACING, event);
    }
    assert_stored(store, ODDS_CATALOG, SPORT_GREYHOUND_RACING, NULL, "[]", 2);
    assert_stored(store, ODDS_MARKETS, SPORT_GREYHOUND_RACING, "3", "[]", 2);
    withdraw_sport(store, SPORT_TENNIS);
}

static void a_batch_is_published_as_one(void **state)
{
    struct fixture *fixture = *state;
    struct odds_change changes[] = {
        catalog_change(SPORT_CRICKET, "[{\"gmid\":1}]"),
        odds_change(SPORT_CRICKET, "1", "[1]"),
        odds_change(SPORT_TENNIS, "2", "[2]"),
        odds_change(SPORT_TENNIS, "3", NULL),
    };
    uint64_t before = stamp_of(fixture->store);
    publish(fixture->store, changes, 4);
    assert_true(stamp_of(fixture->store) != before);
    uint64_t version = version_of(fixture->store, ODDS_CATALOG, SPORT_CRICKET, NULL);
    uint64_t second = version_of(fixture->store, ODDS_MARKETS, SPORT_CRICKET, "1");
    uint64_t third = version_of(fixture->store, ODDS_MARKETS, SPORT_TENNIS, "2");
    assert_true(version != 0 && second != 0 && third != 0);
    assert_true(!engine->one_version || (version == second && version == third));
    /* One change that cannot be takes all the others with it. */
    changes[0].size = (size_t)ODDS_VALUE_MAX + 1;
    changes[1].bytes = "[9]";
    struct error error = {{0}};
    assert_int_equal(odds_store_publish(fixture->store, changes, 4, &error), STATUS_INVALID);
    assert_stored(fixture->store, ODDS_MARKETS, SPORT_CRICKET, "1", "[1]", 3);
}

#define MANY 3000 /* two publications of so many have more than a transaction had for a batch */

struct published {
    struct odds_publishing publishing; /* first */
    struct odds_publication publications[3];
    sem_t done;
};

static void on_published(struct odds_publishing *publishing)
{
    assert_int_equal(sem_post(&((struct published *)(void *)publishing)->done), 0);
}

/* Begins publications of the changes, `each` in each. */
static void begin(struct odds_store *store, struct published *published,
                  const struct odds_change *changes, size_t each)
{
    memset(published, 0, sizeof *published);
    assert_int_equal(sem_init(&published->done, 0, 0), 0);
    STAILQ_INIT(&published->publishing.list);
    for (size_t i = 0; i < 3; i++) {
        published->publications[i] =
            (struct odds_publication){.changes = &changes[i * each], .count = each};
        STAILQ_INSERT_TAIL(&published->publishing.list, &published->publications[i], others);
    }
    published->publishing.done = on_published;
    if (odds_store_publish_each(store, &published->publishing) != STATUS_PENDING)
        on_published(&published->publishing);
}

static void assert_all_published(struct published *published)
{
    while (sem_wait(&published->done) != 0)
        assert_int_equal(errno, EINTR);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(published->publications[i].status, STATUS_OK);
        assert_null(published->publications[i].reason);
    }
    assert_int_equal(sem_destroy(&published->done), 0);
}

static void publications_keep_their_order(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    static const char *const values[] = {"[1]", "[2]", "[3]", NULL, "[5]", "[6]"};
    struct odds_change changes[6];
    struct published first, second;
    for (size_t i = 0; i < 6; i++)
        changes[i] = odds_change(SPORT_CRICKET, "1", values[i]);
    begin(store, &first, &changes[0], 1);
    begin(store, &second, &changes[3], 1); /* not waiting for the first */
    assert_all_published(&first);
    assert_all_published(&second);
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "1", "[6]", 3);
}

static void publications_may_have_many_changes(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct odds_change *changes = memory_alloc_zeroed(3 * (size_t)MANY, sizeof *changes);
    struct published published;
    char event[16];
    for (size_t i = 0; i < 3 * (size_t)MANY; i++) {
        (void)snprintf(event, sizeof event, "%zu", i % MANY + 1);
        changes[i] = odds_change(SPORT_FOOTBALL, event,
                                 i < MANY               ? "[1]"
                                 : i < 2 * (size_t)MANY ? "[2]"
                                                        : "[3]");
    }
    begin(store, &published, changes, MANY);
    assert_all_published(&published);
    memory_free(changes);
    assert_stored(store, ODDS_MARKETS, SPORT_FOOTBALL, "1", "[3]", 3);
    assert_stored(store, ODDS_MARKETS, SPORT_FOOTBALL, "3000", "[3]", 3);
}

static void publishing_nothing_is_fine(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    uint64_t before = stamp_of(store);
    struct error error = {{0}};
    assert_int_equal(odds_store_publish(store, NULL, 0, &error), STATUS_OK);
    assert_true(stamp_of(store) == before);
}

/* ---- freshness ------------------------------------------------------------------------------- */

static void a_version_moves_with_every_publication(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    uint64_t seen[6] = {0};
    for (size_t i = 0; i < 6; i++) {
        if (i == 3)
            publish_one(store, odds_change(SPORT_CRICKET, "1", NULL));
        publish_one(store, odds_change(SPORT_CRICKET, "1", i % 2 == 0 ? "[1]" : "[2]"));
        seen[i] = version_of(store, ODDS_MARKETS, SPORT_CRICKET, "1");
        assert_true(seen[i] != 0);
        for (size_t j = 0; j < i; j++)
            assert_true(seen[i] != seen[j]);
    }
}

static void a_version_stays_while_others_change(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    publish_one(store, odds_change(SPORT_CRICKET, "1", "[1]"));
    uint64_t version = version_of(store, ODDS_MARKETS, SPORT_CRICKET, "1");
    publish_one(store, odds_change(SPORT_CRICKET, "2", "[2]"));
    publish_one(store, catalog_change(SPORT_CRICKET, "[]"));
    assert_true(version == version_of(store, ODDS_MARKETS, SPORT_CRICKET, "1"));
}

static void the_stamp_moves_when_something_may_have_changed(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    uint64_t before = stamp_of(store);
    assert_true(stamp_of(store) == before);
    publish_one(store, catalog_change(SPORT_CRICKET, "[]"));
    uint64_t after = stamp_of(store);
    assert_true(after != before);
    publish_one(store, catalog_change(SPORT_CRICKET, NULL));
    assert_true(stamp_of(store) != after);
}

/* An engine that must ask is asked here, so that it can tell. */
static struct odds_versions versions_of(struct odds_store *store, const struct event_id *event)
{
    struct odds_versions versions = {0};
    for (int i = 0; i < 100; i++) {
        enum status status = odds_store_versions(store, SPORT_CRICKET, event, &versions);
        assert_true(status == STATUS_OK || status == STATUS_PENDING);
        if (status == STATUS_OK && versions.catalog != ODDS_VERSION_UNKNOWN &&
            versions.odds != ODDS_VERSION_UNKNOWN && versions.stamp == stamp_of(store))
            return versions;
        (void)version_of(store, ODDS_CATALOG, SPORT_CRICKET, NULL);
        if (event != NULL)
            (void)version_of(store, ODDS_MARKETS, SPORT_CRICKET, event->digits);
    }
    fail_msg("the store cannot tell");
    return versions;
}

static void the_versions_of_an_event_are_told(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct event_id event = event_of("77");
    struct odds_versions versions = versions_of(store, &event);
    assert_true(versions.catalog == 0 && versions.odds == 0);
    publish_one(store, catalog_change(SPORT_CRICKET, "[]"));
    publish_one(store, odds_change(SPORT_CRICKET, "77", "[]"));
    uint64_t catalog = version_of(store, ODDS_CATALOG, SPORT_CRICKET, NULL);
    uint64_t odds = version_of(store, ODDS_MARKETS, SPORT_CRICKET, "77");
    versions = versions_of(store, &event);
    assert_true(versions.catalog == catalog && versions.odds == odds);
    assert_true(catalog != 0 && odds != 0);
    versions = versions_of(store, NULL);
    assert_true(versions.catalog == catalog && versions.odds == 0);
}

static void another_process_is_seen_at_once(void **state)
{
    struct fixture *fixture = *state;
    publish_one(fixture->store, odds_change(SPORT_CRICKET, "1", "[0]"));
    for (int i = 1; i <= 5; i++) {
        char bytes[16];
        uint64_t stamp = stamp_of(fixture->store);
        uint64_t version = version_of(fixture->store, ODDS_MARKETS, SPORT_CRICKET, "1");
        (void)snprintf(bytes, sizeof bytes, "[%d]", i);
        publish_in_another_process(fixture, "cricket", "1", bytes);
        uint64_t until_ms = clock_monotonic_ms() + engine->seen_within_ms;
        while (stamp_of(fixture->store) == stamp && clock_monotonic_ms() < until_ms)
            (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        assert_true(stamp_of(fixture->store) != stamp);
        assert_true(version_of(fixture->store, ODDS_MARKETS, SPORT_CRICKET, "1") != version);
        assert_stored(fixture->store, ODDS_MARKETS, SPORT_CRICKET, "1", bytes, strlen(bytes));
    }
}

static void what_was_published_outlives_the_handle(void **state)
{
    struct fixture *fixture = *state;
    publish_one(fixture->store, catalog_change(SPORT_TENNIS, "[5]"));
    odds_store_close(&fixture->store);
    fixture->store = open_store(fixture, false);
    assert_stored(fixture->store, ODDS_CATALOG, SPORT_TENNIS, NULL, "[5]", 3);
}

struct polling {
    struct odds_store *store;
    uint64_t least; /* the number that must be there at least; grows */
    pthread_mutex_t lock;
    bool ending;
};

/* Reads "[N]" again and again: N never goes back below what a publication had returned for. */
static void *poll_numbers(void *argument)
{
    struct polling *polling = argument;
    for (bool ending = false; !ending;) {
        CHECK(pthread_mutex_lock(&polling->lock) == 0);
        uint64_t least = polling->least;
        ending = polling->ending;
        CHECK(pthread_mutex_unlock(&polling->lock) == 0);
        struct odds_value value = {0};
        CHECK(read_value(polling->store, ODDS_CATALOG, SPORT_FOOTBALL, NULL, &value) == STATUS_OK);
        if (least > 0)
            CHECK(strtoull(value.bytes + 1, NULL, 10) >= least);
        memory_free(value.bytes);
    }
    return NULL;
}

static void threads_publish_while_others_read(void **state)
{
    struct fixture *fixture = *state;
    struct polling polling = {.store = fixture->store, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[3];
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, poll_numbers, &polling), 0);
    for (uint64_t i = 1; i <= 60; i++) {
        char bytes[32];
        (void)snprintf(bytes, sizeof bytes, "[%llu]", (unsigned long long)i);
        publish_one(fixture->store, catalog_change(SPORT_FOOTBALL, bytes));
        assert_int_equal(pthread_mutex_lock(&polling.lock), 0);
        polling.least = i;
        polling.ending = i == 60;
        assert_int_equal(pthread_mutex_unlock(&polling.lock), 0);
    }
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

/* ---- a value with a part of the catalog ------------------------------------------------------ */

static void assert_part(struct odds_store *store, size_t at, size_t max, const char *part)
{
    struct waiting_read waiting = {.read = {.kind = ODDS_MARKETS,
                                            .sport = SPORT_TENNIS,
                                            .event = event_of("1"),
                                            .catalog = {.at = at, .max = max}}};
    assert_int_equal(wait_for(store, &waiting), STATUS_OK);
    const struct odds_part *got = &waiting.read.catalog;
    assert_int_equal(got->size, strlen(part));
    assert_true(got->bytes != NULL || got->size == 0);
    assert_memory_equal(got->bytes == NULL ? "" : got->bytes, part, got->size);
    memory_free(waiting.read.catalog.bytes);
    memory_free(waiting.read.value.bytes);
}

static void a_part_of_the_catalog_comes_with_the_odds(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    assert_part(store, 0, 10, ""); /* neither is stored */
    publish_one(store, catalog_change(SPORT_TENNIS, "[0123456789]"));
    assert_part(store, 0, 4, "[012");
    publish_one(store, odds_change(SPORT_TENNIS, "1", "[7]"));
    assert_part(store, 0, 4, "[012");
    assert_part(store, 1, 10, "0123456789");
    assert_part(store, 9, 10, "89]");
    assert_part(store, 11, 1, "]");
    assert_part(store, 12, 1, "");
    assert_part(store, 4000, 4000, "");
    assert_part(store, 0, ODDS_VALUE_MAX, "[0123456789]");
}

static void *publish_pairs(void *argument)
{
    struct polling *polling = argument;
    for (unsigned number = 1; number <= 300; number++) {
        char catalog[32];
        char odds[32];
        (void)snprintf(catalog, sizeof catalog, "[%06u]", number);
        (void)snprintf(odds, sizeof odds, "[%06u]", number);
        struct odds_change changes[] = {odds_change(SPORT_TENNIS, "1", odds),
                                        catalog_change(SPORT_TENNIS, catalog)};
        publish(polling->store, changes, 2);
    }
    assert_int_equal(pthread_mutex_lock(&polling->lock), 0);
    polling->ending = true;
    assert_int_equal(pthread_mutex_unlock(&polling->lock), 0);
    return NULL;
}

/* What is published together is read together, or said not to be. */
static void a_part_of_the_catalog_is_of_the_moment_of_the_odds(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct polling polling = {.store = store, .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t thread;
    size_t together = 0;
    assert_int_equal(pthread_create(&thread, NULL, publish_pairs, &polling), 0);
    for (bool ending = false; !ending;) {
        struct waiting_read waiting = {.read = {.kind = ODDS_MARKETS,
                                                .sport = SPORT_TENNIS,
                                                .event = event_of("1"),
                                                .catalog = {.max = 8}}};
        assert_int_equal(wait_for(store, &waiting), STATUS_OK);
        const struct odds_read *read = &waiting.read;
        if (read->catalog.bytes != NULL && read->catalog.size == read->value.size) {
            assert_memory_equal(read->catalog.bytes, read->value.bytes, read->value.size);
            together++;
        } else {
            assert_true(read->catalog.bytes == NULL || read->value.size == 0);
        }
        memory_free(read->catalog.bytes);
        memory_free(read->value.bytes);
        assert_int_equal(pthread_mutex_lock(&polling.lock), 0);
        ending = polling.ending;
        assert_int_equal(pthread_mutex_unlock(&polling.lock), 0);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(together > 0);
}

/* ---- facts and health ------------------------------------------------------------------------ */

static void facts_tell_the_last_publication_of_each_sport(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct odds_facts facts;
    int64_t before_ms = clock_wall_ms();
    publish_one(store, odds_change(SPORT_CRICKET, "1", "[]"));
    assert_stored(store, ODDS_MARKETS, SPORT_CRICKET, "1", "[]", 2);
    odds_store_facts(store, &facts);
    assert_true(facts.published_ms[SPORT_CRICKET] >= before_ms);
    assert_true(facts.published_ms[SPORT_CRICKET] <= clock_wall_ms());
    assert_true(facts.published_ms[SPORT_TENNIS] == 0);
    assert_true(facts.reads >= 1);
    assert_true(facts.errors == 0);
}

static void a_store_that_works_answers_a_ping(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct error error = {{0}};
    assert_int_equal(odds_store_ping(store, ODDS_TO_READ, &error), STATUS_OK);
    assert_int_equal(odds_store_ping(store, ODDS_TO_SERVE, &error), STATUS_OK);
}

/* ---- interest -------------------------------------------------------------------------------- */

static size_t list_interest(struct odds_store *store, enum sport sport, int64_t since_ms,
                            struct odds_interest **list)
{
    size_t count = 0;
    struct error error = {{0}};
    if (odds_store_list_interest(store, sport, since_ms, list, &count, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    return count;
}

/* Interest is written in the background: waits until `count` events are listed. */
static struct odds_interest *wait_for_interest(struct odds_store *store, enum sport sport,
                                               size_t count)
{
    for (int i = 0; i < 1000; i++) {
        struct odds_interest *list = NULL;
        size_t listed = list_interest(store, sport, 0, &list);
        if (listed == count)
            return list;
        memory_free(list);
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    fail_msg("interest in %zu events was never written", count);
    return NULL;
}

static void note(struct odds_store *store, enum sport sport, const char *digits)
{
    struct event_id event = event_of(digits);
    odds_store_note_interest(store, sport, &event);
    (void)nanosleep(&(struct timespec){.tv_nsec = 3000000}, NULL); /* another millisecond */
}

static void interest_is_listed_latest_first(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    note(store, SPORT_CRICKET, "1");
    note(store, SPORT_CRICKET, "99999999999999999999");
    note(store, SPORT_CRICKET, "3");
    note(store, SPORT_CRICKET, "1"); /* asked for again: latest now */
    note(store, SPORT_TENNIS, "8");
    struct odds_interest *list = wait_for_interest(store, SPORT_CRICKET, 3);
    /* That it was asked for again is written when the second is over. */
    for (int i = 0; i < 200 && strcmp(list[0].event.digits, "1") != 0; i++) {
        memory_free(list);
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        list = wait_for_interest(store, SPORT_CRICKET, 3);
    }
    assert_string_equal(list[0].event.digits, "1");
    assert_string_equal(list[1].event.digits, "3");
    assert_string_equal(list[2].event.digits, "99999999999999999999");
    assert_true(list[0].requested_ms > list[1].requested_ms);
    /* `since` is inclusive */
    struct odds_interest *later = NULL;
    assert_int_equal(list_interest(store, SPORT_CRICKET, list[1].requested_ms, &later), 2);
    memory_free(later);
    later = NULL;
    assert_int_equal(list_interest(store, SPORT_CRICKET, list[0].requested_ms + 1, &later), 0);
    memory_free(later);
    memory_free(list);
    memory_free(wait_for_interest(store, SPORT_TENNIS, 1));
}

static void interest_in_one_event_is_written_once_a_second(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    struct event_id event = event_of("42");
    uint64_t until_ms = clock_monotonic_ms() + 1500;
    while (clock_monotonic_ms() < until_ms)
        for (int i = 0; i < 100; i++)
            odds_store_note_interest(store, SPORT_CRICKET, &event);
    memory_free(wait_for_interest(store, SPORT_CRICKET, 1));
    struct odds_facts facts;
    odds_store_facts(store, &facts);
    assert_true(facts.interest_written >= 1);
    assert_true(facts.interest_written <= 2 + (clock_monotonic_ms() - until_ms + 1500) / 1000);
    assert_true(facts.interest_dropped == 0);
}

static void more_interest_than_fits_is_dropped_and_counted(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    char digits[24];
    for (int i = 1; i <= 100000; i++) {
        (void)snprintf(digits, sizeof digits, "%d", i);
        struct event_id event = event_of(digits);
        odds_store_note_interest(store, SPORT_CRICKET, &event);
    }
    struct odds_facts facts;
    odds_store_facts(store, &facts);
    assert_true(facts.interest_dropped > 0);
}

static void interest_does_not_move_the_stamp(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    uint64_t before = stamp_of(store);
    note(store, SPORT_CRICKET, "1");
    memory_free(wait_for_interest(store, SPORT_CRICKET, 1));
    assert_true(stamp_of(store) == before);
}

static void interest_noted_before_closing_is_written(void **state)
{
    struct fixture *fixture = *state;
    note(fixture->store, SPORT_CRICKET, "1");
    odds_store_close(&fixture->store);
    fixture->store = open_store(fixture, false);
    struct odds_interest *list = NULL;
    assert_int_equal(list_interest(fixture->store, SPORT_CRICKET, 0, &list), 1);
    memory_free(list);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void an_unknown_uri_is_refused_by_both_ways_of_opening(void **state)
{
    (void)state;
    const char *wrong[] = {NULL, "", "embedded", "embedded:", "lmdb:/tmp/x", "/tmp/x"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct odds_store_options options = {.uri = wrong[i], .timeout_ms = 100};
        struct odds_store *store = NULL;
        struct error error = {{0}};
        assert_int_equal(odds_store_open(&store, &options, &error), STATUS_INVALID);
        options.patient = true;
        assert_int_equal(odds_store_open(&store, &options, &error), STATUS_INVALID);
        assert_null(store);
        assert_true(error.text[0] != '\0');
    }
}

/* ---- leases of shared rate budgets ----------------------------------------------------------- */

#define LEASE_WINDOW 3600U

struct drawing {
    struct odds_lease lease; /* first */
    sem_t done;
};

static void lease_done(struct odds_lease *lease)
{
    CHECK(sem_post(&((struct drawing *)(void *)lease)->done) == 0);
}

/* Draws, and checks what every answer has to keep to. */
static struct odds_lease draw(struct odds_store *store, struct odds_lease lease)
{
    struct drawing drawing = {.lease = lease};
    drawing.lease.done = lease_done;
    CHECK(sem_init(&drawing.done, 0, 0) == 0);
    CHECK(odds_store_lease(store, &drawing.lease) == STATUS_PENDING);
    while (sem_wait(&drawing.done) != 0)
        CHECK(errno == EINTR);
    CHECK(sem_destroy(&drawing.done) == 0);
    struct odds_lease *answer = &drawing.lease;
    CHECK(answer->result == STATUS_OK);
    CHECK(answer->granted <= lease.limit && answer->left <= (int64_t)lease.limit);
    CHECK(answer->left_us > 0 && answer->left_us <= (uint64_t)lease.window_seconds * 1000000);
    int64_t end_ms = answer->store_ms + (int64_t)answer->left_us / 1000;
    int64_t off_ms = end_ms % ((int64_t)lease.window_seconds * 1000);
    CHECK(off_ms <= 1 || off_ms >= (int64_t)lease.window_seconds * 1000 - 1);
    CHECK(answer->start % lease.window_seconds == 0 || lease.window_seconds > LEASE_WINDOW);
    return *answer;
}

static struct odds_lease lease_of(const char *client, uint32_t limit)
{
    struct odds_lease lease = {.window_seconds = LEASE_WINDOW, .limit = limit, .demand = 1};
    (void)snprintf(lease.client, sizeof lease.client, "%s", client);
    return lease;
}

/* Leaves time for a test that draws in one window of an hour, and says whether there are leases. */
static bool lease_window_is_fresh(struct odds_store *store)
{
    if (!odds_store_has_leases(store))
        return false;
    struct odds_lease now = draw(store, lease_of("clock", 1));
    if (now.left_us < 20000000)
        (void)nanosleep(&(struct timespec){.tv_sec = (time_t)(now.left_us / 1000000) + 1}, NULL);
    return true;
}

static void a_budget_is_drawn_to_the_last_in_a_few_leases(void **state)
{
    static const uint32_t limits[] = {1, 2, 3, 5, 16, 17, 100, 1000, 1000000000};
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        char client[16];
        (void)snprintf(client, sizeof client, "client-%zu", i);
        struct odds_lease answer = {.granted = 1};
        uint64_t sum = 0;
        unsigned calls = 0;
        for (; answer.granted > 0; calls++) {
            answer = draw(store, lease_of(client, limits[i]));
            sum += answer.granted;
            assert_int_equal(answer.left, limits[i] - sum);
            assert_true(answer.granted <= limits[i] / 16 + 1);
        }
        assert_int_equal(sum, limits[i]);
        assert_true(calls <= (limits[i] == 1000 ? 40 : 100));
    }
}

static void a_lease_covers_those_who_wait_if_it_can(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    struct odds_lease lease = lease_of("many", 100);
    lease.demand = 60;
    assert_int_equal(draw(store, lease).granted, 60);
    assert_int_equal(draw(store, lease).granted, 40);
    assert_int_equal(draw(store, lease).granted, 0);
}

struct drawer {
    pthread_t thread;
    const struct fixture *fixture;
    uint64_t granted;
};

static void *draw_all(void *argument)
{
    struct drawer *drawer = argument;
    struct odds_store *store = open_store(drawer->fixture, false);
    struct odds_lease answer;
    do {
        answer = draw(store, lease_of("shared", 3000));
        drawer->granted += answer.granted;
    } while (answer.granted > 0);
    odds_store_close(&store);
    return NULL;
}

static void handles_that_draw_at_once_never_exceed_the_budget(void **state)
{
    const struct fixture *fixture = *state;
    if (!lease_window_is_fresh(fixture->store))
        return;
    struct drawer drawers[4];
    uint64_t sum = 0;
    for (size_t i = 0; i < 4; i++) {
        drawers[i] = (struct drawer){.fixture = fixture};
        assert_int_equal(pthread_create(&drawers[i].thread, NULL, draw_all, &drawers[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(drawers[i].thread, NULL), 0);
        sum += drawers[i].granted;
    }
    assert_int_equal(sum, 3000);
}

static void budgets_of_clients_are_kept_apart(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    assert_int_equal(draw(store, lease_of("cus_1", 1)).granted, 1);
    assert_int_equal(draw(store, lease_of("2001:db8::1", 1)).granted, 1);
    assert_int_equal(draw(store, lease_of("cus_1", 1)).granted, 0);
}

static void the_next_window_of_the_store_has_a_budget_of_its_own(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    struct odds_lease lease = lease_of("short", 1);
    lease.window_seconds = 1;
    struct odds_lease first = draw(store, lease);
    assert_int_equal(first.granted, 1);
    struct odds_lease next = draw(store, lease);
    assert_true(next.granted == 0 || next.start > first.start);
    while (next.start == first.start) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
        next = draw(store, lease);
    }
    assert_true(next.granted == 1 && next.start > first.start);
    assert_int_equal(next.start, next.store_ms / 1000);
}

static void a_changed_limit_counts_what_was_drawn(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    struct odds_lease lease = lease_of("changed", 100);
    lease.demand = 50;
    assert_int_equal(draw(store, lease).granted, 50);
    lease.limit = 30;
    struct odds_lease answer = draw(store, lease);
    assert_true(answer.granted == 0 && answer.left == -20);
    lease.limit = 60;
    assert_int_equal(draw(store, lease).granted, 10);
}

static void a_window_made_longer_keeps_what_was_drawn(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    struct odds_lease lease = lease_of("longer", 10);
    lease.demand = 10;
    assert_int_equal(draw(store, lease).granted, 10);
    lease.window_seconds = 86400;
    assert_int_equal(draw(store, lease).granted, 0);
}

static void what_a_server_knows_is_counted_in_that_window_alone(void **state)
{
    struct odds_store *store = ((struct fixture *)*state)->store;
    if (!lease_window_is_fresh(store))
        return;
    struct odds_lease lease = lease_of("knows", 100);
    uint32_t start = draw(store, lease).start; /* 7 */
    lease.since = start;
    lease.since_used = 40; /* the store has forgotten */
    lease.since_spent = 9; /* and was away */
    assert_int_equal(draw(store, lease).left, 100 - 40 - 9 - 7);
    lease.since_used = 10; /* it knows better now */
    lease.since_spent = 0;
    assert_int_equal(draw(store, lease).left, 100 - 40 - 9 - 7 - 7);
    lease.since = start - LEASE_WINDOW;
    lease.since_used = 100;
    lease.since_spent = 100;
    assert_true(draw(store, lease).left > 20);
}

/* ---- what changes ---------------------------------------------------------------------------- */

struct watcher {
    struct odds_watch watch; /* first */
    pthread_mutex_t lock;
    pthread_cond_t told;
    size_t count; /* of those that follow, and of all that was told of */
    size_t all;
    struct odds_subject subjects[64];
};

static void on_changed(struct odds_watch *watch, const struct odds_subject *subject)
{
    struct watcher *watcher = (struct watcher *)(void *)watch;
    assert_int_equal(pthread_mutex_lock(&watcher->lock), 0);
    if (subject == NULL)
        watcher->all++;
    else
        watcher->subjects[watcher->count++ % 64] = *subject;
    assert_int_equal(pthread_cond_broadcast(&watcher->told), 0);
    assert_int_equal(pthread_mutex_unlock(&watcher->lock), 0);
}

/* Waits until that was told of, and forgets all that was told before. `event` NULL: the catalog. */
static void await_change(struct watcher *watcher, enum sport sport, const char *event)
{
    bool found = false;
    assert_int_equal(pthread_mutex_lock(&watcher->lock), 0);
    while (!found) {
        for (size_t i = 0; i < watcher->count && !found; i++) {
            const struct odds_subject *subject = &watcher->subjects[i];
            found = subject->sport == sport &&
                    (event == NULL ? subject->kind == ODDS_CATALOG
                                   : subject->kind == ODDS_MARKETS &&
                                         strcmp(subject->event.digits, event) == 0);
        }
        if (!found)
            assert_int_equal(pthread_cond_wait(&watcher->told, &watcher->lock), 0);
    }
    watcher->count = 0;
    assert_int_equal(pthread_mutex_unlock(&watcher->lock), 0);
}

static void what_has_changed_is_told(void **state)
{
    struct fixture *fixture = *state;
    odds_store_close(&fixture->store);
    struct odds_store_options options = {
        .uri = fixture->uri, .timeout_ms = 2000, .prefix = fixture->prefix, .patient = true};
    struct error error = {{0}};
    assert_int_equal(odds_store_open(&fixture->store, &options, &error), STATUS_OK);
    struct odds_store *store = fixture->store;
    struct watcher watcher = {.watch.changed = on_changed,
                              .lock = PTHREAD_MUTEX_INITIALIZER,
                              .told = PTHREAD_COND_INITIALIZER};
    odds_store_watch(store, &watcher.watch);
    /* An engine may begin with a word that everything may have changed. */
    if (strcmp(engine->name, "embedded") == 0) {
        assert_int_equal(pthread_mutex_lock(&watcher.lock), 0);
        while (watcher.all == 0)
            assert_int_equal(pthread_cond_wait(&watcher.told, &watcher.lock), 0);
        assert_int_equal(pthread_mutex_unlock(&watcher.lock), 0);
    }
    size_t all = watcher.all;
    publish_one(store, catalog_change(SPORT_TENNIS, "[{\"gmid\":7}]"));
    await_change(&watcher, SPORT_TENNIS, NULL);
    const struct odds_change batch[] = {odds_change(SPORT_TENNIS, "7", "[]"),
                                        odds_change(SPORT_CRICKET, "8", "[]"),
                                        odds_change(SPORT_CRICKET, "9", "[]")};
    publish(store, batch, 3);
    await_change(&watcher, SPORT_CRICKET, "9");
    publish_one(store, odds_change(SPORT_TENNIS, "7", "[{}]"));
    await_change(&watcher, SPORT_TENNIS, "7");
    publish_one(store, odds_change(SPORT_CRICKET, "8", NULL));
    await_change(&watcher, SPORT_CRICKET, "8");
    publish_in_another_process(fixture, "cricket", "9", "[{}]");
    await_change(&watcher, SPORT_CRICKET, "9");
    withdraw_sport(store, SPORT_CRICKET);
    await_change(&watcher, SPORT_CRICKET, "9");
    assert_int_equal(watcher.all, all); /* each time it was known what */
    odds_store_watch(store, NULL);
}

#define CONTRACT(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(int count, char **arguments)
{
    if (count == 7 && strcmp(arguments[1], "--publish") == 0)
        return publish_and_exit(arguments);
    const char *name = count > 1 ? arguments[1] : "embedded";
    for (size_t i = 0; i < sizeof factories / sizeof factories[0]; i++)
        if (strcmp(factories[i].name, name) == 0)
            engine = &factories[i];
    if (engine == NULL) {
        (void)fprintf(stderr, "no engine is called %s\n", name);
        return 2;
    }
    const struct CMUnitTest tests[] = {
        CONTRACT(what_was_published_is_read_back),
        CONTRACT(a_fresh_store_holds_nothing),
        CONTRACT(an_empty_document_is_stored_and_not_missing),
        CONTRACT(bytes_are_kept_exactly),
        CONTRACT(a_document_may_have_32_mib_and_no_byte_more),
        CONTRACT(ids_have_up_to_20_digits),
        CONTRACT(sports_are_kept_apart),
        CONTRACT(what_was_withdrawn_is_not_stored),
        CONTRACT(the_events_that_have_odds_are_listed),
        CONTRACT(when_odds_were_published_is_told),
        CONTRACT(withdrawing_a_sport_takes_its_catalog_and_all_its_odds),
        CONTRACT(a_batch_is_published_as_one),
        CONTRACT(publications_keep_their_order),
        CONTRACT(publications_may_have_many_changes),
        CONTRACT(publishing_nothing_is_fine),
        CONTRACT(a_version_moves_with_every_publication),
        CONTRACT(a_version_stays_while_others_change),
        CONTRACT(the_stamp_moves_when_something_may_have_changed),
        CONTRACT(the_versions_of_an_event_are_told),
        CONTRACT(another_process_is_seen_at_once),
        CONTRACT(what_was_published_outlives_the_handle),
        CONTRACT(threads_publish_while_others_read),
        CONTRACT(a_part_of_the_catalog_comes_with_the_odds),
        CONTRACT(a_part_of_the_catalog_is_of_the_moment_of_the_odds),
        CONTRACT(facts_tell_the_last_publication_of_each_sport),
        CONTRACT(a_store_that_works_answers_a_ping),
        CONTRACT(what_has_changed_is_told),
        CONTRACT(interest_is_listed_latest_first),
        CONTRACT(interest_in_one_event_is_written_once_a_second),
        CONTRACT(more_interest_than_fits_is_dropped_and_counted),
        CONTRACT(interest_does_not_move_the_stamp),
        CONTRACT(interest_noted_before_closing_is_written),
        CONTRACT(a_budget_is_drawn_to_the_last_in_a_few_leases),
        CONTRACT(a_lease_covers_those_who_wait_if_it_can),
        CONTRACT(handles_that_draw_at_once_never_exceed_the_budget),
        CONTRACT(budgets_of_clients_are_kept_apart),
        CONTRACT(the_next_window_of_the_store_has_a_budget_of_its_own),
        CONTRACT(a_changed_limit_counts_what_was_drawn),
        CONTRACT(a_window_made_longer_keeps_what_was_drawn),
        CONTRACT(what_a_server_knows_is_counted_in_that_window_alone),
        cmocka_unit_test(an_unknown_uri_is_refused_by_both_ways_of_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
