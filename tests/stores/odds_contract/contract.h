#pragma once

/*
 * What every engine of the odds store has to do, written against odds_store.h alone: what its parts
 * share, a part a file. See main.c.
 */
#include <semaphore.h>

#include "../../test_directory.h"
#include "stores/odds_feed.h"
#include "stores/odds_lease.h"
#include "stores/odds_read.h"
#include "tests.h"

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
    bool asks;               /* it cannot tell without asking, ever */
};

extern const struct factory *engine; /* that is tested */

/* The parts: each returns how many of its tests failed. */

/* Reads at once or when the engine calls back. */
struct waiting_read {
    struct odds_read read;
    sem_t done;
};

int set_up(void **state);
int tear_down(void **state);
struct odds_store *open_within(const struct fixture *fixture, bool create, uint32_t timeout_ms);
struct odds_store *open_store(const struct fixture *fixture, bool create);
struct event_id event_of(const char *digits);
struct odds_change catalog_change(enum sport sport, const char *bytes);
struct odds_change odds_change(enum sport sport, const char *event, const char *bytes);
void publish(struct odds_store *store, const struct odds_change *changes, size_t count);
void publish_one(struct odds_store *store, struct odds_change change);
enum status wait_for(struct odds_store *store, struct waiting_read *waiting);
enum status read_value(struct odds_store *store, enum odds_kind kind, enum sport sport,
                       const char *event, struct odds_value *value);
uint64_t version_of(struct odds_store *store, enum odds_kind kind, enum sport sport,
                    const char *event);
void assert_stored(struct odds_store *store, enum odds_kind kind, enum sport sport,
                   const char *event, const char *bytes, size_t size);
void assert_not_stored(struct odds_store *store, enum odds_kind kind, enum sport sport,
                       const char *event);
uint64_t stamp_of(struct odds_store *store);
/* Has it moved since it was `before`? An engine that asks has none, and that is asserted instead. */
void assert_stamp(struct odds_store *store, uint64_t before, bool moved);
void publish_in_another_process(const struct fixture *fixture, const char *sport, const char *event,
                                const char *bytes);
void withdraw_sport(struct odds_store *store, enum sport sport);
