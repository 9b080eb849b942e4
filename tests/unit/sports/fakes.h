#pragma once

/*
 * What a cache stands between, for its tests: an odds store in memory that can be told how to
 * behave, requests that keep what they were replied, and counters. These definitions take the place
 * of the library's at link time, so a program includes this file once.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "http/http.h"
#include "metrics/metrics.h"
#include "sports/sports.h"
#include "stores/odds_read.h"

/* ---- the store ------------------------------------------------------------------------------- */

#define FAKE_VALUES 64

struct fake_value {
    bool used;
    enum odds_kind kind;
    enum sport sport;
    struct event_id event;
    uint64_t version; /* 0: withdrawn */
    char *bytes;
};

struct odds_store {
    pthread_mutex_t lock; /* guards all but the atomics */
    pthread_cond_t gate_opens;
    struct fake_value values[FAKE_VALUES];
    uint64_t next_version;
    bool gate_closed; /* reads wait, after they have read */
    bool asks;        /* an engine that cannot tell in place: everything is PENDING */
    size_t asking;    /* threads that are asking for it */
    unsigned moving;  /* so often catalog and odds are published again when odds are asked for */
    enum status read_status;
    struct odds_watch *watch;
    atomic_uint_fast64_t stamp;
    atomic_int status; /* of stamp and versions */
    atomic_uint catalog_reads, odds_reads, notes, looks;
};

static struct odds_store *fake_store_create(void)
{
    struct odds_store *store = memory_alloc_zeroed(1, sizeof *store);
    CHECK(pthread_mutex_init(&store->lock, NULL) == 0);
    CHECK(pthread_cond_init(&store->gate_opens, NULL) == 0);
    atomic_store(&store->stamp, 1);
    return store;
}

static void fake_store_destroy(struct odds_store *store)
{
    CHECK(pthread_mutex_lock(&store->lock) == 0);
    while (store->asking > 0)
        CHECK(pthread_cond_wait(&store->gate_opens, &store->lock) == 0);
    CHECK(pthread_mutex_unlock(&store->lock) == 0);
    for (size_t i = 0; i < FAKE_VALUES; i++)
        memory_free(store->values[i].bytes);
    CHECK(pthread_cond_destroy(&store->gate_opens) == 0);
    CHECK(pthread_mutex_destroy(&store->lock) == 0);
    memory_free(store);
}

static struct fake_value *fake_find(struct odds_store *store, enum odds_kind kind, enum sport sport,
                                    const struct event_id *event)
{
    for (size_t i = 0; i < FAKE_VALUES; i++) {
        struct fake_value *value = &store->values[i];
        if (!value->used) {
            value->used = true;
            value->kind = kind;
            value->sport = sport;
            if (event != NULL)
                value->event = *event;
            return value;
        }
        if (value->kind == kind && value->sport == sport &&
            (kind == ODDS_CATALOG || event_id_equals(&value->event, event)))
            return value;
    }
    abort(); /* not enough values for the tests */
}

/* The lock is held. */
static void fake_put(struct odds_store *store, enum sport sport, const struct event_id *event,
                     const char *bytes)
{
    struct fake_value *value =
        fake_find(store, event == NULL ? ODDS_CATALOG : ODDS_MARKETS, sport, event);
    memory_free(value->bytes);
    value->bytes = bytes == NULL ? NULL : memory_copy_string(bytes);
    value->version = bytes == NULL ? 0 : ++store->next_version;
    atomic_fetch_add(&store->stamp, 1);
}

/* NULL withdraws. `event` NULL: the catalog. */
static void fake_publish(struct odds_store *store, enum sport sport, const char *event,
                         const char *bytes)
{
    struct event_id id;
    if (event != NULL)
        CHECK(event_id_parse(text_of(event), &id) == STATUS_OK);
    CHECK(pthread_mutex_lock(&store->lock) == 0);
    fake_put(store, sport, event == NULL ? NULL : &id, bytes);
    CHECK(pthread_mutex_unlock(&store->lock) == 0);
}

/* Something that has nothing to do with the tests' values changes. */
__attribute__((unused)) static void fake_move_stamp(struct odds_store *store)
{
    atomic_fetch_add(&store->stamp, 1);
}

__attribute__((unused)) static void fake_gate(struct odds_store *store, bool closed)
{
    CHECK(pthread_mutex_lock(&store->lock) == 0);
    store->gate_closed = closed;
    CHECK(pthread_cond_broadcast(&store->gate_opens) == 0);
    CHECK(pthread_mutex_unlock(&store->lock) == 0);
}

