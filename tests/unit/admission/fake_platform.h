#pragma once

/*
 * A platform store in memory, with switches for its troubles: the functions that
 * admission/policies.c calls, compiled into a test program, which so never links the real store.
 * Include it once.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "admission/admission.h"
#include "admission/key.h"
#include "base/clock.h"
#include "base/memory.h"
#include "stores/platform_changes.h"

#define FAKE_ROWS_MAX 64

static pthread_mutex_t fake_lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything */
static struct {
    uint64_t revision;
    size_t customers, keys, legacy;
    struct customer_record customer[FAKE_ROWS_MAX];
    struct key_record key[FAKE_ROWS_MAX];
    struct legacy_record address[FAKE_ROWS_MAX];
    enum status open_status;    /* what opening says */
    enum status query_status;   /* what every question says */
    enum status changes_status; /* what reading changes says, after half of the rows */
    unsigned opened, closed, asked_all;
    size_t touched;
    struct key_use last_touch;
} fake;

static void fake_reset(void)
{
    pthread_mutex_lock(&fake_lock);
    memset(&fake, 0, sizeof fake);
    pthread_mutex_unlock(&fake_lock);
}

/* Changes one of the switches. */
static void fake_set(enum status *which, enum status status)
{
    pthread_mutex_lock(&fake_lock);
    *which = status;
    pthread_mutex_unlock(&fake_lock);
}

/* ---- the store as policies.c sees it --------------------------------------------------------- */

enum status platform_store_open(struct platform_store **store,
                                const struct platform_store_options *options, struct error *error)
{
    if (*store != NULL)
        return STATUS_OK;
    pthread_mutex_lock(&fake_lock);
    enum status status = fake.open_status;
    fake.opened += status == STATUS_OK ? 1 : 0;
    pthread_mutex_unlock(&fake_lock);
    if (status != STATUS_OK)
        return error_set(error, status, "cannot open %s", options->uri);
    *store = memory_alloc_zeroed(1, sizeof **store);
    return STATUS_OK;
}

void platform_store_close(struct platform_store **store)
{
    if (*store == NULL)
        return;
    memory_free(*store);
    *store = NULL;
    pthread_mutex_lock(&fake_lock);
    fake.closed++;
    pthread_mutex_unlock(&fake_lock);
}

enum status platform_revision(struct platform_store *store, uint64_t *revision, struct error *error)
{
    pthread_mutex_lock(&fake_lock);
    enum status status = fake.query_status;
    if (status == STATUS_OK)
        *revision = fake.revision;
    pthread_mutex_unlock(&fake_lock);
    return status == STATUS_OK ? status : error_set(error, status, "no answer");
}

enum status platform_changes_since(struct platform_store *store, uint64_t since,
                                   const struct record_visitor *visit, uint64_t *revision,
                                   struct error *error)
{
    pthread_mutex_lock(&fake_lock);
    fake.asked_all += since == 0 ? 1 : 0;
    for (size_t i = 0; i < fake.customers; i++) {
        if (fake.customer[i].revision > since)
            (void)visit->see[RECORD_CUSTOMER](visit->context, &fake.customer[i]);
    }
    enum status status = fake.changes_status;
    for (size_t i = 0; i < fake.keys && status == STATUS_OK; i++) {
        if (fake.key[i].revision > since)
            (void)visit->see[RECORD_KEY](visit->context, &fake.key[i]);
    }
    for (size_t i = 0; i < fake.legacy && status == STATUS_OK; i++) {
        if (fake.address[i].revision > since)
            (void)visit->see[RECORD_ADDRESS](visit->context, &fake.address[i]);
    }
    if (status == STATUS_OK)
        *revision = fake.revision;
    pthread_mutex_unlock(&fake_lock);
    return status == STATUS_OK ? status : error_set(error, status, "no more rows");
}

enum status platform_key_touch(struct platform_store *store, const struct key_use *uses,
                               size_t count, struct error *error)
{
    pthread_mutex_lock(&fake_lock);
    enum status status = fake.query_status;
    if (status == STATUS_OK) {
        fake.touched += count;
        fake.last_touch = uses[count - 1];
    }
    pthread_mutex_unlock(&fake_lock);
    return status == STATUS_OK ? status : error_set(error, status, "read-only");
}

/* ---- what an operator does to it ------------------------------------------------------------- */

/* A customer who may do everything, from `cidr_list` ("192.0.2.0/24,2001:db8::/32"); its number. */
static size_t fake_add_customer(const char *cidr_list)
{
    pthread_mutex_lock(&fake_lock);
    size_t number = fake.customers++;
    struct customer_record *record = &fake.customer[number];
    *record = (struct customer_record){.enabled = true,
                                       .usable = true,
                                       .casino = true,
                                       .sports = SPORT_SET_ALL,
                                       .revision = ++fake.revision};
    (void)snprintf(record->id, sizeof record->id, "cus_%016zu", number);
    struct text rest = text_of(cidr_list);
    while (rest.size > 0) {
        if (cidr_parse(text_cut(&rest, ','), &record->cidrs[record->cidr_count++], NULL) !=
            STATUS_OK)
            abort();
    }
    pthread_mutex_unlock(&fake_lock);
    return number;
}

/* A key of that customer; the key itself is written to `out`. */
static size_t fake_add_key(size_t customer, char out[KEY_SIZE])
{
    key_generate(out);
    pthread_mutex_lock(&fake_lock);
    size_t number = fake.keys++;
    struct key_record *record = &fake.key[number];
    *record = (struct key_record){.areas = KEY_AREAS_USUAL, .revision = ++fake.revision};
    (void)snprintf(record->id, sizeof record->id, "key_%016zu", number);
    memcpy(record->customer_id, fake.customer[customer].id, sizeof record->customer_id);
    key_digest(text_of(out), record->digest);
    pthread_mutex_unlock(&fake_lock);
    return number;
}

static size_t fake_add_legacy(const char *address)
{
    pthread_mutex_lock(&fake_lock);
    size_t number = fake.legacy++;
    struct legacy_record *record = &fake.address[number];
    *record = (struct legacy_record){
        .enabled = true, .usable = true, .sports = SPORT_SET_ALL, .revision = ++fake.revision};
    if (address_parse(text_of(address), &record->address) != STATUS_OK)
        abort();
    pthread_mutex_unlock(&fake_lock);
    return number;
}

/* Between these two, the rows and switches may be looked at and changed. */
static void fake_begin(void)
{
    pthread_mutex_lock(&fake_lock);
}

static void fake_commit(uint64_t *row_revision)
{
    *row_revision = ++fake.revision;
    pthread_mutex_unlock(&fake_lock);
}

static void fake_end(void)
{
    pthread_mutex_unlock(&fake_lock);
}

/* Waits until what was done to the store is in the table. */
static bool fake_settle(struct policies *policies, uint32_t timeout_ms)
{
    struct policies_facts facts;
    uint64_t began_ms = clock_monotonic_ms();
    fake_begin();
    uint64_t revision = fake.revision;
    fake_end();
    do {
        struct timespec moment = {.tv_nsec = 1000000};
        (void)nanosleep(&moment, NULL);
        policies_facts(policies, &facts);
    } while (facts.revision != revision && clock_monotonic_ms() - began_ms < timeout_ms);
    return facts.revision == revision;
}
