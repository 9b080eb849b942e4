/*
 * Several caches and a publisher at once: no answer is older than what was published before its
 * request came. Meant to be run under ThreadSanitizer as well.
 */
#include "fakes.h"
#include "sports/sports.h"
#include "tests.h"

#define DESKS 3
#define EVENTS 4
#define IN_FLIGHT 8

struct world {
    struct odds_store *store;
    struct work_pool *pool;
    struct sports *sports;
    atomic_uint published[EVENTS]; /* odds of this number are in the store, or newer ones */
    atomic_uint catalog;           /* the same of the catalog */
    unsigned publications;         /* to be made while the caches are asked */
    atomic_bool over;
};

struct request {
    struct fake_request fake; /* first */
    int event;                /* -1: the list */
    unsigned odds_before, catalog_before;
    bool abandoned;
};

struct desk_thread {
    struct world *world;
    uint32_t random;
    uint64_t answered;
    pthread_t thread;
};

static uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* ---- publishing ------------------------------------------------------------------------------ */

static void publish_odds(struct world *world, int event, unsigned number)
{
    char id[16];
    char odds[64];
    (void)snprintf(id, sizeof id, "%d", event + 1);
    (void)snprintf(odds, sizeof odds, "[{\"number\":%u}]", number);
    fake_publish(world->store, SPORT_FOOTBALL, id, odds);
    atomic_store(&world->published[event], number);
}

/* Every third catalog has other rows; the others only another order. */
static void publish_catalog(struct world *world, unsigned number)
{
    struct buffer catalog = {0};
    buffer_append_format(&catalog, "[{\"version\":%u}", number);
    for (int i = 0; i < EVENTS; i++)
        buffer_append_format(&catalog, ",{\"gmid\":%d,\"rows\":%u}", i + 1, number / 3);
    buffer_append_char(&catalog, ']');
    fake_publish(world->store, SPORT_FOOTBALL, NULL, buffer_string(&catalog));
    atomic_store(&world->catalog, number);
    buffer_free(&catalog);
}

static void *publish(void *argument)
{
    struct world *world = argument;
    uint32_t random = 77;
    for (unsigned number = 2; number < world->publications; number++) {
        publish_odds(world, (int)(next_random(&random) % EVENTS), number);
        if (next_random(&random) % 8 == 0)
            publish_catalog(world, number);
        struct timespec pause = {.tv_nsec = (long)(next_random(&random) % 300) * 1000};
        if (next_random(&random) % 4 != 0)
            (void)nanosleep(&pause, NULL);
    }
    atomic_store(&world->over, true);
    return NULL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static unsigned number_after(const struct http_message *message, const char *name)
{
    const char *at = memmem(message->body, message->body_size, name, strlen(name));
    CHECK(at != NULL);
    return (unsigned)strtoul(at + strlen(name), NULL, 10);
}

static void check_answer(struct desk_thread *cache, const struct request *request)
{
    const struct fake_request *fake = &request->fake;
    CHECK(strcmp(fake->outcome, FAKE_SENT) == 0);
    if (request->event < 0) {
        CHECK(number_after(fake->message, "\"version\":") >= request->catalog_before);
    } else {
        CHECK(number_after(fake->message, "\"number\":") >= request->odds_before);
        CHECK(number_after(fake->message, "\"rows\":") >= request->catalog_before / 3);
    }
    cache->answered++;
}

static void ask(struct desk_thread *cache, struct fake_thread *thread, struct request *request)
{
    fake_request_init(&request->fake, NULL, NULL);
    request->abandoned = false;
    request->event = (int)(next_random(&cache->random) % (EVENTS + 1)) - 1;
    request->catalog_before = atomic_load(&cache->world->catalog);
    if (request->event < 0) {
        sports_route(thread->cache, &request->fake.request, SPORT_SET_ALL,
                     (const struct text[]){TEXT("football"), TEXT("")});
        return;
    }
    char id[16];
    (void)snprintf(id, sizeof id, "%d", request->event + 1);
    request->odds_before = atomic_load(&cache->world->published[request->event]);
    sports_route(thread->cache, &request->fake.request, SPORT_SET_ALL,
                 (const struct text[]){TEXT("football"), text_of(id)});
}

static void *serve(void *argument)
{
    struct desk_thread *cache = argument;
    struct fake_thread thread;
    struct request requests[IN_FLIGHT];
    fake_thread_init(&thread, cache->world->sports);
    while (!atomic_load(&cache->world->over)) {
        for (int i = 0; i < IN_FLIGHT; i++) {
            ask(cache, &thread, &requests[i]);
            if (strcmp(requests[i].fake.outcome, FAKE_OPEN) == 0 &&
                next_random(&cache->random) % 16 == 0) {
                fake_abandon(&requests[i].fake);
                requests[i].abandoned = true;
            }
        }
        for (int i = 0; i < IN_FLIGHT; i++) {
            if (requests[i].abandoned)
                continue;
            fake_wait(&thread, &requests[i].fake);
            check_answer(cache, &requests[i]);
            fake_request_free(&requests[i].fake);
        }
    }
    fake_thread_free(&thread);
    return NULL;
}

static void run(bool asks, enum status stamp, unsigned publications)
{
    struct world world = {.store = fake_store_create(),
                          .pool = work_pool_create("test", 2, 100),
                          .publications = publications};
    world.store->asks = asks;
    atomic_store(&world.store->status, stamp);
    struct desk_thread caches[DESKS];
    pthread_t publisher;
    world.sports = sports_create(world.store, 250, world.pool, NULL);
    for (int i = 0; i < EVENTS; i++)
        publish_odds(&world, i, 1);
    publish_catalog(&world, 1);
    assert_int_equal(pthread_create(&publisher, NULL, publish, &world), 0);
    for (int i = 0; i < DESKS; i++) {
        caches[i] = (struct desk_thread){.world = &world, .random = 1000 + (uint32_t)i};
        assert_int_equal(pthread_create(&caches[i].thread, NULL, serve, &caches[i]), 0);
    }
    assert_int_equal(pthread_join(publisher, NULL), 0);
    for (int i = 0; i < DESKS; i++) {
        assert_int_equal(pthread_join(caches[i].thread, NULL), 0);
        assert_true(caches[i].answered > 0);
    }
    sports_drain(world.sports);
    work_pool_destroy(&world.pool);
    sports_destroy(&world.sports); /* checks that nothing is held any more */
    fake_store_destroy(world.store);
}

TEST(no_answer_is_older_than_its_request)
{
    run(false, STATUS_OK, 3000);
}

TEST(nor_with_an_engine_that_must_ask)
{
    run(true, STATUS_OK, 300);
}

TEST(nor_with_a_store_that_reports_no_changes)
{
    run(true, STATUS_PENDING, 300);
}
