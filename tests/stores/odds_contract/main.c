/*
 * What every engine of the odds store has to do, written against odds_store.h alone.
 *
 *     odds_contract ENGINE          one run of the suite; meson runs it once an engine
 *     odds_contract --publish URI PREFIX SPORT EVENT BYTES      the other process of some tests
 *
 * An engine is one row of `factories`: how to make a fresh, empty store and its URI, and what it
 * does not promise. A server is one that somebody else has started; its URI is in the environment.
 */
#include "contract.h"

#include <errno.h>
#include <ftw.h>
#include <semaphore.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/memory.h"
#include "feed/publication.h"

#define STAMP_WITHIN_MS 10000

extern char **environ;

/* ---- engines --------------------------------------------------------------------------------- */

static void embedded_make(struct fixture *fixture)
{
    test_directory_make(fixture->directory);
    (void)snprintf(fixture->uri, sizeof fixture->uri, "embedded:%s/store", fixture->directory);
}

static int remove_entry(const char *path, const struct stat *stat, int type, struct FTW *walk)
{
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

static void redis_asking_make(struct fixture *fixture)
{
    server_make(fixture, "TEST_REDIS_ASKING_URI");
}

static void redis_resp2_make(struct fixture *fixture)
{
    server_make(fixture, "TEST_REDIS_RESP2_URI");
}

static void sentinel_make(struct fixture *fixture)
{
    server_make(fixture, "TEST_SENTINEL_URI");
}

/* All keys of a store are in one slot. */
static void cluster_make(struct fixture *fixture)
{
    static unsigned fixtures;
    server_make(fixture, "TEST_CLUSTER_URI");
    (void)snprintf(fixture->prefix, sizeof fixture->prefix, "{contract-%d*%u}:", (int)getpid(),
                   fixtures++);
}

static void server_remove(struct fixture *fixture)
{
    (void)fixture; /* the server goes as a whole */
}

static const struct factory factories[] = {
    {"embedded", embedded_make, embedded_remove, true, 0, false},
    {"redis", redis_make, server_remove, false, 60000, false},
    {"redis_tcp", redis_tcp_make, server_remove, false, 60000, false},
    {"redis_asking", redis_asking_make, server_remove, false, 0, true},
    {"redis_resp2", redis_resp2_make, server_remove, false, 0, true},
    {"sentinel", sentinel_make, server_remove, false, 60000, false},
    {"cluster", cluster_make, server_remove, false, 60000, false},
};
const struct factory *engine;

/* ---- helpers --------------------------------------------------------------------------------- */

struct odds_store *open_within(const struct fixture *fixture, bool create, uint32_t timeout_ms)
{
    struct odds_store_options options = {
        .uri = fixture->uri, .timeout_ms = timeout_ms, .prefix = fixture->prefix, .create = create};
    struct odds_store *store = NULL;
    struct error error = {{0}};
    if (odds_store_open(&store, &options, &error) != STATUS_OK)
        fail_msg("%s", error.text);
    return store;
}

struct odds_store *open_store(const struct fixture *fixture, bool create)
{
    return open_within(fixture, create, 20000);
}

int set_up(void **state)
{
    struct fixture *fixture = memory_alloc_zeroed(1, sizeof *fixture);
    engine->make(fixture);
    fixture->store = open_store(fixture, true);
    *state = fixture;
    return 0;
}

int tear_down(void **state)
{
    struct fixture *fixture = *state;
    odds_store_close(&fixture->store);
    engine->remove(fixture);
    memory_free(fixture);
    return 0;
}

struct event_id event_of(const char *digits)
{
    struct event_id event;
    assert_int_equal(event_id_parse(text_of(digits), &event), STATUS_OK);
    return event;
}

struct odds_change catalog_change(enum sport sport, const char *bytes)
{
    return (struct odds_change){.kind = ODDS_CATALOG,
                                .sport = sport,
                                .bytes = bytes,
                                .size = bytes != NULL ? strlen(bytes) : 0};
}

struct odds_change odds_change(enum sport sport, const char *event, const char *bytes)
{
    return (struct odds_change){.kind = ODDS_MARKETS,
                                .sport = sport,
                                .event = event_of(event),
                                .bytes = bytes,
                                .size = bytes != NULL ? strlen(bytes) : 0};
}

void publish(struct odds_store *store, const struct odds_change *changes, size_t count)
{
    struct error error = {{0}};
    if (odds_store_publish(store, changes, count, &error) != STATUS_OK)
        fail_msg("%s", error.text);
}

void publish_one(struct odds_store *store, struct odds_change change)
{
    publish(store, &change, 1);
}

static void on_read(struct odds_read *read)
{
    assert_int_equal(sem_post(&((struct waiting_read *)(void *)read)->done), 0);
}

/* The status of a read that is over. */
enum status wait_for(struct odds_store *store, struct waiting_read *waiting)
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

enum status read_value(struct odds_store *store, enum odds_kind kind, enum sport sport,
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

uint64_t version_of(struct odds_store *store, enum odds_kind kind, enum sport sport,
                    const char *event)
{
    struct odds_value value = {0};
    assert_int_equal(read_value(store, kind, sport, event, &value), STATUS_OK);
    memory_free(value.bytes);
    return value.version;
}

void assert_stored(struct odds_store *store, enum odds_kind kind, enum sport sport,
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

void assert_not_stored(struct odds_store *store, enum odds_kind kind, enum sport sport,
                       const char *event)
{
    struct odds_value value = {.version = 7};
    assert_int_equal(read_value(store, kind, sport, event, &value), STATUS_OK);
    assert_true(value.version == 0);
    assert_null(value.bytes);
}

uint64_t stamp_of(struct odds_store *store)
{
    uint64_t stamp = 0, until_ms = clock_monotonic_ms() + STAMP_WITHIN_MS;
    assert_true(odds_store_asks(store) == engine->asks);
    enum status status = odds_store_stamp(store, &stamp);
    /* On a busy machine the answer that confirms the stamp may be late. */
    while (!engine->asks && status == STATUS_PENDING && clock_monotonic_ms() < until_ms) {
        clock_pause_ns(1000000);
        status = odds_store_stamp(store, &stamp);
    }
    assert_int_equal(status, engine->asks ? STATUS_PENDING : STATUS_OK);
    return stamp;
}

void assert_stamp(struct odds_store *store, uint64_t before, bool moved)
{
    uint64_t after = stamp_of(store);
    assert_true(engine->asks || (after != before) == moved);
}

void publish_in_another_process(const struct fixture *fixture, const char *sport, const char *event,
                                const char *bytes)
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
        .uri = arguments[2], .timeout_ms = 20000, .prefix = arguments[3]};
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

void withdraw_sport(struct odds_store *store, enum sport sport)
{
    struct feed_publication withdrawal = {0};
    struct error error = {{0}};
    assert_int_equal(feed_publication_withdraw_sport(&withdrawal, store, sport, &error), STATUS_OK);
    assert_int_equal(odds_store_publish(store, withdrawal.changes, withdrawal.count, &error),
                     STATUS_OK);
    feed_publication_free(&withdrawal);
}

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
    return tests_run();
}
