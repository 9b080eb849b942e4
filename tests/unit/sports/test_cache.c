/* sports/cache: fresh answers, made once; deferred, answered, or refused. */
#include <unistd.h>

#include "fakes.h"
#include "sports/shared.h"
#include "sports/sports.h"
#include "tests.h"

struct world {
    struct odds_store *store;
    struct work_pool *pool;
    struct log *log;
    int log_file;
    struct sports *sports;
    struct fake_thread thread;
};

static int set_up_with(void **state, size_t queue_limit)
{
    struct world *world = memory_alloc_zeroed(1, sizeof *world);
    char path[] = "/tmp/croupier-test-cache-XXXXXX";
    world->log_file = mkstemp(path);
    CHECK(world->log_file >= 0 && unlink(path) == 0);
    world->log = log_create(world->log_file, LOG_INFO, LOG_FORMAT_TEXT);
    world->store = fake_store_create();
    world->pool = work_pool_create("test", 2, queue_limit);
    world->sports = sports_create(world->store, 250, world->pool, world->log);
    fake_thread_init(&world->thread, world->sports);
    *state = world;
    return 0;
}

static int set_up(void **state)
{
    return set_up_with(state, 100);
}

static int tear_down(void **state)
{
    struct world *world = *state;
    if (world->thread.cache != NULL)
        fake_thread_free(&world->thread);
    sports_drain(world->sports); /* a job that has answered may not be over */
    work_pool_destroy(&world->pool);
    sports_destroy(&world->sports);
    fake_store_destroy(world->store);
    log_destroy(&world->log);
    (void)close(world->log_file);
    memory_free(world);
    return 0;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* `event` NULL: the list. */
static void ask(struct world *world, struct fake_request *request, const char *event)
{
    if (event == NULL)
        sports_route(world->thread.cache, &request->request, SPORT_SET_ALL,
                     (const struct text[]){TEXT("tennis"), TEXT("")});
    else
        sports_route(world->thread.cache, &request->request, SPORT_SET_ALL,
                     (const struct text[]){TEXT("tennis"), text_of(event)});
}

/* Asks, waits, and gives what came: FAKE_SENT or an error. */
static const char *outcome_of(struct world *world, const char *event)
{
    struct fake_request request;
    fake_request_init(&request, NULL, NULL);
    ask(world, &request, event);
    fake_wait(&world->thread, &request);
    const char *outcome = request.outcome;
    fake_request_free(&request);
    return outcome;
}

/* The message that is sent now; borrowed from what is held ready. */
static struct http_message *message_of(struct world *world, const char *event,
                                       const char *accept_encoding)
{
    struct fake_request request;
    fake_request_init(&request, accept_encoding, NULL);
    ask(world, &request, event);
    fake_wait(&world->thread, &request);
    assert_string_equal(request.outcome, FAKE_SENT);
    struct http_message *message = request.message;
    fake_request_free(&request);
    return message;
}

static void assert_body(struct world *world, const char *event, const char *body)
{
    struct http_message *message = message_of(world, event, NULL);
    if (!text_equals((struct text){message->body, message->body_size}, text_of(body)))
        fail_msg("%.*s\nis not %s", (int)message->body_size, message->body, body);
}

static uint64_t counted(struct world *world, size_t counter)
{
    return atomic_load(&world->thread.counters[counter]);
}

static size_t log_lines(struct world *world)
{
    char bytes[8192];
    assert_true(log_flush(world->log));
    ssize_t size = pread(world->log_file, bytes, sizeof bytes, 0);
    size_t lines = 0;
    for (ssize_t i = 0; i < size; i++)
        lines += bytes[i] == '\n';
    return lines;
}

#define BODY(odds) "{\"sport\":\"tennis\",\"event_id\":7,\"event\":{\"gmid\":7},\"odds\":" odds "}"

static void publish_match(struct world *world)
{
    fake_publish(world->store, SPORT_TENNIS, NULL, "[{\"gmid\":7}, {\"gmid\":8}]");
    fake_publish(world->store, SPORT_TENNIS, "7", "[{\"price\":1.80, \"tv\":1}]");
}

/* ---- answers --------------------------------------------------------------------------------- */

TEST_OF(world, a_catalog_is_made_once_and_then_sent_from_memory)
{
    publish_match(world);
    assert_body(world, NULL, "[{\"gmid\":7},{\"gmid\":8}]");
    for (int i = 0; i < 10; i++)
        assert_body(world, NULL, "[{\"gmid\":7},{\"gmid\":8}]");
    assert_int_equal(atomic_load(&world->store->catalog_reads), 1);
    assert_int_equal(atomic_load(&world->store->odds_reads), 0);
    assert_int_equal(counted(world, SPORTS_READY_HITS), 10);
    assert_int_equal(counted(world, SPORTS_READY_MISSES), 1);
    fake_publish(world->store, SPORT_TENNIS, NULL, "[]");
    assert_body(world, NULL, "[]");
    assert_int_equal(atomic_load(&world->store->catalog_reads), 2);
}

TEST_OF(world, an_event_is_made_once_and_then_sent_from_memory)
{
    publish_match(world);
    assert_body(world, "7", BODY("[{\"price\":1.80}]"));
    struct http_message *first = message_of(world, "7", NULL);
    unsigned looks = atomic_load(&world->store->looks);
    for (int i = 0; i < 10; i++)
        assert_ptr_equal(message_of(world, "0007", NULL), first);
    assert_int_equal(atomic_load(&world->store->looks), looks); /* the stamp was enough */
    assert_int_equal(atomic_load(&world->store->odds_reads), 1);
    assert_int_equal(counted(world, SPORTS_READY_MISSES), 1);
    assert_int_equal(counted(world, SPORTS_READY_HITS), 11);
}

TEST_OF(world, what_changes_elsewhere_rebuilds_nothing)
{
    publish_match(world);
    struct http_message *first = message_of(world, "7", NULL);
    fake_move_stamp(world->store);
    fake_publish(world->store, SPORT_TENNIS, "8", "[]");
    fake_publish(world->store, SPORT_CRICKET, NULL, "[]");
    assert_ptr_equal(message_of(world, "7", NULL), first);
    assert_int_equal(atomic_load(&world->store->odds_reads), 1);
    assert_int_equal(atomic_load(&world->store->catalog_reads), 1);
}

TEST_OF(world, new_odds_are_in_the_next_answer)
{
    publish_match(world);
    for (int i = 0; i < 20; i++) {
        struct buffer odds = {0};
        struct buffer body = {0};
        buffer_append_format(&odds, "[{\"n\":%d}]", i);
        buffer_append_format(&body, BODY("%s"), buffer_string(&odds));
        fake_publish(world->store, SPORT_TENNIS, "7", buffer_string(&odds));
        assert_body(world, "7", buffer_string(&body));
        buffer_free(&odds);
        buffer_free(&body);
    }
    fake_publish(world->store, SPORT_TENNIS, "7", "[]");
    assert_body(world, "7", BODY("[]"));
}

TEST_OF(world, the_same_odds_again_are_the_same_answer)
{
    publish_match(world);
    struct http_message *plain = message_of(world, "7", NULL);
    publish_match(world);
    assert_ptr_equal(message_of(world, "7", NULL), plain);
    assert_int_equal(counted(world, SPORTS_READY_REBUILDS), 3); /* two catalogs, one event */
}

TEST_OF(world, a_new_catalog_with_the_same_row_keeps_the_answer)
{
    publish_match(world);
    struct http_message *first = message_of(world, "7", NULL);
    fake_publish(world->store, SPORT_TENNIS, NULL, "[{\"gmid\":9},{\"gmid\":7}]");
    assert_ptr_equal(message_of(world, "7", NULL), first);
    assert_int_equal(atomic_load(&world->store->odds_reads), 1);
    assert_int_equal(atomic_load(&world->store->catalog_reads), 2);
    fake_publish(world->store, SPORT_TENNIS, NULL, "[{\"gmid\":7,\"status\":\"OPEN\"}]");
    assert_body(world, "7",
                "{\"sport\":\"tennis\",\"event_id\":7,\"event\":{\"gmid\":7,\"status\":\"OPEN\"},"
                "\"odds\":[{\"price\":1.80}]}");
}

TEST_OF(world, a_second_desk_finds_what_the_first_had_made)
{
    struct fake_thread second;
    struct fake_request request;
    publish_match(world);
    struct http_message *first = message_of(world, "7", NULL);
    fake_thread_init(&second, world->sports);
    fake_request_init(&request, NULL, NULL);
    sports_route(second.cache, &request.request, SPORT_SET_ALL,
                 (const struct text[]){TEXT("tennis"), TEXT("7")});
    assert_string_equal(request.outcome, FAKE_SENT); /* at once */
    assert_ptr_equal(request.message, first);
    fake_request_free(&request);
    fake_thread_free(&second);
}

TEST_OF(world, a_known_tag_is_answered_304)
{
    struct fake_request request;
    publish_match(world);
    (void)message_of(world, "7", NULL);
    fake_request_init(&request, NULL, "*");
    ask(world, &request, "7");
    assert_string_equal(request.outcome, FAKE_SENT);
    assert_int_equal(request.message->status, 304);
    fake_request_free(&request);
}

/* ---- gzip ------------------------------------------------------------------------------------ */

static void publish_large(struct world *world, unsigned number)
{
    struct buffer odds = {0};
    buffer_append_format(&odds, "[{\"n\":%u}", number);
    for (int i = 0; i < 200; i++)
        buffer_append_string(&odds, ",{\"price\":1.80}");
    buffer_append_char(&odds, ']');
    fake_publish(world->store, SPORT_TENNIS, NULL, "[{\"gmid\":7},{\"gmid\":8}]");
    fake_publish(world->store, SPORT_TENNIS, "7", buffer_string(&odds));
    buffer_free(&odds);
}

static bool is_gzip(const struct http_message *message)
{
    return message->body_size > 2 && memcmp(message->body, "\x1F\x8B", 2) == 0;
}

TEST_OF(world, gzip_is_made_once_when_it_is_first_asked_for)
{
    publish_large(world, 1);
    assert_false(is_gzip(message_of(world, "7", NULL)));
    assert_int_equal(counted(world, SPORTS_GZIP_REBUILDS), 0);
    struct http_message *gzip = message_of(world, "7", "gzip");
    assert_true(is_gzip(gzip));
    for (int i = 0; i < 5; i++)
        assert_ptr_equal(message_of(world, "7", "gzip"), gzip);
    assert_int_equal(counted(world, SPORTS_GZIP_REBUILDS), 1);
    assert_int_equal(atomic_load(&world->store->odds_reads), 1);
}

TEST_OF(world, gzip_comes_with_the_rebuild_where_it_was_wanted_before)
{
    publish_large(world, 1);
    assert_true(is_gzip(message_of(world, "7", "gzip")));
    publish_large(world, 2);
    assert_false(is_gzip(message_of(world, "7", NULL)));
    assert_int_equal(counted(world, SPORTS_GZIP_REBUILDS), 2);
    struct fake_request request;
    fake_request_init(&request, "gzip", NULL);
    ask(world, &request, "7");
    assert_string_equal(request.outcome, FAKE_SENT); /* at once */
    assert_true(is_gzip(request.message));
    fake_request_free(&request);
}

TEST_OF(world, a_list_is_gzipped_too)
{
    struct buffer catalog = {0};
    for (unsigned round = 0; round < 3; round++) {
        buffer_clear(&catalog);
        buffer_append_format(&catalog, "[{\"gmid\":1,\"round\":%u}", round);
        for (int i = 2; i < 200; i++)
            buffer_append_format(&catalog, ",{\"gmid\":%d}", i);
        buffer_append_char(&catalog, ']');
        fake_publish(world->store, SPORT_TENNIS, NULL, buffer_string(&catalog));
        assert_true(is_gzip(message_of(world, NULL, "gzip")));
        assert_body(world, NULL, buffer_string(&catalog));
    }
    assert_int_equal(counted(world, SPORTS_GZIP_REBUILDS), 3);
    buffer_free(&catalog);
}

/* ---- what is not there ----------------------------------------------------------------------- */

TEST_OF(world, a_catalog_that_was_never_published_is_unavailable)
{
    assert_string_equal(outcome_of(world, NULL), "catalog_unavailable");
    assert_string_equal(outcome_of(world, "7"), "catalog_unavailable");
    assert_int_equal(atomic_load(&world->store->catalog_reads), 0);
    publish_match(world);
    assert_string_equal(outcome_of(world, "7"), FAKE_SENT);
    fake_publish(world->store, SPORT_TENNIS, NULL, NULL);
    assert_string_equal(outcome_of(world, NULL), "catalog_unavailable");
    assert_string_equal(outcome_of(world, "7"), "catalog_unavailable");
}

TEST_OF(world, an_unknown_event_is_not_found_and_leaves_no_trace)
{
    publish_match(world);
    assert_string_equal(outcome_of(world, "7"), FAKE_SENT);
    struct sports_facts before;
    struct sports_facts after;
    sports_facts(world->sports, &before);
    unsigned notes = atomic_load(&world->store->notes);
    for (int i = 100; i < 1100; i++) {
        char id[16];
        (void)snprintf(id, sizeof id, "%d", i);
        assert_string_equal(outcome_of(world, id), "event_not_found");
    }
    sports_facts(world->sports, &after);
    assert_int_equal(before.answers, after.answers);
    assert_int_equal(before.bytes, after.bytes);
    assert_int_equal(atomic_load(&world->store->notes), notes);
    assert_int_equal(atomic_load(&world->store->odds_reads), 1);
    assert_int_equal(world->sports->events.count, 1);
    fake_publish(world->store, SPORT_TENNIS, NULL, "[{\"gmid\":8}]");
    assert_string_equal(outcome_of(world, "7"), "event_not_found");
}

TEST_OF(world, missing_odds_are_not_found_without_a_read_and_noted_all_the_same)
{
    publish_match(world);
    for (int i = 0; i < 5; i++)
        assert_string_equal(outcome_of(world, "8"), "odds_not_found");
    assert_int_equal(atomic_load(&world->store->odds_reads), 0);
    assert_int_equal(atomic_load(&world->store->notes), 1);
    fake_publish(world->store, SPORT_TENNIS, "8", "[]");
    assert_string_equal(outcome_of(world, "8"), FAKE_SENT);
    fake_publish(world->store, SPORT_TENNIS, "8", NULL);
    assert_string_equal(outcome_of(world, "8"), "odds_not_found");
}

TEST_OF(world, a_malformed_catalog_is_refused_and_logged_once)
{
    publish_match(world);
    fake_publish(world->store, SPORT_TENNIS, NULL, "[{\"gmid\":7},]");
    for (int i = 0; i < 5; i++) {
        assert_string_equal(outcome_of(world, NULL), "malformed_upstream_data");
        assert_string_equal(outcome_of(world, "7"), "malformed_upstream_data");
        fake_move_stamp(world->store);
    }
    assert_int_equal(atomic_load(&world->store->catalog_reads), 1);
    assert_int_equal(log_lines(world), 1);
    assert_int_equal(counted(world, SPORTS_ODDS_MALFORMED), 10);
    publish_match(world);
    assert_string_equal(outcome_of(world, "7"), FAKE_SENT);
}

TEST_OF(world, malformed_odds_are_refused_for_that_event_alone_and_logged_once)
{
    publish_match(world);
    fake_publish(world->store, SPORT_TENNIS, "8", "{\"not\":\"an array\"}");
    for (int i = 0; i < 5; i++) {
        assert_string_equal(outcome_of(world, "8"), "malformed_upstream_data");
        assert_string_equal(outcome_of(world, "7"), FAKE_SENT);
        fake_move_stamp(world->store);
    }
    assert_int_equal(atomic_load(&world->store->odds_reads), 2);
    assert_int_equal(log_lines(world), 1);
    fake_publish(world->store, SPORT_TENNIS, "8", "[]");
    assert_string_equal(outcome_of(world, "8"), FAKE_SENT);
}

TEST_OF(world, a_damaged_value_is_refused_and_logged_once)
{
    publish_match(world);
    assert_string_equal(outcome_of(world, NULL), FAKE_SENT);
    world->store->read_status = STATUS_MALFORMED;
    for (int i = 0; i < 5; i++) {
        assert_string_equal(outcome_of(world, "7"), "malformed_upstream_data");
        fake_move_stamp(world->store);
    }
    assert_int_equal(atomic_load(&world->store->odds_reads), 1);
    assert_int_equal(log_lines(world), 1);
    world->store->read_status = STATUS_OK;
    publish_match(world);
    assert_string_equal(outcome_of(world, "7"), FAKE_SENT);
}

/* ---- a store that fails ---------------------------------------------------------------------- */

TEST_OF(world, a_store_that_is_away_is_said_so_at_once_whatever_is_ready)
{
    publish_match(world);
    assert_string_equal(outcome_of(world, "7"), FAKE_SENT);
    assert_string_equal(outcome_of(world, NULL), FAKE_SENT);
    atomic_store(&world->store->status, STATUS_UNAVAILABLE);
    assert_string_equal(outcome_of(world, "7"), "cache_unavailable");
    assert_string_equal(outcome_of(world, NULL), "cache_unavailable");
    assert_int_equal(counted(world, SPORTS_ODDS_UNAVAILABLE), 2);
    atomic_store(&world->store->status, STATUS_TIMEOUT);
    assert_string_equal(outcome_of(world, "7"), "cache_timeout");
    assert_int_equal(counted(world, SPORTS_ODDS_TIMEOUT), 1);
    atomic_store(&world->store->status, STATUS_OK);
    assert_string_equal(outcome_of(world, "7"), FAKE_SENT);
}

TEST_OF(world, a_read_that_fails_fails_its_waiters_and_no_others)
{
    publish_match(world);
    world->store->read_status = STATUS_UNAVAILABLE;
    assert_string_equal(outcome_of(world, "7"), "cache_unavailable");
    world->store->read_status = STATUS_TIMEOUT;
    assert_string_equal(outcome_of(world, NULL), "cache_timeout");
    world->store->read_status = STATUS_OK;
    assert_string_equal(outcome_of(world, "7"), FAKE_SENT);
}

TEST_OF(world, a_request_waits_two_seconds_at_most_for_a_fast_store)
{
    publish_match(world);
    fake_gate(world->store, true);
    assert_string_equal(outcome_of(world, "7"), "cache_timeout");
    fake_gate(world->store, false);
    assert_string_equal(outcome_of(world, "7"), FAKE_SENT);
}

static int set_up_with_a_short_queue(void **state)
{
    return set_up_with(state, 1);
}

TEST_OF_WITH(world, a_full_queue_is_an_overload_at_once, set_up_with_a_short_queue, tear_down)
{
    static const char *const sports[] = {"tennis", "cricket", "football", "horse-racing",
                                         "greyhound-racing"};
    struct fake_request requests[SPORT_COUNT];
    for (int i = 0; i < SPORT_COUNT; i++)
        fake_publish(world->store, (enum sport)i, NULL, "[]");
    fake_gate(world->store, true);
    int overloaded = 0;
    for (int i = 0; i < SPORT_COUNT;
         i++) { /* two run or wait to, one is queued: two are too many */
        fake_request_init(&requests[i], NULL, NULL);
        sports_route(world->thread.cache, &requests[i].request, SPORT_SET_ALL,
                     (const struct text[]){text_of(sports[i]), TEXT("")});
        overloaded += strcmp(requests[i].outcome, "overloaded") == 0;
    }
    assert_true(overloaded >= 2);
    fake_gate(world->store, false);
    for (int i = 0; i < SPORT_COUNT; i++) {
        fake_wait(&world->thread, &requests[i]);
        fake_request_free(&requests[i]);
    }
}

/* ---- waiting together ------------------------------------------------------------------------ */

TEST_OF(world, requests_that_come_together_share_one_read)
{
    struct fake_request requests[100];
    publish_match(world);
    assert_string_equal(outcome_of(world, NULL), FAKE_SENT);
    fake_gate(world->store, true);
    for (int i = 0; i < 100; i++) {
        fake_request_init(&requests[i], NULL, NULL);
        ask(world, &requests[i], "7");
        assert_string_equal(requests[i].outcome, FAKE_OPEN);
    }
    fake_gate(world->store, false);
    for (int i = 0; i < 100; i++) {
        fake_wait(&world->thread, &requests[i]);
        assert_string_equal(requests[i].outcome, FAKE_SENT);
        assert_ptr_equal(requests[i].message, requests[0].message);
    }
    for (int i = 0; i < 100; i++)
        fake_request_free(&requests[i]);
    assert_int_equal(atomic_load(&world->store->odds_reads), 1);
    assert_int_equal(counted(world, SPORTS_READY_MISSES), 101);
}

TEST_OF(world, no_one_is_handed_what_was_replaced_before_he_came)
{
    struct fake_request first;
    struct fake_request second;
    publish_match(world);
    assert_string_equal(outcome_of(world, NULL), FAKE_SENT);
    fake_gate(world->store, true);
    fake_request_init(&first, NULL, NULL);
    ask(world, &first, "7");
    while (atomic_load(&world->store->odds_reads) == 0) /* the old odds are in the job's hands */
        (void)usleep(1000);
    fake_publish(world->store, SPORT_TENNIS, "7", "[{\"new\":1}]");
    fake_request_init(&second, NULL, NULL);
    ask(world, &second, "7");
    fake_gate(world->store, false);
    fake_wait(&world->thread, &first);
    fake_wait(&world->thread, &second);
    assert_string_equal(second.outcome, FAKE_SENT);
    assert_true(text_equals((struct text){second.message->body, second.message->body_size},
                            TEXT(BODY("[{\"new\":1}]"))));
    fake_request_free(&first);
    fake_request_free(&second);
}

/* The feed publishes row and odds together, between our reading of the one and of the other. */
TEST_OF(world, a_row_and_its_odds_are_those_of_one_moment)
{
    for (unsigned asks = 0; asks < 2; asks++) {
        world->store->asks = asks == 1;
        for (unsigned moves = 1; moves < 6; moves++) {
            publish_match(world);
            unsigned before = atomic_load(&world->store->odds_reads);
            world->store->moving = moves;
            struct http_message *message = message_of(world, "7", NULL);
            unsigned reads = atomic_load(&world->store->odds_reads) - before;
            struct buffer body = {0};
            buffer_append_format(&body,
                                 "{\"sport\":\"tennis\",\"event_id\":7,\"event\":{\"gmid\":7,"
                                 "\"n\":%u},\"odds\":[{\"n\":%u}]}",
                                 world->store->moving + 1, world->store->moving + 1);
            assert_true(
                text_equals((struct text){message->body, message->body_size}, buffer_text(&body)));
            assert_in_range(reads, 2, 3); /* the third reads both at once */
            buffer_free(&body);
            world->store->moving = 0;
        }
    }
}

TEST_OF(world, an_event_that_leaves_the_catalog_while_it_is_read_is_not_found)
{
    struct fake_request request;
    publish_match(world);
    assert_string_equal(outcome_of(world, NULL), FAKE_SENT);
    fake_gate(world->store, true);
    fake_request_init(&request, NULL, NULL);
    ask(world, &request, "7");
    while (atomic_load(&world->store->odds_reads) == 0)
        (void)usleep(1000);
    fake_publish(world->store, SPORT_TENNIS, NULL, "[{\"gmid\":8}]");
    fake_gate(world->store, false);
    fake_wait(&world->thread, &request);
    assert_string_equal(request.outcome, FAKE_SENT); /* it was there when its odds were read */
    fake_request_free(&request);
    assert_string_equal(outcome_of(world, "7"), "event_not_found");
}

TEST_OF(world, a_client_that_goes_away_is_forgotten)
{
    struct fake_request gone;
    struct fake_request stays;
    publish_match(world);
    fake_gate(world->store, true);
    fake_request_init(&gone, NULL, NULL);
    fake_request_init(&stays, NULL, NULL);
    ask(world, &gone, "7");
    ask(world, &stays, "7");
    fake_abandon(&gone);
    fake_gate(world->store, false);
    fake_wait(&world->thread, &stays);
    assert_string_equal(stays.outcome, FAKE_SENT);
    assert_string_equal(gone.outcome, FAKE_OPEN);
    fake_request_free(&stays);
}

TEST_OF(world, a_desk_may_end_while_its_errands_are_out)
{
    struct fake_request gone;
    publish_match(world);
    fake_gate(world->store, true);
    fake_request_init(&gone, NULL, NULL);
    ask(world, &gone, "7");
    fake_abandon(&gone);
    fake_thread_free(&world->thread);
    fake_gate(world->store, false);
}

/* ---- an engine that has to ask --------------------------------------------------------------- */

TEST_OF(world, an_engine_that_must_ask_is_asked_for_each_request)
{
    world->store->asks = true;
    publish_match(world);
    assert_body(world, "7", BODY("[{\"price\":1.80}]"));
    struct http_message *first = message_of(world, "7", NULL);
    fake_publish(world->store, SPORT_TENNIS, "7", "[{\"price\":1.90}]");
    assert_body(world, "7", BODY("[{\"price\":1.90}]"));
    assert_ptr_not_equal(message_of(world, "7", NULL), first);
    assert_body(world, NULL, "[{\"gmid\":7},{\"gmid\":8}]");
    assert_string_equal(outcome_of(world, "8"), "odds_not_found");
    assert_string_equal(outcome_of(world, "9"), "event_not_found");
    fake_publish(world->store, SPORT_TENNIS, NULL, NULL);
    assert_string_equal(outcome_of(world, NULL), "catalog_unavailable");
    world->store->read_status = STATUS_TIMEOUT;
    assert_string_equal(outcome_of(world, "7"), "cache_timeout");
}

TEST_OF(world, an_event_needs_one_read_while_its_row_holds)
{
    world->store->asks = true;
    atomic_store(&world->store->status, STATUS_PENDING);
    publish_match(world);
    struct http_message *first = message_of(world, "7", NULL);
    for (int i = 0; i < 10; i++)
        assert_ptr_equal(message_of(world, "7", NULL), first);
    assert_int_equal(atomic_load(&world->store->catalog_reads), 1);
    assert_int_equal(atomic_load(&world->store->odds_reads), 11);
    assert_int_equal(counted(world, SPORTS_READY_REBUILDS), 2); /* the catalog, the event */
    /* The row stands elsewhere; then it is another. */
    fake_publish(world->store, SPORT_TENNIS, NULL, "[{\"gmid\":88}, {\"gmid\":7}]");
    assert_ptr_equal(message_of(world, "7", NULL), first);
    assert_int_equal(atomic_load(&world->store->catalog_reads), 2);
    fake_publish(world->store, SPORT_TENNIS, NULL, "[{\"gmid\":88}, {\"gmid\":7,\"a\":1}]");
    assert_ptr_not_equal(message_of(world, "7", NULL), first);
    fake_publish(world->store, SPORT_TENNIS, NULL, "[{\"gmid\":88}]");
    assert_string_equal(outcome_of(world, "7"), "event_not_found");
    fake_publish(world->store, SPORT_TENNIS, NULL, NULL);
    assert_string_equal(outcome_of(world, "88"), "catalog_unavailable");
}

/* Its read may have been answered before the request came. */
TEST_OF(world, a_read_that_began_before_a_request_does_not_answer_it)
{
    struct fake_request early, late;
    world->store->asks = true;
    atomic_store(&world->store->status, STATUS_PENDING);
    publish_match(world);
    (void)message_of(world, "7", NULL);
    fake_gate(world->store, true);
    fake_request_init(&early, NULL, NULL);
    fake_request_init(&late, NULL, NULL);
    ask(world, &early, "7");
    while (atomic_load(&world->store->odds_reads) < 2)
        (void)usleep(1000);
    fake_publish(world->store, SPORT_TENNIS, "7", "[]");
    ask(world, &late, "7");
    fake_gate(world->store, false);
    fake_wait(&world->thread, &early);
    fake_wait(&world->thread, &late);
    assert_int_equal(atomic_load(&world->store->odds_reads), 3);
    assert_true(text_equals((struct text){late.message->body, late.message->body_size},
                            text_of(BODY("[]"))));
    fake_request_free(&early);
    fake_request_free(&late);
}

static void note_delivery(struct mail *mail)
{
    ((struct completion *)(void *)mail)->mailbox = NULL;
}

static enum status catalog_made_here(struct world *world, struct completion *completion)
{
    *completion =
        (struct completion){.mail.deliver = note_delivery, .mailbox = world->thread.mailbox};
    const struct job job = {.kind = JOB_CATALOG,
                            .sport = SPORT_TENNIS,
                            .counters = world->thread.counters,
                            .expected = 1,
                            .here = true};
    return sports_want(world->sports, job, completion, 0);
}

TEST_OF(world, after_another_commit_the_versions_are_asked_for_once)
{
    publish_match(world);
    assert_body(world, "7", BODY("[{\"price\":1.80}]"));
    fake_move_stamp(world->store);
    unsigned looks = atomic_load(&world->store->looks);
    for (int i = 0; i < 3; i++)
        assert_body(world, "7", BODY("[{\"price\":1.80}]"));
    assert_int_equal(atomic_load(&world->store->looks), looks + 1);
    fake_publish(world->store, SPORT_TENNIS, "7", "[{\"price\":1.90}]");
    assert_body(world, "7", BODY("[{\"price\":1.90}]"));
    assert_int_equal(atomic_load(&world->store->odds_reads), 2);
    fake_publish(world->store, SPORT_TENNIS, NULL, "[]"); /* the odds are as they were */
    assert_string_equal(outcome_of(world, "7"), "event_not_found");
}

TEST_OF(world, a_job_may_run_on_the_thread_that_wants_it)
{
    struct completion completion;
    publish_match(world);
    assert_int_equal(catalog_made_here(world, &completion), STATUS_OK);
    struct entry *entry = sports_newest(world->sports, SPORT_TENNIS, NULL, 0);
    assert_non_null(entry); /* already, and no mail comes */
    assert_int_equal(completion.result, STATUS_OK);
    assert_null(completion.job);
    (void)uv_run(&world->thread.loop, UV_RUN_NOWAIT);
    assert_non_null(completion.mailbox);
    entry_release(&entry);
}

TEST_OF(world, a_job_that_must_ask_the_store_sends_mail_though_it_began_here)
{
    struct completion completion;
    publish_match(world);
    world->store->asks = true; /* the rest of the job is done where the answer comes in */
    fake_gate(world->store, true);
    assert_int_equal(catalog_made_here(world, &completion), STATUS_PENDING);
    assert_non_null(completion.mailbox);
    fake_gate(world->store, false);
    while (completion.mailbox != NULL)
        (void)uv_run(&world->thread.loop, UV_RUN_ONCE);
    assert_int_equal(completion.result, STATUS_OK);
}

/* The cache looks first at the event that it found last. */
TEST_OF(world, the_event_that_was_found_last_may_be_dropped)
{
    publish_match(world);
    assert_body(world, "7", BODY("[{\"price\":1.80}]"));
    assert_string_equal(outcome_of(world, "8"), "odds_not_found");
    assert_body(world, "7", BODY("[{\"price\":1.80}]"));
    fake_publish(world->store, SPORT_TENNIS, NULL, "[{\"gmid\":8}]");
    assert_string_equal(outcome_of(world, "7"), "event_not_found");
    fake_publish(world->store, SPORT_TENNIS, "8", "[]");
    assert_string_equal(outcome_of(world, "8"), FAKE_SENT);
    fake_publish(world->store, SPORT_TENNIS, NULL, "[{\"gmid\":7},{\"gmid\":8}]");
    assert_body(world, "7", BODY("[{\"price\":1.80}]"));
}

static void *open_gate_later(void *store)
{
    (void)usleep(50000);
    fake_gate(store, false);
    return NULL;
}

TEST_OF(world, the_end_waits_for_reads_that_no_one_waits_for)
{
    struct fake_request gone;
    pthread_t opener;
    world->store->asks = true;
    publish_match(world);
    fake_gate(world->store, true);
    fake_request_init(&gone, NULL, NULL);
    ask(world, &gone, "7");
    while (atomic_load(&world->store->catalog_reads) == 0)
        (void)usleep(1000);
    fake_abandon(&gone);
    assert_int_equal(pthread_create(&opener, NULL, open_gate_later, world->store), 0);
    sports_drain(world->sports);
    /* Nothing comes back to the pool any more. */
    work_pool_destroy(&world->pool);
    fake_thread_free(&world->thread);
    assert_int_equal(pthread_join(opener, NULL), 0);
    assert_int_equal(atomic_load(&world->store->odds_reads), 0);
}

/* ---- bounds and interest --------------------------------------------------------------------- */

static const char *outcome_at(struct world *world, const char *event, uint64_t ms)
{
    struct fake_request request;
    fake_request_init(&request, NULL, NULL);
    request.request.started_ns = ms * 1000000;
    ask(world, &request, event);
    fake_wait(&world->thread, &request);
    const char *outcome = request.outcome;
    fake_request_free(&request);
    return outcome;
}

TEST_OF(world, interest_is_noted_once_a_second_for_an_event)
{
    publish_match(world);
    for (uint64_t ms = 50000; ms < 53000; ms += 100)
        assert_string_equal(outcome_at(world, "7", ms), FAKE_SENT);
    assert_int_equal(atomic_load(&world->store->notes), 3);
    assert_string_equal(outcome_at(world, NULL, 53000), FAKE_SENT);
    assert_int_equal(atomic_load(&world->store->notes), 3);
}

TEST_OF(world, what_no_one_asks_for_is_let_go_after_a_minute)
{
    struct sports_facts alone;
    struct sports_facts both;
    struct sports_facts after;
    publish_match(world);
    fake_publish(world->store, SPORT_TENNIS, "8", "[]");
    assert_string_equal(outcome_at(world, "7", 50000), FAKE_SENT);
    sports_facts(world->sports, &alone);
    assert_string_equal(outcome_at(world, "8", 70000), FAKE_SENT);
    sports_facts(world->sports, &both);
    assert_int_equal(both.answers, alone.answers + 1);
    assert_true(both.bytes > alone.bytes);
    fake_publish(world->store, SPORT_TENNIS, NULL, "[{\"gmid\":7},{\"gmid\":8},{\"gmid\":9}]");
    fake_publish(world->store, SPORT_TENNIS, "9", "[]");
    assert_string_equal(outcome_at(world, "9", 111000), FAKE_SENT); /* 7 goes, 8 and 9 stay */
    sports_facts(world->sports, &after);
    assert_int_equal(after.answers, both.answers);
    assert_int_equal(world->sports->events.count, 2);
}

TEST_OF(world, an_event_that_is_asked_for_stays_though_it_never_changes)
{
    publish_match(world);
    for (uint64_t ms = 50000; ms < 250000; ms += 10000)
        assert_string_equal(outcome_at(world, "7", ms), FAKE_SENT);
    fake_publish(world->store, SPORT_TENNIS, "8", "[]");
    assert_string_equal(outcome_at(world, "8", 250000), FAKE_SENT);
    assert_int_equal(world->sports->events.count, 2);
}