enum status odds_store_stamp(struct odds_store *store, uint64_t *stamp)
{
    enum status status = (enum status)atomic_load(&store->status);
    if (status == STATUS_OK)
        *stamp = atomic_load(&store->stamp);
    return status;
}

bool odds_store_asks(struct odds_store *store)
{
    return store->asks && atomic_load(&store->status) == STATUS_PENDING;
}

enum status odds_store_versions(struct odds_store *store, enum sport sport,
                                const struct event_id *event, struct odds_versions *versions)
{
    enum status status = (enum status)atomic_load(&store->status);
    if (status != STATUS_OK)
        return status;
    if (store->asks)
        return STATUS_PENDING;
    atomic_fetch_add(&store->looks, 1);
    CHECK(pthread_mutex_lock(&store->lock) == 0);
    *versions = (struct odds_versions){.stamp = atomic_load(&store->stamp)};
    for (size_t i = 0; i < FAKE_VALUES && store->values[i].used; i++) {
        const struct fake_value *value = &store->values[i];
        if (value->sport == sport && value->kind == ODDS_CATALOG)
            versions->catalog = value->version;
        else if (value->sport == sport && event != NULL && event_id_equals(&value->event, event))
            versions->odds = value->version;
    }
    CHECK(pthread_mutex_unlock(&store->lock) == 0);
    return STATUS_OK;
}

/* A feed puts the next number into an event's row and into its odds, at once. The lock is held. */
static void fake_move(struct odds_store *store, const struct odds_read *read)
{
    char bytes[128];
    unsigned number = store->moving--;
    (void)snprintf(bytes, sizeof bytes, "[ {\"gmid\":1}, {\"gmid\": %s, \"n\":%u} ]",
                   read->event.digits, number);
    fake_put(store, read->sport, NULL, bytes);
    (void)snprintf(bytes, sizeof bytes, "[{\"n\":%u}]", number);
    fake_put(store, read->sport, &read->event, bytes);
}

static void fake_read_part(const struct fake_value *catalog, struct odds_read *read)
{
    struct odds_part *part = &read->catalog;
    read->same_catalog = read->catalog_version != 0 && read->catalog_version == catalog->version;
    if (read->same_catalog)
        return;
    size_t size = catalog->bytes == NULL ? 0 : strlen(catalog->bytes);
    size_t at = part->at < size ? part->at : size;
    if (catalog->bytes == NULL)
        return;
    part->bytes = memory_copy_string(catalog->bytes + at);
    part->size = size - at < part->max ? size - at : part->max;
}

static enum status fake_read(struct odds_store *store, struct odds_read *read)
{
    CHECK(pthread_mutex_lock(&store->lock) == 0);
    if (read->kind == ODDS_MARKETS && store->moving > 0)
        fake_move(store, read);
    enum status status = store->read_status;
    const struct fake_value *value =
        fake_find(store, read->kind, read->sport, read->kind == ODDS_CATALOG ? NULL : &read->event);
    if (status == STATUS_OK) {
        read->value =
            (struct odds_value){.stamp = atomic_load(&store->stamp), .version = value->version};
        if (value->bytes != NULL) {
            read->value.bytes = memory_copy_string(value->bytes);
            read->value.size = strlen(value->bytes);
        }
        if (read->kind == ODDS_MARKETS && read->catalog.max > 0)
            fake_read_part(fake_find(store, ODDS_CATALOG, read->sport, NULL), read);
    }
    atomic_fetch_add(read->kind == ODDS_CATALOG ? &store->catalog_reads : &store->odds_reads, 1);
    while (store->gate_closed)
        CHECK(pthread_cond_wait(&store->gate_opens, &store->lock) == 0);
    CHECK(pthread_mutex_unlock(&store->lock) == 0);
    return status;
}

struct fake_asking {
    struct odds_store *store;
    struct odds_read *read;
};

static void *fake_ask(void *argument)
{
    struct fake_asking *asking = argument;
    struct odds_store *store = asking->store;
    struct odds_read *read = asking->read;
    read->result = fake_read(store, read);
    memory_free(asking);
    read->done(read);
    CHECK(pthread_mutex_lock(&store->lock) == 0);
    store->asking--;
    CHECK(pthread_cond_broadcast(&store->gate_opens) == 0);
    CHECK(pthread_mutex_unlock(&store->lock) == 0);
    return NULL;
}

enum status odds_store_read(struct odds_store *store, struct odds_read *read)
{
    if (!store->asks)
        return fake_read(store, read);
    struct fake_asking *asking = memory_alloc(sizeof *asking);
    pthread_t thread;
    *asking = (struct fake_asking){store, read};
    CHECK(pthread_mutex_lock(&store->lock) == 0);
    store->asking++;
    CHECK(pthread_mutex_unlock(&store->lock) == 0);
    CHECK(pthread_create(&thread, NULL, fake_ask, asking) == 0);
    CHECK(pthread_detach(thread) == 0);
    return STATUS_PENDING;
}

void odds_store_watch(struct odds_store *store, struct odds_watch *watch)
{
    CHECK(pthread_mutex_lock(&store->lock) == 0);
    store->watch = watch;
    CHECK(pthread_mutex_unlock(&store->lock) == 0);
}

void odds_store_note_interest(struct odds_store *store, enum sport sport,
                              const struct event_id *event)
{
    atomic_fetch_add(&store->notes, 1);
}

/* ---- requests -------------------------------------------------------------------------------- */

#define FAKE_OPEN "no reply yet"
#define FAKE_SENT "a message"

struct fake_request {
    struct http_request request; /* first */
    struct http_field_line lines[2];
    struct http_message *message; /* held */
    const char *outcome;          /* FAKE_OPEN, FAKE_SENT, or the code of an error */
};

/* Either header may be NULL. */
static void fake_request_init(struct fake_request *fake, const char *accept_encoding,
                              const char *if_none_match)
{
    *fake = (struct fake_request){.outcome = FAKE_OPEN};
    fake->request.lines = fake->lines;
    fake->request.started_ns = clock_monotonic_ns();
    const char *const values[] = {accept_encoding, if_none_match};
    const enum http_field fields[] = {HTTP_FIELD_ACCEPT_ENCODING, HTTP_FIELD_IF_NONE_MATCH};
    for (size_t i = 0; i < 2; i++) {
        if (values[i] == NULL)
            continue;
        fake->lines[fake->request.line_count++] =
            (struct http_field_line){text_of(values[i]), fields[i]};
        fake->request.field_count[fields[i]] = 1;
    }
}

static void fake_request_free(struct fake_request *fake)
{
    http_message_release(&fake->message);
}

static struct fake_request *fake_open(struct http_request *request)
{
    struct fake_request *fake = (struct fake_request *)request;
    CHECK(strcmp(fake->outcome, FAKE_OPEN) == 0); /* exactly one reply */
    return fake;
}

void http_reply_message(struct http_request *request, struct http_message *message)
{
    struct fake_request *fake = fake_open(request);
    fake->outcome = FAKE_SENT;
    fake->message = http_message_hold(message);
}

void http_reply_error(struct http_request *request, const struct http_error *error)
{
    fake_open(request)->outcome = error->code;
}

/* Requests that wait are put aside in test_waiting.c alone. */
bool http_park(struct http_parked *parked, struct http_request *request)
{
    return false;
}

struct http_request *http_unpark(struct http_parked *parked)
{
    abort();
}

void http_request_add_field(struct http_request *request, struct text name, struct text value)
{
}

/* The client goes away. */
__attribute__((unused)) static void fake_abandon(struct fake_request *fake)
{
    (void)fake_open(&fake->request);
    CHECK(fake->request.abandoned != NULL);
    fake->request.abandoned(&fake->request);
}

/* ---- a serving thread's surroundings --------------------------------------------------------- */

struct fake_thread {
    uv_loop_t loop;
    uv_timer_t tick; /* keeps the loop alive and turning */
    struct mailbox *mailbox;
    metrics_cell counters[16];
    struct sports_cache *cache;
};

static void fake_tick(uv_timer_t *timer)
{
}

static void fake_thread_init(struct fake_thread *thread, struct sports *sports)
{
    memset(thread, 0, sizeof *thread);
    CHECK(uv_loop_init(&thread->loop) == 0);
    CHECK(uv_timer_init(&thread->loop, &thread->tick) == 0);
    CHECK(uv_timer_start(&thread->tick, fake_tick, 5, 5) == 0);
    thread->mailbox = mailbox_create(&thread->loop);
    thread->cache = sports_cache_create(sports, thread->mailbox, thread->counters, NULL);
}

static void fake_thread_free(struct fake_thread *thread)
{
    sports_cache_destroy(&thread->cache);
    mailbox_destroy(&thread->mailbox);
    uv_close((uv_handle_t *)&thread->tick, NULL);
    while (uv_run(&thread->loop, UV_RUN_DEFAULT) != 0)
        ;
    CHECK(uv_loop_close(&thread->loop) == 0);
}

static void fake_wait(struct fake_thread *thread, const struct fake_request *fake)
{
    while (strcmp(fake->outcome, FAKE_OPEN) == 0)
        (void)uv_run(&thread->loop, UV_RUN_ONCE);
}
